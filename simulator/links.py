"""What a message costs: one link, and collectives built from such links.

The linear model of a link: a message of m bytes takes ``latency + m / bandwidth`` seconds
(Hockney 1994). Arithmetic inside a collective is free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from simulator.errors import ConfigurationError

FLOAT32_BYTES = 4


@dataclass(frozen=True)
class Link:
    """A link between two machines.

    Attributes:
        latency_seconds: >= 0, paid by every message.
        bandwidth_bytes_per_second: > 0; inf sends any number of bytes in no time.

    Raises:
        ConfigurationError: a number is out of range.
    """

    latency_seconds: float = 0.0
    bandwidth_bytes_per_second: float = math.inf

    def __post_init__(self) -> None:
        if not _is_number(self.latency_seconds) or not 0 <= self.latency_seconds < math.inf:
            raise ConfigurationError(
                f"latency_seconds = {self.latency_seconds!r}: expected a finite number >= 0 "
                "(seconds)"
            )
        bandwidth = self.bandwidth_bytes_per_second
        if not _is_number(bandwidth) or not bandwidth > 0:
            raise ConfigurationError(
                f"bandwidth_bytes_per_second = {bandwidth!r}: expected a number > 0 (bytes per "
                "second)"
            )

    def seconds(self, message_bytes: float) -> float:
        """Seconds for one message.

        >>> Link(latency_seconds=0.5, bandwidth_bytes_per_second=100).seconds(50)
        1.0
        """
        if not 0 <= message_bytes < math.inf:
            raise ConfigurationError(
                f"message_bytes = {message_bytes!r}: expected a finite number >= 0 (bytes)"
            )
        return self.latency_seconds + message_bytes / self.bandwidth_bytes_per_second


def message_bytes(dimension: int, bytes_per_number: float = FLOAT32_BYTES) -> float:
    """Bytes of a vector of ``dimension`` numbers.

    Raises:
        ConfigurationError: the dimension is below 1, or a number has no bytes.
    """
    if dimension < 1:
        raise ConfigurationError(f"dimension = {dimension!r}: expected an integer >= 1")
    if not 0 < bytes_per_number < math.inf:
        raise ConfigurationError(
            f"bytes_per_number = {bytes_per_number!r}: expected a finite number > 0 (bytes)"
        )
    return dimension * bytes_per_number


def ring_allreduce_seconds(n_workers: int, link: Link, message_bytes: float) -> float:
    """Seconds of a ring all-reduce of one vector: best for long ones.

    Reduce-scatter, then all-gather: 2 (n - 1) rounds, each passing a vector's n-th part to the
    neighbour: 2 (n-1) latency + 2 (n-1)/n bytes / bandwidth.

    Args:
        n_workers: n, >= 1; a single worker needs no communication.
        link: between neighbours; all work at once.
        message_bytes: of the whole vector, >= 0.

    Raises:
        ConfigurationError: an argument is out of range.

    Source: Patarasuk & Yuan (2009), "Bandwidth optimal all-reduce algorithms for clusters of
    workstations"; Thakur, Rabenseifner & Gropp (2005), section 4.1 (ring all-gather).

    >>> ring_allreduce_seconds(4, Link(0.5, 100.0), 400.0)
    9.0
    """
    _check_workers(n_workers)
    return 2 * (n_workers - 1) * link.seconds(message_bytes / n_workers)


def tree_allreduce_seconds(n_workers: int, link: Link, message_bytes: float) -> float:
    """Seconds of a binomial-tree reduce followed by a broadcast: best for short vectors.

    ceil(log2 n) rounds each way, every message a whole vector:
    2 ceil(log2 n) (latency + bytes / bandwidth).

    Args:
        n_workers: n, >= 1; a single worker needs no communication.
        link: between any two workers.
        message_bytes: of the whole vector, >= 0.

    Raises:
        ConfigurationError: an argument is out of range.

    Source: Thakur, Rabenseifner & Gropp (2005), "Optimization of collective communication
    operations in MPICH", binomial-tree broadcast and reduce.

    >>> tree_allreduce_seconds(5, Link(0.5, 100.0), 400.0)
    27.0
    """
    _check_workers(n_workers)
    # ceil(log2 n) in integers: the logarithm of a large power of two may round up.
    rounds = (n_workers - 1).bit_length()
    return 2 * rounds * link.seconds(message_bytes)


def _check_workers(n_workers: int) -> None:
    if n_workers < 1:
        raise ConfigurationError(f"n_workers = {n_workers!r}: expected an integer >= 1")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
