"""``straggler theory``: what theory says of a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scenarios.exits import mistakes_reported


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(theory)


def theory(
    scenario: Annotated[
        str, typer.Argument(help="A TOML file, or the name of a scenario of `straggler list`.")
    ],
    epsilon: Annotated[
        float | None, typer.Option(help="Target of E|grad f|, instead of theory.epsilon.")
    ] = None,
    axes: Annotated[
        str,
        typer.Option(
            help="Two of exponent, spread, kappa, workers, epsilon, sigma, gradient_lipschitz, "
            "hessian_lipschitz, initial_gap; each with a range if wanted, as workers=1:1000."
        ),
    ] = "exponent,kappa",
    orders: Annotated[
        bool, typer.Option("--orders", help="Take every constant as 1, as papers' tables do.")
    ] = False,
    heterogeneous: Annotated[
        bool,
        typer.Option(
            "--heterogeneous", help="Only methods that hold for workers of different objectives."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Where the figures go. Default: runs/NAME-theory; drawn over each time."),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Replace a value of the scenario."),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of unexpected errors.")
    ] = False,
) -> None:
    """Predict step times, complexities, lower bounds and parameters for a scenario's fleet."""
    with mistakes_reported(debug):
        from scenarios.load import load, parse_override
        from scenarios.theory.axes import read_axes
        from scenarios.theory.prediction import predict
        from scenarios.theory.show import draw_prediction, print_prediction

        loaded = load(scenario, [parse_override(text) for text in overrides or []])
        prediction = predict(loaded, epsilon, orders, heterogeneous)
        pair = read_axes(axes, prediction.setting)
        print_prediction(prediction, pair)
        directory = Path("runs") / f"{loaded.name}-theory" if out is None else out
        for path in draw_prediction(prediction, pair, directory):
            typer.echo(path)
