"""From a scenario to the objects that it describes: delays, network, problem, coordinators."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from algorithms.coordinator import Coordinator
from scenarios.delay_section import (
    LINKS,
    ConstantModel,
    DelaySection,
    DistributionModel,
    EmpiricalModel,
    ProfileSection,
)
from scenarios.method_section import MethodSection
from scenarios.problems.specs import EnvironmentSpec, ProblemSpec
from scenarios.schema import AllReduceSection, Scenario, StarSection
from simulator.budget import Budget
from simulator.delays import Constant, Delays
from simulator.distributions import empirical, scipy_distribution
from simulator.errors import ConfigurationError
from simulator.links import Link, message_bytes, ring_allreduce_seconds, tree_allreduce_seconds
from simulator.network import AllReduce, Network, NoNetwork, Star
from simulator.profiles import dimension_factor, make_profile
from simulator.traces import read_trace, read_values

if TYPE_CHECKING:
    from scenarios.problems.problem import Problem

_BYTES = {"float32": 4, "float64": 8}


class Composer:
    """Builds what a scenario describes, for a problem of ``dimension`` parameters.

    Args:
        scenario: what to build.
        dimension: d, number of parameters; times may grow with it, messages do.
    """

    def __init__(self, scenario: Scenario, dimension: int) -> None:
        self._scenario = scenario
        self._n_workers = scenario.fleet.workers
        self._dimension = dimension

    def compute(self) -> Delays:
        """Seconds of every computation.

        Raises:
            ConfigurationError: naming the field; among others, a worker that takes no time.
        """
        delays = self._delays(self._scenario.fleet.compute, "fleet.compute", self._n_workers)
        _, longest = delays.bounds_seconds()
        for worker in np.flatnonzero(longest <= 0):
            raise ConfigurationError(
                f"fleet.compute: worker {worker} takes 0 seconds: expected > 0; time could not pass"
            )
        return delays

    def network(self) -> Network:
        """What communication costs.

        Raises:
            ConfigurationError: naming the field.
        """
        section = self._scenario.network
        if isinstance(section, StarSection):
            return Star(
                down=self._delays(section.down, "network.down", self._n_workers),
                up=self._delays(section.up, "network.up", self._n_workers),
            )
        if isinstance(section, AllReduceSection):
            return AllReduce(self._delays(section.seconds, "network.seconds", 1))
        return NoNetwork()

    def coordinator(self, method: MethodSection) -> Coordinator:
        """A fresh coordinator."""
        return method.build_coordinator(self._n_workers)

    def _delays(self, section: DelaySection, field: str, n_workers: int) -> Delays:
        factor = dimension_factor(self._dimension, section.scale_with_dimension)
        seconds = factor * self._profile(section.profile, f"{field}.profile", n_workers)
        model = section.model
        if isinstance(model, ConstantModel):
            return Constant(seconds, field)
        if isinstance(model, DistributionModel):
            return scipy_distribution(model.name, model.parameters, seconds, f"{field}.model")
        if isinstance(model, EmpiricalModel):
            values = _measured(model, f"{field}.model")
            return empirical(values, seconds, f"{field}.model.values")
        try:
            return read_trace(Path(model.path), n_workers, seconds, model.column, model.workers)
        except ConfigurationError as error:
            raise ConfigurationError(f"{field}.model: {error}") from error

    def _profile(self, profile: ProfileSection, field: str, n_workers: int) -> NDArray[np.float64]:
        if profile.kind not in LINKS:
            return make_profile(profile.kind, n_workers, field=field, **profile.parameters)
        try:
            seconds = self._link_seconds(profile)
        except (ConfigurationError, TypeError) as error:
            raise ConfigurationError(f"{field}.{error}") from error
        return np.full(n_workers, seconds)

    def _link_seconds(self, profile: ProfileSection) -> float:
        link = Link(**profile.parameters)
        size = message_bytes(self._dimension, _BYTES[self._scenario.precision])
        if profile.kind == "ring":
            return ring_allreduce_seconds(self._n_workers, link, size)
        if profile.kind == "tree":
            return tree_allreduce_seconds(self._n_workers, link, size)
        return link.seconds(size)


def _measured(model: EmpiricalModel, field: str) -> NDArray[np.float64]:
    if model.path is None:
        return np.array(model.values)
    try:
        return read_values(Path(model.path), model.column)
    except ConfigurationError as error:
        raise ConfigurationError(f"{field}: {error}") from error


def delay_problems(scenario: Scenario) -> list[str]:
    """What is wrong with the delays, files included, whatever the problem's dimension."""
    composer = Composer(scenario, dimension=1)
    problems = []
    for build in (composer.compute, composer.network):
        try:
            build()
        except ConfigurationError as error:
            problems.append(str(error))
    return problems


def budget(scenario: Scenario) -> Budget:
    """When its runs end."""
    section = scenario.budget
    return Budget(seconds=section.seconds, steps=section.steps, gradients=section.gradients)


def problem_spec(scenario: Scenario) -> ProblemSpec:
    """Its problem, with what the scenario says elsewhere."""
    spec: ProblemSpec = replace(scenario.problem, dtype=scenario.precision)
    if isinstance(spec, EnvironmentSpec):
        return replace(spec, evaluation_episodes=scenario.evaluation.episodes)
    return spec


def build_problem(scenario: Scenario) -> Problem:
    """Build the problem; call it inside ``simulator.precision.precision``.

    The last few are kept: what JAX compiles belongs to a problem, so runs that differ in methods,
    fleet speeds or seeds only compile nothing twice.

    Raises:
        ConfigurationError: unknown environment, unsupported space, wrong number of per-worker
            values, a missing optional dependency.
    """
    from scenarios.problems import registry

    spec, n_workers = problem_spec(scenario), scenario.fleet.workers
    key = repr((spec, n_workers))
    if key not in _problems:
        try:
            problem = registry.build_problem(spec, n_workers)
        except ConfigurationError as error:
            raise ConfigurationError(f"problem.{error}") from error
        except MemoryError as error:
            raise ConfigurationError(f"problem: does not fit into memory: {error}") from error
        while len(_problems) >= _PROBLEMS_KEPT:
            del _problems[next(iter(_problems))]
        _problems[key] = problem
    return _problems[key]


_PROBLEMS_KEPT = 4
_problems: dict[str, Problem] = {}
