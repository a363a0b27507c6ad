import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from simulator.randomness import Purpose, UniformStreams


def numpy_uniforms(seed, purpose, worker, count):
    """The definition, by NumPy alone: Philox keyed by (hash of seed and purpose, worker)."""
    key = np.random.SeedSequence([seed, int(purpose)]).generate_state(1, np.uint64)[0]
    words = np.random.Philox(key=np.array([key, worker], np.uint64)).random_raw(count)
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


# Seeds 0 .. 9 give keys above and below 2^63, where NumPy's conversion of lists changes type.
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("worker", [0, 1, 99_999])
def test_stream_is_numpys_philox(seed, worker):
    block = UniformStreams(seed, Purpose.UP).block(worker, 0, 37)

    assert block.tolist() == numpy_uniforms(seed, Purpose.UP, worker, 37).tolist()


@given(
    calls=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 300), st.integers(1, 70)), min_size=1
    )
)
@settings(max_examples=100, deadline=None)
def test_any_block_in_any_order_is_a_window_of_the_stream(calls):
    streams = UniformStreams(3, Purpose.COMPUTE)
    whole = [numpy_uniforms(3, Purpose.COMPUTE, worker, 400) for worker in range(6)]

    for worker, start, count in calls:
        block = streams.block(worker, start, count)
        assert block.tolist() == whole[worker][start : start + count].tolist()


@given(pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 500))))
@settings(max_examples=100, deadline=None)
def test_single_draws_are_those_of_the_blocks(pairs):
    streams = UniformStreams(8, Purpose.DOWN)
    workers = np.array([worker for worker, _ in pairs], np.int32)
    ks = np.array([k for _, k in pairs], np.int32)

    expected = [streams.block(worker, k, 1)[0] for worker, k in pairs]

    assert streams.at(workers, ks).tolist() == expected


def test_a_far_draw_costs_no_memory():
    streams = UniformStreams(0, Purpose.COMPUTE)

    draws = streams.at(np.array([0, 0], np.int32), np.array([2_000_000_000, 0], np.int32))

    assert draws.tolist() == [
        streams.block(0, 2_000_000_000, 1)[0],
        streams.block(0, 0, 1)[0],
    ]


def test_blocks_of_several_workers_are_their_blocks():
    streams = UniformStreams(1, Purpose.COMPUTE)

    together = streams.blocks(range(3, 6), 5, 7)

    assert together.tolist() == [streams.block(w, 5, 7).tolist() for w in (3, 4, 5)]


def test_seed_purpose_and_worker_each_give_another_stream():
    first = UniformStreams(0, Purpose.COMPUTE).block(0, 0, 8)
    others = [
        UniformStreams(1, Purpose.COMPUTE).block(0, 0, 8),
        UniformStreams(0, Purpose.UP).block(0, 0, 8),
        UniformStreams(0, Purpose.COMPUTE).block(1, 0, 8),
    ]

    assert all((other != first).all() for other in others)


def test_draws_are_uniform_and_workers_uncorrelated():
    n = 20_000
    a, b = UniformStreams(5, Purpose.COMPUTE).blocks(range(2), 0, n)

    # Variance of U is 1/12, of (U - 1/2)^2 is 1/180; 4 standard errors each.
    assert abs(a.mean() - 0.5) < 4 * np.sqrt(1 / 12 / n)
    assert abs(((a - 0.5) ** 2).mean() - 1 / 12) < 4 * np.sqrt(1 / 180 / n)
    assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(n)


def test_the_extreme_words_stay_inside_the_unit_interval():
    from simulator.randomness import _to_unit_interval

    low, high = _to_unit_interval(np.array([0, 2**64 - 1], np.uint64))

    assert 0 < low < high < 1
