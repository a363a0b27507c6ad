"""Errors, split by whose fault they are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ConfigurationError(ValueError):
    """The user asked for something that has no meaning. The text is for them to read.

    It names the field (and file), the value, and what is allowed.
    """


class SimulationStalled(RuntimeError):
    """The simulation can no longer advance: nothing that would bring the next step is on its way.

    The text says when, after how many steps, and which workers it waits for.
    """


class SimulationBug(AssertionError):
    """The simulator broke one of its own rules. Please report it."""


def nearest(name: str, names: Iterable[str]) -> str:
    """' Did you mean X?' for the closest of ``names``, or the whole list if none is close."""
    known = list(names)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f" Did you mean {close[0]!r}?"
    return f" Known: {', '.join(sorted(known))}."
