"""Per-worker values: how one entry of a scenario becomes one value for each worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenarios.problems.specs import EnvironmentSpec
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


@dataclass(frozen=True, eq=False)
class Variants:
    """The distinct environments among the workers'.

    Attributes:
        of_worker: int32, [n_workers], which variant each worker has.
        parameters: name -> value, one mapping per variant, [n_variants].
        observation_scale: [n_variants, observation_size].
        reward_scale: [n_variants].
        share: [n_variants], the fraction of workers that have it; adds up to 1.
    """

    of_worker: NDArray[np.int32]
    parameters: tuple[dict[str, Any], ...]
    observation_scale: NDArray[np.float64]
    reward_scale: NDArray[np.float64]
    share: NDArray[np.float64]

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.parameters)


def _parameters(spec: EnvironmentSpec, n_workers: int) -> dict[str, list[Any]]:
    return {
        name: per_worker(f"environment_parameters.{name}", value, n_workers)
        for name, value in spec.environment_parameters.items()
    }


def first_parameters(spec: EnvironmentSpec, n_workers: int) -> dict[str, Any]:
    """Worker 0's environment parameters.

    Raises:
        ConfigurationError: a per-worker value of the wrong length or form.
    """
    return {name: values[0] for name, values in _parameters(spec, n_workers).items()}


def variants_of(spec: EnvironmentSpec, n_workers: int, observation_size: int) -> Variants:
    """Which workers share an environment.

    Raises:
        ConfigurationError: a per-worker value of the wrong length or form.
    """
    values = _parameters(spec, n_workers)
    seen = worker_vectors("observation_scale", spec.observation_scale, n_workers, observation_size)
    paid = worker_numbers("reward_scale", spec.reward_scale, n_workers)
    first_worker: dict[str, int] = {}
    of_worker = np.empty(n_workers, np.int32)
    index: dict[int, int] = {}
    for worker in range(n_workers):
        everything = repr(
            ([v[worker] for v in values.values()], seen[worker].tolist(), paid[worker].item())
        )
        first = first_worker.setdefault(everything, worker)
        of_worker[worker] = index.setdefault(first, len(index))
    firsts = list(index)
    return Variants(
        of_worker=of_worker,
        parameters=tuple({name: v[w] for name, v in values.items()} for w in firsts),
        observation_scale=seen[firsts],
        reward_scale=paid[firsts],
        share=np.bincount(of_worker, minlength=len(firsts)) / n_workers,
    )
