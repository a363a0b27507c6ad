"""Batched: gradients that depend on known versions only are computed together.

Compiled functions are shared by all executions of an oracle and a rule. Array shapes are few: a
constant batch is one shape, batches that vary are padded to at most four sizes, server steps are
a loop whose length is data, and everything else is rounded up to a power of two.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from simulator.executors.common import Execution, keys_of_gradients
from simulator.executors.host import BatchedHost
from simulator.executors.kernels import Columns, Method, Steps, kernels
from simulator.executors.plan import Plan, choose_sizes, round_up, split
from simulator.executors.segmented import Segmented
from simulator.oracle import JaxOracle
from simulator.resume import Arrays, pack, unpack
from simulator.schedule import Schedule

_MAX_PENDING = 512
_COMMON = 0.99
_SHORTEST_COLUMN = 1024
_SMALLEST_POOL = 8


def batched(schedule: Schedule, oracle: Any, *args: Any, **kwargs: Any) -> Execution:
    """An execution that batches gradients, whatever the oracle. See :class:`Execution`."""
    cls = BatchedJax if isinstance(oracle, JaxOracle) else BatchedHost
    return cls(schedule, oracle, *args, **kwargs)


class BatchedJax(Segmented):
    """Batches of a JAX oracle. See :class:`Execution` and :class:`Segmented`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        plan, dim, dtype = self._plan, self._oracle.dim, self._x0.dtype
        self._kernels = kernels(self._oracle, self._rule)
        self._method = Method(self._n_workers, self._hyperparameters)
        self._columns = self._make_columns()
        self._steps = _steps(plan)
        n_slots = max(plan.n_slots, _SMALLEST_POOL) if plan.n_slots else 1
        window = max(plan.longest, _SMALLEST_POOL) if plan.n_slots else 1
        self._pool = jnp.zeros((_power_of_two(n_slots), dim), dtype)
        self._points = jnp.zeros((_power_of_two(window), dim), dtype)
        self._width = _power_of_two(plan.widest())
        self._batch_sizes = choose_sizes(plan.counts(is_batch=True), self._max_rows)
        self._padded_sizes = _padded(plan.counts(is_batch=True), self._batch_sizes)
        self._sizes = _common_sizes(plan.counts(is_batch=False), self._max_rows)
        self._pending: list[tuple[int, int, Any, Any]] = []

    def _make_columns(self) -> Columns:
        plan, rows = self._plan, self._plan.rows
        worker = _padded_column(self._schedule.worker[rows])
        k = _padded_column(self._schedule.k[rows])
        return Columns(
            worker=worker,
            key=keys_of_gradients(self._seed, worker, k),
            point=_padded_column(plan.points),
            slot=_padded_column(plan.slots),
            weight=_padded_column(self._weights),
            use=_padded_column(plan.uses.astype(np.int32)),
        )

    def _take_batch_step(self, segment: int) -> None:
        start, stop = (int(position) for position in self._plan.computes[segment : segment + 2])
        chunks = split(stop - start, self._batch_sizes)
        if len(chunks) > 1:
            self._take_large_step(start, chunks)
            return
        ((count, size),) = chunks
        self._state, lengths, values = self._kernels.batch_step(
            self._state,
            self._columns,
            start,
            count,
            self._method,
            size=size,
            is_padded=size in self._padded_sizes,
        )
        self._note(start, count, lengths, values)

    def _take_large_step(self, start: int, chunks: list[tuple[int, int]]) -> None:
        """A step with more gradients than fit into memory at once."""
        self._points = self._kernels.put_point(self._points, self._state, self._hyperparameters)
        point, total = self._points[0], jnp.zeros_like(self._x0)
        for count, size in chunks:
            total, lengths, values = self._kernels.add_batch(
                total, point, self._columns, start, count, size=size, is_padded=True
            )
            self._note(start, count, lengths, values)
            start += count
        self._state = self._kernels.fresh_step(self._state, total, self._method)

    def _compute(self, segment: int) -> None:
        if self._window_is_new():
            self._points = self._kernels.put_point(self._points, self._state, self._hyperparameters)
        start, stop = (int(position) for position in self._plan.computes[segment : segment + 2])
        for count, size in split(stop - start, self._sizes):
            self._pool, lengths, values = self._kernels.compute(
                self._pool, self._points, self._columns, start, count, size=size
            )
            self._note(start, count, lengths, values)
            start += count

    def _take_steps(self, first: int, stop: int) -> None:
        self._state, self._points = self._kernels.take_steps(
            self._state,
            self._points,
            self._pool,
            self._columns,
            self._steps,
            first,
            stop,
            first - int(self._plan.bounds[self._segment]),
            self._method,
            width=self._width,
        )

    def _waiting_work(self) -> dict[str, NDArray[Any]]:
        return {**super()._waiting_work(), **pack("work", (self._pool, self._points))}

    def _resume_work(self, arrays: Arrays) -> None:
        super()._resume_work(arrays)
        self._pool, self._points = unpack("work", (self._pool, self._points), arrays)

    def _note(self, start: int, count: int, lengths: Any, values: Any) -> None:
        """Remember results without waiting for them."""
        self.gradients_computed += count
        self._pending.append((start, count, lengths, values))
        if len(self._pending) >= _MAX_PENDING:
            self._collect()

    @property
    def lengths(self) -> NDArray[np.int32]:
        """See :class:`Execution`."""
        self._collect()
        return super().lengths

    @property
    def values(self) -> NDArray[np.float64]:
        """See :class:`Execution`."""
        self._collect()
        return super().values

    def _collect(self) -> None:
        for start, count, lengths, values in self._pending:
            rows = self._plan.rows[start : start + count]
            self._lengths[rows] = np.asarray(lengths)[:count]
            self._values[rows] = np.asarray(values)[:count]
        self._pending.clear()


def _steps(plan: Plan) -> Steps:
    return Steps(
        offset=_padded_column(plan.offsets[:-1].astype(np.int32)),
        n_rows=_padded_column(np.diff(plan.offsets).astype(np.int32)),
        staleness=_padded_column(plan.staleness),
    )


def _padded_column(values: NDArray[Any]) -> Any:
    """On the device, with a length that schedules share."""
    padded = np.zeros(_power_of_two(max(len(values), _SHORTEST_COLUMN)), values.dtype)
    padded[: len(values)] = values
    return jnp.asarray(padded)


def _power_of_two(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()


def _padded(counts: NDArray[np.int64], sizes: tuple[int, ...]) -> set[int]:
    """The sizes that some batch does not fill: computed as if none did, to compile once."""
    return {
        size
        for total in np.unique(counts).tolist()
        for count, size in split(total, sizes)
        if count < size
    }


def _common_sizes(counts: NDArray[np.int64], largest: int) -> tuple[int, ...]:
    """Sizes for most calls; the few larger ones (n workers at the start) are split."""
    counts = counts[counts > 0]
    if len(np.unique(counts)) > 3:
        largest = min(largest, round_up(int(np.quantile(counts, _COMMON))))
    return choose_sizes(counts, largest)
