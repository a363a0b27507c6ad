"""One scenario of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scenarios.method_section import MethodSection
from scenarios.schema import Scenario
from scenarios.store import RunSpec, specs_of


@dataclass(frozen=True)
class Point:
    """One scenario of a sweep.

    Attributes:
        settings: axis -> value, as the store's columns hold it.
        scenario: with them.
    """

    settings: Mapping[str, Any]
    scenario: Scenario

    def settings_of(self, method: MethodSection) -> dict[str, Any]:
        """What the sweep sets for a method: axes of other methods are None.

        So a method that an axis does not concern is run once, not once per value.
        """
        return {
            axis: value if _concerns(axis, method) else None
            for axis, value in self.settings.items()
        }


def _concerns(axis: str, method: MethodSection) -> bool:
    section, _, rest = axis.partition(".")
    if section != "methods":
        return True
    named = rest.partition(".")[0]
    if named.isdecimal():
        return int(named) == method.position
    return method.name == named or method.name.startswith(f"{named} ")  # a cell of its grid


def specs(point: Point) -> list[RunSpec]:
    """Every method of a point on every seed."""
    methods = [(method, point.settings_of(method)) for method in point.scenario.methods]
    return specs_of(point.scenario, methods, point.scenario.seeds, {})
