"""Computing one run of a sweep, in whatever process: the same bytes from every backend."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from scenarios.checkpoint import FileKeeper, run_resumably
from scenarios.compose import build_problem
from scenarios.judging import divergence
from scenarios.run import one_line
from scenarios.schema import Scenario
from scenarios.store import RunSpec, run_file
from scenarios.trial import Trial
from scenarios.workshop import Workshop
from simulator.precision import precision


class Computed(NamedTuple):
    """What came of a run.

    Attributes:
        content: of its file; None if it failed.
        error: why it failed, or that it diverged (then there is a file).
        wall_seconds: real seconds it took.
    """

    content: bytes | None
    error: str
    wall_seconds: float


class Bench:
    """Computes runs one after the other, and keeps what the next one may need."""

    def __init__(self) -> None:
        self._workshop: Workshop | None = None

    def compute(
        self,
        spec: RunSpec,
        axes: dict[str, str],
        alive: Callable[[], None],
        checkpoint: Path | None = None,
    ) -> Computed:
        """Compute a run. Whatever an environment raises becomes the run's error.

        Args:
            spec: the run.
            axes: settings column -> Arrow type.
            alive: called now and then.
            checkpoint: where to keep how far it is if it takes long, and to go on from.
        """
        started = time.perf_counter()
        try:
            with precision(spec.scenario.precision):
                content, error = self._compute(spec, axes, alive, checkpoint)
        except Exception as caught:  # noqa: BLE001  an environment may raise anything
            content, error = None, one_line(caught) or repr(caught)
        return Computed(content, error, time.perf_counter() - started)

    def _compute(
        self,
        spec: RunSpec,
        axes: dict[str, str],
        alive: Callable[[], None],
        checkpoint: Path | None,
    ) -> tuple[bytes, str]:
        workshop = self._workshop_for(spec.scenario)
        trial = Trial(workshop, spec.method, spec.seed)
        keeper = FileKeeper(checkpoint, spec.key) if checkpoint else None
        run_resumably(trial, lambda phase, fraction: alive(), keeper)
        curve = trial.curve()
        if curve is None:
            raise RuntimeError("the run has no curve")
        error = divergence(curve)
        target = spec.scenario.evaluation.target
        metrics = run_file.finished_metrics(workshop.problem.metrics, target)
        return run_file.encode(spec, axes, trial.row(0.0, error), curve, metrics), error

    def _workshop_for(self, scenario: Scenario) -> Workshop:
        if self._workshop is None or self._workshop.scenario != scenario:
            self._workshop = None  # so that two never take memory at once
            self._workshop = Workshop(scenario, build_problem(scenario))
        return self._workshop
