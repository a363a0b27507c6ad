"""How long a simulation runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simulator.errors import ConfigurationError


@dataclass(frozen=True)
class Budget:
    """The end of a run: the first of the limits that are given.

    Nothing that completes after the end counts; what completes at it does.

    Attributes:
        seconds: simulated seconds, > 0.
        steps: server steps, >= 1.
        gradients: gradients used by server steps, >= 1; a step that would use more is not taken.

    Raises:
        ConfigurationError: no limit, or one out of range.
    """

    seconds: float | None = None
    steps: int | None = None
    gradients: int | None = None

    def __post_init__(self) -> None:
        if self.seconds is None and self.steps is None and self.gradients is None:
            raise ConfigurationError("budget: expected at least one of seconds, steps, gradients")
        if self.seconds is not None and not (0 < self.seconds < math.inf):
            raise ConfigurationError(
                f"budget.seconds = {self.seconds}: expected a finite number > 0 (simulated seconds)"
            )
        for field, unit in (("steps", "server steps"), ("gradients", "gradients used")):
            value = getattr(self, field)
            if value is not None and (isinstance(value, bool) or int(value) != value or value < 1):
                raise ConfigurationError(
                    f"budget.{field} = {value}: expected an integer >= 1 ({unit})"
                )
