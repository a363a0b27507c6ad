"""Seconds until E|grad f| <= epsilon, measured: the mean over seeds of exact gradient norms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scenarios.problems.problem import GRADIENT_NORM, Problem
from scenarios.validation.recommended_recipes import Prepared
from scenarios.validation.runs import execute, simulate_recipe
from simulator.budget import Budget

Floats = NDArray[np.float64]
_POINTS = 256
_FIRST_SHARE = {"nigt": 10, "sgd": 32}
"""Of T, by update rule: about what most targets take, so that few runs are made twice."""
_LATE = 0.7


@dataclass(frozen=True, eq=False)
class Measured:
    """Gradient norms along a run, for several seeds.

    Attributes:
        prepared: the method, with what theory predicts.
        epsilon: the target.
        seconds: when points were judged, [n_points].
        steps: server steps taken then, [n_points].
        norms: |grad f|, exact, [n_seeds, n_points].
    """

    prepared: Prepared
    epsilon: float
    seconds: Floats
    steps: NDArray[np.int64]
    norms: Floats

    def reached_at(self, seeds: NDArray[np.int64] | None = None) -> float:
        """Seconds until the mean over (some) seeds is at most epsilon; inf if it never is.

        Linear between judged points, which are a sample of the models there were.
        """
        mean = (self.norms if seeds is None else self.norms[seeds]).mean(axis=0)
        reached = mean <= self.epsilon
        if not reached.any():
            return math.inf
        after = int(reached.argmax())
        if after == 0:
            return float(self.seconds[0])
        here, there = mean[after - 1], mean[after]
        share = (here - self.epsilon) / (here - there)
        before = self.seconds[after - 1]
        return float(before + share * (self.seconds[after] - before))

    @cached_property
    def share(self) -> float:
        """Of the seconds that theory allows."""
        return self.reached_at() / self.prepared.seconds


def measure(
    prepared: Prepared,
    problem: Problem,
    seconds_per_gradient: Floats,
    epsilon: float,
    n_seeds: int,
) -> Measured:
    """Run a method until the target is reached, or the T steps that theory allows are over.

    The budget doubles from a tenth of T or less until the target is reached, and is then prolonged
    where that was late, so that every resampling of the seeds reaches it; 256 points are judged.
    """
    steps = max(1, prepared.steps // _FIRST_SHARE[prepared.recipe.update])
    while True:
        found = _run(prepared, problem, seconds_per_gradient, epsilon, n_seeds, steps)
        reached = found.reached_at()
        if steps >= prepared.steps or reached <= _LATE * found.seconds[-1]:
            return found
        longer = 2.0 if math.isinf(reached) else 1.05 * reached / (_LATE * found.seconds[-1])
        steps = min(math.ceil(longer * steps), prepared.steps)


def _run(
    prepared: Prepared,
    problem: Problem,
    seconds_per_gradient: Floats,
    epsilon: float,
    n_seeds: int,
    steps: int,
) -> Measured:
    schedule = simulate_recipe(prepared.recipe, seconds_per_gradient, Budget(steps=steps))
    versions = np.unique(np.linspace(0, steps, _POINTS).round().astype(np.int64))
    runs = execute(schedule, problem, prepared.recipe, range(n_seeds), versions)
    norms = runs.metrics[GRADIENT_NORM.name][0]
    return Measured(prepared, epsilon, runs.seconds, versions, norms)
