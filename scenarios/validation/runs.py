"""Runs of a method on a problem whose points are judged exactly, many seeds side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.coordinators import COORDINATORS
from algorithms.hyperparameters import make_hyperparameters
from scenarios.method_section import find_rule
from scenarios.problems.problem import Problem
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.engine import simulate
from simulator.executors.compiled_grid import Grid
from simulator.network import Network, NoNetwork
from simulator.oracle import JaxOracle
from simulator.schedule import Schedule

Floats = NDArray[np.float64]
_POINTS_PER_CALL = 4096


@dataclass(frozen=True)
class Recipe:
    """A method, ready to run.

    Attributes:
        label: for tables and figures.
        coordinator: key of ``algorithms.coordinators.COORDINATORS``.
        arguments: of it, besides ``n_workers``.
        update: name of an update rule.
        hyperparameters: of it.
    """

    label: str
    coordinator: str
    arguments: Mapping[str, Any]
    update: str
    hyperparameters: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Runs:
    """Several seeds of one schedule.

    Attributes:
        schedule: what happened in all of them.
        versions: that were judged, [n_points], ascending.
        metrics: name -> [n_cells, n_seeds, n_points].
    """

    schedule: Schedule
    versions: NDArray[np.int64]
    metrics: dict[str, Floats]

    @property
    def seconds(self) -> Floats:
        """When each of ``versions`` was reached, [n_points]."""
        return np.concatenate([[0.0], self.schedule.step_seconds])[self.versions]


def simulate_recipe(
    recipe: Recipe, seconds_per_gradient: Floats, budget: Budget, network: Network | None = None
) -> Schedule:
    """The schedule of a method on workers of constant speeds, [n_workers]."""
    n_workers = len(seconds_per_gradient)
    coordinator = COORDINATORS[recipe.coordinator](n_workers, **recipe.arguments)
    return simulate(coordinator, Constant(seconds_per_gradient), network or NoNetwork(), budget, 0)


def execute(
    schedule: Schedule,
    problem: Problem,
    recipe: Recipe,
    seeds: Sequence[int],
    versions: NDArray[np.int64],
    cells: Sequence[Mapping[str, float]] = ({},),
) -> Runs:
    """Turn a schedule into exact metrics of the models at some versions.

    Args:
        schedule: of the method.
        problem: with a JAX oracle.
        recipe: the method.
        seeds: of the gradients.
        versions: [n_points], ascending.
        cells: hyperparameters that replace the recipe's; one run each for every seed.
    """
    assert isinstance(problem.oracle, JaxOracle)
    rule = find_rule(recipe.update)
    made = [make_hyperparameters(rule, {**recipe.hyperparameters, **cell}) for cell in cells]
    replicas = [(cell, seed) for cell in made for seed in seeds]
    grid = Grid(
        [schedule] * len(replicas),
        problem.oracle,
        rule,
        [cell for cell, _ in replicas],
        [seed for _, seed in replicas],
    )
    points = np.empty((len(replicas), len(versions), problem.oracle.dim))
    found = [0] * len(replicas)
    for replica, snapshot in grid.snapshots([versions.tolist()] * len(replicas)):
        points[replica, found[replica]] = snapshot.params
        found[replica] += 1
    shape = (len(cells), len(seeds), len(versions))
    flat = points.reshape(-1, problem.oracle.dim)
    judged = [
        problem.evaluate(flat[start : start + _POINTS_PER_CALL], 0)
        for start in range(0, len(flat), _POINTS_PER_CALL)
    ]
    metrics = {
        name: np.concatenate([part[name] for part in judged]).reshape(shape) for name in judged[0]
    }
    return Runs(schedule, versions, metrics)
