"""A grid of replicas gives each what it would get alone, in one program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from execution_cases import Quadratic
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.coordinators import (
    Asynchronous,
    Buffered,
    Malenia,
    Rennala,
    Ringmaster,
    Synchronous,
)
from algorithms.hyperparameters import make_hyperparameters
from algorithms.updates import update_rule
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.distributions import scipy_distribution
from simulator.engine import simulate
from simulator.errors import ConfigurationError
from simulator.executors import executor
from simulator.executors.compiled_grid import Grid
from simulator.executors.compiled_kernels import programs
from simulator.network import AllReduce, NoNetwork, Star
from simulator.precision import precision
from simulator.schedule import Schedule

N = 4
COORDINATORS = {
    "asynchronous": lambda: Asynchronous(N),
    "ringmaster": lambda: Ringmaster(N, max_staleness=2),
    "buffered": lambda: Buffered(N, buffer_size=3),
    "synchronous": lambda: Synchronous(N, gradients_per_worker=2),
    "backup": lambda: Synchronous(N, wait_for=2),
    "rennala": lambda: Rennala(N, batch_size=6, initial_batch_size=9),
    "rennala-discard": lambda: Rennala(N, batch_size=5, stale="discard"),
    "malenia": lambda: Malenia(N, batch_size=6),
}
RANDOM = scipy_distribution("expon", {}, [1.0, 1.0, 2.0, 5.0])
NETWORKS = {
    "none": NoNetwork(),
    "star": Star(scipy_distribution("expon", {}, [0.3] * N), Constant([0.1, 0.2, 0.0, 0.4])),
    "allreduce": AllReduce(scipy_distribution("expon", {}, [0.5])),
}
RULE = update_rule("nigt")
CELLS = [
    make_hyperparameters(RULE, {"stepsize": stepsize, "momentum": momentum})
    for stepsize, momentum in [(0.05, 0.3), (0.2, 1.0), (0.01, 0.7)]
]


@pytest.fixture(scope="module")
def oracle() -> Quadratic:
    with precision("float64"):
        return Quadratic(N, dtype="float64")


def schedule_of(kind: str, network: str, seed: int, steps: int = 9) -> Schedule:
    budget = Budget(seconds=float(steps))
    return simulate(COORDINATORS[kind](), RANDOM, NETWORKS[network], budget, seed, verify=True)


def paths(grid: Grid, versions: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """Every replica's points, [its versions, dim]."""
    found: list[list[np.ndarray]] = [[] for _ in versions]
    for replica, snapshot in grid.snapshots(versions):
        assert snapshot.version == versions[replica][len(found[replica])]
        found[replica].append(snapshot.params)
    return [np.array(path) for path in found]


def alone(schedule: Schedule, oracle: Any, cell: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    execution = executor("sequential")(schedule, oracle, RULE, cell, seed)
    points = [s.params for s in execution.snapshots(range(schedule.n_steps + 1))]
    return np.array(points), execution.lengths


@settings(max_examples=12, deadline=None)
@given(
    kind=st.sampled_from(sorted(COORDINATORS)),
    network=st.sampled_from(sorted(NETWORKS)),
    seeds=st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True),
)
def test_each_replica_as_if_alone(kind: str, network: str, seeds: list[int], oracle: Any) -> None:
    """Seeds with a schedule each x hyperparameters, against the sequential executor."""
    if network == "allreduce" and not COORDINATORS[kind]().collective:
        network = "none"
    with precision("float64"):
        by_seed = {seed: schedule_of(kind, network, seed) for seed in seeds}
        replicas = [(seed, cell) for seed in seeds for cell in CELLS[:2]]
        schedules = [by_seed[seed] for seed, _ in replicas]
        grid = Grid(
            schedules, oracle, RULE, [cell for _, cell in replicas], [s for s, _ in replicas]
        )
        got = paths(grid, [range(schedule.n_steps + 1) for schedule in schedules])
        for number, (seed, cell) in enumerate(replicas):
            right, lengths = alone(by_seed[seed], oracle, cell, seed)
            np.testing.assert_allclose(got[number], right, rtol=1e-11, atol=1e-12)
            np.testing.assert_array_equal(grid.lengths[number], lengths)


@pytest.mark.parametrize("kind", ["asynchronous", "rennala"])
def test_in_little_memory_replicas_take_turns(kind: str, oracle: Any) -> None:
    schedule = schedule_of(kind, "none", 0)
    versions = [range(schedule.n_steps + 1)] * 5
    with precision("float64"):
        cells, seeds = [CELLS[0]] * 5, [0, 1, 2, 3, 4]
        together = paths(Grid([schedule] * 5, oracle, RULE, cells, seeds), versions)
        tight = Grid([schedule] * 5, oracle, RULE, cells, seeds, memory_bytes=12_000)
        order = []
        for replica, (version, params) in tight.snapshots(versions):
            order.append(replica)
            np.testing.assert_allclose(params, together[replica][version], rtol=1e-12, atol=1e-13)
    assert len(order) == sum(map(len, versions))
    last_of_first = len(order) - 1 - order[::-1].index(0)
    assert order.index(4) > last_of_first  # it waited for its turn


def test_too_little_memory_is_an_error_with_what_is_needed(oracle: Any) -> None:
    schedule = schedule_of("asynchronous", "none", 0)
    with precision("float64"):
        grid = Grid([schedule], oracle, RULE, CELLS[:1], [0], memory_bytes=100)
        with pytest.raises(ConfigurationError, match=r"memory_bytes = 100: expected at least \d+"):
            list(grid.snapshots([[schedule.n_steps]]))


@pytest.mark.parametrize("kind", ["asynchronous", "rennala", "malenia"])
def test_one_program_for_every_cell_and_seed(kind: str) -> None:
    oracle = Quadratic(N)
    schedule = simulate(
        COORDINATORS[kind](), Constant([1.0, 1.0, 2.0, 5.0]), NoNetwork(), Budget(steps=9), 0
    )
    for seeds in ([0, 1, 2], [3, 4, 5]):
        for cells in (CELLS, CELLS[::-1]):
            list(Grid([schedule] * 3, oracle, RULE, cells, seeds).snapshots([[9]] * 3))
    assert len(programs(oracle, RULE)) == 1
    traces = oracle.traces
    list(Grid([schedule] * 3, oracle, RULE, [CELLS[1]] * 3, [7, 8, 9]).snapshots([[3, 9]] * 3))
    assert oracle.traces == traces


def test_the_same_bytes_run_after_run_whoever_runs_beside(oracle: Any) -> None:
    schedule = schedule_of("asynchronous", "star", 1)
    versions = [[schedule.n_steps]]
    with precision("float64"):
        runs = [
            paths(Grid([schedule] * 3, oracle, RULE, CELLS, [0, 1, 2]), versions * 3)
            for _ in range(2)
        ]
        assert [path.tobytes() for path in runs[0]] == [path.tobytes() for path in runs[1]]
        others = Grid([schedule] * 3, oracle, RULE, [CELLS[0], CELLS[2], CELLS[2]], [0, 7, 8])
        mine = paths(others, versions * 3)[0]
        np.testing.assert_allclose(mine, runs[0][0], rtol=1e-13)


def test_versions_out_of_order_are_refused(oracle: Any) -> None:
    schedule = schedule_of("rennala", "none", 0)
    grid = Grid([schedule], oracle, RULE, CELLS[:1], [0])
    with pytest.raises(ValueError, match="expected ascending numbers in"):
        grid.snapshots([[2, 1]])
    with pytest.raises(ValueError, match="expected one of each for every replica"):
        Grid([schedule], oracle, RULE, CELLS, [0])
    other = simulate(Asynchronous(2), Constant([1.0, 2.0]), NoNetwork(), Budget(steps=2), 0)
    with pytest.raises(ValueError, match="a schedule for 2 workers, an oracle for 4"):
        Grid([other], oracle, RULE, CELLS[:1], [0])


def test_random_delays_in_turns_are_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each seed has a schedule of its own, longer or shorter, and each chunk one or two of them."""
    oracle = Quadratic(N)
    seeds = [0, 0, 1, 1, 2]
    by_seed = {seed: schedule_of("asynchronous", "star", seed, 20 + seed) for seed in seeds}
    schedules = [by_seed[seed] for seed in seeds]
    versions = [[schedule.n_steps] for schedule in schedules]
    cells = [CELLS[0], CELLS[1], CELLS[0], CELLS[1], CELLS[2]]
    whole = paths(Grid(schedules, oracle, RULE, cells, seeds), versions)
    known = set(programs(oracle, RULE))
    monkeypatch.setattr(Grid, "_most_replicas", lambda self: 2)
    in_turns = paths(Grid(schedules, oracle, RULE, cells, seeds), versions)
    assert len(set(programs(oracle, RULE)) - known) == 1
    for one, other in zip(in_turns, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
