"""Part 2: with random delays, means of simulated times against predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.coordinators import COORDINATORS
from analysis.theory import renewal
from analysis.theory.fleet import Seconds
from analysis.theory.inference import largest_plausible_score, mean_interval, standard_score
from analysis.theory.steps import Cluster, step_time
from analysis.theory.validation_figures import Interval, interval_figure
from scenarios.validation.outcome import (
    Advance,
    Check,
    Disagreement,
    Effort,
    FigureCall,
    NumberTable,
    Outcome,
)
from simulator.budget import Budget
from simulator.delays import Delays
from simulator.distributions import scipy_distribution
from simulator.engine import simulate
from simulator.network import AllReduce, Network, NoNetwork

_SHAPES = {0.5: "heavy", 1.0: "exponential", 4.0: "light"}
_FALSE_ALARM = 1e-3


@dataclass(frozen=True, eq=False)
class Case:
    """A coordinator on a fleet with gamma delays.

    Attributes:
        name: of the coordinator.
        arguments: of it.
        means: h, [n_workers].
        shape: of the delays.
        kappa_seconds: mean of an exponential AllReduce, 0 for none.
        expected: mean seconds of a step; of an asynchronous one, mean steps by ``horizon``.
        horizon: seconds, of an asynchronous one.
    """

    name: str
    arguments: Mapping[str, Any]
    means: Seconds
    shape: float
    expected: float
    kappa_seconds: float = 0.0
    horizon: float = 0.0

    @property
    def short(self) -> str:
        """For a figure."""
        return f"{self.name} + AllReduce" if self.kappa_seconds else self.name

    @property
    def label(self) -> str:
        """For tables."""
        extra = "".join(f", {key} {value}" for key, value in self.arguments.items())
        kappa = f", AllReduce {self.kappa_seconds:g} s" if self.kappa_seconds else ""
        return f"{self.name}, n = {len(self.means)}{extra}{kappa}"


def run(effort: Effort, advance: Advance) -> Outcome:
    """Simulate every case many times."""
    cases = list(_cases(effort.choose(3, 12)))
    samples = effort.choose(400, 4000)
    rows, scores, intervals = [], [], []
    gaps: dict[tuple[str, float], list[float]] = {}
    for index, case in enumerate(cases):
        values = _measure(case, samples, seed=index)
        score, found = standard_score(values, case.expected), mean_interval(values)
        scores.append(score)
        by_means = _by_means(case)
        gaps.setdefault((case.name, case.shape), []).append(found.value / by_means)
        shape = _SHAPES[case.shape]
        rows.append((case.label, shape, case.expected, *found, score, found.value / by_means))
        low, mean, high = (part / case.expected for part in _ordered(found))
        intervals.append(Interval(f"{case.short}, {shape}", low, mean, high, 1.0))
        advance((index + 1) / len(cases))
    return Outcome(
        tuple(_checks(cases, np.array(scores))),
        (_jensen(gaps),),
        (
            NumberTable(
                "Mean seconds of a step (asynchronous: steps by a time), gamma delays",
                ("case", "delays", "predicted", "measured", "low", "high", "standard score",
                 "measured / formula with mean delays"),
                tuple(rows),
            ),
        ),
        (
            FigureCall(
                "2-random-delays",
                "Means of simulated step times with 99 % intervals, over the exact prediction; the "
                "first random fleet of all that were tried.",
                interval_figure,
                (intervals[: len(_SHAPES) * _KINDS], "measured mean / predicted mean",
                 "Random delays: simulated means against renewal theory"),
            ),
        ),
    )  # fmt: skip


_KINDS = 5


def _ordered(found: Any) -> tuple[float, float, float]:
    return found.low, found.value, found.high


def _cases(fleets: int) -> Iterator[Case]:
    for seed in range(fleets):
        generator = np.random.default_rng([20254, seed])
        for shape in _SHAPES:
            yield from _cases_of_a_fleet(generator, shape)


def _cases_of_a_fleet(generator: np.random.Generator, shape: float) -> Iterator[Case]:
    n_workers = int(generator.integers(2, 9))
    means = generator.uniform(0.5, 4.0, n_workers)
    size = int(generator.integers(1, 3 * n_workers))
    kappa = float(generator.uniform(0.2, 2.0))
    rennala = renewal.expected_rennala_seconds(means, shape, size)
    arguments = {"batch_size": size}
    yield Case("rennala", arguments, means, shape, rennala)
    yield Case("rennala", arguments, means, shape, rennala + kappa, kappa)
    few = means[: int(generator.integers(2, 4))]
    size = int(generator.integers(1, 4 + (len(few) == 2)))
    yield Case(
        "malenia", {"batch_size": size}, few, shape,
        renewal.expected_malenia_seconds(few, shape, size),
    )  # fmt: skip
    batch, wait_for = int(generator.integers(1, 4)), int(generator.integers(1, n_workers + 1))
    yield Case(
        "synchronous", {"gradients_per_worker": batch, "wait_for": wait_for}, means, shape,
        renewal.expected_synchronous_seconds(means, shape, batch, wait_for),
    )  # fmt: skip
    horizon = float(generator.uniform(2, 6) * means.mean())
    yield Case(
        "asynchronous", {}, means, shape,
        renewal.expected_arrivals(means, shape, horizon), horizon=horizon,
    )  # fmt: skip


def _measure(case: Case, samples: int, seed: int) -> NDArray[np.float64]:
    """Seconds of independent steps; of an asynchronous server, counts of independent runs."""
    compute = scipy_distribution("gamma", {"a": case.shape, "scale": 1 / case.shape}, case.means)
    if case.name == "asynchronous":
        budget = Budget(seconds=case.horizon)
        seeds = range(1000 * seed, 1000 * seed + samples)
        return np.array(
            [_simulate(case, compute, NoNetwork(), budget, one).n_steps for one in seeds], float
        )
    network: Network = NoNetwork()
    if case.kappa_seconds:
        network = AllReduce(scipy_distribution("expon", {}, [case.kappa_seconds]))
    schedule = _simulate(case, compute, network, Budget(steps=samples), seed)
    return np.diff(schedule.step_seconds, prepend=0.0)


def _simulate(case: Case, compute: Delays, network: Network, budget: Budget, seed: int) -> Any:
    coordinator = COORDINATORS[case.name](len(case.means), **case.arguments)
    return simulate(coordinator, compute, network, budget, seed)


def _by_means(case: Case) -> float:
    """What the formulas for constant delays say of the means."""
    cluster = Cluster(case.means, collective_seconds=case.kappa_seconds)
    seconds = step_time(case.name, case.arguments, cluster).seconds
    return case.horizon / seconds if case.horizon else seconds


def _checks(cases: list[Case], scores: NDArray[np.float64]) -> Iterator[Check]:
    from scipy.stats import chi2

    limit = largest_plausible_score(len(cases), _FALSE_ALARM)
    worst = int(np.abs(scores).argmax())
    yield Check(
        f"Every simulated mean is within {limit:.2f} standard errors of the exact one "
        f"({len(cases)} cases; a right simulator fails this once in {1 / _FALSE_ALARM:,.0f})",
        bool(np.abs(scores).max() <= limit),
        f"largest standard score {scores[worst]:+.2f} ({cases[worst].label})",
    )
    for name in dict.fromkeys(case.name for case in cases):
        own = scores[[case.name == name for case in cases]]
        total = float(np.sum(own**2))
        most = float(chi2.isf(_FALSE_ALARM, len(own)))
        yield Check(
            f"{name}: the squared scores of all cases together are plausible (at most {most:.1f})",
            total <= most,
            f"{total:.1f} over {len(own)} cases",
        )


def _jensen(gaps: Mapping[tuple[str, float], list[float]]) -> Disagreement:
    found = [
        f"{name}, {_SHAPES[shape]}: {np.median(values):.2f}"
        for (name, shape), values in gaps.items()
    ]
    return Disagreement(
        "Formulas for constant delays, given the means of random ones (as `straggler theory` does)",
        f"median of measured/formula: {'; '.join(found)}",
        "The mean of the slowest of several random times exceeds the slowest mean (Jensen), so "
        "synchronous steps take longer than predicted, Malenia's when it waits for a first "
        "gradient of everybody; collecting from whoever is ready averages delays out, and gains "
        "where the first m of n are enough.",
    )
