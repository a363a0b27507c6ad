"""A scenario: problem, fleet, network, methods, seeds, budget, evaluation. Frozen and validated.

It is data: nothing here runs or imports jax until a method is read. ``scenarios.load`` reads one
from a file, ``scenarios.dump`` writes it back, ``scenarios.compose`` builds what it describes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, model_validator

from scenarios.delay_section import Delay, DelaySection
from scenarios.grid import read_methods
from scenarios.method_section import MethodSection, write_method
from scenarios.problems.exact_specs import HardInstanceSpec, MDPSpec
from scenarios.problems.specs import EnvironmentSpec, ProblemSpec, QuadraticSpec
from scenarios.sections import Count, Finite, FinitePositive, Problems, Section, check_keys
from scenarios.theory_section import TheorySection
from simulator.errors import ConfigurationError, nearest

Seed = Annotated[int, Field(ge=0, lt=2**31)]
MAX_WORKERS = 1_000_000

_SPECS: dict[str, Any] = {
    "environment": EnvironmentSpec,
    "quadratic": QuadraticSpec,
    "mdp": MDPSpec,
    "hard-instance": HardInstanceSpec,
}
_SET_ELSEWHERE = {"dtype": "precision", "evaluation_episodes": "evaluation.episodes"}


def _problem_fields(kind: str) -> dict[str, str]:
    """Key in ``[problem]`` -> field of its specification."""
    names = {item.name: item.name for item in fields(_SPECS[kind])}
    for name in _SET_ELSEWHERE:
        names.pop(name, None)
    if "kind" in names:  # which quadratic or MDP; in a file, kind says that it is one
        names = {kind: names.pop("kind"), **names}
    return names


def read_problem(data: Any) -> ProblemSpec:
    """Read ``[problem]``.

    Raises:
        ValueError: naming the key.
    """
    if isinstance(data, ProblemSpec):
        return data
    if not isinstance(data, Mapping):
        raise ValueError("expected a table, as [problem]")
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in _SPECS:
        found = "missing" if kind is None else f"no such kind: {kind!r}"
        raise ValueError(f"kind: {found}.{nearest(str(kind), _SPECS)}")
    for key, elsewhere in _SET_ELSEWHERE.items():
        if key in data:
            raise ValueError(f"{key}: set {elsewhere} instead")
    names = _problem_fields(kind)
    given = {key: value for key, value in data.items() if key != "kind"}
    check_keys(given, names)
    if kind == "environment" and "environment" not in given:
        raise ValueError("environment: missing; expected a Gymnasium id, as 'CartPole-v1'")
    try:
        spec: ProblemSpec = _SPECS[kind](**{names[key]: value for key, value in given.items()})
    except ConfigurationError as error:
        # The specification's own kind has another name in a file.
        raise ConfigurationError(re.sub("^kind(?= = )", kind, str(error))) from error
    return spec


def write_problem(spec: ProblemSpec) -> dict[str, Any]:
    """The table that reads as ``spec``."""
    kind = next(kind for kind, cls in _SPECS.items() if isinstance(spec, cls))
    values = {key: getattr(spec, name) for key, name in _problem_fields(kind).items()}
    return {"kind": kind, **values}


class FleetSection(Section):
    """The workers."""

    workers: Annotated[int, Field(ge=1, le=MAX_WORKERS)]
    timing: Literal["trajectory", "environment-step"] = "trajectory"
    """What ``compute`` times: a whole gradient, or one environment step of its trajectory."""
    compute: Delay = DelaySection()


class NoNetworkSection(Section):
    """Everything but computation is free."""

    kind: Literal["none"] = "none"


class StarSection(Section):
    """The model takes ``down`` to a worker, a vector takes ``up`` to the server."""

    kind: Literal["star"] = "star"
    down: Delay
    up: Delay


class AllReduceSection(Section):
    """One collective a step takes ``seconds``; then every worker has the new model."""

    kind: Literal["allreduce"] = "allreduce"
    seconds: Delay


NetworkSection = Annotated[
    NoNetworkSection | StarSection | AllReduceSection, Field(discriminator="kind")
]


class BudgetSection(Section):
    """When a run ends: the first of the given limits."""

    seconds: FinitePositive | None = None
    steps: Count | None = None
    gradients: Count | None = None

    @model_validator(mode="after")
    def _some_limit(self) -> BudgetSection:
        if self.seconds is None and self.steps is None and self.gradients is None:
            raise ValueError("seconds: missing; expected it, steps or gradients")
        return self


class EvaluationSection(Section):
    """When and how points along a run are judged."""

    points: Annotated[int, Field(ge=2, le=100_000)] | None = None
    """On an even grid from 0 to the end of the run, both included; default 50."""
    every_seconds: FinitePositive | None = None
    episodes: Annotated[int, Field(ge=1, le=1_000_000)] = 32
    target: Finite | None = None
    """Of the main metric: the simulated time to reach it is reported."""

    @model_validator(mode="before")
    @classmethod
    def _default_grid(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and not {"points", "every_seconds"} & set(data):
            return {**data, "points": 50}
        return data

    @model_validator(mode="after")
    def _one_grid(self) -> EvaluationSection:
        if (self.points is None) == (self.every_seconds is None):
            raise ValueError("points: expected it or every_seconds, and not both")
        return self


def read_seeds(value: Any) -> Any:
    """A count as the seeds 0, 1, ..."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= 10_000:
            raise ValueError("expected a count from 1 to 10000, or a list of seeds")
        return tuple(range(value))
    return value


def _write_methods(methods: tuple[MethodSection, ...]) -> list[dict[str, Any]]:
    return [write_method(method) for method in methods]


class Scenario(Section):
    """Everything a run needs, with every default filled in."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = "scenario"
    description: str = ""
    problem: Annotated[Any, PlainValidator(read_problem), PlainSerializer(write_problem)]
    fleet: FleetSection
    network: NetworkSection = NoNetworkSection()
    methods: Annotated[
        tuple[MethodSection, ...], PlainValidator(read_methods), PlainSerializer(_write_methods)
    ]
    seeds: Annotated[tuple[Seed, ...], BeforeValidator(read_seeds)] = (0,)
    budget: BudgetSection
    evaluation: EvaluationSection = EvaluationSection(points=50)
    executor: Literal["compiled", "batched", "sequential"] = "compiled"
    memory_bytes: Count = 1 << 30
    """What the compiled executor's arrays may take together."""
    precision: Literal["float32", "float64"] = "float32"
    theory: TheorySection | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Scenario:
        sized = {"seeds": self.seeds, "methods": self.methods}
        problems = [f"{key}: expected at least one" for key in sized if not sized[key]]
        problems += _repeated("seeds", self.seeds)
        problems += _repeated("methods", [method.name for method in self.methods])
        for method in self.methods:
            problems += self._method_problems(method.position, method)
        if problems:
            raise Problems(problems)
        return self

    def _method_problems(self, index: int, method: MethodSection) -> Iterator[str]:
        try:
            coordinator = method.build_coordinator(self.fleet.workers)
        except ValueError as error:
            yield f"methods[{index}].{error}"
            return
        if self.network.kind == "allreduce" and not coordinator.collective:
            yield (
                f"methods[{index}] = {method.name!r}: expected a method in which all workers "
                f"exchange at once for network.kind = 'allreduce'; use 'star' or leave it out"
            )

    def delays(self) -> dict[str, DelaySection]:
        """Every delay in it, by path."""
        found = {"fleet.compute": self.fleet.compute}
        if isinstance(self.network, StarSection):
            found |= {"network.down": self.network.down, "network.up": self.network.up}
        elif isinstance(self.network, AllReduceSection):
            found["network.seconds"] = self.network.seconds
        return found

    def as_data(self) -> dict[str, Any]:
        """Nested plain data that reads as this scenario; nothing in it is None."""
        return _without_none(self.model_dump(mode="python"))

    def timing_data(self) -> Any:
        """Fleet, network and budget as plain data, 1.0 the same as 1.

        Where a measured file lies does not count, but what is in it does.

        Raises:
            OSError: such a file can not be read.
        """
        return canonical(self._timing())

    def _timing(self) -> dict[str, Any]:
        data = self.as_data()
        for place, delay in self.delays().items():
            if delay.path is not None:
                content = hashlib.sha256(Path(delay.path).read_bytes()).hexdigest()
                section, key = place.split(".")
                data[section][key]["model"]["path"] = content
        return {key: data[key] for key in ("fleet", "network", "budget")}

    def content(self) -> dict[str, Any]:
        """What is simulated, as nested plain data, and nothing else.

        Name, description, labels and ``theory`` are not in it, nor where a measured file lies, but
        a digest of what is in it. 1.0 and 1 are the same number.

        Raises:
            OSError: such a file can not be read.
        """
        data = self.as_data() | self._timing()
        for key in ("name", "description", "memory_bytes", "theory"):
            data.pop(key, None)
        for method in data["methods"]:
            method.pop("label")
        content: dict[str, Any] = canonical(data)
        return content

    def content_id(self) -> str:
        """16 hexadecimal digits that depend on :meth:`content` alone.

        Raises:
            OSError: a measured file can not be read.
        """
        return digest(self.content())[:16]


def digest(value: Any) -> str:
    """SHA-256 of nested plain data, the order of keys aside: hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _repeated(path: str, values: Any) -> Iterator[str]:
    for value, count in Counter(values).items():
        if count > 1:
            hint = "; give each a name" if path == "methods" else ""
            yield f"{path}: {value!r} is there {count} times: expected distinct ones{hint}"


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value]
    return value


def canonical(value: Any) -> Any:
    """Nested plain data in which 1.0 and 1 are the same number."""
    if isinstance(value, Mapping):
        return {key: canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
