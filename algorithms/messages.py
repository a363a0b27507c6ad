"""What a coordinator may see and what it may say: frozen tuples, nothing else.

A driver (the discrete-event engine, a unit test, real processes on a cluster) turns "a gradient
has finished" into an :class:`Arrival`, hands it to a coordinator, and obeys the :class:`Decision`.
Neither message holds an array, a clock or a random number.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class ProtocolError(RuntimeError):
    """The driver sent a sequence of arrivals that no run can produce: a bug in the driver."""


class Reports(Enum):
    """What a worker tells the server, and when."""

    VECTORS = "vectors"
    """At the end of each assignment the worker sends one vector, the mean of its gradients, and
    an arrival is that vector reaching the server."""

    COUNTS = "counts"
    """The worker keeps a local sum and goes on at the same point; an arrival is the news, free of
    charge, that one more gradient is in the sum. The sums travel when the step closes."""


class Average(Enum):
    """How the gradients of one server step are averaged."""

    GRADIENTS = "gradients"
    """Every gradient counts alike: sum_j w_j g_j / sum_j w_j (w_j = ``Decision.weight``)."""

    WORKERS = "workers"
    """Every worker counts alike: (1/n) sum_i of the weighted mean of worker i's gradients."""


class Then(Enum):
    """What the worker behind an arrival does next."""

    CONTINUE = "continue"
    """Start another gradient at the point it already has."""

    SEND = "send"
    """Be sent the current query point at once, and compute there."""

    WAIT = "wait"
    """Idle until the next server step, whose query point it is then sent. If this very decision
    steps the server, that is at once."""


class Arrival(NamedTuple):
    """A finished gradient, as the server sees it.

    Attributes:
        worker: index of the worker, 0 <= worker < n_workers.
        version: server steps that had been taken when the worker's point was sent.
        current_version: server steps taken so far.
    """

    worker: int
    version: int
    current_version: int

    @property
    def staleness(self) -> int:
        """Server steps taken since the worker's point was sent."""
        return self.current_version - self.version


class Decision(NamedTuple):
    """The server's answer to one arrival.

    Attributes:
        use: the gradient enters the step that is being collected (otherwise it is thrown away).
        step: the step being collected is complete: average what it used and update the model.
        then: what the worker of this arrival does next.
        cancel_others: with ``step``, every other worker drops its work at once and waits for the
            new point. Without it, work in flight goes on and arrives later, stale.
        weight: relative weight of the gradient in its step, > 0. All ones for the published
            methods; a new method may, say, discount by staleness.
    """

    use: bool
    step: bool = False
    then: Then = Then.WAIT
    cancel_others: bool = False
    weight: float = 1.0
