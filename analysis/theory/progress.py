"""How many gradients each worker has finished by a time, and the first time that is enough.

A worker computes gradient after gradient from a common start, time 0. Times are floats, and the
k-th gradient of a worker is finished at the float nearest to its exact time. Rounding never swaps
two times, so the first float at which a monotone condition on the counts holds is the float
nearest to the exact time: bisection over floats is exact, in at most 64 evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from analysis.theory.fleet import Seconds, checked
from simulator.errors import ConfigurationError


@runtime_checkable
class Progress(Protocol):
    """A fleet at work."""

    n_workers: int

    def counts(self, seconds: float) -> Seconds:
        """Gradients each worker has finished by then, [n_workers], integers as floats."""
        ...

    def finish_seconds(self, counts: Seconds) -> Seconds:
        """When each worker has finished so many, [n_workers]; inf if never."""
        ...


class ConstantSpeeds:
    """Worker i finishes its k-th gradient at ``start_i + k h_i``.

    Args:
        seconds_per_gradient: h, [n_workers] in any order, > 0; inf never finishes.
        start_seconds: when each has its point, [n_workers] >= 0, or one number for all.

    Raises:
        ConfigurationError: a number is out of range, or lengths differ.
    """

    def __init__(
        self, seconds_per_gradient: ArrayLike, start_seconds: ArrayLike | float = 0.0
    ) -> None:
        self.seconds = checked(seconds_per_gradient, "seconds_per_gradient")
        self.n_workers = len(self.seconds)
        starts = np.asarray(start_seconds, dtype=np.float64)
        if starts.ndim == 0:
            starts = np.full(self.n_workers, starts)
        self.start = checked(starts, "start_seconds", is_zero_allowed=True)
        if len(self.start) != self.n_workers:
            raise ConfigurationError(
                f"start_seconds: {len(self.start)} numbers for {self.n_workers} workers"
            )
        self._able = np.isfinite(self.seconds) & np.isfinite(self.start)
        self._h, self._s = self.seconds[self._able], self.start[self._able]

    def counts(self, seconds: float) -> Seconds:
        """See :class:`Progress`."""
        counts = np.floor(np.maximum(seconds - self._s, 0.0) / self._h)
        # The quotient is rounded, and may be one off.
        counts += self._s + (counts + 1) * self._h <= seconds
        counts -= (counts > 0) & (self._s + counts * self._h > seconds)
        everybody = np.zeros(self.n_workers)
        everybody[self._able] = counts
        return everybody

    def finish_seconds(self, counts: Seconds) -> Seconds:
        """See :class:`Progress`."""
        with np.errstate(invalid="ignore"):
            return np.where(counts > 0, self.start + counts * self.seconds, self.start)


def first_instant(holds: Callable[[float], bool], at_most: float = math.inf) -> float:
    """The least float > 0 at which a monotone condition holds; inf if there is none.

    Args:
        holds: false up to some time and true from there on.
        at_most: a time at which it is known to hold, if one is known.
    """
    high = at_most
    if not math.isfinite(high):
        high = 1.0
        while not holds(high):
            high *= 1024.0
            if high > 1e300:
                return math.inf
    low_bits, high_bits = 0, int(np.float64(high).view(np.int64))
    # Positive floats are ordered as the integers that have the same bits.
    while high_bits - low_bits > 1:
        middle = (low_bits + high_bits) // 2
        if holds(float(np.int64(middle).view(np.float64))):
            high_bits = middle
        else:
            low_bits = middle
    return float(np.int64(high_bits).view(np.float64))
