"""Malenia: collect until the harmonic mean of the workers' counts is large enough, then step.

Rules:
- workers compute back to back at the step's point; worker i has finished M_i gradients;
- the step is complete at the first instant when (1/n sum_i 1/M_i)^-1 >= M/n, tested exactly;
  in particular every worker has finished one;
- the gradient is 1/n sum_i (1/M_i) sum_j g_ij, unbiased for the average objective whatever the
  speeds (``average = WORKERS``);
- ``stale`` and ``initial_batch_size`` as in Rennala.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import ClassVar

from algorithms.coordinator import check_arrival, check_count, check_stale
from algorithms.messages import Arrival, Average, Decision, ProtocolError, Reports, Then

_COUNT = Decision(use=True, then=Then.CONTINUE)
_STALE = Decision(use=False, then=Then.SEND)
_LATE = Decision(use=False, then=Then.WAIT)

_ROUNDING = 1e-9
"""Relative distance from equality below which the floating-point sum is not trusted. Its error
after k updates is below k * 2^-52 relative to n, so this is safe for millions of updates."""


class Malenia:
    """Malenia SGD, Malenia PG and Malenia NIGT.

    Args:
        n_workers: size of the fleet, >= 1.
        batch_size: M, the sum of counts that equal workers would need, >= 1.
        initial_batch_size: M_init, for the first step; None means M.
        stale: "cancel" or "discard".

    Source: Tyurin & Richtarik (2023, arXiv 2305.12387, Algorithm 6); Tyurin et al. (2025,
    arXiv 2509.24305, Algorithm 3).
    """

    reports: ClassVar[Reports] = Reports.COUNTS
    average: ClassVar[Average] = Average.WORKERS
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
        self._start_step()

    def _start_step(self) -> None:
        self._counts = [0] * self.n_workers
        self._missing = self.n_workers  # workers without a gradient
        self._inverse_sum = 0.0  # sum of 1/M_i over the others
        self._complete = False

    def arrive(self, arrival: Arrival) -> Decision:
        """Count a gradient of this step; step when the harmonic mean is reached."""
        check_arrival(arrival, self.n_workers, self._version)
        if arrival.current_version > self._version:
            self._version = arrival.current_version
            self._start_step()
        if self._complete:
            return self._refuse(arrival, _LATE)
        if arrival.version < self._version:
            return self._refuse(arrival, _STALE)
        self._add(arrival.worker)
        self._complete = self._is_reached()
        return self._step if self._complete else _COUNT

    def _refuse(self, arrival: Arrival, decision: Decision) -> Decision:
        if self.stale == "cancel":
            raise ProtocolError(f"{arrival}: this work was cancelled at the end of its step")
        return decision

    def _add(self, worker: int) -> None:
        count = self._counts[worker]
        self._counts[worker] = count + 1
        if count == 0:
            self._missing -= 1
            self._inverse_sum += 1.0
        else:
            self._inverse_sum -= 1.0 / (count * (count + 1))  # 1/M_i - 1/(M_i + 1)

    def _is_reached(self) -> bool:
        """(1/n sum 1/M_i)^-1 >= M/n, that is n^2 >= M sum 1/M_i, in integers where it is close."""
        if self._missing:
            return False
        target = self.batch_size if self._version else self.initial_batch_size
        left, right = self.n_workers**2, target * self._inverse_sum
        if abs(left - right) > _ROUNDING * target * self.n_workers:
            return left > right
        how_many = Counter(self._counts)
        return left >= target * sum(Fraction(many, count) for count, many in how_many.items())

    def awaited(self) -> tuple[int, ...]:
        """The workers that have not finished one gradient; with none missing, any will do."""
        return tuple(i for i, count in enumerate(self._counts) if count == 0)
