"""The compiled executor: any schedule, any network, many replicas, one program."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from execution_cases import HostQuadratic, Quadratic
from hypothesis import given, settings
from hypothesis import strategies as st
from test_executors import schedules

from algorithms.coordinators import Asynchronous, Buffered, Malenia, Rennala, Synchronous
from algorithms.hyperparameters import make_hyperparameters
from algorithms.updates import update_rule
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.distributions import scipy_distribution
from simulator.engine import simulate
from simulator.errors import ConfigurationError
from simulator.executors import executor
from simulator.executors.batched import BatchedHost
from simulator.executors.compiled_grid import Grid, Replica
from simulator.executors.compiled_kernels import programs
from simulator.network import AllReduce, Network, NoNetwork, Star
from simulator.precision import precision
from simulator.schedule import Schedule

N = 4
N_STEPS = 8
COORDINATORS = {
    "asynchronous": lambda: Asynchronous(N),
    "buffered": lambda: Buffered(N, buffer_size=3),
    "synchronous": lambda: Synchronous(N, gradients_per_worker=2, wait_for=3),
    "rennala": lambda: Rennala(N, batch_size=6, initial_batch_size=9),
    "malenia": lambda: Malenia(N, batch_size=6, stale="discard"),
}
LINK = scipy_distribution("gamma", {"a": 2.0}, [0.1, 0.2, 0.3, 0.4])
NETWORKS: dict[str, Network] = {
    "none": NoNetwork(),
    "star": Star(LINK, LINK),
    "allreduce": AllReduce(Constant([0.25])),
}
RULE = update_rule("nigt")


@pytest.fixture(scope="module")
def oracle() -> Quadratic:
    with precision("float64"):
        return Quadratic(N, dtype="float64")


def simulated(kind: str, network: str, seed: int, n_steps: int = N_STEPS) -> Schedule:
    """Random delays, checked against the rules of the simulation."""
    compute = scipy_distribution("expon", {}, [1.0, 1.5, 2.0, 6.0])
    budget = Budget(steps=n_steps)
    return simulate(COORDINATORS[kind](), compute, NETWORKS[network], budget, seed, verify=True)


def values(stepsize: float = 0.05, momentum: float = 0.3) -> Any:
    return make_hyperparameters(RULE, {"stepsize": stepsize, "momentum": momentum})


def curve(name: str, schedule: Schedule, oracle: Any, seed: int, hyperparameters: Any) -> Any:
    execution = executor(name)(schedule, oracle, RULE, hyperparameters, seed)
    return np.array([s.params for s in execution.snapshots(range(schedule.n_steps + 1))])


def curves(replicas: Sequence[Replica], oracle: Any, **options: Any) -> list[np.ndarray]:
    found: list[list[np.ndarray]] = [[] for _ in replicas]
    grid = Grid(replicas, oracle, RULE, **options)
    for index, snapshot in grid.snapshots():
        assert snapshot.version == replicas[index].versions[len(found[index])]
        found[index].append(snapshot.params)
    used = [int((replica.schedule.step >= 0).sum()) for replica in replicas]
    assert grid.gradients_computed.tolist() == used
    return [np.array(points) for points in found]


def seeds_by_cells(kind: str, network: str, n_seeds: int) -> list[Replica]:
    """Each seed with a schedule of its own, and each schedule with two stepsizes."""
    replicas = []
    for seed in range(n_seeds):
        schedule = simulated(kind, network, seed, N_STEPS + seed)
        versions = range(schedule.n_steps + 1)
        replicas += [Replica(schedule, values(size), seed, versions) for size in (0.05, 0.02)]
    return replicas


# -- one replica ----------------------------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(schedule=schedules())
def test_any_schedule(schedule: Schedule, oracle: Quadratic) -> None:
    with precision("float64"):
        got, right = (
            curve(name, schedule, oracle, 3, values()) for name in ("compiled", "sequential")
        )
    np.testing.assert_allclose(got, right, rtol=1e-12, atol=1e-13)


@settings(max_examples=6, deadline=None)
@given(
    kind=st.sampled_from(sorted(COORDINATORS)),
    network=st.sampled_from(sorted(NETWORKS)),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_network_and_delays(kind: str, network: str, seed: int, oracle: Quadratic) -> None:
    if network == "allreduce" and not COORDINATORS[kind]().collective:
        network = "none"
    schedule = simulated(kind, network, seed)
    with precision("float64"):
        sequential, batched, compiled = (
            curve(name, schedule, oracle, seed, values())
            for name in ("sequential", "batched", "compiled")
        )
    np.testing.assert_allclose(compiled, sequential, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(compiled, batched, rtol=1e-12, atol=1e-13)


def test_a_host_oracle_is_batched() -> None:
    schedule = simulated("rennala", "none", 0)
    execution = executor("compiled")(schedule, HostQuadratic(N), RULE, values(), 0)
    assert isinstance(execution, BatchedHost)


# -- many replicas --------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "network"), [("asynchronous", "star"), ("malenia", "none")])
def test_replicas_are_what_each_is_alone(kind: str, network: str, oracle: Quadratic) -> None:
    replicas = seeds_by_cells(kind, network, 3)
    with precision("float64"):
        together = curves(replicas, oracle)
        alone = [
            curve("sequential", r.schedule, oracle, r.seed, r.hyperparameters) for r in replicas
        ]
    for got, right in zip(together, alone, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-12, atol=1e-13)


def test_neighbours_change_nothing(oracle: Quadratic) -> None:
    replicas = seeds_by_cells("asynchronous", "none", 2)
    with precision("float64"):
        whole, pair = curves(replicas, oracle), curves(replicas[2:], oracle)
    for got, right in zip(pair, whole[2:], strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-12)


def test_as_many_replicas_at_a_time_as_memory_allows(oracle: Quadratic) -> None:
    schedule = simulated("asynchronous", "none", 0)
    replicas = [Replica(schedule, values(), seed, range(N_STEPS + 1)) for seed in range(3)]
    with precision("float64"):
        with pytest.raises(ConfigurationError, match="memory_bytes = 9: expected at le") as caught:
            curves(replicas, oracle, memory_bytes=9)
        least = int(re.findall("at least ([0-9]+)", str(caught.value))[0])
        assert Grid(replicas, oracle, RULE, memory_bytes=least).side_by_side() == 1
        one_by_one = curves(replicas, oracle, memory_bytes=least)
        np.testing.assert_allclose(one_by_one, curves(replicas, oracle), rtol=1e-12)


def test_the_same_bytes_again() -> None:
    oracle = Quadratic(N)
    replicas = seeds_by_cells("asynchronous", "star", 2)
    first, second = curves(replicas, oracle), curves(replicas, oracle)
    assert [points.tobytes() for points in first] == [points.tobytes() for points in second]


@pytest.mark.parametrize("kind", ["asynchronous", "rennala"])
def test_a_grid_of_any_size_is_one_compilation(kind: str) -> None:
    oracle = Quadratic(N)
    schedule = simulated(kind, "none", 0)
    versions = [0, N_STEPS]

    def run(stepsizes: Sequence[float], seeds: Sequence[int]) -> None:
        cells = [values(stepsize) for stepsize in stepsizes]
        curves([Replica(schedule, cell, s, versions) for cell in cells for s in seeds], oracle)

    run([0.1, 0.2, 0.3], [0, 1])
    traces = oracle.traces
    assert len(programs(oracle, RULE)) == 1
    run([0.4, 0.5], [7, 8, 9])
    assert oracle.traces <= traces + 1  # to learn the shape of its randomness
    assert len(programs(oracle, RULE)) == 1


def test_replicas_refuse_what_does_not_fit() -> None:
    schedule = simulated("rennala", "none", 0)
    with pytest.raises(ValueError, match="a schedule for 4 workers, an oracle for 5"):
        Grid([Replica(schedule, values(), 0, [0])], Quadratic(N + 1), RULE)
    with pytest.raises(ValueError, match=r"versions \[2, 1\]: expected ascending numbers in"):
        Grid([Replica(schedule, values(), 0, [2, 1])], Quadratic(N), RULE)
