"""Precision is chosen for a block and put back."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from simulator.errors import ConfigurationError
from simulator.precision import PRECISIONS, precision


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_a_block_computes_in_its_precision(dtype: str) -> None:
    before = jnp.zeros(1).dtype
    with precision(dtype):
        assert jnp.zeros(1).dtype == dtype
    assert jnp.zeros(1).dtype == before


def test_an_error_inside_puts_it_back() -> None:
    before = jnp.zeros(1).dtype
    with pytest.raises(KeyError), precision("float64"):
        raise KeyError
    assert jnp.zeros(1).dtype == before


def test_unknown_precision() -> None:
    with pytest.raises(ConfigurationError, match=r"precision = 'float46'.*mean 'float64'"):
        precision("float46").__enter__()
