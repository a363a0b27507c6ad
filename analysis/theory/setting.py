"""The numbers that complexities are functions of: a fleet, an objective and a target."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

from analysis.theory.fleet import Seconds, ascending, harmonic_means
from simulator.errors import ConfigurationError


@dataclass(frozen=True)
class Objective:
    """What is known of an objective f (RL: -J), and what is wanted of it.

    Attributes:
        epsilon: target of E|grad f|, not squared, > 0.
        gradient_lipschitz: L_g > 0.
        hessian_lipschitz: L_h >= 0.
        sigma: E|g - grad f|^2 <= sigma^2 for one gradient, >= 0.
        initial_gap: Delta = f(x_0) - inf f, >= 0.

    Raises:
        ConfigurationError: a number is out of range.
    """

    epsilon: float
    gradient_lipschitz: float = 1.0
    hessian_lipschitz: float = 1.0
    sigma: float = 1.0
    initial_gap: float = 1.0

    def __post_init__(self) -> None:
        for name, is_zero_allowed in _RANGES.items():
            check_number(name, getattr(self, name), is_zero_allowed)

    def without_constants(self) -> Objective:
        """All constants 1, as complexities are often printed."""
        return Objective(self.epsilon)


_RANGES = {
    "epsilon": False,
    "gradient_lipschitz": False,
    "hessian_lipschitz": True,
    "sigma": True,
    "initial_gap": True,
}


def check_number(name: str, value: Any, is_zero_allowed: bool) -> None:
    """Refuse what is no finite number > 0, or >= 0.

    Raises:
        ConfigurationError: naming the field.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    is_inside = is_number and (value >= 0 if is_zero_allowed else value > 0)
    if not is_inside or not math.isfinite(value):
        sign = ">=" if is_zero_allowed else ">"
        raise ConfigurationError(f"{name} = {value!r}: expected a finite number {sign} 0")


@dataclass(frozen=True, eq=False)
class Setting:
    """A fleet and an objective.

    Attributes:
        seconds_per_gradient: h, [n_workers], ascending.
        objective: its constants and the target.
        kappa_seconds: seconds of one communication, >= 0: worker to server and back, or an
            AllReduce.

    Raises:
        ConfigurationError: a number is out of range.
    """

    seconds_per_gradient: Seconds
    objective: Objective
    kappa_seconds: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds_per_gradient", ascending(self.seconds_per_gradient))
        check_number("kappa_seconds", self.kappa_seconds, is_zero_allowed=True)

    @property
    def n_workers(self) -> int:
        """Size of the fleet."""
        return len(self.seconds_per_gradient)

    @cached_property
    def harmonic_means(self) -> Seconds:
        """H_m of the m fastest workers, [n_workers]."""
        return harmonic_means(self.seconds_per_gradient)

    def without_constants(self) -> Setting:
        """The same fleet and target, the objective's constants 1."""
        return replace(self, objective=self.objective.without_constants())
