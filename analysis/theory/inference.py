"""From repeated measurements to statements: means with intervals, fitted slopes with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """A number and its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def mean_interval(values: ArrayLike, confidence: float = 0.99) -> Estimate:
    """Mean with Student's interval.

    Args:
        values: independent, [n], n >= 2.
        confidence: of the interval.
    """
    from scipy.stats import t

    array = np.asarray(values, np.float64)
    error = array.std(ddof=1) / math.sqrt(len(array))
    reach = float(t.ppf((1 + confidence) / 2, len(array) - 1)) * error
    mean = float(array.mean())
    return Estimate(mean, mean - reach, mean + reach)


def standard_score(values: ArrayLike, expected: float) -> float:
    """(mean - expected) / standard error, of independent values [n]."""
    array = np.asarray(values, np.float64)
    error = array.std(ddof=1) / math.sqrt(len(array))
    difference = float(array.mean()) - expected
    if error == 0:
        return 0.0 if difference == 0 else math.copysign(math.inf, difference)
    return difference / error


def largest_plausible_score(count: int, false_alarm: float = 1e-3) -> float:
    """z that none of ``count`` standard scores exceeds in size, but with that probability.

    Bonferroni's bound, for normal scores.
    """
    from scipy.stats import norm

    return float(norm.isf(false_alarm / (2 * count)))


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """Exponent b of the least-squares fit y = a x^b, for positive numbers [n], n >= 2."""
    return float(np.polyfit(np.log(np.asarray(x)), np.log(np.asarray(y)), 1)[0])


def bootstrapped(
    statistic: Callable[[NDArray[np.int64]], float],
    count: int,
    resamples: int = 400,
    confidence: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """A statistic of seeds, with the percentile interval of resampling seeds.

    Args:
        statistic: of the positions of the seeds that count, with repetition, [count].
        count: seeds.
        resamples: how many.
        confidence: of the interval.
        seed: of the resampling.

    Source: Efron & Tibshirani (1993), chapter 13.
    """
    generator = np.random.default_rng([20253, seed])
    draws = [statistic(generator.integers(0, count, count)) for _ in range(resamples)]
    finite = [value for value in draws if math.isfinite(value)]
    tails = np.quantile(finite, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    return Estimate(statistic(np.arange(count)), *tails)
