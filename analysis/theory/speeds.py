"""Workers whose speeds change over time: v_i(t) gradients per second, piecewise constant.

Source: Tyurin (2024), arXiv 2408.04929: by time t, worker i has finished the integral of v_i from
the start to t, rounded down.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from analysis.theory.fleet import Seconds
from simulator.errors import ConfigurationError

_ROUNDING = 1e-12
"""Relative error granted to an integral: this close below an integer, it has reached it. The times
of finished gradients are then recomputed from their counts."""


class PiecewiseSpeeds:
    """Worker i computes ``speeds[i, j]`` gradients per second from ``times[j]`` to ``times[j+1]``.

    The last speed holds for ever. Work begins at ``start_seconds``, unfinished work of before
    being lost, and times are counted from there.

    Args:
        times: [p], seconds; the first 0, rising.
        speeds: [n_workers, p], gradients per second, finite, >= 0.
        start_seconds: when the workers start, >= 0.

    Raises:
        ConfigurationError: shapes do not fit, or a number is out of range.
    """

    def __init__(self, times: ArrayLike, speeds: ArrayLike, start_seconds: float = 0.0) -> None:
        self._times = _checked_times(times)
        self._speeds = _checked_speeds(speeds, len(self._times))
        if not 0 <= start_seconds < np.inf:
            raise ConfigurationError(
                f"start_seconds = {start_seconds!r}: expected a finite number >= 0 (seconds)"
            )
        self.n_workers = len(self._speeds)
        self.start_seconds = float(start_seconds)
        pieces = self._speeds[:, :-1] * np.diff(self._times)
        self._done = np.concatenate([np.zeros((self.n_workers, 1)), pieces.cumsum(1)], axis=1)
        self._before = self._integral(self.start_seconds)

    def started_at(self, start_seconds: float) -> PiecewiseSpeeds:
        """The same workers, starting at another time."""
        return PiecewiseSpeeds(self._times, self._speeds, start_seconds)

    def _integral(self, time: float) -> Seconds:
        piece = int(np.searchsorted(self._times, time, side="right")) - 1
        done: Seconds = self._done[:, piece] + self._speeds[:, piece] * (time - self._times[piece])
        return done

    def counts(self, seconds: float) -> Seconds:
        """See ``analysis.theory.progress.Progress``."""
        total = self._integral(self.start_seconds + seconds)
        granted = _ROUNDING * np.maximum(total, 1.0)
        return np.floor(np.maximum(total - self._before + granted, 0.0))

    def finish_seconds(self, counts: Seconds) -> Seconds:
        """See ``analysis.theory.progress.Progress``."""
        target = (self._before + counts)[:, None]
        piece = np.maximum((self._done < target).sum(1) - 1, 0)
        rows = np.arange(self.n_workers)
        missing = target[:, 0] - self._done[rows, piece]
        with np.errstate(divide="ignore", invalid="ignore"):
            finish = self._times[piece] + missing / self._speeds[rows, piece] - self.start_seconds
        return np.where(counts > 0, finish, 0.0)


def _checked_times(times: ArrayLike) -> Seconds:
    array = np.array(times, dtype=np.float64)
    is_right = array.ndim == 1 and len(array) > 0 and array[0] == 0
    if not is_right or not np.isfinite(array).all() or (np.diff(array) <= 0).any():
        raise ConfigurationError(
            "times: expected a list of finite, strictly rising numbers that starts at 0 (seconds)"
        )
    return array


def _checked_speeds(speeds: ArrayLike, n_pieces: int) -> Seconds:
    array: Any = np.array(speeds, dtype=np.float64)
    if array.ndim != 2 or not len(array) or array.shape[1] != n_pieces:
        raise ConfigurationError(
            f"speeds: shape {array.shape}; expected [n_workers, {n_pieces}], a speed for each time"
        )
    if not (np.isfinite(array) & (array >= 0)).all():
        worker, piece = np.argwhere(~(np.isfinite(array) & (array >= 0)))[0].tolist()
        raise ConfigurationError(
            f"speeds[{worker}, {piece}] = {array[worker, piece]!r}: expected a finite number >= 0 "
            "(gradients per second)"
        )
    checked: Seconds = array
    return checked
