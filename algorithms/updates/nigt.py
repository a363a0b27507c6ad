"""nigt and normalized-sgd: steps of fixed length along a running mean of gradients.

    normalized-sgd   d_0 = g_0,  d_t = (1 - eta) d_{t-1} + eta g_t,  x_{t+1} = x_t - alpha d_t/|d_t|
    nigt             the same, with g_t taken at x_t + (1 - eta)/eta (x_t - x_{t-1})

eta is ``momentum``, alpha is ``stepsize``. With a schedule, the eta of an update is taken at the
version its gradient was computed at, k - staleness: that, on single arrivals, is AFedPG.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from algorithms.update_rule import Array, Decay, StepInfo, UpdateRule, query_params, safe_direction


class NigtHyperparameters(NamedTuple):
    """stepsize: alpha > 0, the length of a step; momentum: eta in (0, 1]."""

    stepsize: Decay
    momentum: Decay = Decay(0.1)


class NigtState(NamedTuple):
    """params x_t [dim], step t [], previous x_{t-1} [dim], direction d_{t-1} [dim]."""

    params: Array
    step: Array
    previous: Array
    direction: Array


def _init(x0: Array, hyperparameters: NigtHyperparameters) -> NigtState:
    del hyperparameters
    return NigtState(x0, jnp.zeros((), jnp.int32), x0, jnp.zeros_like(x0))


def extrapolated_point(state: NigtState, hyperparameters: NigtHyperparameters) -> Array:
    """x_t + (1 - eta_t)/eta_t (x_t - x_{t-1}); x_0 at the first step."""
    eta = hyperparameters.momentum.at(state.step).astype(state.params.dtype)
    return state.params + (1 - eta) / eta * (state.params - state.previous)


def _update(
    state: NigtState, gradient: Array, info: StepInfo, hyperparameters: NigtHyperparameters
) -> NigtState:
    version = jnp.maximum(state.step - info.staleness, 0)
    eta = hyperparameters.momentum.at(version).astype(gradient.dtype)
    eta = jnp.where(state.step == 0, jnp.ones_like(eta), eta)  # d_0 = g(x_0)
    direction = (1 - eta) * state.direction + eta * gradient
    stepsize = hyperparameters.stepsize.at(state.step).astype(gradient.dtype)
    params = state.params - stepsize * safe_direction(direction)
    return NigtState(params, state.step + 1, state.params, direction)


_RANGES = {"stepsize": (0.0, float("inf")), "momentum": (0.0, 1.0)}

NIGT = UpdateRule(
    name="nigt",
    hyperparameters=NigtHyperparameters,
    init=_init,
    query=extrapolated_point,
    update=_update,
    reference="Cutkosky & Mehta (2020), arXiv 2002.03305; Lan et al. (2025), arXiv 2404.08003",
    claim="normalised momentum with implicit gradient transport",
    ranges=_RANGES,
)

NORMALIZED_SGD = UpdateRule(
    name="normalized-sgd",
    hyperparameters=NigtHyperparameters,
    init=_init,
    query=query_params,
    update=_update,
    reference="Cutkosky & Mehta (2020), arXiv 2002.03305",
    claim="steps of fixed length along a running mean of gradients",
    ranges=_RANGES,
)
