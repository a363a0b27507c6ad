"""How many times sooner one method reaches a target than another, with paired intervals.

Every method meets the same delays on a seed (common random numbers), so seeds pair: we average
log(baseline seconds / method seconds) over seeds and resample those differences, not the two
methods apart. A seed on which either method never reached the target has no ratio; dropping it
would favour whoever failed, so with any such seed no verdict is given, and the count is stated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analysis.statistics import Floats

LEVEL = 0.95
FEWEST_SEEDS = 3
"""Fewer differences than this get no interval."""

_RESAMPLES = 9999


@dataclass(frozen=True)
class SpeedUp:
    """Baseline's time to target over the method's.

    Attributes:
        ratio: geometric mean over the seeds on which both reached it; NaN if there is none.
        low, high: 95 % percentile bootstrap interval; NaN without one. With few seeds it is
            narrower than its level says.
        both_reached, seeds: on how many seeds both methods reached the target, of how many.
    """

    ratio: float
    low: float
    high: float
    both_reached: int
    seeds: int

    def verdict(self) -> str:
        """What may be said, in words."""
        if not self.seeds:
            return "no seed in common"
        if self.both_reached < self.seeds:
            censored = self.seeds - self.both_reached
            return f"no verdict: target not reached by both on {censored} of {self.seeds} seeds"
        if np.isnan(self.low):
            return f"no verdict: fewer than {FEWEST_SEEDS} seeds"
        if self.low <= 1 <= self.high:
            return "no significant difference"
        times = self.ratio if self.ratio > 1 else 1 / self.ratio
        return f"{times:.3g} times {'faster' if self.ratio > 1 else 'slower'}"


def speed_up(method: Mapping[int, float], baseline: Mapping[int, float]) -> SpeedUp:
    """Compare two methods' times to a target, paired by seed.

    Args:
        method, baseline: seconds to target by seed, > 0, inf where it was not reached; seeds
            that only one has are left out.

    Raises:
        ValueError: a time that is NaN, zero or negative.
    """
    shared = sorted(method.keys() & baseline.keys())
    mine = np.array([method[seed] for seed in shared], float)
    theirs = np.array([baseline[seed] for seed in shared], float)
    if not (np.all(mine > 0) and np.all(theirs > 0)):
        raise ValueError("seconds to target: expected numbers > 0, or inf where not reached")
    both = np.isfinite(mine) & np.isfinite(theirs)
    logs = np.log(theirs[both]) - np.log(mine[both])
    ratio = float(np.exp(logs.mean())) if len(logs) else float("nan")
    low, high = _interval(logs)
    return SpeedUp(ratio, low, high, len(logs), len(shared))


def _interval(logs: Floats) -> tuple[float, float]:
    if len(logs) < FEWEST_SEEDS:
        return float("nan"), float("nan")
    from scipy.stats import bootstrap

    # A fixed generator: the same records give the same table.
    found = bootstrap(
        (logs,),
        np.mean,
        n_resamples=_RESAMPLES,
        confidence_level=LEVEL,
        method="percentile",
        random_state=np.random.default_rng(0),
    ).confidence_interval
    return float(np.exp(found.low)), float(np.exp(found.high))
