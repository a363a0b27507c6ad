"""Hard instances of one class: fixed L_g, L_h, sigma and Delta, a target that shrinks.

For each number T of coordinates there is one target epsilon at which the instance uses up the
class's Delta: f(x) = epsilon s F_T(x / s) has |grad f| > epsilon until its last coordinate is
found, Hessian constant L_h = 2070 epsilon / s^2 and so s = sqrt(2070 epsilon / L_h), gap epsilon s
times that of F_T, and p such that sigma is the class's. So T grows like epsilon^-1.5 and 1/p like
epsilon^-2, whose product is the lower bound's epsilon^-3.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.theory.setting import Objective
from scenarios.problems.exact_specs import HardInstanceSpec
from scenarios.problems.hard_instance import (
    GRADIENT_LIPSCHITZ,
    HESSIAN_LIPSCHITZ,
    LARGEST_HIDDEN,
    infimum,
)

_SIGMA = LARGEST_HIDDEN  # p = 1/2 where epsilon = 1


@dataclass(frozen=True)
class Member:
    """One instance of the class.

    Attributes:
        coordinates: T.
        epsilon: its target.
        probability: p.
        scale: s.
        objective: the class's constants, with this target.
    """

    coordinates: int
    epsilon: float
    probability: float
    scale: float
    objective: Objective

    @property
    def spec(self) -> HardInstanceSpec:
        """As a problem, in double precision."""
        lipschitz = GRADIENT_LIPSCHITZ * self.epsilon / self.scale
        return HardInstanceSpec(
            self.coordinates, self.probability, lipschitz, self.scale, "float64"
        )


def family(coordinates: list[int]) -> list[Member]:
    """The instances with so many coordinates, ascending; the first has epsilon = 1.

    The class has L_g = 152, L_h = 2070, sigma = e^1.5, and the gap of the first instance.
    """
    gap = _gap(coordinates[0])
    members = []
    for count in coordinates:
        epsilon = (gap / _gap(count)) ** (2 / 3)
        chance = 1 / (1 + (_SIGMA / (LARGEST_HIDDEN * epsilon)) ** 2)
        objective = Objective(epsilon, GRADIENT_LIPSCHITZ, HESSIAN_LIPSCHITZ, _SIGMA, gap)
        members.append(Member(count, epsilon, chance, math.sqrt(epsilon), objective))
    return members


def _gap(coordinates: int) -> float:
    """F_T(0) - inf F_T; F_T(0) = -sqrt(2 pi e)/2."""
    return -math.sqrt(2 * math.pi * math.e) / 2 - infimum(coordinates)
