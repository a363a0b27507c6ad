"""Running a scenario: every method on every seed, what is done kept at once.

Rules:
- seeds are the outer loop, so that an interrupted run has compared all methods on some seeds;
- a (method, seed) that fails is recorded with its error, and the others go on;
- a run that is interrupted keeps every finished (method, seed), and of the one in flight the
  curve as far as it got, marked as interrupted; a second interrupt drops that one;
- a directory with a run in it is never written over; with ``resume`` its missing (method, seed)
  are added, the one that was in flight from its latest checkpoint on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from scenarios.checkpoint import FileKeeper, run_resumably
from scenarios.compose import build_problem
from scenarios.dump import to_toml
from scenarios.judging import divergence
from scenarios.method_section import MethodSection
from scenarios.schema import Scenario
from scenarios.trial import Trial
from scenarios.workshop import Workshop
from simulator.errors import ConfigurationError, SimulationBug, SimulationStalled, nearest
from simulator.precision import precision
from simulator.records import MethodRecord, Metric, RunDirectory, RunRow, is_run

_INTERRUPTED = "interrupted at"
_KNOWN_FAILURES = (ConfigurationError, SimulationStalled)


@dataclass(frozen=True)
class Failure:
    """A (method, seed) that did not end well.

    Attributes:
        method, seed: which.
        text: why, one line.
        exception: what was raised; None for a run that diverged.
    """

    method: str
    seed: int
    text: str
    exception: BaseException | None = None

    def __str__(self) -> str:
        return f"{self.method}, seed {self.seed}: {self.text}"


@dataclass(frozen=True)
class RunResult:
    """A run that came to its end.

    Attributes:
        directory: what it wrote; ``analysis.summary.summarise`` and ``analysis.plots.plot_run``
            take it.
        failures: of its methods, by seed and method.
    """

    directory: RunDirectory
    failures: tuple[Failure, ...]


class Interrupted(KeyboardInterrupt):
    """Somebody pressed Ctrl-C.

    Attributes:
        directory: where what was done is.
    """

    def __init__(self, directory: RunDirectory, text: str) -> None:
        self.directory = directory
        super().__init__(text)


class Reporter:
    """Hears how a run is going. This one keeps it to itself."""

    def begin(self, trials: int) -> None:
        """So many (method, seed) are going to run."""

    def doing(self, method: str, seed: int, phase: str, fraction: float) -> None:
        """Some fraction of a phase ("simulating" or "training") of a (method, seed) is done."""

    def finished(self, row: RunRow) -> None:
        """A (method, seed) is on disk."""


def run(
    scenario: Scenario,
    *,
    seeds: int | Sequence[int] | None = None,
    out: str | Path | None = None,
    methods: Sequence[str] | None = None,
    executor: str | None = None,
    verify: bool = False,
    reporter: Reporter | None = None,
    resume: bool = False,
) -> RunResult:
    """Run every method of a scenario on every seed.

    Args:
        scenario: from ``load``.
        seeds: a count or a list, instead of the scenario's.
        out: directory to write, new or empty; default the first free of runs/NAME, runs/NAME-2,
            runs/NAME-3, ...
        methods: names of those to run, instead of all.
        executor: "batched" or "sequential", instead of the scenario's.
        verify: check every schedule against the rules of the simulation.
        reporter: hears how it is going.
        resume: go on with the run of the same scenario that is in ``out``.

    Returns:
        What was written, and which methods failed.

    Raises:
        ConfigurationError: the problem can not be built, the directory not be written, or an
            argument has no meaning.
        Interrupted: on Ctrl-C.
    """
    scenario = narrowed(scenario, seeds, methods, executor)
    reporter = reporter or Reporter()
    with precision(scenario.precision):
        workshop = Workshop(scenario, build_problem(scenario), verify)
        directory = _reopen(scenario, out) if resume else _create(scenario, workshop, out)
        earlier = {(row.method, row.seed): row for row in directory.runs() if not _is_cut(row)}
        trials = [
            Trial(workshop, method, seed)
            for seed in scenario.seeds
            for method in scenario.methods
            if (method.name, seed) not in earlier
        ]
        reporter.begin(len(trials))
        outcomes = [_earlier_failure(row) for row in earlier.values()]
        try:
            outcomes += [_attempt(trial, directory, reporter) for trial in trials]
        except Interrupted:
            raise
        except KeyboardInterrupt:  # while writing
            raise Interrupted(directory, _kept(directory)) from None
    return RunResult(directory, tuple(failure for failure in outcomes if failure))


def narrowed(
    scenario: Scenario,
    seeds: int | Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    executor: str | None = None,
) -> Scenario:
    """The scenario with some of it replaced, validated again.

    Raises:
        ConfigurationError: no method of such a name, or a value out of range.
    """
    from scenarios.load import from_data

    data = scenario.as_data()
    if seeds is not None:
        data["seeds"] = seeds if isinstance(seeds, int) else list(seeds)
    if executor is not None:
        data["executor"] = executor
    if methods is not None:
        data["methods"] = [data["methods"][_position(scenario, name)] for name in methods]
    changed = (seeds, methods, executor) != (None, None, None)
    return from_data(data, scenario.name) if changed else scenario


def _position(scenario: Scenario, name: str) -> int:
    names = [method.name for method in scenario.methods]
    if name not in names:
        raise ConfigurationError(
            f"methods: {scenario.name} has no method {name!r}.{nearest(name, names)}"
        )
    return names.index(name)


def free_directory(name: str) -> Path:
    """The first of runs/NAME, runs/NAME-2, runs/NAME-3, ... that is not there or is empty."""
    number = 1
    while True:
        path = Path("runs") / (name if number == 1 else f"{name}-{number}")
        if not path.exists() or (path.is_dir() and not any(path.iterdir())):
            return path
        number += 1


def _create(scenario: Scenario, workshop: Workshop, out: str | Path | None) -> RunDirectory:
    path = free_directory(scenario.name) if out is None else Path(out)
    if out is not None and is_run(path):
        raise ConfigurationError(
            f"{path}: holds an earlier run, which is never written over: choose another place, "
            "or remove it"
        )
    target = scenario.evaluation.target
    metrics = [
        Metric(m.name, m.label, m.unit, m.higher_is_better, target if index == 0 else None)
        for index, m in enumerate(workshop.problem.metrics)
    ]
    records = [MethodRecord(m.name, m.label, m.coordinator, m.update) for m in scenario.methods]
    return RunDirectory.create(
        path, name=scenario.name, scenario=to_toml(scenario), metrics=metrics, methods=records
    )


def _reopen(scenario: Scenario, out: str | Path | None) -> RunDirectory:
    from scenarios.load import from_data, parse

    if out is None:
        raise ConfigurationError("resume: expected with out, the directory to go on in")
    directory = RunDirectory.open(out)
    source = str(directory.path / "scenario.toml")
    there = from_data(parse(directory.scenario(), source), source)
    if there.content_id() != scenario.content_id():
        raise ConfigurationError(
            f"{directory.path}: holds a run of another scenario: its methods, seeds and all that "
            "is simulated must be the same to go on with it"
        )
    return directory


def _is_cut(row: RunRow) -> bool:
    return row.error.startswith(_INTERRUPTED)


def _earlier_failure(row: RunRow) -> Failure | None:
    return Failure(row.method, row.seed, row.error) if row.error else None


def _keeper(trial: Trial, directory: RunDirectory) -> FileKeeper:
    name = f"{quote(trial.method.name, safe='')}--seed{trial.seed}.npz"
    fingerprint = f"{trial.workshop.content_id} {trial.method.name} {trial.seed}"
    return FileKeeper(directory.path / "checkpoints" / name, fingerprint)


def _attempt(trial: Trial, directory: RunDirectory, reporter: Reporter) -> Failure | None:
    """Run one trial and put it on disk, whatever becomes of it."""
    method, seed = trial.method, trial.seed
    exception: BaseException | None = None
    started = time.perf_counter()
    keeper = _keeper(trial, directory)

    def progress(phase: str, fraction: float) -> None:
        reporter.doing(method.name, seed, phase, fraction)

    try:
        run_resumably(trial, progress, keeper)
        curve = trial.curve()
        error = divergence(curve) if curve else ""
    except KeyboardInterrupt:
        raise _keep(trial, directory, time.perf_counter() - started) from None
    except Exception as caught:  # noqa: BLE001  an environment may raise anything
        exception, error, curve = caught, one_line(caught), None
    row = trial.row(time.perf_counter() - started, error)
    directory.write(row, curve, trial.schedule)
    keeper.remove()
    reporter.finished(row)
    return Failure(method.name, seed, error, exception) if error else None


def _keep(trial: Trial, directory: RunDirectory, wall_seconds: float) -> Interrupted:
    """Write what there is of an interrupted trial."""
    kept = _kept(directory)
    curve = trial.curve()
    if curve is None or trial.schedule is None:
        return Interrupted(directory, f"{kept}; {_name(trial.method, trial.seed)} was dropped")
    reached = f"{curve.seconds[-1]:g} of {trial.schedule.end_seconds:g} simulated seconds"
    row = trial.row(wall_seconds, f"{_INTERRUPTED} {reached}")
    directory.write(row, curve, trial.schedule)
    return Interrupted(
        directory, f"{kept}, and {_name(trial.method, trial.seed)} as far as {reached}"
    )


def _kept(directory: RunDirectory) -> str:
    count = len(directory.runs())
    return f"{count} finished {'run is' if count == 1 else 'runs are'} in {directory.path}"


def _name(method: MethodSection, seed: int) -> str:
    return f"{method.name} seed {seed}"


def one_line(error: Exception) -> str:
    """What went wrong in a run, for a table."""
    text = next(iter(str(error).splitlines()), "")
    if isinstance(error, _KNOWN_FAILURES):
        return text
    if isinstance(error, MemoryError):
        return f"out of memory{': ' if text else ''}{text}"
    if isinstance(error, SimulationBug):
        return f"a bug in straggler, please report it: {text}"
    return f"{type(error).__name__}: {text}"
