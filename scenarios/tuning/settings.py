"""``[tune]``: what is tuned, on which seeds, by which criterion."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from scenarios.schema import Seed, read_seeds
from scenarios.sections import Count, Section

Grid = dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]]
Criterion = Literal["area", "time-to-target"]


class TuneSection(Section):
    """How the methods of a scenario are tuned.

    ``grid`` holds for every method that has the hyperparameter, or argument of its coordinator;
    ``methods`` has grids of single methods, which replace those of the same names. Without any,
    each method's stepsize is tried at 2^-4 to 2^4 times the scenario's.

    ``criterion``: "area", the metric averaged over simulated time, or "time-to-target", the
    simulated seconds until ``evaluation.target``.

    ``search``: "grid" tries every combination; "optuna" tries ``trials`` of each method between
    the smallest and the largest values of its grid.
    """

    grid: Grid = Field(default_factory=dict)
    methods: dict[str, Grid] = Field(default_factory=dict)
    seeds: Annotated[tuple[Seed, ...], BeforeValidator(read_seeds)] = (1000, 1001, 1002)
    criterion: Criterion = "area"
    search: Literal["grid", "optuna"] = "grid"
    trials: Count = 32
