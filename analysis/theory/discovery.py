"""The lower bound in its exact form: coordinates that are found one by one, by luck.

On the hard instance a gradient shows the next coordinate with probability p, and only at a point
that has all coordinates before it (``scenarios.problems.hard_instance``). So whatever a method
does, gradients that were started before a coordinate was found are of no use for the next one, and
from then on the workers can at best work at full speed: the time until the next coordinate is
stochastically at least t_R(G), G geometric,

    E seconds per coordinate >= E t_R(G) = sum_{k>=1} p (1-p)^(k-1) t_R(k),

t_R(k) being the time in which the workers finish k gradients together. It holds for every method
whose points have no coordinate it has not been shown, communication being free or not.

Source: derived here along the proof of Tyurin & Richtarik (2023), arXiv 2305.12387, Theorem 6.4,
whose order, min_m H_m (1 + 1/(m p)) up to a constant, it has.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from analysis.theory.bounds import best_workers
from analysis.theory.fleet import ascending
from simulator.errors import ConfigurationError

_NEGLIGIBLE = 1e-14


def least_seconds_per_coordinate(seconds_per_gradient: ArrayLike, probability: float) -> float:
    """E t_R(G): no method finds coordinates faster, on average.

    Args:
        seconds_per_gradient: h, [n_workers], ascending.
        probability: p in (0, 1].

    Raises:
        ConfigurationError: a number is out of range.

    >>> least_seconds_per_coordinate([2.0], 0.5)   # one worker: h / p
    4.0
    """
    seconds = ascending(seconds_per_gradient)
    count = _gradients(probability)
    # Worker i alone has finished k gradients at k h_i: the count-th of all is among these.
    horizon = seconds[0] * count
    able = seconds[seconds <= horizon]
    finishes = np.sort(
        np.concatenate([h * np.arange(1, int(horizon / h) + 1) for h in able.tolist()])
    )[:count]
    chances = probability * (1 - probability) ** np.arange(len(finishes))
    return float(finishes @ chances / chances.sum())


def order_seconds_per_coordinate(seconds_per_gradient: ArrayLike, probability: float) -> float:
    """min_m H_m (1 + 1/(m p)): the same up to a constant, as papers print it."""
    _gradients(probability)
    return best_workers(seconds_per_gradient, 1.0, 1 / probability).seconds


def _gradients(probability: float) -> int:
    """So many that one of them shows the coordinate, but for a negligible chance."""
    if not 0 < probability <= 1:
        raise ConfigurationError(f"probability = {probability!r}: expected a number in (0, 1]")
    if probability == 1:
        return 1
    return max(1, math.ceil(math.log(_NEGLIGIBLE) / math.log1p(-probability)))
