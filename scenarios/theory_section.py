"""``[theory]``: what is known of the objective, and the target that parameters are chosen for."""

from __future__ import annotations

from scenarios.sections import FiniteNonNegative, FinitePositive, Section


class TheorySection(Section):
    """Constants as in ``analysis.theory.setting.Objective``; they change no simulation.

    Those left out are the problem's own, if it knows them.
    """

    epsilon: FinitePositive | None = None
    """Target of E|grad f|, not squared."""
    gradient_lipschitz: FinitePositive | None = None
    hessian_lipschitz: FiniteNonNegative | None = None
    sigma: FiniteNonNegative | None = None
    initial_gap: FiniteNonNegative | None = None
    sharp: bool = False
    """Choose NIGT's parameters by the constants derived in ``analysis.theory.guarantees``."""
    reward_bound: FiniteNonNegative | None = None
    """R >= |r|, for a recommended horizon."""
    score_bound: FiniteNonNegative | None = None
    """G >= |grad log pi|, for a recommended horizon; sqrt(2) for a softmax over logits."""
