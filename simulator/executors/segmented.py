"""Execution by segments: what batched executors do, whatever computes the gradients."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.executors.common import Execution
from simulator.executors.plan import Plan, make_plan
from simulator.resume import Arrays

_MAX_ROWS = 1024
_MAX_BYTES = 1 << 28  # of gradients computed in one call


class Segmented(Execution):
    """Follows a :class:`Plan`: compute a segment's gradients together, take its steps, and on.

    Args:
        max_rows: gradients computed in one call, and steps in a segment, at most; by default
            1024, or less where so many gradients would take more than 256 MiB.
    """

    def __init__(self, *args: Any, max_rows: int | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_rows = max_rows or most_rows(self._x0.nbytes)
        self._plan: Plan = make_plan(self._schedule, self._max_rows)
        self._segment = 0
        self._weights = self._schedule.weight[self._plan.rows].astype(self._x0.dtype)

    def _advance_to(self, version: int) -> None:
        bounds = self._plan.bounds
        while self.version < version:
            segment = self._segment
            if self.version == bounds[segment] and self._plan.is_batch[segment]:
                self._take_batch_step(segment)
                stop = self.version + 1
            else:
                if self.version == bounds[segment]:
                    self._compute(segment)
                stop = min(version, int(bounds[segment + 1]))
                self._take_steps(self.version, stop)
            self._segment += int(stop == bounds[segment + 1])
            self.version = stop

    def _waiting_work(self) -> dict[str, NDArray[Any]]:
        return {"segment": np.array(self._segment, np.int64)}

    def _resume_work(self, arrays: Arrays) -> None:
        self._segment = int(arrays["segment"])

    @abstractmethod
    def _take_batch_step(self, segment: int) -> None:
        """The one step of a segment that uses all its gradients at once."""

    @abstractmethod
    def _compute(self, segment: int) -> None:
        """Compute the segment's gradients, to wait for their steps."""

    @abstractmethod
    def _take_steps(self, first: int, stop: int) -> None:
        """Take steps ``first`` to ``stop - 1``, all of this segment, with gradients that wait."""

    def _window_is_new(self) -> bool:
        """Whether the segment's window of points holds nothing but the current one."""
        return self._segment == 0 or bool(self._plan.is_batch[self._segment - 1])


def most_rows(bytes_per_row: int) -> int:
    """A power of two: how many gradients may be computed in one call."""
    rows = max(1, min(_MAX_ROWS, _MAX_BYTES // bytes_per_row))
    return 1 << (int(np.log2(rows)))
