"""What problem to solve, as plain frozen data: validated here, built by the registry.

Importing this module imports neither jax nor gymnasium. What depends on the size of the fleet is
checked when the problem is built.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from scenarios.problems.exact_specs import HardInstanceSpec, MDPSpec
from scenarios.problems.field_checks import (
    DTYPES,
    check_choice,
    check_integer,
    check_number,
    frozen,
)
from simulator.errors import ConfigurationError

POLICIES = ("auto", "categorical", "gaussian", "tabular")
STEPPERS = ("gymnasium", "envpool")
QUADRATICS = ("tridiagonal", "given")


@dataclass(frozen=True)
class EnvironmentSpec:
    """A policy to train in a Gymnasium environment.

    A *per-worker value* below is one value for all the workers; a list with one entry per worker;
    ``{"low": a, "high": b}``, evenly spaced from the first worker to the last; or
    ``{"cycle": [...]}``, dealt out in turn. A value that is itself a list goes into a list.

    Attributes:
        environment: a Gymnasium id. One with a functional (JAX) implementation, such as
            "phys2d/CartPole-v1", runs inside jit; any other is stepped by Python.
        horizon: H, environment steps, >= 1. The environment's own time limit cuts earlier.
        discount: gamma in (0, 1].
        policy: "auto" is Gaussian for continuous actions, tabular for discrete observations
            with discrete actions, else categorical.
        hidden: widths of the tanh layers of the policy network; () makes it linear.
        baseline: reward per step that the baseline presumes; 0 is no baseline. See
            ``algorithms.policy_gradient``.
        normalise: standardise returns to go within each trajectory (biased).
        environment_parameters: name -> per-worker value: fields of a functional environment's
            parameters, or keyword arguments of any other environment.
        observation_scale: per-worker factor on observations, a number or one per coordinate;
            -1 flips their signs.
        reward_scale: per-worker factor on rewards.
        evaluation_episodes: episodes per evaluated point, >= 1, at least; every worker's
            environment gets the same number.
        stepper: of an environment that is not JAX's: "gymnasium", or "envpool", which is faster,
            for the ids in ``scenarios.problems.steppers.CHECKED``.
        dtype: "float32" or "float64" (needs JAX's x64 mode).
    """

    environment: str
    horizon: int = 200
    discount: float = 0.99
    policy: str = "auto"
    hidden: tuple[int, ...] = (64, 64)
    baseline: float = 0.0
    normalise: bool = False
    environment_parameters: Mapping[str, Any] = field(default_factory=dict)
    observation_scale: Any = 1.0
    reward_scale: Any = 1.0
    evaluation_episodes: int = 32
    stepper: str = "gymnasium"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Freeze and validate.

        Raises:
            ConfigurationError: naming the field, its value and what is allowed.
        """
        for item in fields(self):
            object.__setattr__(self, item.name, frozen(getattr(self, item.name)))
        if not isinstance(self.environment, str) or not self.environment:
            raise ConfigurationError(
                f"environment = {self.environment!r}: expected a Gymnasium id, as 'CartPole-v1'"
            )
        check_integer("horizon", self.horizon, 1, "environment steps")
        check_number("discount", self.discount, 1e-12, 1.0, "a number in (0, 1]")
        check_choice("policy", self.policy, POLICIES)
        for width in self.hidden if isinstance(self.hidden, tuple) else (self.hidden,):
            check_integer("hidden", width, 1, "units, one number per layer")
        if not isinstance(self.hidden, tuple):
            raise ConfigurationError(f"hidden = {self.hidden!r}: expected a list, as [64, 64]")
        check_number("baseline", self.baseline, -math.inf, math.inf, "a finite reward per step")
        if not isinstance(self.normalise, bool):
            raise ConfigurationError(f"normalise = {self.normalise!r}: expected true or false")
        check_integer("evaluation_episodes", self.evaluation_episodes, 1, "episodes")
        check_choice("stepper", self.stepper, STEPPERS)
        check_choice("dtype", self.dtype, DTYPES)


@dataclass(frozen=True)
class QuadraticSpec:
    """Worker i minimises 1/2 x'A_i x - b_i'x and sees gradients with Gaussian noise.

    Attributes:
        kind: "tridiagonal", the worst case A = 1/4 tridiag(-1, 2, -1), b = 1/4 (-1, 0, ..., 0);
            or "given".
        dimension: d, of the tridiagonal one, >= 1.
        A: given: symmetric, [d, d] for all the workers or [n_workers, d, d].
        b: given: [d] or [n_workers, d].
        x0: starting point [d]; None is (sqrt(d), 0, ..., 0).
        noise: standard deviation of the noise on each coordinate of a gradient, >= 0, so that
            its variance sigma^2 is d noise^2.
        dtype: "float32" or "float64" (needs JAX's x64 mode).
    """

    kind: str = "tridiagonal"
    dimension: int = 100
    A: Any = None
    b: Any = None
    x0: Any = None
    noise: float = 0.0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Freeze and validate what does not depend on the fleet.

        Raises:
            ConfigurationError: naming the field, its value and what is allowed.
        """
        for item in fields(self):
            object.__setattr__(self, item.name, frozen(getattr(self, item.name)))
        check_choice("kind", self.kind, QUADRATICS)
        check_number("noise", self.noise, 0.0, math.inf, "a finite number >= 0")
        check_choice("dtype", self.dtype, DTYPES)
        if self.kind == "tridiagonal":
            check_integer("dimension", self.dimension, 1, "coordinates")
        for name in ("A", "b"):
            if (getattr(self, name) is None) != (self.kind == "tridiagonal"):
                needs = "needs" if self.kind == "given" else "does not take"
                raise ConfigurationError(f"{name}: a quadratic of kind {self.kind!r} {needs} it")


ProblemSpec = EnvironmentSpec | QuadraticSpec | MDPSpec | HardInstanceSpec
