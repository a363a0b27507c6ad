"""Per-worker values: how one entry of a scenario becomes one value for each worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.errors import ConfigurationError

_FORMS = "one value, a list with one entry per worker, {low = ..., high = ...} or {cycle = [...]}"


def per_worker(name: str, value: Any, n_workers: int) -> list[Any]:
    """One entry per worker, [n_workers].

    Args:
        name: the field, for messages.
        value: one value for all; a list or tuple with one entry per worker; ``{"low", "high"}``,
            evenly spaced from the first worker to the last; ``{"cycle": [...]}``, in turn.
        n_workers: size of the fleet.

    Raises:
        ConfigurationError: wrong length or form.
    """
    if isinstance(value, Mapping):
        return _spread(name, value, n_workers)
    if not isinstance(value, list | tuple | np.ndarray):
        return [value] * n_workers
    if len(value) != n_workers:
        raise ConfigurationError(
            f"{name} has {len(value)} entries for {n_workers} workers: expected {_FORMS}"
        )
    return list(value)


def _spread(name: str, value: Mapping[str, Any], n_workers: int) -> list[Any]:
    if set(value) == {"low", "high"}:
        low, high = (_number(f"{name}.{end}", value[end]) for end in ("low", "high"))
        return [float(x) for x in np.linspace(low, high, n_workers)]
    cycle = value.get("cycle")
    if set(value) == {"cycle"} and isinstance(cycle, list | tuple) and cycle:
        return [cycle[worker % len(cycle)] for worker in range(n_workers)]
    raise ConfigurationError(f"{name} = {dict(value)!r}: expected {_FORMS}")


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ConfigurationError(f"{name} = {value!r}: expected a finite number")
    return float(value)


def worker_numbers(name: str, value: Any, n_workers: int) -> NDArray[np.float64]:
    """The same for numbers, [n_workers].

    Raises:
        ConfigurationError: wrong length, form, or not a finite number.
    """
    entries = per_worker(name, value, n_workers)
    return np.array([_number(f"{name}[{i}]", entry) for i, entry in enumerate(entries)])


def worker_vectors(name: str, value: Any, n_workers: int, size: int) -> NDArray[np.float64]:
    """The same for vectors, [n_workers, size]; a number is meant for every coordinate.

    Raises:
        ConfigurationError: wrong length, form, or not finite numbers.
    """
    rows = []
    for i, entry in enumerate(per_worker(name, value, n_workers)):
        if not isinstance(entry, list | tuple | np.ndarray):
            rows.append(np.full(size, _number(f"{name}[{i}]", entry)))
            continue
        if len(entry) != size:
            raise ConfigurationError(
                f"{name}[{i}] has {len(entry)} entries: expected one number or {size}, "
                "one per coordinate of the observation"
            )
        rows.append(np.array([_number(f"{name}[{i}][{j}]", x) for j, x in enumerate(entry)]))
    return np.stack(rows)


def groups_of(entries: list[Any]) -> tuple[NDArray[np.int32], list[Any]]:
    """Which workers share an entry.

    Returns:
        group of each worker, [n_workers], and the distinct entries, in order of appearance.
    """
    distinct: list[Any] = []
    group = []
    for entry in entries:
        if entry not in distinct:
            distinct.append(entry)
        group.append(distinct.index(entry))
    return np.array(group, np.int32), distinct
