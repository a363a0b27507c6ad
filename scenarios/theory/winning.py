"""Who wins along an axis: intervals, and the points where the winner changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.theory.comparison import crossovers, fastest
from analysis.theory.complexities import Complexity, total_seconds
from analysis.theory.setting import Setting
from scenarios.theory.axes import Axis

_PROBES = 81


class Reign(NamedTuple):
    """A method is fastest from ``low`` to ``high``."""

    row: Complexity
    low: float
    high: float


def reigns(rows: Sequence[Complexity], setting: Setting, axis: Axis) -> list[Reign]:
    """Who is fastest where along an axis, everything else as in ``setting``; of equals the first.

    A reign shorter than an 80th of the axis may be missed.
    """

    def at(value: float) -> Setting:
        return axis.kind.change(setting, value)

    values = axis.values(_PROBES).tolist()
    best = [_fastest(rows, at(value)) for value in values]
    found = [Reign(rows[best[0]], values[0], values[-1])]
    for index in np.flatnonzero(np.diff(best)):
        new = rows[best[index + 1]]
        low, high = values[index], values[index + 1]
        crossed = crossovers(found[-1].row, new, at, low, high) if axis.name != "workers" else []
        border = crossed[0] if crossed else high  # from equal on, or for whole workers
        found[-1] = found[-1]._replace(high=border)
        found.append(Reign(new, border, values[-1]))
    return found


def _fastest(rows: Sequence[Complexity], setting: Setting) -> int:
    return int(fastest(np.array([total_seconds(row, setting) for row in rows])))
