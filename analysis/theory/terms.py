"""Terms of a complexity, as data: products of powers, the lesser of several where bounds meet."""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.theory.setting import Objective


@dataclass(frozen=True)
class Power:
    """L_g^a L_h^b sigma^c Delta^d epsilon^-e n^f.

    Attributes:
        epsilon: e, as published: the power of 1/epsilon.
        gradient_lipschitz, hessian_lipschitz, sigma, initial_gap: a to d.
        workers: f.
    """

    epsilon: float
    gradient_lipschitz: float = 0.0
    hessian_lipschitz: float = 0.0
    sigma: float = 0.0
    initial_gap: float = 0.0
    workers: float = 0.0

    def value(self, objective: Objective, n_workers: int) -> float:
        """The product; inf where it is beyond floats."""
        factors = [
            (objective.epsilon, -self.epsilon),
            (objective.gradient_lipschitz, self.gradient_lipschitz),
            (objective.hessian_lipschitz, self.hessian_lipschitz),
            (objective.sigma, self.sigma),
            (objective.initial_gap, self.initial_gap),
            (float(n_workers), self.workers),
        ]
        if any(base == 0 and power > 0 for base, power in factors):
            return 0.0
        logarithm = sum(power * math.log(base) for base, power in factors if power)
        return math.exp(logarithm) if logarithm < _LARGEST_LOGARITHM else math.inf

    @property
    def is_dimensionless(self) -> bool:
        """Whether it is a number of steps, whatever the units of points and objective values.

        With gradients in G and points in X: L_g in G/X, L_h in G/X^2, sigma and epsilon in G,
        Delta in G X.
        """
        gradient = self.gradient_lipschitz + self.hessian_lipschitz + self.sigma + self.initial_gap
        point = -self.gradient_lipschitz - 2 * self.hessian_lipschitz + self.initial_gap
        return math.isclose(gradient, self.epsilon) and math.isclose(point, 0.0, abs_tol=1e-12)


_LARGEST_LOGARITHM = 700.0


@dataclass(frozen=True)
class Term:
    """A number of gradients or rounds.

    Attributes:
        name: what it is the price of.
        powers: the term is the least of them.
        is_shared: whether m workers divide it among them.
    """

    name: str
    powers: tuple[Power, ...]
    is_shared: bool = False

    def amount(self, objective: Objective, n_workers: int) -> float:
        """How many gradients or rounds."""
        return min(power.value(objective, n_workers) for power in self.powers)


def fixed(name: str, *powers: Power) -> Term:
    """A term that more workers do not shorten."""
    return Term(name, powers)


def shared(name: str, *powers: Power) -> Term:
    """A term that m workers divide among them."""
    return Term(name, powers, is_shared=True)
