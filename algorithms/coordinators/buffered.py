"""Buffered: asynchronous workers, a server step for every B arrivals.

Rule: an arrival goes into the buffer whatever its staleness, and its worker is sent the current
point at once; the arrival that fills the buffer steps the server first, so its worker is the
first to get the new point.
"""

from __future__ import annotations

from typing import ClassVar

from algorithms.coordinator import check_count, refuse_arrival
from algorithms.messages import Arrival, Average, Decision, Reports, Then

_KEEP = Decision(use=True, then=Then.SEND)
_STEP = Decision(use=True, step=True, then=Then.WAIT)


class Buffered:
    """Asynchronous mini-batch SGD: the mean of B arrivals makes a step.

    Args:
        n_workers: size of the fleet, >= 1.
        buffer_size: B, gradients a step, >= 1.

    Source: Nguyen et al. (2022, FedBuff, arXiv 2106.06639, Algorithm 1), one gradient a client.
    """

    reports: ClassVar[Reports] = Reports.VECTORS
    average: ClassVar[Average] = Average.GRADIENTS
    collective: ClassVar[bool] = False
    gradients_per_assignment = 1

    def __init__(self, n_workers: int, buffer_size: int) -> None:
        self.n_workers = check_count("n_workers", n_workers, "workers")
        self.buffer_size = check_count("buffer_size", buffer_size, "gradients")
        self._version = 0
        self._held = 0

    def arrive(self, arrival: Arrival) -> Decision:
        """Put it into the buffer; step when the buffer is full."""
        worker, version, current = arrival
        if not (self._version <= current >= version >= 0 <= worker < self.n_workers):
            refuse_arrival(arrival, self.n_workers, self._version)
        self._version = current
        self._held += 1
        if self._held < self.buffer_size:
            return _KEEP
        self._held = 0
        return _STEP

    def awaited(self) -> tuple[int, ...]:
        """Any worker's gradient fills the buffer."""
        return ()
