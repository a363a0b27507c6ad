"""Synchronous: every worker computes b gradients at the same point; the server waits for m workers.

Rules:
- a worker delivers once a step and then waits;
- the server steps at the m-th delivery and cancels the workers that have not delivered;
- a delivery that was already on its way when the step was made can not arrive: the driver
  dropped it.
"""

from __future__ import annotations

from typing import ClassVar

from algorithms.coordinator import check_arrival, check_count
from algorithms.messages import Arrival, Average, Decision, ProtocolError, Reports, Then

_WAIT = Decision(use=True, then=Then.WAIT)
_STEP = Decision(use=True, step=True, then=Then.WAIT, cancel_others=True)


class Synchronous:
    """Minibatch SGD, synchronised NIGT and, with ``wait_for`` < n, backup workers.

    Args:
        n_workers: size of the fleet, >= 1.
        gradients_per_worker: b, gradients each worker computes back to back, >= 1.
        wait_for: m, deliveries that make a step, from 1 to n_workers; None means all.

    Source: Chen et al. (2016, arXiv 1604.00981, Algorithm 3 and 4) for backup workers;
    Tyurin et al. (2025, arXiv 2509.24305) for the synchronised baselines.
    """

    reports: ClassVar[Reports] = Reports.VECTORS
    average: ClassVar[Average] = Average.GRADIENTS
    collective: ClassVar[bool] = True

    def __init__(
        self, n_workers: int, gradients_per_worker: int = 1, wait_for: int | None = None
    ) -> None:
        self.n_workers = check_count("n_workers", n_workers, "workers")
        self.gradients_per_assignment = check_count(
            "gradients_per_worker", gradients_per_worker, "gradients"
        )
        self.wait_for = (
            n_workers
            if wait_for is None
            else check_count("wait_for", wait_for, "workers", maximum=n_workers)
        )
        self._version = 0
        self._delivered: set[int] = set()

    def arrive(self, arrival: Arrival) -> Decision:
        """Count the delivery; step at the m-th."""
        check_arrival(arrival, self.n_workers, self._version)
        if arrival.current_version > self._version:
            self._version = arrival.current_version
            self._delivered = set()
        if arrival.version != arrival.current_version:
            raise ProtocolError(f"{arrival}: a synchronous worker can not deliver a stale gradient")
        if arrival.worker in self._delivered:
            raise ProtocolError(f"{arrival}: worker {arrival.worker} has delivered in this step")
        if len(self._delivered) == self.wait_for:
            raise ProtocolError(f"{arrival}: this step had its {self.wait_for} deliveries")
        self._delivered.add(arrival.worker)
        return _STEP if len(self._delivered) == self.wait_for else _WAIT

    def awaited(self) -> tuple[int, ...]:
        """The workers that have not delivered, if all must."""
        if self.wait_for < self.n_workers:
            return ()
        return tuple(i for i in range(self.n_workers) if i not in self._delivered)
