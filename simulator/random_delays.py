"""Random delays by inverse transform: X(worker, k) = quantile(u(worker, k)).

u is keyed by (seed, purpose, worker, k), so a delay depends on nothing else, and two fleets whose
distributions differ meet the same luck (quantile coupling: Glasserman & Yao 1992).

A scipy quantile function costs 200 microseconds a call and little more for 500 numbers. So the
sampler evaluates blocks: block b of a worker holds 4 * 2^b draws (at most 1024), and one call
makes block b of a whole group of neighbouring workers, who will mostly want theirs soon.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.delays import Sampler, checked_seconds, scaled
from simulator.randomness import Purpose, UniformStreams

Quantile = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_FIRST_BLOCK = 4
_MAX_LEVEL = 8
_DRAWS_PER_CALL = 512


class RandomDelays:
    """``scale[worker] * quantile(u(worker, k))`` seconds.

    Args:
        quantile: elementwise and non-decreasing on (0, 1), >= 0; [m] -> [m]. Each output must be
            the same in every bit whatever else is in the call.
        support: least and greatest value of ``quantile``.
        mean: gives the mean of ``quantile`` over (0, 1), inf if there is none; called when asked.
        scale: seconds per unit of ``quantile``, [n_workers], >= 0; inf never finishes.
        field: what messages call ``scale``.

    Raises:
        ConfigurationError: a scale is negative or NaN.
    """

    is_random = True

    def __init__(
        self,
        quantile: Quantile,
        support: tuple[float, float],
        mean: Callable[[], float],
        scale: ArrayLike,
        field: str = "scale",
    ) -> None:
        self._quantile = quantile
        self._support = support
        self._mean = mean
        self.scale = checked_seconds(scale, field, "seconds per unit")
        self.n_workers = len(self.scale)

    def sampler(self, seed: int, purpose: Purpose) -> Sampler:
        """See ``Delays``. Cheap if a worker's k mostly increases; right in any order."""
        blocks = _Blocks(self, UniformStreams(seed, purpose))
        starts, values, load = blocks.starts, blocks.values, blocks.load

        def sample(worker: int, k: int) -> float:
            position = k - starts[worker]
            block = values[worker]
            if 0 <= position < len(block):
                return block[position]
            load(worker, k)
            return values[worker][k - starts[worker]]

        return sample

    def seconds(
        self, seed: int, purpose: Purpose, workers: NDArray[np.int32], ks: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """See ``Delays``."""
        draws = UniformStreams(seed, purpose).at(workers, ks)
        return scaled(self._quantile(draws), self.scale[workers])

    def bounds_seconds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """See ``Delays``."""
        least, greatest = (np.full(self.n_workers, end) for end in self._support)
        return scaled(least, self.scale), scaled(greatest, self.scale)

    def mean_seconds(self) -> NDArray[np.float64]:
        """See ``Delays``."""
        return scaled(np.full(self.n_workers, self._mean()), self.scale)

    def block(
        self, streams: UniformStreams, workers: range, start: int, count: int
    ) -> NDArray[np.float64]:
        """Seconds of k = start .. start + count - 1 for each worker, [len(workers), count]."""
        draws = streams.blocks(workers, start, count)
        factors = self._quantile(draws.ravel()).reshape(draws.shape)
        return scaled(factors, self.scale[workers.start : workers.stop, None])


class _Blocks:
    """The block each worker is in, and blocks made for it in advance.

    Attributes:
        starts: k of the first entry of each worker's block.
        values: each worker's block, empty before its first.
    """

    def __init__(self, delays: RandomDelays, streams: UniformStreams) -> None:
        self._delays = delays
        self._streams = streams
        # (worker, start) -> block. Bounded: only the first _MAX_LEVEL blocks are made in groups,
        # at most _DRAWS_PER_CALL draws each time a worker has used one up.
        self._in_advance: dict[tuple[int, int], array[float]] = {}
        self.starts = [0] * delays.n_workers
        self.values = [array("d")] * delays.n_workers

    def load(self, worker: int, k: int) -> None:
        """Make k's block the current one of ``worker``."""
        start, count = _block_of(k)
        if (worker, start) not in self._in_advance:
            self._make(worker, start, count)
        self.starts[worker] = start
        self.values[worker] = self._in_advance.pop((worker, start))

    def _make(self, worker: int, start: int, count: int) -> None:
        size = max(1, _DRAWS_PER_CALL // count)
        first = worker - worker % size
        group = range(first, min(first + size, self._delays.n_workers))
        rows = self._delays.block(self._streams, group, start, count)
        flat = array("d", rows.tobytes())
        for row, member in enumerate(group):
            block = flat[row * count : (row + 1) * count]
            if start == 0 and member != worker and not self.values[member]:
                self.values[member] = block  # its first: no need to wait until it asks
            else:
                self._in_advance[member, start] = block


def _block_of(k: int) -> tuple[int, int]:
    """Start and length of the block that k is in: [0, 4), [4, 12), [12, 28), ..."""
    level = min((k // _FIRST_BLOCK + 1).bit_length() - 1, _MAX_LEVEL)
    start = _FIRST_BLOCK * ((1 << level) - 1)
    count = _FIRST_BLOCK << level
    return start + (k - start) // count * count, count
