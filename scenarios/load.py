"""Scenarios from files: find, read, override, validate.

Every mistake becomes one :class:`ConfigurationError` that names the file, the path of each field
at fault, and what was expected there.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from simulator.errors import ConfigurationError, nearest

Override = tuple[str, Any]
"""A dotted path, and a value as TOML would give it."""


def shipped() -> dict[str, Path]:
    """The scenarios that come with straggler: name -> file."""
    directory = Path(__file__).parent / "catalogue"
    return {path.stem: path for path in sorted(directory.glob("*.toml"))}


def find(scenario: str | Path) -> Path:
    """The file of a scenario: a path, or the name of a shipped one.

    Raises:
        ConfigurationError: neither; with the nearest shipped name.
    """
    text = str(scenario)
    if isinstance(scenario, Path) or text.endswith(".toml") or "/" in text:
        path = Path(scenario).expanduser()
        if "\0" in text or not path.is_file():
            raise ConfigurationError(f"{text!r}: no such scenario file")
        return path
    names = shipped()
    if text not in names:
        raise ConfigurationError(f"{text!r}: no such shipped scenario.{nearest(text, names)}")
    return names[text]


def read(path: Path) -> dict[str, Any]:
    """Parse a TOML file.

    Raises:
        ConfigurationError: not readable, not text, or not TOML: with line and column.
    """
    try:
        return parse(path.read_text(encoding="utf-8-sig"), str(path))
    except OSError as error:
        raise ConfigurationError(f"{path}: can not be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path}: byte {error.start} is not UTF-8: a scenario is a TOML text file"
        ) from error


def parse(text: str, source: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        ConfigurationError: with line and column.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{source}: not TOML: {error}") from error
    except RecursionError as error:
        raise ConfigurationError(f"{source}: lists or tables are nested too deeply") from error
    except ValueError as error:  # Python's own: a date that does not exist, 4300 digits
        what = "a number has too many digits" if "digits" in str(error) else str(error)
        raise ConfigurationError(f"{source}: not TOML: {what}") from error


def load(scenario: str | Path, overrides: Mapping[str, Any] | Iterable[Override] = ()) -> Any:
    """Read a scenario.

    Args:
        scenario: path of a TOML file, or name of a shipped scenario.
        overrides: dotted path -> value, as ``{"fleet.workers": 100}`` or
            ``{"methods.rennala-nigt.stepsize": 0.1}``; applied in order.

    Returns:
        The :class:`scenarios.schema.Scenario`, with everything filled in.

    Raises:
        ConfigurationError: naming the file and every field at fault.
    """
    path = find(scenario)
    data = read(path)
    pairs = overrides.items() if isinstance(overrides, Mapping) else overrides
    for place, value in pairs:
        override(data, place, value)
    data.setdefault("name", path.stem)
    return from_data(data, str(path), path.parent)


def from_data(data: Mapping[str, Any], source: str, directory: Path | None = None) -> Any:
    """Validate a scenario given as nested plain data.

    Args:
        data: as a TOML parser gives it.
        source: for messages.
        directory: where relative paths in it start; default the current directory.

    Returns:
        The :class:`scenarios.schema.Scenario`.

    Raises:
        ConfigurationError: naming every field at fault.
    """
    from pydantic import ValidationError

    from scenarios.compose import delay_problems
    from scenarios.messages import explain, report
    from scenarios.schema import Scenario
    from scenarios.sections import plain

    problems: list[str] = []
    values = plain(data, "", problems)
    if problems:
        raise ConfigurationError(report(source, problems))
    values = _recommended(values, source, directory)
    try:
        context = {"directory": directory or Path()}
        scenario = Scenario.model_validate(values, context=context)
    except ValidationError as error:
        raise ConfigurationError(report(source, explain(error, values))) from error
    if problems := delay_problems(scenario):
        raise ConfigurationError(report(source, problems))
    return scenario


def _recommended(values: dict[str, Any], source: str, directory: Path | None) -> dict[str, Any]:
    """``values`` with "recommended" replaced by what theory recommends."""
    if "recommended" not in str(values):  # spares importing theory
        return values
    from scenarios.messages import report
    from scenarios.recommended import Missing, fill_in, is_asked_for

    if not is_asked_for(values):
        return values
    try:
        return fill_in(values, lambda data: from_data(data, source, directory))
    except Missing as error:
        raise ConfigurationError(report(source, error.lines)) from error


def parse_override(text: str) -> Override:
    """``a.b.c=value``, the value in TOML syntax, or else taken as text.

    Raises:
        ConfigurationError: no ``=``, or nothing in front of it.
    """
    place, equals, value = text.partition("=")
    if not equals or not place.strip():
        raise ConfigurationError(f"--set {text!r}: expected path=value, as fleet.workers=100")
    try:
        parsed = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        parsed = {}
    return place.strip(), parsed["value"] if set(parsed) == {"value"} else value.strip()


def override(data: dict[str, Any], place: str, value: Any) -> None:
    """Set the value at a dotted path, making tables on the way.

    Args:
        data: changed in place.
        place: as ``fleet.workers``; a method is named by position or by its name or id.
        value: what to put there.

    Raises:
        ConfigurationError: the path leads through something that is not a table or list, or to a
            method that is not there.
    """
    *parents, last = place.split(".")
    target: Any = data
    for depth, part in enumerate(parents):
        where = ".".join(parents[: depth + 1])
        if isinstance(target, list):
            target = target[_index(target, part, place)]
        else:
            target = target.setdefault(part, {})
        if not isinstance(target, dict | list):
            raise ConfigurationError(
                f"--set {place}: {where} is {target!r} and has no parts; set {where} itself"
            )
    if isinstance(target, list):
        target[_index(target, last, place)] = value
    else:
        target[last] = value


def _index(entries: list[Any], part: str, place: str) -> int:
    """Position of a list's entry, by number or by name or id."""
    if part.isdecimal() and int(part) < len(entries):
        return int(part)
    names = [
        str(entry.get("name", entry.get("id"))) if isinstance(entry, dict) else str(index)
        for index, entry in enumerate(entries)
    ]
    if part in names:
        return names.index(part)
    raise ConfigurationError(f"--set {place}: no entry {part!r}.{nearest(part, names)}")
