"""Batched, for oracles that compute with Python in the loop: the same grouping, no padding."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from simulator.executors.common import rule_kernels
from simulator.executors.segmented import Segmented
from simulator.oracle import HostOracle, Sample
from simulator.resume import Arrays, stacked

Vector = NDArray[Any]


class Request(NamedTuple):
    """Arguments of ``HostOracle.sample_batch``."""

    points: Vector
    workers: NDArray[np.int32]
    ks: NDArray[np.int32]
    seeds: NDArray[np.int64]


class BatchedHost(Segmented):
    """Batches of a host oracle. See :class:`Execution` and :class:`Segmented`.

    Somebody who executes several side by side may ask what one is :meth:`about_to_ask`, have it
    computed together with what others need, and :meth:`give` it.
    """

    _oracle: HostOracle

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kernels = rule_kernels(self._oracle, self._rule)
        self._points: list[Vector] = []  # the window: versions new to the segment
        self._waiting: dict[int, Vector] = {}  # position in the plan -> gradient
        self._given: Sample | None = None

    def _take_batch_step(self, segment: int) -> None:
        total = jnp.zeros_like(self._x0)
        point = self._query()
        for positions in self._chunks(segment):
            gradients = self._sample(point, positions)
            total = total + self._weights[positions] @ gradients
        self._update(total, 0)

    def _compute(self, segment: int) -> None:
        for positions in self._chunks(segment):
            points = self._points_of(positions)
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

    @property
    def params(self) -> Vector:
        """The model now, [dim]; a copy."""
        return np.array(self._state.params)

    @property
    def waiting_bytes(self) -> int:
        """What its points and the gradients that wait may take, at most."""
        longest = int(np.diff(self._plan.computes).max(initial=1))
        vectors = self._plan.n_slots + self._plan.longest + min(longest, self._max_rows)
        return vectors * self._x0.nbytes

    @property
    def is_in_need(self) -> bool:
        """Whether it is :meth:`about_to_ask` and nobody has answered yet."""
        return self._given is None and len(self._asked()) == 1

    def about_to_ask(self) -> Request | None:
        """What the next step needs first; None if it has it, or needs too much for one call.

        Only for an execution that has a step left.
        """
        if not self.is_in_need:
            return None
        (positions,) = self._asked()
        is_batch = self._plan.is_batch[self._segment]
        points = self._query() if is_batch else self._points_of(positions)
        return self._request(points, positions)

    def _asked(self) -> list[NDArray[np.int64]]:
        """What is computed at the version it has reached, by call."""
        is_at_start = self.version == self._plan.bounds[self._segment]
        return self._chunks(self._segment) if is_at_start else []

    def give(self, sample: Sample) -> None:
        """The answer to what it is about to ask."""
        self._given = sample

    def advance(self, version: int) -> None:
        """Take steps until ``version``, or until it needs gradients that it has not been given."""
        stop = min(version, int(self._plan.bounds[self._segment + 1]))
        self._advance_to(stop)

    def _points_of(self, positions: NDArray[np.int64]) -> Vector:
        """Where these gradients of the segment at hand are taken, [len(positions), dim]."""
        window = [self._query()] if self._window_is_new() else self._points
        return np.stack([window[i] for i in self._plan.points[positions]])

    def _chunks(self, segment: int) -> list[NDArray[np.int64]]:
        start, stop = self._plan.computes[segment : segment + 2]
        cuts = range(self._max_rows, stop - start, self._max_rows)
        return np.split(np.arange(start, stop), cuts) if stop > start else []

    def _sample(self, points: Vector, positions: NDArray[np.int64]) -> Vector:
        """Gradients [len(positions), dim] at one point [dim], or one each."""
        rows = self._plan.rows[positions]
        sample, self._given = self._given, None
        if sample is None:
            sample = self._oracle.sample_batch(*self._request(points, positions))
        self._lengths[rows] = sample.length
        self._values[rows] = sample.value
        self.gradients_computed += len(rows)
        return np.asarray(sample.gradient, self._x0.dtype)

    def _request(self, points: Vector, positions: NDArray[np.int64]) -> Request:
        rows = self._plan.rows[positions]
        seeds = np.full(len(rows), self._host_seed)
        return Request(points, self._schedule.worker[rows], self._schedule.k[rows], seeds)

    def _query(self) -> Vector:
        return np.asarray(self._kernels.query(self._state, self._hyperparameters))

    def _update(self, gradient: Any, staleness: int) -> None:
        self._state = self._kernels.update(
            self._state, gradient, staleness, self._n_workers, self._hyperparameters
        )
