"""The engine: equivalences, budgets, cancellation, common random numbers, and getting stuck."""

from __future__ import annotations

import math

import numpy as np
import pytest
from execution_cases import PARAMETERS
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.coordinators import (
    COORDINATORS,
    Asynchronous,
    Malenia,
    Rennala,
    Synchronous,
)
from algorithms.messages import Average, Decision, Reports, Then
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.distributions import scipy_distribution
from simulator.engine import simulate
from simulator.errors import ConfigurationError, SimulationStalled
from simulator.network import AllReduce, NoNetwork, Star
from simulator.random_delays import RandomDelays
from simulator.schedule import Schedule, Status
from simulator.traces import Trace

EVERY = [(name, parameters) for name, rows in PARAMETERS.items() for parameters in rows]
COLUMNS = [name for name in Schedule.__dataclass_fields__ if name not in {"stalled"}]


def columns(schedule: Schedule) -> dict[str, bytes]:
    return {name: np.asarray(getattr(schedule, name)).tobytes() for name in COLUMNS}


def lognormal(scale: list[float]) -> RandomDelays:
    return scipy_distribution("lognorm", {"s": 0.7}, scale)


def test_parameters_cover_every_coordinator() -> None:
    assert set(PARAMETERS) == set(COORDINATORS)


@pytest.mark.parametrize(("name", "parameters"), EVERY)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), n_workers=st.integers(2, 6), data=st.data())
def test_random_schedules_keep_every_rule(name, parameters, seed, n_workers, data) -> None:
    """Verified against the rules, whatever the network and however random the delays."""
    coordinator = COORDINATORS[name](n_workers, **parameters)
    scale = data.draw(st.lists(st.floats(0.1, 9), min_size=n_workers, max_size=n_workers))
    networks = [NoNetwork(), Star(lognormal(scale), lognormal(scale[::-1]))]
    if coordinator.collective:
        networks.append(AllReduce(lognormal([0.5])))
    network = data.draw(st.sampled_from(networks))
    budget = data.draw(
        st.sampled_from([Budget(seconds=20.0), Budget(steps=9), Budget(gradients=33)])
    )
    schedule = simulate(coordinator, lognormal(scale), network, budget, seed, verify=True)
    assert schedule.n_computations == sum(schedule.counts().values())
    assert budget.steps is None or schedule.n_steps == budget.steps
    assert budget.gradients is None or schedule.counts()["used"] <= budget.gradients
    assert budget.seconds is None or schedule.end_seconds == budget.seconds


@pytest.mark.parametrize(("name", "parameters"), EVERY)
def test_same_seed_same_bytes_and_another_seed_another_schedule(name, parameters) -> None:
    def run(seed: int) -> dict[str, bytes]:
        coordinator = COORDINATORS[name](4, **parameters)
        compute = lognormal([1, 2, 3, 4])
        return columns(simulate(coordinator, compute, NoNetwork(), Budget(steps=20), seed))

    assert run(3) == run(3)
    assert run(3) != run(4)


@pytest.mark.parametrize(("name", "parameters"), EVERY)
def test_a_star_without_delays_is_no_network(name, parameters) -> None:
    free = Star(Constant([0.0] * 4), Constant([0.0] * 4))
    runs = [
        columns(
            simulate(
                COORDINATORS[name](4, **parameters),
                lognormal([1, 2, 3, 4]),
                network,
                Budget(seconds=50.0),
                seed=5,
                verify=True,
            )
        )
        for network in (NoNetwork(), free)
    ]
    messages = {name for name in COLUMNS if name.startswith("message")}
    assert {k: v for k, v in runs[0].items() if k not in messages} == {
        k: v for k, v in runs[1].items() if k not in messages
    }


def test_equal_speeds_rennala_of_n_is_synchronous() -> None:
    compute, budget = Constant([2.0] * 5), Budget(steps=10)
    rennala = simulate(Rennala(5, batch_size=5), compute, NoNetwork(), budget, 0)
    synchronous = simulate(Synchronous(5), compute, NoNetwork(), budget, 0)
    assert columns(rennala) == columns(synchronous)


def test_one_worker_rennala_of_one_is_asynchronous_without_staleness() -> None:
    budget = Budget(steps=10)
    rennala = simulate(Rennala(1, batch_size=1), lognormal([1.0]), NoNetwork(), budget, 0)
    asynchronous = simulate(Asynchronous(1), lognormal([1.0]), NoNetwork(), budget, 0)
    assert columns(rennala) == columns(asynchronous)
    assert set(asynchronous.staleness()[asynchronous.step >= 0]) == {0}


@pytest.mark.parametrize("name", ["asynchronous", "rennala"])
def test_a_worker_that_never_finishes_changes_nobody_else(name) -> None:
    """Its presence moves no draw of the others: same starts, stops and steps."""
    parameters = PARAMETERS[name][0]
    budget = Budget(steps=25)
    few = simulate(
        COORDINATORS[name](3, **parameters), lognormal([1, 2, 3]), NoNetwork(), budget, 1
    )
    more = simulate(
        COORDINATORS[name](4, **parameters), lognormal([1, 2, 3, math.inf]), NoNetwork(), budget, 1
    )
    others = more.worker < 3
    assert few.step_seconds.tolist() == more.step_seconds.tolist()
    for column in ("worker", "k", "version", "start_seconds", "stop_seconds", "step", "status"):
        assert getattr(few, column).tolist() == getattr(more, column)[others].tolist()


def test_common_random_numbers_across_methods() -> None:
    """c(worker, k) is the same whichever method meets it, cancelled computations included."""
    compute = lognormal([1, 2, 3])
    durations = {}
    for name, parameters in EVERY:
        coordinator = COORDINATORS[name](3, **parameters)
        schedule = simulate(coordinator, compute, NoNetwork(), Budget(steps=30), 7)
        whole = schedule.status != Status.CANCELLED
        for worker, k, start, stop in zip(
            schedule.worker[whole],
            schedule.k[whole],
            schedule.start_seconds[whole],
            schedule.stop_seconds[whole],
            strict=True,
        ):
            seconds = durations.setdefault((worker, k), stop - start)
            assert stop - start == pytest.approx(seconds, rel=1e-9)


def test_simultaneous_arrivals_are_handled_in_worker_order() -> None:
    """Workers 0 and 1 both finish at 6 s, though worker 1's computation was scheduled first."""
    schedule = simulate(
        Asynchronous(2), Constant([2.0, 6.0]), NoNetwork(), Budget(steps=4), 0, verify=True
    )
    used = schedule.used_rows()[0]
    assert schedule.worker[used].tolist() == [0, 0, 0, 1]


def test_what_completes_at_the_horizon_counts_and_later_does_not() -> None:
    compute = Constant([2.0, 3.0])
    at = simulate(Asynchronous(2), compute, NoNetwork(), Budget(seconds=4.0), 0, verify=True)
    assert at.step_seconds.tolist() == [2.0, 3.0, 4.0]
    before = simulate(Asynchronous(2), compute, NoNetwork(), Budget(seconds=3.99), 0, verify=True)
    assert before.step_seconds.tolist() == [2.0, 3.0]
    assert before.counts()["in_flight"] == 2


def test_a_step_on_its_way_at_the_horizon_is_not_credited() -> None:
    network = AllReduce(Constant([1.0]))
    schedule = simulate(
        Rennala(1, batch_size=2), Constant([2.0]), network, Budget(seconds=4.5), 0, verify=True
    )
    assert schedule.n_steps == 0
    assert schedule.counts() == {"in_flight": 2, "used": 0, "discarded": 0, "cancelled": 0}


def test_a_gradient_budget_takes_no_step_that_exceeds_it() -> None:
    schedule = simulate(
        Rennala(2, batch_size=4), Constant([1.0, 1.0]), NoNetwork(), Budget(gradients=10), 0
    )
    assert schedule.counts()["used"] == 8
    assert schedule.n_steps == 2


def test_synchronous_cancel_discards_finished_and_cancels_running_work() -> None:
    """b = 2, m = 1: at 2 s worker 1 has finished one of two, and runs the other."""
    coordinator = Synchronous(2, gradients_per_worker=2, wait_for=1)
    schedule = simulate(
        coordinator, Constant([1.0, 1.5]), NoNetwork(), Budget(steps=1), 0, verify=True
    )
    assert schedule.counts() == {"in_flight": 0, "used": 2, "discarded": 1, "cancelled": 1}


def test_cancelled_while_receiving_costs_no_computation() -> None:
    """Worker 1's model takes longer than a step, so in "cancel" it never starts anything."""
    network = Star(Constant([0.0, 9.0]), Constant([0.0, 0.0]))
    schedule = simulate(
        Rennala(2, batch_size=2), Constant([1.0, 1.0]), network, Budget(steps=5), 0, verify=True
    )
    assert set(schedule.worker.tolist()) == {0}


def test_uploads_count_vectors() -> None:
    compute, budget = Constant([1.0, 2.0, 7.0]), Budget(steps=2)
    asynchronous = simulate(Asynchronous(3), compute, NoNetwork(), budget, 0)
    assert asynchronous.uploads.tolist() == [1, 2]
    rennala = simulate(Rennala(3, batch_size=3), compute, NoNetwork(), budget, 0)
    assert rennala.uploads.tolist() == [2, 4]  # workers 0 and 1, one sum each
    malenia = simulate(Malenia(3, batch_size=3), compute, NoNetwork(), budget, 0)
    assert malenia.uploads.tolist() == [3, 6]


class Discounting(Asynchronous):
    """A method of one's own: a step for two arrivals, the second counts half."""

    reports = Reports.VECTORS
    average = Average.GRADIENTS

    def __init__(self, n_workers: int) -> None:
        super().__init__(n_workers)
        self.held = 0

    def arrive(self, arrival):
        self.held += 1
        if self.held % 2:
            return Decision(use=True, then=Then.SEND, weight=1.0)
        return Decision(use=True, step=True, weight=0.5)


def test_weights_of_a_new_coordinator_are_normalised() -> None:
    schedule = simulate(
        Discounting(2), Constant([1.0, 1.0]), NoNetwork(), Budget(steps=3), 0, verify=True
    )
    rows = schedule.used_rows()[0]
    assert schedule.weight[rows].tolist() == pytest.approx([2 / 3, 1 / 3] * 3)


def test_malenia_weighs_workers_equally() -> None:
    schedule = simulate(
        Malenia(3, batch_size=6), Constant([1.0, 2.0, 5.0]), NoNetwork(), Budget(steps=1), 0
    )
    used = schedule.step == 0
    by_worker = np.bincount(schedule.worker[used], schedule.weight[used])
    assert by_worker == pytest.approx([1 / 3] * 3)


# -- getting stuck ------------------------------------------------------------------------------


def test_stalled_with_steps_to_go_says_which_worker() -> None:
    compute = Constant([1.0, math.inf, 1.0])
    with pytest.raises(SimulationStalled, match=r"after 0 server steps.* worker 1, whose work"):
        simulate(Synchronous(3), compute, NoNetwork(), Budget(steps=3), 0)


def test_stalled_before_the_horizon_keeps_what_there_is() -> None:
    compute = Constant([1.0, math.inf, 1.0])
    schedule = simulate(Synchronous(3), compute, NoNetwork(), Budget(seconds=9.0), 0, verify=True)
    assert "worker 1" in schedule.stalled
    assert schedule.end_seconds == 9.0
    fine = simulate(Asynchronous(3), compute, NoNetwork(), Budget(seconds=9.0), 0, verify=True)
    assert fine.stalled == ""


def last_worker_stops(after: int) -> Trace:
    """Three workers of a second a computation; the last one never finishes the one at ``after``."""
    return Trace([[1.0], [1.0], [1.0] * after + [math.inf]])


@pytest.mark.parametrize("stale", ["cancel", "discard"])
def test_others_that_compute_for_ever_do_not_hide_a_stall(stale) -> None:
    """Malenia waits for the last worker; the others would add gradients to its step without end."""
    with pytest.raises(SimulationStalled, match=r"no further step .* worker 2, whose work"):
        simulate(
            Malenia(3, batch_size=3, stale=stale),
            last_worker_stops(4),
            NoNetwork(),
            Budget(steps=9),
            0,
        )
    schedule = simulate(
        Malenia(3, batch_size=3, stale=stale),
        last_worker_stops(4),
        NoNetwork(),
        Budget(seconds=9.0),
        0,
        verify=True,
    )
    assert "worker 2" in schedule.stalled
    assert 1 <= schedule.n_steps <= 4


def test_a_stuck_worker_nobody_waits_for_is_no_stall() -> None:
    schedule = simulate(
        Rennala(3, batch_size=3, stale="discard"),
        last_worker_stops(1),
        NoNetwork(),
        Budget(steps=9),
        0,
        verify=True,
    )
    assert schedule.n_steps == 9
    assert schedule.stalled == ""


def test_a_sum_that_never_arrives_names_its_worker() -> None:
    network = Star(Constant([0.0] * 3), Constant([0.0, math.inf, 0.0]))
    with pytest.raises(SimulationStalled, match=r"worker 1, whose work"):
        simulate(Rennala(3, batch_size=3), Constant([1.0] * 3), network, Budget(steps=9), 0)


def test_all_workers_infinitely_slow() -> None:
    compute = Constant([math.inf, math.inf])
    with pytest.raises(SimulationStalled, match="workers 0, 1"):
        simulate(Asynchronous(2), compute, NoNetwork(), Budget(steps=1), 0)


def test_a_clock_that_stands_still() -> None:
    with pytest.raises(SimulationStalled, match="the clock stands still"):
        simulate(Asynchronous(2), Constant([0.0, 1.0]), NoNetwork(), Budget(seconds=1.0), 0)


def test_allreduce_needs_a_collective_step() -> None:
    network = AllReduce(Constant([1.0]))
    with pytest.raises(ConfigurationError, match="asynchronous has no step in which all workers"):
        simulate(Asynchronous(2), Constant([1.0, 1.0]), network, Budget(steps=1), 0)


def test_sizes_must_agree() -> None:
    with pytest.raises(ConfigurationError, match="delays for 3 workers, but the fleet has 2"):
        simulate(Asynchronous(2), Constant([1.0] * 3), NoNetwork(), Budget(steps=1), 0)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({}, "at least one of"),
        ({"seconds": 0.0}, "budget.seconds = 0.0"),
        ({"seconds": math.nan}, "budget.seconds = nan"),
        ({"seconds": math.inf}, "budget.seconds = inf"),
        ({"steps": 0}, "budget.steps = 0"),
        ({"gradients": -1}, "budget.gradients = -1"),
    ],
)
def test_budgets_out_of_range(limits, message) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Budget(**limits)


def test_dropped_alarms_do_not_pile_up() -> None:
    """A slow worker is cancelled at each of 20,000 steps; the queue must not keep them all."""
    from simulator.engine import Engine

    engine = Engine(
        Rennala(2, batch_size=1), Constant([1.0, 1e9]), NoNetwork(), Budget(steps=20_000), 0
    )
    engine.run()
    assert len(engine.clock._queue) < 5_000
