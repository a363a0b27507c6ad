"""How figures look: sizes of a two-column paper, and lines that differ without colour.

Method number i of a run always has colour, dash and marker number i, whichever methods have
finished. Colours go from dark to light in even steps, so that they also differ in greyscale;
dashes and markers differ without any colour.
"""

from __future__ import annotations

from typing import Any, NamedTuple

WIDTHS_INCHES = {"column": 3.3, "page": 6.9}
"""One column, and both columns, of a two-column paper."""

COLOURS = (
    "#000000",
    "#3d1480",
    "#9f1036",
    "#006a93",
    "#bd6300",
    "#31a55b",
    "#dd90c6",
    "#e0bd35",
)
"""Lightness (CIELAB L*) rises from each to the next; hues alternate."""

_SOLID = (0, ())
DASHES: tuple[tuple[int, tuple[float, ...]], ...] = (
    _SOLID,
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (2.5, 1)),
    (0, (9, 2)),
    (0, (5, 1.2, 1, 1.2, 1, 1.2)),
    (0, (1, 2.4)),
)
MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*")

RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.linewidth": 0.4,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.2,
    "lines.dash_capstyle": "butt",
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "legend.columnspacing": 1.4,
    "figure.dpi": 200,
    "savefig.dpi": 200,
    # TrueType outlines: text in the PDF stays text, and journals accept the fonts.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
}
"""Matplotlib settings, applied while a figure is made and drawn and nowhere else."""


class LineStyle(NamedTuple):
    """How one method is drawn."""

    colour: str
    dash: tuple[int, tuple[float, ...]]
    marker: str


def line_style(index: int) -> LineStyle:
    """The style of method number ``index`` >= 0; the first 64 differ from each other.

    From the ninth on, colours come back with another dash and marker.
    """
    turn, place = divmod(index, len(COLOURS))
    return LineStyle(
        COLOURS[place],
        DASHES[(place + turn) % len(DASHES)],
        MARKERS[(place + turn) % len(MARKERS)],
    )
