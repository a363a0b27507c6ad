"""Profiles: how the workers of a fleet differ, as seconds per worker, [n_workers].

Worker i is numbered from 1 in the formulas, as in the papers, and from 0 everywhere else.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.delays import checked_seconds
from simulator.distributions import scipy_distribution
from simulator.errors import ConfigurationError, nearest
from simulator.randomness import Purpose

Seconds = NDArray[np.float64]


def equal(n_workers: int) -> Seconds:
    """h_i = 1."""
    return np.ones(n_workers)


def power(n_workers: int, exponent: float) -> Seconds:
    """h_i = i^exponent."""
    _check_number("exponent", exponent)
    with np.errstate(over="ignore", under="ignore"):
        seconds = np.arange(1, n_workers + 1, dtype=np.float64) ** exponent
    if not 0 < seconds[-1] < math.inf:
        raise ConfigurationError(
            f"exponent = {exponent!r}: {n_workers}^{exponent} is out of range; expected one "
            "closer to 0"
        )
    return seconds


def linear(n_workers: int) -> Seconds:
    """h_i = i."""
    return np.arange(1, n_workers + 1, dtype=np.float64)


def two_speed(
    n_workers: int,
    slow_factor: float,
    slow_workers: int | None = None,
    slow_fraction: float | None = None,
) -> Seconds:
    """h_i = 1 for the first workers, ``slow_factor`` for the last ones.

    Args:
        n_workers: n.
        slow_factor: > 0; inf is a worker that never finishes.
        slow_workers: how many are slow, 0 .. n; or
        slow_fraction: which share is slow, in [0, 1]; to the nearest whole number, half up.
    """
    _check_positive("slow_factor", slow_factor)
    if slow_workers is not None and slow_fraction is None:
        _check_count("slow_workers", slow_workers, 0, n_workers)
        n_slow = slow_workers
    elif slow_fraction is not None and slow_workers is None:
        _check_number("slow_fraction", slow_fraction)
        if not 0 <= slow_fraction <= 1:
            raise ConfigurationError(f"slow_fraction = {slow_fraction!r}: expected 0 to 1")
        n_slow = math.floor(slow_fraction * n_workers + 0.5)
    else:
        raise ConfigurationError("slow_workers: expected either this or slow_fraction")
    return np.where(np.arange(n_workers) < n_workers - n_slow, 1.0, float(slow_factor))


def last_slow(n_workers: int, slow_factor: float) -> Seconds:
    """h_i = 1, but h_n = ``slow_factor`` (> 0; inf never finishes)."""
    return two_speed(n_workers, slow_factor, slow_workers=1)


def explicit(n_workers: int, values: Sequence[float]) -> Seconds:
    """h_i = values[i - 1] (>= 0; inf never finishes)."""
    array = checked_seconds(values, "values")
    if len(array) != n_workers:
        raise ConfigurationError(
            f"values: {len(array)} numbers for {n_workers} workers; expected one for each"
        )
    return array


def drawn(
    n_workers: int, name: str, parameters: Mapping[str, Any], profile_seed: int = 0
) -> Seconds:
    """h_i drawn once from a scipy.stats distribution.

    The draw depends on (profile_seed, i) alone: every seed of a run meets the same fleet, and
    more workers leave the first ones as they were. For another fleet in every run, pass the run's
    seed.

    Args:
        n_workers: n.
        name, parameters: see ``simulator.distributions.scipy_distribution``.
        profile_seed: >= 0.
    """
    _check_count("profile_seed", profile_seed, 0)
    draws = scipy_distribution(name, parameters, np.ones(n_workers))
    workers = np.arange(n_workers, dtype=np.int32)
    return draws.seconds(profile_seed, Purpose.PROFILE, workers, np.zeros_like(workers))


@dataclass(frozen=True)
class Profile:
    """A row of the table of profiles.

    Attributes:
        make: (n_workers, parameters by name) -> [n_workers], before ``base_seconds``.
        summary: one line.
    """

    make: Callable[..., Seconds]
    summary: str

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of its parameters."""
        return tuple(inspect.signature(self.make).parameters)[1:]

    @property
    def required(self) -> tuple[str, ...]:
        """Names of those without a default."""
        signature = inspect.signature(self.make).parameters
        return tuple(name for name in self.parameters if signature[name].default is _NO_DEFAULT)


_NO_DEFAULT = inspect.Parameter.empty

PROFILES: dict[str, Profile] = {
    "equal": Profile(equal, "All workers alike."),
    "power": Profile(power, "Worker i takes i^exponent; 0.5 in the papers."),
    "linear": Profile(linear, "Worker i takes i."),
    "two-speed": Profile(two_speed, "The last workers are slow_factor times slower."),
    "last-slow": Profile(last_slow, "Only the last worker is slow, by slow_factor."),
    "explicit": Profile(explicit, "A list, one value per worker."),
    "drawn": Profile(drawn, "Each worker's constant drawn once from a scipy.stats distribution."),
}
"""Every profile, by name."""


def make_profile(
    kind: str,
    n_workers: int,
    base_seconds: float = 1.0,
    field: str = "profile",
    **parameters: Any,
) -> Seconds:
    """Seconds per worker, ``base_seconds * h_i``, [n_workers].

    Args:
        kind: a key of :data:`PROFILES`.
        n_workers: >= 1.
        base_seconds: >= 0; inf never finishes. For times that grow with the number of parameters
            d, multiply by :func:`dimension_factor`.
        field: what messages call the profile.
        **parameters: those of the profile.

    Raises:
        ConfigurationError: unknown profile, a missing, unknown or impossible parameter, numbers
            too large for a float.

    >>> make_profile("power", 3, base_seconds=2.0, exponent=1).tolist()
    [2.0, 4.0, 6.0]
    """
    if kind not in PROFILES:
        raise ConfigurationError(
            f"{field} = {kind!r}: no such profile.{nearest(str(kind), PROFILES)}"
        )
    profile = PROFILES[kind]
    try:
        _check_count("n_workers", n_workers, 1)
        _check_base(base_seconds)
        _check_names(kind, profile, parameters)
        shape = profile.make(n_workers, **parameters)
    except ConfigurationError as error:
        raise ConfigurationError(f"{field}.{error}") from error
    with np.errstate(over="ignore", invalid="ignore"):
        seconds = shape * base_seconds
    _check_products(seconds, shape, base_seconds, field)
    return seconds


def dimension_factor(dimension: int, exponent: float) -> float:
    """d^q: how times grow with the number of parameters d = ``dimension``, q = ``exponent``.

    Raises:
        ConfigurationError: the dimension is below 1, or the power is not a float.

    >>> dimension_factor(16, 0.25)
    2.0
    """
    if dimension < 1:
        raise ConfigurationError(f"dimension = {dimension!r}: expected an integer >= 1")
    _check_number("exponent", exponent)
    try:
        factor = float(dimension) ** exponent
    except OverflowError:
        factor = math.inf
    if not 0 < factor < math.inf:
        raise ConfigurationError(
            f"exponent = {exponent!r}: {dimension}^{exponent} is out of range; expected one "
            "closer to 0"
        )
    return factor


def _check_names(kind: str, profile: Profile, parameters: Mapping[str, Any]) -> None:
    known = profile.parameters
    for key in parameters:
        if key not in known:
            hint = nearest(key, known) if known else ""
            raise ConfigurationError(
                f"{key}: profile {kind!r} takes {', '.join(known) or 'no parameters'}.{hint}"
            )
    missing = [key for key in profile.required if key not in parameters]
    if missing:
        raise ConfigurationError(f"{missing[0]}: missing; profile {kind!r} needs it")


def _check_base(base_seconds: Any) -> None:
    if not _is_number(base_seconds) or not base_seconds >= 0:
        raise ConfigurationError(
            f"base_seconds = {base_seconds!r}: expected a number >= 0 (seconds)"
        )


def _check_products(seconds: Seconds, shape: Seconds, base_seconds: float, field: str) -> None:
    is_finite = np.isfinite(shape) & math.isfinite(base_seconds)
    is_positive = (shape > 0) & (base_seconds > 0)
    is_lost = np.isnan(seconds) | is_finite & np.isinf(seconds) | is_positive & (seconds == 0)
    for worker in np.flatnonzero(is_lost):
        raise ConfigurationError(
            f"{field}.base_seconds = {base_seconds!r}: times {shape[worker]:g}, for worker "
            f"{worker}, is not a number of seconds a float can hold"
        )


def _check_number(field: str, value: Any) -> None:
    if not _is_number(value) or not math.isfinite(value):
        raise ConfigurationError(f"{field} = {value!r}: expected a finite number")


def _check_positive(field: str, value: Any) -> None:
    if not _is_number(value) or not value > 0:
        raise ConfigurationError(f"{field} = {value!r}: expected a number > 0; inf means never")


def _check_count(field: str, value: Any, least: int, greatest: int | None = None) -> None:
    is_count = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_count or value < least or (greatest is not None and value > greatest):
        allowed = f">= {least}" if greatest is None else f"from {least} to {greatest} (workers)"
        raise ConfigurationError(f"{field} = {value!r}: expected an integer {allowed}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
