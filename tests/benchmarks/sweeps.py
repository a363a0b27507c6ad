"""A sweep of 1,000 small runs against the bare compute of its runs, on as many processes.

Bare: the same processes' worth of plain loops over ``Trial``, an even share of the same runs each,
keeping nothing. Both include starting Python, importing JAX and compiling, and alternate.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tomli_w

from scenarios.backends.backend import single_threaded
from scenarios.backends.local import LocalBackend, environment
from scenarios.sweeps.sweep import run_sweep
from scenarios.sweeps.sweep_file import load_sweep
from tests.benchmarks.timing import Line

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


def bare(path: Path) -> float:
    """Seconds of two processes, a method each."""
    started = time.perf_counter()
    command = [sys.executable, "-P", "-c", BARE, str(path)]
    both = [
        subprocess.Popen([*command, str(share)], env=environment(single_threaded()))
        for share in range(JOBS)
    ]
    if any(process.wait() for process in both):
        raise RuntimeError("the bare computation failed")
    return time.perf_counter() - started


def swept(path: Path, out: Path) -> float:
    """Seconds of the sweep."""
    started = time.perf_counter()
    backend = LocalBackend(JOBS)
    tally = run_sweep(load_sweep(path), out, backend).tally
    backend.close()
    if tally.done != N_RUNS:
        raise RuntimeError(f"{tally.done} of {N_RUNS} runs were done")
    return time.perf_counter() - started


def run() -> list[Line]:
    """Runs per second; the best of the rounds of each."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "sweep.toml"
        path.write_text(tomli_w.dumps(SWEEP), encoding="utf-8")
        found: dict[str, list[float]] = {"bare": [], "swept": []}
        for number in range(ROUNDS):
            found["bare"].append(bare(path))
            found["swept"].append(swept(path, Path(name) / f"store-{number}"))
    rate, baseline = (N_RUNS / min(found[which]) for which in ("swept", "bare"))
    what = f"{N_RUNS} runs of a quadratic, {JOBS} processes, swept into a store"
    return [Line(what, rate, baseline, "runs/s", rate / baseline, ">= 0.91")]
