"""Mean times of one aggregation when delays are random: gamma distributed, of any shape.

Each computation of worker i takes a time of its own, gamma distributed with mean h_i and shape a
(a = 1 is exponential; the squared coefficient of variation is 1/a). Its k-th gradient is finished
after a gamma time of mean k h_i and shape k a, so by time t it has finished N_i(t) of them,
P(N_i(t) >= k) = P(a, k; t), a renewal process (Cox 1962, Renewal Theory). A step ends at the first
time T when the counts are enough, and

    E T = integral over t >= 0 of P(counts are not enough at t),

which is computed by Gauss-Legendre quadrature, to about 1e-9 relative. Work in flight is cancelled
at a step, so that steps are independent and alike. ``straggler theory`` puts the means h_i into the
formulas for constant times instead, which is too short for whoever waits for a slowest worker
(Jensen): ``scenarios.validation`` shows by how much.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.theory.aggregation import is_balanced
from analysis.theory.fleet import Seconds, check_gradients, check_share, checked
from analysis.theory.setting import check_number
from simulator.errors import ConfigurationError

Floats = NDArray[np.float64]

_NODES = 20
_PANELS = 60
_NEGLIGIBLE = 1e-13
_MOST_OUTCOMES = 300_000


def expected_rennala_seconds(mean_seconds: ArrayLike, shape: float, batch_size: int) -> float:
    """E min{ t : sum_i N_i(t) >= M }. For exponential delays, M / sum_i 1/h_i.

    Args:
        mean_seconds: h, [n_workers], > 0, in any order.
        shape: a > 0.
        batch_size: M >= 1.

    Raises:
        ConfigurationError: a number is out of range.

    >>> round(expected_rennala_seconds([1.0, 2.0], 1.0, 3), 9)   # 3 / (1 + 1/2)
    2.0
    """
    means = _finite(mean_seconds)
    target = check_gradients("batch_size", batch_size)

    def unfinished(times: Floats) -> Floats:
        total = np.zeros((target, len(times)))  # P(the workers so far have finished k), k < M
        total[0] = 1.0
        for mean in means:
            own = _probabilities(times, mean, shape, target)
            total = np.array([np.sum(total[: k + 1] * own[k::-1], axis=0) for k in range(target)])
        return np.sum(total, axis=0)

    return _integral(unfinished, float(means.min()) * target)


def expected_malenia_seconds(mean_seconds: ArrayLike, shape: float, batch_size: int) -> float:
    """E min{ t : (1/n sum_i 1/N_i(t))^-1 >= M/n }, by looking at all outcomes of the counts.

    Counts above 6 M + 6 n are lumped together. Arguments: as :func:`expected_rennala_seconds`; the
    number of outcomes limits this to few workers.

    Raises:
        ConfigurationError: a number is out of range, or there are too many outcomes.
    """
    means = _finite(mean_seconds)
    target = check_gradients("batch_size", batch_size)
    most = 6 * target + 6 * len(means)
    if (most + 1) ** len(means) > _MOST_OUTCOMES:
        raise ConfigurationError(
            f"batch_size = {batch_size} of {len(means)} workers: more than {_MOST_OUTCOMES:,} "
            "outcomes to look at; expected fewer workers or a smaller batch"
        )
    waiting = [
        counts
        for counts in product(range(most + 1), repeat=len(means))
        if not is_balanced(np.array(counts, np.float64), target)
    ]
    columns = np.array(waiting).T

    def unfinished(times: Floats) -> Floats:
        chances = []
        for mean in means:
            own = _probabilities(times, mean, shape, most)
            chances.append(np.concatenate([own, 1 - own.sum(axis=0, keepdims=True)]))
        return np.sum(
            np.prod([own[column] for own, column in zip(chances, columns, strict=True)], axis=0),
            axis=0,
        )

    return _integral(unfinished, float(means.max()) * target)


def expected_synchronous_seconds(
    mean_seconds: ArrayLike,
    shape: float,
    gradients_per_worker: int = 1,
    wait_for: int | None = None,
) -> float:
    """The mean of the m-th smallest of n independent gamma times of mean b h_i and shape b a.

    Args:
        mean_seconds: h, [n_workers], > 0, in any order.
        shape: a > 0.
        gradients_per_worker: b >= 1.
        wait_for: m, from 1 to n_workers; default all.

    Raises:
        ConfigurationError: a number is out of range.
    """
    means = _finite(mean_seconds)
    batch = check_gradients("gradients_per_worker", gradients_per_worker)
    count = len(means) if wait_for is None else check_share("wait_for", wait_for, len(means))

    def unfinished(times: Floats) -> Floats:
        done = np.zeros((count, len(times)))  # P(k of the workers so far are done), k < m
        done[0] = 1.0
        for mean in means:
            chance = _finished(times, mean, shape, batch)
            shifted = np.concatenate([np.zeros((1, len(times))), done[:-1]])
            done = done * (1 - chance) + shifted * chance
        return np.sum(done, axis=0)

    return _integral(unfinished, float(means.max()) * batch)


def expected_arrivals(mean_seconds: ArrayLike, shape: float, seconds: float) -> float:
    """sum_i E N_i(t): gradients that an asynchronous server has received by t.

    In the long run t sum_i 1/h_i (elementary renewal theorem).

    Args:
        mean_seconds: h, [n_workers], > 0, in any order.
        shape: a > 0.
        seconds: t >= 0.
    """
    means = _finite(mean_seconds)
    check_number("seconds", seconds, is_zero_allowed=True)
    total, time = 0.0, np.array([seconds])
    for mean in means:
        count = 1
        while (chance := float(_finished(time, mean, shape, count)[0])) > _NEGLIGIBLE:
            total += chance
            count += 1
    return total


def _finite(mean_seconds: ArrayLike) -> Seconds:
    means = checked(mean_seconds, "mean_seconds")
    if not np.isfinite(means).all():
        raise ConfigurationError("mean_seconds: expected finite numbers > 0 (seconds)")
    return means


def _finished(times: Floats, mean: float, shape: float, count: int) -> Floats:
    """P(N(t) >= count), [len(times)]."""
    from scipy.special import gammainc

    check_number("shape", shape, is_zero_allowed=False)
    return np.asarray(gammainc(count * shape, times * shape / mean))


def _probabilities(times: Floats, mean: float, shape: float, below: int) -> Floats:
    """P(N(t) = k) for k < ``below``, [below, len(times)]."""
    at_least = [np.ones_like(times)]
    at_least += [_finished(times, mean, shape, count) for count in range(1, below + 1)]
    return -np.diff(np.array(at_least), axis=0)


def _integral(unfinished: Callable[[Floats], Floats], guess: float) -> float:
    """Of a function that falls from 1 to 0, over all t >= 0."""
    end = guess
    while float(unfinished(np.array([end]))[0]) > _NEGLIGIBLE:
        end *= 1.5
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    edges = end * np.linspace(0, 1, _PANELS + 1) ** 2  # shapes below 1 are steep at 0
    total = 0.0
    for low, high in pairwise(edges.tolist()):
        half = (high - low) / 2
        total += half * float(weights @ unfinished(low + half * (1 + nodes)))
    return total
