"""Schedule generation against bare SimPy timeouts."""

from __future__ import annotations

import simpy

from algorithms.coordinators import Asynchronous
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.engine import simulate
from simulator.network import NoNetwork
from tests.benchmarks.timing import Line, against, rates

ROUNDS = 5


def seconds_of(n_workers: int) -> list[float]:
    """Constant, all different, so that no two arrivals coincide for long."""
    return [1.0 + 0.9137 * worker / n_workers for worker in range(n_workers)]


def bare_timeouts(n_workers: int, many: int) -> int:
    """n SimPy processes that do nothing but wait, until ``many`` waits are over."""
    env = simpy.Environment()
    done = env.event()
    count = 0

    def process(seconds: float):
        nonlocal count
        while True:
            yield env.timeout(seconds)
            count += 1
            if count == many:
                done.succeed()

    for seconds in seconds_of(n_workers):
        env.process(process(seconds))
    env.run(until=done)
    return many


def arrivals(n_workers: int, many: int) -> int:
    """The schedule of Asynchronous SGD with that many arrivals."""
    compute = Constant(seconds_of(n_workers))
    simulate(Asynchronous(n_workers), compute, NoNetwork(), Budget(steps=many), 0)
    return many


def run() -> list[Line]:
    """Rate at n = 100, and how the cost of an arrival grows with n."""
    found = rates(
        {
            "bare": lambda: bare_timeouts(100, 200_000),
            "ours": lambda: arrivals(100, 200_000),
        },
        ROUNDS,
    )
    lines = [
        against(
            "schedule of Asynchronous SGD, n = 100, against bare SimPy timeouts",
            "arrivals/s",
            found,
            "ours",
            "bare",
            ">= 0.33",
        )
    ]
    found = rates(
        {
            "n=10": lambda: arrivals(10, 200_000),
            "n=100000": lambda: arrivals(100_000, 1_000_000),
            "bare n=10": lambda: bare_timeouts(10, 200_000),
            "bare n=100000": lambda: bare_timeouts(100_000, 1_000_000),
        },
        3,
    )
    lines.append(
        against(
            "the same, n = 100,000 against n = 10 (0.40 is 2.5 x the cost)",
            "arrivals/s",
            found,
            "n=100000",
            "n=10",
            ">= 0.40",
        )
    )
    lines.append(
        against(
            "for comparison: bare SimPy timeouts, n = 100,000 against n = 10",
            "timeouts/s",
            found,
            "bare n=100000",
            "bare n=10",
            "",
        )
    )
    return lines
