"""How long things take, as written in a scenario: seconds of worker i = profile_i x model.

A delay is written as a number (the same for every worker), a list (one number per worker), or a
table with ``profile`` (a constant for each worker), ``model`` (what varies from one time to the
next) and ``scale_with_dimension`` (q: everything times d^q, d the number of parameters). A profile
or model that needs no parameters may be written as its name alone.

What parameters a profile takes is read off ``simulator.profiles``; their ranges are checked there,
when a scenario is loaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    field_validator,
    model_validator,
)

from scenarios.sections import Finite, FiniteNonNegative, Problems, Section, check_keys
from simulator.errors import nearest
from simulator.links import Link
from simulator.profiles import PROFILES

LINKS = {
    "link": "Latency + bytes / bandwidth: one message of all parameters.",
    "ring": "A ring AllReduce of all parameters over such links.",
    "tree": "An AllReduce along a binomial tree of such links: reduce, then broadcast.",
}
"""Profiles that follow from the size of a message, and what they are."""


@dataclass(frozen=True)
class ProfileSection:
    """Seconds of each worker.

    Attributes:
        kind: key of ``simulator.profiles.PROFILES`` or of ``LINKS``.
        parameters: of it, defaults included; ``base_seconds`` among them unless it is a link.
    """

    kind: str
    parameters: Mapping[str, Any]


def read_profile(data: Any) -> ProfileSection:
    """Read ``profile``: a table with ``kind``, or a kind.

    Raises:
        ValueError: unknown kind or parameter, or one that is missing.
    """
    if isinstance(data, ProfileSection):
        return data
    given = {"kind": data} if isinstance(data, str) else data
    if not isinstance(given, Mapping):
        raise ValueError("expected a table, as {kind = 'power', exponent = 0.5}, or its kind")
    kind, known = given.get("kind"), [*PROFILES, *LINKS]
    if not isinstance(kind, str) or kind not in known:
        raise ValueError(f"kind = {kind!r}: no such profile.{nearest(str(kind), known)}")
    defaults = _profile_defaults(kind)
    check_keys(given, ["kind", *defaults])
    filled = {**defaults, **{key: value for key, value in given.items() if key != "kind"}}
    missing = [key for key, value in filled.items() if value is inspect.Parameter.empty]
    if missing:
        raise Problems(f"{key}: missing; the profile {kind!r} needs it" for key in missing)
    return ProfileSection(kind, {key: v for key, v in filled.items() if v is not None})


def _profile_defaults(kind: str) -> dict[str, Any]:
    """Parameters of a profile; ``inspect.Parameter.empty`` for one without a default."""
    if kind in LINKS:
        return {item.name: item.default for item in fields(Link)}
    signature = inspect.signature(PROFILES[kind].make).parameters
    own = {name: signature[name].default for name in PROFILES[kind].parameters}
    return {**own, "base_seconds": 1.0}


def write_profile(profile: ProfileSection) -> dict[str, Any]:
    """The table that reads as ``profile``."""
    return {"kind": profile.kind, **profile.parameters}


class ConstantModel(Section):
    """The profile, every time."""

    kind: Literal["constant"] = "constant"


class DistributionModel(Section):
    """The profile times a draw of a ``scipy.stats`` distribution: shapes, ``loc``, ``scale``."""

    kind: Literal["distribution"] = "distribution"
    name: str
    parameters: dict[str, Finite] = Field(default_factory=dict)


class _FromFile(Section):
    """A CSV or Parquet file; a relative path starts at the scenario file."""

    column: str | None = None

    @field_validator("path", check_fields=False)
    @classmethod
    def _absolute(cls, path: str | None, info: ValidationInfo) -> str | None:
        if path is None:
            return None
        directory = (info.context or {}).get("directory", Path())
        return str((directory / Path(path)).absolute())


class EmpiricalModel(_FromFile):
    """The profile times a value drawn from a list, or from a column of a file."""

    kind: Literal["empirical"] = "empirical"
    values: Annotated[tuple[FiniteNonNegative, ...], Field(min_length=1)] | None = None
    path: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> EmpiricalModel:
        if (self.values is None) == (self.path is None):
            raise ValueError("values: expected it or path, and not both")
        if self.column is not None and self.path is None:
            raise ValueError(f"column = {self.column!r}: expected with path only")
        return self


class TraceModel(_FromFile):
    """The profile times measured values, replayed in order and cycled.

    ``workers``: which of the file's workers the fleet's are, or ``"all"``: the file's in order,
    whatever their numbers. Default: exactly those of the fleet, from 0.
    """

    kind: Literal["trace"] = "trace"
    path: str
    workers: tuple[Annotated[int, Field(ge=0)], ...] | Literal["all"] | None = None


def _by_name(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


Profile = Annotated[Any, PlainValidator(read_profile), PlainSerializer(write_profile)]
Model = Annotated[
    Annotated[
        ConstantModel | DistributionModel | EmpiricalModel | TraceModel,
        Field(discriminator="kind"),
    ],
    BeforeValidator(_by_name),
]


class DelaySection(Section):
    """A delay with everything filled in."""

    profile: Profile = ProfileSection("equal", {"base_seconds": 1.0})
    model: Model = ConstantModel()
    scale_with_dimension: Finite = 0.0

    @property
    def path(self) -> str | None:
        """The file its values come from, if any."""
        return getattr(self.model, "path", None)


def _spelled_out(value: Any) -> Any:
    """A number or list as the table it stands for."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"profile": {"kind": "equal", "base_seconds": value}}
    if isinstance(value, list | tuple):
        return {"profile": {"kind": "explicit", "values": tuple(value)}}
    if not isinstance(value, Mapping | DelaySection):
        raise ValueError("expected a number (seconds), a list of them, or a table")
    return value


Delay = Annotated[DelaySection, BeforeValidator(_spelled_out)]
