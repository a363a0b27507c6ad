"""A fleet as theory sees it: h_1 <= ... <= h_n seconds per gradient, and sums over the fastest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.errors import ConfigurationError

Seconds = NDArray[np.float64]


def checked(values: ArrayLike, field: str, is_zero_allowed: bool = False) -> Seconds:
    """``values`` as an array of numbers > 0, [n]; inf is a worker that never finishes.

    Args:
        values: [n], seconds.
        field: what messages call them.
        is_zero_allowed: >= 0 instead.

    Raises:
        ConfigurationError: empty, not flat, or a value that is NaN or out of range.
    """
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigurationError(f"{field}: expected a list of numbers (seconds)") from error
    if array.ndim != 1 or not len(array):
        raise ConfigurationError(f"{field}: expected a non-empty flat list of numbers (seconds)")
    is_right = array >= 0 if is_zero_allowed else array > 0
    if not is_right.all():
        index = int(np.argmin(is_right))
        raise ConfigurationError(
            f"{field}[{index}] = {float(array[index])!r}: expected a number "
            f"{'>=' if is_zero_allowed else '>'} 0 (seconds); inf means never"
        )
    return array


def ascending(seconds_per_gradient: ArrayLike, field: str = "seconds_per_gradient") -> Seconds:
    """h as an array that rises, [n_workers], all > 0, the fastest finite.

    Raises:
        ConfigurationError: not positive, not ascending, or nobody ever finishes.
    """
    seconds = checked(seconds_per_gradient, field)
    falls = np.flatnonzero(seconds[1:] < seconds[:-1])
    if len(falls):
        index = int(falls[0]) + 1
        raise ConfigurationError(
            f"{field}[{index}] = {float(seconds[index])!r}: comes after "
            f"{float(seconds[index - 1])!r}; expected the fastest worker first: sort them"
        )
    if not np.isfinite(seconds[0]):
        raise ConfigurationError(f"{field}: no worker ever finishes; expected a finite one")
    return seconds


def check_gradients(name: str, value: Any) -> int:
    """A count of gradients from 1 to 2^53, beyond which floats skip integers.

    Raises:
        ConfigurationError: it is not.
    """
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or not 1 <= value <= 2**53:
        raise ConfigurationError(
            f"{name} = {value!r}: expected an integer from 1 to 2^53 (gradients)"
        )
    return int(value)


def check_share(name: str, value: Any, n_workers: int) -> int:
    """A count of workers from 1 to ``n_workers``.

    Raises:
        ConfigurationError: it is not.
    """
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or not 1 <= value <= n_workers:
        raise ConfigurationError(
            f"{name} = {value!r}: expected an integer from 1 to {n_workers} (workers)"
        )
    return int(value)


def harmonic_means(seconds_per_gradient: ArrayLike) -> Seconds:
    """H_m = (1/m sum_{i<=m} 1/h_i)^-1 of the m fastest workers, m = 1 .. n, [n_workers].

    >>> harmonic_means([1.0, 2.0, 4.0]).round(3).tolist()
    [1.0, 1.333, 1.714]
    """
    seconds = ascending(seconds_per_gradient)
    return np.arange(1, len(seconds) + 1) / np.cumsum(1.0 / seconds)
