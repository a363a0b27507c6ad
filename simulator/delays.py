"""Delays: how long things take, in simulated seconds, keyed by (seed, purpose, worker, k)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simulator.randomness import Purpose


class Delays(Protocol):
    """Delays of a fleet: one for every (worker, k)."""

    n_workers: int
    is_random: bool
    """False if the seed changes nothing, so one schedule serves every seed."""

    def sampler(self, seed: int, purpose: Purpose) -> Callable[[int, int], float]:
        """A fast function (worker, k) -> seconds for the engine, >= 0, may be inf."""
        ...

    def seconds(
        self, seed: int, purpose: Purpose, workers: NDArray[np.int32], ks: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """The same numbers, vectorised: [len(workers)]."""
        ...
