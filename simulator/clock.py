"""The clock: SimPy's environment, with a rank among simultaneous events and alarms one can drop.

SimPy orders events by (time, priority, insertion). Using the worker's index as the priority makes
simultaneous arrivals happen in worker order whatever order they were scheduled in.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappush
from typing import Any

from simpy.core import Environment
from simpy.events import Event

Callback = Callable[[Any], None]

FIRST = -1
"""Rank of what precedes every arrival of its instant."""

_COMPACT_ABOVE = 1024


class Alarm(Event):
    """An event that its clock can set again and again; lean, because there is one a worker.

    Args:
        owner: whatever the callback needs to know whose alarm it is.
    """

    __slots__ = ("callbacks", "owner")

    _ok = True
    _value = None

    def __init__(self, owner: Any = None) -> None:
        self.callbacks = []  # SimPy's own __init__ would make a dict for each alarm
        self.owner = owner


class Clock(Environment):
    """SimPy's environment, which also forgets dropped alarms."""

    def __init__(self) -> None:
        super().__init__()
        self._dropped = 0

    def set(self, alarm: Alarm, delay: float, rank: Any, callbacks: list[Callback]) -> None:
        """Call each of ``callbacks`` with the alarm in ``delay`` seconds, by ``rank`` then.

        SimPy's ``schedule``, written out here because it is called for every computation. The
        list may be shared by many alarms; nobody writes to it.
        """
        alarm.callbacks = callbacks
        heappush(self._queue, (self._now + delay, rank, next(self._eid), alarm))

    def drop(self, alarm: Alarm) -> None:
        """Make a pending alarm do nothing. Its owner needs a new one.

        The entry stays in SimPy's queue until half of the queue is such entries; else a worker
        with very long computations would leave one behind at every step.
        """
        alarm.callbacks = []
        self._dropped += 1
        if self._dropped > max(_COMPACT_ABOVE, len(self._queue) // 2):
            self._queue = [entry for entry in self._queue if not _is_dropped(entry[3])]
            heapify(self._queue)
            self._dropped = 0

    @property
    def is_empty(self) -> bool:
        """True if nothing is going to happen any more."""
        return all(_is_dropped(entry[3]) for entry in self._queue)


def _is_dropped(event: Event) -> bool:
    return not event.callbacks
