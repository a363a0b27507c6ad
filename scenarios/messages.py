"""What pydantic found wrong, in our words: path = value: expected what, nearest name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from scenarios.sections import Problems
from simulator.errors import nearest

_MOST_LINES = 10
_LONGEST_VALUE = 60
_COMPARISONS = {
    "greater than or equal to": ">=",
    "less than or equal to": "<=",
    "greater than": ">",
    "less than": "<",
}


def report(source: str, lines: Sequence[str]) -> str:
    """One message for all that is wrong with a scenario.

    Args:
        source: the file, or the shipped scenario.
        lines: what is wrong, at least one.
    """
    if len(lines) == 1:
        return f"{source}: {lines[0]}"
    shown = [f"  {line}" for line in lines[:_MOST_LINES]]
    if len(lines) > _MOST_LINES:
        shown.append(f"  and {len(lines) - _MOST_LINES} more")
    return "\n".join([f"{source}: {len(lines)} problems", *shown])


def explain(error: ValidationError, data: Mapping[str, Any]) -> list[str]:
    """A line for everything wrong.

    Args:
        error: from validating ``data``.
        data: the scenario as it was written.
    """
    lines = [line for item in error.errors(include_url=False) for line in _lines(item, data)]
    return list(dict.fromkeys(lines))


def _lines(item: Any, data: Mapping[str, Any]) -> Iterator[str]:
    kind = item["type"]
    path = path_text(_real_path(item["loc"], data, kind == "missing"))
    cause = item.get("ctx", {}).get("error")
    if isinstance(cause, Problems):
        for line in cause.lines:
            yield _join(path, line)
    elif kind == "value_error":
        yield _join(path, str(cause))
    elif kind == "missing":
        yield f"{path}: missing"
    elif kind.startswith("union_tag"):
        yield _wrong_kind(path, item)
    else:
        yield f"{path} = {shown(item['input'])}: {_expected(item)}"


def _join(path: str, line: str) -> str:
    """``line`` starts with a field of the section at ``path``, with '=' or with 'expected'."""
    if not path:
        return line
    if line.startswith("expected"):
        return f"{path}: {line}"
    if line.startswith("="):
        return f"{path} {line}"
    return f"{path}{'' if line.startswith('[') else '.'}{line}"


def _real_path(loc: Sequence[int | str], data: Any, is_missing: bool) -> list[int | str]:
    """``loc`` without the tags that pydantic adds for the members of a union."""
    path: list[int | str] = []
    for position, part in enumerate(loc):
        is_last = position == len(loc) - 1
        is_there = isinstance(part, int) or (isinstance(data, Mapping) and part in data)
        if is_there or (is_last and is_missing):
            path.append(part)
            data = _inside(data, part)
    return path


def _inside(data: Any, part: int | str) -> Any:
    try:
        return data[part]
    except (KeyError, IndexError, TypeError):
        return None


def path_text(path: Sequence[int | str]) -> str:
    """As one would write it: ``methods[2].batch_size``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def shown(value: Any) -> str:
    """A value, cut if it is long."""
    text = repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


def _wrong_kind(path: str, item: Any) -> str:
    kinds = re.findall(r"'([^']*)'", item.get("ctx", {}).get("expected_tags", ""))
    given = item["input"]
    if not isinstance(given, Mapping):
        return f"{path} = {shown(given)}: expected a table with a kind"
    if "kind" not in given:
        return f"{path}.kind: missing"
    close = nearest(str(given["kind"]), kinds) if kinds else ""
    return f"{path}.kind = {shown(given['kind'])}: no such kind.{close}"


def _expected(item: Any) -> str:
    """Pydantic's 'Input should be X' as 'expected X', with the nearest of a choice."""
    text = str(item["msg"]).replace("Input should be", "expected", 1)
    for phrase, sign in _COMPARISONS.items():
        text = text.replace(f"expected {phrase} ", f"expected a number {sign} ")
    text = re.sub("^expected a valid tuple", "expected a list", text)
    text = re.sub("^expected a valid dictionary.*", "expected a table", text)
    if item["type"] == "literal_error" and isinstance(item["input"], str):
        hint = nearest(item["input"], re.findall(r"'([^']*)'", item["ctx"]["expected"]))
        return f"{text}.{hint}" if "Did you mean" in hint else text
    if not text.startswith("expected"):
        text = f"expected otherwise: {text}"
    return text
