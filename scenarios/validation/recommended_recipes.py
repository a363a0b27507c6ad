"""Methods with the parameters that theory recommends, and the seconds that it predicts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.theory.aggregation import (
    arrivals_per_second,
    malenia_seconds,
    rennala_seconds,
    synchronous_seconds,
)
from analysis.theory.parameters import (
    Recommendation,
    recommend_asynchronous,
    recommend_nigt,
    recommend_sgd,
)
from analysis.theory.setting import Objective
from scenarios.validation.runs import Recipe, simulate_recipe
from simulator.budget import Budget

Floats = NDArray[np.float64]

RENNALA_NIGT, RENNALA_SGD = "Rennala NIGT", "Rennala PG"
SYNCHRONISED_NIGT, SYNCHRONOUS_SGD = "Synchronised NIGT", "Synchronous PG"
ASYNCHRONOUS_SGD = "Asynchronous PG"
LABELS = (RENNALA_NIGT, RENNALA_SGD, SYNCHRONISED_NIGT, SYNCHRONOUS_SGD, ASYNCHRONOUS_SGD)


@dataclass(frozen=True)
class Prepared:
    """A method with recommended parameters.

    Attributes:
        recipe: to run.
        steps: T, after which the guarantee holds.
        seconds: when that is.
    """

    recipe: Recipe
    steps: int
    seconds: float


def prepare(label: str, objective: Objective, seconds_per_gradient: Floats) -> Prepared:
    """Choose parameters for a target by theory, and predict when it is reached at the latest.

    Args:
        label: one of ``LABELS``.
        objective: its constants and the target.
        seconds_per_gradient: h, [n_workers], in any order.
    """
    n_workers = len(seconds_per_gradient)
    if label in (RENNALA_NIGT, RENNALA_SGD):
        is_nigt = label == RENNALA_NIGT
        found = recommend_nigt(objective, is_sharp=True) if is_nigt else recommend_sgd(objective)
        return _collecting(label, "rennala", found, seconds_per_gradient)
    if label == SYNCHRONISED_NIGT:
        found = recommend_nigt(objective, n_workers, has_first_batch=False, is_sharp=True)
        return _synchronous(label, found, seconds_per_gradient)
    if label == SYNCHRONOUS_SGD:
        return _synchronous(label, recommend_sgd(objective, n_workers), seconds_per_gradient)
    found = recommend_asynchronous(objective, largest_staleness(seconds_per_gradient))
    recipe = Recipe(label, "asynchronous", {}, "sgd", {"stepsize": found.stepsize})
    rate = arrivals_per_second(seconds_per_gradient)
    # So many arrivals are there at the latest, each worker being one gradient behind its rate.
    return Prepared(recipe, found.steps, (found.steps + n_workers) / rate)


def largest_staleness(seconds_per_gradient: Floats) -> int:
    """Of an asynchronous method without communication, once its slowest worker has arrived."""
    recipe = Recipe("", "asynchronous", {}, "sgd", {})
    horizon = 3 * float(seconds_per_gradient.max())
    schedule = simulate_recipe(recipe, seconds_per_gradient, Budget(seconds=horizon))
    return int(schedule.staleness().max())


def _hyperparameters(found: Recommendation) -> dict[str, float]:
    momentum = {} if found.momentum is None else {"momentum": found.momentum}
    return {"stepsize": found.stepsize, **momentum}


def _update(found: Recommendation) -> str:
    return "sgd" if found.momentum is None else "nigt"


def _collecting(label: str, coordinator: str, found: Recommendation, seconds: Floats) -> Prepared:
    arguments = {"batch_size": found.batch_size, "initial_batch_size": found.initial_batch_size}
    seconds_of = rennala_seconds if coordinator == "rennala" else malenia_seconds
    recipe = Recipe(label, coordinator, arguments, _update(found), _hyperparameters(found))
    first, each = (
        seconds_of(seconds, size) for size in (found.initial_batch_size, found.batch_size)
    )
    return Prepared(recipe, found.steps, first + (found.steps - 1) * each)


def _synchronous(label: str, found: Recommendation, seconds: Floats) -> Prepared:
    batch = found.batch_size // len(seconds)
    arguments = {"gradients_per_worker": batch}
    recipe = Recipe(label, "synchronous", arguments, _update(found), _hyperparameters(found))
    return Prepared(recipe, found.steps, found.steps * synchronous_seconds(seconds, batch))
