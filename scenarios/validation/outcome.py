"""What a part of the validation says: checks that pass or fail, numbers, figures, disagreements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Check:
    """One statement that theory makes and measurement can refute.

    Attributes:
        claim: what must hold.
        is_passed: whether it does.
        measured: what was found, in words and numbers.
    """

    claim: str
    is_passed: bool
    measured: str


@dataclass(frozen=True)
class Disagreement:
    """Where measurement and theory differ without refuting each other: a loose bound, a constant.

    Attributes:
        what: is compared.
        size: by how much they differ.
        why: they do.
    """

    what: str
    size: str
    why: str


@dataclass(frozen=True)
class NumberTable:
    """Numbers behind a figure.

    Attributes:
        title: above it.
        columns: names with units.
        rows: numbers and names.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class FigureCall:
    """A figure to draw.

    Attributes:
        stem: of its files.
        caption: below it.
        draw: of ``analysis.theory.validation_figures``.
        arguments: of it.
    """

    stem: str
    caption: str
    draw: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Outcome:
    """A part, done.

    Attributes:
        checks, disagreements, tables, figures: see there.
    """

    checks: tuple[Check, ...]
    disagreements: tuple[Disagreement, ...] = ()
    tables: tuple[NumberTable, ...] = ()
    figures: tuple[FigureCall, ...] = ()

    @property
    def is_passed(self) -> bool:
        """Whether every check is."""
        return all(check.is_passed for check in self.checks)


@dataclass(frozen=True)
class Effort:
    """How much to measure.

    Attributes:
        is_quick: minutes instead of half an hour: fewer fleets, seeds and targets, same checks.
    """

    is_quick: bool = False

    def choose(self, quick: Any, full: Any) -> Any:
        """One of two values."""
        return quick if self.is_quick else full


Advance = Callable[[float], None]
"""Hears which fraction of a part is done."""


@dataclass(frozen=True)
class Part:
    """One part of the validation.

    Attributes:
        id: for ``--parts``.
        title: what it is about.
        question: what it asks, and how it is answered.
        run: does it.
        weight: about how long that takes, in minutes of a quick run; the longest begin first.
    """

    id: str
    title: str
    question: str
    run: Callable[[Effort, Advance], Outcome]
    weight: float = 0.0


def equal_share(equal: int, total: int) -> str:
    """As "1,000 of 1,000 equal"."""
    return f"{equal:,} of {total:,} equal"
