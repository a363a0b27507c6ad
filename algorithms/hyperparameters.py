"""Hyperparameters from plain values: what a scenario file says, checked, as a rule's NamedTuple.

Rules:
- a field is a schedule (:class:`Decay`) if it is ``stepsize`` or its default is one; it takes a
  number, meaning a constant, or a table ``{value, offset, power}``; any other field is a number;
- every number is finite and within ``rule.ranges``; ``stepsize`` and ``momentum`` are not 0;
- a schedule only falls (offset > 0, power >= 0), so what holds for its value holds for ever.
"""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from algorithms.update_rule import Decay, UpdateRule

_NOT_ZERO = {"stepsize", "momentum"}
_TABLE_RANGES = {"offset": (0.0, math.inf), "power": (0.0, math.inf)}
_INFINITE = (-math.inf, math.inf)
_LARGEST = sys.float_info.max


def make_hyperparameters(rule: UpdateRule, values: Mapping[str, Any], where: str = "") -> Any:
    """Fill a rule's hyperparameters from plain values.

    Args:
        rule: whose hyperparameters.
        values: field -> number, or table {value, offset, power} for a schedule.
        where: put in front of field names in errors, as in "methods.afedpg".

    Returns:
        A ``rule.hyperparameters`` of floats and Decays of floats.

    Raises:
        ValueError: a field is missing, unknown, not a number or out of range; the text names it,
            its value, and what is allowed.
    """
    fields = rule.hyperparameters._fields  # type: ignore[attr-defined]
    defaults = rule.hyperparameters._field_defaults  # type: ignore[attr-defined]
    prefix = f"{where}." if where else ""
    _refuse_unknown(values, fields, prefix, f"a hyperparameter of {rule.name!r}")
    filled: dict[str, Decay | float] = {}
    for field in fields:
        bounds = rule.ranges.get(field, _INFINITE)
        if field not in values and field not in defaults:
            raise ValueError(
                f"{prefix}{field}: {rule.name!r} needs it; expected {_allowed(field, bounds)}"
            )
        value = values.get(field, defaults.get(field))
        if is_schedule(rule, field):
            filled[field] = _decay(prefix, field, value, bounds)
        else:
            filled[field] = _number(prefix, field, value, bounds)
    return rule.hyperparameters(**filled)


def is_schedule(rule: UpdateRule, field: str) -> bool:
    """Whether a field may change from one server step to the next."""
    default = rule.hyperparameters._field_defaults.get(field)  # type: ignore[attr-defined]
    return field == "stepsize" or isinstance(default, Decay)


def _decay(prefix: str, field: str, value: Any, bounds: tuple[float, float]) -> Decay:
    if isinstance(value, Decay):
        value = value._asdict()
    if not isinstance(value, Mapping):
        return Decay(_number(prefix, field, value, bounds), 1.0, 0.0)
    _refuse_unknown(value, Decay._fields, f"{prefix}{field}.", "part of a schedule")
    if "value" not in value:
        raise ValueError(f"{prefix}{field}.value: expected {_allowed(field, bounds)}")
    table = f"{prefix}{field}."
    offset = _number(table, "offset", value.get("offset", 1.0), _TABLE_RANGES["offset"])
    power = _number(table, "power", value.get("power", 0.0), _TABLE_RANGES["power"])
    if offset == 0:
        raise ValueError(f"{table}offset = 0: expected a finite number > 0")
    return Decay(_number(table, field, value["value"], bounds, "value"), offset, power)


def _number(
    prefix: str, field: str, value: Any, bounds: tuple[float, float], shown: str = ""
) -> float:
    low, high = bounds
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    # Compared, not converted: an integer may be too large for a float.
    is_inside = is_number and -_LARGEST <= value <= _LARGEST and low <= value <= high
    if is_inside and (value != 0 or field not in _NOT_ZERO):
        return float(value)
    raise ValueError(f"{prefix}{shown or field} = {value!r}: expected {_allowed(field, bounds)}")


def _allowed(field: str, bounds: tuple[float, float]) -> str:
    low, high = bounds
    if low == -math.inf:
        return "a finite number"
    is_open = low == 0 and field in _NOT_ZERO
    if high == math.inf:
        return f"a finite number {'>' if is_open else '>='} {low:g}"
    return f"a number in {'(' if is_open else '['}{low:g}, {high:g}]"


def _refuse_unknown(
    values: Mapping[str, Any], known: Iterable[str], prefix: str, what: str
) -> None:
    known = list(known)
    for name in values:
        if name in known:
            continue
        close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"{prefix}{name}: not {what}.{hint} Known: {', '.join(known)}.")
