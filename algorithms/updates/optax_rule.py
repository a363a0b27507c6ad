"""optax.<name>: any optax gradient transformation as an update rule.

The transformation is built anew inside the traced update, from the hyperparameters passed as
arguments; so they stay array leaves and a grid of them is a ``vmap``.
"""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import optax

from algorithms.update_rule import (
    Array,
    Hyperparameters,
    StepInfo,
    UpdateRule,
    query_params,
)

OPTAX_NAMES = (
    "adabelief",
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamaxw",
    "adamw",
    "adan",
    "amsgrad",
    "lamb",
    "lars",
    "lion",
    "nadam",
    "nadamw",
    "novograd",
    "radam",
    "rmsprop",
    "sgd",
    "sm3",
    "yogi",
)
"""The optimizers of optax that need nothing but a gradient and the parameters."""

_STRUCTURAL = {"learning_rate", "momentum"}  # the first becomes stepsize; the second may be None


class OptaxState(NamedTuple):
    """params [dim], step [], and the transformation's own state."""

    params: Array
    step: Array
    inner: Any


def _hyperparameters_class(defaults: dict[str, float]) -> type:
    """A NamedTuple class made at run time, because its fields come from optax's signature."""
    fields = ("stepsize", *defaults)
    return namedtuple("OptaxHyperparameters", fields, defaults=[*defaults.values()])


def from_optax(
    build: Callable[..., optax.GradientTransformation], name: str, claim: str = ""
) -> UpdateRule:
    """Make an update rule of a function that builds an optax transformation.

    Args:
        build: called with ``learning_rate`` and the numeric keyword arguments of its signature,
            which become hyperparameters of the same names; ``learning_rate`` is ``stepsize``.
        name: name of the rule.
        claim: one line for listings.
    """
    defaults = {
        parameter.name: float(parameter.default)
        for parameter in inspect.signature(build).parameters.values()
        if isinstance(parameter.default, float) and parameter.name not in _STRUCTURAL
    }
    hyperparameters_class = _hyperparameters_class(defaults)

    def transformation(state_step: Array | int, hyperparameters: Hyperparameters) -> Any:
        values = {field: getattr(hyperparameters, field) for field in defaults}
        return build(learning_rate=hyperparameters.stepsize.at(state_step), **values)

    def init(x0: Array, hyperparameters: Hyperparameters) -> OptaxState:
        inner = transformation(0, hyperparameters).init(x0)
        return OptaxState(x0, jnp.zeros((), jnp.int32), inner)

    def update(
        state: OptaxState, gradient: Array, info: StepInfo, hyperparameters: Hyperparameters
    ) -> OptaxState:
        del info
        rule = transformation(state.step, hyperparameters)
        change, inner = rule.update(gradient, state.inner, state.params)
        params = state.params + change.astype(state.params.dtype)
        return OptaxState(params, state.step + 1, inner)

    return UpdateRule(
        name=name,
        hyperparameters=hyperparameters_class,
        init=init,
        query=query_params,
        update=update,
        reference="optax, DeepMind (2020)",
        claim=claim or f"optax.{name.removeprefix('optax.')} on the step's gradient",
        ranges={"stepsize": (0.0, float("inf"))},
    )


@cache
def optax_rule(optimizer: str) -> UpdateRule:
    """The rule ``optax.<optimizer>``; one of ``OPTAX_NAMES``.

    Raises:
        KeyError: if optax has no such optimizer or it needs more than a gradient.
    """
    if optimizer not in OPTAX_NAMES:
        raise KeyError(optimizer)
    return from_optax(getattr(optax, optimizer), f"optax.{optimizer}")
