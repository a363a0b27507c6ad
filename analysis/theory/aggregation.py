"""Exact times of one aggregation: from the instant the server sends a point to its next step.

Work in flight is cancelled at a step, so every step takes the same time; the step after a larger
first batch too. ``star``: worker i starts ``down_i`` seconds after the step, and the server steps
when the last contributor's vector is there, ``up_i`` seconds after the last gradient. An AllReduce
of kappa seconds adds kappa. Source: Tyurin & Richtarik (2023), arXiv 2305.12387; Tyurin et al.
(2025), arXiv 2509.24305; Tyurin (2024), arXiv 2408.04929 for speeds that change.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.theory.fleet import Seconds, check_gradients, check_share, checked
from analysis.theory.progress import ConstantSpeeds, Progress, first_instant
from simulator.errors import ConfigurationError

_ROUNDING = 1e-9
"""Relative distance from equality below which Malenia's condition is tested in integers."""


def rennala_seconds(workers: Progress | ArrayLike, batch_size: int) -> float:
    """t_R(M) = min{ t : sum_i floor(t/h_i) >= M }; inf if never.

    Args:
        workers: h, [n_workers] in any order, or a :class:`Progress`.
        batch_size: M >= 1.

    Returns:
        The float nearest to the exact time for constant speeds (the same floats as h in, no
        rounding between); to 1e-12 relative for piecewise constant ones.

    >>> rennala_seconds([1.0, 2.0], 3)
    2.0
    """
    fleet = _fleet(workers)
    target = check_gradients("batch_size", batch_size)
    at_most = math.inf
    if isinstance(fleet, ConstantSpeeds):  # anyone alone is done by then
        at_most = float(fleet.finish_seconds(np.full(fleet.n_workers, float(target))).min())
        if at_most == math.inf:
            return math.inf
    instant = first_instant(lambda t: bool(fleet.counts(t).sum() >= target), at_most)
    return _finished(fleet, instant)


def malenia_seconds(workers: Progress | ArrayLike, batch_size: int) -> float:
    """t_M(M) = min{ t : (1/n sum_i 1/floor(t/h_i))^-1 >= M/n }, tested in integers; inf if never.

    In particular t >= max h. Arguments and precision: as :func:`rennala_seconds`.

    >>> malenia_seconds([1.0, 2.0], 3)   # 2^2 >= 3 (1/2 + 1) fails at t = 2, holds at t = 3
    3.0
    """
    fleet = _fleet(workers)
    target = check_gradients("batch_size", batch_size)
    at_most = math.inf
    if isinstance(fleet, ConstantSpeeds):  # M each are enough
        at_most = float(fleet.finish_seconds(np.full(fleet.n_workers, float(target))).max())
        if at_most == math.inf:
            return math.inf
    instant = first_instant(lambda t: is_balanced(fleet.counts(t), target), at_most)
    return _finished(fleet, instant)


def is_balanced(counts: NDArray[np.float64], batch_size: int) -> bool:
    """Malenia's rule n^2 >= M sum_i 1/M_i, exactly; False while a worker has none.

    Args:
        counts: M_i, [n_workers], integers.
        batch_size: M.
    """
    if counts.min() < 1:
        return False
    left, right = float(len(counts)) ** 2, batch_size * float((1.0 / counts).sum())
    if abs(left - right) > _ROUNDING * (left + right):
        return left > right
    values, how_many = np.unique(counts, return_counts=True)
    pairs = zip(values.tolist(), how_many.tolist(), strict=True)
    inverse_sum = sum(Fraction(int(many), int(value)) for value, many in pairs)
    return len(counts) ** 2 >= batch_size * inverse_sum


def synchronous_seconds(
    seconds_per_gradient: ArrayLike,
    gradients_per_worker: int = 1,
    wait_for: int | None = None,
    down_seconds: ArrayLike | float = 0.0,
    up_seconds: ArrayLike | float = 0.0,
) -> float:
    """The m-th smallest of down_i + b h_i + up_i; m < n are backup workers.

    Args:
        seconds_per_gradient: h, [n_workers] in any order.
        gradients_per_worker: b >= 1.
        wait_for: m, from 1 to n_workers; default all.
        down_seconds, up_seconds: [n_workers] >= 0, or one number for all.

    Source: Chen et al. (2016), arXiv 1604.00981, for m < n.
    """
    times = cycle_seconds(seconds_per_gradient, gradients_per_worker, down_seconds, up_seconds)
    count = len(times) if wait_for is None else check_share("wait_for", wait_for, len(times))
    return float(np.partition(times, count - 1)[count - 1])


def cycle_seconds(
    seconds_per_gradient: ArrayLike,
    gradients_per_worker: int = 1,
    down_seconds: ArrayLike | float = 0.0,
    up_seconds: ArrayLike | float = 0.0,
) -> Seconds:
    """down_i + b h_i + up_i, [n_workers]: from a worker's point to its gradient's arrival."""
    fleet = ConstantSpeeds(seconds_per_gradient, down_seconds)
    batch = check_gradients("gradients_per_worker", gradients_per_worker)
    return fleet.finish_seconds(np.full(fleet.n_workers, float(batch))) + _per_worker(
        up_seconds, fleet.n_workers, "up_seconds"
    )


def arrivals_per_second(
    seconds_per_gradient: ArrayLike,
    down_seconds: ArrayLike | float = 0.0,
    up_seconds: ArrayLike | float = 0.0,
) -> float:
    """sum_i 1/(down_i + h_i + up_i): gradients reaching an asynchronous server, in the long run.

    By time t exactly sum_i floor(t / (down_i + h_i + up_i)) have. The asynchronous method steps at
    this rate, buffered at 1/B of it, Ringmaster at no more than it.
    """
    return float(np.sum(1.0 / cycle_seconds(seconds_per_gradient, 1, down_seconds, up_seconds)))


def rennala_star_seconds(
    seconds_per_gradient: ArrayLike,
    batch_size: int,
    down_seconds: ArrayLike | float,
    up_seconds: ArrayLike | float,
) -> float:
    """Rennala over a star: C + max up_i of the contributors, C when the counts total M.

    Of several gradients finished at C only as many count as M needs, in order of the workers.

    Args:
        seconds_per_gradient: h, [n_workers], in the order of the workers.
        batch_size: M >= 1.
        down_seconds, up_seconds: [n_workers] >= 0, or one number for all.
    """
    fleet = ConstantSpeeds(seconds_per_gradient, down_seconds)
    up = _per_worker(up_seconds, fleet.n_workers, "up_seconds")
    close = rennala_seconds(fleet, batch_size)
    if not math.isfinite(close):
        return math.inf
    before = fleet.counts(float(np.nextafter(close, 0.0)))
    together = fleet.counts(close) - before
    missing = batch_size - before.sum()
    is_needed = (together > 0) & (np.cumsum(together) - together < missing)
    return close + float(up[(before > 0) | is_needed].max())


def malenia_star_seconds(
    seconds_per_gradient: ArrayLike,
    batch_size: int,
    down_seconds: ArrayLike | float,
    up_seconds: ArrayLike | float,
) -> float:
    """Malenia over a star: every worker contributes. Arguments as :func:`rennala_star_seconds`."""
    fleet = ConstantSpeeds(seconds_per_gradient, down_seconds)
    up = _per_worker(up_seconds, fleet.n_workers, "up_seconds")
    return malenia_seconds(fleet, batch_size) + float(up.max())


def _fleet(workers: Progress | ArrayLike) -> Progress:
    return workers if isinstance(workers, Progress) else ConstantSpeeds(workers)


def _finished(fleet: Progress, instant: float) -> float:
    """The time of the last gradient counted at ``instant``: the same, less what was granted."""
    if not math.isfinite(instant):
        return math.inf
    counts = fleet.counts(instant)
    return float(fleet.finish_seconds(counts)[counts > 0].max())


def _per_worker(values: ArrayLike | float, n_workers: int, field: str) -> Seconds:
    array = np.asarray(values, dtype=np.float64)
    array = checked(
        np.full(n_workers, array) if array.ndim == 0 else array, field, is_zero_allowed=True
    )
    if len(array) != n_workers:
        raise ConfigurationError(f"{field}: {len(array)} numbers for {n_workers} workers")
    return array
