"""Environments through Gymnasium's functional API: rollout and gradient inside one jit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from algorithms.policy_gradient import Estimator, policy_gradient
from scenarios.problems.heterogeneity import Variants, variants_of
from scenarios.problems.problem import DISCOUNTED_RETURN, RETURN, Metric
from scenarios.problems.rollout import collect, returns
from scenarios.problems.spaces import Interface, interface_of
from scenarios.problems.specs import EnvironmentSpec
from simulator.errors import ConfigurationError, nearest
from simulator.oracle import Oracle, Sample
from simulator.randomness import Purpose, key_of

Array = jax.Array

# Gymnasium computes these once, from the class's defaults; a field they depend on is not enough
# to change them. The formulas are its own, the sum in polemass_length included (classic CartPole
# has a product there: give polemass_length to get it).
_DERIVED: dict[str, dict[str, tuple[tuple[str, ...], Callable[..., Any]]]] = {
    "CartPoleParams": {
        "total_mass": (("masspole", "masscart"), lambda pole, cart: pole + cart),
        "polemass_length": (("masspole", "length"), lambda mass, length: mass + length),
    }
}
_POSITIVE = {
    "CartPoleParams": ("masscart", "masspole", "total_mass", "length", "tau"),
    "PendulumParams": ("m", "l", "dt"),
}


def check_parameters(defaults: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Complete and check one variant's parameters.

    Args:
        defaults: the functional environment's, a dataclass, or None if it has none.
        given: field -> value.

    Returns:
        ``given`` with the fields that depend on it recomputed by Gymnasium's own formulas.

    Raises:
        ConfigurationError: unknown field, or a value that is not a number of the right sign.
    """
    known = {f.name for f in dataclasses.fields(defaults)} if defaults is not None else set()
    kind = type(defaults).__name__
    for name, value in given.items():
        where = f"environment_parameters.{name}"
        if name not in known:
            hint = nearest(name, known) if known else " This environment has none."
            raise ConfigurationError(f"{where}: no such parameter.{hint}")
        if not isinstance(value, bool | int | float) or not np.isfinite(value):
            raise ConfigurationError(f"{where} = {value!r}: expected a finite number")
        if name in _POSITIVE.get(kind, ()) and value <= 0:
            raise ConfigurationError(f"{where} = {value!r}: expected a number > 0")
    full = dict(given)
    for name, (inputs, formula) in _DERIVED.get(kind, {}).items():
        if name not in given and any(i in given for i in inputs):
            full[name] = formula(*(full.get(i, getattr(defaults, i)) for i in inputs))
    return full


class FunctionalEnvironments:
    """The workers' environments, as one function of the worker's index.

    Args:
        functional: a Gymnasium ``FuncEnv``.
        interface: to the policy.
        variants: which worker has which.
    """

    def __init__(self, functional: Any, interface: Interface, variants: Variants) -> None:
        self._functional = functional
        self._interface = interface
        self._defaults = functional.get_default_params()
        parameters = [check_parameters(self._defaults, given) for given in variants.parameters]
        dtype = interface.dtype
        self._stacked = {
            name: _column([p[name] for p in parameters], dtype) for name in parameters[0]
        }
        self._observation_scale = jnp.asarray(variants.observation_scale, dtype)
        self._reward_scale = jnp.asarray(variants.reward_scale, dtype)

    def of_variant(self, variant: Array | int) -> FunctionalEnvironment:
        """One environment; ``variant`` [] may be traced."""
        chosen = {
            name: column[variant] if isinstance(column, jax.Array) else column
            for name, column in self._stacked.items()
        }
        parameters = self._defaults
        if chosen:
            parameters = dataclasses.replace(self._defaults, **chosen)
        return FunctionalEnvironment(
            self._functional,
            self._interface,
            parameters,
            self._observation_scale[variant],
            self._reward_scale[variant],
        )


def _column(values: list[Any], dtype: Any) -> Any:
    """A plain number if all are alike (XLA folds it), else an array."""
    if all(value == values[0] for value in values):
        return values[0]
    return jnp.asarray(values, None if isinstance(values[0], bool) else dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class FunctionalEnvironment:
    """One ``FuncEnv`` with its parameters and the transforms of what is seen and paid."""

    functional: Any
    interface: Interface
    parameters: Any
    observation_scale: Array
    reward_scale: Array

    def _see(self, state: Any, key: Array) -> Array:
        observation = self.functional.observation(state, key, self.parameters)
        return self.interface.observe(observation, self.observation_scale)

    def _cast(self, state: Any) -> Any:
        """One dtype from step to step: environments are not all careful with it."""

        def cast(leaf: Any) -> Array:
            array = jnp.asarray(leaf)
            floating = jnp.issubdtype(array.dtype, jnp.floating)
            return array.astype(self.interface.dtype) if floating else array

        return jax.tree.map(cast, state)

    def reset(self, key: Array) -> tuple[Any, Array]:
        """A first state and what the policy sees of it."""
        state = self._cast(self.functional.initial(key, self.parameters))
        return state, self._see(state, key)

    def step(self, state: Any, action: Array, key: Array) -> tuple[Any, Array, Array, Array]:
        """Next state, what is seen of it, reward, and whether it is terminal.

        All four share the key, as in Gymnasium.
        """
        functional, parameters = self.functional, self.parameters
        action = self.interface.hand_over(action)
        after = self._cast(functional.transition(state, action, key, parameters))
        reward = functional.reward(state, action, after, key, parameters)
        reward = jnp.asarray(reward, self.interface.dtype).reshape(()) * self.reward_scale
        terminated = jnp.asarray(functional.terminal(after, key, parameters), bool).reshape(())
        return after, self._see(after, key), reward, terminated


class JaxEnvironmentOracle:
    """Policy gradients as a pure function of (point, worker, key)."""

    def __init__(
        self,
        interface: Interface,
        environments: FunctionalEnvironments,
        variants: Variants,
        estimator: Estimator,
    ) -> None:
        self.policy = interface.policy
        self.dim = self.policy.dim
        self.n_workers = len(variants.of_worker)
        self.estimator = estimator
        self._environments = environments
        self._one_variant = variants.n == 1
        self._of_worker = jnp.asarray(variants.of_worker)

    def initial_point(self, seed: int) -> Array:
        """The policy's starting parameters, [dim]."""
        return self.policy.initial(key_of(seed, Purpose.INITIAL_POINT))

    def sample(self, point: Array, worker: Array, key: Array) -> Sample:
        """Gradient of -J_worker from one trajectory; its length; its undiscounted return."""
        variant = 0 if self._one_variant else self._of_worker[worker]
        environment = self._environments.of_variant(variant)
        trajectory = collect(self.policy, point, environment, key, self.estimator.horizon)
        gradient = policy_gradient(self.policy, point, trajectory, self.estimator)
        return Sample(gradient, trajectory.length, trajectory.rewards.sum())


def _check_traceable(oracle: JaxEnvironmentOracle, environment: str) -> None:
    """Refuse a functional environment that XLA can not run, before anything is simulated.

    Raises:
        ConfigurationError: with the environment's own complaint.
    """
    point = jax.eval_shape(oracle.initial_point, 0)
    worker = jax.ShapeDtypeStruct((), jnp.int32)
    try:
        jax.eval_shape(oracle.sample, point, worker, jax.eval_shape(jax.random.key, 0))
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise ConfigurationError(
            f"environment = {environment!r}: its functional implementation can not be traced by "
            f"JAX: {str(error).splitlines()[0]}"
        ) from error


class JaxEnvironmentProblem:
    """A policy to train in a functional environment.

    Args:
        spec: what to build.
        n_workers: size of the fleet.
        functional: a Gymnasium ``FuncEnv``.
        max_episode_steps: the environment's own time limit, or None.

    Raises:
        ConfigurationError: see ``build_problem``.
    """

    oracle: Oracle
    metrics: tuple[Metric, ...] = (RETURN, DISCOUNTED_RETURN)

    def __init__(
        self,
        spec: EnvironmentSpec,
        n_workers: int,
        functional: Any,
        max_episode_steps: int | None = None,
    ) -> None:
        interface = interface_of(functional.observation_space, functional.action_space, spec)
        variants = variants_of(spec, n_workers, interface.observation_size)
        horizon = min(spec.horizon, max_episode_steps or spec.horizon)
        estimator = Estimator(horizon, spec.discount, spec.baseline, spec.normalise)
        environments = FunctionalEnvironments(functional, interface, variants)
        self.oracle = JaxEnvironmentOracle(interface, environments, variants, estimator)
        _check_traceable(self.oracle, spec.environment)
        self._policy, self._estimator = interface.policy, estimator
        self._environments = environments
        self._share = variants.share
        self._episodes = -(-spec.evaluation_episodes // variants.n)
        self._evaluate_one = jax.jit(self._returns_of)

    def _returns_of(self, point: Array, seed: Array) -> tuple[Array, Array]:
        """Returns, plain and discounted, [n_variants, episodes] each."""
        key = key_of(seed, Purpose.EVALUATION)

        def episode(variant: Array, number: Array) -> tuple[Array, Array]:
            episode_key = jax.random.fold_in(jax.random.fold_in(key, variant), number)
            environment = self._environments.of_variant(variant)
            return returns(self._policy, point, environment, episode_key, self._estimator)

        over_episodes = jax.vmap(episode, in_axes=(None, 0))
        variants, numbers = jnp.arange(len(self._share)), jnp.arange(self._episodes)
        return jax.vmap(over_episodes, in_axes=(0, None))(variants, numbers)

    def evaluate(self, points: Any, seed: int) -> dict[str, NDArray[np.float64]]:
        """Mean returns, [E], of ``points`` [E, dim]: see ``Problem.evaluate``."""
        rows = [self._evaluate_one(point, seed) for point in jnp.asarray(points)]
        names = [metric.name for metric in self.metrics]
        table = {name: np.empty(len(rows)) for name in names}
        for i, row in enumerate(rows):
            for name, values in zip(names, row, strict=True):
                table[name][i] = self._share @ np.asarray(values, np.float64).mean(axis=1)
        return table
