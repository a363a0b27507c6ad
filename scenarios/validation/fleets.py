"""Random fleets whose times are exact in floating point: multiples of 1/8 second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.theory.fleet import Seconds
from analysis.theory.steps import Cluster
from simulator.delays import Constant
from simulator.network import AllReduce, Network, NoNetwork, Star

_EIGHTHS = 8
_LARGEST_FLEET = 40


@dataclass(frozen=True, eq=False)
class RandomFleet:
    """Workers and a network, to the simulator and to theory.

    Attributes:
        seconds: h, [n_workers], in any order.
        network: none, a star or an AllReduce.
        cluster: the same.
        generator: draws what is needed besides.
    """

    seconds: Seconds
    network: Network
    cluster: Cluster
    generator: np.random.Generator

    @property
    def n_workers(self) -> int:
        """Size."""
        return len(self.seconds)

    @property
    def is_free(self) -> bool:
        """Whether communication costs nothing."""
        return isinstance(self.network, NoNetwork)

    def batch_size(self) -> int:
        """M: from one gradient to several of each worker."""
        return int(self.generator.integers(1, 5 * self.n_workers + 2))


def random_fleet(seed: int, is_free: bool = False) -> RandomFleet:
    """A fleet of 1 to 40 workers whose speeds differ little or a thousandfold.

    Args:
        seed: of everything.
        is_free: without a network; else it is none, a star or an AllReduce, in turn.
    """
    generator = np.random.default_rng([20251, seed])
    n_workers = int(generator.integers(1, _LARGEST_FLEET + 1))
    spread = generator.uniform(0.0, 1.5)
    raw = generator.uniform(1, 16, n_workers) * np.arange(1, n_workers + 1) ** spread
    seconds = generator.permutation(np.ceil(raw)) / _EIGHTHS
    kind = 0 if is_free else seed % 3
    if kind == 1:
        down, up = (generator.integers(0, 80, n_workers) / _EIGHTHS for _ in range(2))
        star = Star(Constant(down), Constant(up))
        return RandomFleet(seconds, star, Cluster(seconds, down, up), generator)
    if kind == 2:
        kappa = float(generator.integers(1, 200)) / _EIGHTHS
        reduce = AllReduce(Constant([kappa]))
        return RandomFleet(seconds, reduce, Cluster(seconds, collective_seconds=kappa), generator)
    return RandomFleet(seconds, NoNetwork(), Cluster(seconds), generator)
