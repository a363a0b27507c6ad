"""A schedule: everything that happened in a simulation except the values of the gradients.

Columnar and plain: one row per computation, one per server step, one per message, in arrays. It
is what the engine makes, ``verify`` checks, executors turn into numbers, and records store.

A computation costs 41 bytes, a step 24, a message 21.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Status(IntEnum):
    """What became of a computation."""

    IN_FLIGHT = 0
    """Neither used nor thrown away when the run ended; may have finished in a local sum."""
    USED = 1
    """Entered the server step ``step`` with weight ``weight``."""
    DISCARDED = 2
    """Finished, and thrown away."""
    CANCELLED = 3
    """Dropped before it finished; it was never computed."""


class Direction(IntEnum):
    """Which way a message went."""

    DOWN = 0
    """A model, from the server to a worker."""
    UP = 1
    """A vector, from a worker to the server."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """A finished simulation.

    Computations, [n_computations], in the order in which they were started:

    Attributes:
        n_workers: size of the fleet.
        end_seconds: where the run ended: the horizon, or the last step of another budget.
        worker: int32, who computed.
        k: int32, its how-manyeth computation, from 0, cancelled ones included.
        version: int32, server steps taken when its point was sent: the gradient is taken at the
            query point of that version.
        start_seconds, stop_seconds: float64. Stop is when it finished or was cancelled; for one
            still running at the end, when it would finish (may be inf).
        status: int8, see :class:`Status`.
        step: int32, the server step it entered (0 is the first), or -1.
        weight: float64, its weight in that step's gradient, or 0; a step's weights add up to 1.

    Server steps, [n_steps]:

    Attributes:
        step_seconds: float64, when the model changed; version v is current from
            ``step_seconds[v - 1]`` on.
        close_seconds: float64, when the step's last gradient was counted.
        uploads: int64, vectors that workers had sent to the server up to and including this
            step, whatever became of them.

    Messages, [n_messages], in the order sent; empty unless the network is a star:

    Attributes:
        message_worker: int32.
        message_direction: int8, see :class:`Direction`.
        message_sent_seconds, message_received_seconds: float64 (received may be past the end).

    And:

    Attributes:
        stalled: empty, or why nothing could happen any more before the horizon.
    """

    n_workers: int
    end_seconds: float
    worker: NDArray[np.int32]
    k: NDArray[np.int32]
    version: NDArray[np.int32]
    start_seconds: NDArray[np.float64]
    stop_seconds: NDArray[np.float64]
    status: NDArray[np.int8]
    step: NDArray[np.int32]
    weight: NDArray[np.float64]
    step_seconds: NDArray[np.float64]
    close_seconds: NDArray[np.float64]
    uploads: NDArray[np.int64]
    message_worker: NDArray[np.int32]
    message_direction: NDArray[np.int8]
    message_sent_seconds: NDArray[np.float64]
    message_received_seconds: NDArray[np.float64]
    stalled: str = ""

    @property
    def n_computations(self) -> int:
        """Computations started."""
        return len(self.worker)

    @property
    def n_steps(self) -> int:
        """Server steps taken."""
        return len(self.step_seconds)

    @property
    def nbytes(self) -> int:
        """Bytes held by the columns."""
        return sum(v.nbytes for v in vars(self).values() if isinstance(v, np.ndarray))

    def used_rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of the computations each step used.

        Returns:
            rows [n_used], ordered by step and then by row, and offsets [n_steps + 1]: step s used
            ``rows[offsets[s]:offsets[s + 1]]``.
        """
        used = np.flatnonzero(self.step >= 0)
        rows = used[np.argsort(self.step[used], kind="stable")]
        offsets = np.searchsorted(self.step[rows], np.arange(self.n_steps + 1))
        return rows, offsets.astype(np.int64)

    def staleness(self) -> NDArray[np.int32]:
        """Server steps between a used gradient's point and the step it entered, [n_computations].

        Steps taken when it *arrived* where a buffer held it is what coordinators see; this is the
        count at the step itself, the number update rules are told. -1 for gradients not used.
        """
        return np.where(self.step >= 0, self.step - self.version, -1).astype(np.int32)

    def version_at(self, seconds: NDArray[np.float64]) -> NDArray[np.int64]:
        """Server steps taken at these times, [len(seconds)]; a step counts at its own instant."""
        return np.searchsorted(self.step_seconds, seconds, side="right")

    def digest(self) -> str:
        """Hexadecimal; the same for equal schedules, and in practice for no others."""
        found = hashlib.sha256(repr((self.n_workers, self.end_seconds, self.stalled)).encode())
        for column in vars(self).values():
            if isinstance(column, np.ndarray):
                found.update(np.ascontiguousarray(column).data)
        return found.hexdigest()

    def counts(self) -> dict[str, int]:
        """Gradients used, discarded, cancelled and in flight, by name."""
        tally = np.bincount(self.status, minlength=len(Status))
        return {status.name.lower(): int(tally[status]) for status in Status}
