"""From Gymnasium's spaces to a policy: what is supported, and how values cross over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from algorithms.policies import CategoricalPolicy, GaussianPolicy, Policy, TabularPolicy
from scenarios.problems.specs import EnvironmentSpec
from simulator.errors import ConfigurationError

_LARGEST_OBSERVATION = 10_000

_SUPPORTED = (
    "Supported are observations that are a vector (Box, real or integer, at most "
    f"{_LARGEST_OBSERVATION} numbers, no images) or Discrete, and actions that are a real vector "
    "(Box, each coordinate with both bounds or none) or Discrete."
)


@dataclass(frozen=True, eq=False)
class Interface:
    """A policy and the spaces it stands between.

    Attributes:
        policy: what acts.
        observation_size: numbers in an observation; of a discrete one, its states.
        observation_space, action_space: Gymnasium's.
        tabular: the policy is handed an integer, not a vector.
    """

    policy: Policy
    observation_size: int
    observation_space: Any
    action_space: Any
    tabular: bool
    dtype: Any

    @property
    def _is_box(self) -> bool:
        return isinstance(self.observation_space, gym.spaces.Box)

    def observe(self, observation: Any, scale: Any) -> Any:
        """What the policy sees of one observation, traceable: [observation_size], or [] tabular.

        Args:
            observation: the environment's.
            scale: [observation_size], of the worker; unused if tabular.
        """
        if self._is_box:
            return jnp.asarray(observation, self.dtype).reshape(-1) * scale
        state = jnp.asarray(observation, jnp.int32).reshape(()) - int(self.observation_space.start)
        if self.tabular:
            return state
        return (jnp.arange(self.observation_size) == state) * scale

    def raw_buffer(self, n: int) -> NDArray[Any]:
        """Zeros to put n results of :meth:`raw` into."""
        if self._is_box:
            return np.zeros((n, self.observation_size))
        return np.zeros(n, np.int64)

    def raw(self, observation: Any) -> Any:
        """One observation as a row of a NumPy buffer."""
        return np.ravel(observation) if self._is_box else observation

    def observe_batch(self, raw: NDArray[Any], scale: NDArray[np.float64]) -> NDArray[Any]:
        """What the policy sees of a buffer of raw observations: :meth:`observe`, on NumPy.

        Args:
            raw: see :meth:`raw_buffer`.
            scale: [n, observation_size].
        """
        if self._is_box:
            return (raw * scale).astype(self.dtype)
        states = raw - int(self.observation_space.start)
        if self.tabular:
            return states.astype(np.int32)
        return (np.eye(self.observation_size)[states] * scale).astype(self.dtype)

    def empty(self, *shape: int) -> NDArray[Any]:
        """Zeros to put what the policy sees into, [*shape, observation_size], [*shape] tabular."""
        if self.tabular:
            return np.zeros(shape, np.int32)
        return np.zeros((*shape, self.observation_size), self.dtype)

    def hand_over(self, action: Any) -> Any:
        """The environment's action for the policy's, traceable."""
        if isinstance(self.action_space, gym.spaces.Box):
            return action.reshape(self.action_space.shape)
        return action + int(self.action_space.start)

    def to_environment(self, actions: NDArray[Any]) -> Any:
        """A batch of actions as a Python environment wants them, one by one."""
        if isinstance(self.action_space, gym.spaces.Box):
            return actions.astype(self.action_space.dtype)
        return actions.tolist()


def interface_of(observation_space: Any, action_space: Any, spec: EnvironmentSpec) -> Interface:
    """Build the policy that ``spec`` asks for.

    Raises:
        ConfigurationError: spaces that are not supported, or that the policy does not fit.
    """
    size = _observation_size(observation_space, spec.environment)
    continuous = _check_actions(action_space, spec.environment)
    discrete_states = isinstance(observation_space, gym.spaces.Discrete)
    kind = spec.policy
    if kind == "auto":
        kind = "gaussian" if continuous else "tabular" if discrete_states else "categorical"
    _check_fit(kind, continuous, discrete_states, spec)
    dtype = jnp.dtype(spec.dtype)
    policy: Policy
    if kind == "gaussian":
        low, high = action_space.low.reshape(-1), action_space.high.reshape(-1)
        policy = GaussianPolicy(size, low, high, spec.hidden, dtype)
    elif kind == "tabular":
        policy = TabularPolicy(size, int(action_space.n), dtype)
    else:
        policy = CategoricalPolicy(size, int(action_space.n), spec.hidden, dtype)
    return Interface(policy, size, observation_space, action_space, kind == "tabular", dtype)


def _observation_size(space: Any, environment: str) -> int:
    if isinstance(space, gym.spaces.Discrete):
        return int(space.n)
    is_image = isinstance(space, gym.spaces.Box) and (
        len(space.shape) > 2 or space.dtype == np.uint8
    )
    if isinstance(space, gym.spaces.Box) and not is_image:
        size = int(np.prod(space.shape))
        if 1 <= size <= _LARGEST_OBSERVATION:
            return size
    raise ConfigurationError(
        f"environment = {environment!r}: its observations, {space}, are not supported. {_SUPPORTED}"
    )


def _check_actions(space: Any, environment: str) -> bool:
    """Whether they are continuous."""
    if isinstance(space, gym.spaces.Discrete):
        return False
    if isinstance(space, gym.spaces.Box) and np.issubdtype(space.dtype, np.floating):
        low, high = np.isfinite(space.low), np.isfinite(space.high)
        if space.low.size and bool(np.all(low == high)):
            return True
    raise ConfigurationError(
        f"environment = {environment!r}: its actions, {space}, are not supported. {_SUPPORTED}"
    )


def _check_fit(kind: str, continuous: bool, discrete_states: bool, spec: EnvironmentSpec) -> None:
    where = f"policy = {kind!r}: {spec.environment!r} has"
    if continuous and kind != "gaussian":
        raise ConfigurationError(f"{where} continuous actions: expected 'gaussian' or 'auto'")
    if not continuous and kind == "gaussian":
        raise ConfigurationError(f"{where} discrete actions: expected 'categorical' or 'auto'")
    if kind != "tabular":
        return
    if not discrete_states:
        raise ConfigurationError(f"{where} no finite set of states: expected 'categorical'")
    if spec.observation_scale != 1.0:
        raise ConfigurationError(
            f"observation_scale = {spec.observation_scale!r}: a tabular policy sees the state's "
            "number, which can not be scaled"
        )
