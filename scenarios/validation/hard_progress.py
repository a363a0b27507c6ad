"""Part 4: on the hard instance nobody finds coordinates faster than the lower bound allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.theory.discovery import least_seconds_per_coordinate, order_seconds_per_coordinate
from analysis.theory.inference import Estimate, largest_plausible_score, mean_interval
from analysis.theory.validation_figures import PanelOfSeries, Series, series_figure
from scenarios.problems.exact_specs import HardInstanceSpec
from scenarios.problems.problem import DISCOVERED
from scenarios.problems.registry import build_problem
from scenarios.validation.outcome import (
    Advance,
    Check,
    Disagreement,
    Effort,
    FigureCall,
    NumberTable,
    Outcome,
)
from scenarios.validation.runs import Recipe, Runs, execute, simulate_recipe
from simulator.budget import Budget
from simulator.precision import precision

Floats = NDArray[np.float64]

FLEETS: dict[str, Floats] = {
    "4 equal": np.ones(4),
    "10, sqrt(i)": np.sqrt(np.arange(1.0, 11.0)),
    "6 equal, 4 slow": np.array([1.0] * 6 + [50.0] * 4),
}
_COORDINATES, _CHANCE = 10, 0.1
_PATIENCE = 5.0  # times the lower bound's seconds
_FALSE_ALARM = 1e-3
_STEPSIZES = {"sgd": (0.3, 1.0, 3.0, 10.0), "nigt": (0.5, 1.0, 2.0, 4.0)}


@dataclass(frozen=True, eq=False)
class Trial:
    """A method with one stepsize on a fleet.

    Attributes:
        fleet, label, stepsize: which.
        seconds: until all coordinates are found, of each seed, [n_seeds]; at the end of the run
            if they are not, which is too early.
        found_all: whether they are, [n_seeds].
        discovered: mean over seeds, [n_points].
        at_seconds: of ``discovered``, [n_points].
        least: the lower bound on the mean of ``seconds``.
    """

    fleet: str
    label: str
    stepsize: float
    seconds: Floats
    found_all: NDArray[np.bool_]
    discovered: Floats
    at_seconds: Floats
    least: float

    def interval(self, confidence: float) -> Estimate:
        """Of mean seconds over the lower bound."""
        return mean_interval(self.seconds / self.least, confidence)


def run(effort: Effort, advance: Advance) -> Outcome:
    """Let every method, with stepsizes from small to large, race against the bound."""
    trials: list[Trial] = []
    fleets = dict(list(FLEETS.items())[: effort.choose(2, 3)])
    total = sum(len(list(_recipes(len(seconds)))) for seconds in fleets.values())
    done = 0
    for name, seconds in fleets.items():
        with precision("float64"):
            spec = HardInstanceSpec(_COORDINATES, _CHANCE, dtype="float64")
            problem = build_problem(spec, len(seconds))
            for recipe in _recipes(len(seconds)):
                trials += _race(name, seconds, problem, recipe, effort.choose(64, 512))
                done += 1
                advance(done / total)
    best = _best(trials)
    return Outcome(
        tuple(_checks(trials)),
        (_constant(best, fleets),),
        (_table(best),),
        (
            FigureCall(
                "4-hard-instance",
                "Mean number of coordinates found, each method with its best stepsize. The grey "
                "line is what the lower bound allows on average.",
                series_figure,
                (tuple(_panels(best, fleets)), "Hard instance, p = 0.1: progress per second", 3),
            ),
        ),
    )


def _recipes(n_workers: int) -> Iterator[Recipe]:
    half = max(1, n_workers // 2)
    for size in (5, 10):
        yield Recipe(f"Rennala SGD, M = {size}", "rennala", {"batch_size": size}, "sgd", {})
    momentum = {"momentum": 0.5}
    yield Recipe("Rennala NIGT, M = 5", "rennala", {"batch_size": 5}, "nigt", momentum)
    yield Recipe("Synchronous SGD", "synchronous", {}, "sgd", {})
    yield Recipe(f"Backup workers, m = {half}", "synchronous", {"wait_for": half}, "sgd", {})
    yield Recipe("Asynchronous SGD", "asynchronous", {}, "sgd", {})
    yield Recipe("Ringmaster ASGD, R = n", "ringmaster", {"max_staleness": n_workers}, "sgd", {})
    yield Recipe("AFedPG", "asynchronous", {}, "nigt", momentum)


def _race(
    fleet: str, seconds: Floats, problem: object, recipe: Recipe, n_seeds: int
) -> Iterator[Trial]:
    least = _COORDINATES * least_seconds_per_coordinate(np.sort(seconds), _CHANCE)
    schedule = simulate_recipe(recipe, seconds, Budget(seconds=_PATIENCE * least))
    stepsizes = _STEPSIZES[recipe.update]
    cells = [{"stepsize": stepsize} for stepsize in stepsizes]
    versions = np.arange(schedule.n_steps + 1)
    runs = execute(schedule, problem, recipe, range(n_seeds), versions, cells)  # type: ignore[arg-type]
    for index, stepsize in enumerate(stepsizes):
        yield _trial(fleet, recipe.label, stepsize, runs, index, least)


def _trial(fleet: str, label: str, stepsize: float, runs: Runs, index: int, least: float) -> Trial:
    discovered = runs.metrics[DISCOVERED.name][index]
    is_done = discovered >= _COORDINATES
    found_all = is_done.any(axis=1)
    first = runs.seconds[is_done.argmax(axis=1)]
    end = runs.schedule.end_seconds
    return Trial(
        fleet, label, stepsize, np.where(found_all, first, end), found_all,
        discovered.mean(axis=0), runs.seconds, least,
    )  # fmt: skip


def _checks(trials: list[Trial]) -> Iterator[Check]:
    from scipy.stats import norm

    score = largest_plausible_score(len(trials), 2 * _FALSE_ALARM)  # one-sided
    confidence = 1 - 2 * float(norm.sf(score))
    lowest = min(trials, key=lambda one: one.interval(confidence).high)
    found = lowest.interval(confidence)
    yield Check(
        f"No method with any stepsize finds coordinates faster than the lower bound ({len(trials)} "
        f"cases; a right simulator fails this once in {1 / _FALSE_ALARM:,.0f}, at the most)",
        all(one.interval(confidence).high >= 1 for one in trials),
        f"mean seconds over the bound's, least: {found} ({lowest.fleet}, {lowest.label})",
    )
    close = [one for one in trials if one.interval(0.99).value < 2 and one.found_all.all()]
    nearest = min(close, key=lambda one: one.interval(0.99).value) if close else None
    yield Check(
        "The bound is no empty one: some method comes within a factor of 2",
        nearest is not None,
        "none"
        if nearest is None
        else f"{nearest.label} on {nearest.fleet}: {nearest.interval(0.99)}",
    )


def _best(trials: list[Trial]) -> list[Trial]:
    """The best stepsize of each method and fleet."""
    found: dict[tuple[str, str], Trial] = {}
    for one in trials:
        key = one.fleet, one.label
        if key not in found or one.seconds.mean() < found[key].seconds.mean():
            found[key] = one
    return list(found.values())


def _constant(best: list[Trial], fleets: dict[str, Floats]) -> Disagreement:
    parts = []
    for name, seconds in fleets.items():
        ordered = np.sort(seconds)
        order = order_seconds_per_coordinate(ordered, _CHANCE)
        exact = least_seconds_per_coordinate(ordered, _CHANCE)
        parts.append(f"{name}: {order / exact:.2f}")
    ratios = [one.interval(0.99).value for one in best if one.found_all.all()]
    return Disagreement(
        "The bound as papers print it, min_m H_m (1 + 1/(m p)), against the exact one, E t_R(G); "
        "and methods against the latter",
        f"printed / exact {', '.join(parts)}; methods take {min(ratios):.2f} to {max(ratios):.2f} "
        "times the exact bound",
        "The printed bound holds up to a constant: it counts a whole gradient of the slowest of "
        "the m workers in each round. Methods lose by ending a batch after the coordinate has been "
        "found in it (Rennala, synchronous), by gradients that are stale when it is found "
        "(asynchronous), and by waiting.",
    )


def _table(best: list[Trial]) -> NumberTable:
    rows = []
    for one in best:
        found = one.interval(0.99)
        rows.append(
            (one.fleet, one.label, one.stepsize, _COORDINATES / float(one.seconds.mean()),
             _COORDINATES / one.least, *found, float(one.found_all.mean()))
        )  # fmt: skip
    columns = ("fleet", "method", "stepsize", "coordinates per second", "at most",
               "seconds / bound", "low", "high", "share of seeds that found all")  # fmt: skip
    title = "Progress on the hard instance, best stepsize of each method (99 % intervals)"
    return NumberTable(title, columns, tuple(rows))


def _panels(best: list[Trial], fleets: dict[str, Floats]) -> Iterator[PanelOfSeries]:
    for name in fleets:
        own = [one for one in best if one.fleet == name]
        end = 2.2 * own[0].least
        limit = np.array([0.0, own[0].least, end])
        bound = Series(
            "lower bound", limit, np.minimum(limit / own[0].least, 1) * _COORDINATES,
            is_reference=True,
        )  # fmt: skip
        lines = [_line(one, index, end) for index, one in enumerate(own)]
        yield PanelOfSeries(
            f"workers: {name}", "seconds", "coordinates found", (bound, *lines), (False, False)
        )


def _line(one: Trial, index: int, end: float) -> Series:
    inside = one.at_seconds <= end
    label = one.label.split(", m =")[0]
    return Series(label, one.at_seconds[inside], one.discovered[inside], style_index=index)
