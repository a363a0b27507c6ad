"""Networks: what communication costs. ``none``, ``star`` and ``allreduce`` (DESIGN 2)."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.delays import Delays


@dataclass(frozen=True)
class NoNetwork:
    """Everything but computation is free."""


@dataclass(frozen=True)
class Star:
    """The model reaches worker i ``down`` seconds after it is sent; a vector from i takes ``up``.

    The k of a delay counts the messages of that worker in that direction.
    """

    down: Delays
    up: Delays


@dataclass(frozen=True)
class AllReduce:
    """One collective a step takes ``collective`` seconds; then every worker has the new model.

    ``collective`` has one "worker", index 0; its k is the server step.
    """

    collective: Delays


Network = NoNetwork | Star | AllReduce
