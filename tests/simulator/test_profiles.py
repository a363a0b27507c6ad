import doctest
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import simulator.profiles as profiles
from simulator.errors import ConfigurationError
from simulator.profiles import PROFILES, dimension_factor, make_profile


def test_examples():
    assert doctest.testmod(profiles).failed == 0


@pytest.mark.parametrize(
    ("kind", "parameters", "expected"),
    [
        ("equal", {}, [2, 2, 2, 2]),
        ("power", {"exponent": 0.5}, [2, 2 * math.sqrt(2), 2 * math.sqrt(3), 4]),
        ("power", {"exponent": 0}, [2, 2, 2, 2]),
        ("linear", {}, [2, 4, 6, 8]),
        ("two-speed", {"slow_factor": 5, "slow_workers": 1}, [2, 2, 2, 10]),
        ("two-speed", {"slow_factor": 5, "slow_fraction": 0.5}, [2, 2, 10, 10]),
        ("two-speed", {"slow_factor": 5, "slow_fraction": 0.125}, [2, 2, 2, 10]),
        ("two-speed", {"slow_factor": 5, "slow_workers": 0}, [2, 2, 2, 2]),
        ("two-speed", {"slow_factor": 5, "slow_fraction": 1}, [10, 10, 10, 10]),
        ("last-slow", {"slow_factor": math.inf}, [2, 2, 2, math.inf]),
        ("explicit", {"values": [1, 0, 3, math.inf]}, [2, 0, 6, math.inf]),
    ],
)
def test_profiles_are_their_formulas(kind, parameters, expected):
    seconds = make_profile(kind, 4, base_seconds=2.0, **parameters)

    np.testing.assert_allclose(seconds, expected, rtol=1e-15)


def test_papers_communication_times():
    """kappa_i = sqrt(i) d^(1/4)."""
    seconds = make_profile("power", 4, dimension_factor(16, 0.25), exponent=0.5)

    assert seconds[3] == 4.0


def drawn(n, **more):
    return make_profile("drawn", n, name="lognorm", parameters={"s": 1.0}, **more)


def test_drawn_profiles_depend_on_their_seed_and_the_worker_alone():
    assert drawn(5).tolist() == drawn(50)[:5].tolist()
    assert drawn(5).tolist() == drawn(5, profile_seed=0).tolist()
    assert (drawn(5) != drawn(5, profile_seed=1)).all()
    assert len(set(drawn(50).tolist())) == 50


def test_drawn_profiles_follow_their_distribution():
    n = 10_000
    logs = np.log(drawn(n, base_seconds=1.0))

    assert abs(logs.mean()) < 4 / math.sqrt(n)
    assert abs((logs**2).mean() - 1) < 4 * math.sqrt(2 / n)


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("powr", {}, r"fleet.profile = 'powr': no such profile. Did you mean 'power'\?"),
        ("power", {}, "fleet.profile.exponent: missing; profile 'power' needs it"),
        ("power", {"exponnt": 1}, r"profile 'power' takes exponent. Did you mean 'exponent'\?"),
        ("equal", {"exponent": 1}, "exponent: profile 'equal' takes no parameters"),
        ("power", {"exponent": math.nan}, "exponent = nan: expected a finite number"),
        ("power", {"exponent": 1e6}, r"exponent = 1000000.0: 4\^1000000.0 is out of range"),
        ("power", {"exponent": -1e6}, "is out of range"),
        ("two-speed", {"slow_factor": 2}, "slow_workers: expected either this or slow_fraction"),
        (
            "two-speed",
            {"slow_factor": 2, "slow_workers": 1, "slow_fraction": 0.5},
            "slow_workers: expected either this or slow_fraction",
        ),
        (
            "two-speed",
            {"slow_factor": 2, "slow_workers": 5},
            r"slow_workers = 5: expected an integer from 0 to 4 \(workers\)",
        ),
        ("two-speed", {"slow_factor": 2, "slow_workers": 1.5}, "slow_workers = 1.5: expected"),
        ("two-speed", {"slow_factor": 2, "slow_fraction": 1.5}, "slow_fraction = 1.5"),
        ("two-speed", {"slow_factor": 0, "slow_workers": 1}, "slow_factor = 0: expected a number"),
        ("last-slow", {"slow_factor": math.nan}, "slow_factor = nan"),
        ("explicit", {"values": [1, 2]}, "values: 2 numbers for 4 workers"),
        ("explicit", {"values": [1, 2, -3, 4]}, r"fleet.profile.values\[2\] = -3.0"),
        ("equal", {"base_seconds": -1.0}, "base_seconds = -1.0: expected a number >= 0"),
        ("equal", {"base_seconds": math.nan}, "base_seconds = nan: expected a number >= 0"),
        ("linear", {"base_seconds": 1e308}, r"base_seconds = 1e\+308: times 2, for worker 1"),
        (
            "explicit",
            {"values": [0, 1, 1, 1], "base_seconds": math.inf},
            "base_seconds = inf: times 0, for worker 0",
        ),
        ("drawn", {"name": "norm", "parameters": {}}, "fleet.profile.parameters: norm with"),
        (
            "drawn",
            {"name": "expon", "parameters": {}, "profile_seed": -1},
            "profile_seed = -1: expected an integer >= 0",
        ),
    ],
)
def test_nonsense_is_refused(kind, parameters, message):
    with pytest.raises(ConfigurationError, match=message):
        make_profile(kind, 4, field="fleet.profile", **parameters)


def test_a_fleet_has_workers():
    with pytest.raises(ConfigurationError, match="n_workers = 0: expected an integer >= 1"):
        make_profile("equal", 0)


@given(
    kind=st.sampled_from(sorted(PROFILES)),
    n=st.integers(1, 8),
    base=st.floats() | st.integers(-2, 9),
    number=st.floats() | st.integers(-3, 9) | st.none() | st.booleans(),
    data=st.data(),
)
@settings(max_examples=300, deadline=None)
def test_any_numbers_make_a_profile_or_a_message(kind, n, base, number, data):
    known = PROFILES[kind].parameters
    keys = data.draw(st.sets(st.sampled_from(known))) if known else set()
    try:
        seconds = make_profile(kind, n, base, **dict.fromkeys(keys, number))
    except ConfigurationError:
        return
    assert seconds.shape == (n,)
    assert (seconds >= 0).all()


def test_every_profile_is_described():
    assert all(profile.summary and "\n" not in profile.summary for profile in PROFILES.values())


def test_factor_of_the_dimension_is_a_float():
    assert dimension_factor(10**6, 0.0) == 1.0
    with pytest.raises(ConfigurationError, match=r"exponent = 1000.0: 10\^1000.0 is out of range"):
        dimension_factor(10, 1000.0)


def test_dimension_is_positive():
    with pytest.raises(ConfigurationError, match="dimension = 0: expected an integer >= 1"):
        dimension_factor(0, 1.0)
