"""Runs parts of the validation, and reports after each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scenarios.validation.outcome import Effort, Outcome, Part
from scenarios.validation.processes import Doing, outcomes
from scenarios.validation.report import Report


@dataclass(frozen=True, eq=False)
class Done:
    """A part and what came of it."""

    part: Part
    outcome: Outcome


def validate(
    parts: Sequence[Part],
    effort: Effort,
    directory: Path,
    doing: Doing,
    finished: Callable[[Done], None],
    jobs: int = 1,
) -> list[Done]:
    """Run parts; the report on disk always tells of those that are done.

    Args:
        parts: in order.
        effort: quick or full.
        directory: of the report.
        doing: hears of progress.
        finished: hears of each part when it is done.
        jobs: processes, each of which runs a part.

    Raises:
        KeyboardInterrupt: it was; the text says what is kept.
        ConfigurationError: the directory is somebody else's, or can not be written.
    """
    report = Report(directory, effort, parts)
    done: dict[str, Done] = {}
    try:
        for part, outcome in outcomes(parts, effort, jobs, doing):
            report.add(part, outcome)
            done[part.id] = Done(part, outcome)
            finished(done[part.id])
    except KeyboardInterrupt as interrupt:
        text = f"{len(done)} of {len(parts)} parts are in {directory / 'report.md'}"
        raise KeyboardInterrupt(text) from interrupt
    return [done[part.id] for part in parts]
