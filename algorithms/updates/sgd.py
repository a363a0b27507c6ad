"""sgd: x <- x - stepsize * g."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from algorithms.update_rule import Array, Decay, PlainState, StepInfo, UpdateRule, query_params


class SgdHyperparameters(NamedTuple):
    """stepsize: gamma > 0."""

    stepsize: Decay


def _init(x0: Array, hyperparameters: SgdHyperparameters) -> PlainState:
    del hyperparameters
    return PlainState(params=x0, step=jnp.zeros((), jnp.int32))


def _update(
    state: PlainState, gradient: Array, info: StepInfo, hyperparameters: SgdHyperparameters
) -> PlainState:
    del info
    stepsize = hyperparameters.stepsize.at(state.step).astype(gradient.dtype)
    return PlainState(params=state.params - stepsize * gradient, step=state.step + 1)


SGD = UpdateRule(
    name="sgd",
    hyperparameters=SgdHyperparameters,
    init=_init,
    query=query_params,
    update=_update,
    reference="Robbins & Monro (1951)",
    claim="x <- x - stepsize * g",
    ranges={"stepsize": (0.0, float("inf"))},
)
