"""Sequential: one gradient at a time, in the order of events. The reference: right, and slow.

for s = 0, 1, ...:
    g = sum over the gradients of step s of weight * gradient(point of its version)
    state = update(state, g)
    point of version s + 1 = query(state)
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from algorithms.update_rule import UpdateRule
from simulator.executors.common import Execution, key_of_gradient, per_problem, rule_kernels
from simulator.oracle import JaxOracle, Sample
from simulator.resume import Arrays, stacked


@per_problem
def _compiled(oracle: JaxOracle, rule: UpdateRule) -> Any:
    del rule
    return jax.jit(oracle.sample)


class Sequential(Execution):
    """One gradient at a time. See :class:`Execution`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kernels = rule_kernels(self._oracle, self._rule)
        self._rows, self._offsets = self._schedule.used_rows()
        self._last_step = np.full(self._schedule.n_steps + 1, -1)  # that needs a version's point
        version, step = self._schedule.version[self._rows], self._schedule.step[self._rows]
        np.maximum.at(self._last_step, version, step)
        self._points: dict[int, Any] = {}
        self._keep_point()

    def _keep_point(self) -> None:
        """Keep the current query point, if a gradient is ever taken there."""
        if self._last_step[self.version] >= 0:
            point = self._kernels.query(self._state, self._hyperparameters)
            self._points[self.version] = np.asarray(point)

    def _advance_to(self, version: int) -> None:
        while self.version < version:
            self._step(self._rows[self._offsets[self.version] : self._offsets[self.version + 1]])

    def _step(self, rows: Any) -> None:
        total = jnp.zeros_like(self._x0)
        for row in rows.tolist():
            total = total + float(self._schedule.weight[row]) * self._gradient(row)
        versions = self._schedule.version[rows].tolist()
        staleness = self.version - min(versions)
        self._state = self._kernels.update(
            self._state, total, staleness, self._n_workers, self._hyperparameters
        )
        for version in set(versions):
            if self._last_step[version] == self.version:
                del self._points[version]
        self.version += 1
        self._keep_point()

    def _waiting_work(self) -> dict[str, NDArray[Any]]:
        points = list(self._points.values())
        return {
            "versions": np.array(list(self._points), np.int64),
            "points": stacked(points, self._oracle.dim, self._x0.dtype),
        }

    def _resume_work(self, arrays: Arrays) -> None:
        self._points = dict(zip(arrays["versions"].tolist(), arrays["points"], strict=True))

    def _gradient(self, row: int) -> jax.Array:
        """The gradient in this row, [dim]."""
        worker, k = self._schedule.worker[row], self._schedule.k[row]
        point = self._points[int(self._schedule.version[row])]
        sample = self._sample(point, worker, k)
        self._lengths[row] = sample.length
        self._values[row] = sample.value
        self.gradients_computed += 1
        return jnp.asarray(sample.gradient)

    def _sample(self, point: Any, worker: np.int32, k: np.int32) -> Sample:
        if isinstance(self._oracle, JaxOracle):
            key = key_of_gradient(self._seed, worker, k)
            sample: Sample = _compiled(self._oracle, self._rule)(point, worker, key)
            return sample
        batch = self._oracle.sample_batch(
            point, np.array([worker]), np.array([k]), np.array([self._host_seed])
        )
        return Sample(*(column[0] for column in batch))
