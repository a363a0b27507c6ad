"""Who steps a batch of environments: Gymnasium one by one, or envpool in C++, all at once.

envpool (optional: ``pip install 'straggler[envpool]'``) has the physics of Gymnasium's
environments, but draws first states from streams of its own: results are those of other random
numbers. Each trajectory's first state depends on its own seed alone, in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from simulator.errors import ConfigurationError

CHECKED = (
    "CartPole-v1",
    "Hopper-v5",
    "InvertedPendulum-v5",
    "Pendulum-v1",
    "Reacher-v5",
    "Walker2d-v5",
)
"""Ids for which a test holds envpool's steps against Gymnasium's.

HalfCheetah-v5 is not one: its physics is the same, but it prints a warning and writes a log file
for every environment that is made, and is no faster.
"""

_NEVER = 1_000_000_000
"""Time limit of envpool's environments, steps: limits are ours to keep."""

Stepped = tuple[Sequence[Any], NDArray[np.float64], NDArray[np.bool_]]
"""Observations, rewards and ends, of each trajectory that was stepped."""


class Stepper(Protocol):
    """The environments of a batch of trajectories."""

    def reset(self, seeds: Sequence[int]) -> Sequence[Any]:
        """First observations, one a trajectory, each drawn from its seed."""
        ...

    def step(self, live: NDArray[np.int64], actions: Any) -> Stepped:
        """Step the trajectories ``live`` with their ``actions`` [len(live)]."""
        ...


class GymnasiumStepper:
    """Gymnasium's environments, one after the other.

    Args:
        environments: one for each trajectory.
    """

    def __init__(self, environments: Sequence[Any]) -> None:
        self._environments = environments

    def reset(self, seeds: Sequence[int]) -> Sequence[Any]:
        """See :class:`Stepper`."""
        both = zip(self._environments, seeds, strict=True)
        return [environment.reset(seed=seed)[0] for environment, seed in both]

    def step(self, live: NDArray[np.int64], actions: Any) -> Stepped:
        """See :class:`Stepper`."""
        observations, rewards, ended = [], np.zeros(len(live)), np.zeros(len(live), bool)
        for row, index in enumerate(live.tolist()):
            after, reward, terminated, truncated, _ = self._environments[index].step(actions[row])
            observations.append(after)
            rewards[row] = reward
            ended[row] = terminated or truncated
        return observations, rewards, ended


class EnvpoolStepper:
    """envpool's environments, made anew for every batch: it takes seeds at no other time.

    Args:
        environment: an id in ``CHECKED``.
    """

    def __init__(self, environment: str) -> None:
        self._environment = environment

    def reset(self, seeds: Sequence[int]) -> Sequence[Any]:
        """See :class:`Stepper`."""
        import envpool

        self._pool = envpool.make(
            self._environment,
            env_type="gymnasium",
            num_envs=len(seeds),
            env_seed=list(seeds),
            max_episode_steps=_NEVER,
        )
        space = self._pool.action_space
        dtype = np.int32 if space.shape == () else space.dtype
        self._actions = np.zeros((len(seeds), *space.shape), dtype)
        first: Sequence[Any] = self._pool.reset()[0]
        return first

    def step(self, live: NDArray[np.int64], actions: Any) -> Stepped:
        """See :class:`Stepper`. Trajectories that have ended are stepped too, to no effect."""
        self._actions[live] = actions
        after, reward, terminated, truncated, _ = self._pool.step(self._actions)
        return after[live], reward[live].astype(np.float64), (terminated | truncated)[live]


def check_envpool(environment: str, parameters: Sequence[Any]) -> None:
    """Refuse what envpool can not stand in for.

    Args:
        environment: a Gymnasium id.
        parameters: keyword arguments of each variant.

    Raises:
        ConfigurationError: an id that is not in ``CHECKED``, environments with parameters, or
            envpool is not installed.
    """
    if environment not in CHECKED:
        raise ConfigurationError(
            f"stepper = 'envpool': its physics was not checked for {environment!r}; expected "
            f"'gymnasium', or one of {', '.join(CHECKED)}"
        )
    if any(parameters):
        raise ConfigurationError(
            "stepper = 'envpool': expected 'gymnasium' for environments with "
            "environment_parameters, which envpool does not take"
        )
    try:
        import envpool  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "stepper = 'envpool': envpool is not installed. Try: pip install 'straggler[envpool]'"
        ) from error
