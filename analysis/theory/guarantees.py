"""What theory guarantees for given parameters, every constant included.

All minimise f (RL: -J), with L_g, L_h, sigma and Delta as in ``setting.Objective``; M is the batch,
alpha the stepsize, eta the momentum. A guarantee is a tuple of named parts that add up.

Source: Tyurin, Spiridonov & Rudenko (2025), arXiv 2509.24305 [APG], Lemmas D.1 and D.2. Checked
by deriving them: NIGT's error e_t = d_t - grad f(x_t) obeys

    e_t = (1-eta) e_{t-1} + eta noise_t + (1-eta) R_1 + eta R_2,

R_1 and R_2 the second-order remainders of grad f from x_t to x_{t-1}, alpha away, and to the query
point, (1-eta)/eta alpha away; the Hessian terms cancel. So |(1-eta) R_1 + eta R_2| <= (1-eta) L_h
alpha^2 / (2 eta), and after summing a geometric series the curvature part is (1-eta)/2 L_h
alpha^2/eta^2, four times less than APG's 2 L_h alpha^2/eta^2, and the noise part sqrt(eta/(2-eta))
sigma/sqrt(M) instead of sqrt(eta) sigma/sqrt(M). ``is_sharp`` asks for these. No truncation enters
e_t if L_h is J_H's own; |grad J - grad J_H| is added once (APG: O(gamma^H / eta)).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from analysis.theory.setting import Objective, check_number
from simulator.errors import ConfigurationError


class Part(NamedTuple):
    """One part of a bound."""

    name: str
    value: float


def total(parts: tuple[Part, ...]) -> float:
    """The bound: the sum of its parts."""
    return sum(part.value for part in parts)


def momentum_error(
    objective: Objective,
    step: int,
    momentum: float,
    stepsize: float,
    batch_size: int,
    initial_batch_size: int,
    is_sharp: bool = False,
) -> tuple[Part, ...]:
    """E|d_t - grad f(x_t)| of NIGT in server step t = 0, 1, ...: initial, noise and curvature.

    APG, Lemma D.2: (1-eta)^t sigma/sqrt(M_init) + sqrt(eta) sigma/sqrt(M) + 2 L_h alpha^2/eta^2.

    Args:
        objective: ``epsilon`` is not used.
        step: t.
        momentum: eta in (0, 1].
        stepsize: alpha > 0, the length of every step.
        batch_size, initial_batch_size: M and M_init; for Malenia its batch size, which bounds the
            variance by sigma^2/M whatever the counts.
        is_sharp: the constants derived above instead of the published ones.

    Raises:
        ConfigurationError: a number is out of range.
    """
    _check_nigt(momentum, stepsize)
    noise, curvature = _constants(momentum, is_sharp)
    return (
        Part("initial", (1 - momentum) ** step * objective.sigma / math.sqrt(initial_batch_size)),
        Part("noise", noise * objective.sigma / math.sqrt(batch_size)),
        Part("curvature", curvature * objective.hessian_lipschitz * (stepsize / momentum) ** 2),
    )


def nigt_guarantee(
    objective: Objective,
    steps: int,
    momentum: float,
    stepsize: float,
    batch_size: int,
    initial_batch_size: int,
    is_sharp: bool = False,
) -> tuple[Part, ...]:
    """Mean of E|grad f(x_t)| over t < T, for NIGT with batches of M.

    Delta/(alpha T) + 2 sigma/(eta T sqrt(M_init)) + 2 sqrt(eta/M) sigma + 4 L_h alpha^2/eta^2
    + L_g alpha/2: one-step progress (APG, Lemma D.1) with Lemma D.2 in it, averaged.

    Args:
        steps: T >= 1. The others as in :func:`momentum_error`.
    """
    _check_nigt(momentum, stepsize)
    noise, curvature = _constants(momentum, is_sharp)
    sigma = objective.sigma
    return (
        Part("gap", objective.initial_gap / (stepsize * steps)),
        Part("initial", 2 * sigma / (momentum * steps * math.sqrt(initial_batch_size))),
        Part("noise", 2 * noise * sigma / math.sqrt(batch_size)),
        Part("curvature", 2 * curvature * objective.hessian_lipschitz * (stepsize / momentum) ** 2),
        Part("smoothness", objective.gradient_lipschitz * stepsize / 2),
    )


def sgd_guarantee(
    objective: Objective, steps: int, stepsize: float, batch_size: int
) -> tuple[Part, ...]:
    """Mean of E|grad f(x_t)|^2 over t < T, for SGD with batches of M: squared, unlike NIGT's.

    2 Delta/(gamma T) + L_g gamma sigma^2/M for gamma <= 1/L_g: from f(x - gamma g) <= f(x) - gamma
    <grad f, g> + L_g gamma^2 |g|^2/2 and E|g|^2 <= |grad f|^2 + sigma^2/M.

    Raises:
        ConfigurationError: the stepsize is not in (0, 1/L_g].
    """
    smooth = objective.gradient_lipschitz
    _check_stepsize(stepsize, 1 / smooth, "1/L_g")
    return (
        Part("gap", 2 * objective.initial_gap / (stepsize * steps)),
        Part("noise", smooth * stepsize * objective.sigma**2 / batch_size),
    )


def ringmaster_guarantee(
    objective: Objective, steps: int, stepsize: float, max_staleness: int
) -> tuple[Part, ...]:
    """Mean of E|grad f(x_t)|^2 over t < T, for SGD on gradients of staleness < R.

    2 Delta/(gamma T) + 2 L_g gamma sigma^2 for gamma <= 1/(2 R L_g). Derivation: with y_t the
    point of the gradient, E f(x_{t+1}) <= f(x_t) - gamma/2 (|grad f(x_t)|^2 + |grad f(y_t)|^2)
    + gamma/2 L_g^2 |x_t - y_t|^2 + L_g gamma^2/2 (|grad f(y_t)|^2 + sigma^2); and E|x_t - y_t|^2 <=
    2 gamma^2 (R sum |grad f(y_s)|^2 + R sigma^2) over the R steps before, each counted R times.

    Source: Maranjyan, Tyurin & Richtarik (2025), arXiv 2501.16168, Theorem 4.1.

    Raises:
        ConfigurationError: the stepsize is not in (0, 1/(2 R L_g)].
    """
    smooth = objective.gradient_lipschitz
    _check_stepsize(stepsize, 1 / (2 * max_staleness * smooth), "1/(2 R L_g)")
    return (
        Part("gap", 2 * objective.initial_gap / (stepsize * steps)),
        Part("noise", 2 * smooth * stepsize * objective.sigma**2),
    )


def truncation_error(
    horizon: int, discount: float, reward_bound: float, score_bound: float
) -> float:
    """|grad J - grad J_H| <= R G gamma^H ((H+1)/(1-gamma) + gamma/(1-gamma)^2).

    Derivation: what is cut off is sum_{h>=H} gamma^h r_h sum_{t<=h} grad log pi(a_t|s_t), of norm
    at most R G sum_{h>=H} (h+1) gamma^h.

    Args:
        horizon: H >= 1, steps.
        discount: gamma in (0, 1).
        reward_bound: R >= |r|.
        score_bound: G >= |grad log pi(a|s)|; sqrt(2) for a softmax over logits.
    """
    _check_truncation(discount, reward_bound, score_bound)
    tail = (horizon + 1) / (1 - discount) + discount / (1 - discount) ** 2
    return reward_bound * score_bound * discount**horizon * tail


def _constants(momentum: float, is_sharp: bool) -> tuple[float, float]:
    """Factors of sigma/sqrt(M) and of L_h alpha^2/eta^2."""
    if is_sharp:
        return math.sqrt(momentum / (2 - momentum)), (1 - momentum) / 2
    return math.sqrt(momentum), 2.0


def _check_nigt(momentum: float, stepsize: float) -> None:
    check_number("stepsize", stepsize, is_zero_allowed=False)
    if not 0 < momentum <= 1:
        raise ConfigurationError(f"momentum = {momentum!r}: expected a number in (0, 1]")


def _check_stepsize(stepsize: float, most: float, formula: str) -> None:
    # A quotient of rounded numbers may exceed its rounded limit.
    if not 0 < stepsize <= most * (1 + 1e-12):
        raise ConfigurationError(
            f"stepsize = {stepsize!r}: expected a number in (0, {formula}] = (0, {most:g}]; "
            "the guarantee holds there"
        )


def _check_truncation(discount: float, reward_bound: float, score_bound: float) -> None:
    if not 0 < discount < 1:
        raise ConfigurationError(f"discount = {discount!r}: expected a number in (0, 1)")
    check_number("reward_bound", reward_bound, is_zero_allowed=True)
    check_number("score_bound", score_bound, is_zero_allowed=True)
