"""Seconds of a server step under each coordinator, from its arguments: exact where it can be.

A table by coordinator, as in ``algorithms.coordinators``; arguments by the names of its
constructor, which are those of scenario files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from analysis.theory import aggregation, bounds
from analysis.theory.fleet import Seconds
from simulator.errors import ConfigurationError, nearest

EXACT, AVERAGE, AT_LEAST = "exact", "average", "at least"


@dataclass(frozen=True, eq=False)
class Cluster:
    """Workers in their order, and what communication costs them.

    Attributes:
        seconds_per_gradient: h, [n_workers], > 0, in any order.
        down_seconds, up_seconds: of a star, [n_workers] >= 0.
        collective_seconds: of an AllReduce; a network is a star, a collective or neither.
    """

    seconds_per_gradient: Seconds
    down_seconds: Seconds = field(default_factory=lambda: np.zeros(1))
    up_seconds: Seconds = field(default_factory=lambda: np.zeros(1))
    collective_seconds: float = 0.0

    def __post_init__(self) -> None:
        n_workers = len(self.seconds_per_gradient)
        for name in ("down_seconds", "up_seconds"):
            value = np.broadcast_to(getattr(self, name), (n_workers,))
            object.__setattr__(self, name, value)

    @property
    def kappa_seconds(self) -> float:
        """One round of communication: the slowest worker's down and up, or a collective."""
        return float((self.down_seconds + self.up_seconds).max()) + self.collective_seconds


class StepTime(NamedTuple):
    """Seconds of a step.

    Attributes:
        seconds: of every step but the first.
        first_seconds: of the first, whose batch may be larger.
        kind: "exact"; "average" in the long run; "at least".
        at_most: a bound, inf if none is known.
        gradients: that a step uses; as an average, if it varies.
    """

    seconds: float
    first_seconds: float
    kind: str
    at_most: float
    gradients: float


Arguments = Mapping[str, Any]


def step_time(coordinator: str, arguments: Arguments, cluster: Cluster) -> StepTime:
    """Predict a step.

    Args:
        coordinator: key of ``algorithms.coordinators.COORDINATORS``.
        arguments: of its constructor, besides ``n_workers``; valid.
        cluster: the fleet and its network.

    Raises:
        ConfigurationError: nothing is known of such a coordinator.
    """
    if coordinator not in STEP_TIMES:
        raise ConfigurationError(
            f"coordinator = {coordinator!r}: theory knows no time of its steps."
            f"{nearest(coordinator, STEP_TIMES)}"
        )
    return STEP_TIMES[coordinator](arguments, cluster)


def _rennala(arguments: Arguments, cluster: Cluster) -> StepTime:
    return _collecting(
        arguments, cluster, aggregation.rennala_star_seconds, bounds.rennala_bound_seconds
    )


def _malenia(arguments: Arguments, cluster: Cluster) -> StepTime:
    return _collecting(
        arguments, cluster, aggregation.malenia_star_seconds, bounds.malenia_bound_seconds
    )


def _collecting(
    arguments: Arguments,
    cluster: Cluster,
    seconds_of: Callable[..., float],
    bound_of: Callable[..., float],
) -> StepTime:
    batch_size = arguments["batch_size"]
    first = arguments.get("initial_batch_size", batch_size)
    stale = arguments.get("stale", "cancel")
    seconds, first_seconds = (
        seconds_of(cluster.seconds_per_gradient, size, cluster.down_seconds, cluster.up_seconds)
        + cluster.collective_seconds
        for size in (batch_size, first)
    )
    ordered = np.sort(cluster.seconds_per_gradient)
    at_most = math.inf
    if stale == "cancel":
        at_most = seconds
    elif math.isfinite(ordered[0]) and not cluster.kappa_seconds:
        at_most = bound_of(ordered, batch_size, stale)
    kind = EXACT if stale == "cancel" else AT_LEAST
    return StepTime(seconds, first_seconds, kind, at_most, batch_size)


def _synchronous(arguments: Arguments, cluster: Cluster) -> StepTime:
    batch, wait_for = arguments.get("gradients_per_worker", 1), arguments.get("wait_for")
    seconds = cluster.collective_seconds + aggregation.synchronous_seconds(
        cluster.seconds_per_gradient, batch, wait_for, cluster.down_seconds, cluster.up_seconds
    )
    workers = len(cluster.seconds_per_gradient) if wait_for is None else wait_for
    return StepTime(seconds, seconds, EXACT, seconds, batch * workers)


def _asynchronous(arguments: Arguments, cluster: Cluster) -> StepTime:
    return _arriving(1, cluster)


def _buffered(arguments: Arguments, cluster: Cluster) -> StepTime:
    return _arriving(arguments["buffer_size"], cluster)


def _arriving(gradients: int, cluster: Cluster) -> StepTime:
    rate = aggregation.arrivals_per_second(
        cluster.seconds_per_gradient, cluster.down_seconds, cluster.up_seconds
    )
    seconds = gradients / rate if rate else math.inf
    cycles = aggregation.cycle_seconds(
        cluster.seconds_per_gradient, 1, cluster.down_seconds, cluster.up_seconds
    )
    first = aggregation.rennala_seconds(cycles, gradients)
    return StepTime(seconds, first, AVERAGE, math.inf, gradients)


def _ringmaster(arguments: Arguments, cluster: Cluster) -> StepTime:
    """Some arrivals are too stale to be a step."""
    every = _arriving(1, cluster)
    at_most = math.inf
    ordered = np.sort(cluster.seconds_per_gradient)
    if math.isfinite(ordered[0]) and not cluster.kappa_seconds:
        staleness = arguments["max_staleness"]
        at_most = bounds.ringmaster_bound_seconds(ordered, staleness) / staleness
    return every._replace(kind=AT_LEAST, at_most=at_most)


STEP_TIMES: dict[str, Callable[[Arguments, Cluster], StepTime]] = {
    "rennala": _rennala,
    "malenia": _malenia,
    "synchronous": _synchronous,
    "asynchronous": _asynchronous,
    "buffered": _buffered,
    "ringmaster": _ringmaster,
}
"""By coordinator."""
