"""A stretch of a schedule as coloured intervals: what each worker did when.

The kinds are those of ``accounting``: *useful*, *wasted*, *unfinished*, *communicating*; whatever
is covered by none is *idle*. Communicating intervals may lie under computing ones, which come
first: draw them beneath.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.accounting import message_ends
from simulator.errors import ConfigurationError
from simulator.schedule import Schedule, Status

COMMUNICATING = "communicating"
KIND_OF_STATUS = {
    Status.USED: "useful",
    Status.DISCARDED: "wasted",
    Status.CANCELLED: "wasted",
    Status.IN_FLIGHT: "unfinished",
}

_PER_WORKER = 40  # computations that a row of a page can show apart


@dataclass(frozen=True, eq=False)
class Intervals:
    """What happened to workers, each [n]: whose, from when to when; ``stop > start``."""

    worker: NDArray[np.int64]
    start: NDArray[np.float64]
    stop: NDArray[np.float64]


@dataclass(frozen=True)
class Window:
    """The part of a schedule that is shown.

    Attributes:
        start, stop: simulated seconds, start < stop.
        workers: indices of those shown, rising.
        note: what was left out, in words; empty if nothing.
    """

    start: float
    stop: float
    workers: tuple[int, ...]
    note: str


def choose_window(
    schedule: Schedule, start: float | None, stop: float | None, most_workers: int
) -> Window:
    """Choose what a page can show: evenly chosen workers, and about 40 computations of each.

    Args:
        schedule: the run.
        start, stop: simulated seconds asked for; None leaves the choice.
        most_workers: rows there are room for.

    Raises:
        ConfigurationError: nothing lies between start and stop.
    """
    begin = 0.0 if start is None else start
    n_rows = min(schedule.n_workers, most_workers)
    workers = np.unique(np.linspace(0, schedule.n_workers - 1, n_rows).round().astype(int))
    end = _readable_stop(schedule, begin, workers) if stop is None else stop
    end = min(end, schedule.end_seconds)
    if not 0 <= begin < end:
        raise ConfigurationError(
            f"from = {begin:g}, to = {end if stop is None else stop:g}: expected "
            f"0 <= from < to, and from before the run's end at {schedule.end_seconds:g} s"
        )
    return Window(begin, end, tuple(workers.tolist()), _note(schedule, begin, end, len(workers)))


def _readable_stop(schedule: Schedule, start: float, workers: NDArray[np.int64]) -> float:
    shown = np.isin(schedule.worker, workers) & (schedule.start_seconds >= start)
    starts = np.sort(schedule.start_seconds[shown])
    most = _PER_WORKER * len(workers)
    # A fleet that starts too much at one instant still gets a window.
    later = starts[most:][starts[most:] > start]
    return float(later[0]) if len(later) else schedule.end_seconds


def _note(schedule: Schedule, start: float, stop: float, n_shown: int) -> str:
    parts = []
    if start > 0 or stop < schedule.end_seconds:
        parts.append(f"{start:.4g} to {stop:.4g} of {schedule.end_seconds:.4g} s")
    if n_shown < schedule.n_workers:
        parts.append(f"{n_shown} of {schedule.n_workers} workers, evenly chosen")
    return "; ".join(parts)


def computing(schedule: Schedule, window: Window) -> dict[str, Intervals]:
    """Computations of the window by kind, cut at its edges."""
    found = {}
    for kind in dict.fromkeys(KIND_OF_STATUS.values()):
        statuses = [status for status, name in KIND_OF_STATUS.items() if name == kind]
        rows = np.isin(schedule.status, statuses)
        found[kind] = _cut(
            window, schedule.worker[rows], schedule.start_seconds[rows], schedule.stop_seconds[rows]
        )
    return found


def communicating(schedule: Schedule, window: Window) -> Intervals:
    """Messages of the window (star), or its collectives, which hold every worker (allreduce)."""
    if len(schedule.message_worker):
        sent, over = schedule.message_sent_seconds, message_ends(schedule)
        return _cut(window, schedule.message_worker, sent, over)
    opened, closed = schedule.close_seconds, schedule.step_seconds
    near = (closed > opened) & (closed > window.start) & (opened < window.stop)
    opened, closed, workers = opened[near], closed[near], np.array(window.workers)
    return _cut(
        window,
        np.tile(workers, len(opened)),
        np.repeat(opened, len(workers)),
        np.repeat(closed, len(workers)),
    )


def _cut(
    window: Window,
    worker: NDArray[np.int32],
    start: NDArray[np.float64],
    stop: NDArray[np.float64],
) -> Intervals:
    begin, end = np.maximum(start, window.start), np.minimum(stop, window.stop)
    kept = (end > begin) & np.isin(worker, window.workers)
    return Intervals(worker[kept].astype(np.int64), begin[kept], end[kept])
