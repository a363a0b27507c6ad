"""Grids: a method with a list for a value is one method for each value, named after it.

``stepsize = [0.1, 0.2]`` and ``momentum = [0.5, 1.0]`` make four methods, the last key varying
fastest: "rennala-nigt stepsize=0.1 momentum=0.5" and so on. Those that differ in hyperparameters
only follow one schedule, and the compiled executor runs them side by side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from scenarios.method_section import MethodSection, read_method
from scenarios.sections import Problems

MAX_CELLS = 10_000
_LONGEST_NAME = 64
_LONGEST_LABEL = 80
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._+=-]")
_TEXTS = ("id", "name", "label", "coordinator", "update")


def read_methods(data: Any) -> tuple[MethodSection, ...]:
    """Read ``methods``: every entry, every cell of its grid.

    Raises:
        ValueError: ``Problems`` with a line for everything wrong.
    """
    if not isinstance(data, list | tuple):
        raise ValueError(f"= {data!r}: expected a list of tables, as [[methods]]")
    methods, lines = [], []
    for position, entry in enumerate(data):
        try:
            methods += [read_method(cell, position) for cell in cells(entry)]
        except Problems as error:
            lines += [_placed(position, line) for line in error.lines]
        except ValueError as error:
            lines.append(_placed(position, str(error)))
    if lines:
        raise Problems(lines)
    return tuple(methods)


def _placed(position: int, line: str) -> str:
    return f"[{position}]: {line}" if line.startswith("expected") else f"[{position}].{line}"


def cells(entry: Any) -> Iterator[Any]:
    """The methods that an entry of ``methods`` stands for; itself if nothing in it is a list.

    Raises:
        ValueError: an empty list, or too many cells.
    """
    if not isinstance(entry, Mapping):
        yield entry
        return
    axes = {
        key: values
        for key, values in entry.items()
        if isinstance(values, list | tuple) and key not in _TEXTS
    }
    for key, values in axes.items():
        if not values:
            raise ValueError(f"{key} = []: expected a value, or a list of at least one")
    count = prod(map(len, axes.values()))
    if count > MAX_CELLS:
        raise ValueError(f"expected at most {MAX_CELLS} cells in a grid; this one has {count}")
    if not axes:
        yield entry
        return
    for number, values in enumerate(product(*axes.values())):
        chosen = dict(zip(axes, values, strict=True))
        yield {**entry, **chosen, **_names(entry, number, chosen)}


def _names(entry: Mapping[str, Any], number: int, chosen: Mapping[str, Any]) -> dict[str, str]:
    """A name for the cell with these values, and a label if the entry has one."""
    base = entry.get("name", entry.get("id", f"{entry.get('coordinator')}-{entry.get('update')}"))
    if not isinstance(base, str):
        return {}  # read_method says what is wrong with it
    parts = [_part(key, value) for key, value in chosen.items()]
    name = " ".join([base, *parts])
    if len(name) > _LONGEST_NAME:
        name = f"{base} cell {number}"
    named = {"name": name}
    if isinstance(entry.get("label"), str):
        label = ", ".join([entry["label"], *parts])
        named["label"] = label if len(label) <= _LONGEST_LABEL else f"{entry['label']} {number}"
    return named


def _part(key: str, value: Any) -> str:
    """As ``stepsize=0.1``; of a schedule, {value, offset, power}, its numbers."""
    if isinstance(value, Mapping):
        value = "-".join(str(number) for number in value.values())
    return _NOT_IN_NAMES.sub("", f"{key}={value}")
