"""Part 1: simulated aggregation times equal the exact formulas, and never exceed the bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.coordinators import COORDINATORS
from analysis.theory import aggregation, bounds
from analysis.theory.speeds import PiecewiseSpeeds
from analysis.theory.steps import step_time
from analysis.theory.validation_figures import share_figure
from scenarios.validation.fleets import RandomFleet, random_fleet
from scenarios.validation.outcome import (
    Advance,
    Check,
    Disagreement,
    Effort,
    FigureCall,
    NumberTable,
    Outcome,
    equal_share,
)
from scenarios.validation.varying_speeds import VaryingSpeeds
from simulator.budget import Budget
from simulator.delays import Constant, Delays
from simulator.engine import simulate
from simulator.network import Network, NoNetwork
from simulator.schedule import Schedule

_QUICK_FLEETS, _ALL_FLEETS = 600, 4000
_STEPS = 4
_MORE_STEPS = 60
_ROUNDING = 1e-9


@dataclass
class Tally:
    """How often something held, and the worst case.

    Attributes:
        held, total: counts.
        ratios: measured over bound, where there is one.
        first_failure: in words; "" if there is none.
    """

    held: int = 0
    total: int = 0
    ratios: list[float] = field(default_factory=list)
    first_failure: str = ""

    def note(self, is_held: bool, text: str) -> None:
        """Count one case."""
        self.total += 1
        self.held += is_held
        if not is_held and not self.first_failure:
            self.first_failure = text

    def bounded(self, measured: float, bound: float, text: str) -> None:
        """Count a time and its upper bound."""
        self.ratios.append(measured / bound)
        self.note(measured <= bound * (1 + _ROUNDING), text)

    def check(self, claim: str) -> Check:
        """As a check, which also fails where nothing was looked at."""
        found = equal_share(self.held, self.total)
        if self.ratios:
            found = (
                f"{self.held:,} of {self.total:,} within it; measured/bound at most "
                f"{max(self.ratios):.3f}, median {np.median(self.ratios):.3f}"
            )
        if self.first_failure:
            found += f"; first failure: {self.first_failure}"
        return Check(claim, 0 < self.total == self.held, found)


def run(effort: Effort, advance: Advance) -> Outcome:
    """Simulate every coordinator on thousands of random fleets."""
    count = effort.choose(_QUICK_FLEETS, _ALL_FLEETS)
    tallies = {name: Tally() for name in (*_CLAIMS, *_BOUNDS)}
    for seed in range(count):
        _exact_steps(random_fleet(seed), tallies, seed)
        _arrivals(random_fleet(seed), tallies["arrivals"], seed)
        _bounded_steps(random_fleet(seed, is_free=True), tallies, seed)
        _first_step_at_varying_speeds(seed, tallies["varying"])
        if seed % 20 == 0:
            advance(seed / count)
    checks = [tallies[name].check(claim) for name, claim in {**_CLAIMS, **_BOUNDS}.items()]
    return Outcome(
        tuple(checks),
        _looseness(tallies),
        (_ratio_table(tallies),),
        (
            FigureCall(
                "1-bounds",
                "How much of its upper bound a simulated time takes, over all random fleets.",
                share_figure,
                ({_LABELS[name]: tallies[name].ratios for name in _BOUNDS},
                 "simulated seconds / upper bound", "Times of an aggregation against their bounds"),
            ),
        ),
    )  # fmt: skip


_CLAIMS = {
    "rennala": "Rennala: every step takes t_R(M) + communication exactly, M_init in the first",
    "malenia": "Malenia: every step takes t_M(M) + communication exactly, M_init in the first",
    "synchronous": "Synchronous and backup workers: the m-th smallest of down + b h + up exactly",
    "buffered": "Buffered: the first step at the B-th arrival exactly",
    "arrivals": "Asynchronous: sum_i floor(t / (down_i + h_i + up_i)) steps by time t exactly",
    "varying": "Speeds v_i(t), piecewise constant: t_R and t_M of the first step exactly",
    "weights": "A step of Rennala averages M gradients alike, Malenia's each worker alike",
    "fresh": "Collected gradients have staleness 0, Ringmaster's less than R",
}
_BOUNDS = {
    "rennala bound": "Rennala: t_R(M) <= min_m (sum_{i<=m} 1/h_i)^-1 (M + m)",
    "rennala discard": 'Rennala, stale = "discard": at most min_m (sum_{i<=m} 1/h_i)^-1 (M + 2m)',
    "malenia bound": "Malenia: t_M(M) <= max(h_n, 2 (M/n) mean h)",
    "malenia discard": 'Malenia, stale = "discard": at most max(2 h_n, 3 (M/n) mean h)',
    "ringmaster": "Ringmaster: R consecutive steps take at most 2 min_m H_m (1 + R/m)",
}
_LABELS = {
    "rennala bound": "Rennala, cancel",
    "rennala discard": "Rennala, discard",
    "malenia bound": "Malenia, cancel",
    "malenia discard": "Malenia, discard",
    "ringmaster": "Ringmaster, R steps",
}


def _simulate(
    name: str,
    arguments: Mapping[str, Any],
    compute: Delays,
    network: Network,
    budget: Budget | None = None,
) -> Schedule:
    coordinator = COORDINATORS[name](compute.n_workers, **arguments)
    return simulate(coordinator, compute, network, budget or Budget(steps=_STEPS), 0)


def _step_seconds(schedule: Schedule) -> NDArray[np.float64]:
    return np.diff(schedule.step_seconds, prepend=0.0)


def _exact_cases(fleet: RandomFleet) -> Iterator[tuple[str, dict[str, Any]]]:
    draw, n_workers = fleet.generator.integers, fleet.n_workers
    for name in ("rennala", "malenia"):
        yield name, {"batch_size": fleet.batch_size(), "initial_batch_size": fleet.batch_size()}
    wait_for = int(draw(1, n_workers + 1))
    yield "synchronous", {"gradients_per_worker": int(draw(1, 4)), "wait_for": wait_for}
    if fleet.cluster.collective_seconds == 0:
        yield "buffered", {"buffer_size": int(draw(1, 2 * n_workers + 1))}


def _exact_steps(fleet: RandomFleet, tallies: dict[str, Tally], seed: int) -> None:
    """Times of the first steps, with any network, and the weights in them."""
    for name, arguments in _exact_cases(fleet):
        schedule = _simulate(name, arguments, Constant(fleet.seconds), fleet.network)
        predicted = step_time(name, arguments, fleet.cluster)
        times = _step_seconds(schedule)
        expected = [predicted.first_seconds, *[predicted.seconds] * (_STEPS - 1)]
        checked = 1 if name == "buffered" else _STEPS
        found = times[:checked].tolist()
        tallies[name].note(
            found == expected[:checked],
            f"fleet {seed}, {arguments}: {found} s instead of {expected[:checked]} s",
        )
        if name in ("rennala", "malenia"):
            _weigh(name, arguments, schedule, tallies["weights"], seed)


def _weigh(
    name: str, arguments: Mapping[str, Any], schedule: Schedule, tally: Tally, seed: int
) -> None:
    """Rennala: 1/M each. Malenia: 1/(n M_i) each."""
    used = schedule.step >= 0
    step, worker = schedule.step[used], schedule.worker[used]
    counts = np.zeros((schedule.n_steps, schedule.n_workers))
    np.add.at(counts, (step, worker), 1)
    if name == "malenia":
        expected = 1 / (schedule.n_workers * counts[step, worker])
    else:
        sizes = np.full(schedule.n_steps, arguments["batch_size"])
        sizes[0] = arguments["initial_batch_size"]
        expected = 1 / sizes[step]
    error = np.abs(schedule.weight[used] / expected - 1).max()
    tally.note(error < 1e-12, f"fleet {seed}, {name} {dict(arguments)}: off by {error:.1g}")


def _arrivals(fleet: RandomFleet, tally: Tally, seed: int) -> None:
    """How many steps an asynchronous server has taken by some time."""
    if fleet.cluster.collective_seconds:
        return
    cycles = aggregation.cycle_seconds(
        fleet.seconds, 1, fleet.cluster.down_seconds, fleet.cluster.up_seconds
    )
    horizon = float(np.ceil(8 * np.median(cycles) * fleet.generator.uniform(1, 3)) / 8)
    compute = Constant(fleet.seconds)
    schedule = _simulate("asynchronous", {}, compute, fleet.network, Budget(seconds=horizon))
    expected = int(np.floor(horizon / cycles).sum())
    tally.note(
        schedule.n_steps == expected,
        f"fleet {seed}: {schedule.n_steps} steps in {horizon} s instead of {expected}",
    )


def _bounded_steps(fleet: RandomFleet, tallies: dict[str, Tally], seed: int) -> None:
    """Upper bounds, and which gradients were used."""
    ordered, compute = np.sort(fleet.seconds), Constant(fleet.seconds)
    for name, bound_of in (
        ("rennala", bounds.rennala_bound_seconds),
        ("malenia", bounds.malenia_bound_seconds),
    ):
        for stale, row in (("cancel", f"{name} bound"), ("discard", f"{name} discard")):
            arguments: dict[str, Any] = {"batch_size": fleet.batch_size(), "stale": stale}
            schedule = _simulate(name, arguments, compute, fleet.network)
            _note_longest(
                _step_seconds(schedule), bound_of(ordered, arguments["batch_size"], stale),
                tallies[row], f"fleet {seed}, {arguments}",
            )  # fmt: skip
            _note_staleness(schedule, 1, tallies["fresh"], f"fleet {seed}, {name} {arguments}")
    limit = int(fleet.generator.integers(1, 2 * fleet.n_workers + 1))
    arguments = {"max_staleness": limit}
    budget = Budget(steps=limit + _MORE_STEPS)
    schedule = _simulate("ringmaster", arguments, compute, fleet.network, budget)
    since = np.concatenate([[0.0], schedule.step_seconds])
    _note_longest(
        since[limit:] - since[:-limit], bounds.ringmaster_bound_seconds(ordered, limit),
        tallies["ringmaster"], f"fleet {seed}, {arguments}",
    )  # fmt: skip
    _note_staleness(schedule, limit, tallies["fresh"], f"fleet {seed}, ringmaster {arguments}")


def _note_longest(times: NDArray[np.float64], bound: float, tally: Tally, where: str) -> None:
    longest = float(times.max())
    tally.bounded(longest, bound, f"{where}: {longest:g} s, bound {bound:g} s")


def _note_staleness(schedule: Schedule, limit: int, tally: Tally, where: str) -> None:
    largest = int(schedule.staleness().max())
    tally.note(largest < limit, f"{where}: a gradient of staleness {largest}")


def _first_step_at_varying_speeds(seed: int, tally: Tally) -> None:
    """Speeds that change: one step, since a worker's next gradient starts when the step ends."""
    generator = np.random.default_rng([20252, seed])
    n_workers, pieces = int(generator.integers(1, 12)), int(generator.integers(1, 5))
    times = np.concatenate([[0.0], np.cumsum(generator.uniform(0.5, 5, pieces - 1))])
    values = generator.uniform(0, 2, (n_workers, pieces)) * (
        generator.random((n_workers, pieces)) < 0.8
    )
    values[:, -1] = generator.uniform(0.2, 2, n_workers)  # nobody stops for ever
    speeds = PiecewiseSpeeds(times, values)
    batch_size = int(generator.integers(1, 4 * n_workers + 1))
    for name, seconds_of in (
        ("rennala", aggregation.rennala_seconds),
        ("malenia", aggregation.malenia_seconds),
    ):
        compute = VaryingSpeeds(speeds)
        arguments = {"batch_size": batch_size}
        schedule = _simulate(name, arguments, compute, NoNetwork(), Budget(steps=1))
        expected, found = seconds_of(speeds, batch_size), float(schedule.step_seconds[0])
        tally.note(
            abs(found / expected - 1) < _ROUNDING,
            f"speeds {seed}, {name} {arguments}: {found} s instead of {expected} s",
        )


def _looseness(tallies: Mapping[str, Tally]) -> tuple[Disagreement, ...]:
    """How far below their bounds times are."""
    found = [f"{_LABELS[name]} {np.median(tallies[name].ratios):.2f}" for name in _BOUNDS]
    return (
        Disagreement(
            "Upper bounds on the time of one aggregation",
            f"median of measured/bound: {', '.join(found)}",
            "The bounds give every worker one unfinished gradient (two with discard) at the end of "
            "a step, Malenia's halves floor(t/h), and Ringmaster's doubles both; fleets in which "
            "all of this happens at once are rare.",
        ),
    )


def _ratio_table(tallies: Mapping[str, Tally]) -> NumberTable:
    rows = []
    for name in _BOUNDS:
        ratios = np.array(tallies[name].ratios)
        quantiles = np.quantile(ratios, [0.05, 0.5, 0.95])
        rows.append((_LABELS[name], len(ratios), *quantiles.tolist(), float(ratios.max())))
    columns = ("coordinator", "fleets", "5 %", "median", "95 %", "largest")
    return NumberTable("Simulated time / upper bound", columns, tuple(rows))
