import doctest
import math

import hypothesis.strategies as st
import pytest
from hypothesis import given

import simulator.links as links
from simulator.errors import ConfigurationError
from simulator.links import Link, ring_allreduce_seconds, tree_allreduce_seconds

LINK = Link(latency_seconds=0.25, bandwidth_bytes_per_second=1000.0)


def test_examples():
    assert doctest.testmod(links).failed == 0


@given(n=st.integers(1, 1000), size=st.floats(0, 1e9))
def test_ring_is_its_formula(n, size):
    expected = 2 * (n - 1) * 0.25 + 2 * (n - 1) / n * size / 1000

    assert ring_allreduce_seconds(n, LINK, size) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("n", "rounds"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (2**49, 49)])
def test_tree_takes_a_logarithm_of_rounds(n, rounds):
    assert tree_allreduce_seconds(n, LINK, 500) == 2 * rounds * 0.75


def test_ring_by_simulating_its_rounds():
    """Pass chunks around until every worker holds every other's share of the sum."""
    n, size = 5, 1000.0
    held = [[{w} for _ in range(n)] for w in range(n)]  # held[w][chunk]: whose numbers are in it
    seconds = 0.0
    for step in range(2 * (n - 1)):
        sent = [(w, (w - step) % n, held[w][(w - step) % n]) for w in range(n)]
        for w, chunk, share in sent:
            target = held[(w + 1) % n]
            target[chunk] = target[chunk] | share
        seconds += LINK.seconds(size / n)

    assert all(share == set(range(n)) for chunks in held for share in chunks)
    assert ring_allreduce_seconds(n, LINK, size) == pytest.approx(seconds)


def test_a_message_takes_latency_and_bytes_over_bandwidth():
    assert LINK.seconds(links.message_bytes(100)) == 0.25 + 400 / 1000
    assert Link(latency_seconds=2.0).seconds(1e12) == 2.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Link(latency_seconds=-1.0), "latency_seconds = -1.0: expected a finite"),
        (lambda: Link(latency_seconds=math.nan), "latency_seconds = nan"),
        (lambda: Link(0.0, 0.0), "bandwidth_bytes_per_second = 0.0: expected a number > 0"),
        (lambda: Link("fast"), "latency_seconds = 'fast': expected a finite number"),
        (lambda: Link(0.0, True), "bandwidth_bytes_per_second = True: expected a number"),
        (lambda: Link(0.0, math.nan), "bandwidth_bytes_per_second = nan"),
        (lambda: LINK.seconds(-1), "message_bytes = -1"),
        (lambda: links.message_bytes(0), "dimension = 0: expected an integer >= 1"),
        (lambda: links.message_bytes(1, 0), "bytes_per_number = 0"),
        (lambda: ring_allreduce_seconds(0, LINK, 1.0), "n_workers = 0: expected an integer >= 1"),
        (lambda: tree_allreduce_seconds(0, LINK, 1.0), "n_workers = 0: expected an integer >= 1"),
    ],
)
def test_impossible_links_are_refused(make, message):
    with pytest.raises(ConfigurationError, match=message):
        make()
