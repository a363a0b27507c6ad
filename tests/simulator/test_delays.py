import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from simulator.delays import DELAY_MODELS, Constant
from simulator.distributions import empirical, scipy_distribution
from simulator.errors import ConfigurationError
from simulator.randomness import Purpose, UniformStreams
from simulator.traces import Trace

SCALE = np.array([0.5, 1.0, 2.0, math.inf, 0.0, 3.0, 1.0])
N = len(SCALE)


def models():
    return {
        "constant": Constant(SCALE),
        "lognorm": scipy_distribution("lognorm", {"s": 1.0}, SCALE),
        "gamma": scipy_distribution("gamma", {"a": 0.3}, SCALE),
        "truncnorm": scipy_distribution("truncnorm", {"a": -1, "b": 3, "loc": 1}, SCALE),
        "empirical": empirical([3.0, 1.0, 2.0], SCALE),
        "trace": Trace([[1.0, 2.0, 3.0][: 1 + w % 3] for w in range(N)], SCALE),
    }


MODELS = models()
CALLS = st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, 5000)), min_size=1, max_size=60)


@pytest.mark.parametrize("name", MODELS)
@given(calls=CALLS)
@settings(max_examples=25, deadline=None)
def test_sampler_and_seconds_agree_in_every_bit_whatever_the_order(name, calls):
    delays = MODELS[name]
    sample = delays.sampler(7, Purpose.COMPUTE)
    workers = np.array([worker for worker, _ in calls], np.int32)
    ks = np.array([k for _, k in calls], np.int32)

    sampled = [sample(worker, k) for worker, k in calls]

    assert sampled == delays.seconds(7, Purpose.COMPUTE, workers, ks).tolist()
    assert all(type(value) is float and value >= 0 for value in sampled)


@pytest.mark.parametrize("name", MODELS)
@given(order=st.permutations([worker for worker in range(N) for _ in range(40)]))
@settings(max_examples=10, deadline=None)
def test_sampler_agrees_when_workers_take_turns_in_any_order(name, order):
    delays = MODELS[name]
    sample = delays.sampler(1, Purpose.UP)
    started = [0] * N
    sampled = []
    for worker in order:
        sampled.append((worker, started[worker], sample(worker, started[worker])))
        started[worker] += 1
    workers, ks, seconds = zip(*sampled, strict=True)

    expected = delays.seconds(1, Purpose.UP, np.array(workers), np.array(ks))

    assert list(seconds) == expected.tolist()


def test_long_runs_cross_every_block_boundary():
    delays = scipy_distribution("lognorm", {"s": 1.0}, np.ones(3))
    sample = delays.sampler(0, Purpose.COMPUTE)
    ks = np.arange(4000)

    sampled = [sample(1, int(k)) for k in ks]

    assert sampled == delays.seconds(0, Purpose.COMPUTE, np.ones_like(ks), ks).tolist()


@pytest.mark.parametrize("name", MODELS)
def test_bounds_hold_and_tell_who_never_finishes_or_takes_no_time(name):
    delays = MODELS[name]
    least, greatest = delays.bounds_seconds()
    workers, ks = np.divmod(np.arange(N * 50), 50)
    seconds = delays.seconds(0, Purpose.COMPUTE, workers, ks)

    assert least.shape == greatest.shape == (N,)
    assert (least[workers] <= seconds).all()
    assert (seconds <= greatest[workers]).all()
    assert least[3] == math.inf
    assert greatest[4] == 0


@pytest.mark.parametrize("name", MODELS)
def test_the_mean_is_that_of_many_delays(name):
    delays = MODELS[name]
    workers, ks = np.divmod(np.arange(N * 6000), 6000)
    seconds = delays.seconds(0, Purpose.COMPUTE, workers, ks).reshape(N, -1)
    finite = np.isfinite(seconds[:, 0])
    mean = delays.mean_seconds()

    assert mean.shape == (N,)
    assert mean[~finite].tolist() == [math.inf] * (~finite).sum()
    error = np.abs(seconds[finite].mean(1) - mean[finite])
    # Five standard errors of independent draws; a replay is not even one off.
    assert (error <= 5 * seconds[finite].std(1) / math.sqrt(6000) + 1e-12).all()


def test_a_distribution_without_a_mean_has_an_infinite_one():
    delays = scipy_distribution("pareto", {"b": 0.9}, np.array([1.0, 0.0]))
    assert delays.mean_seconds().tolist() == [math.inf, 0.0]


def test_the_seed_changes_random_delays_only():
    for delays in MODELS.values():
        workers = np.zeros(20, np.int32)
        ks = np.arange(20, dtype=np.int32)
        a, b = (delays.seconds(seed, Purpose.COMPUTE, workers, ks) for seed in (0, 1))
        assert ((a == b).all() != delays.is_random).all()


def test_more_workers_leave_the_first_as_they_were():
    small = scipy_distribution("expon", {}, np.ones(3))
    large = scipy_distribution("expon", {}, np.ones(300))
    draw, draw_large = (d.sampler(4, Purpose.COMPUTE) for d in (small, large))

    for k in range(50):
        for worker in range(3):
            assert draw(worker, k) == draw_large(worker, k)


def test_distributions_are_coupled_by_their_quantiles():
    workers, ks = np.zeros(500, np.int32), np.arange(500)
    draws = [
        delays.seconds(2, Purpose.COMPUTE, workers, ks)
        for delays in (
            scipy_distribution("expon", {}, [1.0]),
            scipy_distribution("lognorm", {"s": 2.0}, [5.0]),
            empirical([4.0, 0.5, 9.0, 2.0], [1.0]),
        )
    ]

    order = np.argsort(draws[0])
    assert all((np.diff(values[order]) >= 0).all() for values in draws)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("expon", {"scale": 2.0}),
        ("lognorm", {"s": 0.7}),
        ("gamma", {"a": 2.5, "loc": 1.0}),
        ("weibull_min", {"c": 1.5}),
        ("uniform", {"loc": 1, "scale": 2}),
    ],
)
def test_draws_follow_the_distribution(name, parameters):
    n = 20_000
    delays = scipy_distribution(name, parameters, [3.0])
    draws = delays.seconds(11, Purpose.COMPUTE, np.zeros(n, int), np.arange(n)) / 3.0
    frozen = getattr(stats, name)(**parameters)

    assert abs(draws.mean() - frozen.mean()) < 4 * frozen.std() / math.sqrt(n)
    assert stats.kstest(draws, frozen.cdf).pvalue > 1e-4


def test_a_draw_is_the_quantile_of_its_uniform():
    delays = scipy_distribution("gamma", {"a": 2.0, "scale": 3.0}, [1.0, 5.0])
    draws = UniformStreams(6, Purpose.COMPUTE).block(1, 0, 20)

    seconds = delays.seconds(6, Purpose.COMPUTE, np.ones(20, int), np.arange(20))

    np.testing.assert_allclose(seconds, 5.0 * stats.gamma.ppf(draws, 2.0, scale=3.0), rtol=1e-14)


def test_empirical_resamples_every_value_alike():
    n = 30_000
    delays = empirical([1.0, 2.0, 4.0], [2.0])

    seconds = delays.seconds(0, Purpose.COMPUTE, np.zeros(n, int), np.arange(n))

    values, counts = np.unique(seconds, return_counts=True)
    assert values.tolist() == [2.0, 4.0, 8.0]
    assert (abs(counts / n - 1 / 3) < 4 * math.sqrt(2 / 9 / n)).all()


def test_order_of_measured_values_does_not_matter():
    workers, ks = np.zeros(30, int), np.arange(30)
    a, b = (
        empirical(values, [1.0]).seconds(0, Purpose.UP, workers, ks)
        for values in ([1.0, 5.0, 2.0], [5.0, 2.0, 1.0])
    )

    assert a.tolist() == b.tolist()


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_empirical_index_stays_inside_for_extreme_draws(size):
    delays = empirical(np.arange(size, dtype=float), [1.0])

    ends = delays._quantile(np.array([2.0**-54, 1 - 2.0**-53]))

    assert ends.tolist() == [0.0, size - 1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, -2.0], r"seconds\[1\] = -2.0: expected a number >= 0"),
        ([math.nan], r"seconds\[0\] = nan: expected a number >= 0"),
        ([], "seconds: expected a non-empty flat list"),
        ([[1.0]], "seconds: expected a non-empty flat list"),
        (["soon"], "seconds: expected a list of numbers"),
        ([[1.0], [1.0, 2.0]], "seconds: expected a list of numbers"),
    ],
)
def test_impossible_constants_are_refused(values, message):
    with pytest.raises(ConfigurationError, match=message):
        Constant(values)


def test_a_model_keeps_its_own_copy():
    values = np.ones(2)
    delays = Constant(values)
    values[0] = 5.0

    assert delays.sampler(0, Purpose.COMPUTE)(0, 0) == 1.0


def test_every_model_is_listed_once_in_one_line():
    names = [model.name for model in DELAY_MODELS]

    assert names == ["constant", "distribution", "empirical", "trace"]
    assert all(model.summary and "\n" not in model.summary for model in DELAY_MODELS)
