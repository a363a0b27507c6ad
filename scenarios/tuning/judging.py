"""Judging candidates on the tuning seeds, and how much each hyperparameter matters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.statistics import area_under_curve, seconds_to_target
from scenarios.store.run_file import StoredRun
from scenarios.tuning.candidates import Candidate
from scenarios.tuning.settings import Criterion


@dataclass(frozen=True)
class Judged:
    """A candidate with its score.

    Attributes:
        candidate: which.
        score: mean over the tuning seeds: of the metric's average over simulated time, or of the
            seconds to the target, those of a seed that missed it counting as the run's length.
        n_seeds: with a curve that stays finite.
        n_lost: that failed or diverged. A candidate that lost any comes after all that lost fewer.
        n_missed: that did not reach the target.
        rank: lower is better.
    """

    candidate: Candidate
    score: float
    n_seeds: int
    n_lost: int
    n_missed: int
    rank: tuple[float, ...]


def judge_candidate(
    candidate: Candidate, runs: Sequence[StoredRun | None], criterion: Criterion
) -> Judged:
    """Score a candidate.

    Args:
        candidate: which.
        runs: of each tuning seed; None for one that failed.
        criterion: how.
    """
    finite = [run for run in runs if run is not None and not run.row.error]
    n_lost = len(runs) - len(finite)
    if not finite:
        return Judged(candidate, math.nan, 0, n_lost, 0, (n_lost, 0, math.inf, math.inf))
    sign = -1.0 if finite[0].metrics[0].higher_is_better else 1.0
    area = float(np.mean([_average(run) for run in finite]))
    if criterion == "area":
        return Judged(candidate, area, len(finite), n_lost, 0, (n_lost, 0, sign * area))
    times = [_time(run) for run in finite]
    n_missed = sum(math.isinf(time) for time in times)
    ends = [float(run.row.end_seconds) for run in finite]
    score = float(np.mean(np.minimum(times, ends)))
    rank = (n_lost, n_missed, score, sign * area)
    return Judged(candidate, score, len(finite), n_lost, n_missed, rank)


def _average(run: StoredRun) -> float:
    """The main metric averaged over simulated time."""
    seconds, values = run.curve.seconds, run.curve.metrics[run.metrics[0].name]
    end = float(seconds[-1])
    return area_under_curve(seconds, values, 0.0, end) / end if end > 0 else float(values[-1])


def _time(run: StoredRun) -> float:
    metric = run.metrics[0]
    target = math.nan if metric.target is None else metric.target
    return seconds_to_target(run.curve, metric, target)


@dataclass(frozen=True)
class Sensitivity:
    """The best score that is possible with one value of one hyperparameter.

    Attributes:
        hyperparameter, value: which.
        judged: the best candidate with it.
    """

    hyperparameter: str
    value: Any
    judged: Judged


def sensitivities(judged: Sequence[Judged]) -> list[Sensitivity]:
    """Of every value of every hyperparameter that was tried, the others chosen as well as can be.

    Ordered by hyperparameter and, where they can be, by value.
    """
    best: dict[tuple[str, Any], Judged] = {}
    for one in judged:
        for name, value in one.candidate.settings.items():
            known = best.get((name, value))
            if known is None or one.rank < known.rank:
                best[name, value] = one
    order = list(dict.fromkeys(name for name, _ in best))
    found = [Sensitivity(name, value, one) for (name, value), one in best.items()]
    return sorted(found, key=lambda s: (order.index(s.hyperparameter), _sortable(s.value)))


def _sortable(value: Any) -> tuple[int, Any]:
    return (0, value) if isinstance(value, int | float) else (1, str(value))
