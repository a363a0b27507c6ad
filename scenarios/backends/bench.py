"""Computing runs of a sweep, in whatever process: the same bytes from every backend.

Runs that follow one schedule and are light are computed in one compiled call, always as wide as
``Workshop.width`` says, with idle replicas if need be: so the bytes of a run do not depend on which
others it was computed with, nor on what a kill left to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from scenarios.batch import Batch
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
        wall_seconds: real seconds it took; of runs computed together, an equal share.
    """

    content: bytes | None
    error: str
    wall_seconds: float


def _hear(phase: str, fraction: float) -> None:
    del phase, fraction


class Bench:
    """Computes runs, and keeps what the next ones may need."""

    def __init__(self) -> None:
        self._workshop: Workshop | None = None

    def parties(self, specs: Sequence[RunSpec]) -> Iterator[list[RunSpec]]:
        """Split runs, in order, into those to compute together."""
        rest = list(specs)
        while rest:
            many = self._width(rest[0])
            same = next((i for i, s in enumerate(rest) if s.group != rest[0].group), len(rest))
            many = min(many, same)
            yield rest[:many]
            rest = rest[many:]

    def _width(self, spec: RunSpec) -> int:
        """1 if it fails: it will again when it is computed, and then be told."""
        try:
            with precision(spec.scenario.precision):
                workshop = self._workshop_for(spec.scenario)
                if not workshop.is_side_by_side:
                    return 1
                return workshop.width(workshop.schedule(spec.method, spec.seed, _hear))
        except Exception:  # noqa: BLE001  an environment may raise anything
            return 1

    def compute(
        self,
        party: Sequence[RunSpec],
        axes: dict[str, str],
        alive: Callable[[], None],
        checkpoint: Path | None = None,
    ) -> list[Computed]:
        """Compute runs together. Whatever an environment raises becomes the runs' error.

        Args:
            party: one of :meth:`parties`.
            axes: settings column -> Arrow type.
            alive: called now and then.
            checkpoint: where to keep how far a run is that is alone and takes long, and to go on
                from.
        """
        started = time.perf_counter()
        try:
            with precision(party[0].scenario.precision):
                found = self._compute(party, axes, alive, checkpoint)
        except Exception as caught:  # noqa: BLE001  an environment may raise anything
            if len(party) > 1:  # one of them must not fail the others
                return [self.compute([spec], axes, alive)[0] for spec in party]
            found = [(None, one_line(caught) or repr(caught))]
        seconds = (time.perf_counter() - started) / len(party)
        return [Computed(content, error, seconds) for content, error in found]

    def _compute(
        self,
        party: Sequence[RunSpec],
        axes: dict[str, str],
        alive: Callable[[], None],
        checkpoint: Path | None,
    ) -> list[tuple[bytes | None, str]]:
        workshop = self._workshop_for(party[0].scenario)
        width = self._width(party[0])
        trials = [Trial(workshop, spec.method, spec.seed) for spec in party]
        if width > 1:
            self._together(workshop, trials, width, alive)
        else:
            keeper = FileKeeper(checkpoint, party[0].key) if checkpoint else None
            run_resumably(trials[0], lambda phase, fraction: alive(), keeper)
        return [_kept(spec, trial, axes) for spec, trial in zip(party, trials, strict=True)]

    def _together(
        self, workshop: Workshop, trials: list[Trial], width: int, alive: Callable[[], None]
    ) -> None:
        batch = Batch(workshop, list(trials), width)
        batch.simulate(lambda phase, fraction: alive())
        for _, error in batch.failed:
            raise error
        batch.train(lambda phase, fraction: alive())

    def _workshop_for(self, scenario: Scenario) -> Workshop:
        if self._workshop is None or self._workshop.scenario != scenario:
            self._workshop = None  # so that two never take memory at once
            self._workshop = Workshop(scenario, build_problem(scenario))
        return self._workshop


def _kept(spec: RunSpec, trial: Trial, axes: dict[str, str]) -> tuple[bytes, str]:
    """The file of a run that is over, and whether it diverged."""
    curve = trial.curve()
    if curve is None:
        raise RuntimeError("the run has no curve")
    error = divergence(curve)
    target = spec.scenario.evaluation.target
    metrics = run_file.finished_metrics(trial.workshop.problem.metrics, target)
    return run_file.encode(spec, axes, trial.row(0.0, error), curve, metrics), error
