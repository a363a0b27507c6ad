"""Methods against each other and against lower bounds: gaps, crossover points, who wins where."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.theory.complexities import Complexity, complexity, total_seconds
from analysis.theory.setting import Setting
from simulator.errors import ConfigurationError

_PROBES = 241
_ROUNDING = 1e-9


def gap(row: Complexity, setting: Setting, lower_bound: str = "lower-bound") -> float:
    """How many times a row exceeds a lower bound, up to universal constants.

    Args:
        row: a method's.
        setting: where.
        lower_bound: id of a row of ``LOWER_BOUNDS``; the default holds for every method.
    """
    least = total_seconds(complexity(lower_bound), setting)
    return total_seconds(row, setting) / least if least else math.inf


def crossovers(
    first: Complexity,
    second: Complexity,
    setting_at: Callable[[float], Setting],
    low: float,
    high: float,
) -> list[float]:
    """Where two rows cost the same, along anything: epsilon, kappa, an exponent of speeds, ...

    Args:
        first, second: rows.
        setting_at: value -> setting.
        low, high: ends of the values to look at; positive ones are searched on a logarithmic
            scale.

    Returns:
        The values in between, rising. Two crossings closer than a 240th of the range are missed.

    Raises:
        ConfigurationError: the range is empty or not finite.
    """
    from scipy.optimize import brentq

    if not -math.inf < low < high < math.inf:
        raise ConfigurationError(f"low = {low!r}, high = {high!r}: expected finite, low < high")
    is_log = low > 0

    def difference(place: float) -> float:
        setting = setting_at(math.exp(place) if is_log else place)
        pair = total_seconds(first, setting), total_seconds(second, setting)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.subtract(*np.log(pair)))

    ends = (math.log(low), math.log(high)) if is_log else (low, high)
    places = np.linspace(*ends, _PROBES).tolist()
    values = [difference(place) for place in places]
    found = []
    for index in range(_PROBES - 1):
        here, after = values[index], values[index + 1]
        if not math.isfinite(here * after):  # never, or no time at all
            continue
        if here == 0 and index and values[index - 1] * after < 0:
            found.append(places[index])
        elif here * after < 0:
            found.append(brentq(difference, places[index], places[index + 1], xtol=1e-12))
    return [math.exp(place) if is_log else place for place in found]


@dataclass(frozen=True, eq=False)
class WinnerMap:
    """Who is fastest, over two axes.

    Attributes:
        rows: who competes.
        winner: index into ``rows``, [n_y, n_x].
        margin: the second best's seconds over the best's, >= 1, [n_y, n_x].
    """

    rows: tuple[Complexity, ...]
    winner: NDArray[np.int64]
    margin: NDArray[np.float64]


def winners(
    rows: Sequence[Complexity],
    setting_at: Callable[[float, float], Setting],
    x_values: Sequence[float],
    y_values: Sequence[float],
) -> WinnerMap:
    """Find the fastest row at every point of a grid; see :func:`fastest`.

    Args:
        rows: at least two.
        setting_at: (x, y) -> setting.
        x_values, y_values: [n_x] and [n_y].
    """
    seconds = np.array(
        [
            [[total_seconds(row, setting) for row in rows] for setting in line]
            for line in ([setting_at(x, y) for x in x_values] for y in y_values)
        ]
    )
    ordered = np.sort(seconds, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        margin = ordered[..., 1] / ordered[..., 0]
    return WinnerMap(tuple(rows), fastest(seconds), margin)


def fastest(seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Index of the least along the last axis; of those equal up to rounding, the first."""
    least = seconds.min(axis=-1, keepdims=True)
    return np.argmax(seconds <= least * (1 + _ROUNDING), axis=-1)
