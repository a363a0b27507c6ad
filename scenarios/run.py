"""Running a scenario: every method on every seed, what is done kept at once.

Rules:
- with the compiled executor (or what stands in for it where Python steps the environments), trials
  that differ in seed and hyperparameters only are one batch, and run side by side; elsewhere each
  trial runs alone, and seeds are the outer loop, so that an interrupted run has compared all
  methods on some seeds;
- a (method, seed) that fails is recorded with its error, and the others go on;
- a run that is interrupted keeps every finished (method, seed), and of those in flight the
  curves as far as they got, marked as interrupted; a second interrupt drops these;
- ``wall_seconds`` of a batch are shared equally;
- a directory with a run in it is never written over; with ``resume``, what is missing in it is
  added: whole batches, because who runs side by side decides on last bits, and a trial that runs
  alone from its latest checkpoint on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from scenarios.batch import Batch, batches
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

_SHOWN = 3
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

    def note(self, text: str) -> None:
        """Something worth knowing about how it runs."""

    def doing(self, what: str, trials: int, phase: str, fraction: float) -> None:
        """Some fraction of a phase ("simulating" or "training") of so many trials is done."""

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
        methods: names of those to run, instead of all; of a grid, its name without values means
            all its cells.
        executor: "compiled", "batched" or "sequential", instead of the scenario's.
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
        trials = [Trial(workshop, m, seed) for seed in scenario.seeds for m in scenario.methods]
        trials, earlier = _split(workshop, trials, directory)
        reporter.begin(len(trials))
        if scenario.executor == "compiled" and workshop.why_not_compiled:
            reporter.note(workshop.why_not_compiled)
        try:
            failures = _run_all(workshop, trials, directory, reporter)
        except Interrupted:
            raise
        except KeyboardInterrupt:  # while writing
            raise Interrupted(directory, _kept(directory)) from None
    return RunResult(directory, (*earlier, *failures))


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
        chosen = [place for name in methods for place in method_positions(scenario, name)]
        data["methods"] = [data["methods"][place] for place in chosen]
    changed = (seeds, methods, executor) != (None, None, None)
    return from_data(data, scenario.name) if changed else scenario


def method_positions(scenario: Scenario, name: str) -> list[int]:
    """Where the method of that name is, or all cells of the grid of that name.

    Raises:
        ConfigurationError: there is none.
    """
    names = [method.name for method in scenario.methods]
    if name in names:
        return [names.index(name)]
    cells = [index for index, other in enumerate(names) if other.startswith(f"{name} ")]
    if not cells:
        raise ConfigurationError(
            f"methods: {scenario.name} has no method {name!r}.{nearest(name, names)}"
        )
    return cells


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


def _split(
    workshop: Workshop, trials: list[Trial], directory: RunDirectory
) -> tuple[list[Trial], list[Failure]]:
    """The trials that are to run, and how those that are not had failed."""
    there = {
        (row.method, row.seed): row
        for row in directory.runs()
        if not row.error.startswith(_INTERRUPTED)
    }
    groups = [[trial] for trial in trials]
    if workshop.is_side_by_side:
        groups = [list(batch.trials) for batch in batches(workshop, trials)]
    over = {
        (trial.method.name, trial.seed)
        for group in groups
        if all((trial.method.name, trial.seed) in there for trial in group)
        for trial in group
    }
    failures = [Failure(*key, there[key].error) for key in over if there[key].error]
    return [trial for trial in trials if (trial.method.name, trial.seed) not in over], failures


def _keeper(trial: Trial, directory: RunDirectory) -> FileKeeper:
    name = f"{quote(trial.method.name, safe='')}--seed{trial.seed}.npz"
    fingerprint = f"{trial.workshop.content_id} {trial.method.name} {trial.seed}"
    return FileKeeper(directory.path / "checkpoints" / name, fingerprint)


def _run_all(
    workshop: Workshop, trials: list[Trial], directory: RunDirectory, reporter: Reporter
) -> list[Failure]:
    failures: list[Failure] = []
    if workshop.is_side_by_side:
        for batch in batches(workshop, trials):
            alone = batch.trials[0] if len(batch.trials) == 1 else None
            if alone is not None:  # as in a batch of one, and it can go on from a checkpoint
                failures += _attempt(alone, directory, reporter)
            else:
                failures += _attempt_batch(batch, directory, reporter)
        order = {(trial.method.name, trial.seed): index for index, trial in enumerate(trials)}
        return sorted(failures, key=lambda failure: order[failure.method, failure.seed])
    for trial in trials:
        failures += _attempt(trial, directory, reporter)
    return failures


def _attempt_batch(batch: Batch, directory: RunDirectory, reporter: Reporter) -> list[Failure]:
    """Run a batch and put it on disk, whatever becomes of it."""
    everyone, name = list(batch.trials), batch.name
    started = time.perf_counter()

    def progress(phase: str, fraction: float) -> None:
        reporter.doing(name, len(everyone), phase, fraction)

    def share() -> float:
        return (time.perf_counter() - started) / len(everyone)

    failures: list[Failure] = []
    try:
        batch.simulate(progress)
        for trial, error in batch.failed:
            failures += _write(trial, directory, reporter, share(), error)
        try:
            batch.train(progress)
        except Exception:  # noqa: BLE001  whose fault is it? one by one, it will show
            for trial in batch.trials:
                alone = Trial(batch.workshop, trial.method, trial.seed)
                failures += _attempt(alone, directory, reporter)
            return failures
        for trial in batch.trials:
            failures += _write(trial, directory, reporter, share())
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise _keep(everyone, directory, share()) from None
    return failures


def _attempt(trial: Trial, directory: RunDirectory, reporter: Reporter) -> list[Failure]:
    """Run one trial and put it on disk, whatever becomes of it."""
    name = _name(trial.method, trial.seed)
    exception: Exception | None = None
    started = time.perf_counter()
    keeper = _keeper(trial, directory)

    def progress(phase: str, fraction: float) -> None:
        reporter.doing(name, 1, phase, fraction)

    try:
        run_resumably(trial, progress, keeper)
    except KeyboardInterrupt:
        raise _keep([trial], directory, time.perf_counter() - started) from None
    except Exception as caught:  # noqa: BLE001  an environment may raise anything
        exception = caught
    failures = _write(trial, directory, reporter, time.perf_counter() - started, exception)
    keeper.remove()
    return failures


def _write(
    trial: Trial,
    directory: RunDirectory,
    reporter: Reporter,
    wall_seconds: float,
    exception: Exception | None = None,
) -> list[Failure]:
    """Put a trial that is over on disk."""
    if exception is None:
        curve = trial.curve()
        error = divergence(curve) if curve else ""
    else:
        error, curve = one_line(exception), None
    row = trial.row(wall_seconds, error)
    directory.write(row, curve, trial.schedule)
    reporter.finished(row)
    return [Failure(trial.method.name, trial.seed, error, exception)] if error else []


def _keep(trials: list[Trial], directory: RunDirectory, wall_seconds: float) -> Interrupted:
    """Write what there is of interrupted trials."""
    done = {(row.method, row.seed) for row in directory.runs()}
    texts = []
    for trial in trials:
        if (trial.method.name, trial.seed) in done:
            continue
        name, curve = _name(trial.method, trial.seed), trial.curve()
        if curve is None or trial.schedule is None:
            texts.append(f"{name} was dropped")
            continue
        if trial.is_complete:  # interrupted while it was judged
            directory.write(trial.row(wall_seconds, divergence(curve)), curve, trial.schedule)
            continue
        reached = f"{curve.seconds[-1]:g} of {trial.schedule.end_seconds:g} simulated seconds"
        directory.write(trial.row(wall_seconds, f"{_INTERRUPTED} {reached}"), curve, trial.schedule)
        texts.append(f"{name} as far as {reached}")
    shown = [*texts[:_SHOWN], *([f"{len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else [])]
    return Interrupted(directory, "; ".join([_kept(directory), *shown]))


def _kept(directory: RunDirectory) -> str:
    count = sum(not row.error.startswith(_INTERRUPTED) for row in directory.runs())
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
