"""Every executor on every kind of work, next to what bare code does; written down and drawn.

Writes ``benchmarks-output/executors.csv`` and ``.png``.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.timing import Line, against, rates
from tests.benchmarks.work import EXECUTORS, batch_of, doing, heap_loop, raw_gradients

OUT = Path("benchmarks-output")
TABLE_METHODS = ("asynchronous", "rennala", "malenia")
TABLE = ("quadratic", "tabular size", "CartPole")
ROUNDS = 2


def measured(problem: str, method: str) -> dict[str, list[float]]:
    """Gradients/s of everyone, in the same rounds."""
    runs = {name: doing(problem, method, name) for name in EXECUTORS if name != "compiled x 10"}
    if "CartPole" not in problem:
        runs["NumPy heap loop"] = heap_loop(problem, method)
    own = method == "asynchronous"
    batch = 64 if own else batch_of(problem, method)
    runs[f"raw vmapped gradient, {batch} at a time"] = raw_gradients(problem, batch, own)
    return rates(runs, ROUNDS)


def alone(problem: str, method: str, name: str) -> dict[str, float]:
    """What one of them takes in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.work", problem, method, name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def rows() -> list[dict[str, Any]]:
    """The table."""
    table = []
    for problem in TABLE:
        for method in TABLE_METHODS:
            for name, found in measured(problem, method).items():
                row = {"problem": problem, "method": method, "executor": name}
                row["gradients_per_second"] = round(median(found))
                if name in EXECUTORS:
                    cost = alone(problem, method, name)
                    row["compile_seconds"] = round(cost["compile_seconds"], 2)
                    row["peak_mib"] = round(cost["peak_bytes"] / 2**20)
                    row["of_it_imports_mib"] = round(cost["imports_bytes"] / 2**20)
                table.append(row)
    return table


def write(table: list[dict[str, Any]]) -> None:
    """As CSV and as a picture."""
    OUT.mkdir(exist_ok=True)
    with (OUT / "executors.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    draw(table, OUT / "executors.png")


def draw(table: list[dict[str, Any]], path: Path) -> None:
    """Bars of gradients/s, a panel for each problem and method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    panels = figure.subplots(len(TABLE), len(TABLE_METHODS), squeeze=False)
    for row_of_panels, problem in zip(panels, TABLE, strict=True):
        for panel, method in zip(row_of_panels, TABLE_METHODS, strict=True):
            mine = [r for r in table if (r["problem"], r["method"]) == (problem, method)]
            values = [r["gradients_per_second"] for r in mine]
            is_ours = [r["executor"] in EXECUTORS for r in mine]
            colours = ["black" if ours else "0.7" for ours in is_ours]
            panel.barh([r["executor"].split(",")[0] for r in mine], values, color=colours)
            panel.set_xscale("log")
            panel.set_xlabel("gradients/s")
            panel.set_title(f"{problem}, {method}", fontsize=9)
            panel.tick_params(labelsize=7)
            panel.invert_yaxis()
    figure.suptitle("Gradients per second, simulation included (grey: bare baselines)")
    figure.savefig(path, dpi=150)


def held() -> list[Line]:
    """The ratios that executors are held to."""
    lines = []
    work = {"bare": heap_loop("quadratic", "asynchronous")}
    for name in ("sequential", "compiled", "compiled x 50"):
        work[name] = doing("quadratic", "asynchronous", name)
    found = rates(work, 5)
    what = "quadratic d = 100, n = 100, asynchronous:"
    unit = "gradients/s"
    for name, bare, bound in (
        ("compiled", "bare", ">= 1.5"),
        ("compiled x 50", "bare", ">= 6"),
        ("compiled", "sequential", ">= 25"),
    ):
        told = "a NumPy heap loop" if bare == "bare" else bare
        lines.append(against(f"{what} {name} against {told}", unit, found, name, bare, bound))
    for method in ("rennala", "malenia", "synchronous"):
        batch = batch_of("CartPole, long", method)
        found = rates(
            {
                "bare": raw_gradients("CartPole, long", batch, own_points=False),
                "ours": doing("CartPole, long", method, "compiled"),
            },
            5,
        )
        what = f"CartPole 2 x 64, {method}, compiled against {batch} raw vmapped gradients"
        lines.append(against(what, unit, found, "ours", "bare", ">= 0.90"))
    found = rates(
        {
            "bare": raw_gradients("CartPole, n = 100", 64, own_points=True),
            "ours": doing("CartPole, n = 100", "asynchronous", "compiled x 10"),
        },
        3,
    )
    what = "CartPole 2 x 64, asynchronous n = 100, 10 replicas, against 64 raw gradients"
    lines.append(against(f"{what} at points of their own", unit, found, "ours", "bare", ">= 0.75"))
    return lines


def run() -> list[Line]:
    """Write the table down, and compare what is held to something."""
    write(rows())
    return held()
