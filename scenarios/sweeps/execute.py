"""Running what is missing of a plan, alone or beside other processes that do the same."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from scenarios.backends.backend import Backend, Outcome
from scenarios.store import RunSpec, Status, Store

_POLL_SECONDS = 0.5


class SweepReporter:
    """Hears how a sweep is going. This one keeps it to itself."""

    def begin(self, stage: str, wanted: int, there: int) -> None:
        """A stage wants so many runs, of which so many are there."""

    def started(self, spec: RunSpec) -> None:
        """A run has begun."""

    def finished(self, spec: RunSpec, outcome: Outcome) -> None:
        """A run has ended, here or in another process."""

    def note(self, text: str) -> None:
        """Something to know."""


@dataclass(frozen=True)
class Tally:
    """How a plan ended.

    Attributes:
        done: runs in the store.
        skipped: of these, how many were there before.
        failures: key, name and error of each that failed, then or earlier.
    """

    done: int
    skipped: int
    failures: tuple[tuple[RunSpec, str], ...]


def execute(
    store: Store,
    specs: Sequence[RunSpec],
    backend: Backend,
    reporter: SweepReporter,
    stage: str = "",
    retry: bool = False,
) -> Tally:
    """Compute every run that the store does not have.

    Runs that failed before are not tried again unless ``retry``; runs that another process is
    computing are waited for.

    Args:
        store, specs, backend: what to compute, with what, and where to.
        reporter: hears how it goes.
        stage: for the reporter.
        retry: try again what failed before.

    Raises:
        ConfigurationError: results can not be kept, or no work be done.
    """
    wanted = {spec.key: spec for spec in specs}
    store.plan(list(wanted.values()))
    store.clear_stale_claims()
    for problem in store.set_aside_damaged(wanted):
        reporter.note(f"{problem}; set aside in {store.path / 'damaged'}, computed again")
    if retry:
        store.forget_failures(wanted)
    there = [key for key in wanted if store.status_on_disk(key) is not Status.MISSING]
    skipped = sum(store.status_on_disk(key) is Status.DONE for key in there)
    reporter.begin(stage, len(wanted), len(there))
    _compute(store, wanted, backend, reporter)
    failures = [(spec, store.error(key)) for key, spec in wanted.items() if _failed(store, key)]
    return Tally(len(wanted) - len(failures), skipped, tuple(failures))


def _failed(store: Store, key: str) -> bool:
    return store.status_on_disk(key) is Status.FAILED


class _Listener:
    """Passes on what a backend says, and remembers of which runs it spoke."""

    def __init__(self, reporter: SweepReporter) -> None:
        self._reporter = reporter
        self.told: set[str] = set()

    def started(self, spec: RunSpec) -> None:
        self._reporter.started(spec)

    def finished(self, spec: RunSpec, outcome: Outcome) -> None:
        if outcome.kind != "busy":  # else somebody else will finish it
            self.told.add(spec.key)
            self._reporter.finished(spec, outcome)


def _compute(
    store: Store, wanted: dict[str, RunSpec], backend: Backend, reporter: SweepReporter
) -> None:
    listener = _Listener(reporter)
    while missing := _missing(store, wanted):
        free = [spec for spec in missing if store.status(spec.key) is Status.MISSING]
        if free:
            backend.run(store, free, listener)
        else:  # other processes have them all; should one die, its runs become free
            time.sleep(_POLL_SECONDS)
        for spec in missing:
            if spec.key not in listener.told and not _is_missing(store, spec):
                listener.finished(spec, Outcome(spec.key, "done"))


def _missing(store: Store, wanted: dict[str, RunSpec]) -> list[RunSpec]:
    return [spec for spec in wanted.values() if _is_missing(store, spec)]


def _is_missing(store: Store, spec: RunSpec) -> bool:
    return store.status_on_disk(spec.key) is Status.MISSING
