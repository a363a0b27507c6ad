"""Gymnasium environments stepped as a batch: one policy call per time step for all of them.

Every trajectory has its own row of policy parameters, also where all are alike. It costs little
next to the environments, and a row's numbers then do not depend on how many other rows there are:
matrix products over shared parameters round differently for different batch sizes, and a walking
robot blows the last bit up to another trajectory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import gymnasium as gym
import jax
import numpy as np
from numpy.typing import NDArray

from algorithms.policy_gradient import Trajectory, padded_steps
from scenarios.problems.gymnasium_ids import plain_errors
from scenarios.problems.heterogeneity import Variants
from scenarios.problems.spaces import Interface
from scenarios.problems.steppers import EnvpoolStepper, GymnasiumStepper, Stepper, check_envpool
from simulator.errors import ConfigurationError

Environment: TypeAlias = gym.Env[Any, Any]

ROWS = (1, 4, 16, 64)
"""Batch sizes compiled for: a batch is padded to the next, and larger ones are cut."""


_NOISE_STEPS = 32
"""Steps of noise drawn at once for a trajectory. Part of no result: a stream has no seams."""


def padded_rows(n: int) -> int:
    """The smallest compiled batch size that holds ``n`` rows, 1 <= n <= ROWS[-1]."""
    return next(rows for rows in ROWS if rows >= n)


def pad(indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices repeated up to a compiled batch size."""
    return np.resize(indices, padded_rows(len(indices)))


def make_environment(environment: str, kwargs: Mapping[str, Any]) -> Environment:
    """One instance without the wrappers that check and count: the pool does that itself.

    Raises:
        ConfigurationError: if it can not be made.
    """
    with plain_errors(environment, kwargs):
        env: Any = gym.make(environment, max_episode_steps=-1, disable_env_checker=True, **kwargs)
    while isinstance(env, gym.wrappers.OrderEnforcing):
        env = env.env
    return env


def _randomness(key: Sequence[int]) -> tuple[int, np.random.Generator]:
    """What an environment's ``reset`` is seeded with, and where action noise comes from."""
    sequence = np.random.SeedSequence([int(number) for number in key])
    reset_seed = int(sequence.generate_state(1)[0] >> 1)  # some old environments want 31 bits
    (child,) = sequence.spawn(1)
    return reset_seed, np.random.Generator(np.random.Philox(child))


class _PolicyCalls:
    """The policy's jitted functions, a row per trajectory."""

    def __init__(self, interface: Interface) -> None:
        policy = interface.policy

        def act(parameters: Any, seen: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
            decision = policy.act(parameters, seen, noise)
            return decision, interface.hand_over(policy.action(decision))

        self.noise = policy.noise
        self.unpack = jax.jit(jax.vmap(policy.unpack))
        self.act = jax.jit(jax.vmap(act))


class _Rows:
    """The trajectories that still need the policy, packed into a compiled batch size.

    They are packed anew, into fewer rows, when enough of them have ended.
    """

    def __init__(
        self, calls: _PolicyCalls, points: NDArray[Any], generators: Sequence[np.random.Generator]
    ) -> None:
        self._calls = calls
        self._points = points
        self._generators = generators
        self._rows = np.zeros(0, np.int64)
        self._row_of = np.zeros(len(points), np.int64)
        self._noise = np.zeros((len(points), _NOISE_STEPS, calls.noise.size), calls.noise.dtype)

    def act(
        self, live: NDArray[np.int64], seen: NDArray[Any], t: int
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Decisions and actions, [len(live), ...], at step t.

        Args:
            live: trajectories that need them, in ascending order.
            seen: what the policy sees of every trajectory, [n, ...].
            t: the step, one more than at the last call.
        """
        offset = t % _NOISE_STEPS
        if offset == 0:
            for i in live:
                noise = self._calls.noise
                self._noise[i] = noise.draw_on_host(self._generators[i], _NOISE_STEPS)
        if padded_rows(len(live)) != len(self._rows):
            self._rows = pad(live)
            self._row_of[live] = np.arange(len(live))
            self._parameters = self._calls.unpack(self._points[self._rows])
        rows = self._rows
        both = self._calls.act(self._parameters, seen[rows], self._noise[rows, offset])
        decisions, actions = (np.asarray(x)[self._row_of[live]] for x in both)
        return decisions, actions


class EnvironmentPool:
    """Instances to step, kept from one batch to the next; one of each variant is made at once.

    Args:
        environment: a Gymnasium id.
        interface: to the policy.
        variants: keyword arguments and transforms of each variant.
        horizon: most actions in a trajectory.
        stepper: "gymnasium" or "envpool".

    Raises:
        ConfigurationError: a variant that can not be made, or whose spaces differ, or that envpool
            can not step.
    """

    def __init__(
        self,
        environment: str,
        interface: Interface,
        variants: Variants,
        horizon: int,
        stepper: str = "gymnasium",
    ) -> None:
        self._is_envpool = stepper == "envpool"
        if self._is_envpool:
            check_envpool(environment, variants.parameters)
        self._environment = environment
        self._interface = interface
        self._variants = variants
        self._horizon = horizon
        self._calls = _PolicyCalls(interface)
        self._idle = [[self._make(variant)] for variant in range(variants.n)]

    def _make(self, variant: int) -> Environment:
        kwargs = self._variants.parameters[variant]
        env = make_environment(self._environment, kwargs)
        interface = self._interface
        for name in ("observation_space", "action_space"):
            space, expected = getattr(env, name), getattr(interface, name)
            if space != expected:
                raise ConfigurationError(
                    f"environment_parameters: with {kwargs!r} the {name.replace('_', ' ')} is "
                    f"{space}, with those of worker 0 {expected}: one policy must fit all workers"
                )
        return env

    def run(
        self,
        points: NDArray[Any],
        variants: NDArray[np.int32],
        keys: Sequence[Sequence[int]],
    ) -> Trajectory:
        """Collect a batch of trajectories.

        Args:
            points: [n, dim], 1 <= n <= ROWS[-1].
            variants: [n], whose environment.
            keys: [n], integers >= 0 that name each trajectory's randomness.

        Returns:
            the trajectories, [n, padded_steps, ...], as NumPy arrays.
        """
        seeds, generators = zip(*(_randomness(key) for key in keys), strict=True)
        rows = _Rows(self._calls, points, generators)
        if self._is_envpool:
            return self._collect(EnvpoolStepper(self._environment), seeds, rows, variants)
        idle = [self._idle[variant] for variant in variants]
        environments = [
            free.pop() if free else self._make(int(variant))
            for free, variant in zip(idle, variants, strict=True)
        ]
        try:
            return self._collect(GymnasiumStepper(environments), seeds, rows, variants)
        finally:
            for free, env in zip(idle, environments, strict=True):
                free.append(env)

    def _collect(
        self,
        stepper: Stepper,
        seeds: Sequence[int],
        rows: _Rows,
        variants: NDArray[np.int32],
    ) -> Trajectory:
        """Reset, and step until all have ended."""
        n, steps = len(seeds), padded_steps(self._horizon)
        interface = self._interface
        latest = interface.raw_buffer(n)  # each one's last observation
        for i, observation in enumerate(stepper.reset(seeds)):
            latest[i] = interface.raw(observation)
        scale = self._variants.observation_scale[variants]
        observations = interface.empty(n, steps)
        decisions: Any = None  # its shape is the policy's business
        rewards = np.zeros((n, steps))
        length = np.zeros(n, np.int32)
        live = np.arange(n)
        for t in range(self._horizon):
            seen = interface.observe_batch(latest, scale)
            observations[live, t] = seen[live]
            drawn, actions = rows.act(live, seen, t)
            if decisions is None:
                decisions = np.zeros((n, steps, *drawn.shape[1:]), drawn.dtype)
            decisions[live, t] = drawn
            after, rewards[live, t], ended = stepper.step(live, interface.to_environment(actions))
            for i, observation in zip(live.tolist(), after, strict=True):
                latest[i] = interface.raw(observation)
            length[live] = t + 1
            live = live[~ended]
            if not len(live):
                break
        rewards *= self._variants.reward_scale[variants][:, None]
        return Trajectory(observations, decisions, rewards.astype(interface.dtype), length)
