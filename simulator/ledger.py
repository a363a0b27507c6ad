"""The ledger: what the engine writes down while it runs, column by column."""

from __future__ import annotations

from array import array
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.messages import Average
from simulator.schedule import Direction, Schedule, Status

# Rows are packed bytes: one call writes a row, and NumPy reads the columns without converting.
_COMPUTATION = np.dtype([("worker", "i4"), ("version", "i4"), ("start", "f8"), ("stop", "f8")])
_STEP = np.dtype([("seconds", "f8"), ("close", "f8"), ("uploads", "i8"), ("used", "i8")])
_MESSAGE = np.dtype([("worker", "i4"), ("direction", "i4"), ("sent", "f8"), ("received", "f8")])
_pack_computation = Struct("=iidd").pack
_unpack_computation = Struct("=iidd").unpack_from
_pack_step = Struct("=ddqq").pack
_pack_message = Struct("=iidd").pack


class Ledger:
    """Growing rows of a :class:`Schedule`.

    Args:
        n_workers: size of the fleet.
        average: how the gradients of a step are weighted.
    """

    def __init__(self, n_workers: int, average: Average) -> None:
        self.n_workers = n_workers
        self.n_computations = 0
        self.average = average
        self._computations = bytearray()
        self.discarded_rows = array("q")
        self.cancelled_rows = array("q")
        self.cancelled_at = array("d")
        self.void_rows = array("q")
        self.used_rows = array("q")
        self._steps = bytearray()
        self._messages = bytearray()
        self._raw_weights: dict[int, float] = {}

    def start_computation(self, worker: int, version: int, start: float, stop: float) -> int:
        """Write down a computation's start and, if nobody stops it, its end; return its row."""
        row = self.n_computations
        self.n_computations = row + 1
        self._computations += _pack_computation(worker, version, start, stop)
        return row

    def discard(self, rows: list[int]) -> None:
        """Finished, and thrown away."""
        self.discarded_rows.extend(rows)

    def cancel(self, row: int, now: float) -> bool:
        """Dropped at ``now``, before it finished.

        Returns:
            False if it would have started at this very instant: then it never started, and its
            row is struck out.
        """
        if _unpack_computation(self._computations, row * _COMPUTATION.itemsize)[2] == now:
            self.void_rows.append(row)
            return False
        self.cancelled_rows.append(row)
        self.cancelled_at.append(now)
        return True

    def weigh(self, rows: list[int], weight: float) -> None:
        """Set relative weights other than 1."""
        self._raw_weights.update(dict.fromkeys(rows, weight))

    def take_step(self, rows: list[int], close: float, now: float, uploads: int) -> None:
        """Average the gradients in ``rows`` into a server step."""
        if len(rows) == 1:
            self.used_rows.append(rows[0])
        else:
            self.used_rows.extend(rows)
        self._steps += _pack_step(now, close, uploads, len(self.used_rows))

    def message(self, worker: int, direction: Direction, sent: float, received: float) -> None:
        """Write down a message over a link."""
        self._messages += _pack_message(worker, direction, sent, received)

    def worker_of(self, row: int) -> int:
        """Who does the computation in that row."""
        return int(_unpack_computation(self._computations, row * _COMPUTATION.itemsize)[0])

    def version_of(self, row: int) -> int:
        """Version of the point of the computation in that row."""
        return int(_unpack_computation(self._computations, row * _COMPUTATION.itemsize)[1])

    def weights(self, rows: list[int]) -> NDArray[np.float64]:
        """Weights of the gradients in ``rows``, averaged into one step, [len(rows)]."""
        return normalised_weights(
            np.zeros(len(rows), np.int64),
            np.array([self.worker_of(row) for row in rows]),
            np.array([self._raw_weights.get(row, 1.0) for row in rows]),
            self.average,
            self.n_workers,
        )

    def kept_rows(self) -> NDArray[np.bool_]:
        """Rows that were not struck out, [rows written]."""
        kept = np.ones(self.n_computations, bool)
        kept[np.array(self.void_rows, np.int64)] = False
        return kept

    def schedule(self, end_seconds: float, stalled: str) -> Schedule:
        """Freeze into a schedule."""
        computations = np.frombuffer(self._computations, _COMPUTATION)
        steps = np.frombuffer(self._steps, _STEP)
        messages = np.frombuffer(self._messages, _MESSAGE)
        status, step = self._outcomes(steps["used"])
        stop = computations["stop"].copy()
        stop[np.array(self.cancelled_rows, np.int64)] = self.cancelled_at
        weight = np.zeros(len(computations))
        used = step >= 0
        weight[used] = normalised_weights(
            step[used],
            computations["worker"][used],
            self._raw()[used],
            self.average,
            self.n_workers,
        )
        kept = self.kept_rows()
        worker = computations["worker"][kept]
        return Schedule(
            n_workers=self.n_workers,
            end_seconds=end_seconds,
            worker=worker,
            k=_running_count(worker),
            version=computations["version"][kept],
            start_seconds=computations["start"][kept],
            stop_seconds=stop[kept],
            status=status[kept],
            step=step[kept],
            weight=weight[kept],
            step_seconds=steps["seconds"].copy(),
            close_seconds=steps["close"].copy(),
            uploads=steps["uploads"].copy(),
            message_worker=messages["worker"].copy(),
            message_direction=messages["direction"].astype(np.int8),
            message_sent_seconds=messages["sent"].copy(),
            message_received_seconds=messages["received"].copy(),
            stalled=stalled,
        )

    def _outcomes(self, used_ends: NDArray[np.int64]) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
        """Status and step of every row."""
        used = np.array(self.used_rows, np.int64)
        step = np.full(self.n_computations, -1, np.int32)
        step[used] = np.repeat(np.arange(len(used_ends)), np.diff(used_ends, prepend=0))
        status = np.zeros(self.n_computations, np.int8)
        status[used] = Status.USED
        status[np.array(self.discarded_rows, np.int64)] = Status.DISCARDED
        status[np.array(self.cancelled_rows, np.int64)] = Status.CANCELLED
        return status, step

    def _raw(self) -> NDArray[np.float64]:
        raw = np.ones(self.n_computations)
        raw[list(self._raw_weights)] = list(self._raw_weights.values())
        return raw


def normalised_weights(
    step: NDArray[Any],
    worker: NDArray[Any],
    relative: NDArray[np.float64],
    average: Average,
    n_workers: int,
) -> NDArray[np.float64]:
    """Weights that add up to 1 in every step, by the coordinator's average.

    Args:
        step, worker: int, [n_used], where each used gradient went and whose it is.
        relative: [n_used], weights as the coordinator gave them, > 0.
        average: over gradients or over workers.
        n_workers: size of the fleet.
    """
    group, share = step.astype(np.int64), 1.0
    if average is Average.WORKERS:
        group = np.unique(group * n_workers + worker, return_inverse=True)[1]
        share = 1.0 / n_workers
    return np.asarray(share * relative / np.bincount(group, relative)[group])


def _running_count(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """How many times each value has been seen before, [len(values)]."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    is_first = np.r_[True, ordered[1:] != ordered[:-1]] if len(values) else np.zeros(0, bool)
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(values)), 0))
    count = np.empty(len(values), np.int32)
    count[order] = np.arange(len(values)) - first
    return count
