"""Problems on which what theory speaks of can be computed, as plain frozen data."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from scenarios.problems.field_checks import (
    DTYPES,
    check_choice,
    check_integer,
    check_number,
    frozen,
)
from simulator.errors import ConfigurationError

MDP_PARAMETERS: dict[str, dict[str, int | float]] = {
    "garnet": {"states": 20, "actions": 4, "branching": 3},
    "chain": {"states": 6, "actions": 2, "slip": 0.0},
    "grid": {"width": 4, "height": 4, "slip": 0.1},
}
"""Kind -> what it takes, with defaults."""

LARGEST_DISCOUNT = 0.9999
"""Nearer to 1 the linear systems behind exact values lose too many digits."""

_LEAST = {"states": 2, "actions": 1, "branching": 1, "width": 1, "height": 1}


@dataclass(frozen=True)
class MDPSpec:
    """A tabular MDP and a softmax policy with one logit for each (state, action).

    A *per-worker value* is one as in :class:`scenarios.problems.specs.EnvironmentSpec`: one
    value, a list with one entry per worker, ``{"low", "high"}`` or ``{"cycle"}``. The objective is
    the plain average over the workers' MDPs.

    Attributes:
        kind: "garnet": random; "chain": one action leads on, the others back; "grid": find the
            opposite corner. See ``scenarios.problems.mdp``.
        states: S of garnet and chain, >= 2.
        actions: A of garnet and chain, >= 1, of the chain >= 2.
        branching: states that a state and action may lead to, of garnet, 1 to S.
        width, height: of the grid, together >= 2 cells.
        slip: probability that the action is not obeyed, of chain and grid, in [0, 1].
        horizon: H, steps of a sampled trajectory, >= 1.
        discount: gamma in (0, 0.9999].
        seed: per-worker integer >= 0: which random MDP, and which perturbation.
        reward_perturbation: per-worker number >= 0: what is added to each reward is uniform in
            [-it, it], drawn for each worker.
        transition_perturbation: per-worker number q in [0, 1]: the worker's transitions are
            (1 - q) the common ones + q random ones of its own.
        dtype: "float32" or "float64" (needs JAX's x64 mode), of gradients; metrics are computed
            in float64.
    """

    kind: str = "garnet"
    states: int | None = None
    actions: int | None = None
    branching: int | None = None
    width: int | None = None
    height: int | None = None
    slip: float | None = None
    horizon: int = 50
    discount: float = 0.9
    seed: Any = 0
    reward_perturbation: Any = 0.0
    transition_perturbation: Any = 0.0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Freeze, fill in the kind's parameters and validate what does not depend on the fleet.

        Raises:
            ConfigurationError: naming the field, its value and what is allowed.
        """
        for item in fields(self):
            object.__setattr__(self, item.name, frozen(getattr(self, item.name)))
        check_choice("kind", self.kind, tuple(MDP_PARAMETERS))
        self._fill_in()
        for name in _LEAST:
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), _LEAST[name], name)
        self._check_sizes()
        if self.slip is not None:
            check_number("slip", self.slip, 0.0, 1.0, "a probability")
        check_integer("horizon", self.horizon, 1, "steps")
        check_number(
            "discount",
            self.discount,
            1e-12,
            LARGEST_DISCOUNT,
            f"a number in (0, {LARGEST_DISCOUNT}]",
        )
        check_choice("dtype", self.dtype, DTYPES)

    def _fill_in(self) -> None:
        takes = MDP_PARAMETERS[self.kind]
        for name in {name for parameters in MDP_PARAMETERS.values() for name in parameters}:
            if name not in takes and getattr(self, name) is not None:
                raise ConfigurationError(
                    f"{name}: a {self.kind} does not take it; it takes {', '.join(takes)}"
                )
            if name in takes and getattr(self, name) is None:
                object.__setattr__(self, name, takes[name])

    def _check_sizes(self) -> None:
        if self.kind == "garnet" and self.branching > self.states:  # type: ignore[operator]
            raise ConfigurationError(
                f"branching = {self.branching}: expected at most states = {self.states}"
            )
        if self.kind == "chain" and self.actions == 1:
            raise ConfigurationError("actions = 1: expected an integer >= 2 for a chain")
        if self.kind == "grid" and self.width == self.height == 1:
            raise ConfigurationError("width = 1: expected at least two cells in the grid")


@dataclass(frozen=True)
class HardInstanceSpec:
    """The function on which no method that makes stochastic gradient steps is fast.

    f(x) = L s^2 / 152 F_T(x / s), with F_T and its oracle as in
    ``scenarios.problems.hard_instance``.

    Attributes:
        dimension: T, >= 1: coordinates to be found one after the other.
        probability: p in (0, 1]: how often a gradient shows the next coordinate.
        gradient_lipschitz: L > 0; 152 and scale 1 give F_T itself.
        scale: s > 0; |grad f| > L s / 152 until the last coordinate has reached s.
        dtype: "float32" or "float64" (needs JAX's x64 mode).
    """

    dimension: int = 20
    probability: float = 0.1
    gradient_lipschitz: float = 152.0
    scale: float = 1.0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Validate.

        Raises:
            ConfigurationError: naming the field, its value and what is allowed.
        """
        check_integer("dimension", self.dimension, 1, "coordinates")
        check_number("probability", self.probability, 1e-9, 1.0, "a number in [1e-9, 1]")
        for name in ("gradient_lipschitz", "scale"):
            check_number(name, getattr(self, name), 1e-30, math.inf, "a finite number >= 1e-30")
        check_choice("dtype", self.dtype, DTYPES)
