"""Delays replayed from a file: worker i's k-th computation takes the k-th second on record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.delay_files import DelayFile, read_delay_file
from simulator.delays import Sampler, checked_seconds, scaled
from simulator.errors import ConfigurationError
from simulator.randomness import Purpose

_SHOWN = 10


class Trace:
    """``scale[worker] * recorded[worker][k mod len(recorded[worker])]`` seconds.

    Args:
        recorded: for each worker its seconds in order, >= 0; lengths may differ.
        scale: factor per worker, [n_workers], >= 0, default 1; inf never finishes.
        field: what messages call ``recorded``.

    Raises:
        ConfigurationError: a worker without seconds, a negative or NaN number.
    """

    is_random = False

    def __init__(
        self,
        recorded: Sequence[ArrayLike],
        scale: ArrayLike | None = None,
        field: str = "recorded",
    ) -> None:
        if not recorded:
            raise ConfigurationError(f"{field}: expected at least one worker")
        self.n_workers = len(recorded)
        factors = checked_seconds(np.ones(self.n_workers) if scale is None else scale, "scale")
        if len(factors) != self.n_workers:
            raise ConfigurationError(
                f"scale: {len(factors)} numbers for {self.n_workers} workers of the trace"
            )
        self._per_worker = [
            scaled(checked_seconds(seconds, f"{field}[{worker}]"), factors[worker])
            for worker, seconds in enumerate(recorded)
        ]
        self._lengths = np.array([len(seconds) for seconds in self._per_worker])
        self._starts = np.concatenate([[0], np.cumsum(self._lengths)[:-1]])
        self._flat = np.concatenate(self._per_worker)

    def sampler(self, seed: int, purpose: Purpose) -> Sampler:
        """See ``simulator.delays.Delays``."""
        per_worker = [seconds.tolist() for seconds in self._per_worker]

        def sample(worker: int, k: int) -> float:
            seconds: list[float] = per_worker[worker]
            return seconds[k % len(seconds)]

        return sample

    def seconds(
        self, seed: int, purpose: Purpose, workers: NDArray[np.int32], ks: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """See ``simulator.delays.Delays``."""
        return self._flat[self._starts[workers] + ks % self._lengths[workers]]

    def bounds_seconds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """See ``simulator.delays.Delays``."""
        least = np.array([seconds.min() for seconds in self._per_worker])
        greatest = np.array([seconds.max() for seconds in self._per_worker])
        return least, greatest

    def mean_seconds(self) -> NDArray[np.float64]:
        """See ``simulator.delays.Delays``; over one cycle of the replay."""
        return np.array([seconds.mean() for seconds in self._per_worker])


def read_trace(
    path: Path,
    n_workers: int,
    scale: ArrayLike | None = None,
    column: str | None = None,
    workers: Sequence[int] | Literal["all"] | None = None,
) -> Trace:
    """Read a CSV or Parquet file of worker, step, seconds: one row per computation, in any order.

    Workers are numbered from 0. A worker's rows are replayed by increasing step and then from the
    first again; steps need not start at 0 or be consecutive.

    Args:
        path: a ``.csv`` or ``.parquet`` file.
        n_workers: of the fleet.
        scale: factor per worker, [n_workers], default 1.
        column: of the seconds; default ``seconds``, or the one that ends in ``seconds``.
        workers: which of the file's workers the fleet's are, [n_workers]; may repeat; ``"all"``
            takes them in order, whatever their numbers. Default: the file must have exactly
            0 .. n_workers - 1.

    Raises:
        ConfigurationError: missing or unreadable file, a missing or ambiguous column, a number
            that is no worker, step or delay, workers the file does not have or has too many of.
    """
    table = read_delay_file(path, column)
    worker = table.counts("worker")
    step = table.counts("step")
    seconds = table.seconds()
    _check_unique(table, worker, step)
    chosen = _chosen_workers(table, worker, n_workers, workers)
    order = np.lexsort((step, worker))
    names, first = np.unique(worker[order], return_index=True)
    by_worker = dict(zip(names.tolist(), np.split(seconds[order], first[1:]), strict=True))
    return Trace([by_worker[index] for index in chosen], scale, str(path))


def read_values(path: Path, column: str | None = None) -> NDArray[np.float64]:
    """Read one column of delays in seconds, [n_rows], for an empirical distribution.

    Args:
        path: a ``.csv`` or ``.parquet`` file.
        column: default ``seconds``, the one that ends in ``seconds``, or the only one.

    Raises:
        ConfigurationError: missing or unreadable file, a missing or ambiguous column, a value
            that is no delay.
    """
    return read_delay_file(path, column).seconds()


def _check_unique(table: DelayFile, worker: NDArray[np.int64], step: NDArray[np.int64]) -> None:
    order = np.lexsort((step, worker))
    same = (np.diff(worker[order]) == 0) & (np.diff(step[order]) == 0)
    for position in np.flatnonzero(same):
        row, again = order[position], order[position + 1]
        raise ConfigurationError(
            f"{table.where(again)}: worker {worker[row]}, step {step[row]} is there twice, first "
            f"in {table.position(row)}; expected each step of a worker once"
        )


def _chosen_workers(
    table: DelayFile,
    worker: NDArray[np.int64],
    n_workers: int,
    workers: Sequence[int] | Literal["all"] | None,
) -> list[int]:
    present = set(worker.tolist())
    if workers == "all":
        chosen = sorted(present)
    else:
        chosen = list(range(n_workers)) if workers is None else [int(i) for i in workers]
    if len(chosen) != n_workers:
        raise ConfigurationError(
            f"workers: {len(chosen)} of the file's for {n_workers} workers of the fleet; expected "
            "one for each"
        )
    missing = sorted(set(chosen) - present)
    if missing:
        hint = " (workers are numbered from 0)" if workers is None and 0 in missing else ""
        if workers is None and len(present) == n_workers:
            hint += "; workers = 'all' replays the file's in order, whatever their numbers"
        raise ConfigurationError(
            f"{table.path}: no rows for worker {_some(missing)}, which the fleet of {n_workers} "
            f"needs; the file has worker {_some(sorted(present))}{hint}"
        )
    extra = sorted(present - set(chosen))
    if extra and workers is None:
        raise ConfigurationError(
            f"{table.path}: has rows for worker {_some(extra)} too, but the fleet has {n_workers} "
            f"workers; set the fleet's workers to {max(present) + 1}, or list the file's workers "
            "to replay as `workers`"
        )
    return chosen


def _some(indices: Sequence[Any]) -> str:
    shown = ", ".join(str(index) for index in indices[:_SHOWN])
    rest = len(indices) - _SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown
