"""Figures of a run: a metric against simulated time, gradients and communications.

Each line is the median over seeds, each band the 20 to 80 % range (see ``statistics``); both are
step functions, since a metric holds until it is evaluated again. Matplotlib is imported when a
figure is drawn; no window is opened and no global backend or setting is changed. Labels are drawn
as they are written: a dollar sign begins no formula.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from analysis import statistics, style
from analysis.selection import MOST_LINES, worth_drawing
from analysis.statistics import Band
from simulator.errors import ConfigurationError, nearest
from simulator.records import Curve, Metric, RunDirectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POSITIONS = {
    "seconds": "Simulated time (s)",
    "gradients": "Gradients used",
    "communications": "Vectors sent by workers",
}
"""What metrics are drawn against: columns of the curves, and their axis labels."""

_MARKERS_PER_LINE = 6
_LOG_DECADES = 2
_LETTERS_PER_INCH = 12  # at 8 points
_AXIS_INCHES = 1.4  # about the height of a panel's axes
# Nothing about the moment or the machine: the same records give the same bytes.
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "ModDate": None},
}


@dataclass(frozen=True, eq=False)
class Line:
    """One method in one panel, its place in the run's list of methods giving its style."""

    index: int
    label: str
    grid: NDArray[np.float64]
    band: Band


def plot_run(
    directory: str | Path | RunDirectory,
    out: str | Path | None = None,
    metric: str | None = None,
    size: str = "column",
    log: bool | None = None,
) -> list[Path]:
    """Draw a run: a figure for each position and one overview of all, each as PNG and PDF.

    Args:
        directory: the run.
        out: where to write; default ``DIRECTORY/plots``.
        metric: name; default the run's first.
        size: "column" (3.3 inches wide) or "page" (6.9).
        log: a logarithmic metric axis; default for a positive metric where lower is better, once
            it spans more than two decades.

    Of more than eight methods, the best of each coordinator and update rule is drawn: what a
    grid of hyperparameters is for.

    Returns:
        The files written.

    Raises:
        ConfigurationError: not a readable run, no such metric or size, no curve to draw, a
            logarithm of a metric that is never positive, or files that can not be written.
    """
    run = directory if isinstance(directory, RunDirectory) else RunDirectory.open(directory)
    chosen = run.metric(metric)
    if size not in style.WIDTHS_INCHES:
        raise ConfigurationError(
            f"size = {size!r}: expected {' or '.join(map(repr, style.WIDTHS_INCHES))}."
            f"{nearest(size, style.WIDTHS_INCHES)}"
        )
    curves = [curve for curve in run.curves() if len(curve.seconds)]
    if not curves:
        raise ConfigurationError(f"{run.path}: nothing to draw: no method has finished")
    curves, note = worth_drawing(run, curves, chosen)
    log = _choose_log(curves, chosen, log)
    target = Path(run.path / "plots" if out is None else out)
    stem = quote(chosen.name, safe="")
    figures: dict[str, tuple[str, ...]] = {f"{stem}-vs-{p}": (p,) for p in POSITIONS}
    figures[f"{stem}-overview"] = tuple(POSITIONS)
    written: list[Path] = []
    for name, positions in figures.items():
        written += _draw_and_save(run, curves, chosen, positions, size, log, target / name, note)
    return written


def _choose_log(curves: Sequence[Curve], metric: Metric, log: bool | None) -> bool:
    values = np.concatenate([curve.metrics[metric.name] for curve in curves])
    values = values[np.isfinite(values)]
    if log and not np.any(values > 0):
        raise ConfigurationError(f"log = True: metric {metric.name!r} is never positive")
    if log is not None:
        return log
    if metric.higher_is_better or not len(values) or values.min() <= 0:
        return False
    return bool(np.log10(values.max()) - np.log10(values.min()) > _LOG_DECADES)


def _draw_and_save(
    run: RunDirectory,
    curves: Sequence[Curve],
    metric: Metric,
    positions: Sequence[str],
    size: str,
    log: bool,
    stem: Path,
    note: str,
) -> list[Path]:
    from matplotlib.style import context

    # "default" first: a matplotlibrc of the user's changes nothing.
    with context(["default", style.RC]):
        figure = draw(run, curves, metric, positions, size, log, note)
        return save_figure(figure, stem)


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write STEM.png and STEM.pdf, the same bytes for the same figure.

    Raises:
        ConfigurationError: they can not be written.
    """
    paths = []
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        for kind, metadata in _METADATA.items():
            path = stem.with_name(f"{stem.name}.{kind}")
            figure.savefig(path, format=kind, metadata=metadata)
            paths.append(path)
    except OSError as error:
        raise ConfigurationError(
            f"{stem.parent}: cannot write figures: {error.strerror or error}"
        ) from error
    return paths


def lines_of(
    run: RunDirectory, curves: Sequence[Curve], metric: Metric, position: str
) -> list[Line]:
    """One line per method that has a curve, in the run's order; it says if its median diverged."""
    lines: list[Line] = []
    for index, method in enumerate(run.methods):
        group = [curve for curve in curves if curve.method == method.id]
        if group:
            grid, band = statistics.band_over(group, metric, position)
            note = "" if np.isfinite(band.median[-1]) else " (diverged)"
            place = index if len(run.methods) <= MOST_LINES else len(lines)
            lines.append(Line(place, method.label + note, grid, band))
    return lines


def draw(
    run: RunDirectory,
    curves: Sequence[Curve],
    metric: Metric,
    positions: Sequence[str],
    size: str,
    log: bool,
    note: str = "",
) -> Figure:
    """Draw one panel per position on a figure of its own; see :func:`plot_run`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    width = style.WIDTHS_INCHES[size]
    side_by_side = size == "page"
    n_rows, n_columns = (1, len(positions)) if side_by_side else (len(positions), 1)
    panel_height = 2.1 if n_rows == 1 else 1.75
    figure = Figure(figsize=(width, n_rows * panel_height), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True).ravel()
    for panel, position in zip(panels, positions, strict=True):
        _draw_panel(panel, lines_of(run, curves, metric, position), log)
        panel.set_xlabel(POSITIONS[position])
        if not side_by_side or panel is panels[0]:
            label = f"{metric.label} ({metric.unit})" if metric.unit else metric.label
            panel.set_ylabel(_wrap(_literal(label), _AXIS_INCHES))
    lines = [_literal(run.name), _caption(curves), *([note] if note else [])]
    figure.suptitle("\n".join(_wrap(line, width) for line in lines), fontsize=8)
    _add_legend(figure, panels[0])
    return figure


def _caption(curves: Sequence[Curve]) -> str:
    counts = sorted({sum(c.method == m for c in curves) for m in {c.method for c in curves}})
    if counts == [1]:
        return "one seed"
    seeds = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"median and 20–80 % of {seeds} seeds"


def _draw_panel(panel: Axes, lines: Sequence[Line], log: bool) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    if log:
        panel.set_yscale("log", nonpositive="mask")
    for place, line in enumerate(lines):
        _draw_line(panel, line, place, len(lines))
    largest = max(line.grid[-1] for line in lines)
    panel.set_xlim(-0.02 * (largest or 1.0), 1.02 * (largest or 1.0))
    panel.xaxis.set_major_locator(MaxNLocator(nbins=5))
    panel.xaxis.set_major_formatter(FuncFormatter(_number_format(largest)))


def _draw_line(panel: Axes, line: Line, place: int, n_lines: int) -> None:
    look = style.line_style(line.index)
    median, low, high = line.band
    every = max(1, len(line.grid) // _MARKERS_PER_LINE)
    panel.fill_between(line.grid, low, high, step="post", color=look.colour, alpha=0.2, linewidth=0)
    panel.plot(
        line.grid,
        median,
        drawstyle="steps-post",
        color=look.colour,
        linestyle=look.dash,
        marker=look.marker,
        # Staggered, so that the markers of lines that coincide stand side by side.
        markevery=(every * place // n_lines, every),
        markeredgewidth=0,
        label=_literal(line.label),
    )


def _literal(text: str) -> str:
    return text.replace("$", r"\$")


def _wrap(text: str, inches: float) -> str:
    return textwrap.fill(text, int(_LETTERS_PER_INCH * inches))


def _number_format(largest: float) -> Callable[[float, object], str]:
    """Tick labels of one unit along an axis: 20k where numbers pass 10,000, else as they are."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if largest >= 10 * size:
            return lambda value, _: f"{value / size:g}{letter}" if value else "0"
    return lambda value, _: f"{value:g}"


def _add_legend(figure: Figure, panel: Axes) -> None:
    """Below everything, in as few rows as fit; the figure grows by the legend's height."""
    handles, labels = panel.get_legend_handles_labels()
    width, height = figure.get_size_inches()
    labels = [_wrap(label, width) for label in labels]
    for most_columns in (4, 3, 2, 1):
        n_rows = math.ceil(len(handles) / most_columns)
        n_columns = math.ceil(len(handles) / n_rows)
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=n_columns)
        extent = legend.get_window_extent()
        if extent.width / figure.dpi <= 0.98 * width or n_columns == 1:
            break
        legend.remove()
    figure.set_size_inches(width, height + extent.height / figure.dpi)
