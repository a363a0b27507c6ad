"""Running a sweep: every point with its methods and seeds, tuned first if it asks for that."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scenarios.backends.backend import Backend
from scenarios.store import RunSpec, Store
from scenarios.store.run_file import settings_types
from scenarios.sweeps.execute import SweepReporter, Tally, execute
from scenarios.sweeps.point import specs
from scenarios.sweeps.sweep_file import Sweep
from scenarios.tuning.tune import Tuned, tune
from scenarios.tuning.write import write_tuning


@dataclass(frozen=True)
class SweepResult:
    """A sweep that came to its end.

    Attributes:
        store: where its runs are.
        runs: what it wanted; after tuning, the winners.
        tally: how they ended.
        tuned: what tuning found, if it was asked for.
        criterion: by which it chose.
    """

    store: Store
    runs: tuple[RunSpec, ...]
    tally: Tally
    tuned: tuple[Tuned, ...] = ()
    criterion: str = ""


def run_sweep(
    sweep: Sweep,
    path: str | Path,
    backend: Backend,
    reporter: SweepReporter | None = None,
    retry: bool = False,
) -> SweepResult:
    """Run what is missing of a sweep.

    Args:
        sweep: from ``load_sweep``.
        path: of the store, new or begun earlier.
        backend: where runs are computed.
        reporter: hears how it goes.
        retry: try again what failed before.

    Raises:
        ConfigurationError: the store can not be used, or tuning not be done.
    """
    reporter = reporter or SweepReporter()
    if sweep.tune is not None:
        found = tune(path, sweep.points, sweep.tune, backend, reporter, retry)
        store = Store.open(path)
        write_tuning(store, found.tuned, sweep.tune.criterion)
        return SweepResult(store, found.runs, found.fresh, found.tuned, sweep.tune.criterion)
    runs = [spec for point in sweep.points for spec in specs(point)]
    store = Store.create(path, settings_types([point.settings for point in sweep.points]))
    return SweepResult(store, tuple(runs), execute(store, runs, backend, reporter, "", retry))
