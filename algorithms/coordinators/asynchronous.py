"""Asynchronous: every gradient is used the moment it arrives.

Rule: one arrival, one server step; the worker is sent the new point at once. Nothing is ever
thrown away, however stale.
"""

from __future__ import annotations

from typing import ClassVar

from algorithms.coordinator import check_count, refuse_arrival
from algorithms.messages import Arrival, Average, Decision, Reports, Then

_STEP = Decision(use=True, step=True, then=Then.WAIT)


class Asynchronous:
    """Asynchronous SGD, and AFedPG when paired with the nigt rule.

    Args:
        n_workers: size of the fleet, >= 1.

    Source: Lan et al. (2025, arXiv 2404.08003, Algorithm 1); Tyurin & Richtarik (2023).
    """

    reports: ClassVar[Reports] = Reports.VECTORS
    average: ClassVar[Average] = Average.GRADIENTS
    collective: ClassVar[bool] = False
    gradients_per_assignment = 1

    def __init__(self, n_workers: int) -> None:
        self.n_workers = check_count("n_workers", n_workers, "workers")
        self._version = 0

    def arrive(self, arrival: Arrival) -> Decision:
        """Use it, step, send the worker the new point."""
        worker, version, current = arrival
        if not (self._version <= current >= version >= 0 <= worker < self.n_workers):
            refuse_arrival(arrival, self.n_workers, self._version)
        self._version = current
        return _STEP

    def awaited(self) -> tuple[int, ...]:
        """Any worker's gradient makes a step."""
        return ()
