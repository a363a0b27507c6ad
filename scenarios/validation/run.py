"""Runs parts of the validation one after another, and reports after each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scenarios.validation.outcome import Check, Effort, Outcome, Part
from scenarios.validation.report import Report

Doing = Callable[[Part, float], None]
"""Hears which part is running, and how much of it is done."""


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
) -> list[Done]:
    """Run parts; the report on disk always tells of those that are done.

    Args:
        parts: in order.
        effort: quick or full.
        directory: of the report.
        doing: hears of progress.
        finished: hears of each part when it is done.

    Raises:
        ConfigurationError: the directory is somebody else's, or can not be written.
    """
    report = Report(directory, effort, parts)
    done: list[Done] = []
    for part in parts:
        doing(part, 0.0)
        outcome = _outcome(part, effort, doing)
        report.add(part, outcome)
        done.append(Done(part, outcome))
        finished(done[-1])
    return done


def _outcome(part: Part, effort: Effort, doing: Doing) -> Outcome:
    def advance(fraction: float) -> None:
        doing(part, fraction)

    try:
        return part.run(effort, advance)
    except Exception as error:  # noqa: BLE001  a coordinator that is broken may break anyhow
        text = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
        return Outcome((Check("the part runs to its end", False, text),))
