"""Part 6: workers with different objectives: Malenia is unbiased, Rennala is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from algorithms.coordinators import COORDINATORS
from algorithms.hyperparameters import make_hyperparameters
from algorithms.updates.sgd import SGD
from analysis.theory.inference import (
    Estimate,
    largest_plausible_score,
    mean_interval,
    standard_score,
)
from analysis.theory.validation_figures import Interval, interval_figure
from scenarios.problems.exact_specs import MDPSpec
from scenarios.problems.mdp_exact import truncated_objective
from scenarios.problems.quadratics import QuadraticProblem
from scenarios.problems.specs import QuadraticSpec
from scenarios.problems.tabular import TabularProblem
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
from simulator.delays import Constant, Delays
from simulator.distributions import scipy_distribution
from simulator.engine import simulate
from simulator.executors.compiled_grid import Grid
from simulator.network import NoNetwork
from simulator.precision import precision
from simulator.schedule import Schedule

Floats = NDArray[np.float64]

_SECONDS = np.array([1.0, 2.0, 3.0, 8.0])
_CONFIDENCE = 0.999
_FALSE_ALARM = 1e-3
_DETECTABLE = 0.25
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "Rennala": ("rennala", {"batch_size": 16}),
    "Malenia": ("malenia", {"batch_size": 16}),
    "Synchronous": ("synchronous", {}),
}


@dataclass(frozen=True, eq=False)
class Heterogeneous:
    """A problem, the workers' exact gradients at its initial point, and the noise there.

    Attributes:
        label: for tables.
        problem: with a JAX oracle.
        gradients: of each worker's function, [n_workers, dim].
        sigma: of one gradient, of the noisiest worker; nan if only bounded.
    """

    label: str
    problem: Any
    gradients: Floats
    sigma: float


@dataclass(frozen=True, eq=False)
class Sample:
    """First steps of many seeds.

    Attributes:
        label, problem, delays: which.
        gradients: of the first server step, [n_seeds, dim].
        shares: that each worker's function had in it, on average, [n_workers].
        setting: the problem.
    """

    label: str
    problem: str
    delays: str
    gradients: Floats
    shares: Floats
    setting: Heterogeneous

    @property
    def error(self) -> Floats:
        """Step gradient minus that of the average objective, [n_seeds, dim]."""
        return np.asarray(self.gradients - self.setting.gradients.mean(axis=0))


def run(effort: Effort, advance: Advance) -> Outcome:
    """Take the first step of many seeds, and compare its gradient with the objective's."""
    samples, n_seeds = [], effort.choose(2000, 20000)
    with precision("float64"):
        settings = [_quadratic(), _mdp()]
        jobs = [
            (setting, delays, label)
            for setting in settings
            for delays in ("constant", "exponential")
            for label in METHODS
            if (label, delays) != ("Synchronous", "exponential")  # takes the same gradients
        ]
        for index, (setting, delays, label) in enumerate(jobs):
            samples.append(_sample(setting, delays, label, n_seeds))
            advance((index + 1) / len(jobs))
    effects = [(sample, _effect(sample, samples)) for sample in samples]
    return Outcome(
        (*_effect_checks(effects), *_coordinate_checks(samples), *_variance_checks(samples)),
        (_size(effects),),
        (_table(effects),),
        (
            FigureCall(
                "6-bias",
                "Mean error of a step's gradient along Rennala's bias, in units of that bias, with "
                f"{100 * _CONFIDENCE:g} % intervals: 0 is unbiased, 1 what the workers' shares "
                "predict for Rennala.",
                interval_figure,
                ([_interval(*pair) for pair in effects], "error along Rennala's bias / that bias",
                 "Workers with different objectives"),
            ),
        ),
    )  # fmt: skip


def _quadratic() -> Heterogeneous:
    generator = np.random.default_rng([20255, 0])
    n_workers, dim, noise = len(_SECONDS), 3, 0.5
    roots = generator.normal(size=(n_workers, dim, dim))
    matrices = roots @ roots.transpose(0, 2, 1) + np.eye(dim)
    vectors = 2 * generator.normal(size=(n_workers, dim))
    start = generator.normal(size=dim)
    spec = QuadraticSpec(
        "given", A=matrices.tolist(), b=vectors.tolist(), x0=start.tolist(), noise=noise,
        dtype="float64",
    )  # fmt: skip
    gradients = matrices @ start - vectors
    problem = QuadraticProblem(spec, n_workers)
    return Heterogeneous("quadratics", problem, gradients, noise * dim**0.5)


def _mdp() -> Heterogeneous:
    spec = MDPSpec(
        "garnet", states=4, actions=2, branching=2, horizon=10, discount=0.8, seed=[1, 2, 3, 4],
        dtype="float64",
    )  # fmt: skip
    problem = TabularProblem(spec, len(_SECONDS))
    start = problem.oracle.initial_point(0)
    gradients = []
    for variant in problem.workers.of_worker.tolist():
        mdp = jax.tree.map(jax.numpy.asarray, problem.workers.variant(variant))
        exact = jax.grad(lambda x, m=mdp: truncated_objective(m, x, spec.discount, spec.horizon))
        gradients.append(-np.asarray(exact(start)))
    return Heterogeneous("Garnet MDPs", problem, np.array(gradients), float("nan"))


def _sample(setting: Heterogeneous, delays: str, label: str, n_seeds: int) -> Sample:
    name, arguments = METHODS[label]
    seeds = list(range(n_seeds))
    if delays == "constant":
        schedules = [_first_step(name, arguments, Constant(_SECONDS), 0)] * n_seeds
    else:
        compute = scipy_distribution("expon", {}, _SECONDS)
        schedules = [_first_step(name, arguments, compute, seed) for seed in seeds]
    start = np.asarray(setting.problem.oracle.initial_point(0))
    one = make_hyperparameters(SGD, {"stepsize": 1.0})  # so the step is the gradient
    grid = Grid(schedules, setting.problem.oracle, SGD, [one] * n_seeds, seeds)
    gradients = np.empty((n_seeds, len(start)))
    for replica, snapshot in grid.snapshots([[1]] * n_seeds):
        gradients[replica] = start - snapshot.params
    distinct = schedules[:1] if delays == "constant" else schedules
    shares = np.mean([_shares(schedule) for schedule in distinct], axis=0)
    return Sample(label, setting.label, delays, gradients, shares, setting)


def _first_step(name: str, arguments: Mapping[str, Any], compute: Delays, seed: int) -> Schedule:
    coordinator = COORDINATORS[name](compute.n_workers, **arguments)
    return simulate(coordinator, compute, NoNetwork(), Budget(steps=1), seed)


def _shares(schedule: Schedule) -> Floats:
    """Of each worker in the step's gradient, [n_workers]."""
    shares = np.zeros(schedule.n_workers)
    np.add.at(shares, schedule.worker, schedule.weight)
    return shares


def _bias(sample: Sample) -> Floats:
    """What the shares predict: sum_i share_i grad f_i - grad f, [dim]."""
    return np.asarray((sample.shares - 1 / len(_SECONDS)) @ sample.setting.gradients)


def _effect(sample: Sample, samples: list[Sample]) -> Estimate:
    """Mean error along Rennala's bias, in units of it."""
    reference = next(
        one
        for one in samples
        if (one.problem, one.delays, one.label) == (sample.problem, sample.delays, "Rennala")
    )
    bias = _bias(reference)
    return mean_interval(sample.error @ bias / (bias @ bias), _CONFIDENCE)


def _effect_checks(effects: list[tuple[Sample, Estimate]]) -> Iterator[Check]:
    for sample, effect in effects:
        where = f"{sample.label}, {sample.problem}, {sample.delays} times"
        if sample.label == "Rennala":
            claim = f"{where}: biased just as the workers' shares say, towards the fast ones"
            is_passed = effect.low <= 1 <= effect.high and effect.low > 0
        else:
            claim = f"{where}: no bias, and one of {_DETECTABLE:g} times Rennala's would be noticed"
            is_passed = effect.low <= 0 <= effect.high < _DETECTABLE
        yield Check(claim, bool(is_passed), f"error along Rennala's bias: {effect}")


def _coordinate_checks(samples: list[Sample]) -> Iterator[Check]:
    """The same coordinate by coordinate, in whatever direction a bias would be."""
    for label in METHODS:
        scores = []
        for sample in samples:
            if sample.label == label:
                expected = _bias(sample) if label == "Rennala" else np.zeros(sample.error.shape[1])
                scores += [
                    standard_score(column, value)
                    for column, value in zip(sample.error.T, expected.tolist(), strict=True)
                ]
        limit = largest_plausible_score(len(scores), _FALSE_ALARM)
        worst = max(scores, key=abs)
        what = "its predicted bias" if label == "Rennala" else "no bias"
        yield Check(
            f"{label}: {what} in any of {len(scores)} coordinates, to {limit:.2f} standard errors",
            abs(worst) <= limit,
            f"largest standard score {worst:+.2f}",
        )


def _variance_checks(samples: list[Sample]) -> Iterator[Check]:
    """Malenia's rule bounds the variance by sigma^2/M, whatever the counts."""
    for sample in samples:
        if sample.label != "Malenia" or np.isnan(sample.setting.sigma):
            continue
        bound = sample.setting.sigma**2 / METHODS["Malenia"][1]["batch_size"]
        found = mean_interval(np.sum(sample.error**2, axis=1), _CONFIDENCE)
        yield Check(
            f"Malenia, {sample.problem}, {sample.delays} times: E|g - grad f|^2 <= sigma^2/M",
            found.low <= bound,
            f"{found} against {bound:.3g}",
        )


def _size(effects: list[tuple[Sample, Estimate]]) -> Disagreement:
    parts = []
    for sample, _ in effects:
        if sample.label == "Rennala":
            size = np.linalg.norm(_bias(sample))
            whole = np.linalg.norm(sample.setting.gradients.mean(axis=0))
            shares = ", ".join(f"{share:.2f}" for share in sample.shares)
            parts.append(
                f"{sample.problem}, {sample.delays}: |bias| = {size / whole:.2f} |grad f| "
                f"(shares {shares} instead of 0.25)"
            )
    return Disagreement(
        "Rennala on workers with different objectives, which its theory excludes",
        "; ".join(parts),
        "It averages whatever comes first, so fast workers' objectives weigh more; Malenia weighs "
        "workers alike and waits for the slowest instead.",
    )


def _table(effects: list[tuple[Sample, Estimate]]) -> NumberTable:
    rows = [
        (sample.problem, sample.delays, sample.label, *effect,
         float(np.mean(np.sum(sample.error**2, axis=1))))
        for sample, effect in effects
    ]  # fmt: skip
    columns = ("problem", "times", "method", "bias, in Rennala's", "low", "high",
               "E|g - grad f|^2")  # fmt: skip
    return NumberTable("Bias of a step's gradient", columns, tuple(rows))


def _interval(sample: Sample, effect: Estimate) -> Interval:
    expected = 1.0 if sample.label == "Rennala" else 0.0
    label = f"{sample.label}, {sample.problem}, {sample.delays}"
    return Interval(label, effect.low, effect.value, effect.high, expected)
