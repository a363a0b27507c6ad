"""The work that executors are timed on: problems, methods, and who does it.

Run as ``python -m tests.benchmarks.work PROBLEM METHOD EXECUTOR`` it does one of them in a process
of its own and prints its peak memory and the seconds that compiling took, as JSON.
"""

from __future__ import annotations

import heapq
import json
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algorithms.coordinators import Asynchronous, Malenia, Rennala, Synchronous
from algorithms.hyperparameters import make_hyperparameters
from algorithms.updates import update_rule
from scenarios.problems.registry import build_problem
from scenarios.problems.specs import EnvironmentSpec, QuadraticSpec
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.engine import simulate
from simulator.executors import executor
from simulator.executors.compiled_grid import Grid
from simulator.network import NoNetwork
from simulator.schedule import Schedule

NEVER_ENDS = {"x_threshold": 1e9, "theta_threshold_radians": 1e9}
RULE = update_rule("sgd")


@dataclass(frozen=True)
class Work:
    """A problem on a fleet.

    Attributes:
        spec: of the problem.
        n_workers: worker i takes sqrt(i) seconds a gradient.
        gradients: to use.
        batch_size: of Rennala, and of Malenia if it is twice as many as there are workers.
        stepsize: small, so that nothing diverges.
    """

    spec: Any
    n_workers: int
    gradients: int
    batch_size: int
    stepsize: float

    @property
    def malenia_batch_size(self) -> int:
        """Every worker needs at least one gradient in a step."""
        return max(self.batch_size, 2 * self.n_workers)

    @property
    def seconds(self) -> list[float]:
        """Of a gradient, by worker."""
        return [float(i + 1) ** 0.5 for i in range(self.n_workers)]


_CARTPOLE = EnvironmentSpec(
    environment="phys2d/CartPole-v1",
    horizon=200,
    discount=0.99,
    environment_parameters=NEVER_ENDS,
)
PROBLEMS = {
    "quadratic": Work(QuadraticSpec("tridiagonal", 100, noise=0.01), 100, 20_000, 64, 0.01),
    "tabular size": Work(QuadraticSpec("tridiagonal", 40, noise=0.01), 10, 10_000, 64, 0.01),
    "CartPole": Work(_CARTPOLE, 10, 640, 64, 1e-6),
    "CartPole, longer": Work(_CARTPOLE, 10, 2_560, 64, 1e-6),
    "CartPole, n = 100": Work(_CARTPOLE, 100, 1_920, 64, 1e-6),
}
METHODS: dict[str, Callable[[Work], Any]] = {
    "asynchronous": lambda work: Asynchronous(work.n_workers),
    "rennala": lambda work: Rennala(work.n_workers, batch_size=work.batch_size),
    "malenia": lambda work: Malenia(work.n_workers, batch_size=work.malenia_batch_size),
    "synchronous": lambda work: Synchronous(work.n_workers, -(-work.batch_size // work.n_workers)),
}
EXECUTORS = ("sequential", "batched", "compiled", "compiled x 10", "compiled x 50")


@cache
def oracle_of(problem: str) -> Any:
    """Built once, so that compiled functions are shared."""
    work = PROBLEMS[problem]
    return build_problem(work.spec, work.n_workers).oracle


def simulated(problem: str, method: str) -> Schedule:
    """A schedule that uses so many gradients."""
    work = PROBLEMS[problem]
    budget = Budget(gradients=work.gradients)
    return simulate(METHODS[method](work), Constant(work.seconds), NoNetwork(), budget, 0)


def gradients_per_step(problem: str, method: str) -> int:
    """Of a typical step."""
    schedule = simulated(problem, method)
    return round(schedule.counts()["used"] / max(1, schedule.n_steps))


def doing(problem: str, method: str, name: str) -> Callable[[], int]:
    """Simulate and execute, once; returns how many gradients that took."""
    work, oracle = PROBLEMS[problem], oracle_of(problem)
    hyperparameters = make_hyperparameters(RULE, {"stepsize": work.stepsize})

    def alone() -> int:
        schedule = simulated(problem, method)
        execution = executor(name)(schedule, oracle, RULE, hyperparameters, 0)
        for _ in execution.snapshots([schedule.n_steps]):
            pass
        return execution.gradients_computed

    def together() -> int:
        many = int(name.split(" x ")[1])
        schedule = simulated(problem, method)
        grid = Grid([schedule] * many, oracle, RULE, [hyperparameters] * many, list(range(many)))
        for _ in grid.snapshots([[schedule.n_steps]] * many):
            pass
        return many * schedule.counts()["used"]

    return together if " x " in name else alone


def heap_loop(problem: str, method: str) -> Callable[[], int]:
    """The same work as one would write it for the purpose: a heap and NumPy. Quadratics only."""
    work = PROBLEMS[problem]
    loop = {"asynchronous": _heap_asynchronous, "rennala": _heap_batch, "malenia": _heap_batch}
    return lambda: loop[method](work, method)


def _gradient(x: Any, b: Any, noise: float, rng: np.random.Generator) -> Any:
    """Of the tridiagonal quadratic, with noise."""
    gradient = 0.5 * x - b
    gradient[1:] -= 0.25 * x[:-1]
    gradient[:-1] -= 0.25 * x[1:]
    return gradient + np.float32(noise) * rng.standard_normal(len(x), np.float32)


def _start(work: Work) -> tuple[Any, Any, list[tuple[float, int]]]:
    dim = work.spec.dimension
    b = np.zeros(dim, np.float32)
    b[0] = -0.25
    x = np.asarray(build_problem(work.spec, work.n_workers).oracle.initial_point(0))
    heap = [(seconds, worker) for worker, seconds in enumerate(work.seconds)]
    heapq.heapify(heap)
    return x, b, heap


def _heap_asynchronous(work: Work, method: str) -> int:
    del method
    x, b, heap = _start(work)
    seconds, rng = work.seconds, np.random.default_rng(0)
    points = [x] * work.n_workers
    stepsize = np.float32(work.stepsize)
    for _ in range(work.gradients):
        now, worker = heapq.heappop(heap)
        x = x - stepsize * _gradient(points[worker], b, work.spec.noise, rng)
        points[worker] = x
        heapq.heappush(heap, (now + seconds[worker], worker))
    return work.gradients


def _heap_batch(work: Work, method: str) -> int:
    x, b, heap = _start(work)
    seconds, rng, used = work.seconds, np.random.default_rng(0), 0
    n_workers = work.n_workers
    while True:
        counts, inverse, missing, many = [0] * n_workers, 0.0, n_workers, 0
        total = np.zeros((n_workers, len(x)), np.float32)
        while True:
            now, worker = heapq.heappop(heap)
            total[worker] += _gradient(x, b, work.spec.noise, rng)
            many += 1
            inverse += 1 / (counts[worker] + 1) - (1 / counts[worker] if counts[worker] else 0.0)
            missing -= counts[worker] == 0
            counts[worker] += 1
            heapq.heappush(heap, (now + seconds[worker], worker))
            if method == "rennala" and many == work.batch_size:
                weights = np.full(n_workers, 1 / many, np.float32)
                break
            needed = work.malenia_batch_size * inverse
            if method == "malenia" and not missing and n_workers**2 >= needed:
                weights = np.array([1 / (n_workers * count) for count in counts], np.float32)
                break
        if used + many > work.gradients:
            return used
        used += many
        x = x - np.float32(work.stepsize) * (weights @ total)
        heap = [(now + seconds[worker], worker) for worker in range(n_workers)]
        heapq.heapify(heap)


def raw_gradients(problem: str, batch: int, own_points: bool) -> Callable[[], int]:
    """The vmapped gradient alone, at one point or each at its own."""
    oracle = oracle_of(problem)
    point = oracle.initial_point(0)
    points = jnp.tile(point, (batch, 1)) if own_points else point
    workers = jnp.arange(batch, dtype=jnp.int32) % oracle.n_workers
    keys = jax.random.split(jax.random.key(0), batch)
    gradients = jax.jit(jax.vmap(oracle.sample, (0 if own_points else None, 0, 0)))
    calls = max(1, PROBLEMS[problem].gradients // batch)

    def run() -> int:
        for _ in range(calls):
            jax.block_until_ready(gradients(points, workers, keys))
        return calls * batch

    return run


def peak_bytes() -> int:
    """The most memory this process ever had resident.

    From /proc where there is one: getrusage counts what the parent had, too.
    """
    status = Path("/proc/self/status")
    if status.exists():
        [line] = [row for row in status.read_text().splitlines() if row.startswith("VmHWM:")]
        return 1024 * int(line.split()[1])
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Do one of them, twice, and print what it took."""
    problem, method, name = sys.argv[1:]
    before = peak_bytes()
    run = doing(problem, method, name)
    times = []
    for _ in range(2):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    print(
        json.dumps(
            {
                "compile_seconds": max(0.0, times[0] - times[1]),
                "peak_bytes": peak_bytes(),
                "imports_bytes": before,
            }
        )
    )


if __name__ == "__main__":
    main()
