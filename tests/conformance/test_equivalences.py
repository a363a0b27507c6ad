"""Methods that must be one and the same, to the last number; and means that must (not) agree."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest
from execution_cases import Quadratic

from algorithms.coordinators import Asynchronous, Malenia, Rennala, Synchronous
from algorithms.hyperparameters import make_hyperparameters
from algorithms.updates import update_rule
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.engine import simulate
from simulator.executors import EXECUTORS, executor
from simulator.executors.common import key_of_gradient
from simulator.network import NoNetwork, Star
from simulator.precision import precision
from simulator.schedule import Schedule

N_STEPS = 15
NIGT = {"stepsize": 0.05, "momentum": 0.3}
SGD = {"stepsize": 0.05}
every_executor = pytest.mark.parametrize("name", EXECUTORS)


def quadratic(n_workers: int, **options: Any) -> Quadratic:
    return Quadratic(n_workers, dtype="float64", **options)


def points(
    schedule: Schedule, oracle: Quadratic, name: str, rule_name: str, values: dict[str, Any]
) -> np.ndarray:
    rule = update_rule(rule_name)
    execution = executor(name)(schedule, oracle, rule, make_hyperparameters(rule, values), 0)
    return np.array([s.params for s in execution.snapshots(range(schedule.n_steps + 1))])


def run(coordinator: Any, seconds: list[float], network: Any = None) -> Schedule:
    network = NoNetwork() if network is None else network
    return simulate(coordinator, Constant(seconds), network, Budget(steps=N_STEPS), 0, verify=True)


def plain_nigt(oracle: Quadratic) -> np.ndarray:
    """Algorithm 1 of Cutkosky & Mehta (2020) on one worker, line by line, in NumPy."""
    eta, alpha = NIGT["momentum"], NIGT["stepsize"]
    x = previous = np.asarray(oracle.initial_point(0))
    direction, path = np.zeros_like(x), [x]
    for t in range(N_STEPS):
        query = x + (1 - eta) / eta * (x - previous)
        gradient = np.asarray(oracle.sample(query, 0, key_of_gradient(0, 0, t)).gradient)
        direction = gradient if t == 0 else (1 - eta) * direction + eta * gradient
        previous, x = x, x - alpha * direction / np.linalg.norm(direction)
        path.append(x)
    return np.array(path)


@every_executor
def test_one_worker_rennala_of_one_is_plain_nigt(name: str) -> None:
    with precision("float64"):
        oracle = quadratic(1)
        got = points(run(Rennala(1, batch_size=1), [2.0]), oracle, name, "nigt", NIGT)
        np.testing.assert_allclose(got, plain_nigt(oracle), rtol=1e-12, atol=1e-13)


@every_executor
def test_one_worker_asynchronous_is_plain_nigt(name: str) -> None:
    """A lone worker's gradients are never stale."""
    with precision("float64"):
        oracle = quadratic(1)
        got = points(run(Asynchronous(1), [2.0]), oracle, name, "nigt", NIGT)
        np.testing.assert_allclose(got, plain_nigt(oracle), rtol=1e-12, atol=1e-13)


@every_executor
def test_equal_speeds_rennala_of_n_is_synchronous(name: str) -> None:
    with precision("float64"):
        oracle = quadratic(4)
        rennala = points(run(Rennala(4, batch_size=4), [2.0] * 4), oracle, name, "nigt", NIGT)
        synchronous = points(run(Synchronous(4), [2.0] * 4), oracle, name, "nigt", NIGT)
    np.testing.assert_array_equal(rennala, synchronous)


@every_executor
def test_equal_speeds_malenia_of_n_is_synchronous(name: str) -> None:
    with precision("float64"):
        oracle = quadratic(4)
        malenia = points(run(Malenia(4, batch_size=4), [2.0] * 4), oracle, name, "sgd", SGD)
        synchronous = points(run(Synchronous(4), [2.0] * 4), oracle, name, "sgd", SGD)
    np.testing.assert_allclose(malenia, synchronous, rtol=1e-13)


@every_executor
def test_a_star_without_delays_is_no_network(name: str) -> None:
    free, seconds = Star(Constant([0.0] * 3), Constant([0.0] * 3)), [1.0, 1.5, 4.0]
    for make in (Asynchronous, lambda n: Rennala(n, batch_size=4)):
        with precision("float64"):
            oracle = quadratic(3)
            star = points(run(make(3), seconds, free), oracle, name, "nigt", NIGT)
            none = points(run(make(3), seconds), oracle, name, "nigt", NIGT)
        np.testing.assert_array_equal(star, none)


@every_executor
def test_a_worker_that_never_finishes_changes_no_number(name: str) -> None:
    with precision("float64"):
        oracle = quadratic(3)
        pair = quadratic(3)
        pair.n_workers, pair.A, pair.b = 2, pair.A[:2], pair.b[:2]
        two = points(run(Rennala(2, batch_size=4), [1.0, 3.0]), pair, name, "nigt", NIGT)
        schedule = run(Rennala(3, batch_size=4), [1.0, 3.0, math.inf])
        three = points(schedule, oracle, name, "nigt", NIGT)
    np.testing.assert_array_equal(two, three)


def test_malenia_is_unbiased_on_unequal_speeds_and_rennala_is_not() -> None:
    """The first step's gradient, over many seeds, against the gradient of the average objective.

    Worker 0 is ten times as fast as worker 2, so most of Rennala's batch is worker 0's.
    """
    seconds, n_seeds = [1.0, 3.0, 10.0], 400
    with precision("float64"):
        oracle = quadratic(3, noise=1.0)
        start = oracle.initial_point(0)
        exact = np.mean([oracle.A[i] @ start - oracle.b[i] for i in range(3)], axis=0)
        worst = {}
        for coordinator in (Malenia(3, batch_size=5), Rennala(3, batch_size=13)):
            schedule = run(coordinator, seconds)
            gradients = first_gradients(schedule, oracle, start, n_seeds)
            error = gradients.std(axis=0, ddof=1) / math.sqrt(n_seeds)
            worst[type(coordinator).__name__] = np.abs(gradients.mean(axis=0) - exact) / error
    assert worst["Malenia"].max() < 4.0  # standard errors
    assert worst["Rennala"].max() > 40.0


def first_gradients(
    schedule: Schedule, oracle: Quadratic, start: jax.Array, n_seeds: int
) -> np.ndarray:
    """The first step's weighted mean of gradients, as the batched executor applies it, by seed."""
    rule = update_rule("sgd")
    hyperparameters = make_hyperparameters(rule, {"stepsize": 1.0})
    make = executor("batched")
    ends = [
        next(make(schedule, oracle, rule, hyperparameters, seed, x0=start).snapshots([1])).params
        for seed in range(n_seeds)
    ]
    return np.asarray(start) - np.array(ends)
