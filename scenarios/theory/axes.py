"""Axes along which methods are compared: ways to change one thing of a setting."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.theory.setting import Setting
from simulator.errors import ConfigurationError, nearest

DEFAULT_AXES = "exponent,kappa"
MOST_WORKERS = 1_000_000


@dataclass(frozen=True)
class AxisKind:
    """A thing that can be changed.

    Attributes:
        label: for plots.
        change: (setting, value) -> setting.
        here: its value in a setting; None if a setting has no such value.
        span: (setting) -> default range.
        is_log: whether its scale is logarithmic; values are > 0 then, else >= 0.
    """

    label: str
    change: Callable[[Setting, float], Setting]
    here: Callable[[Setting], float | None]
    span: Callable[[Setting], tuple[float, float]]
    is_log: bool = True


@dataclass(frozen=True)
class Axis:
    """A thing that is changed from ``low`` to ``high``."""

    name: str
    kind: AxisKind
    low: float
    high: float

    def values(self, count: int) -> NDArray[np.float64]:
        """Evenly spaced on its scale, [count]."""
        make = np.geomspace if self.kind.is_log else np.linspace
        return make(self.low, self.high, count)


def _exponent(setting: Setting, value: float) -> Setting:
    ranks = np.arange(1, setting.n_workers + 1, dtype=np.float64)
    fastest = setting.seconds_per_gradient[0]
    return replace(setting, seconds_per_gradient=fastest * ranks**value)


def _spread(setting: Setting, value: float) -> Setting:
    seconds = setting.seconds_per_gradient
    return replace(setting, seconds_per_gradient=seconds[0] * (seconds / seconds[0]) ** value)


def _workers(setting: Setting, value: float) -> Setting:
    """A fleet of another size whose speeds are spread alike: h as a function of rank."""
    count, seconds = max(1, round(value)), setting.seconds_per_gradient
    old, new = (np.arange(0.5, n) / n for n in (len(seconds), count))
    return replace(setting, seconds_per_gradient=np.interp(new, old, seconds))


def _objective_axis(name: str, label: str) -> AxisKind:
    def change(setting: Setting, value: float) -> Setting:
        return replace(setting, objective=replace(setting.objective, **{name: value}))

    def here(setting: Setting) -> float:
        value: float = getattr(setting.objective, name)
        return value

    return AxisKind(label, change, here, lambda setting: _around(here(setting)))


def _around(value: float, decades: float = 2.0) -> tuple[float, float]:
    centre = value if value > 0 else 1.0
    return centre / 10**decades, centre * 10**decades


def _kappa_span(setting: Setting) -> tuple[float, float]:
    return _around(setting.kappa_seconds or float(setting.seconds_per_gradient[0]))


AXES: dict[str, AxisKind] = {
    "exponent": AxisKind(
        "heterogeneity p, h_i = h_1 i^p", _exponent, lambda s: None, lambda s: (0.0, 2.0), False
    ),
    "spread": AxisKind(
        "spread s, h_i = h_1 (h_i / h_1)^s", _spread, lambda s: 1.0, lambda s: (0.0, 2.0), False
    ),
    "kappa": AxisKind(
        "kappa, seconds of a communication",
        lambda setting, value: replace(setting, kappa_seconds=value),
        lambda setting: setting.kappa_seconds,
        _kappa_span,
    ),
    "workers": AxisKind(
        "workers n, speeds spread as here",
        _workers,
        lambda setting: float(setting.n_workers),
        lambda setting: (1.0, float(min(100 * setting.n_workers, 10_000))),
    ),
    "epsilon": _objective_axis("epsilon", "target epsilon of E|grad f|"),
    "sigma": _objective_axis("sigma", "sigma of a gradient"),
    "gradient_lipschitz": _objective_axis("gradient_lipschitz", "L_g"),
    "hessian_lipschitz": _objective_axis("hessian_lipschitz", "L_h"),
    "initial_gap": _objective_axis("initial_gap", "Delta"),
}
"""By name."""


def read_axes(text: str, setting: Setting) -> tuple[Axis, Axis]:
    """Two axes, as ``"exponent,kappa"`` or ``"workers=1:1000,epsilon=0.01:1"``.

    Raises:
        ConfigurationError: not two different ones, no such axis, or not a range of it.
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2:
        raise ConfigurationError(f"--axes {text!r}: expected two, as {DEFAULT_AXES}")
    first, second = (_read_axis(part, setting) for part in parts)
    if first.name == second.name:
        raise ConfigurationError(f"--axes {text!r}: expected two different ones")
    return first, second


def _read_axis(text: str, setting: Setting) -> Axis:
    name, equals, span = text.partition("=")
    if name not in AXES:
        raise ConfigurationError(f"--axes: no axis {name!r}.{nearest(name, AXES)}")
    kind = AXES[name]
    low, high = _read_span(name, span, kind.is_log) if equals else kind.span(setting)
    if name == "workers" and not 1 <= low < high <= MOST_WORKERS:
        raise ConfigurationError(f"--axes workers={span}: expected LOW:HIGH, 1 to {MOST_WORKERS}")
    return Axis(name, kind, low, high)


def _read_span(name: str, span: str, is_log: bool) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in span.split(":"))
    except ValueError:
        low = high = math.nan
    if not (low > 0 if is_log else low >= 0) or not low < high < math.inf:
        sign = ">" if is_log else ">="
        raise ConfigurationError(
            f"--axes {name}={span}: expected LOW:HIGH, finite numbers {sign} 0, as {name}=0.1:10"
        )
    return low, high
