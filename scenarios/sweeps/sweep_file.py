"""Sweep files: a scenario, and axes along which it changes.

::

    scenario = "quadratic"              # shipped, or a file beside this one
    methods = ["rennala-sgd"]           # default: the scenario's
    seeds = 5                           # default: the scenario's
    combine = "product"                 # or "zip": the axes advance together

    [set]                               # for every point, as --set
    budget.seconds = 100

    [axes]                              # any value of a scenario: dotted path = list
    fleet.workers = [10, 100]
    fleet.compute.profile.exponent = [0.0, 0.5, 1.0]

    [tune]                              # optional: tune every method at every point
    seeds = [100, 101]
    criterion = "area"
    grid = { stepsize = [0.01, 0.1, 1.0] }

"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from scenarios.load import Override, find, from_data, override, read
from scenarios.messages import explain, report
from scenarios.run import method_positions
from scenarios.schema import Scenario, Seed, read_seeds
from scenarios.sections import Section, plain
from scenarios.store.run_file import setting
from scenarios.sweeps.point import Point
from scenarios.tuning.settings import TuneSection
from simulator.errors import ConfigurationError

_MOST_POINTS = 100_000
_NO_AXES = ("seeds", "methods", "name", "description")
Paths = dict[str, Any]


def _flat(value: Any) -> Any:
    """Nested tables as dotted paths; what is no table ends a path."""
    if not isinstance(value, Mapping):
        raise ValueError("expected a table of dotted paths")
    found: Paths = {}
    for key, item in value.items():
        if isinstance(item, Mapping) and item:
            found |= {f"{key}.{path}": leaf for path, leaf in _flat(item).items()}
        else:
            found[str(key)] = item
    return found


Values = Annotated[tuple[Any, ...], Field(min_length=1)]


class SweepSection(Section):
    """A sweep file."""

    scenario: str
    methods: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    seeds: Annotated[tuple[Seed, ...], BeforeValidator(read_seeds)] | None = None
    combine: Literal["product", "zip"] = "product"
    set: Annotated[dict[str, Any], BeforeValidator(_flat)] = Field(default_factory=dict)
    axes: Annotated[dict[str, Values], BeforeValidator(_flat)] = Field(default_factory=dict)
    tune: TuneSection | None = None


@dataclass(frozen=True)
class Sweep:
    """A sweep that is valid throughout.

    Attributes:
        name: of its file.
        points: in order, the last axis fastest.
        tune: how to tune each point, or None.
    """

    name: str
    points: tuple[Point, ...]
    tune: TuneSection | None


def load_sweep(path: str | Path, overrides: list[Override] | None = None) -> Sweep:
    """Read a sweep file and the scenario of each of its points.

    Args:
        path: of the file.
        overrides: for every point, over what the file sets.

    Raises:
        ConfigurationError: naming the file, the point, and every field at fault.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise ConfigurationError(f"{str(path)!r}: no such sweep file")
    section = _validated(read(path), path)
    _check_axes(section, path)
    base_path = _scenario_path(section.scenario, path)
    points = [
        _point(section, base_path, settings, overrides or [], path)
        for settings in _combinations(section, path)
    ]
    return Sweep(path.stem, tuple(points), section.tune)


def _validated(data: Mapping[str, Any], path: Path) -> SweepSection:
    problems: list[str] = []
    values = plain(data, "", problems)
    if not problems:
        try:
            return SweepSection.model_validate(values)
        except ValidationError as error:
            problems = explain(error, values)
    raise ConfigurationError(report(str(path), problems))


def _scenario_path(scenario: str, sweep: Path) -> Path:
    """A path is relative to the sweep's file."""
    if scenario.endswith(".toml") or "/" in scenario:
        return find(sweep.parent / scenario)
    try:
        return find(scenario)
    except ConfigurationError as error:
        raise ConfigurationError(f"{sweep}: scenario: {error}") from error


def _check_axes(section: SweepSection, path: Path) -> None:
    for axis in section.axes:
        if axis in _NO_AXES:
            raise ConfigurationError(f"{path}: axes.{axis}: not an axis; set {axis} of the sweep")


def _combinations(section: SweepSection, path: Path) -> Iterator[Paths]:
    names, values = list(section.axes), list(section.axes.values())
    lengths = {name: len(axis) for name, axis in section.axes.items()}
    if section.combine == "zip":
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise ConfigurationError(f"{path}: axes: expected lists of one length to zip: {told}")
        return (dict(zip(names, point, strict=True)) for point in zip(*values, strict=True))
    many = 1
    for length in lengths.values():
        many *= length
    if many > _MOST_POINTS:
        raise ConfigurationError(f"{path}: axes: {many} points, expected at most {_MOST_POINTS}")
    return (dict(zip(names, point, strict=True)) for point in itertools.product(*values))


def _point(
    section: SweepSection,
    base: Path,
    settings: Paths,
    overrides: list[Override],
    path: Path,
) -> Point:
    data = read(base)
    where = ", ".join(f"{name} = {value!r}" for name, value in settings.items())
    source = f"{path}{f' at {where}' if where else ''}"
    try:
        for place, value in [*section.set.items(), *overrides, *settings.items()]:
            override(data, place, _as_parsed(value))
        data.setdefault("name", base.stem)
        if section.seeds is not None:
            data["seeds"] = list(section.seeds)
        scenario = _chosen(from_data(data, source, base.parent), section.methods)
    except ConfigurationError as error:
        text = str(error)
        told = text if text.startswith(source) else f"{source}: {text.removeprefix('--set ')}"
        raise ConfigurationError(told) from error
    return Point({name: setting(value) for name, value in settings.items()}, scenario)


def _chosen(scenario: Scenario, names: Sequence[str] | None) -> Scenario:
    """The scenario with some of its methods only, each as it was read."""
    if names is None:
        return scenario
    places = dict.fromkeys(place for name in names for place in method_positions(scenario, name))
    methods = tuple(scenario.methods[place] for place in places)
    return scenario.model_copy(update={"methods": methods})


def _as_parsed(value: Any) -> Any:
    """Tuples as the lists that a TOML parser gives: an override may lead through them."""
    if isinstance(value, Mapping):
        return {key: _as_parsed(item) for key, item in value.items()}
    return [_as_parsed(item) for item in value] if isinstance(value, tuple) else value
