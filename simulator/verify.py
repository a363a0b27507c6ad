"""Check a finished schedule against the rules of the simulation, independently of the engine.

Everything is recomputed from the columns and the delay models; nothing is taken from the engine's
own bookkeeping.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.delays import Delays
from simulator.errors import SimulationBug
from simulator.network import AllReduce, Network, Star
from simulator.randomness import Purpose
from simulator.schedule import Direction, Schedule, Status


def verify_schedule(schedule: Schedule, compute: Delays, network: Network, seed: int) -> None:
    """Raise :class:`SimulationBug` at the first broken rule.

    Rules: the clock is monotone and nothing counts past the end; every computation ends at start +
    c(worker, k), or was cancelled before; staleness is non-negative and points come from steps
    taken; a worker does one computation at a time; used + discarded + cancelled + in flight =
    started; weights of a step add up to one; messages take what the links say.

    Args:
        schedule: what to check.
        compute, network, seed: what it was made from.
    """
    _check_clock(schedule)
    _check_statuses(schedule)
    _check_durations(schedule, compute, seed)
    _check_points(schedule)
    _check_one_thing_at_a_time(schedule)
    _check_weights(schedule)
    _check_messages(schedule, network, seed)
    _check_gathering(schedule, network, seed)


def _require(holds: NDArray[np.bool_], rule: str, schedule: Schedule, what: str = "row") -> None:
    bad = np.flatnonzero(~holds)
    if not len(bad):
        return
    row = int(bad[0])
    detail = ""
    if what == "row":
        detail = (
            f" (worker {schedule.worker[row]}, k {schedule.k[row]}, version "
            f"{schedule.version[row]}, {schedule.start_seconds[row]:g} s to "
            f"{schedule.stop_seconds[row]:g} s, {Status(schedule.status[row]).name.lower()})"
        )
    raise SimulationBug(f"{what} {row}{detail}: {rule}")


def _check_clock(schedule: Schedule) -> None:
    end = schedule.end_seconds
    _require(schedule.start_seconds <= end, "starts after the end", schedule)
    _require(np.diff(schedule.start_seconds) >= 0, "the next start is earlier", schedule)
    _require(schedule.step_seconds <= end, "a step after the end", schedule, "step")
    _require(np.diff(schedule.step_seconds) >= 0, "the next step is earlier", schedule, "step")
    _require(schedule.close_seconds <= schedule.step_seconds, "closes after it", schedule, "step")
    resolved = np.isin(schedule.status, (Status.USED, Status.DISCARDED, Status.CANCELLED))
    _require(~resolved | (schedule.stop_seconds <= end), "ends after the end", schedule)


def _check_statuses(schedule: Schedule) -> None:
    used = schedule.status == Status.USED
    _require(used == (schedule.step >= 0), "used and in a step must be the same", schedule)
    _require(schedule.step < schedule.n_steps, "in a step that was not taken", schedule)
    if sum(schedule.counts().values()) != schedule.n_computations:
        raise SimulationBug(
            f"used + discarded + cancelled + in flight = {schedule.counts()} do not add up to "
            f"{schedule.n_computations} started"
        )


def _check_durations(schedule: Schedule, compute: Delays, seed: int) -> None:
    seconds = compute.seconds(seed, Purpose.COMPUTE, schedule.worker, schedule.k)
    planned = schedule.start_seconds + seconds
    cancelled = schedule.status == Status.CANCELLED
    right = np.where(
        cancelled,
        (schedule.stop_seconds >= schedule.start_seconds) & (schedule.stop_seconds <= planned),
        schedule.stop_seconds == planned,
    )
    _require(right, "must end at start + duration, or be cancelled before", schedule)


def _check_points(schedule: Schedule) -> None:
    _require(schedule.version >= 0, "negative version", schedule)
    taken = np.searchsorted(schedule.step_seconds, schedule.start_seconds, side="right")
    _require(schedule.version <= taken, "its point comes from a later step", schedule)
    used = schedule.step >= 0
    staleness = schedule.step - schedule.version
    _require(~used | (staleness >= 0), "negative staleness", schedule)
    closes = schedule.close_seconds[np.where(used, schedule.step, 0)] if schedule.n_steps else 0.0
    _require(~used | (schedule.stop_seconds <= closes), "finished after its step", schedule)


def _check_one_thing_at_a_time(schedule: Schedule) -> None:
    order = np.lexsort((schedule.k, schedule.worker))
    same = schedule.worker[order][1:] == schedule.worker[order][:-1]
    gap = schedule.start_seconds[order][1:] - schedule.stop_seconds[order][:-1]
    consecutive = np.diff(schedule.k[order]) == 1
    # inf - inf: a computation that never ends may only be the last.
    ok = ~same | ((np.nan_to_num(gap, nan=-1.0) >= 0) & consecutive)
    _require(ok, "a worker computes two things at once", schedule, "pair")


def _check_weights(schedule: Schedule) -> None:
    used = schedule.step >= 0
    _require(~used | (schedule.weight > 0), "used with no weight", schedule)
    _require(used | (schedule.weight == 0), "weighs in without being used", schedule)
    total = np.bincount(schedule.step[used], schedule.weight[used], minlength=schedule.n_steps)
    _require(np.abs(total - 1) < 1e-9, "weights do not add up to 1", schedule, "step")
    _require(
        np.bincount(schedule.step[used], minlength=schedule.n_steps) > 0,
        "a step without a gradient",
        schedule,
        "step",
    )


def _check_messages(schedule: Schedule, network: Network, seed: int) -> None:
    if not isinstance(network, Star):
        if len(schedule.message_worker):
            raise SimulationBug("messages without links")
        return
    for direction, link, purpose in (
        (Direction.DOWN, network.down, Purpose.DOWN),
        (Direction.UP, network.up, Purpose.UP),
    ):
        is_this = schedule.message_direction == direction
        worker = schedule.message_worker[is_this]
        seconds = link.seconds(seed, purpose, worker, _running_index(worker))
        sent = schedule.message_sent_seconds[is_this]
        received = schedule.message_received_seconds[is_this]
        _require(
            received == sent + seconds, f"{direction.name} must take its delay", schedule, "message"
        )
        _require(np.diff(sent) >= 0, f"{direction.name} sent earlier", schedule, "message")


def _running_index(values: NDArray[np.int32]) -> NDArray[np.int32]:
    seen: dict[int, int] = {}
    index = np.empty(len(values), np.int32)
    for position, value in enumerate(values.tolist()):
        index[position] = seen.get(value, 0)
        seen[value] = index[position] + 1
    return index


def _check_gathering(schedule: Schedule, network: Network, seed: int) -> None:
    """A step follows its last gradient by what the network takes to gather the vectors."""
    if isinstance(network, Star) or not schedule.n_steps:
        return
    expected = schedule.close_seconds
    if isinstance(network, AllReduce):
        steps = np.arange(schedule.n_steps, dtype=np.int32)
        seconds = network.collective.seconds(seed, Purpose.COLLECTIVE, np.zeros_like(steps), steps)
        expected = expected + seconds
    _require(schedule.step_seconds == expected, "closes and steps apart", schedule, "step")
