"""Commands that look at what was written: ``straggler timeline | compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scenarios.exits import mistakes_reported

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of unexpected errors.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(timeline)
    app.command()(compare)


def timeline(
    directory: Annotated[Path, typer.Argument(help="What a run wrote.")],
    method: Annotated[
        str | None, typer.Option(help="Name of one method. Default: every one.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Default: the first of the run.")] = None,
    start: Annotated[
        float | None, typer.Option("--from", help="Simulated seconds. Default: 0.")
    ] = None,
    stop: Annotated[
        float | None,
        typer.Option("--to", help="Simulated seconds. Default: as much as a page can show."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write. Default: DIRECTORY/timeline.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Draw what workers and server did when, with traces for ui.perfetto.dev."""
    with mistakes_reported(debug):
        from analysis.timeline import write_timelines

        written, notes = write_timelines(directory, out, method, seed, start, stop)
        for path in written:
            typer.echo(path)
        for note in notes:
            typer.echo(f"not all is shown: {note}", err=True)


def compare(
    directory: Annotated[Path, typer.Argument(help="What a run wrote.")],
    baseline: Annotated[
        str | None, typer.Option(help="Name of a method. Default: the last of the run.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Default: the first of the run.")] = None,
    target: Annotated[
        float | None,
        typer.Option(help="Default: the run's, or 90 % of the way that the best method went."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Say how many times sooner each method reaches a target, seed by seed, with intervals."""
    with mistakes_reported(debug):
        from analysis.comparison import compare as compared

        typer.echo("\n".join(compared(directory, baseline, metric, target)))
