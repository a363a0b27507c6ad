"""What ``straggler theory`` prints and draws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from analysis.theory import figures
from analysis.theory.bounds import best_wait_for, best_workers
from analysis.theory.comparison import gap, winners
from analysis.theory.complexities import LOWER_BOUNDS, Complexity, complexity, total_seconds
from analysis.theory.figures import AxisValues, StepBar
from scenarios.objective import CONSTANTS
from scenarios.show import number
from scenarios.theory.axes import AXES, Axis
from scenarios.theory.prediction import Prediction, advice, breakdowns, step_times
from scenarios.theory.winning import reigns

_LEAST_WIDTH = 110
_LARGE_FLEET = 2000
_LINE_VALUES = 61


def print_prediction(prediction: Prediction, axes: tuple[Axis, Axis]) -> None:
    """Print every table."""
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _LEAST_WIDTH)
    for line in _head(prediction):
        console.print(line, soft_wrap=True)
    console.print(_step_table(prediction))
    console.print(_complexity_table(prediction))
    for line in _worth_waiting(prediction):
        console.print(line, soft_wrap=True)
    console.print(_advice_table(prediction))
    for axis in axes:
        console.print(_winners_along(prediction, axis), soft_wrap=True)


def draw_prediction(prediction: Prediction, axes: tuple[Axis, Axis], directory: Path) -> list[Path]:
    """Draw every figure, as PNG and PDF.

    Returns:
        The files written.

    Raises:
        ConfigurationError: they can not be written.
    """
    name, setting = prediction.scenario.name, prediction.setting
    size = f"{name}: n = {setting.n_workers}{_orders(prediction)}"
    where = f"{size}, epsilon = {setting.objective.epsilon:g}"
    bars = [
        StepBar(method.label, time.seconds, time.at_most) for method, time in step_times(prediction)
    ]
    lower = total_seconds(complexity("lower-bound"), setting)
    along = Axis("epsilon", AXES["epsilon"], *AXES["epsilon"].span(setting))
    rows = (*prediction.comparable, LOWER_BOUNDS[0])
    lines = _lines(rows, prediction, along)
    found = _winner_map(prediction, axes)
    x, y = (_axis_values(prediction, axis, len(found.winner)) for axis in axes)
    save = figures.draw_and_save
    return [
        *save(figures.step_figure, directory / "step-seconds", bars, f"{name}: server steps"),
        *save(figures.term_figure, directory / "terms", breakdowns(prediction), lower, where),
        *save(
            figures.line_figure,
            directory / "seconds-vs-epsilon",
            rows,
            lines,
            _axis_values(prediction, along, _LINE_VALUES),
            size,
        ),
        *save(figures.winner_figure, directory / "winners", found, x, y, f"{where}: who wins"),
    ]


def _orders(prediction: Prediction) -> str:
    return ", all constants 1" if prediction.is_orders_only else ""


def _lines(
    rows: tuple[Complexity, ...], prediction: Prediction, axis: Axis
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    settings = [axis.kind.change(prediction.setting, v) for v in axis.values(_LINE_VALUES)]
    return np.array([[total_seconds(row, setting) for setting in settings] for row in rows])


def _winner_map(prediction: Prediction, axes: tuple[Axis, Axis]) -> figures.WinnerMap:
    x, y = axes
    count = 41 if prediction.setting.n_workers <= _LARGE_FLEET else 21
    return winners(
        prediction.comparable,
        lambda a, b: y.kind.change(x.kind.change(prediction.setting, a), b),
        x.values(count).tolist(),
        y.values(count).tolist(),
    )


def _axis_values(prediction: Prediction, axis: Axis, count: int) -> AxisValues:
    here = axis.kind.here(prediction.setting)
    return AxisValues(axis.kind.label, axis.values(count), axis.kind.is_log, here)


def _head(prediction: Prediction) -> Iterator[str]:
    setting, objective = prediction.setting, prediction.setting.objective
    seconds = setting.seconds_per_gradient
    yield (
        f"{prediction.scenario.name}: {setting.n_workers} workers, {number(seconds[0])} to "
        f"{number(seconds[-1])} s per gradient, kappa = {number(setting.kappa_seconds)} s per "
        "communication"
    )
    parts = [f"{name} = {number(getattr(objective, name))}" for name in CONSTANTS]
    known = sorted(set(prediction.known.values()))
    source = f"from {' and '.join(known)}" if known else "all taken as 1: orders only"
    yield f"epsilon = {number(objective.epsilon)}; {', '.join(parts)} ({source})"
    if objective.epsilon > objective.gradient_lipschitz**2 / max(
        objective.hessian_lipschitz, 1e-300
    ):
        yield "note: epsilon > L_g^2/L_h, where smooth Hessians do not help: no small epsilon"
    if not objective.hessian_lipschitz:
        yield "note: L_h = 0, and so the lower bound, which uses its scale, is 0"
    for note in prediction.notes:
        yield f"note: {note}"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("method")
    for column in columns:
        table.add_column(column, justify="left" if column == "parameters" else "right")
    return table


def _step_table(prediction: Prediction) -> Table:
    table = _table(
        "Predicted server steps of the scenario's methods",
        "seconds\na step", "at most", "first\nstep", "gradients\na step", "gradients\na second", "",
    )  # fmt: skip
    for method, time in step_times(prediction):
        at_most = "-" if math.isinf(time.at_most) else number(time.at_most)
        table.add_row(
            method.label,
            _seconds(time.seconds),
            at_most,
            _seconds(time.first_seconds),
            number(time.gradients),
            number(time.gradients / time.seconds),
            time.kind,
        )
    return table


def _complexity_table(prediction: Prediction) -> Table:
    table = _table(
        "Complexity: seconds to E|grad f| <= epsilon, up to universal constants",
        "com-\nputation", "commu-\nnication", "total", "largest\nterm", "of the\ntotal", "m*",
        "times the\nlower bound", "objectives",
    )  # fmt: skip
    setting = prediction.setting
    for parts in breakdowns(prediction):
        total, row = parts.seconds(), parts.row
        about = "" if row.has_all_constants or prediction.is_orders_only else "~"
        sign = ">=" if row.is_communication_at_least and setting.kappa_seconds else ""
        share = parts.dominant.seconds / total if 0 < total < math.inf else math.nan
        table.add_row(
            row.label,
            about + _seconds(parts.seconds("computation")),
            sign + about + _seconds(parts.seconds("communication")),
            sign + about + _seconds(total),
            parts.dominant.name,
            "-" if math.isnan(share) else f"{100 * share:.0f}%",
            f"{parts.workers}",
            "-" if about else _times(gap(row, setting)),
            "any" if row.is_heterogeneous else "the same",
        )
    for row in LOWER_BOUNDS[:1]:
        table.add_row(row.label, *_lower_bound_cells(row, prediction))
    table.caption = "m*: workers that count. objectives: of the workers, for which it holds."
    if not prediction.is_orders_only:
        table.caption += " ~: a constant is not known and taken as 1."
    table.caption_justify = "left"
    return table


def _lower_bound_cells(row: Complexity, prediction: Prediction) -> list[str]:
    from analysis.theory.complexities import breakdown

    parts = breakdown(row, prediction.setting)
    return [
        _seconds(parts.seconds("computation")),
        _seconds(parts.seconds("communication")),
        _seconds(parts.seconds()),
        parts.dominant.name,
        "",
        f"{parts.workers}",
        "1",
        "",
    ]


def _worth_waiting(prediction: Prediction) -> Iterator[str]:
    """m* of the batches that the scenario's methods have."""
    seconds = prediction.setting.seconds_per_gradient
    n_workers = len(seconds)
    for method, time in step_times(prediction):
        batch_size = method.arguments.get("batch_size")
        if batch_size is not None:
            best = best_workers(seconds, 1.0, float(batch_size))
            yield (
                f"{method.label}, batch_size = {batch_size}: {best.workers} of {n_workers} workers "
                f"are worth waiting for (bound {number(best.seconds)} s, step "
                f"{_seconds(time.seconds)} s)"
            )
    parts = prediction.setting.objective
    ratio = (parts.sigma / parts.epsilon) ** 2
    best = best_wait_for(seconds, 1.0, ratio)
    yield (
        f"Synchronous SGD would best wait for {best.workers} of {n_workers} workers "
        f"(wait_for, at sigma^2/epsilon^2 = {number(ratio)})"
    )


def _advice_table(prediction: Prediction) -> Table:
    table = _table(
        "Recommended parameters (\"recommended\" in a scenario file), every constant included",
        "parameters", "T, server\nsteps", "predicted\nseconds", "guarantee",
    )  # fmt: skip
    for item in advice(prediction):
        if item.obstacle:
            table.add_row(item.method.label, item.obstacle)
            continue
        keys = "\n".join(f"{key} = {number(value)}" for key, value in item.keys.items())
        table.add_row(
            item.method.label, keys, number(item.steps), _seconds(item.seconds),
            number(item.guarantee),
        )  # fmt: skip
    return table


def _winners_along(prediction: Prediction, axis: Axis) -> str:
    found = reigns(prediction.comparable, prediction.setting, axis)
    parts = [f"{reign.row.label} up to {number(reign.high)}" for reign in found[:-1]]
    parts.append(f"{found[-1].row.label} {'from there on' if parts else 'throughout'}")
    span = f"from {number(axis.low)} to {number(axis.high)}"
    return f"Fastest along {axis.kind.label}, {span}: {'; '.join(parts)}"


def _times(value: float) -> str:
    return "-" if math.isinf(value) else number(value)


def _seconds(value: float) -> str:
    return "never" if math.isinf(value) else number(value)
