"""Any Gymnasium environment, stepped by Python: the gradient oracle and its evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from algorithms.policy_gradient import Estimator, Trajectory, policy_gradient
from scenarios.problems.environment_pool import ROWS, EnvironmentPool, make_environment, pad
from scenarios.problems.heterogeneity import Variants, first_parameters, variants_of
from scenarios.problems.problem import DISCOUNTED_RETURN, RETURN, Metric
from scenarios.problems.spaces import Interface, interface_of
from scenarios.problems.specs import EnvironmentSpec
from simulator.oracle import Oracle, Sample
from simulator.randomness import Purpose, key_of


def _chunks(n: int) -> Iterator[slice]:
    return (slice(i, min(i + ROWS[-1], n)) for i in range(0, n, ROWS[-1]))


class HostEnvironmentOracle:
    """Policy gradients, a batch at a time, with Python stepping the environments."""

    def __init__(
        self,
        interface: Interface,
        pool: EnvironmentPool,
        variants: Variants,
        estimator: Estimator,
    ) -> None:
        self.policy = interface.policy
        self.dim = self.policy.dim
        self.n_workers = len(variants.of_worker)
        self.estimator = estimator
        self._pool = pool
        self._of_worker = variants.of_worker

        def gradient(point: jax.Array, trajectory: Trajectory) -> jax.Array:
            return policy_gradient(self.policy, point, trajectory, estimator)

        self._gradients = jax.jit(jax.vmap(gradient))

    def initial_point(self, seed: int) -> jax.Array:
        """The policy's starting parameters, [dim]."""
        return self.policy.initial(key_of(seed, Purpose.INITIAL_POINT))

    def sample_batch(self, points: Any, workers: Any, ks: Any, seeds: Any) -> Sample:
        """Gradients of -J_worker, lengths, undiscounted returns: [batch, ...] each.

        Args:
            points: [dim] shared by the batch, or [batch, dim].
            workers, ks, seeds: int arrays, [batch].
        """
        workers, ks, seeds = (np.asarray(x, np.int64) for x in (workers, ks, seeds))
        points = np.broadcast_to(np.asarray(points), (len(workers), self.dim))
        parts = [
            self._sample(points[part], workers[part], ks[part], seeds[part])
            for part in _chunks(len(workers))
        ]
        return Sample(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _sample(
        self,
        points: NDArray[Any],
        workers: NDArray[np.int64],
        ks: NDArray[np.int64],
        seeds: NDArray[np.int64],
    ) -> Sample:
        keys = [
            (seed, Purpose.GRADIENT, worker, k)
            for seed, worker, k in zip(seeds, workers, ks, strict=True)
        ]
        trajectories = self._pool.run(points, self._of_worker[workers], keys)
        rows = pad(np.arange(len(workers)))
        padded = jax.tree.map(lambda x: x[rows], (points, trajectories))
        gradients = self._gradients(*padded)[: len(workers)]
        return Sample(np.asarray(gradients), trajectories.length, trajectories.rewards.sum(axis=1))


class HostEnvironmentProblem:
    """A policy to train in any Gymnasium environment.

    Args:
        spec: what to build.
        n_workers: size of the fleet.
        max_episode_steps: the environment's own time limit, or None.

    Raises:
        ConfigurationError: see ``build_problem``.
    """

    oracle: Oracle
    metrics: tuple[Metric, ...] = (RETURN, DISCOUNTED_RETURN)

    def __init__(
        self, spec: EnvironmentSpec, n_workers: int, max_episode_steps: int | None = None
    ) -> None:
        environment = spec.environment
        first = make_environment(environment, first_parameters(spec, n_workers))
        interface = interface_of(first.observation_space, first.action_space, spec)
        variants = variants_of(spec, n_workers, interface.observation_size)
        horizon = min(spec.horizon, max_episode_steps or spec.horizon)
        self._estimator = Estimator(horizon, spec.discount, spec.baseline, spec.normalise)
        self._pool = EnvironmentPool(environment, interface, variants, horizon, spec.stepper)
        first.close()
        self.oracle = HostEnvironmentOracle(interface, self._pool, variants, self._estimator)
        self._share = variants.share
        self._episodes = -(-spec.evaluation_episodes // variants.n)

    def evaluate(self, points: Any, seed: int) -> dict[str, NDArray[np.float64]]:
        """Mean returns, [E], of ``points`` [E, dim]: see ``Problem.evaluate``."""
        points = np.asarray(points)
        shape = (len(points), len(self._share), self._episodes)
        point, variant, episode = (index.ravel() for index in np.indices(shape))
        gammas = self._estimator.discount ** np.arange(self._estimator.horizon)
        plain, discounted = np.empty(len(point)), np.empty(len(point))
        for part in _chunks(len(point)):
            keys = [
                (seed, Purpose.EVALUATION, v, e)
                for v, e in zip(variant[part], episode[part], strict=True)
            ]
            batch = self._pool.run(points[point[part]], variant[part].astype(np.int32), keys)
            rewards = np.asarray(batch.rewards, np.float64)
            plain[part] = rewards.sum(axis=1)
            discounted[part] = rewards[:, : len(gammas)] @ gammas
        return {
            metric.name: values.reshape(shape).mean(axis=2) @ self._share
            for metric, values in zip(self.metrics, (plain, discounted), strict=True)
        }
