import subprocess
import sys

import numpy as np
import pytest

from scenarios.problems.heterogeneity import per_worker, variants_of
from scenarios.problems.registry import PROBLEMS
from scenarios.problems.specs import EnvironmentSpec, QuadraticSpec
from simulator.errors import ConfigurationError


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"environment": ""}, "environment = ''"),
        ({"horizon": 0}, "horizon = 0: expected an integer >= 1"),
        ({"horizon": True}, "horizon = True"),
        ({"discount": 0}, r"discount = 0: expected a number in \(0, 1\]"),
        ({"discount": 1.01}, "discount = 1.01"),
        ({"discount": float("nan")}, "discount = nan"),
        ({"policy": "gausian"}, "Did you mean 'gaussian'"),
        ({"hidden": 64}, "hidden = 64: expected a list"),
        ({"hidden": [64, 0]}, "hidden = 0"),
        ({"baseline": float("inf")}, "baseline = inf"),
        ({"baseline": 10**400}, "baseline = 1000"),
        ({"normalise": 1}, "normalise = 1"),
        ({"evaluation_episodes": 0}, "evaluation_episodes = 0"),
        ({"dtype": "float16"}, "dtype = 'float16'"),
    ],
)
def test_environment_fields(fields, text):
    with pytest.raises(ConfigurationError, match=text):
        EnvironmentSpec(**{"environment": "CartPole-v1"} | fields)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"kind": "tridiag"}, "Did you mean 'tridiagonal'"),
        ({"dimension": 0}, "dimension = 0"),
        ({"noise": -1}, "noise = -1"),
        ({"A": [[1]]}, "A: a quadratic of kind 'tridiagonal' does not take it"),
        ({"kind": "given", "A": [[1]]}, "b: a quadratic of kind 'given' needs it"),
    ],
)
def test_quadratic_fields(fields, text):
    with pytest.raises(ConfigurationError, match=text):
        QuadraticSpec(**fields)


def test_a_spec_does_not_change_with_the_lists_it_was_made_of():
    hidden, lengths = [64], [0.5, 1.0]
    spec = EnvironmentSpec("x", hidden=hidden, environment_parameters={"length": lengths})
    hidden.append(1)
    lengths.append(2.0)
    assert spec.hidden == (64,)
    assert spec.environment_parameters == {"length": (0.5, 1.0)}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2, [2, 2, 2]),
        ([1, 2, 3], [1, 2, 3]),
        ([[1, 2], [3, 4], [5, 6]], [[1, 2], [3, 4], [5, 6]]),
        ({"low": 0, "high": 1}, [0.0, 0.5, 1.0]),
        ({"cycle": [1, -1]}, [1, -1, 1]),
        ("text", ["text"] * 3),
    ],
)
def test_per_worker_values(value, expected):
    assert per_worker("f", value, 3) == expected


@pytest.mark.parametrize("value", [[1, 2], [], {"low": 0}, {"cycle": []}, {"low": 0, "high": "x"}])
def test_per_worker_values_of_the_wrong_form(value):
    with pytest.raises(ConfigurationError, match=r"^f"):
        per_worker("f", value, 3)


def test_workers_share_variants():
    spec = EnvironmentSpec(
        "x",
        environment_parameters={"length": {"cycle": [1.0, 2.0]}},
        observation_scale=[1, 1, -1, 1],
        reward_scale=3,
    )
    variants = variants_of(spec, 4, 2)
    assert variants.of_worker.tolist() == [0, 1, 2, 1]
    assert [p["length"] for p in variants.parameters] == [1.0, 2.0, 1.0]
    assert variants.observation_scale.tolist() == [[1, 1], [1, 1], [-1, -1]]
    assert variants.reward_scale.tolist() == [3, 3, 3]
    np.testing.assert_allclose(variants.share, [0.25, 0.5, 0.25])


def test_listing_problems_imports_nothing_heavy():
    code = (
        "import sys, scenarios.problems.registry, scenarios.problems.specs; "
        "print([m for m in ('jax', 'gymnasium', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_listed_ids_are_distinct_and_described():
    assert len({entry.id for entry in PROBLEMS}) == len(PROBLEMS)
    assert all(entry.claim.endswith(".") and entry.reference for entry in PROBLEMS)
