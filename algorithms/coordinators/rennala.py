"""Rennala: collect M gradients at one point, whoever is fastest, then step.

Rules:
- workers compute back to back at the step's point; every finished gradient counts once;
- the M-th completes the step: exactly M count, one finishing at the same instant does not;
- what becomes of work in flight is ``stale``: "cancel" drops it at once; "discard" lets it
  finish, throws it away, and only then sends its worker the current point;
- ``initial_batch_size`` replaces M in the first step only.
"""

from __future__ import annotations

from typing import ClassVar

from algorithms.coordinator import check_arrival, check_count, check_stale
from algorithms.messages import Arrival, Average, Decision, ProtocolError, Reports, Then

_COUNT = Decision(use=True, then=Then.CONTINUE)
_STALE = Decision(use=False, then=Then.SEND)
_LATE = Decision(use=False, then=Then.WAIT)


class Rennala:
    """Rennala SGD, Rennala PG and Rennala NIGT.

    Args:
        n_workers: size of the fleet, >= 1.
        batch_size: M, gradients a step, >= 1.
        initial_batch_size: M_init, gradients of the first step; None means M.
        stale: "cancel" or "discard".

    Source: Tyurin & Richtarik (2023, arXiv 2305.12387, Algorithm 2); Tyurin et al. (2025,
    arXiv 2509.24305, Algorithms 1 and 2).
    """

    reports: ClassVar[Reports] = Reports.COUNTS
    average: ClassVar[Average] = Average.GRADIENTS
    collective: ClassVar[bool] = True
    gradients_per_assignment = 1

    def __init__(
        self,
        n_workers: int,
        batch_size: int,
        initial_batch_size: int | None = None,
        stale: str = "cancel",
    ) -> None:
        self.n_workers = check_count("n_workers", n_workers, "workers")
        self.batch_size = check_count("batch_size", batch_size, "gradients")
        self.initial_batch_size = (
            self.batch_size
            if initial_batch_size is None
            else check_count("initial_batch_size", initial_batch_size, "gradients")
        )
        self.stale = check_stale(stale)
        self._step = Decision(
            use=True, step=True, then=Then.WAIT, cancel_others=self.stale == "cancel"
        )
        self._version = 0
        self._count = 0

    @property
    def _target(self) -> int:
        return self.batch_size if self._version else self.initial_batch_size

    def arrive(self, arrival: Arrival) -> Decision:
        """Count a gradient of this step; step at the M-th; throw a stale one away."""
        check_arrival(arrival, self.n_workers, self._version)
        if arrival.current_version > self._version:
            self._version = arrival.current_version
            self._count = 0
        if self._count == self._target:  # complete, but its vectors are still on their way
            return self._refuse(arrival, _LATE)
        if arrival.version < self._version:
            return self._refuse(arrival, _STALE)
        self._count += 1
        return self._step if self._count == self._target else _COUNT

    def _refuse(self, arrival: Arrival, decision: Decision) -> Decision:
        if self.stale == "cancel":
            raise ProtocolError(f"{arrival}: this work was cancelled at the end of its step")
        return decision

    def awaited(self) -> tuple[int, ...]:
        """Any worker's gradient counts."""
        return ()
