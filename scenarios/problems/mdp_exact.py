"""Exact values of softmax policies in tabular MDPs: pure JAX, differentiable to any order.

With P_pi(s, s') = sum_a pi(a|s) P(s'|s, a) and
r_pi(s) = sum_{a, s'} pi(a|s) P(s'|s, a) r(s, a, s'),

    J   = mu' (I - gamma P_pi)^-1 r_pi                           (a linear solve)
    J_H = mu' v_0,  v_h = r_pi + gamma P_pi v_{h+1},  v_H = 0    (dynamic programming)

(Sutton & Barto 2018, chapters 3 and 4; Agarwal et al. 2021, section 2). The expectation of the
sampled gradients of horizon H is grad J_H; |J - J_H| <= gamma^H max|r| / (1 - gamma).
Call these in float64, inside ``simulator.precision.precision``.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from scenarios.problems.mdp import MDP

Array = jax.Array


def policy_table(point: Array, states: int) -> Array:
    """pi(a|s) = softmax of the logits of s: [states * A] -> [states, A]."""
    return jax.nn.softmax(point.reshape(states, -1), axis=-1)


def induced(mdp: MDP, table: Array) -> tuple[Array, Array]:
    """The Markov chain under a policy: P_pi, [S, S], and r_pi, [S]."""
    transition = jnp.einsum("sa,sat->st", table, mdp.transition)
    reward = jnp.einsum("sa,sat,sat->s", table, mdp.transition, mdp.reward)
    return transition, reward


def objective(mdp: MDP, point: Array, discount: float) -> Array:
    """J, [], of the policy with logits ``point`` [S * A]."""
    transition, reward = induced(mdp, policy_table(point, len(mdp.initial)))
    identity = jnp.eye(len(mdp.initial), dtype=reward.dtype)
    return mdp.initial @ jnp.linalg.solve(identity - discount * transition, reward)


def truncated_objective(mdp: MDP, point: Array, discount: float, horizon: int) -> Array:
    """J_H, [], the first ``horizon`` rewards of it."""
    transition, reward = induced(mdp, policy_table(point, len(mdp.initial)))

    def back(value: Array, _: None) -> tuple[Array, None]:
        return reward + discount * transition @ value, None

    value, _ = jax.lax.scan(back, jnp.zeros_like(reward), None, length=horizon)
    return mdp.initial @ value


def average_objective(
    mdps: MDP, share: Array, point: Array, discount: float, horizon: int | None = None
) -> Array:
    """The mean over workers of J, or of J_H if there is a horizon.

    Args:
        mdps: stacked, [n_variants, ...].
        share: of the workers that have each, [n_variants].
        point: logits, [S * A].
        discount: gamma.
        horizon: H, or None.
    """

    def one(mdp: MDP) -> Array:
        if horizon is None:
            return objective(mdp, point, discount)
        return truncated_objective(mdp, point, discount, horizon)

    return share @ jax.vmap(one)(mdps)


def optimal_objective(mdp: MDP, discount: float) -> float:
    """max J over all policies, by policy iteration: exact but for rounding.

    Softmax policies come as near to it as one likes. Source: Howard (1960); Puterman (1994),
    section 6.4.
    """
    states = len(mdp.initial)
    rewards = np.einsum("sat,sat->sa", mdp.transition, mdp.reward)
    choice = rewards.argmax(axis=1)
    rows = np.arange(states)
    while True:
        transition = mdp.transition[rows, choice]
        value = np.linalg.solve(np.eye(states) - discount * transition, rewards[rows, choice])
        action_values = rewards + discount * mdp.transition @ value
        # Only a real gain changes the choice: ties must not be swapped for ever.
        gain = action_values.max(axis=1) - action_values[rows, choice]
        better = gain > 1e-12 * (1 + np.abs(value).max())
        if not better.any():
            return float(mdp.initial @ value)
        choice = np.where(better, action_values.argmax(axis=1), choice)


def reward_sizes(mdp: MDP) -> tuple[float, float]:
    """The largest |r| that can be paid, and half the range of what can be paid.

    A terminal state pays 0 for ever, which belongs to the range.
    """
    possible: NDArray[np.bool_] = np.asarray(mdp.transition) > 0
    paid: Any = np.asarray(mdp.reward)[possible]
    return float(np.abs(paid).max()), float(paid.max() - paid.min()) / 2
