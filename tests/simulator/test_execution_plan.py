"""Plans: every used gradient once, at a known point, in a place of its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_executors import schedules

from simulator.executors.plan import choose_sizes, make_plan, round_up, split
from simulator.executors.segmented import most_rows
from simulator.schedule import Schedule


@settings(max_examples=100, deadline=None)
@given(schedule=schedules(), max_steps=st.integers(1, 9))
def test_a_plan_is_executable(schedule: Schedule, max_steps: int) -> None:
    plan = make_plan(schedule, max_steps)
    known = {0}  # versions in the window of points
    slots: dict[int, int] = {}  # slot -> row that waits there
    used = []
    for segment in range(plan.n_segments):
        first, stop = plan.bounds[segment : segment + 2].tolist()
        assert first < stop <= first + max_steps
        window = min(known)
        positions = range(*plan.computes[segment : segment + 2].tolist())
        for position in positions:
            row = int(plan.rows[position])
            version = window + int(plan.points[position])
            assert version == schedule.version[row]
            assert version in known
            if not plan.is_batch[segment]:
                assert plan.slots[position] not in slots
                slots[int(plan.slots[position])] = row
        for step in range(first, stop):
            mine = plan.uses[plan.offsets[step] : plan.offsets[step + 1]]
            assert (schedule.step[plan.rows[mine]] == step).all()
            assert plan.staleness[step] == step - schedule.version[plan.rows[mine]].min()
            if plan.is_batch[segment]:
                assert sorted(mine.tolist()) == list(positions)
                assert stop == first + 1
            else:
                for position in mine:
                    row = slots.pop(int(plan.slots[position]))
                    assert row == plan.rows[position]
            used += plan.rows[mine].tolist()
        known = set(range(first + 1, stop + 1))
    assert not slots
    assert used == schedule.used_rows()[0].tolist()
    assert plan.bounds[-1] == schedule.n_steps


@given(counts=st.lists(st.integers(1, 3000), min_size=1), largest=st.integers(1, 1024))
def test_sizes_are_few_and_hold_everything(counts: list[int], largest: int) -> None:
    sizes = choose_sizes(counts, largest)
    assert 1 <= len(sizes) <= 4
    assert max(sizes) <= largest
    for count in counts:
        chunks = split(count, sizes)
        assert sum(rows for rows, _ in chunks) == count
        assert all(1 <= rows <= size and size in sizes for rows, size in chunks)


def test_constant_batches_are_not_padded() -> None:
    assert choose_sizes([50, 33, 33, 33], 1024) == (33, 50)


@pytest.mark.parametrize(("count", "size"), [(1, 1), (3, 4), (5, 6), (8, 8), (9, 12), (13, 16)])
def test_round_up(count: int, size: int) -> None:
    assert round_up(count) == size


def test_gradients_in_one_call_fit_into_memory() -> None:
    assert most_rows(400) == 1024
    assert most_rows(8_000_000) == 32
    assert most_rows(1 << 40) == 1


def test_waiting_gradients_share_their_places() -> None:
    """A long asynchronous run needs no more places than it has workers."""
    n, steps = 5, 400
    version = np.r_[np.zeros(n, int), np.arange(1, steps - n + 1)].astype(np.int32)
    none = np.zeros(0)
    schedule = Schedule(
        n_workers=n,
        end_seconds=float(steps),
        worker=(np.arange(steps) % n).astype(np.int32),
        k=(np.arange(steps) // n).astype(np.int32),
        version=version,
        start_seconds=version.astype(float),
        stop_seconds=np.arange(1.0, steps + 1),
        status=np.ones(steps, np.int8),
        step=np.arange(steps, dtype=np.int32),
        weight=np.ones(steps),
        step_seconds=np.arange(1.0, steps + 1),
        close_seconds=np.arange(1.0, steps + 1),
        uploads=np.arange(1, steps + 1),
        message_worker=none.astype(np.int32),
        message_direction=none.astype(np.int8),
        message_sent_seconds=none,
        message_received_seconds=none,
    )
    plan = make_plan(schedule, 1024)
    assert plan.n_slots == n
    assert plan.n_segments == steps // n
    assert not plan.is_batch.any()
