"""The update-rule protocol: *how* the server steps. Pure JAX functions on a flat vector.

A rule is four pure functions and a NamedTuple of hyperparameters. Everything is minimised. The
hyperparameters are array leaves and arrive as an argument, so changing one never recompiles and
a grid of them is a ``vmap``. Dtypes follow the parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Array = jax.Array
State = Any
Hyperparameters = Any


class StepInfo(NamedTuple):
    """What a rule may know of a server step besides its gradient.

    Attributes:
        staleness: [] int32, server steps between the sending of the point and this step; the
            largest among the gradients averaged.
        n_workers: [] int32, size of the fleet.
    """

    staleness: Array | int
    n_workers: Array | int


class Decay(NamedTuple):
    """A hyperparameter over server steps: value * (offset / (offset + t))^power.

    ``power = 0`` is a constant; AFedPG's momentum (2/(t+2))^(4/5) is ``Decay(1, 2, 0.8)``.
    A constant and a decay have the same shape, so going from one to the other recompiles nothing.
    """

    value: Array | float
    offset: Array | float = 1.0
    power: Array | float = 0.0

    def at(self, step: Array | int) -> Array:
        """The value at server step ``step`` >= 0."""
        base = self.offset / (self.offset + jnp.asarray(step, jnp.result_type(float)))
        return jnp.asarray(self.value * base**self.power)


@dataclass(frozen=True)
class UpdateRule:
    """A pair of pure functions with their state and hyperparameters.

    Attributes:
        name: as in scenario files.
        hyperparameters: NamedTuple class whose fields are ``Decay`` or float, with defaults
            where there is a sensible one.
        init: (x0 [dim], hyperparameters) -> state, a NamedTuple with fields ``params`` [dim] and
            ``step`` [] int32.
        query: (state, hyperparameters) -> point [dim] at which the workers differentiate.
        update: (state, gradient [dim], info, hyperparameters) -> state.
        reference: who published it.
        claim: one line for ``straggler list``.
    """

    name: str
    hyperparameters: type
    init: Callable[[Array, Hyperparameters], State]
    query: Callable[[State, Hyperparameters], Array]
    update: Callable[[State, Array, StepInfo, Hyperparameters], State]
    reference: str = ""
    claim: str = ""
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict, hash=False)


class PlainState(NamedTuple):
    """State of a rule without memory."""

    params: Array
    step: Array


def query_params(state: State, hyperparameters: Hyperparameters) -> Array:
    """The point of rules that differentiate where they are."""
    del hyperparameters
    return state.params


def safe_direction(vector: Array) -> Array:
    """vector / |vector|, and zero where the vector is zero: it moves nothing and makes no NaN.

    The largest entry is divided out first, so tiny vectors do not underflow in the square.
    """
    largest = jnp.max(jnp.abs(vector))
    scaled = vector / jnp.where(largest > 0, largest, 1.0).astype(vector.dtype)
    norm = jnp.sqrt(jnp.sum(scaled * scaled))
    return scaled / jnp.where(norm > 0, norm, 1.0).astype(vector.dtype)
