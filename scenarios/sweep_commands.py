"""Commands on many runs: ``straggler sweep | tune | status``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scenarios.exits import A_RUN_FAILED, mistakes_reported

if TYPE_CHECKING:
    from scenarios.backends.backend import Backend
    from scenarios.sweeps.sweep import SweepResult
    from scenarios.tuning.settings import TuneSection

Out = Annotated[
    Path | None,
    typer.Option(
        help="The store: a new directory, or that of an earlier start, which is completed."
    ),
]
Jobs = Annotated[
    int | None, typer.Option(help="Processes of this machine. Default: one per core.", min=1)
]
BackendName = Annotated[
    str, typer.Option("--backend", help="local, or ray: a Ray cluster that is running.")
]
Address = Annotated[
    str | None, typer.Option(help="Of the Ray cluster. Default: the one of this machine.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Replace a value of every scenario. Repeatable."
    ),
]
Retry = Annotated[bool, typer.Option("--retry-failed", help="Try again what failed before.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of unexpected errors.")]


def sweep(
    file: Annotated[Path, typer.Argument(metavar="SWEEP.toml", help="A scenario, and axes.")],
    out: Out = None,
    jobs: Jobs = None,
    backend: BackendName = "local",
    address: Address = None,
    overrides: Overrides = None,
    retry_failed: Retry = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run a scenario along axes. Ctrl-C keeps what is done; starting again goes on.

    Default store: runs/NAME-sweep.
    """
    with mistakes_reported(debug):
        from scenarios.load import parse_override
        from scenarios.sweeps.sweep import run_sweep
        from scenarios.sweeps.sweep_file import load_sweep

        loaded = load_sweep(file, [parse_override(text) for text in overrides or []])
        store = out or Path("runs") / f"{loaded.name}-sweep"
        with _backend(backend, jobs, address) as chosen, _reporting(quiet, store) as reporter:
            result = run_sweep(loaded, store, chosen, reporter, retry_failed)
        _show(result)
    _exit_if_failed(result)


def tune(
    scenario: Annotated[str, typer.Argument(help="A TOML file, or the name of a shipped one.")],
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=V1,V2,...",
            help="Values of a hyperparameter, as stepsize=0.01,0.1,1 for every method that has "
            "it, or rennala-nigt.batch_size=20,40 for one. Repeatable. Default: the scenario's "
            "stepsizes times 1/16 to 16.",
        ),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Names of the methods to tune, separated by commas.")
    ] = None,
    tuning_seeds: Annotated[
        str, typer.Option(help="To choose on: how many, from 1000 on, or a list, as 7,8,9,.")
    ] = "3",
    seeds: Annotated[
        int | None, typer.Option(help="How many fresh seeds, instead of the scenario's.")
    ] = None,
    criterion: Annotated[
        str,
        typer.Option(help="area (the metric averaged over simulated time) or time-to-target."),
    ] = "area",
    search: Annotated[str, typer.Option(help="grid, or optuna.")] = "grid",
    trials: Annotated[int, typer.Option(help="Candidates per method with optuna.", min=1)] = 32,
    out: Out = None,
    jobs: Jobs = None,
    backend: BackendName = "local",
    address: Address = None,
    overrides: Overrides = None,
    retry_failed: Retry = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Tune every method on tuning seeds, and run the winners on fresh ones.

    Default store: runs/NAME-tune. The winners' scenario is written there as tuned.toml.
    """
    with mistakes_reported(debug):
        from scenarios.load import load, parse_override
        from scenarios.run import narrowed
        from scenarios.sweeps.point import Point
        from scenarios.sweeps.sweep import run_sweep
        from scenarios.sweeps.sweep_file import Sweep

        loaded = load(scenario, [parse_override(text) for text in overrides or []])
        names = None if methods is None else [name.strip() for name in methods.split(",")]
        loaded = narrowed(loaded, seeds, names)
        section = _tune_section(grid or [], tuning_seeds, criterion, search, trials)
        store = out or Path("runs") / f"{loaded.name}-tune"
        plan = Sweep(loaded.name, (Point({}, loaded),), section)
        with _backend(backend, jobs, address) as chosen, _reporting(quiet, store) as reporter:
            result = run_sweep(plan, store, chosen, reporter, retry_failed)
        _show(result)
    _exit_if_failed(result)


def status(
    directory: Annotated[Path, typer.Argument(help="A store that sweep or tune wrote.")],
    runs: Annotated[bool, typer.Option("--runs", help="A line for every run.")] = False,
    debug: Debug = False,
) -> None:
    """Say which runs of a store are done, failed, running or missing."""
    with mistakes_reported(debug):
        from scenarios.store import Store
        from scenarios.sweeps.show import print_status

        print_status(Store.open(directory), runs)


def add_to(app: typer.Typer) -> None:
    """Make these commands part of the command line."""
    for command in (sweep, tune, status):
        app.command()(command)


@contextmanager
def _backend(name: str, jobs: int | None, address: str | None) -> Iterator[Backend]:
    from scenarios.backends import make_backend

    backend = make_backend(name, jobs, address)
    try:
        yield backend
    finally:
        backend.close()


@contextmanager
def _reporting(quiet: bool, store: Path) -> Iterator[Any]:
    """A reporter; Ctrl-C says what is kept, and where."""
    from scenarios.sweeps.show import reporter_for

    with reporter_for(quiet) as reporter:
        try:
            yield reporter
        except KeyboardInterrupt:
            text = f"what is done is in {store}; the same command goes on from there"
            raise KeyboardInterrupt(text) from None


def _tune_section(
    grid: list[str], seeds: str, criterion: str, search: str, trials: int
) -> TuneSection:
    from scenarios.tuning.command import tune_section

    return tune_section(grid, seeds, criterion, search, trials)


def _show(result: SweepResult) -> None:
    from scenarios.sweeps.show import print_sweep

    print_sweep(result)


def _exit_if_failed(result: SweepResult) -> None:
    if not result.tally.failures:
        return
    for spec, error in result.tally.failures:
        typer.echo(f"failed: {spec.name}: {error}", err=True)
    raise typer.Exit(A_RUN_FAILED)
