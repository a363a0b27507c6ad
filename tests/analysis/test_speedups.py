"""Paired speed-ups: what pairing buys, censoring, words, and how often the interval covers."""

import math

import numpy as np
import pytest

from analysis.speedups import speed_up

NOISE = np.random.default_rng(1)


def by_seed(values):
    return dict(enumerate(np.asarray(values, float).tolist()))


def test_pairing_sees_through_what_seeds_share():
    shared = np.exp(NOISE.normal(0, 2, 10))
    found = speed_up(by_seed(shared), by_seed(1.1 * shared))
    assert (found.low, found.ratio, found.high) == pytest.approx((1.1, 1.1, 1.1))
    assert found.verdict() == "1.1 times faster"
    assert speed_up(by_seed(1.1 * shared), by_seed(shared)).verdict() == "1.1 times slower"


def test_no_significant_difference_is_said():
    found = speed_up(by_seed([1, 2, 1, 2, 1]), by_seed([2, 1, 2, 1, 1]))
    assert found.ratio == pytest.approx(1)
    assert found.verdict() == "no significant difference"


def test_seeds_that_never_reached_the_target_forbid_a_verdict():
    found = speed_up(by_seed([1, 1, 1, 1, math.inf]), by_seed([9, 9, 9, 9, 9]))
    assert (found.both_reached, found.seeds) == (4, 5)
    assert found.verdict() == "no verdict: target not reached by both on 1 of 5 seeds"
    assert math.isnan(speed_up({0: math.inf}, {0: 1.0}).ratio)


def test_few_or_no_seeds():
    assert "fewer than 3 seeds" in speed_up(by_seed([1, 1]), by_seed([9, 9])).verdict()
    assert speed_up({0: 1.0}, {1: 1.0}).verdict() == "no seed in common"


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_impossible_times_are_refused(bad):
    with pytest.raises(ValueError, match="expected numbers > 0"):
        speed_up({0: bad}, {0: 1.0})


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    draws = np.exp(np.random.default_rng(2).normal(np.log(2), 0.5, (200, 20)))
    found = [speed_up(by_seed(np.ones(20)), by_seed(draw)) for draw in draws]
    covered = sum(item.low <= 2 <= item.high for item in found)
    # A percentile interval of 20 normals covers about 93 %; five standard errors of 200 are 9 %.
    assert 0.84 * 200 <= covered < 200
