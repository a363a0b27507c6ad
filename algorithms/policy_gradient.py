"""The policy gradient estimator: GPOMDP with discount, for one trajectory.

    g = sum_{t<T} ( sum_{h=t}^{T-1} gamma^h r_h ) grad log pi(a_t | s_t)

with T the trajectory's length, at most the horizon H: after termination nothing is added. The
functions return the gradient of the *loss* -J, since everything here is minimised.

Source: Tyurin, Spiridonov & Rudenko (2025), arXiv 2509.24305, equation 3; Baxter & Bartlett
(2001). Two options, both off by default:

- ``baseline`` c subtracts c * sum_{h=t}^{H-1} gamma^h from the sum in brackets: what would come if
  every step up to the horizon paid c. It depends on time alone, so the estimate stays unbiased.
  (The mean return of the *same* trajectory would not do: it depends on the actions. Baselines
  taken from other trajectories have no place in a gradient that one worker computes alone.)
- ``normalise`` shifts and scales the sums of one trajectory to mean 0 and variance 1. Popular,
  and biased.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

from algorithms.policies import Parameters, Policy

Array = jax.Array

_BLOCK = 50
"""Steps between two tests of whether all trajectories of a batch have ended. CartPole, batch of
64: as fast as one block of 200 when all last that long, half the time under a random policy."""


@custom_vmap
def anywhere(claim: Array) -> Array:
    """Whether ``claim`` [] holds for any member of the batch; the same for all of them.

    As the condition of a ``while_loop`` it makes one loop for the batch. (A condition that
    differs from member to member makes JAX copy everything carried, every time round.) What the
    loop does to a member must therefore change nothing once its own claim is false.
    """
    return claim


@anywhere.def_vmap
def _anywhere_in_batch(axis_size: int, in_batched: list[bool], claim: Array) -> tuple[Array, bool]:
    del axis_size
    return anywhere(jnp.any(claim, axis=0) if in_batched[0] else claim), False


def block_steps(horizon: int) -> int:
    """Steps between two tests of whether every trajectory of a batch has ended."""
    n_blocks = -(-horizon // _BLOCK)
    return -(-horizon // n_blocks)


def padded_steps(horizon: int) -> int:
    """The horizon rounded up to whole blocks."""
    block = block_steps(horizon)
    return -(-horizon // block) * block


class Trajectory(NamedTuple):
    """One trajectory, padded to ``padded_steps(horizon)`` steps.

    Attributes:
        observations: [steps, ...], what the policy saw; any finite values past the length.
        decisions: [steps, ...], what it drew (for the Gaussian: u).
        rewards: [steps], any finite values past the length.
        length: [] int32, actions taken.
    """

    observations: Any
    decisions: Any
    rewards: Any
    length: Any


@dataclass(frozen=True)
class Estimator:
    """What the estimator is told once.

    Attributes:
        horizon: H, the largest length, >= 1.
        discount: gamma in (0, 1].
        baseline: c, reward per step; 0 for none.
        normalise: standardise within the trajectory (biased).
    """

    horizon: int
    discount: float
    baseline: float = 0.0
    normalise: bool = False


def discounts(estimator: Estimator, steps: int, dtype: Any) -> Array:
    """gamma^h for h < H and 0 from there on, [steps]."""
    h = jnp.arange(steps)
    powers = jnp.asarray(estimator.discount, dtype) ** h.astype(dtype)
    return jnp.where(h < estimator.horizon, powers, 0)


def weights_of(rewards: Array, length: Array, estimator: Estimator) -> Array:
    """What multiplies each grad log pi(a_t | s_t): [steps], 0 from ``length`` on.

    Args:
        rewards: [steps].
        length: [] int32.
        estimator: horizon, discount and options.
    """
    (steps,) = rewards.shape
    live = jnp.arange(steps) < length
    gammas = discounts(estimator, steps, rewards.dtype)
    to_go = jax.lax.cumsum(jnp.where(live, gammas * rewards, 0), reverse=True)
    if estimator.baseline:
        to_go = to_go - estimator.baseline * jax.lax.cumsum(gammas, reverse=True)
    if estimator.normalise:
        to_go = _standardised(to_go, live)
    return jnp.where(live, to_go, 0)


def _standardised(values: Array, live: Array) -> Array:
    """Mean 0 and variance 1 over the live steps; zeros if they are all alike."""
    count = jnp.maximum(jnp.sum(live), 1)
    centred = jnp.where(live, values - jnp.sum(jnp.where(live, values, 0)) / count, 0)
    variance = jnp.sum(centred**2) / count
    # The safe value inside, too: rounding must not be blown up into a signal.
    noise_floor = (8 * jnp.finfo(values.dtype).eps * jnp.max(jnp.abs(values))) ** 2
    alike = variance <= noise_floor
    return jnp.where(alike, 0, centred / jnp.sqrt(jnp.where(alike, 1, variance)))


def policy_gradient(
    policy: Policy, point: Array, trajectory: Trajectory, estimator: Estimator
) -> Array:
    """Gradient of the loss -J estimated from one trajectory, [dim].

    Steps are differentiated block by block and the blocks past the end are skipped.

    Args:
        policy: what acted.
        point: its parameters, [dim].
        trajectory: what happened.
        estimator: horizon, discount and options.
    """
    weights = weights_of(trajectory.rewards, trajectory.length, estimator)
    block = block_steps(estimator.horizon)

    score = jax.vmap(policy.log_probability, in_axes=(None, 0, 0))
    # Blocks are added up per layer; the flat vector is put together once, at the end.
    parameters, pack = jax.vjp(policy.unpack, point)

    def block_loss(parameters: Parameters, start: Array) -> Array:
        observations, decisions, factors = (
            jax.lax.dynamic_slice_in_dim(array, start, block)
            for array in (trajectory.observations, trajectory.decisions, weights)
        )
        return -jnp.sum(factors * score(parameters, observations, decisions))

    def add_block(carry: tuple[Array, Parameters]) -> tuple[Array, Parameters]:
        start, total = carry
        return start + block, jax.tree.map(jnp.add, total, jax.grad(block_loss)(parameters, start))

    def more(carry: tuple[Array, Parameters]) -> Array:
        return anywhere(carry[0] < trajectory.length)

    first = jnp.zeros((), jnp.int32), jax.tree.map(jnp.zeros_like, parameters)
    (gradient,) = pack(jax.lax.while_loop(more, add_block, first)[1])
    return gradient
