"""Judging points along a run: when, by what, and what a diverged run looks like."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from scenarios.problems.problem import Problem
from scenarios.schema import EvaluationSection
from simulator.errors import ConfigurationError
from simulator.records import Curve

MAX_POINTS = 100_000


def evaluation_times(section: EvaluationSection, end_seconds: float) -> NDArray[np.float64]:
    """When points are judged: from 0 to ``end_seconds``, both included, [n_points].

    Raises:
        ConfigurationError: ``every_seconds`` asks for too many.
    """
    if end_seconds == 0:
        return np.zeros(1)
    if section.points is not None:
        return np.linspace(0.0, end_seconds, section.points)
    every = float(section.every_seconds or end_seconds)
    if end_seconds / every > MAX_POINTS:
        raise ConfigurationError(
            f"evaluation.every_seconds = {every:g}: expected at least "
            f"{end_seconds / MAX_POINTS:g}, which is {MAX_POINTS} points in {end_seconds:g} s"
        )
    times = np.arange(math.ceil(end_seconds / every)) * every
    return np.append(times[times < end_seconds], end_seconds)


def judge(
    problem: Problem, points: NDArray[np.float64], seed: int
) -> dict[str, NDArray[np.float64]]:
    """Evaluate points, [E, dim]; a metric is NaN where it or the point is not finite.

    A policy with NaN for parameters still acts, and would be given a return.
    """
    is_finite = np.isfinite(points).all(axis=1)
    metrics = {metric.name: np.full(len(points), np.nan) for metric in problem.metrics}
    if is_finite.any():
        with np.errstate(over="ignore", invalid="ignore"):  # said by the NaN
            judged = problem.evaluate(points[is_finite], seed)
        for name, values in judged.items():
            metrics[name][is_finite] = np.where(np.isfinite(values), values, np.nan)
    return metrics


def divergence(curve: Curve) -> str:
    """Since when a curve's metrics are NaN, as text; "" if it did not diverge."""
    lost = np.isnan(np.stack(list(curve.metrics.values()))).any(axis=0)
    if not lost.any():
        return ""
    return (
        f"diverged: not a finite number any more at {curve.seconds[lost.argmax()]:g} simulated "
        f"seconds (server step {curve.step[lost.argmax()]}); a smaller stepsize may help"
    )
