"""Delays drawn from a distribution: any of scipy.stats by name, or measured values.

scipy.stats takes a second to import, so it is imported when the first distribution is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.delays import checked_seconds
from simulator.errors import ConfigurationError, nearest
from simulator.random_delays import RandomDelays

_PROBES = np.array([0.001, 0.25, 0.5, 0.75, 0.999])


def scipy_distribution(
    name: str,
    parameters: Mapping[str, Any],
    scale: ArrayLike,
    field: str = "",
) -> RandomDelays:
    """Delays ``scale[worker] * X`` with X from a continuous scipy.stats distribution.

    Draws by the inverse of the distribution function. Where scipy has no formula for it
    (``foldnorm``, ``studentized_range``), a draw takes milliseconds.

    Args:
        name: as in scipy.stats: ``lognorm``, ``gamma``, ``expon``, ``pareto``, ...
        parameters: the distribution's shapes by their scipy names, all required; ``loc``
            (default 0) and ``scale`` (default 1).
        scale: seconds per unit, [n_workers], >= 0; inf never finishes.
        field: what messages say before ``name``, ``parameters`` and ``scale``.

    Raises:
        ConfigurationError: no such distribution, not a continuous one; a missing, unknown or
            impossible parameter; negative values, no spread.
    """
    place = f"{field}." if field else ""
    distribution = _find(name, place)
    shapes = tuple(distribution.shapes.split(", ")) if distribution.shapes else ()
    _check_parameters(name, shapes, parameters, place)
    with _scipy_errors(name):
        frozen = distribution(**{key: float(value) for key, value in parameters.items()})
    support = _checked_support(distribution, frozen, parameters, place)
    _check_quantiles(name, frozen, place)
    quantile = partial(_checked_quantile, frozen, name)
    return RandomDelays(quantile, support, partial(_mean, frozen, name), scale, f"{place}scale")


def empirical(values: ArrayLike, scale: ArrayLike, field: str = "values") -> RandomDelays:
    """Delays ``scale[worker] * X`` with X resampled with replacement from measured ``values``.

    X is the (floor(u * m) + 1)-th smallest of the m values, so their order does not matter and
    fleets with different measurements are coupled as quantiles.

    Args:
        values: [m], seconds, >= 0; see ``simulator.traces.read_values`` for files.
        scale: factor per worker, [n_workers], >= 0; inf never finishes.
        field: what messages call ``values``.

    Raises:
        ConfigurationError: empty, or a value is negative or NaN.
    """
    ordered = np.sort(checked_seconds(values, field))
    support = (float(ordered[0]), float(ordered[-1]))
    quantile = partial(_resampled, ordered)
    return RandomDelays(quantile, support, lambda: float(ordered.mean()), scale, "scale")


def distribution_names() -> list[str]:
    """Names of the continuous distributions of scipy.stats."""
    from scipy import stats

    return [name for name in dir(stats) if isinstance(getattr(stats, name), stats.rv_continuous)]


def _find(name: str, place: str) -> Any:
    from scipy import stats

    found = getattr(stats, name, None) if isinstance(name, str) else None
    if isinstance(found, stats.rv_continuous):
        return found
    if isinstance(found, stats.rv_discrete):
        raise ConfigurationError(
            f"{place}name = {name!r}: a discrete distribution; expected a continuous one "
            "(or list measured values as an empirical delay)"
        )
    raise ConfigurationError(
        f"{place}name = {name!r}: expected a continuous distribution of scipy.stats."
        + nearest(str(name), distribution_names())
    )


def _check_parameters(
    name: str, shapes: tuple[str, ...], parameters: Mapping[str, Any], place: str
) -> None:
    known = (*shapes, "loc", "scale")
    if not isinstance(parameters, Mapping):
        raise ConfigurationError(
            f"{place}parameters = {parameters!r}: expected numbers by name: {', '.join(known)}"
        )
    for key, value in parameters.items():
        if key not in known:
            raise ConfigurationError(
                f"{place}parameters.{key}: {name} has no such parameter; expected some of "
                f"{', '.join(known)}.{nearest(str(key), known)}"
            )
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not _is_finite(value):
            raise ConfigurationError(
                f"{place}parameters.{key} = {value!r}: expected a finite number"
            )
    missing = [shape for shape in shapes if shape not in parameters]
    if missing:
        raise ConfigurationError(
            f"{place}parameters: {name} also needs {', '.join(missing)}; expected "
            f"{', '.join(shapes)}, and optionally loc and scale"
        )


def _is_finite(value: Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _checked_support(
    distribution: Any, frozen: Any, parameters: Mapping[str, Any], place: str
) -> tuple[float, float]:
    with _scipy_errors(distribution.name):
        least, greatest = (float(end) for end in frozen.support())
    if math.isnan(least) or math.isnan(greatest):
        raise ConfigurationError(
            f"{place}parameters: scipy.stats.{distribution.name} does not exist for "
            f"{_listing(parameters)}; expected {_ranges(distribution)}"
        )
    if least < 0:
        raise ConfigurationError(
            f"{place}parameters: {distribution.name} with "
            f"{_listing(parameters) or 'its defaults'} takes values in "
            f"[{least:g}, {greatest:g}], but a delay cannot be negative; expected a distribution "
            "on [0, inf), such as lognorm, gamma or truncnorm, or a larger loc"
        )
    return least, greatest


def _mean(frozen: Any, name: str) -> float:
    with _scipy_errors(name):
        mean = float(frozen.mean())
    return math.inf if math.isnan(mean) else mean


def _listing(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in parameters.items())


def _ranges(distribution: Any) -> str:
    # scipy has no public way to ask; this is the one its fit() uses. It moves excluded ends in
    # by the smallest float, hence the rounding.
    shapes = [
        f"{'integer ' if shape.integrality else ''}{shape.name} in "
        f"{'[' if shape.inclusive[0] else '('}{round(shape.domain[0], 9):g}, "
        f"{round(shape.domain[1], 9):g}{']' if shape.inclusive[1] else ')'}"
        for shape in distribution._shape_info()
    ]
    return ", ".join([*shapes, "scale > 0"])


def _check_quantiles(name: str, frozen: Any, place: str) -> None:
    with _scipy_errors(name):
        probes = np.asarray(frozen.ppf(_PROBES))
    if not np.isfinite(probes).all() or (probes < 0).any() or (np.diff(probes) < 0).any():
        raise ConfigurationError(
            f"{place}parameters: scipy cannot compute the quantiles of {name} here: "
            f"{probes.tolist()} at {_PROBES.tolist()}; expected less extreme parameters"
        )
    if probes[0] == probes[-1]:
        raise ConfigurationError(
            f"{place}parameters: {name} has no spread here, every value is {probes[0]:g}; "
            "expected a larger scale, or a constant delay"
        )


@contextmanager
def _scipy_errors(name: str) -> Iterator[None]:
    """Turn what scipy raises for parameters it cannot cope with into a ConfigurationError."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (ArithmeticError, ValueError, RuntimeError) as error:
        raise ConfigurationError(
            f"distribution {name}: scipy cannot compute it with these parameters: {error}; "
            "expected less extreme ones"
        ) from error


def _checked_quantile(frozen: Any, name: str, draws: NDArray[np.float64]) -> NDArray[np.float64]:
    with _scipy_errors(name):
        values = np.asarray(frozen.ppf(draws), np.float64)
    bad = np.flatnonzero(~(values >= 0))
    if len(bad):
        raise ConfigurationError(
            f"distribution {name}: scipy gives {values[bad[0]]} at quantile "
            f"{float(draws[bad[0]])!r}; expected less extreme parameters"
        )
    return values


def _resampled(ordered: NDArray[np.float64], draws: NDArray[np.float64]) -> NDArray[np.float64]:
    # u <= 1 - 2^-53, so even rounded u * m stays below m.
    return ordered[(draws * len(ordered)).astype(np.int64)]
