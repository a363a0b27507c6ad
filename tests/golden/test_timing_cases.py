"""Exact worked cases of the timing semantics, made by an independent implementation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from algorithms.coordinators import COORDINATORS
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.engine import simulate
from simulator.network import AllReduce, Network, NoNetwork, Star
from simulator.schedule import Schedule, Status

CASES = json.loads((Path(__file__).parents[1] / "data" / "timing.json").read_text())


def network_of(case: dict) -> Network:
    network = case["network"]
    if network["kind"] == "star":
        return Star(Constant(network["down"]), Constant(network["up"]))
    if network["kind"] == "allreduce":
        return AllReduce(Constant([network["seconds"]]))
    return NoNetwork()


def run(case: dict) -> Schedule:
    coordinator = COORDINATORS[case["coordinator"]](len(case["compute_seconds"]), **case["params"])
    budget = Budget(steps=len(case["steps"]))
    compute = Constant(case["compute_seconds"])
    return simulate(coordinator, compute, network_of(case), budget, seed=0, verify=True)


def used_by_worker(schedule: Schedule, step: int) -> dict[str, int]:
    count = np.bincount(schedule.worker[schedule.step == step])
    return {str(worker): int(many) for worker, many in enumerate(count) if many}


def discarded_before(schedule: Schedule) -> list[int]:
    """Arrivals thrown away since the step before; one at a step's instant counts after it."""
    thrown = np.flatnonzero(schedule.status == Status.DISCARDED)
    at = schedule.stop_seconds[thrown]
    # At its instant a step is made by the arrival that completes it; later arrivals of that
    # instant have a greater worker index.
    counts = []
    previous = (-1.0, -1)
    for step, seconds in enumerate(schedule.step_seconds):
        rows = np.flatnonzero(schedule.step == step)
        last = rows[np.lexsort((schedule.worker[rows], schedule.stop_seconds[rows]))[-1]]
        now = (float(seconds), int(schedule.worker[last]))
        counts.append(
            sum(
                previous < (float(t), int(w)) < now
                for t, w in zip(at, schedule.worker[thrown], strict=True)
            )
        )
        previous = now
    return counts


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_timing_case(case: dict) -> None:
    schedule = run(case)
    steps = case["steps"]
    assert schedule.step_seconds.tolist() == [step["time"] for step in steps]
    thrown = discarded_before(schedule)
    for number, step in enumerate(steps):
        rows = np.flatnonzero(schedule.step == number)
        if "used" in step:
            assert used_by_worker(schedule, number) == step["used"]
        if "discarded" in step:
            assert thrown[number] == step["discarded"]
        if "discarded_before" in step:
            assert thrown[number] == step["discarded_before"]
        if "worker" in step:
            assert schedule.worker[rows].tolist() == [step["worker"]]
            assert schedule.staleness()[rows].tolist() == [step["staleness"]]
        if "arrivals" in step:
            order = rows[np.lexsort((schedule.worker[rows], schedule.stop_seconds[rows]))]
            arrivals = zip(schedule.worker[order], number - schedule.version[order], strict=True)
            assert [[int(w), int(s)] for w, s in arrivals] == step["arrivals"]


def test_there_are_cases_of_every_coordinator() -> None:
    assert {case["coordinator"] for case in CASES} == set(COORDINATORS)
