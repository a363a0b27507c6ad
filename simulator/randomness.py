"""Randomness keyed by what it is for: (seed, purpose, worker, k), never a shared stream.

Two sources, both counter-based. Delays use NumPy's Philox: the stream of (seed, purpose, worker)
is a Philox key and k is the position in it, so any block of k can be made directly. Gradients use
JAX's threefry: ``fold_in`` of seed, purpose, worker and k.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import jax


class Purpose(IntEnum):
    """What randomness is for. Numbers are part of every result: never reuse or renumber one."""

    COMPUTE = 1
    DOWN = 2
    UP = 3
    COLLECTIVE = 4
    PROFILE = 5
    GRADIENT = 6
    INITIAL_POINT = 7
    EVALUATION = 8
    PROBLEM = 9


_LANES = 4  # a Philox counter step makes four 64-bit words


class UniformStreams:
    """Uniform draws u(worker, k) in (0, 1) for one (seed, purpose).

    Args:
        seed: >= 0.
        purpose: what the draws are for.
    """

    def __init__(self, seed: int, purpose: Purpose) -> None:
        entropy = np.random.SeedSequence([seed, int(purpose)]).generate_state(1, np.uint64)
        self._key = int(entropy[0])
        self._bits = np.random.Philox(key=[self._key, 0])
        self._template = self._bits.state

    def block(self, worker: int, start: int, count: int) -> NDArray[np.float64]:
        """u(worker, k) for k = start .. start + count - 1, [count]."""
        first = start // _LANES
        skip = start - first * _LANES
        state = self._template
        state["state"]["key"][1] = worker
        state["state"]["counter"][0] = first
        state["buffer_pos"] = _LANES
        self._bits.state = state
        words = self._bits.random_raw(skip + count)[skip:]
        # 53 random bits, moved off zero by half a step: a quantile function stays finite.
        return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def key_of(seed: Any, purpose: Purpose) -> jax.Array:
    """The JAX key of (seed, purpose); ``seed`` may be a traced integer."""
    import jax

    return jax.random.fold_in(jax.random.key(seed), int(purpose))


def gradient_key(seed: Any, worker: Any, k: Any) -> jax.Array:
    """The JAX key of the gradient of computation k of worker; arguments may be traced scalars."""
    import jax

    return jax.random.fold_in(jax.random.fold_in(key_of(seed, Purpose.GRADIENT), worker), k)
