import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.accounting import time_spent, union_seconds
from simulator.schedule import Schedule, Status

USES = ("useful", "wasted", "unfinished", "communicating", "idle")


def make_schedule(n_workers, end, computations, messages=(), collectives=()):
    """Computations (worker, start, stop, status), messages (worker, sent, received), collectives.

    Collectives are pairs (close, step), in order.
    """
    rows = np.array([tuple(map(float, row)) for row in computations]).reshape(-1, 4)
    sends = np.array(sorted(messages, key=lambda row: row[1]), float).reshape(-1, 3)
    steps = np.array(collectives, float).reshape(-1, 2)
    n = len(rows)
    return Schedule(
        n_workers=n_workers,
        end_seconds=end,
        worker=rows[:, 0].astype(np.int32),
        k=np.zeros(n, np.int32),
        version=np.zeros(n, np.int32),
        start_seconds=rows[:, 1],
        stop_seconds=rows[:, 2],
        status=rows[:, 3].astype(np.int8),
        step=np.full(n, -1, np.int32),
        weight=np.zeros(n),
        step_seconds=steps[:, 1],
        close_seconds=steps[:, 0],
        uploads=np.zeros(len(steps), np.int64),
        message_worker=sends[:, 0].astype(np.int32),
        message_direction=np.zeros(len(sends), np.int8),
        message_sent_seconds=sends[:, 1],
        message_received_seconds=sends[:, 2],
    )


def uses(spent):
    return {name: getattr(spent, name).tolist() for name in USES}


def test_computing_by_what_became_of_it():
    schedule = make_schedule(
        2,
        10.0,
        [
            (0, 0, 3, Status.USED),
            (0, 3, 5, Status.DISCARDED),
            (0, 5, 6, Status.CANCELLED),
            (0, 8, np.inf, Status.IN_FLIGHT),
            (1, 0, 20, Status.IN_FLIGHT),
        ],
    )
    assert uses(time_spent(schedule)) == {
        "useful": [3, 0],
        "wasted": [3, 0],
        "unfinished": [2, 10],
        "communicating": [0, 0],
        "idle": [2, 0],
    }
    assert time_spent(schedule).shares() == (0.15, 0.15, 0.6, 0.0, 0.1)


def test_a_message_counts_where_the_worker_does_not_compute():
    messages = [(0, 0, 2), (0, 3, 6), (1, 9, 99)]
    schedule = make_schedule(2, 10.0, [(0, 2, 4, Status.USED)], messages)
    assert time_spent(schedule).communicating.tolist() == [4, 1]
    assert time_spent(schedule).idle.tolist() == [4, 9]


def test_a_dropped_message_ends_when_the_next_is_sent():
    messages = [(0, 0, 100), (0, 4, 5)]
    schedule = make_schedule(1, 10.0, [(0, 5, 6, Status.USED)], messages)
    assert time_spent(schedule).communicating.tolist() == [5]


def test_a_collective_keeps_every_worker_but_those_that_compute():
    computations = [(0, 0, 3, Status.USED), (1, 0, 4, Status.DISCARDED), (0, 5, 9, Status.USED)]
    schedule = make_schedule(2, 12.0, computations, collectives=[(3, 5), (9, 11)])
    assert time_spent(schedule).communicating.tolist() == [4, 3]
    assert time_spent(schedule).idle.tolist() == [1, 5]


def test_a_run_of_no_time_and_a_run_of_nothing():
    spent = time_spent(make_schedule(3, 0.0, [(0, 0, 5, Status.IN_FLIGHT)], [(1, 0, 4)]))
    assert spent.total().tolist() == [0, 0, 0]
    assert np.isnan(spent.shares()).all()
    spent = time_spent(make_schedule(2, 4.0, []))
    assert spent.idle.tolist() == [4, 4]
    assert spent.idle.dtype == spent.useful.dtype == np.float64


def test_two_things_at_a_time_are_refused():
    schedule = make_schedule(1, 4.0, [(0, 0, 4, Status.USED), (0, 1, 2, Status.USED)])
    with pytest.raises(ValueError, match="worker 0 does more than one thing at a time, by 1 s"):
        time_spent(schedule)


def cells(intervals, end):
    """Unit cells [c, c + 1) of 0..end that intervals with integer ends cover."""
    covered = np.zeros(end, bool)
    for start, stop in intervals:
        covered[start : min(stop, end)] = True
    return covered


times = st.lists(st.integers(0, 30), unique=True, max_size=12).map(sorted)


@settings(max_examples=150, deadline=None)
@given(
    fleet=st.lists(st.tuples(times, times), min_size=1, max_size=4),
    collectives=times,
    end=st.integers(1, 30),
    scale=st.sampled_from([1.0, 0.1, 1e-6, 1 / 3]),
    star=st.booleans(),
    data=st.data(),
)
def test_against_counting_cells_of_time(fleet, collectives, end, scale, star, data):
    """The sums of a slow, obvious count; and they add up to the fleet's time."""

    def pairs(values):
        return list(zip(values[::2], values[1::2], strict=False))

    computations, messages, expected = [], [], {name: [] for name in USES}
    for worker, (busy, talking) in enumerate(fleet):
        by_status = {status: [] for status in Status}
        for start, stop in pairs(busy):
            status = data.draw(st.sampled_from(Status))
            by_status[status].append((start, stop))
            computations.append((worker, start * scale, stop * scale, status))
        messages += [(worker, a * scale, b * scale) for a, b in pairs(talking)]
        computing = cells(pairs(busy), end)
        network = cells(pairs(talking if star else collectives), end)
        expected["useful"].append(cells(by_status[Status.USED], end).sum())
        dropped = by_status[Status.DISCARDED] + by_status[Status.CANCELLED]
        expected["wasted"].append(cells(dropped, end).sum())
        expected["unfinished"].append(cells(by_status[Status.IN_FLIGHT], end).sum())
        expected["communicating"].append((network & ~computing).sum())
        expected["idle"].append((~network & ~computing).sum())
    steps = [(a * scale, b * scale) for a, b in pairs(collectives)]
    if star and not messages:
        steps = []
    schedule = make_schedule(len(fleet), end * scale, computations, messages if star else (), steps)
    spent = time_spent(schedule)
    for name in USES:
        seconds = np.array(expected[name]) * scale
        np.testing.assert_allclose(getattr(spent, name), seconds, rtol=0, atol=1e-13 * end * scale)
    total = len(fleet) * schedule.end_seconds
    assert spent.total().sum() == pytest.approx(total, rel=1e-13)
    assert sum(spent.shares()) == pytest.approx(1.0, rel=1e-13)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 20)), max_size=15))
def test_unions_of_any_intervals(rows):
    rows = [(who, min(a, b), max(a, b)) for who, a, b in rows]
    columns = np.array(rows, float).reshape(-1, 3)
    union = union_seconds(columns[:, 0].astype(int), columns[:, 1], columns[:, 2], 3)
    slow = [cells([(a, b) for who, a, b in rows if who == w], 20).sum() for w in range(3)]
    assert union.tolist() == slow


def test_a_million_computations_in_seconds():
    n, n_workers = 1_000_000, 100
    worker = np.tile(np.arange(n_workers), n // n_workers)
    start = np.repeat(np.arange(n // n_workers), n_workers).astype(float)
    schedule = make_schedule(n_workers, n / n_workers, [])
    columns = {
        "worker": worker.astype(np.int32),
        "start_seconds": start,
        "stop_seconds": start + 0.25,
        "status": np.ones(n, np.int8),
        "message_worker": worker.astype(np.int32),
        "message_sent_seconds": start + 0.25,
        "message_received_seconds": start + 0.75,
    }
    began = time.perf_counter()
    spent = time_spent(Schedule(**(vars(schedule) | columns)))
    assert time.perf_counter() - began < 20  # about 1 s; a loop over pairs would take hours
    assert spent.shares() == pytest.approx((0.25, 0.0, 0.0, 0.5, 0.25))
