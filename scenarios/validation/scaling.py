"""Part 5: more workers, and workers of more different speeds: min over m in action."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.theory.bounds import best_workers, rennala_bound_seconds
from analysis.theory.setting import Objective
from analysis.theory.validation_figures import PanelOfSeries, Series, series_figure
from scenarios.problems.quadratics import QuadraticProblem
from scenarios.problems.specs import QuadraticSpec
from scenarios.validation.fleets import random_fleet
from scenarios.validation.outcome import (
    Advance,
    Check,
    Disagreement,
    Effort,
    FigureCall,
    NumberTable,
    Outcome,
)
from scenarios.validation.recommended_recipes import (
    ASYNCHRONOUS_SGD,
    LABELS,
    RENNALA_NIGT,
    RENNALA_SGD,
    SYNCHRONOUS_SGD,
    prepare,
)
from scenarios.validation.runs import Recipe, simulate_recipe
from scenarios.validation.targets import measure
from simulator.budget import Budget
from simulator.precision import precision

Floats = NDArray[np.float64]

_SLOW_SECONDS = 1000.0
_FAST = np.arange(8, 16) / 8  # 1 to 1.875 s
_BATCH = 16
_STEPS = 12
_EXPONENTS = (0.0, 0.5, 1.0, 2.0)


def run(effort: Effort, advance: Advance) -> Outcome:
    """Add workers, slow ones and any, and watch times of steps and times to a target."""
    added = _random_additions(effort.choose(300, 3000))
    advance(0.2)
    slow = _slow_workers([0, 1, 2, 4, 8, 16, 32])
    spread = {exponent: _sizes(exponent, effort.choose(48, 128)) for exponent in _EXPONENTS}
    advance(0.4)
    targets = list(_targets(effort, advance))
    checks = (
        *_addition_checks(added),
        *_slow_checks(slow),
        *_size_checks(spread),
        *_target_checks(targets),
    )
    return Outcome(
        checks,
        (_plateau(spread), _bound_reached(spread)),
        (_target_table(targets), _size_table(spread)),
        (
            FigureCall(
                "5-scaling",
                "Left: seconds for 16 gradients as workers of 1,000 s join eight of 1 to 1.9 s. "
                "Right: seconds of a Rennala step (M = 32) with n workers, h_i = i^q, and the "
                "bound, min over m.",
                series_figure,
                ((_slow_panel(slow), _size_panel(spread)), "More workers", 2),
            ),
        ),
    )


@dataclass
class Additions:
    """What one more worker did, over many fleets."""

    total: int = 0
    rennala_hurt: int = 0
    slower: int = 0
    synchronous_hurt: int = 0
    synchronous_same: int = 0


def _seconds_of(name: str, arguments: Mapping[str, Any], seconds: Floats) -> float:
    """The longest of some steps."""
    recipe = Recipe("", name, arguments, "sgd", {})
    schedule = simulate_recipe(recipe, seconds, Budget(steps=3))
    return float(np.diff(schedule.step_seconds, prepend=0.0).max())


def _random_additions(count: int) -> Additions:
    """Add one worker of any speed to a random fleet."""
    found = Additions()
    for seed in range(count):
        fleet = random_fleet(seed, is_free=True)
        batch, before = {"batch_size": fleet.batch_size()}, fleet.seconds
        newcomer = float(before.max() * 2.0 ** fleet.generator.integers(-4, 5))
        after = np.append(before, np.ceil(8 * newcomer) / 8)
        found.total += 1
        gain = _seconds_of("rennala", batch, before) - _seconds_of("rennala", batch, after)
        found.rennala_hurt += gain < 0
        loss = _seconds_of("synchronous", {}, after) - _seconds_of("synchronous", {}, before)
        if after[-1] > before.max():
            found.slower += 1
            found.synchronous_hurt += loss == after[-1] - before.max()
        else:
            found.synchronous_same += loss == 0
    return found


def _addition_checks(found: Additions) -> Iterator[Check]:
    yield Check(
        "One more worker, of any speed, never makes a step of Rennala longer",
        found.rennala_hurt == 0 < found.total,
        f"longer in {found.rennala_hurt} of {found.total:,} random fleets",
    )
    faster = found.total - found.slower
    yield Check(
        "A slower one makes every synchronous step longer by just the difference, no other one "
        "does",
        found.synchronous_hurt == found.slower > 0 and found.synchronous_same == faster,
        f"{found.synchronous_hurt:,} of {found.slower:,} slower ones, and "
        f"{faster - found.synchronous_same:,} of {faster:,} others",
    )


_SLOW_METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "Rennala": ("rennala", {"batch_size": _BATCH}),
    "Malenia": ("malenia", {"batch_size": _BATCH}),
    "Synchronous, 2 each": ("synchronous", {"gradients_per_worker": 2}),
    "Asynchronous, 16 steps": ("asynchronous", {}),
}


def _slow_workers(counts: list[int]) -> dict[str, Floats]:
    """Seconds for 16 gradients, or for a step of 16 and more, by method, [len(counts)]."""
    found: dict[str, Floats] = {"workers added": np.array(counts, float)}
    for label, (name, arguments) in _SLOW_METHODS.items():
        values = []
        for count in counts:
            seconds = np.concatenate([_FAST, np.full(count, _SLOW_SECONDS)])
            recipe = Recipe("", name, arguments, "sgd", {})
            steps = 16 * _STEPS if name == "asynchronous" else _STEPS
            schedule = simulate_recipe(recipe, seconds, Budget(steps=steps))
            values.append(float(schedule.step_seconds[-1]) / _STEPS)
        found[label] = np.array(values)
    return found


def _slow_checks(slow: Mapping[str, Floats]) -> Iterator[Check]:
    rennala, synchronous = slow["Rennala"], slow["Synchronous, 2 each"]
    yield Check(
        "32 workers that take 1,000 s change no step of Rennala's eight fast ones",
        bool((rennala == rennala[0]).all()),
        f"{rennala[0]:g} s without, {rennala[-1]:g} s with them",
    )
    yield Check(
        "One of them makes every synchronous step take 2,000 s",
        bool((synchronous[1:] == 2 * _SLOW_SECONDS).all()),
        f"{synchronous[0]:g} s without, {synchronous[1]:g} s with one",
    )


def _sizes(exponent: float, largest: int) -> Floats:
    """n, simulated seconds of a step (M = 32), bound, m*: [n_sizes, 4]."""
    rows = []
    for n_workers in range(1, largest + 1):
        seconds = np.asarray(np.arange(1, n_workers + 1) ** exponent, np.float64)
        step = _seconds_of("rennala", {"batch_size": 32}, seconds)
        bound = rennala_bound_seconds(seconds, 32)
        rows.append((n_workers, step, bound, best_workers(seconds, 1.0, 32.0).workers))
    return np.array(rows)


def _size_checks(spread: Mapping[float, Floats]) -> Iterator[Check]:
    for exponent, rows in spread.items():
        steps, bounds = rows[:, 1], rows[:, 2]
        yield Check(
            f"h_i = i^{exponent:g}: the seconds of a step never rise with n, nor exceed the bound",
            bool((np.diff(steps) <= 1e-12 * steps[1:]).all() and (steps <= bounds + 1e-9).all()),
            f"{steps[0]:.3g} s with 1 worker, {steps[-1]:.3g} s with {len(rows)}; "
            f"step / bound {np.min(steps / bounds):.2f} to {np.max(steps / bounds):.2f}",
        )


@dataclass(frozen=True)
class Target:
    """Seconds to a target with theory's parameters."""

    label: str
    slow: int
    seconds: float
    predicted: float


def _targets(effort: Effort, advance: Advance) -> Iterator[Target]:
    """A noisy quadratic, whose constants are exact, with and without slow workers."""
    labels = effort.choose((RENNALA_SGD, SYNCHRONOUS_SGD), LABELS)
    jobs = [(count, label) for count in effort.choose((0, 8), (0, 1, 8, 32)) for label in labels]
    for index, (count, label) in enumerate(jobs):
        seconds = np.concatenate([_FAST, np.full(count, _SLOW_SECONDS)])
        with precision("float64"):
            spec = QuadraticSpec(dimension=10, noise=0.1, dtype="float64")
            problem = QuadraticProblem(spec, len(seconds))
            known = problem.constants
            objective = Objective(
                0.1, *(float(value or 0.0) for value in (
                    known.gradient_lipschitz, known.hessian_lipschitz, known.sigma,
                    known.initial_gap)),
            )  # fmt: skip
            prepared = prepare(label, objective, seconds)
            found = measure(prepared, problem, seconds, objective.epsilon, effort.choose(8, 16))
        yield Target(label, count, found.reached_at(), prepared.seconds)
        advance(0.4 + 0.6 * (index + 1) / len(jobs))


def _target_checks(targets: list[Target]) -> Iterator[Check]:
    yield Check(
        "Quadratic: the target is reached within the seconds that theory allows",
        all(one.seconds <= one.predicted for one in targets),
        f"{sum(one.seconds <= one.predicted for one in targets)} of {len(targets)}",
    )
    seconds = {(one.label, one.slow): one.seconds for one in targets}
    most = max(one.slow for one in targets)
    for label in (RENNALA_SGD, RENNALA_NIGT):
        if (label, 0) in seconds:
            ratio = seconds[label, most] / seconds[label, 0]
            yield Check(
                f"{label}: {most} slow workers do not delay the target by more than 1 %",
                ratio <= 1.01,
                f"{ratio:.3f} times the seconds without them",
            )
    ratio = seconds[SYNCHRONOUS_SGD, most] / seconds[SYNCHRONOUS_SGD, 0]
    yield Check(
        f"{SYNCHRONOUS_SGD}: they delay it at least 100-fold",
        ratio >= 100,
        f"{ratio:.0f} times the seconds without them",
    )
    if (ASYNCHRONOUS_SGD, 0) in seconds:
        ratio = seconds[ASYNCHRONOUS_SGD, most] / seconds[ASYNCHRONOUS_SGD, 0]
        yield Check(
            f"{ASYNCHRONOUS_SGD}: they delay it, its stepsize being limited by their staleness",
            ratio > 1,
            f"{ratio:.2f} times the seconds without them",
        )


def _plateau(spread: Mapping[float, Floats]) -> Disagreement:
    parts = []
    for exponent, rows in spread.items():
        alone = rows[rows[:, 3].astype(int) - 1, 1]
        loss = 100 * float(np.max(alone / rows[:, 1] - 1))
        parts.append(
            f"h_i = i^{exponent:g}: m* = {rows[-1, 3]:.0f} of {len(rows)}; a step of the first m* "
            f"alone takes at most {loss:.1f} % longer than one of all n, over all n"
        )
    return Disagreement(
        "Workers worth waiting for, m*, against those that help a simulated step",
        "; ".join(parts),
        "m* minimises the bound, which charges each worker one unfinished gradient. In the exact "
        "time a slower worker costs nothing, and helps where its gradient happens to be ready.",
    )


def _bound_reached(spread: Mapping[float, Floats]) -> Disagreement:
    parts = [
        f"i^{exponent:g}: {np.median(rows[:, 1] / rows[:, 2]):.2f}"
        for exponent, rows in spread.items()
    ]
    return Disagreement(
        "Step of Rennala (M = 32) over its bound, median over n",
        ", ".join(parts),
        "Equal workers finish together, and only the rounding of M up to a multiple of n is "
        "charged, which is less than the n gradients the bound charges.",
    )


def _target_table(targets: list[Target]) -> NumberTable:
    rows = [(one.label, one.slow, one.seconds, one.predicted) for one in targets]
    columns = ("method", "slow workers", "measured seconds", "predicted seconds")
    return NumberTable("Quadratic, eight fast workers: seconds to |grad f| <= 0.1", columns,
                       tuple(rows))  # fmt: skip


def _size_table(spread: Mapping[float, Floats]) -> NumberTable:
    rows = [
        (f"i^{exponent:g}", *map(float, values))
        for exponent, table in spread.items()
        for values in table
        if values[0] in (1, 2, 4, 8, 16, 32, 48, 64, 128)
    ]
    columns = ("h_i", "n", "seconds of a step", "bound", "m*")
    return NumberTable("Rennala, M = 32", columns, tuple(rows))


def _slow_panel(slow: Mapping[str, Floats]) -> PanelOfSeries:
    counts = slow["workers added"]
    series = tuple(
        Series(label, counts, slow[label], style_index=index)
        for index, label in enumerate(_SLOW_METHODS)
    )
    return PanelOfSeries(
        "slow workers join", "workers of 1,000 s added", "seconds", series, (False, True)
    )


def _size_panel(spread: Mapping[float, Floats]) -> PanelOfSeries:
    series = []
    for index, (exponent, rows) in enumerate(spread.items()):
        series.append(Series("bound", rows[:, 0], rows[:, 2], is_reference=True))
        label = f"h = i^{exponent:g}"
        series.append(Series(label, rows[:, 0], rows[:, 1], style_index=index + 4))
    return PanelOfSeries(
        "Rennala, M = 32", "workers", "seconds of a step", tuple(series), (True, True)
    )
