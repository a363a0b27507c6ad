"""What a run shows: a progress bar while it lasts, then its tables."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from analysis.statistics import Band
from analysis.summary import MethodSummary, Summary, summarise
from scenarios.run import Reporter, RunResult
from simulator.records import RunRow

_LEAST_WIDTH = 100
"""Columns presumed when the output is no terminal."""


class Printer(Console):
    """A console that goes quiet when nobody reads on; rich's own ends the process."""

    def on_broken_pipe(self) -> None:
        """Print nowhere from now on: what is computed is kept all the same."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def console_for(stderr: bool = False) -> Console:
    """Where to print; wide enough if it is no terminal."""
    console = Printer(stderr=stderr, markup=False, highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _LEAST_WIDTH)
    return console


class LineReporter(Reporter):
    """A line for each (method, seed) that is done."""

    def __init__(self) -> None:
        self._console = console_for(stderr=True)

    def begin(self, trials: int) -> None:
        """See :class:`Reporter`."""
        self._trials, self._done = trials, 0

    def finished(self, row: RunRow) -> None:
        """See :class:`Reporter`."""
        self._done += 1
        self._console.print(f"[{self._done}/{self._trials}] {_outcome(row)}", soft_wrap=True)

    def note(self, text: str) -> None:
        """See :class:`Reporter`."""
        self._console.print(text, soft_wrap=True)


class BarReporter(Reporter):
    """A progress bar over all (method, seed), and what the current one is doing."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._done = 0

    def begin(self, trials: int) -> None:
        """See :class:`Reporter`."""
        self._task = self._progress.add_task("starting", total=trials)

    def note(self, text: str) -> None:
        """See :class:`Reporter`."""
        self._progress.console.print(text, soft_wrap=True)

    def doing(self, what: str, trials: int, phase: str, fraction: float) -> None:
        """See :class:`Reporter`."""
        part = 0.0 if phase == "simulating" else trials * fraction
        self._progress.update(
            self._task,
            completed=self._done + part,
            description=f"{what}: {phase} {100 * fraction:.0f} %",
        )

    def finished(self, row: RunRow) -> None:
        """See :class:`Reporter`."""
        self._done += 1
        self._progress.update(self._task, completed=self._done)


@contextmanager
def reporter_for(quiet: bool) -> Iterator[Reporter]:
    """A bar on a terminal, lines elsewhere, nothing if ``quiet``."""
    console = console_for(stderr=True)
    if quiet:
        yield Reporter()
    elif not console.is_terminal:
        yield LineReporter()
    else:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed:.1f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=True) as progress:
            yield BarReporter(progress)


def _outcome(row: RunRow) -> str:
    what = row.error or f"{row.steps} server steps in {row.end_seconds:g} simulated seconds"
    return f"{row.method} seed {row.seed}: {what} ({row.wall_seconds:.1f} s)"


def print_result(result: RunResult) -> None:
    """Print a run's tables and where it is."""
    console = console_for()
    summary = summarise(result.directory)
    console.print(outcome_table(summary))
    console.print(cost_table(summary))
    for row in summary.rows:
        if not math.isnan(row.length_bias):
            console.print(f"{row.label}: {_bias(row)}", soft_wrap=True)
        for text in row.stalled:
            console.print(f"{row.label}: {text}", soft_wrap=True)
    console.print(f"Written to {result.directory.path}", soft_wrap=True)


def _bias(row: MethodSummary) -> str:
    """What timing by environment step does to which gradients are used."""
    if row.length_bias == 1:
        return "used trajectories are as long as started ones"
    percent = f"{100 * abs(row.length_bias - 1):.2g} %"
    if row.length_bias > 1:
        return f"used trajectories are {percent} longer than started ones"
    return f"used trajectories are {percent} shorter than started ones: what ends early wins"


def outcome_table(summary: Summary) -> Table:
    """How good each method got, and when."""
    metric = summary.metric
    unit = f" ({metric.unit})" if metric.unit else ""
    n_seeds = max((row.n_seeds for row in summary.rows), default=0)
    table = Table(
        title=f"{metric.label}{unit}: median [20 %, 80 %] of {n_seeds} seed(s)",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("method")
    goal = "" if math.isnan(summary.target) else f"\nto {number(summary.target)}"
    for title in ("final", "best", f"simulated s{goal}", "server\nsteps"):
        table.add_column(title, justify="right")
    for row in summary.rows:
        table.add_row(
            row.label,
            band(row.final),
            band(row.best),
            _time_to_target(row),
            count(row.steps),
        )
    if summary.target_is_default and not math.isnan(summary.target):
        table.caption = "target: 90 % of the way to the best final value (or evaluation.target)"
        table.caption_justify = "left"
    return table


def cost_table(summary: Summary) -> Table:
    """What each method did with its gradients and with the workers' time."""
    table = Table(
        title="Gradients, and shares of the workers' time",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("method")
    columns = (
        "used",
        "dis-\ncarded",
        "can-\ncelled",
        "useful",
        "wasted",
        "un-\nfinished",
        "com-\nmunic.",
        "idle",
    )
    for title in columns:
        table.add_column(title, justify="right")
    for row in summary.rows:
        shares = row.shares
        times = (
            shares.useful, shares.wasted, shares.unfinished, shares.communicating, shares.idle,
        )  # fmt: skip
        table.add_row(
            row.label,
            *(count(value) for value in (row.used, row.discarded, row.cancelled)),
            *(percent(value) for value in times),
        )
    return table


def _time_to_target(row: MethodSummary) -> str:
    if math.isnan(row.seconds_to_target.median):
        return "-"
    if math.isinf(row.seconds_to_target.median):
        return f"not reached ({row.n_reached}/{row.n_seeds})"
    return band(row.seconds_to_target)


def band(values: Band) -> str:
    """The median, and below it [low, high]."""
    median, low, high = (number(float(value)) for value in values)
    return median if median == low == high else f"{median}\n[{low}, {high}]"


def number(value: float) -> str:
    """Four significant digits."""
    if math.isnan(value):
        return "nan"
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def count(value: float) -> str:
    """A whole number, or "-" if there is none."""
    return "-" if math.isnan(value) else f"{value:,.0f}"


def percent(share: float) -> str:
    """A fraction as a percentage."""
    return "-" if math.isnan(share) else f"{100 * share:.1f}%"
