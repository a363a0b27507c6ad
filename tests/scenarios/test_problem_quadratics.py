import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenarios.problems.quadratics import QuadraticProblem, tridiagonal_product
from scenarios.problems.registry import build_problem
from scenarios.problems.specs import QuadraticSpec
from simulator.errors import ConfigurationError

CASES = json.loads((Path(__file__).parents[1] / "data" / "updates.json").read_text())


def test_tridiagonal_product_is_the_matrix():
    d = 5
    matrix = (2 * np.eye(d) - np.eye(d, k=1) - np.eye(d, k=-1)) / 4
    x = np.random.default_rng(0).normal(size=(3, d))
    np.testing.assert_allclose(tridiagonal_product(x, np), x @ matrix, rtol=1e-13)
    np.testing.assert_allclose(tridiagonal_product(jnp.array(x)), x @ matrix, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 7])
def test_tridiagonal_minimiser_and_start(d):
    problem = QuadraticProblem(QuadraticSpec(dimension=d), 3)
    matrix = (2 * np.eye(d) - np.eye(d, k=1) - np.eye(d, k=-1)) / 4
    b = np.zeros(d)
    b[0] = -0.25
    np.testing.assert_allclose(problem.minimiser, np.linalg.solve(matrix, b), rtol=1e-12)
    start = np.zeros(d)
    start[0] = d**0.5
    np.testing.assert_allclose(problem.oracle.initial_point(0), start, rtol=1e-6)

    def f(x):
        return x @ matrix @ x / 2 - b @ x

    found = problem.evaluate(start[None], 0)
    assert found["loss_gap"][0] == pytest.approx(f(start) - f(problem.minimiser), rel=1e-12)
    assert found["gradient_norm"][0] == pytest.approx(np.linalg.norm(matrix @ start - b))


def test_given_gradients_are_each_workers_and_the_objective_is_their_mean():
    case = CASES[0]
    n = len(case["A"])
    spec = QuadraticSpec("given", A=case["A"], b=case["b"], x0=case["x0"], dtype="float64")
    with jax.enable_x64(True):
        problem = build_problem(spec, n)
        x = problem.oracle.initial_point(0)
        sample = jax.vmap(problem.oracle.sample, in_axes=(None, 0, None))
        got = sample(x, jnp.arange(n), jax.random.key(0))
        expected = [np.array(A) @ case["x0"] - b for A, b in zip(case["A"], case["b"], strict=True)]
        assert got.gradient.dtype == jnp.float64
        np.testing.assert_allclose(got.gradient, expected, rtol=1e-14)
        values = [
            np.array(case["x0"]) @ A @ case["x0"] / 2 - np.dot(b, case["x0"])
            for A, b in zip(case["A"], case["b"], strict=True)
        ]
        np.testing.assert_allclose(got.value, values, rtol=1e-12)
        norm = problem.evaluate(np.array(x)[None], 0)["gradient_norm"][0]
        assert norm == pytest.approx(np.linalg.norm(np.mean(expected, axis=0)), rel=1e-13)


def test_noise_has_the_standard_deviation_asked_for():
    problem = QuadraticProblem(QuadraticSpec(dimension=50, noise=0.3), 1)
    x = problem.minimiser.astype(np.float32)
    keys = jax.random.split(jax.random.key(0), 400)
    sample = jax.jit(jax.vmap(problem.oracle.sample, in_axes=(None, None, 0)))(x, 0, keys)
    noise = np.asarray(sample.gradient, np.float64)
    n = noise.size
    assert noise.std() == pytest.approx(0.3, abs=4.5 * 0.3 / (2 * n) ** 0.5)
    assert noise.mean() == pytest.approx(0.0, abs=4.5 * 0.3 / n**0.5)


def test_a_flat_direction_is_fine_if_the_objective_is_bounded():
    problem = QuadraticProblem(QuadraticSpec("given", A=[[2, 0], [0, 0]], b=[1, 0]), 2)
    np.testing.assert_allclose(problem.minimiser, [0.5, 0])


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"A": [[1, 0], [0, -1]], "b": [1, 1]}, "A: the mean over workers has the eigenvalue -1"),
        ({"A": [[1, 0], [0, 0]], "b": [1, 1]}, "b: the mean over workers has a part"),
        ({"A": [[1, 2], [0, 1]], "b": [1, 1]}, "symmetric"),
        ({"A": [[1, 0]], "b": [1, 1]}, r"A has shape \[1, 2\]"),
        ({"A": [[1, 0], [0]], "b": [1, 1]}, "equally long rows"),
        ({"A": [[1, 0], [0, "x"]], "b": [1, 1]}, "A: expected numbers"),
        ({"A": [[1, 0], [0, 1]], "b": [1, float("nan")]}, "b: expected finite"),
        ({"A": [[1, 0], [0, 1]], "b": [1, 1, 1]}, r"b has shape \[3\]"),
        ({"A": [[1.0]], "b": [1], "x0": [1, 2]}, r"x0 has shape \[2\]: expected \[1\]"),
        ({"A": 3, "b": [1]}, r"A has shape \[\]"),
    ],
)
def test_what_is_wrong_with_given_matrices(fields, text):
    spec = QuadraticSpec("given", **fields)
    with pytest.raises(ConfigurationError, match=text):
        QuadraticProblem(spec, 2)


@pytest.mark.parametrize("d", [1, 2, 9])
def test_constants_of_the_tridiagonal_one(d):
    problem = QuadraticProblem(QuadraticSpec(dimension=d, noise=0.3), 3)
    matrix = (2 * np.eye(d) - np.eye(d, k=1) - np.eye(d, k=-1)) / 4
    found = problem.constants
    assert found.gradient_lipschitz == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-12)
    assert found.hessian_lipschitz == 0
    assert found.sigma == pytest.approx(0.3 * d**0.5)
    b, start = -np.eye(1, d)[0] / 4, d**0.5 * np.eye(1, d)[0]
    values = [x @ matrix @ x / 2 - b @ x for x in (start, np.linalg.solve(matrix, b))]
    assert found.initial_gap == pytest.approx(values[0] - values[1], rel=1e-10)


def test_constants_of_given_ones_are_those_of_the_mean():
    spec = QuadraticSpec("given", A=[[[4, 0], [0, 1]], [[0, 0], [0, 2]]], b=[2, 3], noise=0.5)
    found = QuadraticProblem(spec, 2).constants
    assert found.gradient_lipschitz == pytest.approx(2.0)
    assert found.sigma == pytest.approx(0.5 * 2**0.5)
    # Minimiser (1, 2), start (sqrt(2), 0).
    assert found.initial_gap == pytest.approx((2**0.5 - 1) ** 2 + 0.75 * 4)
