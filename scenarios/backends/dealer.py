"""Dealing runs to processes: few compilations, few messages, nobody idle who could help.

Runs of one scenario, coordinator and update rule are a *family*: they share most of what is
compiled. Those that differ only in seed and in the rule's hyperparameters share all of it, and
their schedule if nothing in it is random: they are a *group*. A process asks for runs and gets, in
this order of preference, some

1. of the group it is at;
2. of a family that it has compiled for;
3. of a family that nobody has compiled for;
4. of another's family, if what is left there takes longer than to compile once more. As long as
   that is not known it gets nothing, and asks again when it may be.

Runs are dealt in chunks of about a second's work, one at a time until it is known how long they
take; those of a chunk that share a schedule are computed in one compiled call (``bench``). Runs
that were in flight when a process died are dealt one at a time: it shows which of them kills.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from scenarios.store import RunSpec

_CHUNK_SECONDS = 1.0
_LONGEST_CHUNK = 64
_SURELY_LONG_SECONDS = 30.0
"""A first run of this length is not just compilation."""


@dataclass
class _Family:
    """What is waiting, and how long its runs take: the first ever, and the latest after that."""

    waiting: dict[str, deque[RunSpec]] = field(default_factory=dict)
    first_seconds: float | None = None
    last_seconds: float | None = None

    @property
    def left(self) -> int:
        return sum(len(specs) for specs in self.waiting.values())

    def is_worth_helping(self) -> bool:
        if self.first_seconds is None or not self.left:
            return False
        if self.last_seconds is None:
            return self.first_seconds > _SURELY_LONG_SECONDS
        return self.left * self.last_seconds > self.first_seconds


class Dealer:
    """Hands out runs.

    Args:
        n_processes: that will ask.
    """

    def __init__(self, n_processes: int) -> None:
        self._n_processes = n_processes
        self._families: dict[str, _Family] = {}
        self._at: dict[int, str] = {}  # process -> its group
        self._warm: dict[int, set[str]] = {}  # process -> families it has compiled for
        self._suspects: set[str] = set()

    def add(self, specs: Sequence[RunSpec]) -> None:
        """More runs to deal."""
        for spec in specs:
            self._waiting(spec).append(spec)

    def give_back(self, specs: Sequence[RunSpec], are_suspect: bool = False) -> None:
        """Runs that were dealt and are not done; suspect if a process died computing them."""
        if are_suspect:
            self._suspects.update(spec.key for spec in specs)
        for spec in reversed(specs):
            self._waiting(spec).appendleft(spec)

    def forget(self, process: int) -> None:
        """A process is gone, and what it had compiled."""
        self._at.pop(process, None)
        self._warm.pop(process, None)

    def took(self, spec: RunSpec, wall_seconds: float) -> None:
        """A run took so long."""
        family = self._families[spec.family]
        if family.first_seconds is None:
            family.first_seconds = wall_seconds
        else:
            family.last_seconds = wall_seconds

    def left(self) -> int:
        """Runs not dealt yet."""
        return sum(family.left for family in self._families.values())

    def deal(self, process: int) -> list[RunSpec]:
        """The next runs of a process; empty if there is nothing for it, now or ever."""
        name = self._choose(process)
        if name is None:
            return []
        family = self._families[name]
        groups = [group for group, specs in family.waiting.items() if specs]
        group = self._at.get(process)
        group = group if group in groups else groups[0]
        self._at[process] = group
        self._warm.setdefault(process, set()).add(name)
        waiting = family.waiting[group]
        trusted = next((i for i, s in enumerate(waiting) if s.key in self._suspects), len(waiting))
        many = min(max(trusted, 1), self._chunk(family, len(waiting)))
        return [waiting.popleft() for _ in range(many)]

    def _waiting(self, spec: RunSpec) -> deque[RunSpec]:
        family = self._families.setdefault(spec.family, _Family())
        return family.waiting.setdefault(spec.group, deque())

    def _choose(self, process: int) -> str | None:
        """A family for a process."""
        left = [name for name, family in self._families.items() if family.left]
        mine = self._warm.get(process, set())
        group = self._at.get(process)
        for name in left:
            if name in mine and self._families[name].waiting.get(group or ""):
                return name
        everyone = set().union(*self._warm.values()) if self._warm else set()
        preferred = [n for n in left if n in mine] or [n for n in left if n not in everyone]
        if preferred:
            return preferred[0]
        helped = [name for name in left if self._families[name].is_worth_helping()]
        return max(helped, key=lambda name: self._families[name].left, default=None)

    def _chunk(self, family: _Family, waiting: int) -> int:
        seconds = family.last_seconds
        if seconds is None:
            return 1
        lasting = int(_CHUNK_SECONDS / max(seconds, 1e-6))
        fair = math.ceil(family.left / (2 * self._n_processes))
        return max(1, min(lasting, fair, waiting, _LONGEST_CHUNK))
