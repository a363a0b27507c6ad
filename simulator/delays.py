"""Delays: how long things take, in simulated seconds, keyed by (seed, purpose, worker, k).

Every model is ``seconds = scale[worker] * X(worker, k)``: a constant per worker, from
``simulator.profiles``, times a factor that is 1 (:class:`Constant`), drawn from a distribution
(``simulator.distributions``), or replayed from a file (``simulator.traces``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.errors import ConfigurationError
from simulator.randomness import Purpose

Sampler = Callable[[int, int], float]


class Delays(Protocol):
    """Delays of a fleet: one for every (worker, k)."""

    n_workers: int
    is_random: bool
    """False if the seed changes nothing, so one schedule serves every seed."""

    def sampler(self, seed: int, purpose: Purpose) -> Callable[[int, int], float]:
        """A fast function (worker, k) -> seconds for the engine, >= 0, may be inf."""
        ...

    def seconds(
        self, seed: int, purpose: Purpose, workers: NDArray[np.int32], ks: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """The same numbers, vectorised: [len(workers)]."""
        ...

    def bounds_seconds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Least and greatest delay each worker can meet, [n_workers] each.

        A least of inf is a worker that never finishes; a greatest of 0 is one that takes no time.
        """
        ...

    def mean_seconds(self) -> NDArray[np.float64]:
        """Mean delay of each worker, [n_workers]; inf too where a distribution has no mean."""
        ...


@dataclass(frozen=True)
class DelayModel:
    """A row of ``straggler list delays``.

    Attributes:
        name: what scenario files call it.
        summary: one line.
        parameters: what it takes besides the per-worker profile.
        reference: where to read more.
    """

    name: str
    summary: str
    parameters: tuple[str, ...]
    reference: str


DELAY_MODELS: tuple[DelayModel, ...] = (
    DelayModel(
        "constant",
        "Every computation of worker i takes the same time, its profile's.",
        (),
        "Tyurin & Richtarik (2023), fixed computation model",
    ),
    DelayModel(
        "distribution",
        "Drawn afresh each time from any non-negative continuous scipy.stats distribution.",
        ("name", "parameters (the distribution's own, with loc and scale)"),
        "https://docs.scipy.org/doc/scipy/reference/stats.html",
    ),
    DelayModel(
        "empirical",
        "Resampled with replacement from measured values: a list, or a CSV or Parquet column.",
        ("values | path", "column"),
        "Efron (1979), the bootstrap",
    ),
    DelayModel(
        "trace",
        "A CSV or Parquet file of worker, step, seconds, replayed in order and cycled.",
        ("path", "column", "workers"),
        "columns worker (from 0), step, seconds",
    ),
)
"""Every delay model."""


class Constant:
    """Worker i always takes ``seconds[i]``.

    Args:
        seconds: [n_workers], >= 0; inf is a worker that never finishes.
        field: what messages call ``seconds``.

    Raises:
        ConfigurationError: a value is negative or NaN, or there is none.
    """

    is_random = False

    def __init__(self, seconds: ArrayLike, field: str = "seconds") -> None:
        self.per_worker = checked_seconds(seconds, field)
        self.n_workers = len(self.per_worker)

    def sampler(self, seed: int, purpose: Purpose) -> Sampler:
        """See :class:`Delays`."""
        values = self.per_worker.tolist()
        return lambda worker, k: values[worker]

    def seconds(
        self, seed: int, purpose: Purpose, workers: NDArray[np.int32], ks: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """See :class:`Delays`."""
        return self.per_worker[workers]

    def bounds_seconds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """See :class:`Delays`."""
        return self.per_worker, self.per_worker

    def mean_seconds(self) -> NDArray[np.float64]:
        """See :class:`Delays`."""
        return self.per_worker


def checked_seconds(values: Any, field: str, unit: str = "seconds") -> NDArray[np.float64]:
    """A private copy of ``values`` as a read-only array, [len(values)].

    Raises:
        ConfigurationError: not a non-empty flat list of numbers >= 0.
    """
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigurationError(f"{field}: expected a list of numbers ({unit})") from error
    if array.ndim != 1 or not len(array):
        raise ConfigurationError(f"{field}: expected a non-empty flat list of numbers ({unit})")
    bad = np.flatnonzero(~(array >= 0))
    if len(bad):
        index = int(bad[0])
        raise ConfigurationError(
            f"{field}[{index}] = {float(array[index])!r}: expected a number >= 0 ({unit}); "
            "inf means never"
        )
    array.flags.writeable = False
    return array


def scaled(factors: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """factors * scale, where a scale of 0 or inf wins over any factor."""
    with np.errstate(invalid="ignore", over="ignore"):
        product = factors * scale
    return np.where(np.isnan(product), scale, product)
