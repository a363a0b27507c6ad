"""Candidates: a method with other hyperparameters, and where the ends of its grid are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.method_section import (
    MethodSection,
    coordinator_parameters,
    find_rule,
    read_method,
    write_method,
)
from scenarios.schema import Scenario
from scenarios.store.run_file import setting
from scenarios.tuning.settings import Grid, TuneSection
from simulator.errors import ConfigurationError, nearest

_DEFAULT_FACTORS = [2.0**power for power in range(-4, 5)]
_AT_THE_END = 0.02
_MOST_CANDIDATES = 100_000


@dataclass(frozen=True)
class Candidate:
    """A method with hyperparameters to try.

    Attributes:
        method: with them.
        tried: hyperparameter -> value.
    """

    method: MethodSection
    tried: Mapping[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """Columns of the store."""
        return {name: setting(value) for name, value in self.tried.items()}


def grids(scenario: Scenario, tune: TuneSection) -> dict[str, Grid]:
    """What is tried of each method, by its name.

    Raises:
        ConfigurationError: a hyperparameter that no method has, or no such method.
    """
    names = [method.name for method in scenario.methods]
    for name in tune.methods:
        if name not in names:
            raise ConfigurationError(f"tune.methods.{name}: no such method.{nearest(name, names)}")
    found = {method.name: _grid(method, tune) for method in scenario.methods}
    known = {name for method in scenario.methods for name in tunable(method)}
    for name in tune.grid:
        if name not in known:
            raise ConfigurationError(
                f"tune.grid.{name}: no method here has it.{nearest(name, known)}"
            )
    return found


def tunable(method: MethodSection) -> list[str]:
    """Hyperparameters of a method's rule, and arguments of its coordinator."""
    rule = find_rule(method.update)
    return [*coordinator_parameters(method.coordinator), *rule.hyperparameters._fields]


def _grid(method: MethodSection, tune: TuneSection) -> Grid:
    own, names = tune.methods.get(method.name, {}), tunable(method)
    for name in own:
        if name not in names:
            raise ConfigurationError(
                f"tune.methods.{method.name}.{name}: not a hyperparameter.{nearest(name, names)}"
            )
    shared = {name: values for name, values in tune.grid.items() if name in names}
    if not tune.grid and not tune.methods:
        return _default_grid(method)
    return {**shared, **own}


def _default_grid(method: MethodSection) -> Grid:
    stepsize = method.hyperparameters.get("stepsize")
    if not isinstance(stepsize, float):
        return {}
    return {"stepsize": tuple(stepsize * factor for factor in _DEFAULT_FACTORS)}


def all_candidates(method: MethodSection, grid: Grid, n_workers: int) -> list[Candidate]:
    """Every combination of a grid, the last hyperparameter fastest.

    Raises:
        ConfigurationError: a value that the method can not have.
    """
    many = 1
    for values in grid.values():
        many *= len(values)
    if many > _MOST_CANDIDATES:
        raise ConfigurationError(f"tune: {many} candidates, expected at most {_MOST_CANDIDATES}")
    combinations = itertools.product(*grid.values())
    return [
        candidate(method, dict(zip(grid, values, strict=True)), n_workers)
        for values in combinations
    ]


def candidate(method: MethodSection, tried: Mapping[str, Any], n_workers: int) -> Candidate:
    """A method with other hyperparameters.

    Raises:
        ConfigurationError: it can not have them.
    """
    try:
        changed = read_method({**write_method(method), **tried})
        changed.build_coordinator(n_workers)
    except ValueError as error:
        raise ConfigurationError(f"tune: {method.name}: {error}") from error
    return Candidate(changed, tried)


def edges(best: Candidate, grid: Mapping[str, Sequence[Any]]) -> list[str]:
    """Where the winner sits at an end of its grid that could be moved: a text for each.

    Numbers only; an end that is the end of what the hyperparameter may be does not count. Within
    2 % of the end is at the end: a search between the ends seldom proposes an end itself.
    """
    texts = []
    for name, values in grid.items():
        numbers = [value for value in values if isinstance(value, int | float)]
        if len(set(numbers)) < 2 or len(numbers) < len(values):
            continue
        value, low, high = best.tried[name], min(numbers), max(numbers)
        smallest, largest = _range(best.method, name)
        place = _place(value, low, high)
        if place <= _AT_THE_END and low > smallest:
            texts.append(f"{name} = {value:g} is the smallest of its grid: try smaller ones")
        if place >= 1 - _AT_THE_END and high < largest:
            texts.append(f"{name} = {value:g} is the largest of its grid: try larger ones")
    return texts


def _place(value: float, low: float, high: float) -> float:
    """Where a value is between two others: 0 to 1, by the logarithm if these are positive."""
    if low > 0:
        value, low, high = math.log(value), math.log(low), math.log(high)
    return (value - low) / (high - low)


def _range(method: MethodSection, name: str) -> tuple[float, float]:
    """What a hyperparameter may be; counts of a coordinator start at 1."""
    if name in coordinator_parameters(method.coordinator):
        return 1, float("inf")
    low, high = find_rule(method.update).ranges.get(name, (-float("inf"), float("inf")))
    return float(low), float(high)
