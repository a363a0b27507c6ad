"""Curves of several seeds as one: last-value-hold, quantiles, areas, times to a target.

Conventions, stated once:

- A metric is a step function: it holds its value until the next evaluation (*last-value-hold*),
  and before the first evaluation it has the first's value.
- The band is the 20 % to 80 % range over seeds, around the median; quantiles interpolate linearly
  between order statistics (NumPy's ``linear``).
- A NaN metric means that the run has diverged. It counts as the worst value there is, so that
  diverging seeds pull a median down instead of dropping out of it. A quantile that lands on a
  diverged seed is NaN.
- A target that is not reached has the time ``inf``: the run is censored at its end. Quantiles of
  such times are right as long as the quantile itself is finite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.records import Curve, Metric

LOW, HIGH = 0.2, 0.8
TARGET_FRACTION = 0.9
Floats = NDArray[np.float64]


class Band(NamedTuple):
    """Median and 20 to 80 % range over seeds: numbers, or arrays over a grid."""

    median: Any
    low: Any
    high: Any


def hold(x: Floats, y: Floats, grid: Floats) -> Floats:
    """The step function through (x, y) at ``grid``, [len(grid)].

    Where several points share an x, the last one counts.

    Args:
        x: never falling, [n_points], n_points >= 1.
        y: values, [n_points].
        grid: any order.
    """
    index = np.searchsorted(x, grid, side="right") - 1
    return y[np.maximum(index, 0)]


def common_grid(xs: Sequence[NDArray[Any]], max_points: int = 2000) -> Floats:
    """A grid on which nothing of any curve is lost: every x there is, or evenly many of them.

    Args:
        xs: positions of each curve, at least one of them with a point.
        max_points: beyond this, ``max_points`` evenly spaced values instead.
    """
    grid = np.unique(np.concatenate(xs).astype(np.float64))
    if len(grid) > max_points:
        return np.linspace(grid[0], grid[-1], max_points)
    return grid


def quantile(values: ArrayLike, q: float) -> Any:
    """Quantile over the first axis, linear, where values may be infinite.

    As ``numpy.quantile``, except that next to an infinite value it is that value, not NaN.

    Args:
        values: [n_seeds, ...] without NaN, n_seeds >= 1.
        q: in [0, 1].

    Returns:
        [...], or a number.
    """
    ordered = np.sort(np.asarray(values, np.float64), axis=0)
    position = q * (len(ordered) - 1)
    lower = int(position)
    below, above = ordered[lower], ordered[min(lower + 1, len(ordered) - 1)]
    weight = position - lower
    if weight == 0:
        return below
    # Written so that inf - inf never arises; an infinite neighbour decides.
    return np.where(below == above, below, (1 - weight) * below + weight * above)[()]


def band(values: ArrayLike, higher_is_better: bool) -> Band:
    """Median and 20 to 80 % range over seeds of a metric; NaN where a diverged seed decides.

    Args:
        values: [n_seeds, ...]; NaN or infinite: diverged.
        higher_is_better: which way is worst.
    """
    values = np.asarray(values, np.float64)
    worst = -np.inf if higher_is_better else np.inf
    ranked = np.where(np.isfinite(values), values, worst)
    parts = [quantile(ranked, q) for q in (0.5, LOW, HIGH)]
    return Band(*(np.where(np.isfinite(part), part, np.nan)[()] for part in parts))


def band_over(curves: Sequence[Curve], metric: Metric, position: str) -> tuple[Floats, Band]:
    """One method's metric against a position, over its seeds.

    Seeds may end at different positions (gradients used by the horizon, say): each is held to the
    end of the longest.

    Args:
        curves: of one method, each with a point or more; at least one.
        metric: which.
        position: "seconds", "step", "gradients", "computed" or "communications".

    Returns:
        The grid, [n_grid], and the band on it.
    """
    xs = [np.asarray(getattr(curve, position), np.float64) for curve in curves]
    grid = common_grid(xs)
    held = [hold(x, curve.metrics[metric.name], grid) for x, curve in zip(xs, curves, strict=True)]
    return grid, band(held, metric.higher_is_better)


def area_under_curve(x: Floats, y: Floats, start: float, end: float) -> float:
    """Integral of the step function through (x, y) from ``start`` to ``end``.

    Args:
        x: never falling, [n_points], n_points >= 1.
        y: values, [n_points]; a NaN in the range makes the area NaN.
        start, end: start <= end; the last value is held beyond the last point.
    """
    inner = np.unique(x[(x > start) & (x < end)])
    knots = np.concatenate([[start], inner, [end]])
    widths = np.diff(knots)
    values = hold(x, y, knots[:-1])
    return float(np.sum(widths[widths > 0] * values[widths > 0]))


def final_value(curve: Curve, metric: Metric) -> float:
    """The metric at the end of the run."""
    return float(curve.metrics[metric.name][-1])


def best_value(curve: Curve, metric: Metric) -> float:
    """The best the metric was at any evaluation; NaN if it never was a number."""
    values = curve.metrics[metric.name]
    values = values[np.isfinite(values)]
    if not len(values):
        return float("nan")
    return float(values.max() if metric.higher_is_better else values.min())


def seconds_to_target(curve: Curve, metric: Metric, target: float) -> float:
    """When the metric first is as good as ``target``: simulated seconds.

    Returns:
        The time of the first evaluation that reached it, ``inf`` if none did, and NaN if
        ``target`` is.
    """
    if np.isnan(target):
        return float("nan")
    values = curve.metrics[metric.name]
    reached = values >= target if metric.higher_is_better else values <= target
    return float(curve.seconds[reached.argmax()]) if reached.any() else float("inf")


def default_target(
    curves: Mapping[str, Sequence[Curve]], metric: Metric, fraction: float = TARGET_FRACTION
) -> float:
    """A target for a run that names none: 90 % of the way that the best method went.

    The way leads from the median of all first values to the best of the methods' median final
    values. So at least one method's median gets there, whatever the scale of the metric, and the
    target does not sit in the noise around the end of a curve. It depends on which methods are in
    the run: to compare runs, name a target.

    Args:
        curves: by method, each with a point or more.
        metric: which.
        fraction: of the way, in (0, 1].

    Returns:
        The target, or NaN if no method's median ends better than the start.
    """
    sign = 1.0 if metric.higher_is_better else -1.0
    firsts = [curve.metrics[metric.name][0] for group in curves.values() for curve in group]
    finals = [
        band([final_value(curve, metric) for curve in group], metric.higher_is_better).median
        for group in curves.values()
        if group
    ]
    finals = [final for final in finals if np.isfinite(final)]
    if not finals:
        return float("nan")
    first = float(band(firsts, metric.higher_is_better).median)
    best = sign * max(sign * final for final in finals)
    if not sign * (best - first) > 0:
        return float("nan")
    return first + fraction * (best - first)
