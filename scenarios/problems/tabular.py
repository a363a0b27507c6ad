"""Policy gradients in tabular MDPs, and their exact objective to judge points by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from algorithms.policies import TabularPolicy
from algorithms.policy_gradient import Estimator, policy_gradient
from scenarios.problems import mdp_constants
from scenarios.problems.constants import Constants
from scenarios.problems.exact_specs import MDPSpec
from scenarios.problems.mdp import MDP, Float64, WorkerMDPs, worker_mdps
from scenarios.problems.mdp_exact import average_objective, optimal_objective
from scenarios.problems.problem import (
    DISCOUNTED_RETURN,
    GRADIENT_NORM,
    TRUNCATED_GRADIENT_NORM,
    TRUNCATED_RETURN,
    Metric,
)
from scenarios.problems.rollout import collect
from simulator.oracle import Oracle, Sample
from simulator.precision import precision
from simulator.randomness import Purpose, key_of

Array = jax.Array


def thresholds(probability: Float64) -> Float64:
    """What a uniform draw u in [0, 1) is compared with: state j if j of them are <= u.

    Cumulative sums along the last axis; from the last state with positive probability on they are
    2, so that rounding never leads to a state that is impossible.
    """
    later = np.flip(np.cumsum(np.flip(probability, -1), -1), -1) - probability
    return np.where(later > 0, np.cumsum(probability, -1), 2.0)


class Tables(NamedTuple):
    """Everything a trajectory needs, [n_variants, ...]; see :class:`scenarios.problems.mdp.MDP`."""

    first: Array
    after: Array
    reward: Array
    terminal: Array

    @classmethod
    def of(cls, mdps: MDP, dtype: Any) -> Tables:
        """Thresholds for the probabilities; in ``dtype``."""
        first, after, reward = (
            jnp.asarray(table, dtype)
            for table in (thresholds(mdps.initial), thresholds(mdps.transition), mdps.reward)
        )
        return cls(first, after, reward, jnp.asarray(mdps.terminal))


@dataclass(frozen=True, eq=False)
class TabularEnvironment:
    """One worker's MDP as an environment: see ``scenarios.problems.rollout.JaxEnvironment``."""

    tables: Tables
    variant: Array | int

    def _draw(self, limits: Array, key: Array) -> Array:
        return jnp.sum(limits <= jax.random.uniform(key, (), limits.dtype), dtype=jnp.int32)

    def reset(self, key: Array) -> tuple[Array, Array]:
        """A first state, which the policy sees."""
        state = self._draw(self.tables.first[self.variant], key)
        return state, state

    def step(self, state: Array, action: Array, key: Array) -> tuple[Array, Array, Array, Array]:
        """The next state, twice; the reward; whether it is terminal."""
        # The whole index at once: under vmap, a table for every trajectory would be made otherwise.
        after = self._draw(self.tables.after[self.variant, state, action], key)
        reward = self.tables.reward[self.variant, state, action, after]
        return after, after, reward, self.tables.terminal[self.variant, after]


class TabularOracle:
    """Policy gradients in tabular MDPs as a pure function of (point, worker, key).

    Args:
        workers: their MDPs.
        estimator: horizon and discount.
        dtype: of everything.
    """

    def __init__(self, workers: WorkerMDPs, estimator: Estimator, dtype: Any) -> None:
        _, states, actions, _ = workers.mdps.transition.shape
        self.policy = TabularPolicy(states, actions, dtype)
        self.dim = self.policy.dim
        self.n_workers = len(workers.of_worker)
        self.estimator = estimator
        self._tables = Tables.of(workers.mdps, dtype)
        self._of_worker = jnp.asarray(workers.of_worker)

    def initial_point(self, seed: int) -> Array:
        """Zeros: the uniform policy, whatever the seed."""
        return self.policy.initial(key_of(seed, Purpose.INITIAL_POINT))

    def sample(self, point: Array, worker: Array, key: Array) -> Sample:
        """Gradient of -J_H of ``worker`` from one trajectory; its length; undiscounted return."""
        variant = 0 if len(self._tables.first) == 1 else self._of_worker[worker]
        environment = TabularEnvironment(self._tables, variant)
        trajectory = collect(self.policy, point, environment, key, self.estimator.horizon)
        gradient = policy_gradient(self.policy, point, trajectory, self.estimator)
        return Sample(gradient, trajectory.length, trajectory.rewards.sum())


class Exact(NamedTuple):
    """The average objective at some points, in float64.

    Attributes:
        value: J, [E].
        gradient: grad J, [E, dim].
        truncated_value: J_H, [E].
        truncated_gradient: grad J_H, [E, dim]: what sampled gradients are on average, minus sign.
    """

    value: Float64
    gradient: Float64
    truncated_value: Float64
    truncated_gradient: Float64


class TabularProblem:
    """A softmax policy to train in tabular MDPs.

    Args:
        spec: what to build.
        n_workers: size of the fleet.

    Raises:
        ConfigurationError: see :func:`scenarios.problems.mdp.worker_mdps`.
    """

    oracle: Oracle
    jax_oracle: TabularOracle
    metrics: tuple[Metric, ...] = (
        DISCOUNTED_RETURN,
        GRADIENT_NORM,
        TRUNCATED_RETURN,
        TRUNCATED_GRADIENT_NORM,
    )

    def __init__(self, spec: MDPSpec, n_workers: int) -> None:
        self.workers = worker_mdps(spec, n_workers)
        self.discount, self.horizon = spec.discount, spec.horizon
        estimator = Estimator(spec.horizon, spec.discount)
        self.jax_oracle = TabularOracle(self.workers, estimator, jnp.dtype(spec.dtype))
        self.oracle = self.jax_oracle
        self._exact_one = jax.jit(self._exact_at)

    def objective(self, point: Array, horizon: int | None = None) -> Array:
        """J, [], or J_H for a horizon: the average over workers; traceable, differentiable.

        In the precision of the block it is called in.
        """
        return self._objective(point, horizon, self.workers.mdps, self.workers.share)

    def _objective(self, point: Array, horizon: int | None, mdps: MDP, share: Any) -> Array:
        mdps, share = jax.tree.map(jnp.asarray, (mdps, share))
        return average_objective(mdps, share, point, self.discount, horizon)

    def _exact_at(self, point: Array, mdps: MDP, share: Array) -> Exact:
        with_gradient = jax.value_and_grad(self._objective)
        whole = with_gradient(point, None, mdps, share)
        return Exact(*whole, *with_gradient(point, self.horizon, mdps, share))

    def exact(self, points: Any) -> Exact:
        """J, J_H and their gradients at ``points`` [E, dim]."""
        with precision("float64"):
            # Arguments, not constants, which would be part of what is compiled.
            tables = jax.tree.map(jnp.asarray, (self.workers.mdps, self.workers.share))
            rows = [self._exact_one(point, *tables) for point in np.asarray(points, np.float64)]
            return Exact(*(np.stack(column) for column in zip(*rows, strict=True)))

    def evaluate(self, points: Any, seed: int) -> dict[str, Float64]:
        """Exact J, |grad J|, J_H, |grad J_H| in float64: [E] each."""
        del seed
        exact = self.exact(points)
        return {
            DISCOUNTED_RETURN.name: exact.value,
            GRADIENT_NORM.name: np.linalg.norm(exact.gradient, axis=1),
            TRUNCATED_RETURN.name: exact.truncated_value,
            TRUNCATED_GRADIENT_NORM.name: np.linalg.norm(exact.truncated_gradient, axis=1),
        }

    @cached_property
    def optimal_value(self) -> float:
        """The mean over workers of max J_i: max J if they share an MDP, else an upper bound."""
        best = [
            optimal_objective(self.workers.variant(index), self.discount)
            for index in range(self.workers.n)
        ]
        return float(self.workers.share @ best)

    @cached_property
    def initial_gap(self) -> float:
        """Delta: ``optimal_value`` minus J at the initial point."""
        return self.optimal_value - float(self.exact(np.zeros((1, self.oracle.dim))).value[0])

    @cached_property
    def constants(self) -> Constants:
        """Proved upper bounds: see ``scenarios.problems.mdp_constants``."""
        return mdp_constants.proved(self)
