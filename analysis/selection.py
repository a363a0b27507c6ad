"""Which of many methods to draw: of each grid of hyperparameters, the best cell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analysis.statistics import area_under_curve
from simulator.records import Curve, Metric, RunDirectory

MOST_LINES = 8
"""More than this nobody can tell apart."""


def worth_drawing(
    run: RunDirectory, curves: Sequence[Curve], metric: Metric
) -> tuple[list[Curve], str]:
    """All curves of a few methods; of many, those of the best of each coordinator and update rule.

    The best is the one of the best mean over time, averaged over seeds; a curve that diverged
    makes it the worst.

    Args:
        run: whose methods.
        curves: of the run, at least one.
        metric: what best means.

    Returns:
        The curves to draw, and what was left out, in words; "" if nothing.
    """
    methods = [m for m in run.methods if any(curve.method == m.id for curve in curves)]
    if len(methods) <= MOST_LINES:
        return list(curves), ""
    best: dict[tuple[str, str], tuple[float, str]] = {}
    for method in methods:
        score = _score([curve for curve in curves if curve.method == method.id], metric)
        kind = (method.coordinator, method.update)
        if kind not in best or score > best[kind][0]:
            best[kind] = (score, method.id)
    chosen = {name for _, name in best.values()}
    note = f"the best of each method's settings by mean over time, {len(methods)} in all"
    return [curve for curve in curves if curve.method in chosen], note


def _score(curves: Sequence[Curve], metric: Metric) -> float:
    """Larger is better."""
    sign = 1.0 if metric.higher_is_better else -1.0
    means = [_mean_over_time(curve, metric) for curve in curves]
    score = sign * math.fsum(means) / len(means)
    return -math.inf if math.isnan(score) else score


def _mean_over_time(curve: Curve, metric: Metric) -> float:
    values, seconds = curve.metrics[metric.name], curve.seconds
    if seconds[-1] == seconds[0]:
        return float(values[-1])
    area = area_under_curve(seconds, values, float(seconds[0]), float(seconds[-1]))
    return area / float(seconds[-1] - seconds[0])
