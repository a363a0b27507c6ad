"""Every method of a run against one of them: times to a target, paired by seed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from analysis.speedups import LEVEL, speed_up
from analysis.statistics import default_target, seconds_to_target
from simulator.errors import ConfigurationError, nearest
from simulator.records import Metric, RunDirectory


def compare(
    directory: str | Path | RunDirectory,
    baseline: str | None = None,
    metric: str | None = None,
    target: float | None = None,
) -> list[str]:
    """Say in words how many times sooner each method reaches a target than the baseline.

    A (method, seed) that failed never reached the target; one that was interrupted is left out.

    Args:
        directory: the run.
        baseline: method id; default the run's last.
        metric: name; default the run's first.
        target: of the metric; default the run's, or 90 % of the way the best method went.

    Returns:
        Lines of text: what is compared, then one per other method.

    Raises:
        ConfigurationError: no such run, method or metric, or a target that is no comparison.
    """
    run = directory if isinstance(directory, RunDirectory) else RunDirectory.open(directory)
    chosen, names = run.metric(metric), [record.id for record in run.methods]
    reference = names[-1] if baseline is None else baseline
    if reference not in names:
        raise ConfigurationError(
            f"baseline = {reference!r}: {run.path} has no such method.{nearest(reference, names)}"
        )
    goal = _target(run, chosen, target)
    times = {name: _times(run, name, chosen, goal) for name in names}
    if any(seconds == 0 for seeds in times.values() for seconds in seeds.values()):
        raise ConfigurationError(f"target = {goal:g}: reached before any training; name another")
    lines = [f"Time until {chosen.label} is {goal:.4g}, against {reference}:"]
    for name in names:
        if name != reference:
            found = speed_up(times[name], times[reference])
            low, high = found.low, found.high
            if high < 1:  # it says how many times slower
                low, high = 1 / high, 1 / low
            interval = f" ({LEVEL:.0%} interval {low:.3g} to {high:.3g})"
            shown = "" if math.isnan(found.low) or found.both_reached < found.seeds else interval
            lines.append(f"  {name}: {found.verdict()}{shown}, {found.seeds} seeds")
    return lines


def _target(run: RunDirectory, metric: Metric, asked: float | None) -> float:
    if asked is not None:
        goal = asked
    elif metric.name == run.metrics[0].name and metric.target is not None:
        goal = metric.target
    else:
        groups = {record.id: run.curves(record.id) for record in run.methods}
        groups = {name: [c for c in group if len(c.seconds)] for name, group in groups.items()}
        groups = {name: group for name, group in groups.items() if group}
        if not groups:
            raise ConfigurationError(f"{run.path}: nothing to compare: no method has finished")
        goal = default_target(groups, metric)
    if not np.isfinite(goal):
        raise ConfigurationError(f"target = {goal}: no method got better; name one as a number")
    return goal


def _times(run: RunDirectory, method: str, metric: Metric, target: float) -> dict[int, float]:
    rows = [row for row in run.runs(method) if not row.error.startswith("interrupted")]
    times = {row.seed: math.inf for row in rows}
    for curve in run.curves(method):
        if curve.seed in times and len(curve.seconds):
            times[curve.seed] = seconds_to_target(curve, metric, target)
    return times
