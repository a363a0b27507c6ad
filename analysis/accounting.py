"""Where the workers' time went, from a schedule.

Every second of every worker between 0 and ``end_seconds`` is exactly one of:

- *useful*: computing a gradient that entered a step;
- *wasted*: computing one that was discarded, or cancelled (until it was);
- *unfinished*: computing one that was neither used nor thrown away when the run ended;
- *communicating*: not computing, while a message from or to the worker is on its way (star), or
  while a collective runs, for every worker alike (allreduce);
- *idle*: the rest, waiting for others.

Computing comes first: a worker that computes while its last sum travels is computing. A collective
that had not ended when the run did is in no step of the schedule, and counts as idle.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.records import Shares
from simulator.schedule import Schedule, Status

Seconds = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WorkerTime:
    """Seconds of each worker by use, each [n_workers]; together ``end_seconds`` per worker."""

    useful: Seconds
    wasted: Seconds
    unfinished: Seconds
    communicating: Seconds
    idle: Seconds

    def total(self) -> Seconds:
        """Seconds of each worker, [n_workers]."""
        return np.sum([getattr(self, item.name) for item in fields(self)], axis=0)

    def shares(self) -> Shares:
        """The fleet's time as fractions that add up to 1; all NaN for a run of zero seconds."""
        sums = np.array([getattr(self, name).sum() for name in Shares._fields])
        whole = sums.sum()
        fractions = sums / whole if whole > 0 else np.full_like(sums, np.nan)
        return Shares(*fractions.tolist())


def time_spent(schedule: Schedule) -> WorkerTime:
    """Account for every second of every worker.

    Time is O(m log m) in computations, messages and steps; nothing loops over them.

    Args:
        schedule: of any network; whether it is a star, a collective or free is read off it.

    Raises:
        ValueError: a worker does more than one thing at a time: not a schedule of any run.
    """
    start, stop = _clip(schedule, schedule.start_seconds, schedule.stop_seconds)
    status = schedule.status

    def computing(mask: NDArray[np.bool_]) -> Seconds:
        return _per_worker(schedule.worker[mask], (stop - start)[mask], schedule.n_workers)

    useful = computing(status == Status.USED)
    wasted = computing((status == Status.DISCARDED) | (status == Status.CANCELLED))
    unfinished = computing(status == Status.IN_FLIGHT)
    busy = useful + wasted + unfinished
    if len(schedule.message_worker):
        communicating = _star_seconds(schedule, start, stop, busy)
    else:
        communicating = _collective_seconds(schedule, start, stop)
    idle = schedule.end_seconds - busy - communicating
    return WorkerTime(
        useful=useful,
        wasted=wasted,
        unfinished=unfinished,
        communicating=_without_rounding(communicating, schedule.end_seconds),
        idle=_without_rounding(idle, schedule.end_seconds),
    )


def _clip(schedule: Schedule, start: Seconds, stop: Seconds) -> tuple[Seconds, Seconds]:
    end = schedule.end_seconds
    return np.minimum(start, end), np.minimum(stop, end)


def _star_seconds(schedule: Schedule, start: Seconds, stop: Seconds, busy: Seconds) -> Seconds:
    """Time with a message on its way and no computation: |messages or computing| - |computing|."""
    sent, received = _clip(schedule, schedule.message_sent_seconds, message_ends(schedule))
    either = union_seconds(
        np.concatenate([schedule.worker, schedule.message_worker]),
        np.concatenate([start, sent]),
        np.concatenate([stop, received]),
        schedule.n_workers,
    )
    return either - busy


def message_ends(schedule: Schedule) -> Seconds:
    """When each message was over, [n_messages]: received, or dropped.

    A worker has one message on its way at a time. So one whose successor was sent before it would
    have arrived was dropped by a cancellation; we let it end there.
    """
    worker, over = schedule.message_worker, schedule.message_received_seconds.copy()
    order = np.argsort(worker, kind="stable")
    earlier, later = order[:-1], order[1:]
    same = worker[earlier] == worker[later]
    earlier, later = earlier[same], later[same]
    over[earlier] = np.minimum(over[earlier], schedule.message_sent_seconds[later])
    return over


def _collective_seconds(schedule: Schedule, start: Seconds, stop: Seconds) -> Seconds:
    """Time inside collectives less each worker's computing inside them, [n_workers].

    With F(t) the time inside collectives up to t, a computation overlaps them for
    F(stop) - F(start): no loop over pairs of worker and step.
    """
    opened, closed = _clip(schedule, schedule.close_seconds, schedule.step_seconds)
    if not np.any(closed > opened):
        return np.zeros(schedule.n_workers)
    knots = np.stack([opened, closed], axis=1).ravel()
    inside = np.stack([np.zeros_like(opened), closed - opened], axis=1).ravel().cumsum()
    overlap = np.interp(stop, knots, inside, left=0.0) - np.interp(start, knots, inside, left=0.0)
    return inside[-1] - _per_worker(schedule.worker, overlap, schedule.n_workers)


def union_seconds(worker: NDArray[Any], start: Seconds, stop: Seconds, n_workers: int) -> Seconds:
    """Length of the union of each worker's intervals, [n_workers].

    Args:
        worker: whose interval, [n].
        start, stop: seconds, [n], finite, stop >= start.
        n_workers: size of the fleet.
    """
    if not len(worker):
        return np.zeros(n_workers)
    order = np.lexsort((start, worker))
    who, begin, end = worker[order].astype(np.int64), start[order], stop[order]
    # Running maximum of `end` within each worker, exact: over ranks, which leave room for a
    # worker's offset, instead of over the seconds themselves.
    by_end = np.argsort(end, kind="stable")
    rank = np.empty_like(by_end)
    rank[by_end] = np.arange(len(end))
    reached = np.maximum.accumulate(who * len(end) + rank) - who * len(end)
    covered_to = end[by_end[reached]]
    same = who[1:] == who[:-1]
    fresh = begin.copy()
    fresh[1:] = np.where(same, np.maximum(begin[1:], covered_to[:-1]), begin[1:])
    return _per_worker(who, np.maximum(end - fresh, 0.0), n_workers)


def _per_worker(worker: NDArray[Any], seconds: Seconds, n_workers: int) -> Seconds:
    # bincount of nothing gives integers, whatever the weights.
    return np.bincount(worker, seconds, minlength=n_workers).astype(np.float64, copy=False)


def _without_rounding(seconds: Seconds, end_seconds: float) -> Seconds:
    """Lift what rounding left just below zero; refuse what rounding can not explain."""
    if len(seconds) and seconds.min() < -1e-9 * max(end_seconds, 1e-300):
        worker = int(seconds.argmin())
        raise ValueError(
            f"worker {worker} does more than one thing at a time, by {-seconds.min():.6g} s "
            f"in {end_seconds:.6g} s"
        )
    return np.maximum(seconds, 0.0)
