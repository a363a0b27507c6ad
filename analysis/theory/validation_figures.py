"""Figures of the validation: shares of bounds, intervals, seconds against epsilon, error by step.

They draw plain numbers; all can be read in greyscale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_INCHES = style.WIDTHS_INCHES["page"]
_SHORT_DECADES, _TINY_DECADES = 2.2, 0.7
_REFERENCE: dict[str, Any] = {"color": "#8c8c8c", "linewidth": 2.6, "zorder": 0.5}


@dataclass(frozen=True, eq=False)
class Series:
    """One line.

    Attributes:
        label: in the legend.
        x, y: [n_points].
        low, high: [n_points], its interval; None if it has none.
        is_reference: a prediction or bound: a broad grey line without markers.
        style_index: which style of ``analysis.style``.
    """

    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    is_reference: bool = False
    style_index: int = 0


@dataclass(frozen=True)
class PanelOfSeries:
    """A panel of lines.

    Attributes:
        title: above it.
        x_label, y_label: with units.
        series: what is drawn.
        is_log: both scales.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    is_log: tuple[bool, bool] = (True, True)


@dataclass(frozen=True)
class Interval:
    """A row of an interval plot: a mean between bounds, and what was expected."""

    label: str
    low: float
    mean: float
    high: float
    expected: float


def share_figure(ratios: Mapping[str, Sequence[float]], x_label: str, title: str) -> Figure:
    """The fraction of cases up to each value, a step line for every name."""
    figure, (panel,) = _figure(2.9, 1)
    for index, (label, values) in enumerate(ratios.items()):
        look, ordered = style.line_style(index), np.sort(values)
        share = np.arange(1, len(ordered) + 1) / len(ordered)
        panel.step(
            ordered, share, where="post", color=look.colour, linestyle=look.dash, label=label
        )
    panel.axvline(1.0, **_REFERENCE)
    panel.set_xlim(0, 1.05)
    panel.set_ylim(0, 1.02)
    panel.set_xlabel(x_label)
    panel.set_ylabel("share of the fleets")
    panel.set_title(title)
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def interval_figure(rows: Sequence[Interval], x_label: str, title: str) -> Figure:
    """One interval a row; a hollow diamond where theory expects the mean."""
    figure, (panel,) = _figure(0.9 + 0.2 * len(rows), 1)
    for place, row in enumerate(rows):
        panel.plot([row.low, row.high], [place, place], color="black", linewidth=1.2)
        panel.plot(row.mean, place, "o", color="black", markersize=3.2)
        panel.plot(row.expected, place, "D", markersize=6, color="#8c8c8c", markerfacecolor="none")
    panel.plot([], [], "o-", color="black", markersize=3.2, label="measured, with interval")
    panel.plot([], [], "D", markersize=6, color="#8c8c8c", markerfacecolor="none", label="theory")
    panel.set_yticks(range(len(rows)), [row.label for row in rows])
    panel.invert_yaxis()
    panel.set_xlabel(x_label)
    panel.set_title(title)
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def series_figure(panels: Sequence[PanelOfSeries], title: str, n_columns: int = 2) -> Figure:
    """Panels of lines with one legend."""
    n_columns = min(n_columns, len(panels))
    n_rows = -(-len(panels) // n_columns)
    figure, axes = _figure(0.75 + 2.15 * n_rows, n_columns, n_rows)
    for panel, content in zip(axes, panels, strict=False):
        for series in content.series:
            _draw_series(panel, series)
        panel.set_xscale("log" if content.is_log[0] else "linear")
        panel.set_yscale("log" if content.is_log[1] else "linear")
        for axis, is_log in zip((panel.xaxis, panel.yaxis), content.is_log, strict=True):
            if is_log:
                _plain_ticks(axis)
        panel.set_xlabel(content.x_label)
        panel.set_ylabel(content.y_label)
        panel.set_title(content.title)
    for panel in axes[len(panels) :]:
        panel.set_visible(False)
    figure.suptitle(title, fontsize=8.5)
    _legend_of(figure, axes)
    return figure


def _draw_series(panel: Axes, series: Series) -> None:
    if series.is_reference:
        look: dict[str, Any] = {**_REFERENCE, "linestyle": style.DASHES[series.style_index]}
        panel.plot(series.x, series.y, label=series.label, **look)
        return
    found = style.line_style(series.style_index)
    panel.plot(
        series.x, series.y, color=found.colour, linestyle=found.dash, marker=found.marker,
        markevery=max(1, len(series.x) // 8), label=series.label,
    )  # fmt: skip
    if series.low is not None and series.high is not None:
        panel.fill_between(
            series.x, series.low, series.high, color=found.colour, alpha=0.18, linewidth=0
        )


def _plain_ticks(axis: Any) -> None:
    """On a short logarithmic axis few plain numbers, on a long one powers of ten alone."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_minor_formatter(NullFormatter())
    low, high = axis.get_view_interval()
    decades = np.log10(high / low)
    if decades < _SHORT_DECADES:
        steps = (1, 2, 5) if decades > _TINY_DECADES else (1, 1.5, 2, 3, 4, 6, 8)
        axis.set_major_locator(LogLocator(subs=steps))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _legend_of(figure: Figure, axes: Sequence[Axes]) -> None:
    """Every label once."""
    found: dict[str, Any] = {}
    for panel in axes:
        handles, labels = panel.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=3)


def _figure(height_inches: float, n_columns: int, n_rows: int = 1) -> tuple[Figure, list[Axes]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH_INCHES, height_inches), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
