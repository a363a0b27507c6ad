"""Batched, for oracles that compute with Python in the loop: the same grouping, no padding."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from simulator.executors.common import rule_kernels
from simulator.executors.segmented import Segmented
from simulator.oracle import HostOracle
from simulator.resume import Arrays, stacked

Vector = NDArray[Any]


class BatchedHost(Segmented):
    """Batches of a host oracle. See :class:`Execution` and :class:`Segmented`."""

    _oracle: HostOracle

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kernels = rule_kernels(self._oracle, self._rule)
        self._points: list[Vector] = []  # the window: versions new to the segment
        self._waiting: dict[int, Vector] = {}  # position in the plan -> gradient

    def _take_batch_step(self, segment: int) -> None:
        total = jnp.zeros_like(self._x0)
        point = self._query()
        for positions in self._chunks(segment):
            gradients = self._sample(point, positions)
            total = total + self._weights[positions] @ gradients
        self._update(total, 0)

    def _compute(self, segment: int) -> None:
        if self._window_is_new():
            self._points = [self._query()]
        for positions in self._chunks(segment):
            points = np.stack([self._points[i] for i in self._plan.points[positions]])
            self._waiting.update(
                zip(positions.tolist(), self._sample(points, positions), strict=True)
            )
        self._points = []

    def _take_steps(self, first: int, stop: int) -> None:
        offsets, staleness = self._plan.offsets, self._plan.staleness
        for step in range(first, stop):
            positions = self._plan.uses[offsets[step] : offsets[step + 1]]
            gradients = np.stack([self._waiting.pop(i) for i in positions.tolist()])
            self._update(self._weights[positions] @ gradients, int(staleness[step]))
            self._points.append(self._query())

    def _waiting_work(self) -> dict[str, Vector]:
        dim, dtype = self._oracle.dim, self._x0.dtype
        return {
            **super()._waiting_work(),
            "points": stacked(self._points, dim, dtype),
            "waiting": np.array(list(self._waiting), np.int64),
            "gradients": stacked(list(self._waiting.values()), dim, dtype),
        }

    def _resume_work(self, arrays: Arrays) -> None:
        super()._resume_work(arrays)
        self._points = list(arrays["points"])
        waiting = arrays["waiting"].tolist()
        self._waiting = dict(zip(waiting, arrays["gradients"], strict=True))

    def _chunks(self, segment: int) -> list[NDArray[np.int64]]:
        start, stop = self._plan.computes[segment : segment + 2]
        cuts = range(self._max_rows, stop - start, self._max_rows)
        return np.split(np.arange(start, stop), cuts) if stop > start else []

    def _sample(self, points: Vector, positions: NDArray[np.int64]) -> Vector:
        """Gradients [len(positions), dim] at one point [dim], or one each."""
        rows = self._plan.rows[positions]
        seeds = np.full(len(rows), self._host_seed)
        sample = self._oracle.sample_batch(
            points, self._schedule.worker[rows], self._schedule.k[rows], seeds
        )
        self._lengths[rows] = sample.length
        self._values[rows] = sample.value
        self.gradients_computed += len(rows)
        return np.asarray(sample.gradient, self._x0.dtype)

    def _query(self) -> Vector:
        return np.asarray(self._kernels.query(self._state, self._hyperparameters))

    def _update(self, gradient: Any, staleness: int) -> None:
        self._state = self._kernels.update(
            self._state, gradient, staleness, self._n_workers, self._hyperparameters
        )
