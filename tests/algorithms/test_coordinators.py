"""Coordinators by tables of arrivals, without an engine."""

from __future__ import annotations

from fractions import Fraction

import pytest
from execution_cases import PARAMETERS
from hypothesis import given
from hypothesis import strategies as st

from algorithms.coordinators import (
    COORDINATORS,
    Asynchronous,
    Buffered,
    Malenia,
    Rennala,
    Ringmaster,
    Synchronous,
)
from algorithms.messages import Arrival, ProtocolError, Then


def replay(coordinator, arrivals):
    """Feed (worker, version, current_version) rows; return what was decided."""
    return [coordinator.arrive(Arrival(*arrival)) for arrival in arrivals]


def test_asynchronous_steps_on_every_arrival() -> None:
    decisions = replay(Asynchronous(2), [(0, 0, 0), (0, 1, 1), (1, 0, 2)])
    assert all(d.use and d.step and not d.cancel_others for d in decisions)


def test_ringmaster_discards_from_the_threshold_on() -> None:
    decisions = replay(Ringmaster(3, max_staleness=2), [(0, 0, 0), (1, 0, 1), (2, 0, 2)])
    assert [d.use for d in decisions] == [True, True, False]
    assert decisions[2].then is Then.SEND


def test_buffered_steps_when_full_and_starts_again() -> None:
    arrivals = [(0, 0, 0), (1, 0, 0), (0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 1)]
    assert [d.step for d in replay(Buffered(2, 3), arrivals)] == [False, False, True] * 2


def test_synchronous_waits_for_all() -> None:
    decisions = replay(Synchronous(3), [(2, 0, 0), (0, 0, 0), (1, 0, 0)])
    assert [d.step for d in decisions] == [False, False, True]


def test_synchronous_with_backup_workers_cancels_the_rest() -> None:
    decisions = replay(Synchronous(3, wait_for=2), [(2, 0, 0), (0, 0, 0), (1, 1, 1)])
    assert [d.step for d in decisions] == [False, True, False]
    assert decisions[1].cancel_others


def test_rennala_counts_to_m_with_its_own_first_batch() -> None:
    rennala = Rennala(2, batch_size=2, initial_batch_size=3)
    arrivals = [(0, 0, 0), (1, 0, 0), (0, 0, 0), (0, 1, 1), (1, 1, 1)]
    assert [d.step for d in replay(rennala, arrivals)] == [False, False, True, False, True]


def test_rennala_discard_throws_stale_work_away_and_sends_the_point() -> None:
    rennala = Rennala(2, batch_size=1, stale="discard")
    stepped, stale = replay(rennala, [(0, 0, 0), (1, 0, 1)])
    assert (stepped.step, stepped.cancel_others) == (True, False)
    assert (stale.use, stale.then) == (False, Then.SEND)


def test_rennala_discard_makes_late_workers_wait_while_vectors_travel() -> None:
    rennala = Rennala(2, batch_size=1, stale="discard")
    _, late = replay(rennala, [(0, 0, 0), (1, 0, 0)])  # the step was not taken yet
    assert (late.use, late.then) == (False, Then.WAIT)


def test_malenia_needs_every_worker() -> None:
    malenia = Malenia(2, batch_size=2)
    decisions = replay(malenia, [(0, 0, 0)] * 5 + [(1, 0, 0)])
    assert [d.step for d in decisions] == [False] * 5 + [True]
    assert malenia.awaited() == ()


@given(
    n_workers=st.integers(1, 6), batch_size=st.integers(1, 60), data=st.data(), first=st.booleans()
)
def test_malenia_stops_exactly_at_the_harmonic_mean(n_workers, batch_size, data, first) -> None:
    """The step completes at the first arrival for which n^2 >= M sum 1/M_i, in fractions."""
    sizes = {"batch_size": 1, "initial_batch_size": batch_size} if first else {}
    malenia = Malenia(n_workers, **({"batch_size": batch_size} | sizes))
    counts = [0] * n_workers
    for _ in range(5000):
        worker = data.draw(st.integers(0, n_workers - 1)) if sum(counts) < 40 else _poorest(counts)
        counts[worker] += 1
        reached = all(counts) and n_workers**2 >= batch_size * sum(Fraction(1, c) for c in counts)
        assert malenia.arrive(Arrival(worker, 0, 0)).step == reached
        if reached:
            return
    pytest.fail("never completed")


def _poorest(counts: list[int]) -> int:
    return counts.index(min(counts))


@pytest.mark.parametrize(
    ("arrivals", "message"),
    [
        ([(5, 0, 0)], "worker = 5: this fleet has workers 0 to 1"),
        ([(-1, 0, 0)], "worker = -1"),
        ([(0, 1, 0)], "version = 1: a point can only come from server steps 0 to 0"),
        ([(0, -1, 0)], "version = -1"),
        ([(0, 3, 3), (0, 1, 1)], "current_version = 1: the server had already taken 3 steps"),
    ],
)
@pytest.mark.parametrize("name", COORDINATORS)
def test_impossible_arrivals_are_refused(name, arrivals, message) -> None:
    coordinator = COORDINATORS[name](2, **PARAMETERS[name][0])
    replay(coordinator, arrivals[:-1])
    with pytest.raises(ProtocolError, match=message):
        coordinator.arrive(Arrival(*arrivals[-1]))


@pytest.mark.parametrize("make", [Rennala, Malenia])
def test_cancelled_work_can_not_arrive(make) -> None:
    coordinator = make(1, batch_size=1)
    replay(coordinator, [(0, 0, 0), (0, 1, 1)])
    with pytest.raises(ProtocolError, match="was cancelled"):
        coordinator.arrive(Arrival(0, 1, 2))


def test_synchronous_refuses_stale_second_and_surplus_deliveries() -> None:
    synchronous = Synchronous(3, wait_for=2)
    replay(synchronous, [(0, 0, 0)])
    with pytest.raises(ProtocolError, match="worker 0 has delivered"):
        synchronous.arrive(Arrival(0, 0, 0))
    replay(synchronous, [(1, 0, 0)])
    with pytest.raises(ProtocolError, match="had its 2 deliveries"):
        synchronous.arrive(Arrival(2, 0, 0))
    with pytest.raises(ProtocolError, match="stale"):
        synchronous.arrive(Arrival(2, 0, 1))


@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        (Rennala, {"batch_size": 0}, r"batch_size = 0: expected an integer >= 1 \(gradients\)"),
        (Rennala, {"batch_size": 2.5}, "batch_size = 2.5"),
        (Rennala, {"batch_size": True}, "batch_size = True"),
        (Rennala, {"batch_size": 1, "stale": "keep"}, "stale = 'keep': expected 'cancel' or"),
        (Malenia, {"batch_size": 1, "initial_batch_size": -1}, "initial_batch_size = -1"),
        (Ringmaster, {"max_staleness": 0}, r"max_staleness = 0: .* \(server steps\)"),
        (Buffered, {"buffer_size": 0}, "buffer_size = 0"),
        (Synchronous, {"wait_for": 5}, r"wait_for = 5: expected an integer from 1 to 3 \(workers"),
        (Synchronous, {"gradients_per_worker": 0}, "gradients_per_worker = 0"),
    ],
)
def test_nonsense_parameters_are_refused(make, parameters, message) -> None:
    with pytest.raises(ValueError, match=message):
        make(3, **parameters)
