"""Checks of one field each, which name the field, its value and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator.errors import ConfigurationError, nearest

DTYPES = ("float32", "float64")
_LARGEST = 1e300


def frozen(value: Any) -> Any:
    """Lists made tuples and mappings copied, at every depth: nobody else can change a spec."""
    if isinstance(value, Mapping):
        return {str(key): frozen(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(frozen(item) for item in value)
    return value


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not one of ``allowed``.

    Raises:
        ConfigurationError: naming the nearest.
    """
    if value not in allowed:
        expected = " or ".join(repr(item) for item in allowed)
        raise ConfigurationError(
            f"{name} = {value!r}: expected {expected}.{nearest(str(value), allowed)}"
        )


def check_number(name: str, value: Any, low: float, high: float, allowed: str) -> None:
    """Refuse anything but a finite number in [low, high].

    Raises:
        ConfigurationError: quoting ``allowed``.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Integers too large for a float, infinities and NaN all fail the second test.
    if not is_number or not (low <= value <= high and abs(value) < _LARGEST):
        raise ConfigurationError(f"{name} = {value!r}: expected {allowed}")


def check_integer(name: str, value: object, low: int, unit: str) -> None:
    """Refuse anything but an integer >= low.

    Raises:
        ConfigurationError: naming the unit.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise ConfigurationError(f"{name} = {value!r}: expected an integer >= {low} ({unit})")
