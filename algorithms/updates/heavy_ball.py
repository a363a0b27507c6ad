"""heavy-ball: m <- beta m + g; x <- x - stepsize * m."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from algorithms.update_rule import Array, Decay, StepInfo, UpdateRule, query_params


class HeavyBallHyperparameters(NamedTuple):
    """stepsize > 0; beta in [0, 1]: how much of the velocity is kept."""

    stepsize: Decay
    beta: Decay = Decay(0.9)


class HeavyBallState(NamedTuple):
    """params [dim], step [], velocity [dim]."""

    params: Array
    step: Array
    velocity: Array


def _init(x0: Array, hyperparameters: HeavyBallHyperparameters) -> HeavyBallState:
    del hyperparameters
    return HeavyBallState(params=x0, step=jnp.zeros((), jnp.int32), velocity=jnp.zeros_like(x0))


def _update(
    state: HeavyBallState,
    gradient: Array,
    info: StepInfo,
    hyperparameters: HeavyBallHyperparameters,
) -> HeavyBallState:
    del info
    beta = hyperparameters.beta.at(state.step).astype(gradient.dtype)
    stepsize = hyperparameters.stepsize.at(state.step).astype(gradient.dtype)
    velocity = beta * state.velocity + gradient
    return HeavyBallState(state.params - stepsize * velocity, state.step + 1, velocity)


HEAVY_BALL = UpdateRule(
    name="heavy-ball",
    hyperparameters=HeavyBallHyperparameters,
    init=_init,
    query=query_params,
    update=_update,
    reference="Polyak (1964)",
    claim="m <- beta m + g; x <- x - stepsize * m",
    ranges={"stepsize": (0.0, float("inf")), "beta": (0.0, 1.0)},
)
