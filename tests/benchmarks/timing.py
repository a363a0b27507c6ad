"""Timing two things against each other, fairly, on a noisy machine."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes:
        what: what was measured.
        rate: median, things a second.
        baseline: median of the bare baseline, things a second; NaN if this line is a baseline.
        ratio: median over rounds of rate / baseline.
        wanted: what the ratio is held to, as text; empty if nothing.
    """

    what: str
    unit: str
    rate: float
    baseline: float = float("nan")
    ratio: float = float("nan")
    wanted: str = ""


def rates(runs: Mapping[str, Callable[[], int]], rounds: int) -> dict[str, list[float]]:
    """Things a second of every run, round by round, one after the other in each round.

    Args:
        runs: each does its work once and returns how many things it did.
        rounds: after one more that warms up and compiles.
    """
    found: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            start = perf_counter()
            many = run()
            if number:
                found[name].append(many / (perf_counter() - start))
    return found


def against(
    what: str, unit: str, found: dict[str, list[float]], ours: str, bare: str, wanted: str
) -> Line:
    """A line comparing two runs of the same rounds."""
    ratio = statistics.median(o / b for o, b in zip(found[ours], found[bare], strict=True))
    return Line(
        what, unit, statistics.median(found[ours]), statistics.median(found[bare]), ratio, wanted
    )
