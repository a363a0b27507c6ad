"""Constants of tabular MDPs: the proof's ingredients by enumeration, and the bounds on samples."""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenarios.problems import mdp_constants
from scenarios.problems.curvature import largest_curvatures
from scenarios.problems.exact_specs import MDPSpec
from scenarios.problems.mdp_constants import likelihood_derivatives, sampled_deviations, searched
from scenarios.problems.problem import ExactProblem
from scenarios.problems.tabular import TabularProblem

SPECS = {
    "varied": MDPSpec(
        states=3, actions=3, branching=2, horizon=12, discount=0.7, seed=[3, 4, 4],
        reward_perturbation=[1, 0, 0],
    ),
    "chain": MDPSpec("chain", states=4, horizon=12, discount=0.8),
}  # fmt: skip


@pytest.fixture(scope="module", params=SPECS)
def problem(request):
    return TabularProblem(SPECS[request.param], 3)


def test_moments_of_the_centred_logit_are_bounded_and_attained():
    bounds = [getattr(mdp_constants, name) for name in ("SECOND", "THIRD", "FOURTH", "SIXTH")]
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.full(4, 0.3), 20_000)
    values = rng.normal(size=chances.shape)
    values *= 2**0.5 / np.ptp(values, axis=1, keepdims=True)
    p = np.linspace(0, 1, 10_001)
    pair = np.stack([p, 1 - p], axis=1), np.broadcast_to([2**0.5, 0.0], (len(p), 2))
    for bound, power in zip(bounds, (2, 3, 4, 6), strict=True):
        largest = []
        for weights, x in ((chances, values), pair):
            centred = x - np.sum(weights * x, axis=1, keepdims=True)
            largest.append(np.abs(np.sum(weights * centred**power, axis=1)).max())
        assert max(largest) <= bound * (1 + 1e-12)
        if power < 6:
            assert largest[1] == pytest.approx(bound, rel=1e-6)


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_derivatives_of_the_likelihood_by_enumeration(steps):
    """One state, two actions: E|X| over all sequences, maximised over the policy."""
    bound = [values[-1] for values in likelihood_derivatives(steps)]
    sequences = np.array(list(product(range(2), repeat=steps)))
    direction = np.array([0.5**0.5, -(0.5**0.5)])

    def likelihood(e, logits):
        return jnp.prod(jax.nn.softmax(logits + e * direction)[sequences], axis=1)

    derivatives = [likelihood]
    for _ in range(3):
        derivatives.append(jax.jacfwd(derivatives[-1]))
    with jax.enable_x64(True):
        logits = np.stack([np.linspace(0, 3, 13), np.zeros(13)], axis=1)
        at = jax.jit(jax.vmap(lambda each: [f(0.0, each) for f in derivatives]))
        chance, *found = (np.asarray(values) for values in at(logits))
    means = [values.sum(axis=1) for values in found]
    assert np.abs(means).max() < 1e-9  # martingales
    first, second, third = found
    sizes = (first**2 / chance).sum(axis=1) ** 0.5, np.abs(second).sum(1), np.abs(third).sum(1)
    largest = np.max(sizes, axis=1)
    assert (largest <= np.array(bound) * (1 + 1e-9)).all()
    assert largest[0] == pytest.approx(bound[0], rel=1e-9)
    assert (largest > 0.2 * np.array(bound)).all()  # and not idle


def test_bounds_are_no_larger_than_published_ones():
    for discount in (0.5, 0.9, 0.99, 0.9999):
        gradient, hessian = mdp_constants.smoothness_per_reward(discount)
        assert gradient <= 1 / (1 - discount) ** 2 * (1 + 1e-8)
        assert hessian <= 2 / (1 - discount) ** 3
        # Yuan, Gower & Lazaric (2022), for GPOMDP.
        sigma = mdp_constants.deviation_per_reward(discount, 1000, 4)
        assert sigma <= np.sqrt(0.75 / (1 - discount) ** 3)


def test_constants_are_upper_bounds_on_sampled_points(problem):
    assert isinstance(problem, ExactProblem)
    bound, found = problem.constants, searched(problem, points=4, samples=200)
    assert 0 < found.gradient_lipschitz <= bound.gradient_lipschitz
    assert 0 < found.hessian_lipschitz <= bound.hessian_lipschitz
    assert 0 < found.sigma <= bound.sigma
    assert found.initial_gap == bound.initial_gap
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20, problem.oracle.dim))
    y = x + rng.normal(size=x.shape) * rng.choice([1e-3, 0.1, 1], (20, 1))
    away = np.linalg.norm(x - y, axis=1)
    at_x, at_y = problem.exact(x), problem.exact(y)
    for name in ("gradient", "truncated_gradient"):
        change = np.linalg.norm(getattr(at_x, name) - getattr(at_y, name), axis=1)
        assert (change <= bound.gradient_lipschitz * away).all()
    assert (problem.optimal_value >= at_x.value).all()


def test_the_search_finds_the_largest_eigenvalue(problem):
    with jax.enable_x64(True):
        hessian = jax.jit(jax.hessian(problem.objective))
        x = np.random.default_rng(2).normal(size=(2, problem.oracle.dim))
        largest = max(np.linalg.norm(hessian(point), 2) for point in x)
        found, third = largest_curvatures(problem.objective, x, 0)
        step = 1e-4 * np.random.default_rng(3).normal(size=x.shape[1])
        change = [np.linalg.norm(hessian(p + step) - hessian(p - step), 2) for p in x]
    # Eigenvalues of opposite sign and like size make power iteration slow.
    assert 0.98 * largest <= found <= largest * (1 + 1e-9)
    assert third >= 0.9 * max(change) / (2 * np.linalg.norm(step))


def test_the_search_on_a_cubic_with_known_derivatives():
    slopes = jnp.array([1.0, -3.0, 0.5])
    curves = jnp.array([2.0, 1.0, -5.0])
    with jax.enable_x64(True):
        found = largest_curvatures(
            lambda x: jnp.sum(slopes * x**2 / 2 + curves * x**3 / 6), np.zeros((1, 3)), 0
        )
    assert found == pytest.approx((3.0, 5.0), rel=1e-9)


def test_the_sampled_deviation_of_a_bandit():
    """One step from one state: g = -r(a) (e_a - pi), by hand."""
    spec = MDPSpec("chain", states=2, horizon=1)
    problem = TabularProblem(spec, 1)
    p = 0.5
    # r = 1 for the last action only, |e_a - pi|^2 = 2 (1 - p)^2; |E g|^2 = 2 p^2 (1 - p)^2.
    exact = np.sqrt(2 * p * (1 - p) ** 2 - 2 * p**2 * (1 - p) ** 2)
    (found,) = sampled_deviations(problem, np.zeros((1, 4)), 20_000, 0)
    assert found == pytest.approx(exact, rel=0.02)
    assert problem.constants.sigma >= exact


def test_the_average_has_average_smoothness_and_the_largest_sigma():
    fleet = TabularProblem(MDPSpec(states=3, branching=2, seed=[1, 2, 2]), 3)
    alone = [TabularProblem(MDPSpec(states=3, branching=2, seed=s), 1).constants for s in (1, 2)]
    found = fleet.constants
    for name in ("gradient_lipschitz", "hessian_lipschitz"):
        one, two = (getattr(each, name) for each in alone)
        assert getattr(found, name) == pytest.approx((one + 2 * two) / 3)
    assert found.sigma == pytest.approx(max(each.sigma for each in alone))
    assert found.initial_gap == pytest.approx((alone[0].initial_gap + 2 * alone[1].initial_gap) / 3)


def test_where_there_is_nothing_to_choose():
    found = TabularProblem(MDPSpec(states=3, actions=1, branching=2), 1).constants
    assert found.gradient_lipschitz == found.hessian_lipschitz == found.sigma == 0
    assert found.initial_gap == pytest.approx(0, abs=1e-12)
