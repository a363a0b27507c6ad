"""Ringmaster: asynchronous, but a gradient that is too stale is thrown away.

Rule: this is the only place where staleness is judged. A gradient is used if its staleness is
below the threshold R; otherwise the worker is sent the current point and nothing else happens.
"""

from __future__ import annotations

from typing import ClassVar

from algorithms.coordinator import check_count, refuse_arrival
from algorithms.messages import Arrival, Average, Decision, Reports, Then

_STEP = Decision(use=True, step=True, then=Then.WAIT)
_TOO_STALE = Decision(use=False, then=Then.SEND)


class Ringmaster:
    """Ringmaster ASGD.

    Args:
        n_workers: size of the fleet, >= 1.
        max_staleness: R, in server steps, >= 1: gradients of staleness R and more are discarded.

    Source: Maranjyan, Tyurin & Richtarik (2025, arXiv 2501.16168, Algorithm 4).
    """

    reports: ClassVar[Reports] = Reports.VECTORS
    average: ClassVar[Average] = Average.GRADIENTS
    collective: ClassVar[bool] = False
    gradients_per_assignment = 1

    def __init__(self, n_workers: int, max_staleness: int) -> None:
        self.n_workers = check_count("n_workers", n_workers, "workers")
        self.max_staleness = check_count("max_staleness", max_staleness, "server steps")
        self._version = 0

    def arrive(self, arrival: Arrival) -> Decision:
        """Step with a fresh gradient; throw a stale one away."""
        worker, version, current = arrival
        if not (self._version <= current >= version >= 0 <= worker < self.n_workers):
            refuse_arrival(arrival, self.n_workers, self._version)
        self._version = current
        return _STEP if current - version < self.max_staleness else _TOO_STALE

    def awaited(self) -> tuple[int, ...]:
        """Any worker's next gradient may make a step."""
        return ()
