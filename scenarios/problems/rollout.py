"""Trajectories of a policy in a JAX environment: pure, traceable, ended as early as may be."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from algorithms.policies import Parameters, Policy
from algorithms.policy_gradient import (
    Estimator,
    Trajectory,
    anywhere,
    block_steps,
    discounts,
    padded_steps,
)

Array = jax.Array


class JaxEnvironment(Protocol):
    """One worker's environment."""

    def reset(self, key: Array) -> tuple[Any, Array]:
        """A first state and what the policy sees of it."""
        ...

    def step(self, state: Any, action: Array, key: Array) -> tuple[Any, Array, Array, Array]:
        """The next state, what the policy sees of it, the reward, and whether this was the end."""
        ...


class _Moment(NamedTuple):
    """Where one trajectory is: carried from step to step."""

    state: Any
    observation: Array
    live: Array


def _block(
    policy: Policy, parameters: Parameters, environment: JaxEnvironment, horizon: int
) -> Any:
    """A function (start, moment, keys) -> (moment, one block's records)."""
    block = block_steps(horizon)

    def step(moment: _Moment, inputs: tuple[Array, Array, Array]) -> tuple[_Moment, Any]:
        t, noise, key = inputs
        live = moment.live & (t < horizon)
        decision = policy.act(parameters, moment.observation, noise)
        state, observation, reward, terminated = environment.step(
            moment.state, policy.action(decision), key
        )
        # After the end the state stays where it was: simulated on, it might overflow.
        after = _Moment(state, observation, live & ~terminated)
        kept = jax.tree.map(lambda new, old: jnp.where(live, new, old), after, moment)
        reward = jnp.where(live, reward, 0)
        seen = jnp.where(live, moment.observation, 0)
        return kept._replace(live=after.live), (seen, decision, reward, live)

    def run(start: Array, moment: _Moment, keys: tuple[Array, Array]) -> tuple[_Moment, Any]:
        noise_key, step_key = keys
        times = start + jnp.arange(block)
        noise = policy.noise.draw(jax.random.fold_in(noise_key, start), block)
        step_keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(step_key, times)
        return jax.lax.scan(step, moment, (times, noise, step_keys))

    return run


def _start(environment: JaxEnvironment, key: Array) -> tuple[_Moment, tuple[Array, Array]]:
    first, noise, steps = jax.random.split(key, 3)
    state, observation = environment.reset(first)
    return _Moment(state, observation, jnp.ones((), bool)), (noise, steps)


def collect(
    policy: Policy, point: Array, environment: JaxEnvironment, key: Array, horizon: int
) -> Trajectory:
    """One trajectory, with what the gradient needs of it.

    Args:
        policy: what acts.
        point: its parameters, [dim].
        environment: where.
        key: randomness of the whole trajectory.
        horizon: most actions, >= 1.
    """
    moment, keys = _start(environment, key)
    run = _block(policy, policy.unpack(point), environment, horizon)
    block, steps = block_steps(horizon), padded_steps(horizon)
    shapes = jax.eval_shape(run, jnp.zeros((), jnp.int32), moment, keys)[1]
    buffers = jax.tree.map(lambda s: jnp.zeros((steps, *s.shape[1:]), s.dtype), shapes)

    def more(carry: Any) -> Array:
        start, moment, _ = carry
        return anywhere((start < steps) & moment.live)

    def advance(carry: Any) -> Any:
        start, moment, buffers = carry
        moment, records = run(start, moment, keys)
        buffers = jax.tree.map(
            lambda whole, part: jax.lax.dynamic_update_slice_in_dim(whole, part, start, 0),
            buffers,
            records,
        )
        return start + block, moment, buffers

    carry = (jnp.zeros((), jnp.int32), moment, buffers)
    _, _, (observations, decisions, rewards, live) = jax.lax.while_loop(more, advance, carry)
    return Trajectory(observations, decisions, rewards, jnp.sum(live, dtype=jnp.int32))


def returns(
    policy: Policy, point: Array, environment: JaxEnvironment, key: Array, estimator: Estimator
) -> tuple[Array, Array]:
    """Undiscounted and discounted return of one trajectory, [] each; nothing else is kept."""
    moment, keys = _start(environment, key)
    run = _block(policy, policy.unpack(point), environment, estimator.horizon)
    block, steps = block_steps(estimator.horizon), padded_steps(estimator.horizon)
    gammas = discounts(estimator, steps, point.dtype)

    def more(carry: Any) -> Array:
        start, moment, _ = carry
        return anywhere((start < steps) & moment.live)

    def advance(carry: Any) -> Any:
        start, moment, (plain, discounted) = carry
        moment, (_, _, rewards, _) = run(start, moment, keys)
        powers = jax.lax.dynamic_slice_in_dim(gammas, start, block)
        return start + block, moment, (plain + rewards.sum(), discounted + (powers * rewards).sum())

    zero = jnp.zeros((), point.dtype)
    carry = (jnp.zeros((), jnp.int32), moment, (zero, zero))
    return jax.lax.while_loop(more, advance, carry)[2]
