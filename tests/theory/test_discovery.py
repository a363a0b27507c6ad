"""The exact lower bound: by simulating luck, and by its order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fleets import random_fleets

from analysis.theory import discovery
from simulator.errors import ConfigurationError


def together(seconds, count) -> float:
    """When workers have finished ``count`` gradients together, by asking one after another."""
    clocks = np.zeros(len(seconds))
    for _ in range(count):
        nearest = int(np.argmin(clocks + seconds))
        clocks[nearest] += seconds[nearest]
    return float(clocks[nearest])


@pytest.mark.parametrize("chance", [0.1, 0.5, 0.9, 1.0])
def test_is_the_mean_over_geometric_luck(chance) -> None:
    for seconds, _ in random_fleets(12, seed=3):
        most = 1 if chance == 1 else math.ceil(math.log(1e-13) / math.log1p(-chance))
        expected, left = 0.0, 1.0
        for count in range(1, most + 1):
            expected += left * chance * together(seconds, count)
            left *= 1 - chance
        found = discovery.least_seconds_per_coordinate(seconds, chance)
        assert found == pytest.approx(expected, rel=1e-9)


def test_equal_workers_in_rounds() -> None:
    """n equal workers: rounds of h until one of n tries succeeds."""
    n_workers, chance, h = 5, 0.2, 3.0
    found = discovery.least_seconds_per_coordinate([h] * n_workers, chance)
    assert found == pytest.approx(h / (1 - (1 - chance) ** n_workers))


@pytest.mark.parametrize("chance", [0.01, 0.3])
def test_the_printed_order_is_within_constants(chance) -> None:
    for seconds, _ in random_fleets(60, seed=4):
        exact = discovery.least_seconds_per_coordinate(seconds, chance)
        order = discovery.order_seconds_per_coordinate(seconds, chance)
        assert 0.2 * order <= exact <= 2 * order


@pytest.mark.parametrize("chance", [0.0, -0.1, 1.5, math.nan])
def test_a_chance_is_between_zero_and_one(chance) -> None:
    with pytest.raises(ConfigurationError, match="probability"):
        discovery.least_seconds_per_coordinate([1.0], chance)
