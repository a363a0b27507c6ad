"""The table of a run: one row per method, over its seeds. Pure data; who shows it renders it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis import statistics
from analysis.statistics import Band
from simulator.records import Curve, MethodRecord, Metric, RunDirectory, RunRow, Shares

_NOTHING = Band(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class MethodSummary:
    """One row. Bands are the median and the 20 to 80 % range over the seeds that have a curve.

    Attributes:
        method, label: id, and name for people.
        n_seeds: seeds with a curve, those that diverged included.
        n_failed: seeds that ended in an error; without a curve they are in no other number here.
        final, best: the metric at the end, and at its best evaluation; NaN: diverged.
        seconds_to_target: simulated seconds; ``inf``: not reached before the end of the run; NaN:
            there is no target.
        n_reached: seeds that reached the target.
        steps, used, discarded, cancelled, in_flight: medians over seeds.
        shares: of worker time, means over seeds (so that they add up to 1).
        length_bias: mean episode length of used gradients / of all started ones, median; NaN if
            the run does not measure it.
        errors, stalled: the different texts, in order of seed.
    """

    method: str
    label: str
    n_seeds: int
    n_failed: int
    final: Band
    best: Band
    seconds_to_target: Band
    n_reached: int
    steps: float
    used: float
    discarded: float
    cancelled: float
    in_flight: float
    shares: Shares
    length_bias: float
    errors: tuple[str, ...]
    stalled: tuple[str, ...]


@dataclass(frozen=True)
class Summary:
    """The table.

    Attributes:
        metric: what ``final``, ``best`` and the target are about.
        target: the value whose first crossing is timed; NaN if there is none.
        target_is_default: chosen by :func:`analysis.statistics.default_target`, not by the user.
        rows: in the order of the scenario, methods without any outcome left out.
    """

    metric: Metric
    target: float
    target_is_default: bool
    rows: tuple[MethodSummary, ...]


def summarise(
    directory: str | Path | RunDirectory, metric: str | None = None, target: float | None = None
) -> Summary:
    """Make the table of a run.

    Args:
        directory: the run.
        metric: name; default the run's first.
        target: default the metric's own, or else :func:`analysis.statistics.default_target`.

    Raises:
        ConfigurationError: not a readable run, or no such metric.
    """
    run = directory if isinstance(directory, RunDirectory) else RunDirectory.open(directory)
    chosen = run.metric(metric)
    curves = {
        method.id: [curve for curve in run.curves(method.id) if len(curve.seconds)]
        for method in run.methods
    }
    named = chosen.target if target is None else target
    goal = statistics.default_target(curves, chosen) if named is None else named
    rows = [
        _summarise_method(method, run.runs(method.id), curves[method.id], chosen, goal)
        for method in run.methods
        if run.runs(method.id)
    ]
    return Summary(chosen, goal, named is None, tuple(rows))


def _summarise_method(
    method: MethodRecord,
    rows: Sequence[RunRow],
    curves: Sequence[Curve],
    metric: Metric,
    target: float,
) -> MethodSummary:
    seeds = {curve.seed for curve in curves}
    ended = [row for row in rows if row.seed in seeds]
    times = [statistics.seconds_to_target(curve, metric, target) for curve in curves]
    return MethodSummary(
        method=method.id,
        label=method.label,
        n_seeds=len(curves),
        n_failed=sum(bool(row.error) for row in rows),
        final=_metric_band([statistics.final_value(curve, metric) for curve in curves], metric),
        best=_metric_band([statistics.best_value(curve, metric) for curve in curves], metric),
        seconds_to_target=_time_band(times),
        n_reached=sum(math.isfinite(time) for time in times),
        steps=_median([row.steps for row in ended]),
        used=_median([row.used for row in ended]),
        discarded=_median([row.discarded for row in ended]),
        cancelled=_median([row.cancelled for row in ended]),
        in_flight=_median([row.in_flight for row in ended]),
        shares=_mean_shares(ended),
        length_bias=_median([_length_bias(row) for row in ended]),
        errors=_distinct([row.error for row in rows]),
        stalled=_distinct([row.stalled for row in rows]),
    )


def _metric_band(values: Sequence[float], metric: Metric) -> Band:
    if not values:
        return _NOTHING
    return Band(*(float(part) for part in statistics.band(values, metric.higher_is_better)))


def _time_band(times: Sequence[float]) -> Band:
    if not times or any(math.isnan(time) for time in times):
        return _NOTHING
    quantiles = (0.5, statistics.LOW, statistics.HIGH)
    return Band(*(float(statistics.quantile(times, q)) for q in quantiles))


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if values else math.nan


def _mean_shares(rows: Sequence[RunRow]) -> Shares:
    if not rows:
        return Shares(*[math.nan] * len(Shares._fields))
    return Shares(*np.mean([row.shares for row in rows], axis=0).tolist())


def _length_bias(row: RunRow) -> float:
    return row.mean_length_used / row.mean_length_started if row.mean_length_started else math.nan


def _distinct(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))
