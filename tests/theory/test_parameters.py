"""Recommended parameters keep their promise; guarantees hold where they can be measured."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from analysis.theory import guarantees, parameters
from analysis.theory.setting import Objective
from simulator.errors import ConfigurationError


def random_objectives(count: int = 300, seed: int = 0):
    generator = np.random.default_rng(seed)
    for _ in range(count):
        eps, smooth, curved, sigma, delta = (10 ** generator.uniform(-1.3, 1.3, 5)).tolist()
        yield Objective(eps, smooth, curved, sigma, delta)
    yield Objective(0.1, sigma=0.0)
    yield Objective(0.1, hessian_lipschitz=0.0)
    yield Objective(0.1, initial_gap=0.0)


def nigt_bound(o: Objective, steps, momentum, stepsize, batch, initial) -> float:
    """The bound, written down again."""
    return (
        o.initial_gap / (stepsize * steps)
        + 2 * o.sigma / (momentum * steps * math.sqrt(initial))
        + 2 * math.sqrt(momentum / batch) * o.sigma
        + 4 * o.hessian_lipschitz * stepsize**2 / momentum**2
        + o.gradient_lipschitz * stepsize / 2
    )


def sharp_bound(o: Objective, steps, momentum, stepsize, batch, initial) -> float:
    """The bound with the constants derived in ``guarantees``."""
    return (
        o.initial_gap / (stepsize * steps)
        + 2 * o.sigma / (momentum * steps * math.sqrt(initial))
        + 2 * math.sqrt(momentum / (2 - momentum) / batch) * o.sigma
        + (1 - momentum) * o.hessian_lipschitz * stepsize**2 / momentum**2
        + o.gradient_lipschitz * stepsize / 2
    )


@pytest.mark.parametrize("is_sharp", [False, True])
@pytest.mark.parametrize("multiple", [1, 7])
@pytest.mark.parametrize("has_first_batch", [True, False])
def test_nigt_keeps_its_promise(multiple, has_first_batch, is_sharp) -> None:
    for objective in random_objectives():
        found = parameters.recommend_nigt(objective, multiple, has_first_batch, is_sharp=is_sharp)
        bound = (sharp_bound if is_sharp else nigt_bound)(
            objective,
            found.steps,
            found.momentum,
            found.stepsize,
            found.batch_size,
            found.initial_batch_size,
        )
        assert bound <= objective.epsilon * (1 + 1e-12)
        assert found.guarantee == pytest.approx(bound)
        assert found.batch_size % multiple == found.initial_batch_size % multiple == 0
        assert has_first_batch or found.initial_batch_size == found.batch_size


def test_nigt_of_a_given_batch_keeps_its_promise() -> None:
    for objective in random_objectives(100, seed=1):
        for batch_size in (1, 10, 1000):
            found = parameters.recommend_nigt(objective, batch_size=batch_size)
            assert found.batch_size == batch_size
            assert found.guarantee <= objective.epsilon * (1 + 1e-12)


@pytest.mark.parametrize("is_sharp", [False, True])
def test_a_larger_batch_would_not_reduce_the_steps(is_sharp) -> None:
    for objective in random_objectives(100, seed=2):
        found = parameters.recommend_nigt(objective, is_sharp=is_sharp)
        more, less = (
            parameters.recommend_nigt(objective, batch_size=size, is_sharp=is_sharp)
            for size in (4 * found.batch_size, max(1, found.batch_size // 4))
        )
        assert more.steps == found.steps
        assert less.steps > found.steps or found.batch_size < 4 or found.steps < 4


def test_sgd_and_ringmaster_keep_their_promise() -> None:
    for o in random_objectives(seed=3):
        sgd = parameters.recommend_sgd(o)
        square = (
            2 * o.initial_gap / (sgd.stepsize * sgd.steps)
            + o.gradient_lipschitz * sgd.stepsize * o.sigma**2 / sgd.batch_size
        )
        assert square <= o.epsilon**2 * (1 + 1e-12)
        assert sgd.stepsize <= 1 / o.gradient_lipschitz
        assert sgd.guarantee == pytest.approx(math.sqrt(square))
        ring = parameters.recommend_ringmaster(o)
        square = (
            2 * o.initial_gap / (ring.stepsize * ring.steps)
            + 2 * o.gradient_lipschitz * ring.stepsize * o.sigma**2
        )
        assert square <= o.epsilon**2 * (1 + 1e-12)
        assert 2 * ring.max_staleness * o.gradient_lipschitz * ring.stepsize <= 1 + 1e-12


def test_asynchronous_keeps_its_promise_at_the_staleness_it_is_told() -> None:
    """The bound of the Ringmaster theorem, written out, where nothing is thrown away."""
    for o in random_objectives(seed=4):
        fresh = parameters.recommend_asynchronous(o, 0)
        for staleness in (0, 1, 30):
            found = parameters.recommend_asynchronous(o, staleness)
            square = (
                2 * o.initial_gap / (found.stepsize * found.steps)
                + 2 * o.gradient_lipschitz * found.stepsize * o.sigma**2
            )
            assert square <= o.epsilon**2 * (1 + 1e-12)
            assert 2 * (staleness + 1) * o.gradient_lipschitz * found.stepsize <= 1 + 1e-12
            assert found.max_staleness == staleness + 1  # so a Ringmaster would use them all
            assert found.stepsize <= fresh.stepsize
            assert found.steps >= fresh.steps


def test_horizon_is_the_least_that_is_enough() -> None:
    for error, discount, reward, score in [
        (0.1, 0.9, 1.0, 1.4),
        (1e-6, 0.99, 5.0, 2.0),
        (99, 0.5, 1, 1),
    ]:
        horizon = parameters.recommend_horizon(error, discount, reward, score)

        def cut_off(h: int, g=discount, bound=reward * score) -> float:
            return bound * sum((k + 1) * g**k for k in range(h, h + 8000))

        assert cut_off(horizon) <= error * (1 + 1e-9)
        assert horizon == 1 or cut_off(horizon - 1) > error


def test_truncation_error_holds_on_an_mdp() -> None:
    """Exact gradients of a random MDP, the whole objective against the truncated one."""
    from scenarios.problems.exact_specs import MDPSpec
    from scenarios.problems.tabular import TabularProblem
    from simulator.precision import precision

    with precision("float64"):
        for horizon in (5, 20):
            spec = MDPSpec(states=5, branching=3, horizon=horizon, discount=0.9, dtype="float64")
            problem = TabularProblem(spec, 1)
            points = np.random.default_rng(0).normal(size=(3, problem.oracle.dim))
            found = problem.evaluate(points, 0)
            difference = np.abs(found["gradient_norm"] - found["truncated_gradient_norm"])
            bound = guarantees.truncation_error(horizon, 0.9, 1.0, math.sqrt(2))
            assert (difference <= bound).all()
            assert difference.max() > 0


@pytest.mark.parametrize(("momentum", "batch_size"), [(1.0, 1), (0.3, 4), (0.05, 2)])
def test_momentum_error_holds_and_is_not_idle(momentum, batch_size) -> None:
    """NIGT by hand on f = sum of cos: measured E|d_t - grad f| against the bounds, step by step.

    |x_{t+1} - x_t| = alpha, so the curvature part is met at its worst only if the path bends.
    """
    generator = np.random.default_rng(11)
    dimension, stepsize, initial, sigma, runs, steps = 4, 0.02, 9, 0.7, 400, 60
    # grad f = -sin(x): Jacobian -cos(x), whose own Lipschitz constant in the spectral norm is 1.
    objective = Objective(1.0, 1.0, 1.0, sigma)

    def noise(batch: int) -> np.ndarray:
        shape = (runs, dimension)
        return generator.normal(size=shape) * sigma / math.sqrt(dimension * batch)

    x = previous = np.tile(np.linspace(0.3, 1.4, dimension), (runs, 1))
    d = np.zeros_like(x)
    for step in range(steps):
        query = x + (1 - momentum) / momentum * (x - previous)
        gradient = -np.sin(query) + noise(batch_size if step else initial)
        d = (1 - momentum) * d + momentum * gradient if step else gradient
        measured = np.linalg.norm(d + np.sin(x), axis=1).mean()
        bound, sharp = (
            guarantees.total(
                guarantees.momentum_error(
                    objective, step, momentum, stepsize, batch_size, initial, is_sharp
                )
            )
            for is_sharp in (False, True)
        )
        assert measured <= sharp * 1.05  # 400 runs: a standard error of 2 %
        assert sharp <= bound
        x, previous = x - stepsize * d / np.linalg.norm(d, axis=1, keepdims=True), x
    # In the end it is the noise, and the bound is not far from it.
    assert measured > 0.3 * sharp


def test_the_sharp_curvature_part_is_met_by_a_path_at_constant_speed() -> None:
    """f' = x^2/2 in one dimension: L_h = 1, and both remainders at their bounds in every step."""
    momentum, stepsize = 0.2, 0.1
    x, previous, d = 50.0, 50.0, 50.0**2 / 2
    for _ in range(200):
        x, previous = x - stepsize, x
        query = x + (1 - momentum) / momentum * (x - previous)
        d = (1 - momentum) * d + momentum * query**2 / 2
    (*_, curvature) = guarantees.momentum_error(
        Objective(1.0, sigma=0.0), 200, momentum, stepsize, 1, 1, is_sharp=True
    )
    assert abs(d - x**2 / 2) == pytest.approx(curvature.value, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: parameters.recommend_nigt(Objective(1e-9)), "would be needed, more than 2"),
        (
            lambda: parameters.recommend_asynchronous(Objective(0.1), -1),
            "largest_staleness = -1: expected an integer >= 0",
        ),
        (lambda: parameters.recommend_horizon(0.0, 0.9, 1, 1), "error = 0.0: expected"),
        (lambda: parameters.recommend_horizon(0.1, 1.0, 1, 1), "discount = 1.0: expected"),
        (lambda: guarantees.sgd_guarantee(Objective(0.1), 9, 2.0, 1), "stepsize = 2.0: .* 1/L_g"),
        (
            lambda: guarantees.ringmaster_guarantee(Objective(0.1), 9, 0.5, 2),
            "stepsize = 0.5: .*1/.2 R L_g",
        ),
        (
            lambda: guarantees.nigt_guarantee(Objective(0.1), 9, 0.0, 0.5, 2, 2),
            "momentum = 0.0: expected a number in",
        ),
    ],
)
def test_mistakes_are_named(call, text) -> None:
    with pytest.raises(ConfigurationError, match=text):
        call()


def test_guarantees_grow_with_noise() -> None:
    objective = Objective(0.1)
    louder = replace(objective, sigma=2.0)
    arguments = (100, 0.1, 0.01, 4, 8)
    quiet = dict(guarantees.nigt_guarantee(objective, *arguments))
    loud = dict(guarantees.nigt_guarantee(louder, *arguments))
    assert {name: loud[name] / quiet[name] for name in quiet} == pytest.approx(
        {"gap": 1, "initial": 2, "noise": 2, "curvature": 1, "smoothness": 1}
    )


def test_truncation_error_is_the_sum_it_stands_for() -> None:
    for horizon, discount in [(1, 0.5), (7, 0.9), (40, 0.97)]:
        tail = sum((h + 1) * discount**h for h in range(horizon, 3000))
        assert guarantees.truncation_error(horizon, discount, 2.0, 3.0) == pytest.approx(6 * tail)


def test_derived_constants_need_a_quarter_of_the_gradients() -> None:
    """Where noise leads: eta is small, the batch 1."""
    objective = Objective(1e-3, gradient_lipschitz=0.01)
    published, derived = (
        parameters.recommend_nigt(objective, batch_size=1, is_sharp=is_sharp)
        for is_sharp in (False, True)
    )
    assert published.steps / derived.steps == pytest.approx(4, rel=1e-3)
