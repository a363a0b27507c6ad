"""Mean times under gamma delays: closed forms where they exist, else sampling without engine."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.theory import renewal
from simulator.errors import ConfigurationError

SAMPLES = 40_000


def finish_times(means, shape, count, seed) -> np.ndarray:
    """When each worker finishes its k-th gradient, [samples, n_workers, count]."""
    generator = np.random.default_rng(seed)
    draws = generator.gamma(shape, 1 / shape, (SAMPLES, len(means), count))
    return np.cumsum(draws * np.asarray(means)[:, None], axis=2)


def assert_mean(samples: np.ndarray, expected: float) -> None:
    error = samples.std() / math.sqrt(len(samples))
    assert abs(samples.mean() - expected) < 4.5 * error
    assert error < 0.02 * expected  # so that a wrong formula would show


@pytest.mark.parametrize("size", [1, 2, 7])
def test_rennala_exponential_is_a_poisson_process(size) -> None:
    means = [0.5, 1.0, 3.0]
    found = renewal.expected_rennala_seconds(means, 1.0, size)
    assert found == pytest.approx(size / sum(1 / h for h in means), rel=1e-8)


@pytest.mark.parametrize("shape", [0.5, 1.0, 4.0])
def test_one_worker_takes_its_mean_every_time(shape) -> None:
    assert renewal.expected_rennala_seconds([2.0], shape, 3) == pytest.approx(6.0, rel=1e-8)
    assert renewal.expected_malenia_seconds([2.0], shape, 3) == pytest.approx(6.0, rel=1e-8)
    found = renewal.expected_synchronous_seconds([2.0], shape, 3)
    assert found == pytest.approx(6.0, rel=1e-8)


def test_synchronous_exponential_is_the_sum_of_the_gaps_between_order_statistics() -> None:
    for count in range(1, 6):
        expected = 2.0 * sum(1 / (5 - k) for k in range(count))
        found = renewal.expected_synchronous_seconds([2.0] * 5, 1.0, 1, count)
        assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("shape", "size"), [(0.5, 4), (1.0, 1), (4.0, 9)])
def test_rennala_against_sampling(shape, size) -> None:
    means = [0.7, 1.0, 2.5]
    times = finish_times(means, shape, size, seed=size).reshape(SAMPLES, -1)
    assert_mean(
        np.sort(times, axis=1)[:, size - 1],
        renewal.expected_rennala_seconds(means, shape, size),
    )


@pytest.mark.parametrize(("shape", "batch", "wait_for"), [(0.5, 2, 3), (4.0, 1, 2), (2.0, 3, 1)])
def test_synchronous_against_sampling(shape, batch, wait_for) -> None:
    means = [0.7, 1.0, 2.5]
    times = finish_times(means, shape, batch, seed=batch)[:, :, -1]
    assert_mean(
        np.sort(times, axis=1)[:, wait_for - 1],
        renewal.expected_synchronous_seconds(means, shape, batch, wait_for),
    )


@pytest.mark.parametrize(("shape", "size"), [(0.5, 3), (1.0, 4), (4.0, 2)])
def test_malenia_against_sampling(shape, size) -> None:
    means = [1.0, 2.0]
    times = finish_times(means, shape, 60, seed=size)
    events = np.sort(times.reshape(SAMPLES, -1), axis=1)
    ended = np.full(SAMPLES, np.nan)
    for column in range(events.shape[1]):
        open_ = np.isnan(ended)
        if not open_.any():
            break
        now = events[open_, column]
        counts = (times[open_] <= now[:, None, None]).sum(axis=2)
        with np.errstate(divide="ignore"):
            harmonic = 1 / (1 / counts).mean(axis=1)
        ended[open_] = np.where(harmonic >= size / 2 - 1e-12, now, np.nan)
    assert_mean(ended, renewal.expected_malenia_seconds(means, shape, size))


@pytest.mark.parametrize("shape", [0.5, 1.0, 4.0])
def test_arrivals_against_sampling(shape) -> None:
    means, horizon = [0.7, 1.0, 2.5], 4.0
    times = finish_times(means, shape, 80, seed=5)
    assert times[:, :, -1].min() > horizon
    counts = (times <= horizon).sum(axis=(1, 2)).astype(float)
    assert_mean(counts, renewal.expected_arrivals(means, shape, horizon))


def test_arrivals_exponential_are_proportional_to_time() -> None:
    found = renewal.expected_arrivals([0.5, 2.0], 1.0, 3.0)
    assert found == pytest.approx(3.0 * 2.5, rel=1e-9)


def test_nearly_constant_delays_give_the_constant_formulas() -> None:
    found = renewal.expected_synchronous_seconds([1.0, 2.0, 4.0], 1e6, 2)
    assert found == pytest.approx(8.0, rel=1e-3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: renewal.expected_rennala_seconds([1.0, 0.0], 1.0, 1), "mean_seconds"),
        (lambda: renewal.expected_rennala_seconds([1.0], 0.0, 1), "shape"),
        (lambda: renewal.expected_rennala_seconds([1.0], 1.0, 0), "batch_size"),
        (lambda: renewal.expected_rennala_seconds([math.inf], 1.0, 1), "finite"),
        (lambda: renewal.expected_malenia_seconds([1.0] * 9, 1.0, 9), "fewer workers"),
        (lambda: renewal.expected_synchronous_seconds([1.0], 1.0, 1, 2), "wait_for"),
        (lambda: renewal.expected_arrivals([1.0], 1.0, -1.0), "seconds"),
    ],
)
def test_bad_numbers_are_named(call, text) -> None:
    with pytest.raises(ConfigurationError, match=text):
        call()
