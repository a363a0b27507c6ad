"""A method as written in a scenario: ``[[methods]]`` with flat keys, made of two halves.

``id`` names a row of the catalogue, or ``coordinator`` and ``update`` name its halves. Every other
key is an argument of the coordinator or a hyperparameter of the update rule. Once read, everything
is spelled out, defaults included, so that a resolved file does not depend on the catalogue.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from algorithms.catalogue import Method, methods_by_id
from algorithms.coordinator import Coordinator
from algorithms.coordinators import COORDINATORS
from scenarios.sections import Problems
from simulator.errors import nearest

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+=-]{0,63}")
_LABEL = re.compile(r"[^\n]{1,80}")
_OWN_KEYS = ("id", "name", "label", "coordinator", "update")


@dataclass(frozen=True)
class MethodSection:
    """One method with everything filled in.

    Attributes:
        name: unique in the scenario; in records, plots and ``--methods``.
        label: for legends.
        coordinator: key of ``algorithms.coordinators.COORDINATORS``.
        update: name of an update rule.
        arguments: of the coordinator, besides ``n_workers``.
        hyperparameters: of the rule: numbers, or {value, offset, power}.
        position: of its entry in the file, for messages.
    """

    name: str
    label: str
    coordinator: str
    update: str
    arguments: Mapping[str, Any]
    hyperparameters: Mapping[str, float | Mapping[str, float]]
    position: int = field(default=0, compare=False)

    def build_coordinator(self, n_workers: int) -> Coordinator:
        """A fresh coordinator for a fleet.

        Raises:
            ValueError: an argument out of range, naming it.
        """
        coordinator: Coordinator = COORDINATORS[self.coordinator](n_workers, **self.arguments)
        return coordinator


def read_method(data: Any, position: int = 0) -> MethodSection:
    """Read one entry of ``methods``, without lists: see ``scenarios.grid``.

    Args:
        data: its table, flat.
        position: of the entry.

    Raises:
        ValueError: naming the key; ``Problems`` if there are several.
    """
    if isinstance(data, MethodSection):
        return data
    if not isinstance(data, Mapping):
        raise ValueError("expected a table, as [[methods]] and id = 'rennala-nigt'")
    row = _halves(data)
    rule = find_rule(row.update)
    parameters = coordinator_parameters(row.coordinator)
    problems = _unknown_keys(data, [*parameters, *rule.hyperparameters._fields])
    problems += [
        f"{key}: missing; the coordinator {row.coordinator!r} needs it"
        for key, parameter in parameters.items()
        if parameter.default is parameter.empty and key not in data
    ]
    if problems:
        raise Problems(problems)
    name = _text(data, "name", row.id, _NAME, "letters, digits and ' ._+=-', at most 64")
    label = row.label if name == row.id else name
    return MethodSection(
        name=name,
        label=_text(data, "label", label, _LABEL, "text, one line"),
        coordinator=row.coordinator,
        update=row.update,
        arguments=_arguments(data, parameters),
        hyperparameters=_hyperparameters(data, rule, parameters),
        position=position,
    )


def write_method(method: MethodSection) -> dict[str, Any]:
    """The flat table that reads as ``method``."""
    return {
        "name": method.name,
        "label": method.label,
        "coordinator": method.coordinator,
        "update": method.update,
        **method.arguments,
        **method.hyperparameters,
    }


def _halves(data: Mapping[str, Any]) -> Method:
    """The catalogue's row, or one made of the named coordinator and update."""
    if "id" in data:
        if "coordinator" in data or "update" in data:
            raise ValueError(f"id = {data['id']!r}: expected it, or coordinator and update")
        return _choice("id", data["id"], methods_by_id())
    if "coordinator" not in data or "update" not in data:
        raise ValueError("id: missing; expected a method's id, or coordinator and update")
    coordinator, update = data["coordinator"], data["update"]
    _choice("coordinator", coordinator, COORDINATORS)
    _choice("update", update, dict.fromkeys(_rule_names()))
    name = f"{coordinator}-{update}"
    return Method(name, name, coordinator, update, "", "")


def _choice(key: str, value: Any, table: Mapping[str, Any]) -> Any:
    if not isinstance(value, str) or value not in table:
        raise ValueError(f"{key} = {value!r}: no such {_NOUNS[key]}.{nearest(str(value), table)}")
    return table[value]


_NOUNS = {"id": "method", "coordinator": "coordinator", "update": "update rule"}


def _rule_names() -> list[str]:
    from algorithms.updates import rule_names  # imports jax

    return rule_names()


def find_rule(name: str) -> Any:
    """The update rule of that name, see ``algorithms.updates.update_rule``."""
    from algorithms.updates import update_rule  # imports jax

    return update_rule(name)


@cache
def coordinator_parameters(name: str) -> dict[str, inspect.Parameter]:
    """Parameters of a coordinator, by name, besides the size of the fleet."""
    parameters = dict(inspect.signature(COORDINATORS[name]).parameters)
    del parameters["n_workers"]
    return parameters


def _unknown_keys(data: Mapping[str, Any], own: list[str]) -> list[str]:
    known = [*_OWN_KEYS, *own]
    return [
        f"{key}: not a key of this method.{nearest(key, known)} It takes {', '.join(own)}."
        for key in data
        if key not in known
    ]


def _text(
    data: Mapping[str, Any], key: str, default: str, pattern: re.Pattern[str], allowed: str
) -> str:
    value = data.get(key, default)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{key} = {value!r}: expected {allowed}")
    return value


def _arguments(
    data: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]
) -> dict[str, Any]:
    values = {key: data.get(key, parameter.default) for key, parameter in parameters.items()}
    return {key: value for key, value in values.items() if value is not None}


def _hyperparameters(
    data: Mapping[str, Any], rule: Any, parameters: Mapping[str, inspect.Parameter]
) -> dict[str, float | Mapping[str, float]]:
    from algorithms.hyperparameters import make_hyperparameters

    skipped = (*_OWN_KEYS, *parameters)
    filled = make_hyperparameters(rule, {k: v for k, v in data.items() if k not in skipped})
    return {key: _as_written(value) for key, value in filled._asdict().items()}


def _as_written(value: Any) -> float | Mapping[str, float]:
    """A schedule as a number if it is constant, else as a table."""
    if not isinstance(value, tuple):
        return float(value)
    value, offset, power = (float(part) for part in value)
    return {"value": value, "offset": offset, "power": power} if power else value
