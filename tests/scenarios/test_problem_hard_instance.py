"""The lower bound's function: every constant quoted for it, and its oracle."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from scenarios.problems import hard_instance
from scenarios.problems.curvature import largest_curvatures
from scenarios.problems.exact_specs import HardInstanceSpec
from scenarios.problems.hard_instance import (
    HardInstanceProblem,
    chain_function,
    infimum,
    phi,
    progress,
    psi,
)
from scenarios.problems.problem import ExactProblem
from simulator.errors import ConfigurationError

T = 6


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def value_and_gradient():
    return jax.jit(jax.vmap(jax.value_and_grad(chain_function)))


def where(n=4000, seed=0):
    """Points of every kind: near 0, around the bends of Psi, far out; some with a tail of zeros."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, T)) * rng.choice([0.1, 0.7, 1.5, 4], (n, 1))
    x += rng.choice([0, 0.5, 1], (n, 1))
    x[np.arange(T) >= rng.integers(0, T + 1, (n, 1))] *= rng.choice([0, 1])
    return x


def slowly(x):
    """F_T as it is printed."""

    def Psi(u):
        return 0.0 if u <= 0.5 else math.exp(1 - 1 / (2 * u - 1) ** 2)

    def Phi(u):
        return math.sqrt(math.e) * quad(lambda s: math.exp(-(s**2) / 2), -40, u, points=[0])[0]

    total = -Psi(1) * Phi(x[0])
    for i in range(1, len(x)):
        total += Psi(-x[i - 1]) * Phi(-x[i]) - Psi(x[i - 1]) * Phi(x[i])
    return total


def test_the_function_as_printed(value_and_gradient):
    x = where(12)
    values, _ = value_and_gradient(x)
    np.testing.assert_allclose(values, [slowly(row) for row in x], rtol=1e-8, atol=1e-8)


def test_its_gradient_by_finite_differences(value_and_gradient):
    (x,) = where(1, seed=4)
    shifts = 1e-5 * np.eye(T)
    slopes = (value_and_gradient(x + shifts)[0] - value_and_gradient(x - shifts)[0]) / 2e-5
    np.testing.assert_allclose(value_and_gradient(x[None])[1][0], slopes, atol=1e-6)


def test_the_gap(value_and_gradient):
    values, _ = value_and_gradient(np.concatenate([where(), np.full((1, T), 60.0)]))
    assert values.min() == values[-1]
    assert values[-1] == pytest.approx(infimum(T), rel=1e-3)  # approached, as 1/x^2
    assert values[-1] > infimum(T)
    for dimension in (1, 2, 20, 500):
        gap = float(chain_function(jnp.zeros(dimension))) - infimum(dimension)
        assert HardInstanceProblem(
            HardInstanceSpec(dimension), 1
        ).constants.initial_gap == pytest.approx(gap, rel=1e-12)
        assert gap <= 12 * dimension


def test_the_gradient_is_long_until_all_is_solved(value_and_gradient):
    x = where()
    _, gradient = value_and_gradient(x)
    unsolved = progress(x, 1.0) < T
    assert 1000 < unsolved.sum() < len(x)
    # The very coordinate that comes next is long, by itself.
    following = np.abs(gradient)[np.arange(len(x)), np.minimum(progress(x, 1.0), T - 1)]
    assert (following[unsolved] > 1).all()
    assert np.linalg.norm(gradient[~unsolved], axis=1).min() < 1


def test_coordinates_of_the_gradient_are_at_most_23(value_and_gradient):
    a, b = np.meshgrid(np.linspace(-3, 3, 601), np.linspace(-3, 3, 121))
    for following in (-2.0, 0.0, 2.0):  # coordinate 2 of 3 depends on its neighbours
        x = np.stack([a.ravel(), b.ravel(), np.full(a.size, following)], axis=1)
        _, gradient = value_and_gradient(x)
        assert np.abs(gradient).max() <= 23
    assert np.abs(gradient).max() > 15


def test_lipschitz_constants():
    derivatives = [[psi], [phi]]
    for chain in derivatives:
        for _ in range(3):
            chain.append(jax.grad(chain[-1]))
    grids = np.linspace(0.5, 12, 100_001), np.linspace(-9, 9, 100_001)
    P, F = (
        [float(jnp.abs(jax.vmap(f)(grid)).max()) for f in chain]
        for chain, grid in zip(derivatives, grids, strict=True)
    )
    P[0], F[0] = math.e, math.sqrt(2 * math.pi * math.e)  # approached
    assert P[1] == pytest.approx(math.sqrt(54 / math.e), rel=1e-6)
    assert F[1:] == pytest.approx([math.sqrt(math.e), 1, math.sqrt(math.e)], rel=1e-6)
    second = P[2] * F[0] + 2 * P[1] * F[1] + P[0] * F[2]
    third = P[3] * F[0] + 3 * P[2] * F[1] + 3 * P[1] * F[2] + P[0] * F[3]
    assert 150 < second <= hard_instance.GRADIENT_LIPSCHITZ
    assert 2060 < third <= hard_instance.HESSIAN_LIPSCHITZ
    # And on the function itself, where Psi bends most.
    x = np.concatenate([where(30), np.full((1, T), 0.66) + np.eye(T) * 1.5])
    found = largest_curvatures(chain_function, x, 0)
    assert 40 < found[0] <= second
    assert 200 < found[1] <= third


def test_progress_by_hand():
    x = np.array([[0.3, -2.0, 0.0, 0.2], [0, 0, 0, 0], [0, 0, 0, 0.26]])
    assert progress(x, 0.0).tolist() == [4, 0, 4]
    assert progress(x, 0.25).tolist() == [2, 0, 4]
    assert progress(x, 1.0).tolist() == [2, 0, 0]


def test_the_oracle_is_unbiased_hides_what_is_next_and_varies_as_said(value_and_gradient):
    p, scale = 0.3, 2.0
    problem = HardInstanceProblem(HardInstanceSpec(T, p, 152.0, scale, "float64"), 2)
    oracle = problem.oracle
    x = where(300)
    x[0] = 60.0 * np.eye(T)[0]  # the worst
    at = jax.jit(jax.vmap(oracle.gradient_at, in_axes=(0, None, None)))
    shown, hidden = (np.asarray(at(scale * x, 0, z / p).gradient) for z in (1.0, 0.0))
    gradient = scale * np.asarray(value_and_gradient(x)[1])
    np.testing.assert_allclose(p * shown + (1 - p) * hidden, gradient, atol=1e-9)
    beyond = np.arange(T) >= progress(x, 0.25)[:, None]
    assert (hidden[beyond] == 0).all()
    np.testing.assert_array_equal(hidden[~beyond], shown[~beyond])
    # Only one coordinate of those beyond is not 0.
    assert ((np.abs(shown) > 0) & beyond).sum(axis=1).max() == 1
    variance = p * np.sum((shown - gradient) ** 2, axis=1)
    variance += (1 - p) * np.sum((hidden - gradient) ** 2, axis=1)
    assert 0.99 * problem.constants.sigma**2 < variance.max() <= problem.constants.sigma**2


def test_sampling_is_drawing_and_the_coin_is_fair():
    p = 0.2
    oracle = HardInstanceProblem(HardInstanceSpec(T, p, dtype="float64"), 2).oracle
    keys = jax.random.split(jax.random.key(0), 4000)
    drawn = np.asarray(jax.vmap(oracle.draw, in_axes=(None, 0))(1, keys))
    assert set(drawn.tolist()) == {0.0, 1 / p}
    assert (drawn > 0).mean() == pytest.approx(p, abs=4.5 * (p * (1 - p) / 4000) ** 0.5)
    x = jnp.asarray(where(1, seed=2)[0])
    for key, factor in zip(keys[:6], drawn[:6], strict=True):
        found, expected = oracle.sample(x, 0, key), oracle.gradient_at(x, 0, factor)
        np.testing.assert_array_equal(found.gradient, expected.gradient)
        assert found.value == oracle.loss(x)


def test_no_coordinate_is_found_without_luck():
    """However one steps, each heads shows at most one coordinate more."""
    oracle = HardInstanceProblem(HardInstanceSpec(T, 0.3, dtype="float64"), 1).oracle
    draws = np.asarray(
        jax.vmap(oracle.draw, in_axes=(None, 0))(0, jax.random.split(jax.random.key(3), 60))
    )
    step = jax.jit(lambda x, factor: x - 0.5 * oracle.gradient_at(x, 0, factor).gradient)
    x, heads, found = oracle.initial_point(0), 0, []
    for factor in draws:
        x, heads = step(x, factor), heads + (factor > 0)
        found.append(int(progress(np.asarray(x), 0.0)))
        assert found[-1] <= heads
    assert found[-1] == T


def test_scaling_and_metrics(value_and_gradient):
    spec = HardInstanceSpec(T, 0.5, gradient_lipschitz=3.0, scale=0.1)
    problem = HardInstanceProblem(spec, 1)
    assert isinstance(problem, ExactProblem)
    height = 3.0 * 0.1**2 / 152
    x = where(200, seed=6)
    values, gradients = value_and_gradient(x)
    found = problem.evaluate(0.1 * x, 0)
    assert list(found) == [metric.name for metric in problem.metrics]
    gap = height * (np.asarray(values) - infimum(T))
    np.testing.assert_allclose(found["loss_gap"], gap, rtol=1e-9)
    norms = height / 0.1 * np.linalg.norm(gradients, axis=1)
    np.testing.assert_allclose(found["gradient_norm"], norms, rtol=1e-9)
    assert problem.gradient_floor == pytest.approx(3.0 * 0.1 / 152)
    assert (found["gradient_norm"] > problem.gradient_floor)[found["progress"] < T].all()
    np.testing.assert_array_equal(found["discovered"], progress(x, 0.0))
    curvature, third = largest_curvatures(problem.oracle.loss, 0.1 * x[:20], 0)
    assert 0 < curvature <= problem.constants.gradient_lipschitz == 3.0
    assert 0 < third <= problem.constants.hessian_lipschitz


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"dimension": 0}, "dimension = 0: expected an integer >= 1"),
        ({"probability": 0.0}, r"probability = 0.0: expected a number in \[1e-9, 1\]"),
        ({"probability": 1.5}, "probability = 1.5"),
        ({"gradient_lipschitz": 0}, "gradient_lipschitz = 0: expected a finite number"),
        ({"scale": float("inf")}, "scale = inf: expected a finite number"),
        ({"dtype": "double"}, "dtype = 'double'"),
    ],
)
def test_what_is_wrong_with_a_specification(fields, text):
    with pytest.raises(ConfigurationError, match=text):
        HardInstanceSpec(**fields)
