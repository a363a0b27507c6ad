"""The protocol: every candidate on the tuning seeds, the best by a stated criterion, fresh seeds.

Everything is computed into a store, so that tuning again, or with a larger grid, computes what is
new and nothing else. The fresh seeds are never among the tuning seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenarios.backends.backend import Backend
from scenarios.method_section import MethodSection
from scenarios.schema import Scenario
from scenarios.store import RunSpec, Status, Store, specs_of
from scenarios.store.run_file import StoredRun, settings_types
from scenarios.sweeps.execute import SweepReporter, Tally, execute
from scenarios.sweeps.point import Point
from scenarios.tuning.candidates import Candidate, edges, grids
from scenarios.tuning.judging import Judged, judge_candidate
from scenarios.tuning.search import Search, make_search
from scenarios.tuning.settings import Grid, TuneSection
from simulator.errors import ConfigurationError


@dataclass(frozen=True)
class Tuned:
    """A method of a point, tuned.

    Attributes:
        point: where.
        method: as the scenario has it.
        judged: every candidate, the best first.
        edges: where the best sits at an end of its grid, a text for each.
    """

    point: Point
    method: MethodSection
    judged: tuple[Judged, ...]
    edges: tuple[str, ...]

    @property
    def best(self) -> Judged:
        """The winner."""
        return self.judged[0]


@dataclass(frozen=True)
class TuningResult:
    """What a tuning found.

    Attributes:
        tuned: by point and method.
        runs: of the winners on the fresh seeds.
        tuning, fresh: how the runs on either kind of seeds ended.
    """

    tuned: tuple[Tuned, ...]
    runs: tuple[RunSpec, ...]
    tuning: Tally
    fresh: Tally


@dataclass
class _Task:
    """A method of a point, being tuned."""

    point: Point
    method: MethodSection
    grid: Grid
    search: Search
    judged: list[Judged]


def tune(
    path: str | Path,
    points: Sequence[Point],
    section: TuneSection,
    backend: Backend,
    reporter: SweepReporter | None = None,
    retry: bool = False,
) -> TuningResult:
    """Tune every method at every point, then run the winners on the scenario's seeds.

    Args:
        path: of the store, new or begun earlier.
        points: scenarios; their seeds are the fresh ones.
        section: what to try, and how to choose.
        backend: where runs are computed.
        reporter: hears how it goes.
        retry: try again what failed before.

    Raises:
        ConfigurationError: grids and methods do not fit, tuning seeds are fresh ones, no target
            for "time-to-target", or the store can not be used.
    """
    reporter = reporter or SweepReporter()
    _check(points, section)
    tasks = [
        _task(point, method, grid, section)
        for point in points
        for method, grid in _grids(point.scenario, section)
    ]
    store = Store.create(path, _axes(tasks))
    tuning = _search(store, tasks, section, backend, reporter, retry)
    tuned = tuple(_settled(task) for task in tasks)
    runs = [spec for one in tuned for spec in _specs(one.point, [one.best.candidate])]
    fresh = execute(store, runs, backend, reporter, "fresh seeds", retry)
    return TuningResult(tuned, tuple(runs), tuning, fresh)


def _task(point: Point, method: MethodSection, grid: Grid, section: TuneSection) -> _Task:
    search = make_search(method, grid, point.scenario.fleet.workers, section)
    return _Task(point, method, grid, search, [])


def _grids(scenario: Scenario, section: TuneSection) -> list[tuple[MethodSection, Grid]]:
    found = grids(scenario, section)
    return [(method, found[method.name]) for method in scenario.methods]


def _check(points: Sequence[Point], section: TuneSection) -> None:
    for point in points:
        shared = sorted(set(section.seeds) & set(point.scenario.seeds))
        if shared:
            raise ConfigurationError(
                f"tune.seeds: {shared} are also seeds of the scenario: winners are judged on "
                "seeds that did not choose them"
            )
        if section.criterion == "time-to-target" and point.scenario.evaluation.target is None:
            raise ConfigurationError(
                "evaluation.target: missing; the criterion 'time-to-target' needs it"
            )


def _axes(tasks: Sequence[_Task]) -> dict[str, str]:
    """Columns: what the points set, then the hyperparameters tried."""
    points = [dict(task.point.settings) for task in tasks]
    tried: list[Mapping[str, Any]] = [
        {name: value} for task in tasks for name, values in task.grid.items() for value in values
    ]
    return settings_types([*points, *tried])


def _search(
    store: Store,
    tasks: Sequence[_Task],
    section: TuneSection,
    backend: Backend,
    reporter: SweepReporter,
    retry: bool,
) -> Tally:
    done, skipped = 0, 0
    failures: list[tuple[RunSpec, str]] = []
    while asked := [(task, wanted) for task in tasks if (wanted := task.search.ask())]:
        specs = {id(task): _specs(task.point, wanted, section.seeds) for task, wanted in asked}
        every = [spec for group in specs.values() for spec in group]
        tally = execute(store, every, backend, reporter, "tuning", retry)
        done, skipped = done + tally.done, skipped + tally.skipped
        failures += tally.failures
        for task, wanted in asked:
            judged = _judge(store, specs[id(task)], wanted, section)
            task.search.tell(judged)
            task.judged += judged
    return Tally(done, skipped, tuple(failures))


def _specs(
    point: Point, candidates: Sequence[Candidate], seeds: Sequence[int] | None = None
) -> list[RunSpec]:
    methods = [
        (one.method, {**point.settings_of(one.method), **one.settings}) for one in candidates
    ]
    return specs_of(point.scenario, methods, seeds or point.scenario.seeds, {})


def _judge(
    store: Store, specs: Sequence[RunSpec], candidates: Sequence[Candidate], section: TuneSection
) -> list[Judged]:
    runs = [_read(store, spec) for spec in specs]
    many = len(section.seeds)
    return [
        judge_candidate(one, runs[index * many : (index + 1) * many], section.criterion)
        for index, one in enumerate(candidates)
    ]


def _read(store: Store, spec: RunSpec) -> StoredRun | None:
    is_done = store.status_on_disk(spec.key) is Status.DONE
    return store.read(spec.key) if is_done else None


def _settled(task: _Task) -> Tuned:
    judged = sorted(task.judged, key=lambda one: one.rank)  # stable: the first of equals
    where = edges(judged[0].candidate, task.grid)
    return Tuned(task.point, task.method, tuple(judged), tuple(where))
