"""Workers whose speeds change over time, as delays of computations that follow each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from analysis.theory.speeds import PiecewiseSpeeds
from simulator.randomness import Purpose


class VaryingSpeeds:
    """Computation k of a worker ends when the integral of its speed reaches k + 1.

    Right as long as workers compute back to back from time 0, as in a first step.

    Args:
        speeds: of the workers.
    """

    is_random = False

    def __init__(self, speeds: PiecewiseSpeeds) -> None:
        self.n_workers = speeds.n_workers
        self._speeds = speeds

    def _seconds(self, k: int) -> NDArray[np.float64]:
        """Of computation ``k`` of every worker, [n_workers]."""
        ends = [
            self._speeds.finish_seconds(np.full(self.n_workers, float(count)))
            for count in (k, k + 1)
        ]
        return np.asarray(ends[1] - ends[0])

    def sampler(self, seed: int, purpose: Purpose) -> Callable[[int, int], float]:
        """See ``simulator.delays.Delays``."""
        kept: list[list[float]] = []

        def sample(worker: int, k: int) -> float:
            while len(kept) <= k:
                kept.append(self._seconds(len(kept)).tolist())
            return kept[k][worker]

        return sample

    def seconds(
        self, seed: int, purpose: Purpose, workers: NDArray[np.int32], ks: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """See ``simulator.delays.Delays``."""
        sample = self.sampler(seed, purpose)
        pairs = zip(workers.tolist(), ks.tolist(), strict=True)
        return np.array([sample(worker, k) for worker, k in pairs])

    def bounds_seconds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """See ``simulator.delays.Delays``: nothing is known but that they are positive."""
        return np.zeros(self.n_workers), np.full(self.n_workers, np.inf)

    def mean_seconds(self) -> NDArray[np.float64]:
        """See ``simulator.delays.Delays``: of the first computation."""
        return self._seconds(0)
