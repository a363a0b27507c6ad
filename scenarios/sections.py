"""What the sections of a scenario file have in common: strict, frozen, unknown keys refused.

Convention: a validator raises ``ValueError("field = value: expected ...")``, the field named
relative to its section; or :class:`Problems` with several such lines. ``scenarios.messages`` puts
the path of the section in front.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from simulator.errors import nearest

Count = Annotated[int, Field(ge=1)]
NonNegative = Annotated[float, Field(ge=0)]
"""May be infinite: a worker that never finishes."""
FinitePositive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
FiniteNonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]

_LARGEST_INTEGER = 2**63


class Problems(ValueError):
    """Several mistakes in one section.

    Attributes:
        lines: each "field = value: expected ...", the field relative to the section.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = list(lines)
        super().__init__("; ".join(self.lines))


class Section(BaseModel):
    """A table of a scenario file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        # Before pydantic does, because it does not know the nearest name.
        if isinstance(data, Mapping):
            check_keys(data, cls.model_fields)
        return data


def check_keys(data: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse keys that are not among ``known``.

    Raises:
        Problems: a line for each, with the nearest known name.
    """
    names = list(known)
    lines = [f"{key}: unknown key.{nearest(str(key), names)}" for key in data if key not in names]
    if lines:
        raise Problems(lines)


def plain(value: Any, path: str, problems: list[str]) -> Any:
    """``value`` with lists made tuples, if it is made of plain values all through.

    Args:
        value: what a TOML parser gives: tables, lists, strings, numbers, dates.
        path: where it stands, for messages.
        problems: a line is added for every date, NaN and integer beyond 64 bits.
    """
    if isinstance(value, Mapping):
        return {
            str(key): plain(item, f"{path}.{key}" if path else str(key), problems)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return tuple(plain(item, f"{path}[{i}]", problems) for i, item in enumerate(value))
    if isinstance(value, datetime.date | datetime.time):
        problems.append(f"{path} = {value}: expected a number, text, list or table, not a date")
    elif isinstance(value, float) and math.isnan(value):
        problems.append(f"{path} = nan: expected a number")
    elif isinstance(value, int) and abs(value) >= _LARGEST_INTEGER:
        problems.append(f"{path}: expected an integer below 2^63 in size")
    elif value is not None and not isinstance(value, str | bool | int | float):
        problems.append(f"{path}: a scenario can not hold a {type(value).__name__}")
    return value
