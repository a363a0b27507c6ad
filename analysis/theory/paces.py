"""Paces: how long a fleet takes for what nobody can share, and for a gradient that all share.

With fixed work A and shared work B (gradients), a method takes ``per_fixed A + per_shared B``
seconds; which workers count may depend on A and B.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from analysis.theory.fleet import Seconds
from analysis.theory.setting import Setting


class Rate(NamedTuple):
    """Seconds per gradient of each kind, and how many workers count."""

    per_fixed: float
    per_shared: float
    workers: int


Pace = Callable[[Setting, float, float], Rate]


def best(setting: Setting, fixed: float, shared: float) -> Rate:
    """min_m H_m (A + B/m): the m* fastest workers, always busy."""
    return _cheapest(setting.harmonic_means, fixed, shared)


def best_waited_for(setting: Setting, fixed: float, shared: float) -> Rate:
    """min_m h_m (A + B/m): each round waits for the m* fastest workers (backup workers)."""
    return _cheapest(setting.seconds_per_gradient, fixed, shared)


def slowest(setting: Setting, fixed: float, shared: float) -> Rate:
    """h_n (A + B/n): each round waits for everybody."""
    last = float(setting.seconds_per_gradient[-1])
    return Rate(last, last / setting.n_workers, setting.n_workers)


def everybody(setting: Setting, fixed: float, shared: float) -> Rate:
    """H_n (A + B/n): all workers, always busy, whether their help is worth its staleness or not."""
    mean = float(setting.harmonic_means[-1])
    return Rate(mean, mean / setting.n_workers, setting.n_workers)


def balanced(setting: Setting, fixed: float, shared: float) -> Rate:
    """h_n A + mean(h) B/n: as many gradients of everybody, in the sense of Malenia."""
    seconds = setting.seconds_per_gradient
    return Rate(float(seconds[-1]), float(seconds.mean()) / len(seconds), len(seconds))


def _cheapest(seconds: Seconds, fixed: float, shared: float) -> Rate:
    times = seconds * (fixed + shared / np.arange(1, len(seconds) + 1))
    index = int(np.argmin(times))
    return Rate(float(seconds[index]), float(seconds[index]) / (index + 1), index + 1)
