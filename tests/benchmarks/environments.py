"""Reacher-v5 trajectories against the bare vector environment."""

from __future__ import annotations

from collections.abc import Callable

import gymnasium
import numpy as np

from scenarios.problems.registry import build_problem
from scenarios.problems.specs import EnvironmentSpec
from tests.benchmarks.timing import Line, against, rates

BATCH = 64
HORIZON = 50
ROUNDS = 5


def bare() -> Callable[[], int]:
    """Random actions in Gymnasium's own vector environment."""
    vector = gymnasium.make_vec("Reacher-v5", num_envs=BATCH, vectorization_mode="sync")
    vector.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (HORIZON, BATCH, 2)).astype(np.float32)

    def run() -> int:
        for action in actions:
            vector.step(action)
        return HORIZON * BATCH

    return run


def ours() -> Callable[[], int]:
    """Whole policy gradients: resets, policy, steps, and the gradient at the end."""
    spec = EnvironmentSpec(environment="Reacher-v5", horizon=HORIZON, discount=0.99)
    oracle = build_problem(spec, BATCH).oracle
    point = oracle.initial_point(0)
    workers = np.arange(BATCH)
    count = 0

    def run() -> int:
        nonlocal count
        count += 1
        ks, seeds = np.full(BATCH, count), np.zeros(BATCH, int)
        sample = oracle.sample_batch(point, workers, ks, seeds)
        return int(np.sum(sample.length))

    return run


def run() -> list[Line]:
    """Environment steps per second, everything included."""
    found = rates({"bare": bare(), "ours": ours()}, ROUNDS)
    what = "Reacher-v5, 64 at a time, policy and gradient included"
    return [against(what, "environment steps/s", found, "ours", "bare", ">= 0.70")]
