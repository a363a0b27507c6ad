"""Executors: they turn a schedule into numbers. All give the same, up to rounding."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.executors.common import Execution

EXECUTORS = {
    "batched": "simulator.executors.batched:batched",
    "compiled": "simulator.executors.compiled:compiled",
    "sequential": "simulator.executors.sequential:Sequential",
}
"""Name -> what makes one; the names can be listed without importing JAX."""


def executor(name: str) -> Callable[..., Execution]:
    """What makes an :class:`Execution` by that executor; called with its arguments.

    Raises:
        KeyError: if there is none.
    """
    module, _, attribute = EXECUTORS[name].partition(":")
    make: Callable[..., Execution] = getattr(import_module(module), attribute)
    return make


__all__ = ["EXECUTORS", "executor"]
