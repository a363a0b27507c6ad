"""One trial: one method on one seed, simulated, executed and judged."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analysis.accounting import time_spent
from scenarios.judging import evaluation_times, judge
from scenarios.method_section import MethodSection
from scenarios.workshop import Progress, Workshop
from simulator.executors.common import Snapshot
from simulator.records import Curve, RunRow
from simulator.resume import Arrays, CheckpointMismatch, Keeper, stacked
from simulator.schedule import Schedule, Status

_POINTS_PER_CALL = 256


@dataclass
class Trial:
    """One method on one seed, with what is known of it so far.

    Attributes:
        method, seed: which.
        schedule: once simulated.
        mean_length_used, mean_length_started: environment steps of a trajectory that entered a
            server step, and of any that was started; once finished, and if measured.
        versions: to judge, ascending, each once; once simulated.
    """

    workshop: Workshop
    method: MethodSection
    seed: int
    schedule: Schedule | None = None
    mean_length_used: float = math.nan
    mean_length_started: float = math.nan
    versions: list[int] = field(default_factory=list)
    _seconds: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _reached: list[int] = field(default_factory=list)
    _points: list[NDArray[np.float64]] = field(default_factory=list)
    _metrics: list[dict[str, NDArray[np.float64]]] = field(default_factory=list)

    def run(self, progress: Progress, keeper: Keeper | None = None) -> None:
        """Simulate, execute and judge. What is done stays in the trial if it is interrupted.

        Args:
            progress: hears how far it is.
            keeper: of a checkpoint, to go on from if it has one.

        Raises:
            ConfigurationError: method, fleet and network do not fit, or too many points.
            SimulationStalled: the budget can never be reached.
            CheckpointMismatch: the keeper's checkpoint is of another run.
        """
        if self.workshop.scenario.fleet.timing == "environment-step":
            self._run_live(progress, keeper)
        else:
            self._run_schedule(progress, keeper)
        self._judge()

    def _run_schedule(self, progress: Progress, keeper: Keeper | None) -> None:
        """Know the order of events first, then compute the gradients it uses."""
        self.simulate(progress)
        execution = self.workshop.execution(self.method, self.simulated, self.seed)
        saved = keeper.load() if keeper else None
        if saved is not None:
            self._resume(saved)
            execution.resume(saved)
        for snapshot in execution.snapshots(self.versions[len(self._reached) :]):
            self.take(snapshot)
            progress("training", snapshot.version / max(1, self.versions[-1]))
            if keeper is not None:
                keeper.offer(lambda: {**execution.checkpoint(), **self._checkpoint()})
        self.finish(execution.lengths)

    def simulate(self, progress: Progress) -> None:
        """Know the order of events.

        Raises:
            ConfigurationError: method, fleet and network do not fit, or too many points.
            SimulationStalled: the budget can never be reached.
        """
        self._begin(self.workshop.schedule(self.method, self.seed, progress))

    @property
    def simulated(self) -> Schedule:
        """The schedule, of a trial that has one."""
        assert self.schedule is not None, "simulate first"
        return self.schedule

    def take(self, snapshot: Snapshot) -> None:
        """The model at the next of ``versions``."""
        self._reached.append(snapshot.version)
        self._points.append(snapshot.params)
        if len(self._points) == _POINTS_PER_CALL:
            self._judge()

    @property
    def is_complete(self) -> bool:
        """Whether it reached its last point."""
        return self.schedule is not None and len(self._reached) == len(self.versions)

    def finish(self, lengths: NDArray[np.int32]) -> None:
        """All gradients are computed; these are their lengths, [n_computations]."""
        self.mean_length_used = _mean(lengths[self.simulated.status == Status.USED])
        self._judge()

    def _run_live(self, progress: Progress, keeper: Keeper | None) -> None:
        """Order of events and gradients depend on each other."""
        done = self.workshop.live(self.method, self.seed, progress, keeper)
        self._begin(done.schedule)
        for version in self.versions:
            self.take(done.snapshots[version])
        self.mean_length_used = _mean(done.lengths[done.schedule.status == Status.USED])
        self.mean_length_started = _mean(done.lengths)

    def _begin(self, schedule: Schedule) -> None:
        """Take the schedule, and find the versions to judge."""
        self.schedule = schedule
        section = self.workshop.scenario.evaluation
        self._seconds = evaluation_times(section, schedule.end_seconds)
        self.versions = np.unique(schedule.version_at(self._seconds)).tolist()

    def _judge(self) -> None:
        if self._points:
            points = np.stack(self._points)
            self._metrics.append(judge(self.workshop.problem, points, self.seed))
            self._points = []  # not before: an interrupt would lose them

    def _checkpoint(self) -> Arrays:
        """What was judged, and the points that wait for it: later calls then hold the same."""
        dim = self.workshop.problem.oracle.dim
        dtype = self._points[0].dtype if self._points else np.float64
        judged = {
            f"metric.{metric.name}": np.concatenate(
                [np.zeros(0), *(part[metric.name] for part in self._metrics)]
            )
            for metric in self.workshop.problem.metrics
        }
        return {
            "schedule": np.array(self.simulated.digest()),
            "judged_versions": np.array(self._reached, np.int64),
            "judged_points": stacked(self._points, dim, dtype),
            **judged,
        }

    def _resume(self, arrays: Arrays) -> None:
        """Take back what :meth:`_checkpoint` kept."""
        if str(arrays["schedule"]) != self.simulated.digest():
            raise CheckpointMismatch("the schedule is another one")
        names = [metric.name for metric in self.workshop.problem.metrics]
        metrics = {name: arrays[f"metric.{name}"] for name in names}
        reached, points = arrays["judged_versions"].tolist(), list(arrays["judged_points"])
        self._reached, self._points = reached, points
        self._metrics = [metrics] if len(metrics[names[0]]) else []

    def curve(self) -> Curve | None:
        """Metrics along the run, as far as it got; None if it did not get anywhere.

        Points not yet judged are judged now.
        """
        self._judge()
        if self.schedule is None or not self._metrics:
            return None
        metrics = {
            name: np.concatenate([part[name] for part in self._metrics])
            for name in self._metrics[0]
        }
        version = self.schedule.version_at(self._seconds)
        reached = version <= self._reached[-1]
        index = np.searchsorted(self._reached, version[reached])
        metrics = {name: values[index] for name, values in metrics.items()}
        return Curve.of(self.method.name, self.seed, self.schedule, self._seconds[reached], metrics)

    def row(self, wall_seconds: float, error: str = "") -> RunRow:
        """Its counts, shares of worker time, and what went wrong."""
        if self.schedule is None:
            return RunRow(self.method.name, self.seed, wall_seconds=wall_seconds, error=error)
        return RunRow.of(
            self.method.name,
            self.seed,
            self.schedule,
            time_spent(self.schedule).shares(),
            mean_length_used=self.mean_length_used,
            mean_length_started=self.mean_length_started,
            wall_seconds=wall_seconds,
            error=error,
        )


def _mean(lengths: NDArray[np.int32]) -> float:
    return float(lengths.mean()) if len(lengths) else math.nan
