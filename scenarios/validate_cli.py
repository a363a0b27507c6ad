"""``straggler validate``: whether simulator and theorems agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scenarios.exits import A_RUN_FAILED, mistakes_reported

if TYPE_CHECKING:
    from scenarios.validation.run import Done


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(validate)


def validate(
    quick: Annotated[
        bool, typer.Option("--quick", help="Three minutes instead of half an hour.")
    ] = False,
    parts: Annotated[
        str | None,
        typer.Option(help="Numbers of parts, separated by commas: 1 to 7. Default: all."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Where the report goes; an earlier one there is replaced.")
    ] = Path("runs/validation"),
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes, a part each. Default: one per core.")
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of unexpected errors.")
    ] = False,
) -> None:
    """Measure what theory says, and write a report. Exit code 1 if a check fails."""
    with mistakes_reported(debug):
        from scenarios.backends.local import cores
        from scenarios.validation.outcome import Effort
        from scenarios.validation.parts import choose
        from scenarios.validation.run import validate as run
        from scenarios.validation.show import print_done, progress_for

        wanted = None if parts is None else [text.strip() for text in parts.split(",") if text]
        chosen = choose(wanted)
        with progress_for(len(chosen)) as doing:
            done = run(chosen, Effort(quick), out, doing, print_done, jobs or cores())
        typer.echo(out / "report.md")
    _end(done)


def _end(done: list[Done]) -> None:
    if not all(one.outcome.is_passed for one in done):
        raise typer.Exit(A_RUN_FAILED)
