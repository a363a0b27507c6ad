"""Exact worked cases of coordinator x update rule on noise-free quadratics, in both executors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from algorithms.coordinators import COORDINATORS
from algorithms.hyperparameters import make_hyperparameters
from algorithms.updates import delay_adaptive, update_rule
from scenarios.problems.registry import build_problem
from scenarios.problems.specs import QuadraticSpec
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.engine import simulate
from simulator.executors import EXECUTORS, executor
from simulator.network import NoNetwork
from simulator.precision import precision

CASES = json.loads((Path(__file__).parents[1] / "data" / "updates.json").read_text())


@pytest.mark.parametrize("name", EXECUTORS)
@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{c['name']}" for n, c in enumerate(CASES)])
def test_update_case(case: dict, name: str) -> None:
    n_workers = len(case["compute_seconds"])
    parameters = dict(case["coordinator_params"])
    rule = update_rule(case["update"])
    if parameters.pop("delay_adaptive", False):
        rule = delay_adaptive(rule)
    coordinator = COORDINATORS[case["coordinator"]](n_workers, **parameters)
    compute = Constant(case["compute_seconds"])
    budget = Budget(steps=len(case["times"]))
    schedule = simulate(coordinator, compute, NoNetwork(), budget, seed=0, verify=True)
    assert schedule.step_seconds.tolist() == case["times"]
    with precision("float64"):
        spec = QuadraticSpec(
            kind="given", A=case["A"], b=case["b"], x0=case["x0"], noise=0.0, dtype="float64"
        )
        oracle = build_problem(spec, n_workers).oracle
        hyperparameters = make_hyperparameters(rule, case["update_params"])
        execution = executor(name)(schedule, oracle, rule, hyperparameters, 0)
        points = [snapshot.params for snapshot in execution.snapshots(range(1, budget.steps + 1))]
    np.testing.assert_allclose(points, case["x"], rtol=0, atol=1e-9)
