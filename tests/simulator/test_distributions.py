import math
import subprocess
import sys

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from simulator.distributions import _ranges, distribution_names, scipy_distribution
from simulator.errors import ConfigurationError
from simulator.randomness import Purpose

# One row per kind of quantile function in scipy: elementary, special-function, Boost, numerical.
QUANTILES = [
    ("expon", {}),
    ("lognorm", {"s": 0.95}),
    ("gamma", {"a": 1.99}),
    ("beta", {"a": 2.3, "b": 0.63}),
    ("pareto", {"b": 2.62}),
    ("weibull_min", {"c": 1.79}),
    ("invgauss", {"mu": 0.145}),
    ("truncnorm", {"a": 0.1, "b": 2.0}),
    ("triang", {"c": 0.16}),
    ("loguniform", {"a": 0.01, "b": 1.25}),
    ("fatiguelife", {"c": 29.0}),
    ("burr", {"c": 10.5, "d": 4.3}),
    ("kstwobign", {}),
    ("levy", {}),
    ("ncx2", {"df": 21, "nc": 1.06}),
    ("rice", {"b": 0.775}),
]


@pytest.mark.parametrize(("name", "parameters"), QUANTILES)
def test_quantiles_have_the_same_bits_in_batches_of_any_shape(name, parameters):
    """What lets one call serve a group of workers: vector code must equal its scalar tail."""
    quantile = scipy_distribution(name, parameters, [1.0])._quantile
    draws = np.random.default_rng(0).random(200)
    together = quantile(draws)

    for size in (1, 3, 8, 37):
        for start in range(0, len(draws) - size, 29):
            part = quantile(draws[start : start + size])
            assert part.tolist() == together[start : start + size].tolist()


def refuse(name, parameters, message, scale=(1.0,)):
    with pytest.raises(ConfigurationError, match=message):
        scipy_distribution(name, parameters, scale, "fleet.compute")


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("lognormal", {}, r"fleet.compute.name = 'lognormal': .* Did you mean 'lognorm'\?"),
        ("rv_continuous", {}, "expected a continuous distribution"),
        ("poisson", {"mu": 3}, "'poisson': a discrete distribution; expected a continuous one"),
        ("lognorm", {}, "lognorm also needs s; expected s, and optionally loc and scale"),
        (
            "gamma",
            {"k": 2},
            "parameters.k: gamma has no such parameter; expected some of a, loc, scale",
        ),
        ("expon", {"scal": 2}, r"expected some of loc, scale. Did you mean 'scale'\?"),
        ("lognorm", {"s": math.nan}, "parameters.s = nan: expected a finite number"),
        ("lognorm", {"s": math.inf}, "parameters.s = inf: expected a finite number"),
        ("lognorm", {"s": "1"}, "parameters.s = '1': expected a finite number"),
        ("lognorm", {"s": True}, "parameters.s = True: expected a finite number"),
        ("lognorm", {"s": 10**400}, "expected a finite number"),
        ("lognorm", {"s": -1}, r"does not exist for s = -1; expected s in \(0, inf\), scale > 0"),
        ("expon", {"scale": 0}, "does not exist for scale = 0; expected scale > 0"),
        ("norm", {}, r"norm with its defaults takes values in \[-inf, inf\]"),
        ("norm", {"loc": 10}, r"takes values in \[-inf, inf\], but a delay cannot be negative"),
        ("expon", {"loc": -1}, r"expon with loc = -1 takes values in \[-1, inf\]"),
        ("uniform", {"loc": 1, "scale": 1e-30}, "uniform has no spread here, every value is 1"),
        ("genhalflogistic", {"c": 0}, "scipy cannot compute it with these parameters"),
        ("lognorm", {"s": 1000}, "scipy cannot compute the quantiles of lognorm"),
    ],
)
def test_nonsense_is_refused(name, parameters, message):
    refuse(name, parameters, message)


def test_a_negative_scale_is_refused():
    refuse("expon", {}, r"fleet.compute.scale\[1\] = -1.0", scale=[1.0, -1.0])


@given(
    name=st.sampled_from(["lognorm", "gamma", "norm", "pareto", "truncnorm", "triang", "uniform"]),
    numbers=st.lists(st.floats(width=32) | st.sampled_from([0, 1e300, 1e-300]), max_size=4),
)
@settings(max_examples=300, deadline=None)
def test_any_parameters_make_delays_or_a_message(name, numbers):
    shapes = getattr(stats, name).shapes
    keys = [*(shapes.split(", ") if shapes else []), "loc", "scale"][: len(numbers)]
    try:
        delays = scipy_distribution(name, dict(zip(keys, numbers, strict=False)), [1.0])
        seconds = delays.seconds(0, Purpose.COMPUTE, np.zeros(9, int), np.arange(9))
    except ConfigurationError:
        return
    assert (seconds >= 0).all()


def test_a_quantile_scipy_cannot_compute_is_reported_not_returned():
    delays = scipy_distribution("lognorm", {"s": 1.0}, [1.0])

    with pytest.raises(ConfigurationError, match=r"scipy gives nan at quantile 2\.0;"):
        delays._quantile(np.array([0.5, 2.0]))


def test_ranges_of_every_distributions_parameters_can_be_told():
    for name in distribution_names():
        assert "scale > 0" in _ranges(getattr(stats, name))


def test_names_are_those_of_scipy():
    names = distribution_names()

    assert {"lognorm", "gamma", "pareto"} <= set(names)
    assert "poisson" not in names


def test_scipy_is_not_imported_before_it_is_needed():
    code = (
        "import sys, simulator.profiles, simulator.traces, simulator.links; "
        "print([m for m in ('scipy', 'jax', 'pyarrow', 'matplotlib') if m in sys.modules])"
    )

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"
