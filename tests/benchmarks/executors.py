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
from tests.benchmarks.work import (
    EXECUTORS,
    doing,
    gradients_per_step,
    heap_loop,
    raw_gradients,
)

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
    batch = 64 if own else gradients_per_step(problem, method)
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
    """Gradients/s on one logarithmic axis, a panel for each problem and method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6.5), layout="constrained")
    panels = figure.subplots(len(TABLE), len(TABLE_METHODS), squeeze=False, sharex=True)
    for row_of_panels, problem in zip(panels, TABLE, strict=True):
        for panel, method in zip(row_of_panels, TABLE_METHODS, strict=True):
            mine = [r for r in table if (r["problem"], r["method"]) == (problem, method)]
            for place, row in enumerate(mine):
                rate, is_ours = row["gradients_per_second"], row["executor"] in EXECUTORS
                panel.plot(rate, place, "o" if is_ours else "D", color="k" if is_ours else "0.5")
                panel.annotate(
                    f"{rate:,}", (rate, place), (6, -3), textcoords="offset points", fontsize=7
                )
            panel.set_yticks(range(len(mine)), [r["executor"].split(",")[0] for r in mine])
            panel.set_ylim(len(mine) - 0.5, -0.5)
            panel.set_xscale("log")
            panel.set_xlim(1e3, 1e9)
            panel.set_title(f"{problem}, {method}", fontsize=9)
            panel.tick_params(labelsize=7)
            panel.grid(axis="y", linewidth=0.3)
    for panel in panels[-1]:
        panel.set_xlabel("gradients/s", fontsize=8)
    figure.suptitle(
        "Gradients per second, simulation included (grey diamonds: bare baselines)", fontsize=10
    )
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
    problem = "CartPole, longer"
    for method in ("rennala", "malenia", "synchronous"):
        batch = gradients_per_step(problem, method)
        found = rates(
            {
                "bare": raw_gradients(problem, batch, own_points=False),
                "ours": doing(problem, method, "compiled"),
            },
            5,
        )
        what = f"CartPole 2 x 64, {method}, compiled against the raw vmapped gradient"
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
    """Compare what is held to something, and write the table down."""
    lines = held()
    write(rows())
    return lines
