"""Intervals cover as often as they say; slopes are those of the power law that was put in."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.theory import inference


@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_an_interval_covers_as_often_as_it_says(confidence) -> None:
    generator, trials = np.random.default_rng(0), 2000
    covered = 0
    for _ in range(trials):
        found = inference.mean_interval(generator.normal(3.0, 2.0, 6), confidence)
        covered += found.low <= 3.0 <= found.high
    slack = 4 * math.sqrt(confidence * (1 - confidence) / trials)
    assert abs(covered / trials - confidence) < slack


def test_an_interval_by_hand() -> None:
    found = inference.mean_interval([1.0, 2.0, 3.0], 0.95)
    reach = 4.302652729911275 / math.sqrt(3)  # t with 2 degrees of freedom; deviation 1
    assert found == pytest.approx((2.0, 2.0 - reach, 2.0 + reach))
    assert str(inference.Estimate(1.0, 0.5, 2.0)) == "1 [0.5, 2]"


def test_a_standard_score_by_hand() -> None:
    assert inference.standard_score([1.0, 2.0, 3.0], 1.0) == pytest.approx(math.sqrt(3))
    assert inference.standard_score([2.0, 2.0], 2.0) == 0.0
    assert inference.standard_score([2.0, 2.0], 3.0) == -math.inf


def test_the_largest_plausible_score_is_rarely_passed() -> None:
    scores = np.abs(np.random.default_rng(1).normal(size=(4000, 50))).max(axis=1)
    passed = (scores > inference.largest_plausible_score(50, 0.05)).mean()
    assert 0.03 < passed < 0.065


def test_a_slope_is_the_exponent() -> None:
    x = np.array([1.0, 2.0, 5.0, 11.0])
    assert inference.slope(x, 7 * x**-1.5) == pytest.approx(-1.5)


def test_a_bootstrap_interval_is_that_of_the_mean() -> None:
    values = np.random.default_rng(2).normal(size=200)
    found = inference.bootstrapped(lambda seeds: float(values[seeds].mean()), 200, 4000)
    error = values.std() / math.sqrt(200)
    assert found.value == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.15 * error)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.15 * error)
