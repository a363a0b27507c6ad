"""All executors give the same numbers, and compute nothing they need not."""

from __future__ import annotations

import random
from itertools import cycle, islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from execution_cases import HostQuadratic, Quadratic, Rows, drive
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
from algorithms.update_rule import UpdateRule
from algorithms.updates import update_rule
from simulator.executors import EXECUTORS, executor
from simulator.executors.batched import BatchedJax
from simulator.executors.sequential import Sequential
from simulator.oracle import Sample
from simulator.precision import precision
from simulator.schedule import Schedule, Status

N = 4
COORDINATORS = {
    "asynchronous": lambda: Asynchronous(N),
    "ringmaster": lambda: Ringmaster(N, max_staleness=3),
    "buffered": lambda: Buffered(N, buffer_size=3),
    "synchronous": lambda: Synchronous(N, gradients_per_worker=2),
    "backup": lambda: Synchronous(N, wait_for=2),
    "rennala": lambda: Rennala(N, batch_size=6, initial_batch_size=9),
    "rennala-discard": lambda: Rennala(N, batch_size=5, stale="discard"),
    "malenia": lambda: Malenia(N, batch_size=6),
}
RULES = {
    "sgd": {"stepsize": 0.05},
    "delay-adaptive-sgd": {"stepsize": 0.05},
    "nigt": {
        "stepsize": {"value": 0.05, "offset": 9.0, "power": 0.5},
        "momentum": {"value": 1.0, "offset": 2.0, "power": 0.8},
    },
    "optax.adam": {"stepsize": 0.05},
}


@pytest.fixture(scope="module", params=["jax", "host"])
def oracle(request: pytest.FixtureRequest) -> Any:
    with precision("float64"):
        return (Quadratic if request.param == "jax" else HostQuadratic)(N, dtype="float64")


@pytest.fixture(scope="module")
def jax_oracle() -> Quadratic:
    with precision("float64"):
        return Quadratic(N, dtype="float64")


def uneven(coordinator: Any, n_steps: int, seed: int = 0) -> Schedule:
    """Workers finish at random, the first twice as often as the second, and so on."""
    draw = random.Random(seed)
    weights = [2.0**-i for i in range(coordinator.n_workers)]
    order = draw.choices(range(coordinator.n_workers), weights, k=60 * n_steps)
    return drive(coordinator, order, n_steps)


def method(name: str) -> tuple[UpdateRule, Any]:
    rule = update_rule(name)
    return rule, make_hyperparameters(rule, RULES[name])


def curve(execution: Any, n_steps: int) -> np.ndarray:
    return np.array([snapshot.params for snapshot in execution.snapshots(range(n_steps + 1))])


def assert_same(schedule: Schedule, oracle: Any, rule_name: str, **options: Any) -> None:
    """Every executor agrees on everything, to rounding, in double precision."""
    with precision("float64"):
        reference = Sequential(schedule, oracle, *method(rule_name), 3)
        right = curve(reference, schedule.n_steps)
        others = [executor("batched")(schedule, oracle, *method(rule_name), 3, **options)]
        if isinstance(oracle, Quadratic) and not any(options.values()):
            others.append(executor("compiled")(schedule, oracle, *method(rule_name), 3))
        for other in others:
            assert_follows(reference, right, other, schedule)


def assert_follows(reference: Any, right: np.ndarray, other: Any, schedule: Schedule) -> None:
    got = curve(other, schedule.n_steps)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, right, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(other.lengths, reference.lengths)
    np.testing.assert_allclose(other.values, reference.values, rtol=1e-12, atol=1e-12)
    used = schedule.status == Status.USED
    assert reference.gradients_computed == other.gradients_computed == used.sum()
    np.testing.assert_array_equal(other.lengths >= 0, used)
    np.testing.assert_array_equal(np.isfinite(other.values), used)


@pytest.mark.parametrize(
    ("kind", "rule_name"),
    [*((kind, "nigt") for kind in COORDINATORS), ("asynchronous", "delay-adaptive-sgd")],
)
def test_same_numbers(kind: str, rule_name: str, jax_oracle: Quadratic) -> None:
    assert_same(uneven(COORDINATORS[kind](), 12), jax_oracle, rule_name)


@pytest.mark.parametrize("kind", COORDINATORS)
def test_same_numbers_from_a_host_oracle(kind: str) -> None:
    with precision("float64"):
        oracle = HostQuadratic(N, dtype="float64")
    schedule = uneven(COORDINATORS[kind](), 6)
    assert_same(schedule, oracle, "nigt")
    # Twice, by each of two executors: every used computation, and no other.
    used = np.flatnonzero(schedule.step >= 0)
    computations = zip(schedule.worker[used].tolist(), schedule.k[used].tolist(), strict=True)
    assert sorted(oracle.asked) == sorted(2 * list(computations))


def test_host_and_jax_oracles_give_the_same_numbers(jax_oracle: Quadratic) -> None:
    schedule = uneven(Ringmaster(N, max_staleness=3), 8)
    with precision("float64"):
        host = HostQuadratic(N, dtype="float64")
        curves = [
            curve(executor(name)(schedule, oracle, *method("nigt"), 3), 8)
            for name in EXECUTORS
            for oracle in (jax_oracle, host)
        ]
    for other in curves[1:]:
        np.testing.assert_allclose(other, curves[0], rtol=1e-12, atol=1e-13)


EVENTS = st.tuples(
    st.integers(0, N - 1),
    st.sampled_from([Status.USED, Status.USED, Status.DISCARDED]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1.0, 0.25, 3.0]),
)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Anything that a coordinator could make: every worker and step does as it likes."""
    rows = Rows(N)
    in_flight = {worker: rows.start(worker, 0) for worker in range(N)}
    collected: dict[int, float] = {}
    for worker, becomes, steps, is_sent, weight in draw(st.lists(EVENTS, max_size=40)):
        rows.now += 1
        row = in_flight[worker]
        rows.end(row, Status.DISCARDED if becomes is Status.DISCARDED else Status.IN_FLIGHT)
        if becomes is Status.USED:
            collected[row] = weight
        if collected and steps:
            rows.step(collected)
            collected = {}
        version = len(rows.step_seconds) if is_sent else rows.rows[row]["version"]
        in_flight[worker] = rows.start(worker, version)
    return rows.schedule()


@settings(max_examples=40, deadline=None)
@given(schedule=schedules(), max_rows=st.sampled_from([None, 2]))
def test_same_numbers_on_any_schedule(
    schedule: Schedule, max_rows: int | None, jax_oracle: Quadratic
) -> None:
    assert_same(schedule, jax_oracle, "nigt", max_rows=max_rows)


@pytest.mark.parametrize("kind", ["rennala", "asynchronous", "buffered"])
def test_same_numbers_in_small_chunks(kind: str, oracle: Any) -> None:
    assert_same(uneven(COORDINATORS[kind](), 8), oracle, "sgd", max_rows=2)


def test_follows_the_pseudo_code() -> None:
    """Delay-adaptive Asynchronous SGD against a loop over the schedule in NumPy."""
    with precision("float64"):
        oracle = Quadratic(N, noise=0.0, dtype="float64")
        schedule = uneven(Asynchronous(N), 15)
        got = curve(Sequential(schedule, oracle, *method("delay-adaptive-sgd"), 0), 15)
    x = [np.ones(oracle.dim)]
    A, b = np.asarray(oracle.A), np.asarray(oracle.b)
    for step in range(15):
        (row,) = np.flatnonzero(schedule.step == step)
        worker, version = schedule.worker[row], schedule.version[row]
        gradient = A[worker] @ x[version] - b[worker]
        x.append(x[-1] - 0.05 * N / max(N, step - version) * gradient)
    assert max(schedule.staleness()) > N, "the schedule never exercises the adaptive stepsize"
    np.testing.assert_allclose(got, x, rtol=1e-12)


# -- batching -------------------------------------------------------------------------------------


def test_a_step_of_fresh_gradients_is_one_call_at_one_point() -> None:
    oracle = HostQuadratic(N)
    schedule = uneven(Rennala(N, batch_size=6), 5)
    list(executor("batched")(schedule, oracle, *method("sgd"), 0).snapshots([5]))
    assert oracle.batches == [(oracle.dim,)] * 5


def test_arrivals_whose_points_are_known_are_one_call() -> None:
    oracle = HostQuadratic(N)
    schedule = drive(Asynchronous(N), islice(cycle(range(N)), 5 * N), 5 * N)
    list(executor("batched")(schedule, oracle, *method("sgd"), 0).snapshots([5 * N]))
    assert oracle.batches == [(N, oracle.dim)] * 5


def test_a_constant_batch_compiles_once() -> None:
    oracle = Quadratic(N)
    rule, _ = method("nigt")
    for seed, stepsize in enumerate([0.1, 0.2, {"value": 0.1, "offset": 2.0, "power": 0.5}]):
        schedule = uneven(Rennala(N, batch_size=6), 30, seed)
        hyperparameters = make_hyperparameters(rule, {"stepsize": stepsize})
        execution = executor("batched")(schedule, oracle, rule, hyperparameters, seed)
        list(execution.snapshots([10, 11, 30]))
    assert oracle.traces == 1


def test_varying_batches_compile_a_handful_of_times() -> None:
    n = 12
    oracle = Quadratic(n)
    for seed in range(2):
        for coordinator in (Asynchronous(n), Malenia(n, 30)):
            order = random.Random(seed).choices(range(n), k=20_000)
            schedule = drive(coordinator, order, 30)
            list(executor("batched")(schedule, oracle, *method("sgd"), seed).snapshots([30]))
    # At most four sizes at a time, out of 1, 2, 4, 6, 8, ...; a trace for each.
    assert oracle.traces <= 12
    traces = oracle.traces
    rule = update_rule("sgd")
    hyperparameters = make_hyperparameters(rule, {"stepsize": 0.01})
    list(executor("batched")(schedule, oracle, rule, hyperparameters, 1).snapshots([30]))
    assert oracle.traces == traces


# -- snapshots ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXECUTORS)
def test_snapshots_are_lazy_copies_and_go_on(name: str, oracle: Any) -> None:
    schedule = uneven(Asynchronous(N), 10)
    with precision("float64"):
        everything = curve(executor(name)(schedule, oracle, *method("nigt"), 0), 10)
        execution = executor(name)(schedule, oracle, *method("nigt"), 0)
        assert execution.gradients_computed == 0
        first = list(execution.snapshots([0, 3, 3]))
        assert execution.version == 3
        assert execution.gradients_computed < (schedule.step >= 0).sum()
        rest = list(execution.snapshots([4, 10]))
    versions = [snapshot.version for snapshot in (*first, *rest)]
    assert versions == [0, 3, 3, 4, 10]
    got = np.array([snapshot.params for snapshot in (*first, *rest)])
    np.testing.assert_allclose(got, everything[versions], rtol=1e-12)
    np.testing.assert_array_equal(everything[0], np.ones(oracle.dim))


@pytest.mark.parametrize("versions", [[3, 2], [-1], [11]])
def test_versions_out_of_order_or_range(versions: list[int]) -> None:
    execution = executor("batched")(uneven(Asynchronous(N), 10), Quadratic(N), *method("sgd"), 0)
    with pytest.raises(ValueError, match=r"expected ascending numbers in \[0, 10\]"):
        execution.snapshots(versions)


@pytest.mark.parametrize("name", EXECUTORS)
def test_an_interrupt_leaves_what_is_done(name: str) -> None:
    class Interrupted(HostQuadratic):
        def sample_batch(self, *args: Any) -> Sample:
            if len(self.asked) >= 20:  # in the fourth step, or after it
                raise KeyboardInterrupt
            return super().sample_batch(*args)

    schedule = uneven(Rennala(N, batch_size=6), 10)
    whole = curve(executor(name)(schedule, HostQuadratic(N), *method("sgd"), 0), 10)
    execution = executor(name)(schedule, Interrupted(N), *method("sgd"), 0)
    snapshots = execution.snapshots(range(11))
    kept = [next(snapshots) for _ in range({"sequential": 4}.get(name, 5))]
    with pytest.raises(KeyboardInterrupt):
        next(snapshots)
    np.testing.assert_array_equal([s.params for s in kept], whole[: len(kept)])
    done = execution.gradients_computed
    assert (execution.lengths >= 0).sum() == done == {"sequential": 20}.get(name, 24)


def test_a_schedule_without_steps() -> None:
    schedule = drive(Asynchronous(N), [], 0)
    for name in EXECUTORS:
        execution = executor(name)(schedule, Quadratic(N), *method("sgd"), 0)
        (snapshot,) = execution.snapshots([0])
        np.testing.assert_array_equal(snapshot.params, np.ones(3))
        assert execution.gradients_computed == 0


# -- numbers --------------------------------------------------------------------------------------


class Overflowing(Quadratic):
    """The last worker's gradients are infinite."""

    def sample(self, point: jax.Array, worker: jax.Array, key: jax.Array) -> Sample:
        sample = super().sample(point, worker, key)
        gradient = jnp.where(worker == self.n_workers - 1, jnp.inf, sample.gradient)
        return sample._replace(gradient=gradient)


@pytest.mark.parametrize("kind", ["malenia", "buffered"])
def test_padding_makes_no_nan_of_infinity(kind: str) -> None:
    coordinator = Malenia(N, 30) if kind == "malenia" else Buffered(N, 3)
    schedule = uneven(coordinator, 6)
    oracle = Overflowing(N)
    curves = [curve(executor(name)(schedule, oracle, *method("sgd"), 0), 6) for name in EXECUTORS]
    first = int(np.flatnonzero(np.isinf(curves[1]).any(axis=1))[0])
    np.testing.assert_array_equal(np.isneginf(curves[0][first]), True)


@pytest.mark.parametrize("name", EXECUTORS)
def test_single_precision_is_kept(name: str) -> None:
    schedule = uneven(Rennala(N, 3), 4)
    (snapshot,) = executor(name)(schedule, Quadratic(N), *method("nigt"), 0).snapshots([4])
    assert snapshot.params.dtype == np.float32


@pytest.mark.parametrize("name", EXECUTORS)
def test_starts_where_it_is_told(name: str) -> None:
    schedule = uneven(Rennala(N, 3), 1)
    execution = executor(name)(schedule, Quadratic(N), *method("sgd"), 0, x0=[4.0, 5.0, 6.0])
    (snapshot,) = execution.snapshots([0])
    np.testing.assert_array_equal(snapshot.params, np.array([4, 5, 6], np.float32))


@pytest.mark.parametrize("name", EXECUTORS)
def test_refuses_what_does_not_fit(name: str) -> None:
    schedule = uneven(Rennala(N, 3), 1)
    with pytest.raises(ValueError, match=r"x0 of shape \(2,\): expected \[3\]"):
        executor(name)(schedule, Quadratic(N), *method("sgd"), 0, x0=[1.0, 2.0])
    with pytest.raises(ValueError, match="a schedule for 4 workers, an oracle for 5"):
        executor(name)(schedule, Quadratic(N + 1), *method("sgd"), 0)


def test_a_jax_oracle_gets_the_jax_executor() -> None:
    schedule = uneven(Rennala(N, 3), 1)
    assert isinstance(executor("batched")(schedule, Quadratic(N), *method("sgd"), 0), BatchedJax)
