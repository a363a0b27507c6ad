"""Schedules, kept by the content of what determines them: timing, coordinator and seed.

Another stepsize, another seed on a fleet of constant speeds, another scenario on the same fleet:
none of them needs another simulation.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from scenarios.method_section import MethodSection
from scenarios.schema import Scenario
from simulator.schedule import Schedule

DEFAULT_BYTES = 1 << 28


class ScheduleCache:
    """The schedules asked for last.

    Args:
        most_bytes: that their columns may take together; a larger one is not kept.
    """

    def __init__(self, most_bytes: int = DEFAULT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, Schedule] = OrderedDict()
        self._bytes = 0

    def get(self, key: str, make: Callable[[], Schedule]) -> Schedule:
        """The schedule of that key, made if it is not here."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        schedule = make()
        if schedule.nbytes <= self._most_bytes:
            self._kept[key] = schedule
            self._bytes += schedule.nbytes
        while self._bytes > self._most_bytes:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return schedule


SCHEDULES = ScheduleCache()
"""Of this process."""


def timing_id(scenario: Scenario, dimension: int) -> str:
    """64 hexadecimal digits that depend on all that sets times, and on nothing else.

    Args:
        scenario: fleet, network, budget, and the bytes of a number on the wire.
        dimension: d, number of parameters.

    Raises:
        OSError: a file of delays can not be read.
    """
    return _digest([scenario.timing_data(), scenario.precision, dimension])


def schedule_id(timing: str, method: MethodSection, seed: int | None, verified: bool) -> str:
    """Key of a schedule.

    Args:
        timing: :func:`timing_id`.
        method: its coordinator counts, with its arguments.
        seed: None if nothing is random.
        verified: whether it was checked against the rules of the simulation.
    """
    return _digest([timing, method.coordinator, dict(method.arguments), seed, verified])


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
