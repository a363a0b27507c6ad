"""Predicted seconds of a step, for every coordinator, against the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from fleets import EIGHTHS
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.coordinators import COORDINATORS
from analysis.theory.steps import AT_LEAST, AVERAGE, EXACT, STEP_TIMES, Cluster, step_time
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.engine import simulate
from simulator.errors import ConfigurationError
from simulator.network import AllReduce, NoNetwork, Star

CASES = [
    ("rennala", {"batch_size": 5, "initial_batch_size": 9}),
    ("rennala", {"batch_size": 5, "stale": "discard"}),
    ("malenia", {"batch_size": 7, "initial_batch_size": 12}),
    ("malenia", {"batch_size": 7, "stale": "discard"}),
    ("synchronous", {"gradients_per_worker": 2}),
    ("synchronous", {"wait_for": 2}),
    ("asynchronous", {}),
    ("buffered", {"buffer_size": 3}),
    ("ringmaster", {"max_staleness": 2}),
]


def test_every_coordinator_is_known() -> None:
    assert set(STEP_TIMES) == set(COORDINATORS) == {name for name, _ in CASES}


@pytest.mark.parametrize(("name", "arguments"), CASES)
@settings(max_examples=20, deadline=None)
@given(fleet=st.lists(st.tuples(EIGHTHS, EIGHTHS, EIGHTHS), min_size=2, max_size=5), data=st.data())
def test_against_the_simulator(name, arguments, fleet, data) -> None:
    seconds, down, up = map(np.array, zip(*fleet, strict=True))
    coordinator = COORDINATORS[name](len(seconds), **arguments)
    kind = data.draw(st.sampled_from(["none", "star", *["allreduce"] * coordinator.collective]))
    network, cluster = {
        "none": (NoNetwork(), Cluster(seconds)),
        "star": (Star(Constant(down), Constant(up)), Cluster(seconds, down, up)),
        "allreduce": (
            AllReduce(Constant([0.5])),
            Cluster(seconds, collective_seconds=0.5),
        ),
    }[kind]
    schedule = simulate(coordinator, Constant(seconds), network, Budget(steps=300), 0)
    times = np.diff(schedule.step_seconds, prepend=0.0)
    found = step_time(name, arguments, cluster)
    if found.kind == EXACT:
        assert times[0] == found.first_seconds
        assert set(times[1:].tolist()) == {found.seconds}
    else:
        slack = (seconds + down + up).max() * len(seconds) / 300
        assert times.mean() >= found.seconds - slack
        if found.kind == AVERAGE:
            assert times[0] == found.first_seconds
            assert times.mean() <= found.seconds + slack
        assert found.kind in (AVERAGE, AT_LEAST)
        assert times.mean() <= found.at_most + slack


def test_kappa_is_the_slowest_round_trip_or_the_collective() -> None:
    seconds = np.ones(2)
    star = Cluster(seconds, np.array([1.0, 3.0]), np.array([5.0, 1.0]))
    assert star.kappa_seconds == 6.0
    assert Cluster(seconds, collective_seconds=0.5).kappa_seconds == 0.5


def test_an_unknown_coordinator_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"'renala'.*Did you mean 'rennala'"):
        step_time("renala", {}, Cluster(np.ones(1)))
