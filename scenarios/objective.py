"""The constants that theory needs: from ``[theory]``, or else from the problem."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from scenarios.problems.constants import Constants

if TYPE_CHECKING:
    from scenarios.schema import Scenario

CONSTANTS = tuple(item.name for item in fields(Constants))
WRITTEN, KNOWN = "[theory]", "the problem"


class Known(NamedTuple):
    """What is known of a scenario's objective.

    Attributes:
        values: constant -> number.
        sources: constant -> where it is from.
    """

    values: dict[str, float]
    sources: dict[str, str]

    @property
    def missing(self) -> list[str]:
        """Constants that are not known."""
        return [name for name in CONSTANTS if name not in self.values]


def known_constants(scenario: Scenario) -> Known:
    """Collect the constants; the problem is only built if something is missing that it may know.

    Raises:
        ConfigurationError: the problem can not be built.
    """
    written = scenario.theory.model_dump() if scenario.theory is not None else {}
    values = {name: written[name] for name in CONSTANTS if written.get(name) is not None}
    known = Known(values, dict.fromkeys(values, WRITTEN))
    if known.missing and _has_constants(scenario):
        for name, value in _problem_constants(scenario).items():
            if value is not None and name not in values:
                known.values[name], known.sources[name] = float(value), KNOWN
    return known


def _has_constants(scenario: Scenario) -> bool:
    """Whether a problem of this kind may know any, without building it."""
    from scenarios.problems.specs import EnvironmentSpec

    return not isinstance(scenario.problem, EnvironmentSpec)


def _problem_constants(scenario: Scenario) -> dict[str, Any]:
    from scenarios.compose import build_problem
    from scenarios.problems.problem import ExactProblem
    from simulator.precision import precision

    with precision(scenario.precision):
        problem = build_problem(scenario)
        constants = problem.constants if isinstance(problem, ExactProblem) else Constants()
    return {name: getattr(constants, name) for name in CONSTANTS}
