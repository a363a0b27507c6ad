"""Every row of the catalogue runs, repeats itself, keeps its dtype and compiles once."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from execution_cases import PARAMETERS, Quadratic

from algorithms.catalogue import METHODS, Method
from algorithms.coordinators import COORDINATORS
from algorithms.hyperparameters import make_hyperparameters
from algorithms.messages import Arrival, ProtocolError
from algorithms.updates import update_rule
from simulator.budget import Budget
from simulator.distributions import scipy_distribution
from simulator.engine import simulate
from simulator.executors import EXECUTORS, executor
from simulator.network import NoNetwork, Star
from simulator.precision import precision
from simulator.schedule import Schedule

N = 4
N_STEPS = 12
HYPERPARAMETERS: dict[str, dict[str, Any]] = {"nigt": {"stepsize": 0.05, "momentum": 0.3}}
every_method = pytest.mark.parametrize("row", METHODS, ids=lambda row: row.id)


@pytest.fixture(scope="module", params=["float32", "float64"])
def oracle(request: pytest.FixtureRequest) -> Any:
    with precision(request.param):
        yield Quadratic(N, dtype=request.param)


def schedule_of(row: Method, n_steps: int = N_STEPS) -> Schedule:
    """Random delays on every link, checked against the rules of the simulation."""
    parameters = PARAMETERS[row.coordinator][0]
    if row.id == "backup-workers-sgd":
        parameters = {"wait_for": 2}
    delays = scipy_distribution("expon", {}, [1.0, 1.5, 2.0, 6.0])
    link = scipy_distribution("gamma", {"a": 2.0}, [0.1, 0.2, 0.3, 0.4])
    coordinator = COORDINATORS[row.coordinator](N, **parameters)
    return simulate(coordinator, delays, Star(link, link), Budget(steps=n_steps), 5, verify=True)


def curve(row: Method, name: str, oracle: Any, **changed: Any) -> np.ndarray:
    rule = update_rule(row.update)
    values = HYPERPARAMETERS.get(row.update, {"stepsize": 0.05}) | changed
    schedule = schedule_of(row)
    execution = executor(name)(schedule, oracle, rule, make_hyperparameters(rule, values), 3)
    points = [snapshot.params for snapshot in execution.snapshots(range(schedule.n_steps + 1))]
    return np.array(points)


@every_method
@pytest.mark.parametrize("name", EXECUTORS)
def test_runs_keeps_its_dtype_and_repeats_itself(row: Method, name: str, oracle: Any) -> None:
    points = curve(row, name, oracle)
    assert points.dtype == oracle.b.dtype
    assert np.isfinite(points).all()
    assert len(np.unique(points, axis=0)) == N_STEPS + 1
    assert curve(row, name, oracle).tobytes() == points.tobytes()


@every_method
@pytest.mark.parametrize("name", [name for name in EXECUTORS if name != "sequential"])
def test_every_executor_follows_the_sequential_one(row: Method, name: str) -> None:
    with precision("float64"):
        oracle = Quadratic(N, dtype="float64")
        right, got = curve(row, "sequential", oracle), curve(row, name, oracle)
    np.testing.assert_allclose(got, right, rtol=1e-12, atol=1e-13)


@every_method
@pytest.mark.parametrize("name", EXECUTORS)
def test_another_stepsize_compiles_nothing(row: Method, name: str) -> None:
    oracle = Quadratic(N)
    first = curve(row, name, oracle)
    traces = oracle.traces
    second = curve(row, name, oracle, stepsize=0.01)
    assert oracle.traces == traces
    assert not np.array_equal(first, second)


@every_method
def test_illegal_events_are_refused(row: Method) -> None:
    parameters = PARAMETERS[row.coordinator][0]
    for arrival in [Arrival(N, 0, 0), Arrival(-1, 0, 0), Arrival(0, 1, 0)]:
        coordinator = COORDINATORS[row.coordinator](N, **parameters)
        with pytest.raises(ProtocolError):
            coordinator.arrive(arrival)


def test_a_step_of_the_methods_is_a_descent_step_on_average() -> None:
    """Every method makes progress on a quadratic; none is registered with its sign turned."""
    oracle = Quadratic(N, noise=0.0)
    mean_a, mean_b = np.mean(oracle.A, axis=0), np.mean(oracle.b, axis=0)
    for row in METHODS:
        points = curve(row, "batched", oracle)
        losses = [x @ mean_a @ x / 2 - mean_b @ x for x in points]
        assert losses[-1] < losses[0], row.id


def test_no_network_gives_what_a_star_without_delays_gives() -> None:
    row = METHODS[0]
    rule = update_rule(row.update)
    fleet = scipy_distribution("expon", {}, [1.0] * N)
    nothing = scipy_distribution("expon", {}, [0.0] * N)
    points = []
    for network in (NoNetwork(), Star(nothing, nothing)):
        coordinator = COORDINATORS[row.coordinator](N, batch_size=5)
        schedule = simulate(coordinator, fleet, network, Budget(steps=6), 1, verify=True)
        execution = executor("batched")(
            schedule,
            Quadratic(N),
            rule,
            make_hyperparameters(rule, HYPERPARAMETERS["nigt"]),
            0,
        )
        points.append(np.array([s.params for s in execution.snapshots(range(7))]))
    np.testing.assert_array_equal(points[0], points[1])
    assert jax.numpy.isfinite(points[0]).all()
