"""Figures of predictions: terms of each method, seconds along an axis, who wins where.

All can be read in greyscale: parts differ in marker, lines in dash, regions in hatching and name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis import style
from analysis.plots import save_figure
from analysis.theory.comparison import WinnerMap
from analysis.theory.complexities import COMPLEXITIES, LOWER_BOUNDS, Breakdown, Complexity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_INCHES = style.WIDTHS_INCHES["page"]
_PLACES = {row.id: index for index, row in enumerate(COMPLEXITIES)}
_PART_MARKERS = {"computation": "o", "communication": "s"}
_HATCHES = ("", "////", "....", "\\\\\\\\", "xx", "--", "++", "oo", "||", "**")
_MARGINS = (1.5, 2.0, 5.0, 10.0)
_LEAST_SHARE_NAMED = 0.02
_SECONDS = "seconds to E|grad f| ≤ epsilon, up to universal constants"


@dataclass(frozen=True, eq=False)
class AxisValues:
    """Values along an axis of a figure.

    Attributes:
        label: of the axis.
        values: [n], rising.
        is_log: its scale.
        here: where the scenario is; None if nowhere.
    """

    label: str
    values: NDArray[np.float64]
    is_log: bool
    here: float | None = None


@dataclass(frozen=True)
class StepBar:
    """Seconds of a method's step, and a bound on it; inf if there is none."""

    label: str
    seconds: float
    at_most: float


def draw_and_save(draw: Any, stem: Path, *arguments: Any) -> list[Path]:
    """Draw one of the figures below, and write STEM.png and STEM.pdf.

    Raises:
        ConfigurationError: they can not be written.
    """
    from matplotlib.style import context

    with context(["default", style.RC]):
        return save_figure(draw(*arguments), stem)


def step_figure(bars: Sequence[StepBar], title: str) -> Figure:
    """Predicted seconds of a server step, one bar a method; a bound is a tick."""
    figure, panel = _figure(0.7 + 0.24 * len(bars))
    finite = [bar.seconds for bar in bars if math.isfinite(bar.seconds)]
    for place, bar in enumerate(bars):
        if math.isfinite(bar.seconds):
            panel.barh(place, bar.seconds, color="#9a9a9a", edgecolor="black", linewidth=0.6)
            text = f" {bar.seconds:.3g}"
            if math.isfinite(bar.at_most) and bar.at_most > bar.seconds:
                panel.plot(bar.at_most, place, marker="|", color="black", markersize=9)
                text += f", at most {bar.at_most:.3g}"
        else:
            text = " never"
        end = bar.at_most if math.isfinite(bar.at_most) else bar.seconds
        panel.text(end if math.isfinite(end) else 0, place, text, va="center", fontsize=7)
    panel.set_yticks(range(len(bars)), [_plain(bar.label) for bar in bars])
    panel.invert_yaxis()
    panel.set_xlim(0, 1.35 * max(finite, default=1.0))
    panel.set_xlabel("seconds of a server step")
    panel.set_title(_plain(title))
    return figure


def term_figure(parts: Sequence[Breakdown], lower_bound: float, title: str) -> Figure:
    """Every method's terms on a logarithmic axis, its total, and the lower bound as a line."""
    figure, panel = _figure(1.3 + 0.26 * len(parts))
    finite = [item for item in parts if 0 < item.seconds() < math.inf]
    for place, item in enumerate(finite):
        for share in item.shares:
            if share.seconds > 0:
                _draw_share(panel, place, share.part, share.seconds)
        panel.plot(item.seconds(), place, "k|", markersize=11, markeredgewidth=1.6)
        panel.text(1.25 * item.seconds(), place, item.dominant.name, va="center", fontsize=6.5)
    if 0 < lower_bound < math.inf:
        panel.axvline(lower_bound, color="black", linestyle=(0, (4, 2)), linewidth=1)
    _legend_of_terms(panel)
    panel.set_xscale("log")
    panel.set_yticks(range(len(finite)), [_plain(item.row.label) for item in finite])
    panel.invert_yaxis()
    panel.set_xlabel(_SECONDS)
    panel.set_title(_plain(title))
    _widen(panel, 6.0)
    return figure


def _draw_share(panel: Axes, place: int, part: str, seconds: float) -> None:
    fill = "black" if part == "computation" else "white"
    panel.plot(
        seconds, place, _PART_MARKERS[part], color="black", markerfacecolor=fill, markersize=4
    )


def _legend_of_terms(panel: Axes) -> None:
    panel.plot([], [], "ko", markersize=4, label="a term of computation")
    panel.plot([], [], "ks", markerfacecolor="white", markersize=4, label="of communication")
    panel.plot([], [], "k|", markersize=11, markeredgewidth=1.6, label="total, largest term named")
    panel.plot([], [], color="black", linestyle=(0, (4, 2)), linewidth=1, label="lower bound")
    panel.figure.legend(loc="outside lower center", ncols=4)


def line_figure(
    rows: Sequence[Complexity], seconds: NDArray[np.float64], axis: AxisValues, title: str
) -> Figure:
    """Total seconds along an axis, one line a row.

    Args:
        rows: which.
        seconds: [n_rows, n_values].
        axis: the values.
        title: of the figure.
    """
    figure, panel = _figure(4.2)
    bounds = {row.id for row in LOWER_BOUNDS}
    for row, values in zip(rows, seconds, strict=True):
        if row.id in bounds:
            label = _plain(row.label)
            panel.plot(axis.values, values, color="#b0b0b0", linewidth=4, zorder=0.5, label=label)
            continue
        look = style.line_style(_PLACES[row.id])
        panel.plot(
            axis.values,
            values,
            color=look.colour,
            linestyle=look.dash,
            marker=look.marker,
            markevery=(2 * _PLACES[row.id] % 9, 9),
            markeredgewidth=0,
            label=_plain(row.label),
        )
    panel.set_yscale("log")
    panel.set_xscale("log" if axis.is_log else "linear")
    _mark(panel.axvline, axis)
    panel.set_xlabel(_plain(axis.label))
    panel.set_ylabel("seconds, up to constants")
    panel.set_title(_plain(title))
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def winner_figure(found: WinnerMap, x: AxisValues, y: AxisValues, title: str) -> Figure:
    """Regions of the plane in which each method is fastest, hatched, and how far it is ahead.

    Args:
        found: over the values of x and y.
        x, y: the axes.
        title: of the figure.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure, panel = _figure(3.6)
    present = [index for index in range(len(found.rows)) if (found.winner == index).any()]
    shades = np.linspace(0.97, 0.55, max(len(present), 2))
    patches: list[Any] = []
    x_edges, y_edges = _edges(x), _edges(y)
    for order, index in enumerate(present):
        mask = np.where(found.winner == index, 1.0, np.nan)
        shade, hatch = str(shades[order]), _HATCHES[order % len(_HATCHES)]
        panel.pcolor(
            x_edges, y_edges, np.ma.masked_invalid(mask), cmap=_one_colour(shade), hatch=hatch,
            edgecolor="none", linewidth=0, rasterized=False,
        )  # fmt: skip
        label = _plain(found.rows[index].label)
        patches.append(Patch(facecolor=shade, hatch=hatch, edgecolor="#555555", label=label))
        if (found.winner == index).mean() > _LEAST_SHARE_NAMED:
            _name_region(panel, found.winner == index, x, y, label)
    if _draw_margins(panel, found.margin, x, y):
        label = "so many times as fast as the next"
        patches.append(Line2D([], [], color="black", linewidth=0.8, label=label))
    _scale(panel, x, y)
    panel.set_title(_plain(title))
    figure.legend(handles=patches, loc="outside lower center", ncols=4)
    return figure


def _draw_margins(panel: Axes, margin: NDArray[np.float64], x: AxisValues, y: AxisValues) -> bool:
    """Contours of how far the winner is ahead; False if there is nothing to draw."""
    finite = margin[np.isfinite(margin)]
    levels = [level for level in _MARGINS if len(finite) and finite.min() < level < finite.max()]
    if not levels:
        return False
    lines = panel.contour(x.values, y.values, margin, levels, colors="black", linewidths=0.8)
    panel.clabel(lines, fmt=lambda level: f"{level:g}x", fontsize=6)
    return True


def _one_colour(shade: str) -> Any:
    from matplotlib.colors import ListedColormap

    return ListedColormap([shade])


def _name_region(
    panel: Axes, mask: NDArray[np.bool_], x: AxisValues, y: AxisValues, label: str
) -> None:
    """Write a label where the region is widest, so that it is inside."""
    from scipy.ndimage import distance_transform_edt

    # Text is wide and low: distances to the side count less.
    depth = distance_transform_edt(np.pad(mask, 1), sampling=(1.0, 0.35))[1:-1, 1:-1]
    row, column = np.unravel_index(int(np.argmax(depth)), depth.shape)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    place = (x.values[column], y.values[row])
    panel.text(*place, label, ha="center", va="center", fontsize=7, bbox=box)


def _scale(panel: Axes, x: AxisValues, y: AxisValues) -> None:
    panel.set_xscale("log" if x.is_log else "linear")
    panel.set_yscale("log" if y.is_log else "linear")
    panel.set_xlim(x.values[0], x.values[-1])
    panel.set_ylim(y.values[0], y.values[-1])
    panel.set_xlabel(_plain(x.label))
    panel.set_ylabel(_plain(y.label))
    panel.grid(False)
    _mark(panel.axvline, x)
    _mark(panel.axhline, y)


def _mark(draw: Any, axis: AxisValues) -> None:
    """A dotted line where the scenario is."""
    if axis.here is not None and axis.values[0] <= axis.here <= axis.values[-1]:
        draw(axis.here, color="black", linestyle=(0, (1, 2)), linewidth=0.9)


def _edges(axis: AxisValues) -> NDArray[np.float64]:
    values = np.log(axis.values) if axis.is_log else axis.values
    middles = (values[1:] + values[:-1]) / 2
    ends = [2 * values[0] - middles[0]], [2 * values[-1] - middles[-1]]
    edges = np.concatenate([ends[0], middles, ends[1]])
    return np.exp(edges) if axis.is_log else edges


def _figure(height_inches: float) -> tuple[Figure, Axes]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH_INCHES, height_inches), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots()


def _widen(panel: Axes, factor: float) -> None:
    """Room for text to the right, on a logarithmic axis."""
    low, high = panel.get_xlim()
    panel.set_xlim(low, high * factor)


def _plain(text: str) -> str:
    """A dollar sign begins no formula."""
    return text.replace("$", r"\$")
