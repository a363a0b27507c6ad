"""Dealing runs to processes: few compilations, few messages, nobody idle.

Runs that differ only in seed and hyperparameters share everything that is compiled, and their
schedule if nothing in it is random: they are a *group*. A process stays with a group as long as
it has runs; one that needs a new group takes an untouched one, and only when there is none helps
with another's. Runs are dealt in chunks of about a second's work.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from scenarios.store import RunSpec

_CHUNK_SECONDS = 1.0
_LONGEST_CHUNK = 64


class Dealer:
    """Hands out runs.

    Args:
        specs: the runs.
        n_processes: that will ask.
    """

    def __init__(self, specs: Sequence[RunSpec], n_processes: int) -> None:
        self._n_processes = n_processes
        self._groups: dict[str, deque[RunSpec]] = {}
        for spec in specs:
            self._groups.setdefault(_group(spec), deque()).append(spec)
        self._at: dict[int, str] = {}  # process -> its group
        self._seconds: dict[str, float] = {}  # of a run of a group, as last seen

    def deal(self, process: int) -> list[RunSpec]:
        """The next runs of a process; empty if none is left."""
        group = self._choose(process)
        if group is None:
            self._at.pop(process, None)
            return []
        self._at[process] = group
        waiting = self._groups[group]
        return [waiting.popleft() for _ in range(self._chunk(group))]

    def took(self, spec: RunSpec, wall_seconds: float) -> None:
        """A run took so long."""
        self._seconds[_group(spec)] = wall_seconds

    def give_back(self, specs: Sequence[RunSpec]) -> None:
        """Runs that were dealt and not begun."""
        for spec in reversed(specs):
            self._groups[_group(spec)].appendleft(spec)

    def _choose(self, process: int) -> str | None:
        left = [group for group, waiting in self._groups.items() if waiting]
        mine = self._at.get(process)
        if mine in left:
            return mine
        others = {group for other, group in self._at.items() if other != process}
        untouched = [group for group in left if group not in others]
        if untouched:
            return untouched[0]
        return max(left, key=lambda group: len(self._groups[group]), default=None)

    def _chunk(self, group: str) -> int:
        """How many runs to deal: one until it is known how long they take."""
        left = len(self._groups[group])
        seconds = self._seconds.get(group)
        if seconds is None:
            return 1
        lasting = _CHUNK_SECONDS / max(seconds, 1e-6)
        fair = math.ceil(left / (2 * self._n_processes))
        return max(1, min(int(lasting), fair, left, _LONGEST_CHUNK))


def _group(spec: RunSpec) -> str:
    method = spec.method
    return repr((id(spec.scenario), method.coordinator, method.update, method.arguments))
