"""Times of one aggregation: against the simulator, and against brute force in fractions."""

from __future__ import annotations

import heapq
import math
from fractions import Fraction

import numpy as np
import pytest
from fleets import ANY_FLEETS, EIGHTHS, FLEETS, random_fleets
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
from analysis.theory import aggregation, bounds
from analysis.theory.progress import ConstantSpeeds, first_instant
from analysis.theory.speeds import PiecewiseSpeeds
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.engine import simulate
from simulator.errors import ConfigurationError
from simulator.network import AllReduce, NoNetwork, Star

BATCHES = st.integers(1, 25)
STEPS = 4


def step_seconds(coordinator, seconds, network=None, steps=STEPS) -> np.ndarray:
    """How long each server step of a simulation took."""
    schedule = simulate(
        coordinator, Constant(seconds), network or NoNetwork(), Budget(steps=steps), 0
    )
    return np.diff(schedule.step_seconds, prepend=0.0)


@settings(max_examples=200, deadline=None)
@given(seconds=FLEETS, batch_size=BATCHES)
def test_rennala_and_malenia_equal_the_simulation(seconds, batch_size) -> None:
    n_workers = len(seconds)
    for cls, predict in (
        (Rennala, aggregation.rennala_seconds),
        (Malenia, aggregation.malenia_seconds),
    ):
        measured = step_seconds(cls(n_workers, batch_size), seconds)
        assert measured.tolist() == [predict(seconds, batch_size)] * STEPS


@settings(max_examples=100, deadline=None)
@given(
    fleet=st.lists(st.tuples(EIGHTHS, EIGHTHS, EIGHTHS), min_size=1, max_size=6),
    batch_size=BATCHES,
    data=st.data(),
)
def test_over_a_star_they_equal_the_simulation(fleet, batch_size, data) -> None:
    seconds, down, up = map(list, zip(*fleet, strict=True))
    n_workers = len(seconds)
    star = Star(Constant(down), Constant(up))
    wait_for = data.draw(st.integers(1, n_workers))
    expected = {
        Rennala(n_workers, batch_size): aggregation.rennala_star_seconds(
            seconds, batch_size, down, up
        ),
        Malenia(n_workers, batch_size): aggregation.malenia_star_seconds(
            seconds, batch_size, down, up
        ),
        Synchronous(n_workers, 3, wait_for): aggregation.synchronous_seconds(
            seconds, 3, wait_for, down, up
        ),
    }
    for coordinator, predicted in expected.items():
        assert step_seconds(coordinator, seconds, star).tolist() == [predicted] * STEPS


def test_of_simultaneous_gradients_only_as_many_send_as_count() -> None:
    up = [0.5, 8.0, 2.0]
    assert aggregation.rennala_star_seconds([1.0, 1.0, 1.0], 1, 0.0, up) == 1.5
    assert aggregation.rennala_star_seconds([1.0, 1.0, 1.0], 2, 0.0, up) == 9.0
    star = Star(Constant([0.0] * 3), Constant(up))
    assert step_seconds(Rennala(3, 1), [1.0] * 3, star).tolist() == [1.5] * STEPS


def test_counts_at_the_float_of_a_finish_and_the_one_before() -> None:
    """Where the quotient t/h is rounded across an integer, in either direction."""
    generator = np.random.default_rng(5)
    for start in (0.0, 0.7, 100.3):
        seconds = generator.uniform(0.1, 10, 5_000).tolist()
        k = generator.integers(1, 1000, 5_000).tolist()
        for h, count in zip(seconds, k, strict=True):
            fleet, finish = ConstantSpeeds([h], start), start + count * h
            assert fleet.counts(finish) == [count]
            assert fleet.counts(float(np.nextafter(finish, 0))) == [count - 1]


@settings(max_examples=60, deadline=None)
@given(seconds=FLEETS, batch=st.integers(1, 4), data=st.data())
def test_synchronous_and_backup_workers_equal_the_simulation(seconds, batch, data) -> None:
    n_workers = len(seconds)
    wait_for = data.draw(st.none() | st.integers(1, n_workers))
    coordinator = Synchronous(n_workers, batch, wait_for)
    network = AllReduce(Constant([0.75]))
    predicted = aggregation.synchronous_seconds(seconds, batch, wait_for) + 0.75
    assert step_seconds(coordinator, seconds, network).tolist() == [predicted] * STEPS


@settings(max_examples=40, deadline=None)
@given(fleet=st.lists(st.tuples(EIGHTHS, EIGHTHS, EIGHTHS), min_size=1, max_size=5))
def test_asynchronous_rates(fleet) -> None:
    """By t, floor(t / cycle) gradients of each worker; in the long run, the rate."""
    seconds, down, up = map(list, zip(*fleet, strict=True))
    star, horizon = Star(Constant(down), Constant(up)), 200.0
    cycles = aggregation.cycle_seconds(seconds, 1, down, up)
    arrived = int(np.floor(horizon / cycles).sum())
    for coordinator, per_step in ((Asynchronous(len(seconds)), 1), (Buffered(len(seconds), 3), 3)):
        schedule = simulate(coordinator, Constant(seconds), star, Budget(seconds=horizon), 0)
        assert schedule.n_steps == arrived // per_step
    rate = aggregation.arrivals_per_second(seconds, down, up)
    assert 0 <= rate * horizon - arrived < len(seconds) + 1e-9


@settings(max_examples=200, deadline=None)
@given(seconds=ANY_FLEETS, batch_size=BATCHES)
def test_any_floats_give_the_float_nearest_to_the_exact_time(seconds, batch_size) -> None:
    exact = [Fraction(h) for h in seconds]
    assert aggregation.rennala_seconds(seconds, batch_size) == float(
        brute_force(exact, lambda counts: sum(counts) >= batch_size)
    )
    assert aggregation.malenia_seconds(seconds, batch_size) == float(
        brute_force(exact, lambda counts: balanced(counts, batch_size))
    )


def brute_force(seconds, is_enough) -> Fraction:
    """Arrival after arrival, those of one instant together."""
    counts = [0] * len(seconds)
    queue = [(h, i) for i, h in enumerate(seconds)]
    heapq.heapify(queue)
    while True:
        now = queue[0][0]
        while queue[0][0] == now:
            _, worker = heapq.heappop(queue)
            counts[worker] += 1
            heapq.heappush(queue, ((counts[worker] + 1) * seconds[worker], worker))
        if is_enough(counts):
            return now


def balanced(counts, batch_size) -> bool:
    if min(counts) == 0:
        return False
    n = len(counts)
    return 1 / (sum(Fraction(1, count) for count in counts) / n) >= Fraction(batch_size, n)


def test_malenia_holds_up_to_equality() -> None:
    """1/2 + 1/3 + 1/6 = 1: the rule 3^2 >= M holds for M = 9, and for no more."""
    counts = np.array([2.0, 3.0, 6.0])
    assert aggregation.is_balanced(counts, 9)
    assert not aggregation.is_balanced(counts, 10)
    for count in range(1, 200):
        equal = np.full(7, float(count))
        assert aggregation.is_balanced(equal, 7 * count)
        assert not aggregation.is_balanced(equal, 7 * count + 1)


def test_bounds_hold_on_random_fleets() -> None:
    for seconds, batch_size in random_fleets(600, seed=1):
        rennala = aggregation.rennala_seconds(seconds, batch_size)
        malenia = aggregation.malenia_seconds(seconds, batch_size)
        assert rennala <= bounds.rennala_bound_seconds(seconds, batch_size)
        assert malenia <= bounds.malenia_bound_seconds(seconds, batch_size)
        assert rennala <= malenia  # harmonic means are below arithmetic ones


def test_bounds_hold_when_stale_work_is_finished_first() -> None:
    for seconds, batch_size in random_fleets(25, seed=2):
        for cls, bound in (
            (Rennala, bounds.rennala_bound_seconds),
            (Malenia, bounds.malenia_bound_seconds),
        ):
            coordinator = cls(len(seconds), batch_size, stale="discard")
            longest = step_seconds(coordinator, seconds, steps=8).max()
            assert longest <= bound(seconds, batch_size, "discard") * (1 + 1e-12)
            assert bound(seconds, batch_size, "discard") <= 2 * bound(seconds, batch_size)


def test_ringmaster_takes_no_longer_than_its_bound() -> None:
    for seconds, max_staleness in random_fleets(40, seed=3):
        times = np.cumsum(
            step_seconds(Ringmaster(len(seconds), max_staleness), seconds, steps=5 * max_staleness)
        )
        times = np.concatenate([[0.0], times])
        longest = (times[max_staleness:] - times[:-max_staleness]).max()
        assert longest <= bounds.ringmaster_bound_seconds(seconds, max_staleness) * (1 + 1e-12)


def test_best_workers_against_all_of_them() -> None:
    for seconds, shared in random_fleets(100, seed=4):
        every = [
            (1.5 + shared / m) / (sum(1 / h for h in seconds[:m]) / m)
            for m in range(1, len(seconds) + 1)
        ]
        found = bounds.best_workers(seconds, 1.5, shared)
        assert found.seconds == pytest.approx(min(every), rel=1e-12)
        assert every[found.workers - 1] == pytest.approx(min(every), rel=1e-12)
        waits = [h * (1.5 + shared / m) for m, h in enumerate(seconds, start=1)]
        assert bounds.best_wait_for(seconds, 1.5, shared).workers == 1 + int(np.argmin(waits))


def test_slow_workers_never_hurt_rennala_and_always_hurt_synchronous() -> None:
    seconds = [1.0, 1.5, 2.0]
    slow = [*seconds, 1e6, math.inf]
    assert aggregation.rennala_seconds(slow, 7) == aggregation.rennala_seconds(seconds, 7)
    assert bounds.best_workers(slow, 1, 7) == bounds.best_workers(seconds, 1, 7)
    assert aggregation.synchronous_seconds(slow) == math.inf
    assert aggregation.malenia_seconds(slow, 7) == math.inf
    assert aggregation.rennala_seconds([math.inf], 1) == math.inf


def test_a_large_fleet_and_a_large_batch() -> None:
    seconds = np.arange(1.0, 100_001.0)
    batch_size = 10**6
    found = aggregation.rennala_seconds(seconds, batch_size)
    assert np.floor(found / seconds).sum() >= batch_size
    assert np.floor(np.nextafter(found, 0) / seconds).sum() < batch_size


# -- speeds that change ---------------------------------------------------------------------------


@st.composite
def changing_speeds(draw):
    n_pieces = draw(st.integers(1, 5))
    lengths = draw(st.lists(st.integers(1, 20), min_size=n_pieces, max_size=n_pieces))
    speed = st.sampled_from([0, 0, 1, 2, 3, 5, 7]).map(lambda k: k / 4)
    rows = draw(
        st.lists(st.lists(speed, min_size=n_pieces, max_size=n_pieces), min_size=1, max_size=4)
    )
    times = [0, *np.cumsum(lengths)[:-1].tolist()]
    start = draw(st.integers(0, 40)) / 4
    return times, rows, start


@settings(max_examples=150, deadline=None)
@given(case=changing_speeds(), batch_size=st.integers(1, 12))
def test_changing_speeds_against_fractions(case, batch_size) -> None:
    times, rows, start = case
    fleet = PiecewiseSpeeds(times, rows, start)
    finishes = [exact_finishes(times, row, start, 40) for row in rows]
    for predict, is_enough in (
        (aggregation.rennala_seconds, lambda counts: sum(counts) >= batch_size),
        (aggregation.malenia_seconds, lambda counts: balanced(counts, batch_size)),
    ):
        exact = first_of(finishes, is_enough)
        if exact is not None:
            assert predict(fleet, batch_size) == pytest.approx(float(exact), rel=1e-13)
        elif all(row[-1] == 0 for row in rows):
            assert predict(fleet, batch_size) == math.inf


def exact_finishes(times, row, start, most) -> list[Fraction]:
    """Times after ``start`` at which the integral of the speed reaches 1, 2, ..."""
    ends = [*map(Fraction, times[1:]), None]
    finishes, done = [], Fraction(0)
    for begin, end, speed in zip(map(Fraction, times), ends, map(Fraction, row), strict=True):
        begin = max(begin, Fraction(start))
        if end is not None and end <= begin:
            continue
        while speed and len(finishes) < most:
            finish = begin + (len(finishes) + 1 - done) / speed
            if end is not None and finish > end:
                break
            finishes.append(finish - Fraction(start))
        done += 0 if end is None else (end - begin) * speed
    return finishes


def first_of(finishes, is_enough) -> Fraction | None:
    for now in sorted({time for row in finishes for time in row}):
        if is_enough([sum(time <= now for time in row) for row in finishes]):
            return now
    return None


@settings(max_examples=60, deadline=None)
@given(seconds=FLEETS, batch_size=BATCHES)
def test_speeds_that_do_not_change(seconds, batch_size) -> None:
    fleet = PiecewiseSpeeds([0.0], [[1 / h] for h in seconds])
    for predict in (aggregation.rennala_seconds, aggregation.malenia_seconds):
        assert predict(fleet, batch_size) == pytest.approx(predict(seconds, batch_size), rel=1e-13)
    later = fleet.started_at(3.7)
    assert aggregation.rennala_seconds(later, batch_size) == pytest.approx(
        aggregation.rennala_seconds(seconds, batch_size), rel=1e-12
    )


def test_first_instant_is_the_least_float() -> None:
    for threshold in (5e-324, 1e-9, 0.1, 1.0, 3.7e5, 1e200):
        assert first_instant(lambda t, least=threshold: t >= least) == threshold
    assert first_instant(lambda t: False) == math.inf


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: aggregation.rennala_seconds([1.0, 0.0], 2), r"\[1\] = 0.0: expected .* > 0"),
        (lambda: aggregation.rennala_seconds([], 2), "seconds_per_gradient: expected a non-empty"),
        (lambda: aggregation.rennala_seconds([1.0, math.nan], 2), r"\[1\] = nan"),
        (lambda: aggregation.malenia_seconds([1.0], 0), "batch_size = 0: expected an"),
        (lambda: bounds.rennala_bound_seconds([2.0, 1.0], 2), r"\[1\] = 1.0: comes after 2.0"),
        (lambda: bounds.best_workers([math.inf], 1, 1), "no worker ever finishes"),
        (lambda: bounds.rennala_bound_seconds([1.0], 2, "drop"), "stale = 'drop': expected"),
        (lambda: ConstantSpeeds([1.0, 2.0], [0.0]), "start_seconds: 1 numbers for 2 workers"),
        (lambda: PiecewiseSpeeds([0.0, 1.0], [[1.0]]), r"speeds: shape \(1, 1\)"),
        (lambda: PiecewiseSpeeds([1.0], [[1.0]]), "times: expected .* starts at 0"),
        (lambda: PiecewiseSpeeds([0.0], [[-1.0]]), r"speeds\[0, 0\] = .*-1.0"),
        (lambda: aggregation.synchronous_seconds([1.0], wait_for=2), "wait_for = 2: .* 1 to 1"),
    ],
)  # fmt: skip
def test_mistakes_are_named(call, text) -> None:
    with pytest.raises(ConfigurationError, match=text):
        call()
