"""Hyperparameters from plain values."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.hyperparameters import make_hyperparameters
from algorithms.update_rule import Decay, UpdateRule
from algorithms.updates import UPDATE_RULES, update_rule

NIGT = UPDATE_RULES["nigt"]
HEAVY_BALL = UPDATE_RULES["heavy-ball"]


def test_a_number_is_a_constant() -> None:
    got = make_hyperparameters(NIGT, {"stepsize": 1, "momentum": 0.25})
    assert got == NIGT.hyperparameters(Decay(1.0, 1.0, 0.0), Decay(0.25, 1.0, 0.0))
    assert float(got.momentum.at(1000)) == 0.25


def test_a_table_is_a_schedule() -> None:
    table = {"value": 1.0, "offset": 2, "power": 0.8}
    got = make_hyperparameters(NIGT, {"stepsize": 0.1, "momentum": table})
    assert got.momentum == Decay(1.0, 2.0, 0.8)
    assert float(got.momentum.at(6)) == pytest.approx((2 / 8) ** 0.8)
    again = make_hyperparameters(NIGT, {"stepsize": 0.1, "momentum": got.momentum})
    assert again == got


def test_defaults_are_filled_in() -> None:
    assert make_hyperparameters(NIGT, {"stepsize": 0.1}).momentum == Decay(0.1, 1.0, 0.0)
    adam = make_hyperparameters(update_rule("optax.adam"), {"stepsize": 0.1, "b1": 0.5})
    assert (adam.b1, adam.b2) == (0.5, 0.999)
    assert isinstance(adam.b2, float)


@pytest.mark.parametrize(
    ("rule", "values", "text"),
    [
        (NIGT, {}, r"m\.stepsize: 'nigt' needs it; expected a finite number > 0$"),
        (NIGT, {"stepsize": 0}, r"m\.stepsize = 0: expected a finite number > 0$"),
        (NIGT, {"stepsize": -1.0}, r"m\.stepsize = -1\.0: expected a finite number > 0$"),
        (NIGT, {"stepsize": math.nan}, r"m\.stepsize = nan: expected"),
        (NIGT, {"stepsize": math.inf}, r"m\.stepsize = inf: expected"),
        (NIGT, {"stepsize": 10**400}, r"m\.stepsize = 1000+: expected"),
        (NIGT, {"stepsize": True}, r"m\.stepsize = True: expected"),
        (NIGT, {"stepsize": "fast"}, r"m\.stepsize = 'fast': expected"),
        (NIGT, {"stepsize": [0.1]}, r"m\.stepsize = \[0\.1\]: expected"),
        (NIGT, {"stepsize": 1, "momentum": 0.0}, r"m\.momentum = 0\.0: .* a number in \(0, 1\]$"),
        (NIGT, {"stepsize": 1, "momentum": 1.1}, r"m\.momentum = 1\.1: .* a number in \(0, 1\]$"),
        (HEAVY_BALL, {"stepsize": 1, "beta": 2}, r"m\.beta = 2: expected a number in \[0, 1\]$"),
        (NIGT, {"stepsize": 1, "momentun": 0.1}, r"m\.momentun: not .*Did you mean 'momentum'\?"),
        (NIGT, {"stepsize": 1, "xyz": 0.1}, r"m\.xyz: not .* Known: stepsize, momentum\.$"),
        (NIGT, {"stepsize": {"power": 1}}, r"m\.stepsize\.value: expected a finite number > 0$"),
        (NIGT, {"stepsize": {"value": 0}}, r"m\.stepsize\.value = 0: expected a finite"),
        (NIGT, {"stepsize": {"value": 1, "offset": 0}}, r"m\.stepsize\.offset = 0: .* > 0$"),
        (NIGT, {"stepsize": {"value": 1, "power": -1}}, r"m\.stepsize\.power = -1: .* >= 0$"),
        (NIGT, {"stepsize": {"value": 1, "pow": 1}}, r"m\.stepsize\.pow: .* 'power'\?"),
        (update_rule("optax.adam"), {"stepsize": 1, "b1": math.nan}, r"m\.b1 = nan: expected"),
    ],
)
def test_refuses(rule: UpdateRule, values: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make_hyperparameters(rule, values, where="m")


def test_beta_may_be_zero() -> None:
    assert make_hyperparameters(HEAVY_BALL, {"stepsize": 1, "beta": 0}).beta.value == 0.0


def test_where_is_optional() -> None:
    with pytest.raises(ValueError, match=r"^stepsize: "):
        make_hyperparameters(NIGT, {})


NUMBERS = st.integers() | st.floats() | st.sampled_from([0, 1, -1, 0.5, 1e308, 1e-320, 10**400])


@given(
    values=st.dictionaries(
        st.sampled_from(["stepsize", "momentum", "value", "Stepsize", ""]),
        NUMBERS
        | st.sampled_from([None, True, "0.1", "", [1], ()])
        | st.dictionaries(st.sampled_from(["value", "offset", "power", "x"]), NUMBERS),
    )
)
def test_anything_else_is_one_clear_message(values: dict[str, Any]) -> None:
    try:
        got = make_hyperparameters(NIGT, values)
    except ValueError as error:
        assert str(error)  # noqa: PT017 - either outcome is right, a traceback is not
    else:
        assert 0 < got.stepsize.value < math.inf
        assert 0 < got.momentum.value <= 1
