"""The coordinator protocol: *when* the server steps. Arrivals in, decisions out.

Rules that every coordinator keeps, checked by the conformance tests:

1. It sees one :class:`Arrival` at a time, in the order in which the server handles them (time,
   then worker index), and answers each with one :class:`Decision`.
2. ``arrival.current_version`` counts the steps the server has *taken*. Under a network a step is
   taken some time after the decision that completed it; a gradient that finishes in between still
   carries the old number. Coordinators that close a step must therefore refuse what arrives until
   the number grows.
3. A decision to step comes with ``use``: only a gradient can complete a step.
4. It never reads a clock, draws a random number or sees a gradient's value. Whatever needs one of
   these belongs to the driver.
5. Arrivals that no run can produce raise :class:`ProtocolError`; nonsense parameters raise
   ``ValueError`` naming the parameter, its value and its range.
"""

from __future__ import annotations

from typing import ClassVar, NoReturn, Protocol

from algorithms.messages import Arrival, Average, Decision, ProtocolError, Reports


class Coordinator(Protocol):
    """Decides which worker computes where, which gradients count, and when the server steps."""

    reports: ClassVar[Reports]
    average: ClassVar[Average]
    collective: ClassVar[bool]
    """True if a step ends in one exchange among all workers, so that an AllReduce can do it."""

    n_workers: int
    gradients_per_assignment: int
    """Gradients a worker computes back to back before its vector goes to the server (VECTORS)."""

    def arrive(self, arrival: Arrival) -> Decision:
        """Handle one arrival.

        Raises:
            ProtocolError: if no run can produce this arrival at this point.
        """
        ...

    def awaited(self) -> tuple[int, ...]:
        """Workers without which the step being collected can not complete, or () if any will do."""
        ...


def check_arrival(arrival: Arrival, n_workers: int, last_version: int) -> None:
    """Refuse an arrival that no run can produce.

    Args:
        arrival: the message to check.
        n_workers: size of the fleet.
        last_version: ``current_version`` of the arrival before, or 0.

    Raises:
        ProtocolError: unknown worker, a version from the future, or a server that went backwards.
    """
    worker, version, current = arrival
    if not (last_version <= current >= version >= 0 <= worker < n_workers):
        refuse_arrival(arrival, n_workers, last_version)


def refuse_arrival(arrival: Arrival, n_workers: int, last_version: int) -> NoReturn:
    """Say what is wrong with an arrival that :func:`check_arrival` refuses.

    Raises:
        ProtocolError: always.
    """
    worker, version, current = arrival
    if not 0 <= worker < n_workers:
        raise ProtocolError(f"worker = {worker}: this fleet has workers 0 to {n_workers - 1}")
    if not 0 <= version <= current:
        raise ProtocolError(
            f"version = {version}: a point can only come from server steps 0 to {current}"
        )
    raise ProtocolError(
        f"current_version = {current}: the server had already taken {last_version} steps"
    )


def check_count(field: str, value: object, unit: str, maximum: int | None = None) -> int:
    """Return ``value`` if it is an integer >= 1 (and <= maximum).

    Raises:
        ValueError: naming the field, the value and the range.
    """
    allowed = "an integer >= 1" if maximum is None else f"an integer from 1 to {maximum}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{field} = {value!r}: expected {allowed} ({unit})")
    if value < 1 or (maximum is not None and value > maximum):
        raise ValueError(f"{field} = {value}: expected {allowed} ({unit})")
    return value


def check_stale(value: object) -> str:
    """Return ``value`` if it names what becomes of work in flight at a step.

    Raises:
        ValueError: if it is neither "cancel" nor "discard".
    """
    if value not in ("cancel", "discard"):
        raise ValueError(f"stale = {value!r}: expected 'cancel' or 'discard'")
    return str(value)
