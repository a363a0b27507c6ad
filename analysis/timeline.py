"""Timelines: what workers and server did when, how stale gradients were, where the time went."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from analysis import chrome_trace, intervals, style
from analysis.accounting import time_spent
from analysis.plots import save_figure
from simulator.errors import ConfigurationError, nearest
from simulator.records import MethodRecord, RunDirectory
from simulator.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "useful": "#006a93",
    "wasted": "#d9534f",
    "unfinished": "#9a9a9a",
    "communicating": "#f0dc82",
    "idle": "#f3f3f3",
}
"""Of what a worker does, in the order in which it is drawn."""

_MOST_WORKERS = 30
_MOST_TICKS = 12
_EDGED_PER_ROW = 300  # intervals of equal length that can be told apart in a row
_MOST_DOTS = 2000
_BAR = 0.8  # of a row's height


def write_timelines(
    directory: str | Path | RunDirectory,
    out: str | Path | None = None,
    method: str | None = None,
    seed: int | None = None,
    start: float | None = None,
    stop: float | None = None,
) -> tuple[list[Path], list[str]]:
    """Draw each method's timeline, write it as a Chrome trace, and draw the fleet's time.

    Args:
        directory: the run.
        out: where to write; default ``DIRECTORY/timeline``.
        method: id; default every method that has a schedule.
        seed: default the first one on record.
        start, stop: simulated seconds; default from 0 for as long as a page can show.

    Returns:
        The files written, and what was left out of which.

    Raises:
        ConfigurationError: no such run, method or seed; an empty window; files can not be written.
    """
    run = directory if isinstance(directory, RunDirectory) else RunDirectory.open(directory)
    chosen_seed, schedules = read_schedules(run, method, seed)
    target = Path(run.path / "timeline" if out is None else out)
    written: list[Path] = []
    notes: list[str] = []
    for record, schedule in schedules:
        window = intervals.choose_window(schedule, start, stop, _MOST_WORKERS)
        stem = target / f"{quote(record.id, safe='')}-seed{chosen_seed}"
        title = f"{run.name}: {record.label}, seed {chosen_seed}"
        written += _drawn(partial(draw_timeline, schedule, window, title), stem)
        trace_path = stem.with_name(f"{stem.name}.trace.json")
        left_out = chrome_trace.write(schedule, trace_path, start, stop)
        written.append(trace_path)
        shown = f"picture: {window.note}" if window.note else ""
        notes += [f"{record.id}, {note}" for note in (shown, left_out) if note]
    title = f"{run.name}, seed {chosen_seed}"
    written += _drawn(partial(draw_fleet, schedules, title), target / f"fleet-seed{chosen_seed}")
    return written, notes


def read_schedules(
    run: RunDirectory, method: str | None = None, seed: int | None = None
) -> tuple[int, list[tuple[MethodRecord, Schedule]]]:
    """The seed, and the schedules of one method or all that finished on it.

    Raises:
        ConfigurationError: no such method or seed, or none has finished.
    """
    known = [record.id for record in run.methods]
    if method is not None and method not in known:
        raise ConfigurationError(
            f"method = {method!r}: {run.path} has no such method.{nearest(method, known)}"
        )
    rows = run.runs(method)
    seeds = sorted({row.seed for row in rows})
    if not seeds:
        raise ConfigurationError(f"{run.path}: nothing to draw: no method has finished")
    if seed is not None and seed not in seeds:
        raise ConfigurationError(f"seed = {seed}: {run.path} has seed {', '.join(map(str, seeds))}")
    chosen = seeds[0] if seed is None else seed
    finished = {row.method for row in rows if row.seed == chosen}
    kept = [record for record in run.methods if record.id in finished]
    return chosen, [(record, run.schedule(record.id, chosen)) for record in kept]


def _drawn(draw: Callable[[], Figure], stem: Path) -> list[Path]:
    from matplotlib.style import context

    with context(["default", style.RC]):
        return save_figure(draw(), stem)


def _figure(height: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(style.WIDTHS_INCHES["page"], height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def draw_timeline(schedule: Schedule, window: intervals.Window, title: str) -> Figure:
    """Draw a row for the server and one for each worker shown, and staleness beneath."""
    rows = len(window.workers)
    height = 0.9 + 0.14 * (rows + 1)
    figure = _figure(height + 1.6)
    gantt, below = figure.subplots(2, 1, sharex=True, height_ratios=(height, 1.0))
    _draw_rows(gantt, schedule, window)
    _draw_staleness(below, schedule, window)
    caption = f"\n{window.note}" if window.note else ""
    figure.suptitle((title + caption).replace("$", r"\$"), fontsize=8)
    _colour_legend(figure, with_step=True)
    return figure


def _draw_rows(panel: Axes, schedule: Schedule, window: intervals.Window) -> None:
    place = {worker: row for row, worker in enumerate(window.workers)}
    panel.set_xlim(window.start, window.stop)
    panel.set_ylim(len(place) - 0.4, -1.6)
    panel.grid(False)
    seconds = window.stop - window.start
    span = [(window.start, seconds)]
    for row in place.values():
        panel.broken_barh(span, (row - _BAR / 2, _BAR), color=COLOURS["idle"], linewidth=0)
    _bars(panel, intervals.communicating(schedule, window), place, "communicating", seconds)
    for kind, found in intervals.computing(schedule, window).items():
        _bars(panel, found, place, kind, seconds)
    steps = schedule.step_seconds
    steps = steps[(steps >= window.start) & (steps <= window.stop)]
    panel.vlines(steps, -1 - _BAR / 2, -1 + _BAR / 2, color="black", linewidth=0.5)
    every = -(-len(place) // _MOST_TICKS)
    ticks = [row for row in place.values() if row % every == 0]
    panel.set_yticks([-1, *ticks], ["server", *(str(window.workers[row]) for row in ticks)])
    panel.set_ylabel("Worker")


def _bars(
    panel: Axes, found: intervals.Intervals, place: dict[int, int], kind: str, window_seconds: float
) -> None:
    from matplotlib.collections import PolyCollection

    middle = np.array([place[worker] for worker in found.worker.tolist()], float)
    low, high = middle - _BAR / 2, middle + _BAR / 2
    x = np.stack([found.start, found.start, found.stop, found.stop], axis=1)
    corners = np.stack([x, np.stack([low, high, high, low], axis=1)], axis=2)
    # A thin edge keeps one computation apart from the next, unless it would cover the bar.
    wide = found.stop - found.start > window_seconds / _EDGED_PER_ROW
    bars = PolyCollection(
        list(corners),
        facecolors=COLOURS[kind],
        edgecolors="white",
        linewidths=np.where(wide, 0.25, 0.0).tolist() or 0.25,
    )
    panel.add_collection(bars, autolim=False)


def _draw_staleness(panel: Axes, schedule: Schedule, window: intervals.Window) -> None:
    from matplotlib.ticker import MaxNLocator

    used = np.flatnonzero(schedule.step >= 0)
    at = schedule.step_seconds[schedule.step[used]]
    inside = (at >= window.start) & (at <= window.stop)
    staleness = schedule.staleness()[used][inside]
    # Points by the thousand are an image, even in a PDF.
    dots = inside.sum() > _MOST_DOTS
    panel.plot(at[inside], staleness, ".", color="black", markersize=2, rasterized=bool(dots))
    panel.set_ylim(-0.5, max(1, staleness.max(initial=0)) * 1.1 + 0.5)
    panel.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    panel.set_ylabel("Staleness\n(steps)")
    panel.set_xlabel("Simulated time (s)")


def _colour_legend(figure: Figure, with_step: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [
        Patch(facecolor=colour, edgecolor="#999999", linewidth=0.4, label=kind)
        for kind, colour in COLOURS.items()
    ]
    if with_step:
        step = Line2D(
            [], [], color="black", marker="|", markersize=6, linestyle="", label="server step"
        )
        handles.append(step)
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handlelength=1.2)


def draw_fleet(schedules: list[tuple[MethodRecord, Schedule]], title: str) -> Figure:
    """Draw where the workers' time went, and how stale the used gradients were, per method."""
    figure = _figure(1.1 + 0.42 * len(schedules))
    time, stale = figure.subplots(1, 2, sharey=True)
    names = [record.label.replace("$", r"\$") for record, _ in schedules]
    for row, (_, schedule) in enumerate(schedules):
        shares = time_spent(schedule).shares()._asdict()
        left = 0.0
        for kind, colour in COLOURS.items():
            share = 100 * shares[kind]
            time.barh(row, share, 0.7, left, color=colour, edgecolor="#999999", linewidth=0.3)
            left += share
        _staleness_row(stale, schedule, row)
    time.set_yticks(range(len(names)), names)
    time.set_ylim(len(names) - 0.5, -0.5)
    time.set_xlim(0, 100)
    time.set_xlabel("Workers' time (%)")
    stale.set_xlabel("Staleness of used gradients\n(steps; bins widen to the right)")
    stale.set_xscale("symlog", linthresh=1)
    stale.set_xlim(left=-0.1)
    stale.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    figure.suptitle(title.replace("$", r"\$"), fontsize=8)
    _colour_legend(figure, with_step=False)
    return figure


def _staleness_row(panel: Axes, schedule: Schedule, row: int) -> None:
    """A histogram on the row's own baseline; its height is the share of the fullest bin."""
    staleness = schedule.staleness()
    staleness = staleness[staleness >= 0]
    edges = _bin_edges(int(staleness.max(initial=0)))
    counts, _ = np.histogram(staleness, edges)
    heights = 0.8 * counts / max(1, counts.max())
    panel.bar(
        edges[:-1], -heights, np.diff(edges), row + 0.4, align="edge", color=COLOURS["useful"],
        edgecolor="white", linewidth=0.3,
    )  # fmt: skip


def _bin_edges(largest: int) -> np.ndarray:
    """Whole numbers up to 8, then eight bins to a doubling of the range, [n_bins + 1]."""
    few = np.arange(min(largest, 8) + 2)
    if largest < len(few) - 1:
        return few.astype(float)
    more = np.unique(np.geomspace(few[-1], largest + 1, 25).round())
    return np.concatenate([few[:-1], more]).astype(float)
