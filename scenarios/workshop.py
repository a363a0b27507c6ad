"""What the trials of a run share: the problem, the fleet, and schedules that no seed changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.hyperparameters import make_hyperparameters
from scenarios.compose import Composer, budget
from scenarios.judging import evaluation_times
from scenarios.method_section import MethodSection, find_rule
from scenarios.problems.problem import Problem
from scenarios.schema import Scenario
from simulator.delays import Delays
from simulator.engine import simulate
from simulator.executors import executor
from simulator.executors.common import Execution
from simulator.live import LiveRun, run_live
from simulator.randomness import Purpose
from simulator.resume import Keeper
from simulator.schedule import Schedule
from simulator.verify import verify_schedule

_SCHEDULES_KEPT = 16

Progress = Callable[[str, float], None]
"""Called with what is being done, and the fraction of it that is."""


class Workshop:
    """What the trials of a run share: the problem, and schedules that no seed changes.

    Args:
        scenario: what to run.
        problem: built from it.
        verify: check every schedule against the rules of the simulation.
    """

    def __init__(self, scenario: Scenario, problem: Problem, verify: bool = False) -> None:
        self.scenario = scenario
        self.problem = problem
        self._verify = verify
        composer = Composer(scenario, problem.oracle.dim)
        self._composer = composer
        self._budget = budget(scenario)
        self._compute, self._network = composer.compute(), composer.network()
        links = vars(self._network).values()
        self._is_random = self._compute.is_random or any(link.is_random for link in links)
        self._schedules: dict[str, Schedule] = {}

    def schedule(self, method: MethodSection, seed: int, progress: Progress) -> Schedule:
        """Simulate a method; once for all seeds and hyperparameters if nothing is random.

        Raises:
            ConfigurationError: method, fleet and network do not fit.
            SimulationStalled: the budget can never be reached.
        """
        key = repr((method.coordinator, sorted(method.arguments.items())))
        if key in self._schedules:
            return self._schedules[key]
        schedule = simulate(
            self._composer.coordinator(method),
            self._compute,
            self._network,
            self._budget,
            seed,
            verify=self._verify,
            progress=self._reported("simulating", progress),
        )
        if not self._is_random:
            while len(self._schedules) >= _SCHEDULES_KEPT:
                del self._schedules[next(iter(self._schedules))]
            self._schedules[key] = schedule
        return schedule

    @cached_property
    def content_id(self) -> str:
        """Of the scenario."""
        return self.scenario.content_id()

    def execution(self, method: MethodSection, schedule: Schedule, seed: int) -> Execution:
        """Prepare to turn a schedule into numbers."""
        build = executor(self.scenario.executor)
        return build(schedule, self.problem.oracle, *_rule(method), seed)

    def live(
        self,
        method: MethodSection,
        seed: int,
        progress: Progress,
        keeper: Keeper | None = None,
    ) -> LiveRun:
        """Simulate and execute at once, computations being timed per environment step.

        Raises:
            ConfigurationError: method, fleet and network do not fit.
            SimulationStalled: the budget can never be reached.
        """
        done = run_live(
            self._composer.coordinator(method),
            self._compute,
            self._network,
            self._budget,
            seed,
            self.problem.oracle,
            *_rule(method),
            snapshot_seconds=self._known_times(),
            progress=self._reported("training", progress),
            keeper=keeper,
        )
        if self._verify:
            times = _LengthTimes(self._compute, done)
            verify_schedule(done.schedule, times, self._network, seed)
        return done

    def _known_times(self) -> list[float] | None:
        """When points will be judged, if the end of the run does not depend on what happens."""
        limits = self._budget
        if limits.seconds is None or limits.steps is not None or limits.gradients is not None:
            return None
        return evaluation_times(self.scenario.evaluation, limits.seconds).tolist()

    def _reported(self, phase: str, progress: Progress) -> Callable[[float, int], None]:
        limits = self._budget

        def report(seconds: float, steps: int) -> None:
            parts = [seconds / limits.seconds if limits.seconds else 0.0]
            parts += [steps / limits.steps if limits.steps else 0.0]
            progress(phase, min(1.0, max(parts)))

        return report


def _rule(method: MethodSection) -> tuple[Any, Any]:
    """The update rule and its hyperparameters."""
    rule = find_rule(method.update)
    return rule, make_hyperparameters(rule, method.hyperparameters)


class _LengthTimes:
    """The delays that a live run turned out to have, to check its schedule against.

    Args:
        compute: seconds per environment step.
        done: the run.
    """

    is_random = True

    def __init__(self, compute: Delays, done: LiveRun) -> None:
        self.n_workers = compute.n_workers
        self._compute = compute
        rows = zip(done.schedule.worker.tolist(), done.schedule.k.tolist(), strict=True)
        self._length = dict(zip(rows, done.lengths.tolist(), strict=True))

    def seconds(
        self, seed: int, purpose: Purpose, workers: NDArray[np.int32], ks: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """See ``simulator.delays.Delays``."""
        pairs = zip(workers.tolist(), ks.tolist(), strict=True)
        lengths = np.array([self._length[pair] for pair in pairs], np.float64)
        return lengths * self._compute.seconds(seed, purpose, workers, ks)

    def sampler(self, seed: int, purpose: Purpose) -> Callable[[int, int], float]:
        """See ``simulator.delays.Delays``."""
        sample = self._compute.sampler(seed, purpose)
        return lambda worker, k: self._length[worker, k] * sample(worker, k)

    def bounds_seconds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """See ``simulator.delays.Delays``; of one environment step."""
        return self._compute.bounds_seconds()
