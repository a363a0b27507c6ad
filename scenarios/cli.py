"""The command line: ``run``, ``plot``, ``list``; more in ``sweep_commands``, ``looking_commands``.

Exit codes: 0; 1, a method failed (the others are kept); 2, a mistake in the command or the
scenario; 3, an error that should not happen; 130, Ctrl-C. A mistake never shows a traceback.

Whatever costs time to import is imported by the command that needs it: ``--help`` needs none.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scenarios import looking_commands, sweep_commands, theory_cli, validate_cli
from scenarios.exits import A_RUN_FAILED, INTERRUPTED, mistakes_reported

if TYPE_CHECKING:
    from scenarios.run import RunResult

app = typer.Typer(
    name="straggler",
    help="Simulate asynchronous distributed training, with real policy gradients.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: rich takes longer to import than all the rest
)

sweep_commands.add_to(app)
theory_cli.add_to(app)
validate_cli.add_to(app)
looking_commands.add_to(app)

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of unexpected errors.")]


@app.command()
def run(
    scenario: Annotated[
        str, typer.Argument(help="A TOML file, or the name of a scenario of `straggler list`.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Directory to write, new or empty. Default: runs/NAME, or if that is taken "
            "runs/NAME-2 and so on; nothing is ever written over."
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="How many seeds, instead of the scenario's.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Names of the methods to run, separated by commas.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="Replace a value of the scenario, as fleet.workers=100 or "
            "methods.rennala-nigt.stepsize=0.1. Repeatable.",
        ),
    ] = None,
    executor: Annotated[
        str | None, typer.Option(help="compiled, batched or sequential, instead of the scenario's.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, only the table and failures.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Check every schedule against the simulation's rules.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run that was stopped in --out.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Run a scenario and print its table. Ctrl-C keeps what is done."""
    with mistakes_reported(debug):
        from scenarios.load import load, parse_override
        from scenarios.run import run as run_scenario
        from scenarios.show import print_result, reporter_for

        loaded = load(scenario, [parse_override(text) for text in overrides or []])
        names = None if methods is None else [name.strip() for name in methods.split(",")]
        with reporter_for(quiet) as reporter:
            result = run_scenario(
                loaded,
                seeds=seeds,
                out=out,
                methods=names,
                executor=executor,
                verify=check,
                reporter=reporter,
                resume=resume,
            )
        print_result(result)
    _report_failures(result, debug)


@app.command()
def plot(
    directory: Annotated[Path, typer.Argument(help="What a run wrote.")],
    out: Annotated[
        Path | None, typer.Option(help="Where the figures go. Default: DIRECTORY/plots.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="Which metric. Default: the first of the run.")
    ] = None,
    size: Annotated[
        str, typer.Option(help="column (3.3 inches wide) or page (6.9 inches).")
    ] = "column",
    debug: Debug = False,
) -> None:
    """Draw a run: its metric against time, gradients and communications, as PNG and PDF."""
    with mistakes_reported(debug):
        from analysis.plots import plot_run

        for path in plot_run(directory, out, metric, size):
            typer.echo(path)


@app.command("list")
def list_(
    what: Annotated[
        str | None,
        typer.Argument(
            help="methods, environments, scenarios, delays, updates or coordinators. Default: all."
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """List what there is, a line each."""
    with mistakes_reported(debug):
        from scenarios.listing import listing

        typer.echo(listing(what))


def _version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(f"straggler {version('straggler')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show it and exit."),
    ] = False,
) -> None:
    del version


def _report_failures(result: RunResult, debug: bool) -> None:
    if not result.failures:
        return
    for failure in result.failures:
        typer.echo(f"failed: {failure}", err=True)
        if debug and failure.exception is not None:
            import traceback

            traceback.print_exception(failure.exception)
    raise typer.Exit(A_RUN_FAILED)


def main() -> None:
    """Entry point of the command ``straggler``."""
    try:
        app()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _leave_at_once()
        raise


def _leave_at_once() -> None:
    """End an interrupted command without tearing down XLA, which may be compiling still.

    Its threads would touch what is being destroyed. All that is kept is on disk by now.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(INTERRUPTED)
