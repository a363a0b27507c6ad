"""What the trials of a run share: the problem, the fleet, and schedules that no seed changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.hyperparameters import make_hyperparameters
from scenarios.compose import Composer, budget
from scenarios.judging import evaluation_times
from scenarios.method_section import MethodSection, find_rule
from scenarios.problems.problem import Problem
from scenarios.schedule_cache import SCHEDULES, schedule_id, timing_id
from scenarios.schema import Scenario
from simulator.delays import Delays
from simulator.engine import simulate
from simulator.executors import executor
from simulator.executors.common import Execution
from simulator.executors.compiled_grid import Grid
from simulator.executors.host_grid import HostGrid
from simulator.live import LiveRun, run_live
from simulator.oracle import JaxOracle
from simulator.randomness import Purpose
from simulator.resume import Keeper
from simulator.schedule import Schedule
from simulator.verify import verify_schedule

_WIDTH = 8
"""Runs of a sweep in one compiled call: of quadratics and tabular MDPs, each then takes a quarter
to a half of the time; more gain little, and one alone pays for all."""
_WIDEST_MODEL = 1024
_MOST_GRADIENTS = 2**18

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
        self._timing = timing_id(scenario, problem.oracle.dim)

    def schedule(self, method: MethodSection, seed: int, progress: Progress) -> Schedule:
        """Simulate a method; once for all seeds if nothing is random.

        Raises:
            ConfigurationError: method, fleet and network do not fit.
            SimulationStalled: the budget can never be reached.
        """
        key = schedule_id(self._timing, method, seed if self._is_random else None, self._verify)
        return SCHEDULES.get(key, lambda: self._simulate(method, seed, progress))

    def _simulate(self, method: MethodSection, seed: int, progress: Progress) -> Schedule:
        return simulate(
            self._composer.coordinator(method),
            self._compute,
            self._network,
            self._budget,
            seed,
            verify=self._verify,
            progress=self._reported("simulating", progress),
        )

    @property
    def is_side_by_side(self) -> bool:
        """Whether trials are executed side by side, in grids."""
        return self.scenario.executor == "compiled" and not self._is_live

    @property
    def _is_live(self) -> bool:
        return self.scenario.fleet.timing == "environment-step"

    @property
    def why_not_compiled(self) -> str:
        """Why no trial of this scenario can be; "" if all can."""
        if self._is_live:
            return "times depend on the trajectories: simulated and trained at once, in batches"
        if not isinstance(self.problem.oracle, JaxOracle):
            return "the environment is stepped by Python: trained in batches, seeds side by side"
        return ""

    @cached_property
    def content_id(self) -> str:
        """Of the scenario."""
        return self.scenario.content_id()

    def execution(self, method: MethodSection, schedule: Schedule, seed: int) -> Execution:
        """Prepare to turn a schedule into numbers, alone."""
        build = executor(self.scenario.executor)
        is_compiled = self.scenario.executor == "compiled" and not self.why_not_compiled
        limits = {"memory_bytes": self.scenario.memory_bytes} if is_compiled else {}
        return build(schedule, self.problem.oracle, *_rule(method), seed, **limits)

    def grid(
        self, replicas: Sequence[tuple[MethodSection, int, Schedule]], width: int = 1
    ) -> Grid | HostGrid:
        """Prepare to turn schedules into numbers, side by side.

        Args:
            replicas: method, seed and schedule of each; the methods differ in hyperparameters.
            width: of a compiled grid, see there.
        """
        rule, oracle = find_rule(replicas[0][0].update), self.problem.oracle
        schedules = [schedule for _, _, schedule in replicas]
        cells = [make_hyperparameters(rule, method.hyperparameters) for method, _, _ in replicas]
        seeds = [seed for _, seed, _ in replicas]
        limit = self.scenario.memory_bytes
        if isinstance(oracle, JaxOracle):
            return Grid(schedules, oracle, rule, cells, seeds, memory_bytes=limit, width=width)
        return HostGrid(schedules, oracle, rule, cells, seeds, memory_bytes=limit)

    def width(self, schedule: Schedule) -> int:
        """How many runs that follow a schedule a sweep computes in one call; 1 if each alone.

        Alone are those whose schedule no other seed has; those whose gradients cost so much that
        company saves nothing; and those long enough to want a checkpoint.
        """
        oracle = self.problem.oracle
        is_shared = self.is_side_by_side and isinstance(oracle, JaxOracle) and not self._is_random
        is_light = oracle.dim <= _WIDEST_MODEL and len(schedule.worker) <= _MOST_GRADIENTS
        return _WIDTH if is_shared and is_light else 1

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

    def mean_seconds(self) -> NDArray[np.float64]:
        """See ``simulator.delays.Delays``; of one environment step."""
        return self._compute.mean_seconds()
