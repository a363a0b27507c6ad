"""A large fleet: 100,000 workers, 1,000 parameters, 10^6 arrivals; and time against arrivals.

Run as ``python -m tests.benchmarks.large WORKERS DIMENSION ARRIVALS`` it does one of them in a
process of its own and prints seconds and peak memory, as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from time import perf_counter

import numpy as np

from algorithms.coordinators import Asynchronous
from algorithms.hyperparameters import make_hyperparameters
from algorithms.updates import update_rule
from scenarios.problems.registry import build_problem
from scenarios.problems.specs import QuadraticSpec
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.engine import simulate
from simulator.executors import executor
from simulator.network import NoNetwork
from tests.benchmarks.timing import Line
from tests.benchmarks.work import peak_bytes


def once(n_workers: int, dimension: int, arrivals: int) -> float:
    """Seconds to simulate and execute Asynchronous SGD, compiling included."""
    problem = build_problem(QuadraticSpec("tridiagonal", dimension, noise=0.01), n_workers)
    rule = update_rule("sgd")
    hyperparameters = make_hyperparameters(rule, {"stepsize": 1e-5})
    compute = Constant(np.random.default_rng(0).uniform(1.0, 3.0, n_workers))
    start = perf_counter()
    schedule = simulate(
        Asynchronous(n_workers), compute, NoNetwork(), Budget(gradients=arrivals), 0
    )
    execution = executor("compiled")(schedule, problem.oracle, rule, hyperparameters, 0)
    for _ in execution.snapshots([arrivals // 2, arrivals]):
        pass
    return perf_counter() - start


def alone(n_workers: int, dimension: int, arrivals: int) -> dict[str, float]:
    """The same in a process of its own."""
    sizes = map(str, (n_workers, dimension, arrivals))
    command = [sys.executable, "-m", "tests.benchmarks.large", *sizes]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run() -> list[Line]:
    """Arrivals/s of the large one; and of four times the arrivals against one."""
    large = alone(100_000, 1_000, 1_000_000)
    gib = large["peak_bytes"] / 2**30
    few, many = (alone(1_000, 1_000, arrivals)["seconds"] for arrivals in (100_000, 400_000))
    return [
        Line(
            f"10^6 arrivals, n = 100,000, d = 1,000: {large['seconds']:.0f} s, {gib:.1f} GiB",
            "arrivals/s",
            1e6 / large["seconds"],
            wanted="<= 8 GiB",
        ),
        Line(
            "400,000 arrivals against 100,000, n = 1,000, d = 1,000, compiling included",
            "arrivals/s",
            4e5 / many,
            1e5 / few,
            4 * few / many,
            ">= 1: linear",
        ),
    ]


if __name__ == "__main__":
    seconds = once(*map(int, sys.argv[1:]))
    print(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes()}))
