"""What ``straggler validate`` shows while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from scenarios.show import console_for
from scenarios.validation.outcome import Part
from scenarios.validation.run import Doing, Done


@contextmanager
def progress_for(n_parts: int) -> Iterator[Doing]:
    """A bar over parts on a terminal, nothing elsewhere."""
    console = console_for(stderr=True)
    if not console.is_terminal:
        yield lambda part, fraction: None
        return
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=n_parts)
        fractions: dict[str, float] = {}

        def doing(part: Part, fraction: float) -> None:
            fractions[part.id] = fraction
            progress.update(
                task, completed=sum(fractions.values()), description=f"{part.id}. {part.title}"
            )

        yield doing


def print_done(done: Done) -> None:
    """A line for a part, and one for each check that failed."""
    console, checks = console_for(), done.outcome.checks
    passed = sum(check.is_passed for check in checks)
    verdict = "pass" if done.outcome.is_passed else "FAIL"
    console.print(
        f"{verdict}  {done.part.id}. {done.part.title}: {passed} of {len(checks)} checks",
        soft_wrap=True,
    )
    for check in checks:
        if not check.is_passed:
            console.print(f"      {check.claim}\n      measured: {check.measured}", soft_wrap=True)
