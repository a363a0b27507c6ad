"""What a sweep shows: progress, and tables of what came out and of how it stands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from analysis.statistics import band as band_of
from analysis.statistics import final_value
from scenarios.backends.backend import Outcome
from scenarios.show import band, console_for, number
from scenarios.store import RunSpec, Status, Store
from scenarios.store.run_file import StoredRun
from scenarios.sweeps.execute import SweepReporter
from scenarios.sweeps.sweep import SweepResult
from scenarios.tuning.judging import Judged, sensitivities
from scenarios.tuning.tune import Tuned

_MOST_ROWS = 60
_SCORES: dict[str, str] = {
    "area": "Score: the metric averaged over simulated time; mean over the tuning seeds.",
    "time-to-target": "Score: simulated seconds to the target; mean over the tuning seeds, one "
    "that missed it counting as the length of the run.",
}
_LINES_EVERY = 20
"""Without a terminal, a line for about so many parts of a stage."""


class LineReporter(SweepReporter):
    """A line now and then, and one for every failure."""

    def __init__(self) -> None:
        self._console = console_for(stderr=True)
        self._done, self._wanted, self._said = 0, 0, 0

    def begin(self, stage: str, wanted: int, there: int) -> None:
        """See :class:`SweepReporter`."""
        self._done, self._wanted, self._said = there, wanted, there
        self.note(f"{f'{stage}: ' if stage else ''}{wanted} runs, {there} of them there already")

    def finished(self, spec: RunSpec, outcome: Outcome) -> None:
        """See :class:`SweepReporter`."""
        self._done += 1
        if outcome.kind == "failed":
            self.note(f"failed: {spec.name}: {outcome.error}")
        is_last = self._done == self._wanted
        if is_last or self._done - self._said >= self._wanted / _LINES_EVERY:
            self._said = self._done
            self.note(f"[{self._done}/{self._wanted}] {spec.name} ({outcome.wall_seconds:.1f} s)")

    def note(self, text: str) -> None:
        """See :class:`SweepReporter`."""
        self._console.print(text, soft_wrap=True)


class BarReporter(SweepReporter):
    """A progress bar for every stage."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: Any = None

    def begin(self, stage: str, wanted: int, there: int) -> None:
        """See :class:`SweepReporter`."""
        if self._task is not None:
            self._progress.update(self._task, visible=False)
        self._stage = stage or "runs"
        self._task = self._progress.add_task(self._stage, total=wanted, completed=there)

    def started(self, spec: RunSpec) -> None:
        """See :class:`SweepReporter`."""
        self._progress.update(self._task, description=f"{self._stage}: {spec.name}"[:80])

    def finished(self, spec: RunSpec, outcome: Outcome) -> None:
        """See :class:`SweepReporter`."""
        self._progress.advance(self._task)
        if outcome.kind == "failed":
            self.note(f"failed: {spec.name}: {outcome.error}")

    def note(self, text: str) -> None:
        """See :class:`SweepReporter`."""
        self._progress.console.print(text, soft_wrap=True)


@contextmanager
def reporter_for(quiet: bool) -> Iterator[SweepReporter]:
    """A bar on a terminal, lines elsewhere, nothing if ``quiet``."""
    console = console_for(stderr=True)
    if quiet:
        yield SweepReporter()
    elif not console.is_terminal:
        yield LineReporter()
    else:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=True) as progress:
            yield BarReporter(progress)


def print_sweep(result: SweepResult) -> None:
    """Print what came out of a sweep, and where it is."""
    console = console_for()
    if result.tuned:
        console.print(_SCORES[result.criterion])
    for tuned in result.tuned[:_MOST_ROWS]:
        _print_tuned(tuned, console)
    console.print(_outcomes(result))
    tally = result.tally
    console.print(
        f"{tally.done} runs done, {tally.skipped} of them earlier; {len(tally.failures)} failed. "
        f"Store: {result.store.path}",
        soft_wrap=True,
    )


def _outcomes(result: SweepResult) -> Table:
    """The final metric of every method at every point."""
    groups: dict[tuple[Any, ...], list[StoredRun]] = {}
    axes = list(result.store.axes)
    for spec in {spec.key: spec for spec in result.runs}.values():
        row = (*(spec.settings.get(axis) for axis in axes), spec.method.label)
        runs = groups.setdefault(row, [])
        if result.store.status_on_disk(spec.key) is Status.DONE:
            runs.append(result.store.read(spec.key))
    table = Table(title="Final value: median [20 %, 80 %]", box=box.SIMPLE_HEAD)
    table.title_justify = "left"
    for name in (*axes, "method"):
        table.add_column(name)
    for name in ("metric", "final", "seeds"):
        table.add_column(name, justify="right")
    for row, runs in list(groups.items())[:_MOST_ROWS]:
        table.add_row(*(_cell(value) for value in row), *_final(runs))
    if len(groups) > _MOST_ROWS:
        table.caption = f"and {len(groups) - _MOST_ROWS} more rows: they are in the store"
    return table


def _final(runs: Sequence[StoredRun]) -> tuple[str, str, str]:
    if not runs:
        return "-", "-", "0"
    metric = runs[0].metrics[0]
    values = [final_value(run.curve, metric) for run in runs]
    return metric.label, band(band_of(values, metric.higher_is_better)), str(len(runs))


def _print_tuned(tuned: Tuned, console: Console) -> None:
    best = tuned.best
    where = _told(tuned.point.settings)
    title = f"{tuned.method.label}{f' at {where}' if where else ''}"
    chosen = _told(best.candidate.settings) or "nothing to tune"
    console.print(
        f"{title}: {chosen} (score {_score(best)}, best of {len(tuned.judged)})", soft_wrap=True
    )
    for text in tuned.edges:
        console.print(f"  edge: {text}", soft_wrap=True)
    if len(tuned.judged) > 1:
        console.print(_sensitivity_table(tuned))


def _sensitivity_table(tuned: Tuned) -> Table:
    """For every value of every hyperparameter, the best score that is possible with it."""
    table = Table(title="Best score with each value", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("hyperparameter", "value", "score"):
        table.add_column(name, justify="left" if name == "hyperparameter" else "right")
    found = sensitivities(tuned.judged)
    for one in found[:_MOST_ROWS]:
        is_best = one.judged is tuned.best
        score = f"{_score(one.judged)}{' *' if is_best else ''}"
        table.add_row(one.hyperparameter, _cell(one.value), score)
    return table


def _score(judged: Judged) -> str:
    notes = []
    if judged.n_lost:
        notes.append(f"{judged.n_lost} diverged or failed")
    if judged.n_missed:
        notes.append(f"{judged.n_missed} of {judged.n_seeds} missed the target")
    value = "-" if math.isnan(judged.score) else number(judged.score)
    return f"{value} ({', '.join(notes)})" if notes else value


def print_status(store: Store, each: bool) -> None:
    """Print how many runs are done, failed, running and missing, or how it stands with each."""
    console = console_for()
    rows = store.wanted()
    known = {row["key"] for row in rows}
    rows += [{"key": key} for key in store.done() if key not in known]
    stand = {row["key"]: store.status(row["key"]) for row in rows}
    if each:
        for row in rows:
            console.print(f"{stand[row['key']].value:8}{_row_name(row)}", soft_wrap=True)
    counts = {status: list(stand.values()).count(status) for status in Status}
    told = ", ".join(f"{count} {status.value}" for status, count in counts.items())
    console.print(f"{store.path}: {len(rows)} runs: {told}", soft_wrap=True)
    seconds = store.wall_seconds()
    if seconds:
        console.print(f"{sum(seconds.values()):.1f} s of computing, on all processes together")
    for row in rows:
        if stand[row["key"]] is Status.FAILED:
            error = store.error(row["key"])
            console.print(f"failed: {_row_name(row)}: {error}", soft_wrap=True)


def _row_name(row: Mapping[str, Any]) -> str:
    if "method" not in row:
        return f"{row['key']} (no plan here asks for it)"
    where = _told(row["settings"])
    return f"{row['method']} seed {row['seed']}{f' ({where})' if where else ''}"


def _told(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{k} = {_cell(v)}" for k, v in settings.items() if v is not None)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
