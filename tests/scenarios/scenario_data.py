"""A small valid scenario for tests to start from, as plain data."""

from __future__ import annotations

import copy
import signal
from typing import Any

_SMALL: dict[str, Any] = {
    "name": "small",
    "seeds": 1,
    "executor": "sequential",
    "problem": {"kind": "quadratic", "dimension": 3, "noise": 0.1},
    "fleet": {"workers": 3, "compute": {"profile": {"kind": "power", "exponent": 0.5}}},
    "methods": [
        {"id": "rennala-sgd", "batch_size": 2, "stepsize": 0.5},
        {"id": "asynchronous-sgd", "stepsize": 0.2},
    ],
    "budget": {"seconds": 5},
    "evaluation": {"points": 3},
}


def small(**changes: Any) -> dict[str, Any]:
    """A fresh copy, with values at dotted paths replaced; None removes one."""
    data = copy.deepcopy(_SMALL)
    for place, value in changes.items():
        *parents, last = place.split("__")
        target: Any = data
        for part in parents:
            target = target[int(part)] if part.isdecimal() else target.setdefault(part, {})
        key = int(last) if last.isdecimal() else last
        if value is None:
            del target[key]
        else:
            target[key] = value
    return data


def hears_ctrl_c() -> None:
    """For ``preexec_fn``: a shell's background jobs, and what they start, ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
