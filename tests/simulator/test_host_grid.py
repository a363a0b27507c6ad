"""Replicas on a host oracle: each as if alone, in fewer calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execution_cases import HostQuadratic
from hypothesis import given, settings
from hypothesis import strategies as st
from test_grid import CELLS, COORDINATORS, RULE, N, schedule_of

from simulator.executors import executor
from simulator.executors.host_grid import HostGrid
from simulator.precision import precision
from simulator.schedule import Schedule


@pytest.fixture(scope="module")
def oracle() -> HostQuadratic:
    with precision("float64"):
        return HostQuadratic(N, dtype="float64")


def alone(schedule: Schedule, oracle: Any, cell: Any, seed: int) -> Any:
    return executor("batched")(schedule, oracle, RULE, cell, seed)


@settings(max_examples=20, deadline=None)
@given(
    kind=st.sampled_from(sorted(COORDINATORS)),
    seeds=st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True),
    every=st.integers(1, 3),
    memory_bytes=st.sampled_from([1, 2000, 1 << 30]),
)
def test_each_replica_as_if_alone(
    kind: str, seeds: list[int], every: int, memory_bytes: int, oracle: Any
) -> None:
    schedules = [schedule_of(kind, "none", seed) for seed in seeds]
    cells = [CELLS[number] for number in range(len(seeds))]
    versions = [[*range(0, s.n_steps, every), s.n_steps, s.n_steps] for s in schedules]
    with precision("float64"):
        grid = HostGrid(schedules, oracle, RULE, cells, seeds, memory_bytes=memory_bytes)
        found: list[list[Any]] = [[] for _ in seeds]
        for replica, snapshot in grid.snapshots(versions):
            found[replica].append(snapshot)
        for number, seed in enumerate(seeds):
            execution = alone(schedules[number], oracle, cells[number], seed)
            for got, right in zip(
                found[number], execution.snapshots(versions[number]), strict=True
            ):
                assert got.version == right.version
                np.testing.assert_array_equal(got.params, right.params)
            np.testing.assert_array_equal(grid.lengths[number], execution.lengths)


def calls(replicas: int, **options: Any) -> list[tuple[int, ...]]:
    """Shapes of the points in every call, Rennala on a schedule that all share."""
    oracle = HostQuadratic(N)
    schedule = schedule_of("rennala", "none", 0)
    grid = HostGrid(
        [schedule] * replicas, oracle, RULE, CELLS[:replicas], list(range(replicas)), **options
    )
    list(grid.snapshots([[schedule.n_steps]] * replicas))
    assert len(set(oracle.asked)) * replicas == len(oracle.asked)
    return oracle.batches


def test_what_replicas_need_at_once_is_one_call() -> None:
    one, three = calls(1), calls(3)
    assert one[0] == (3,)  # one point, shared by a batch
    assert three[0] == (27, 3)  # the first batch is of 9
    assert len(three) == len(one)


def test_in_little_memory_replicas_take_turns() -> None:
    assert calls(3, memory_bytes=1) == calls(1) * 3


def test_what_does_not_fit_is_refused() -> None:
    schedule = schedule_of("rennala", "none", 0)
    with pytest.raises(ValueError, match="zip"):
        HostGrid([schedule], HostQuadratic(N), RULE, CELLS[:2], [0])
    grid = HostGrid([schedule], HostQuadratic(N), RULE, CELLS[:1], [0])
    with pytest.raises(ValueError, match="expected ascending numbers"):
        grid.snapshots([[2, 1]])
