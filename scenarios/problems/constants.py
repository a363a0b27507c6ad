"""The constants of an objective that theory speaks of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constants:
    """What is known of an objective f (RL: -J); None where nothing is.

    Attributes:
        gradient_lipschitz: L_g, |grad f(x) - grad f(y)| <= L_g |x - y|.
        hessian_lipschitz: L_h, the same for Hessians in the spectral norm.
        sigma: E|g - grad f(x)|^2 <= sigma^2 for one stochastic gradient g, in the Euclidean norm.
        initial_gap: Delta = f(x_0) - inf f.
    """

    gradient_lipschitz: float | None = None
    hessian_lipschitz: float | None = None
    sigma: float | None = None
    initial_gap: float | None = None
