"""Bounds on the time of one aggregation for constant speeds, and how many workers to wait for.

All take h ascending. ``fixed`` and ``shared`` split an amount of work: what no number of workers
makes shorter, and what m workers share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from analysis.theory.fleet import ascending, check_gradients, harmonic_means
from simulator.errors import ConfigurationError


class BestWorkers(NamedTuple):
    """Of the m fastest workers.

    Attributes:
        seconds: the least time.
        workers: m*, the fewest with which it is reached.
    """

    seconds: float
    workers: int


def best_workers(seconds_per_gradient: ArrayLike, fixed: float, shared: float) -> BestWorkers:
    """min_m H_m (fixed + shared/m), H_m the harmonic mean of the m fastest.

    With fixed = 1 and shared = M it is the bound on Rennala's step, and m* the number of workers
    worth waiting for: slower ones shorten no step by more than they cost.

    Args:
        seconds_per_gradient: h, [n_workers], ascending.
        fixed, shared: gradients, >= 0.

    >>> best_workers([1.0, 1.0, 100.0], 1.0, 2.0)
    BestWorkers(seconds=2.0, workers=2)
    """
    for name, value in (("fixed", fixed), ("shared", shared)):
        if not value >= 0:
            raise ConfigurationError(f"{name} = {value!r}: expected a number >= 0 (gradients)")
    means = harmonic_means(seconds_per_gradient)
    seconds = means * (fixed + shared / np.arange(1, len(means) + 1))
    best = int(np.argmin(seconds))
    return BestWorkers(float(seconds[best]), best + 1)


def rennala_bound_seconds(
    seconds_per_gradient: ArrayLike, batch_size: int, stale: str = "cancel"
) -> float:
    """t_R(M) <= min_m (sum_{i<=m} 1/h_i)^-1 (M + m); with "discard", (M + 2m).

    Derivation: worker i finishes more than t/h_i - 1 gradients by t, or t/h_i - 2 if it first has
    to end a stale one, which takes at most h_i. M + m could be M + m - 1, since more than M - 1
    gradients are M. With "discard", at most twice the bound of "cancel".

    Source: Tyurin & Richtarik (2023), arXiv 2305.12387.
    """
    lost = _lost_gradients(stale)
    return best_workers(
        seconds_per_gradient, lost, check_gradients("batch_size", batch_size)
    ).seconds


def malenia_bound_seconds(
    seconds_per_gradient: ArrayLike, batch_size: int, stale: str = "cancel"
) -> float:
    """t_M(M) <= max(h_n, 2 (M/n) mean h); with "discard", max(2 h_n, 3 (M/n) mean h).

    Derivation: floor(x) >= x/2 for x >= 1, and floor(x) - 1 >= x/3 for x >= 2; so from then on
    1/n sum 1/M_i <= c mean(h)/t, which is n/M at t = c (M/n) mean h.

    Source: Tyurin & Richtarik (2023), arXiv 2305.12387; Tyurin et al. (2025), arXiv 2509.24305.
    """
    seconds = ascending(seconds_per_gradient)
    target = check_gradients("batch_size", batch_size)
    lost = _lost_gradients(stale)
    return float(max(lost * seconds[-1], (1 + lost) * target * seconds.mean() / len(seconds)))


def ringmaster_bound_seconds(seconds_per_gradient: ArrayLike, max_staleness: int) -> float:
    """R consecutive steps of Ringmaster take at most 2 min_m H_m (1 + R/m).

    Source: Maranjyan, Tyurin & Richtarik (2025), arXiv 2501.16168, lemma 4.1.
    """
    return (
        2
        * best_workers(
            seconds_per_gradient, 1.0, check_gradients("max_staleness", max_staleness)
        ).seconds
    )


def best_wait_for(seconds_per_gradient: ArrayLike, fixed: float, shared: float) -> BestWorkers:
    """min_m h_m (fixed + shared/m): how many workers a synchronous method should wait for.

    With fixed + shared/m the number of steps that m gradients a step need.
    """
    seconds = ascending(seconds_per_gradient)
    times = seconds * (fixed + shared / np.arange(1, len(seconds) + 1))
    best = int(np.argmin(times))
    return BestWorkers(float(times[best]), best + 1)


def _lost_gradients(stale: str) -> int:
    """Gradients that a worker is at most behind t/h_i."""
    if stale not in ("cancel", "discard"):
        raise ConfigurationError(f"stale = {stale!r}: expected 'cancel' or 'discard'")
    return 1 if stale == "cancel" else 2
