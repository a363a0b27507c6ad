"""Randomness keyed by what it is for: (seed, purpose, worker, k), never a shared stream.

Two sources, both counter-based. Delays use NumPy's Philox: the stream of (seed, purpose, worker)
is a Philox key and k is the position in it, so any block of k can be made directly. Gradients use
JAX's threefry: ``fold_in`` of seed, purpose, worker and k; host environments, which are stepped
in NumPy, draw resets and action noise from Philox generators with the same four as their key.
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
_MAX_GAP = 64  # passing over this many words costs less than starting another block


class UniformStreams:
    """Uniform draws u(worker, k) in (0, 1) for one (seed, purpose).

    Args:
        seed: >= 0.
        purpose: what the draws are for.
    """

    def __init__(self, seed: int, purpose: Purpose) -> None:
        key = np.random.SeedSequence([seed, int(purpose)]).generate_state(1, np.uint64)[0]
        self._bits = np.random.Philox(0)
        # Plain integers, which the state's setter takes faster than arrays.
        self._key = [int(key), 0]
        self._counter = [0] * _LANES
        self._state: Any = dict(self._bits.state) | {
            "state": {"counter": self._counter, "key": self._key},
            "buffer": [0] * _LANES,
            "buffer_pos": _LANES,
        }

    def block(self, worker: int, start: int, count: int) -> NDArray[np.float64]:
        """u(worker, k) for k = start .. start + count - 1, [count]."""
        return _to_unit_interval(self._words(worker, start, count))

    def blocks(self, workers: range, start: int, count: int) -> NDArray[np.float64]:
        """The blocks of several workers, [len(workers), count]."""
        words = np.empty((len(workers), count), np.uint64)
        for row, worker in enumerate(workers):
            words[row] = self._words(worker, start, count)
        return _to_unit_interval(words)

    def at(self, workers: NDArray[np.integer], ks: NDArray[np.integer]) -> NDArray[np.float64]:
        """u(workers[j], ks[j]), [len(workers)]: cheap where a worker's ks are close together."""
        order = np.lexsort((ks, workers))
        worker, k = workers[order], ks[order].astype(np.int64)
        is_last = (np.diff(worker) != 0) | (np.diff(k) > _MAX_GAP)
        ends = [*(np.flatnonzero(is_last) + 1).tolist(), len(order)]
        words = np.empty(len(order), np.uint64)
        begin = 0
        for end in ends if len(order) else ():
            first = int(k[begin])
            block = self._words(int(worker[begin]), first, int(k[end - 1]) - first + 1)
            words[order[begin:end]] = block[k[begin:end] - first]
            begin = end
        return _to_unit_interval(words)

    def _words(self, worker: int, start: int, count: int) -> NDArray[np.uint64]:
        first, skip = divmod(start, _LANES)
        self._key[1] = worker
        self._counter[0] = first
        self._bits.state = self._state
        return self._bits.random_raw(skip + count)[skip:]


def _to_unit_interval(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    # 53 random bits, moved off zero by half a step: a quantile function stays finite.
    draws = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    # The one largest word rounds up to 1.
    return np.minimum(draws, 1.0 - 2.0**-53)


def key_of(seed: Any, purpose: Purpose) -> jax.Array:
    """The JAX key of (seed, purpose); ``seed`` may be a traced integer."""
    import jax

    return jax.random.fold_in(jax.random.key(seed), int(purpose))


def gradient_key(seed: Any, worker: Any, k: Any) -> jax.Array:
    """The JAX key of the gradient of computation k of worker; arguments may be traced scalars."""
    import jax

    return jax.random.fold_in(jax.random.fold_in(key_of(seed, Purpose.GRADIENT), worker), k)
