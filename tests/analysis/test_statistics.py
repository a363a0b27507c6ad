import math

import numpy as np
import pytest
from analysis_data import LOSS, REWARD, curve
from hypothesis import given
from hypothesis import strategies as st

from analysis import statistics

finite = st.floats(-1e6, 1e6)


def test_hold_is_the_last_value_and_before_the_first_point_the_first():
    x, y = np.array([1.0, 2.0, 2.0, 4.0]), np.array([10.0, 20.0, 30.0, 40.0])
    grid = np.array([0.0, 1.0, 1.9, 2.0, 3.9, 4.0, 99.0])
    assert statistics.hold(x, y, grid).tolist() == [10, 10, 10, 30, 30, 40, 40]


def test_the_grid_loses_no_point_of_any_curve():
    grid = statistics.common_grid([np.array([0, 2, 2]), np.array([1, 2, 5])])
    assert grid.tolist() == [0, 1, 2, 5]
    assert statistics.common_grid([np.arange(9001)], 4).tolist() == [0, 3000, 6000, 9000]


@given(st.lists(finite, min_size=1, max_size=9), st.floats(0, 1))
def test_quantiles_are_numpys_on_numbers(values, q):
    assert statistics.quantile(values, q) == pytest.approx(
        np.quantile(values, q, method="linear"), rel=1e-12, abs=1e-9
    )


def test_quantiles_next_to_infinity_are_infinite_not_nan():
    times = [3.0, 1.0, math.inf, 2.0, math.inf]
    assert statistics.quantile(times, 0.5) == 3.0
    assert statistics.quantile(times, 0.5 + 1e-9) == math.inf
    assert statistics.quantile([math.inf, math.inf], 0.3) == math.inf
    assert statistics.quantile([1.0, math.inf], 0.0) == 1.0


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_a_diverged_seed_is_the_worst_not_absent(higher_is_better):
    sign = 1 if higher_is_better else -1
    values = sign * np.array([1.0, 2.0, math.nan])
    # Worst to best: diverged, 1, 2 (times sign); dropping it instead would say 1.5.
    assert statistics.band(values, higher_is_better).median == sign * 1.0
    assert math.isnan(statistics.band(sign * np.array([1.0, math.nan]), higher_is_better).median)
    assert np.isnan(statistics.band([math.nan], higher_is_better)).all()


def test_bands_are_per_grid_point():
    values = np.arange(11.0)[:, None] * np.array([1.0, 10.0])
    median, low, high = statistics.band(values, True)
    assert median.tolist() == [5, 50]
    np.testing.assert_allclose(low, [2, 20])
    np.testing.assert_allclose(high, [8, 80])


def test_a_method_is_held_to_the_end_of_its_longest_seed():
    short = curve("a", 0, [0, 1], {"return": [0, 1]})
    long = curve("a", 1, [0, 2, 3], {"return": [0, 5, 9]})
    grid, band = statistics.band_over([short, long], REWARD, "gradients")
    assert grid.tolist() == [0, 10, 20, 30]
    assert band.median.tolist() == [0, 0.5, 3, 5]


def test_areas_are_of_steps():
    x, y = np.array([1.0, 2.0, 2.0, 4.0]), np.array([10.0, 99.0, 30.0, 40.0])
    assert statistics.area_under_curve(x, y, 0.0, 5.0) == 10 * 2 + 30 * 2 + 40
    assert statistics.area_under_curve(x, y, 1.5, 3.0) == 5 + 30
    assert statistics.area_under_curve(x, y, 3.0, 3.0) == 0
    assert statistics.area_under_curve(x, y, 7.0, 9.0) == 80


def test_the_first_time_a_target_is_reached():
    rises = curve("a", 0, [0, 1, 2, 3], {"return": [0, 5, math.nan, 9]})
    assert statistics.seconds_to_target(rises, REWARD, 5.0) == 1
    assert statistics.seconds_to_target(rises, REWARD, 5.1) == 3
    assert statistics.seconds_to_target(rises, REWARD, -1.0) == 0
    assert statistics.seconds_to_target(rises, REWARD, 9.1) == math.inf
    assert math.isnan(statistics.seconds_to_target(rises, REWARD, math.nan))
    falls = curve("a", 0, [0, 1, 2], {"loss_gap": [3, 1, 2]})
    assert statistics.seconds_to_target(falls, LOSS, 1.0) == 1
    assert statistics.seconds_to_target(falls, LOSS, 0.5) == math.inf


def test_final_and_best():
    values = curve("a", 0, [0, 1, 2], {"return": [math.nan, 7, 3], "loss_gap": [4, 2, math.inf]})
    assert statistics.final_value(values, REWARD) == 3
    assert statistics.best_value(values, REWARD) == 7
    assert statistics.best_value(values, LOSS) == 2
    nowhere = curve("a", 0, [0], {"return": [math.nan]})
    assert math.isnan(statistics.best_value(nowhere, REWARD))


def test_the_default_target_is_most_of_the_best_way():
    curves = {
        "good": [
            curve("good", s, [0, 1], {"return": [10, end]}) for s, end in enumerate([90, 110])
        ],
        "bad": [curve("bad", 0, [0, 1], {"return": [10, 20]})],
        "broken": [curve("broken", 0, [0, 1], {"return": [10, math.nan]})],
        "unfinished": [],
    }
    assert statistics.default_target(curves, REWARD) == pytest.approx(10 + 0.9 * 90)
    assert statistics.default_target(curves, REWARD, 0.5) == pytest.approx(55)
    losses = {"a": [curve("a", 0, [0, 1], {"loss_gap": [10.0, 2.0]})]}
    assert statistics.default_target(losses, LOSS) == pytest.approx(2.8)


def test_there_is_no_default_target_without_progress():
    flat = {"a": [curve("a", 0, [0, 1], {"return": [10, 10]})]}
    assert math.isnan(statistics.default_target(flat, REWARD))
    worse = {"a": [curve("a", 0, [0, 1], {"return": [10, 5]})]}
    assert math.isnan(statistics.default_target(worse, REWARD))
    diverged = {"a": [curve("a", 0, [0, 1], {"return": [10, math.nan]})]}
    assert math.isnan(statistics.default_target(diverged, REWARD))
    assert math.isnan(statistics.default_target({"a": []}, REWARD))
