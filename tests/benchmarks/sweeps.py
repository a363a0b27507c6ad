"""A sweep of 1,000 small runs against the bare compute of its runs, on as many processes.

Bare: the same processes' worth of plain loops over ``Trial``, an even share of the same runs each,
keeping nothing. Both include starting Python, importing JAX and compiling, and alternate.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import tomli_w

from scenarios.backends.backend import single_threaded
from scenarios.backends.local import LocalBackend, environment
from scenarios.sweeps.sweep import run_sweep
from scenarios.sweeps.sweep_file import load_sweep
from tests.benchmarks.timing import Line, against

N_RUNS = 1000
JOBS = 2
ROUNDS = 3
SWEEP = {
    "scenario": "quadratic",
    "methods": ["rennala-sgd", "asynchronous-sgd"],
    "seeds": N_RUNS // 4,
    "set": {"budget": {"seconds": 500}, "fleet": {"workers": 20}},
    "axes": {"fleet.compute.profile.base_seconds": [1.0, 2.0]},
}
BARE = """
import sys
from scenarios.compose import build_problem
from scenarios.sweeps.sweep_file import load_sweep
from scenarios.trial import Trial
from scenarios.workshop import Workshop
from simulator.precision import precision

path, share = sys.argv[1], int(sys.argv[2])
for point in load_sweep(path).points:
    scenario = point.scenario
    with precision(scenario.precision):
        workshop = Workshop(scenario, build_problem(scenario))
        method = scenario.methods[share]
        for seed in scenario.seeds:
            trial = Trial(workshop, method, seed)
            trial.run(lambda phase, fraction: None)
            trial.curve()
"""


class Cost(NamedTuple):
    """Seconds on the clock, and of all processes' processors together."""

    wall: float
    processor: float


@contextmanager
def measured(into: list[Cost]) -> Iterator[None]:
    """Add the cost of a block, child processes included that end in it."""
    wall, processor = time.perf_counter(), _processor_seconds()
    yield
    into.append(Cost(time.perf_counter() - wall, _processor_seconds() - processor))


def _processor_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def bare(path: Path) -> None:
    """Two processes, a method each."""
    command = [sys.executable, "-P", "-c", BARE, str(path)]
    both = [
        subprocess.Popen([*command, str(share)], env=environment(single_threaded()))
        for share in range(JOBS)
    ]
    codes = [process.wait() for process in both]
    if any(codes):
        raise RuntimeError("the bare computation failed")


def swept(path: Path, out: Path) -> None:
    """The sweep."""
    backend = LocalBackend(JOBS)
    tally = run_sweep(load_sweep(path), out, backend).tally
    backend.close()
    if tally.done != N_RUNS:
        raise RuntimeError(f"{tally.done} of {N_RUNS} runs were done")


def run() -> list[Line]:
    """Runs per second; by the clock, and by the processors, which tells more on a busy machine."""
    costs: dict[str, list[Cost]] = {"bare": [], "swept": []}
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "sweep.toml"
        path.write_text(tomli_w.dumps(SWEEP), encoding="utf-8")
        for number in range(ROUNDS):
            with measured(costs["bare"]):
                bare(path)
            with measured(costs["swept"]):
                swept(path, Path(name) / f"store-{number}")
    lines = []
    for field in Cost._fields:
        found = {which: [N_RUNS / getattr(c, field) for c in costs[which]] for which in costs}
        what = f"{N_RUNS} runs of a quadratic swept into a store, {JOBS} processes, {field} time"
        lines.append(against(what, "runs/s", found, "swept", "bare", ">= 0.91"))
    return lines
