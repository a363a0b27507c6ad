"""``[tune]`` from the options of ``straggler tune``."""

from __future__ import annotations

import tomllib
from typing import Any

from pydantic import ValidationError

from scenarios.messages import explain, report
from scenarios.sections import plain
from scenarios.tuning.settings import TuneSection
from simulator.errors import ConfigurationError

_FIRST_SEED = 1000


def tune_section(
    grid: list[str], seeds: str, criterion: str, search: str, trials: int
) -> TuneSection:
    """Read the options.

    Args:
        grid: texts NAME=V1,V2 or METHOD.NAME=V1,V2, values in TOML syntax.
        seeds: a count, or seeds separated by commas.
        criterion, search, trials: as in :class:`TuneSection`.

    Raises:
        ConfigurationError: naming the option.
    """
    data: dict[str, Any] = {"criterion": criterion, "search": search, "trials": trials}
    data |= {"grid": {}, "methods": {}, "seeds": _seeds(seeds)}
    for text in grid:
        name, values = _grid(text)
        method, _, hyperparameter = name.rpartition(".")
        target = data["methods"].setdefault(method, {}) if method else data["grid"]
        target[hyperparameter] = values
    problems: list[str] = []
    values = plain(data, "", problems)
    if not problems:
        try:
            return TuneSection.model_validate(values)
        except ValidationError as error:
            problems = explain(error, values)
    raise ConfigurationError(report("straggler tune", problems))


def _grid(text: str) -> tuple[str, list[Any]]:
    name, equals, written = text.partition("=")
    try:
        values = tomllib.loads(f"values = [{written}]")
    except (ValueError, RecursionError):
        values = {}
    if not equals or not name.strip() or set(values) != {"values"} or not values["values"]:
        raise ConfigurationError(f"--grid {text!r}: expected name=values, as stepsize=0.01,0.1,1")
    return name.strip(), values["values"]


def _seeds(text: str) -> list[int]:
    try:
        seeds = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        seeds = []
    if not seeds or ("," not in text and not 1 <= seeds[0] <= 10_000):
        raise ConfigurationError(
            f"--tuning-seeds {text!r}: expected a count from 1 to 10000, or seeds as 7,8,9"
        )
    if "," in text:
        return seeds
    return list(range(_FIRST_SEED, _FIRST_SEED + seeds[0]))
