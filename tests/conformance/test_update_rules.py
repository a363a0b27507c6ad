"""What every update rule must keep, the registered ones and all of optax's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms.hyperparameters import is_schedule, make_hyperparameters
from algorithms.update_rule import Decay, StepInfo
from algorithms.updates import UPDATE_RULES, rule_names, update_rule
from simulator.precision import PRECISIONS, precision

DIM = 5
TINY = {"float32": 1e-30, "float64": 1e-200}  # their squares are 0

every_rule = pytest.mark.parametrize("name", rule_names())
every_precision = pytest.mark.parametrize("dtype", PRECISIONS)


class Compiled:
    """A rule's update, compiled; counts how often it is traced."""

    def __init__(self, name: str) -> None:
        self.rule = update_rule(name)
        self.traces = 0
        self.step: Callable[..., Any] = jax.jit(self._step)

    def _step(self, state: Any, gradient: Any, staleness: Any, hyperparameters: Any) -> Any:
        self.traces += 1
        info = StepInfo(staleness, jnp.asarray(4, jnp.int32))
        state = self.rule.update(state, gradient, info, hyperparameters)
        return state, self.rule.query(state, hyperparameters)


@cache
def compiled(name: str, dtype: str) -> Compiled:
    """One for each rule and precision, shared by the tests below."""
    del dtype
    return Compiled(name)


def hyperparameters_of(name: str, dtype: str, stepsize: Any = 0.1) -> Any:
    values = make_hyperparameters(update_rule(name), {"stepsize": stepsize})
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), values)


def run(
    name: str, dtype: str, gradients: Any, stepsize: Any = 0.1
) -> tuple[Any, list[np.ndarray], list[np.ndarray]]:
    """States, parameters and query points along these gradients."""
    rule, hyperparameters = update_rule(name), hyperparameters_of(name, dtype, stepsize)
    state = rule.init(jnp.linspace(-1, 1, DIM, dtype=dtype), hyperparameters)
    states, params, points = [state], [np.asarray(state.params)], []
    for t, gradient in enumerate(gradients):
        state, point = compiled(name, dtype).step(
            state, jnp.asarray(gradient, dtype), jnp.asarray(t % 3, jnp.int32), hyperparameters
        )
        states.append(state)
        params.append(np.asarray(state.params))
        points.append(np.asarray(point))
    return states, params, points


def some_gradients(n: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, DIM))


@every_rule
@every_precision
def test_shape_and_dtype_are_kept(name: str, dtype: str) -> None:
    with precision(dtype):
        states, params, points = run(name, dtype, some_gradients(3))
    assert {(array.shape, str(array.dtype)) for array in params + points} == {((DIM,), dtype)}
    kinds = [[(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(state)] for state in states]
    assert kinds == [kinds[0]] * 4, "a state of another type: this would recompile every step"
    assert [int(state.step) for state in states] == [0, 1, 2, 3]


@every_rule
@every_precision
def test_moves_against_the_gradient(name: str, dtype: str) -> None:
    with precision(dtype):
        _, params, _ = run(name, dtype, np.ones((10, DIM)))
    assert (params[-1] < params[0]).all()


@every_rule
@every_precision
def test_changed_hyperparameters_compile_nothing(name: str, dtype: str) -> None:
    with precision(dtype):
        for stepsize in (0.1, 0.2, {"value": 0.3, "offset": 5.0, "power": 0.5}):
            run(name, dtype, some_gradients(2), stepsize)
    assert compiled(name, dtype).traces == 1


@every_rule
@every_precision
def test_a_larger_stepsize_moves_further(name: str, dtype: str) -> None:
    """The stepsize that is passed is the one that is used, not one compiled in."""
    with precision(dtype):
        moved = [
            np.linalg.norm(params[1] - params[0])
            for _, params, _ in (run(name, dtype, some_gradients(1), s) for s in (0.01, 0.02))
        ]
    assert moved[1] == pytest.approx(
        2 * moved[0], rel=0.01
    )  # float32 differences of nearly equal numbers


@every_rule
@every_precision
@pytest.mark.parametrize("scale", ["zero", "tiny"])
def test_small_gradients_make_no_nan(name: str, dtype: str, scale: str) -> None:
    size = 0.0 if scale == "zero" else TINY[dtype]
    gradients = [*size * some_gradients(3), some_gradients(1)[0], np.zeros(DIM)]
    with precision(dtype):
        states, _, points = run(name, dtype, gradients)
    for leaf in jax.tree.leaves((states, points)):
        assert np.isfinite(leaf).all()


@pytest.mark.parametrize("name", UPDATE_RULES)
def test_without_a_gradient_nothing_moves(name: str) -> None:
    """Of our own rules. Some of optax's decay weights, and Yogi moves by itself."""
    with precision("float64"):
        _, params, points = run(name, "float64", np.zeros((3, DIM)))
    np.testing.assert_array_equal(points, params[:-1])


@every_rule
def test_every_schedule_field_is_a_decay(name: str) -> None:
    rule = update_rule(name)
    values = make_hyperparameters(rule, {"stepsize": 0.1})
    assert isinstance(values, rule.hyperparameters)
    for field, value in values._asdict().items():
        assert isinstance(value, Decay) == is_schedule(rule, field)
        assert isinstance(value, Decay | float)


def test_names_are_different() -> None:
    assert len(set(rule_names())) == len(rule_names())
    assert [update_rule(name).name for name in rule_names()] == rule_names()
