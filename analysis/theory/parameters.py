"""Parameters that theory recommends for a target, each with a guarantee of at most epsilon.

Every part of NIGT's guarantee (``guarantees.nigt_guarantee``) gets a share s of epsilon:

    2 sqrt(eta/M) sigma <= s_noise eps              eta = min(1, M (s_noise eps)^2 / (4 sigma^2))
    L_g alpha/2 <= s_smoothness eps                 alpha <= 2 s_smoothness eps / L_g
    4 L_h alpha^2/eta^2 <= s_curvature eps          alpha <= eta sqrt(s_curvature eps / (4 L_h))
    Delta/(alpha T) <= s_gap eps                    T = Delta / (s_gap alpha eps)
    2 sigma/(eta T sqrt(M_init)) <= s_initial eps   M_init = (2 sigma / (s_initial eta T eps))^2

which is the recipe of Tyurin, Spiridonov & Rudenko (2025, arXiv 2509.24305, appendix D), eta =
min(1, M eps^2/(c sigma^2)) and so on, with its constants c. Minimising T over eta and alpha in
each regime alone gives at least 2 L_g Delta/eps^2, 3 sqrt(3) sqrt(L_h) Delta/eps^1.5 and, with
shares 4/7 for noise, 1/7 for curvature and 2/7 for the gap, 226.9 sigma^2 sqrt(L_h) Delta / (M
eps^3.5). The shares below serve all regimes at once, and lose a factor of 8, 4.4 and 2. With the
constants derived in ``guarantees``, (1-eta) instead of 4 and sqrt(eta/(2-eta)) instead of
sqrt(eta), the noise term is 56.7 at least, a quarter, and without momentum curvature costs nothing.

M is the least batch for which smoothness and not curvature limits alpha, or for which eta = 1: a
larger one would no longer reduce T. Where there is no first batch of its own (synchronous),
M_init = M and T grows instead.

For SGD, which bounds E|grad f|^2 <= eps^2 and so E|grad f| <= eps, each of the two parts gets half
of eps^2: M = 2 sigma^2/eps^2, gamma = 1/L_g, T = 4 L_g Delta/eps^2; for Ringmaster R = sigma^2 /
eps^2, gamma = min(1/(2 R L_g), eps^2/(4 L_g sigma^2)), T = 4 Delta/(gamma eps^2) (Maranjyan, Tyurin
& Richtarik 2025, arXiv 2501.16168, Theorem 4.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from analysis.theory import guarantees
from analysis.theory.setting import Objective
from simulator.errors import ConfigurationError

SHARES = {"gap": 0.25, "initial": 0.05, "noise": 0.45, "curvature": 0.125, "smoothness": 0.125}
"""Of epsilon, by part of NIGT's guarantee."""

_LARGEST_COUNT = 2**53


@dataclass(frozen=True)
class Recommendation:
    """Parameters of one method.

    Attributes:
        steps: T, server steps.
        batch_size: M, gradients a step, in all.
        initial_batch_size: M_init, of the first step; M where a method has no other.
        stepsize: alpha or gamma.
        momentum: eta; None without momentum.
        max_staleness: R; None but for Ringmaster.
        guarantee: bound on the mean of E|grad f| over the T steps, <= epsilon.
    """

    steps: int
    batch_size: int
    initial_batch_size: int
    stepsize: float
    guarantee: float
    momentum: float | None = None
    max_staleness: int | None = None


def recommend_nigt(
    objective: Objective,
    batch_multiple: int = 1,
    has_first_batch: bool = True,
    batch_size: int | None = None,
    is_sharp: bool = False,
) -> Recommendation:
    """Parameters of NIGT on batches.

    Args:
        objective: with its target.
        batch_multiple: M must be a multiple of it: workers waited for by a synchronous method.
        has_first_batch: whether M_init may differ from M.
        batch_size: M, if it is given.
        is_sharp: for the constants derived in ``guarantees`` instead of the published ones.

    Raises:
        ConfigurationError: a count beyond 2^53: the target is out of reach.
    """
    eps, sigma = objective.epsilon, objective.sigma
    longest = 2 * SHARES["smoothness"] * eps / objective.gradient_lipschitz
    full = (2 * sigma / (SHARES["noise"] * eps)) ** 2  # the batch for momentum 1
    if batch_size is None:
        wanted = _noise(_least_momentum(objective, longest, is_sharp), is_sharp) * full
        batch_size = _multiple("batch_size", wanted, batch_multiple)
    momentum = _largest_momentum(batch_size / full, is_sharp) if full else 1.0
    stepsize = min(longest, momentum * _per_momentum(objective, momentum, is_sharp))
    steps = _count("steps", objective.initial_gap / (SHARES["gap"] * stepsize * eps))
    per_step = 2 * sigma / (SHARES["initial"] * momentum * eps)
    if has_first_batch:
        wanted = (per_step / steps) ** 2
        initial = _multiple("initial_batch_size", wanted, batch_multiple)
    else:
        initial = batch_size
        steps = max(steps, _count("steps", per_step / math.sqrt(batch_size)))
    parts = guarantees.nigt_guarantee(
        objective, steps, momentum, stepsize, batch_size, initial, is_sharp
    )
    bound = guarantees.total(parts)
    return Recommendation(steps, batch_size, initial, stepsize, bound, momentum=momentum)


def recommend_sgd(
    objective: Objective, batch_multiple: int = 1, batch_size: int | None = None
) -> Recommendation:
    """Parameters of SGD on batches; arguments as :func:`recommend_nigt`."""
    eps, smooth = objective.epsilon, objective.gradient_lipschitz
    variance = objective.sigma**2
    if batch_size is None:
        batch_size = _multiple("batch_size", 2 * variance / eps**2, batch_multiple)
    stepsize = 1 / smooth
    if variance:
        stepsize = min(stepsize, batch_size * eps**2 / (2 * smooth * variance))
    steps = _count("steps", 4 * objective.initial_gap / (stepsize * eps**2))
    parts = guarantees.sgd_guarantee(objective, steps, stepsize, batch_size)
    bound = math.sqrt(guarantees.total(parts))
    return Recommendation(steps, batch_size, batch_size, stepsize, bound)


def recommend_ringmaster(objective: Objective) -> Recommendation:
    """Parameters of Ringmaster ASGD.

    Raises:
        ConfigurationError: a count beyond 2^53: the target is out of reach.
    """
    return _stale_sgd(
        objective, _count("max_staleness", (objective.sigma / objective.epsilon) ** 2)
    )


def _stale_sgd(objective: Objective, staleness: int) -> Recommendation:
    """SGD on gradients of staleness < R."""
    eps, smooth = objective.epsilon, objective.gradient_lipschitz
    variance = objective.sigma**2
    stepsize = 1 / (2 * staleness * smooth)
    if variance:
        stepsize = min(stepsize, eps**2 / (4 * smooth * variance))
    steps = _count("steps", 4 * objective.initial_gap / (stepsize * eps**2))
    parts = guarantees.ringmaster_guarantee(objective, steps, stepsize, staleness)
    bound = math.sqrt(guarantees.total(parts))
    return Recommendation(steps, 1, 1, stepsize, bound, max_staleness=staleness)


def recommend_asynchronous(objective: Objective, largest_staleness: int) -> Recommendation:
    """Parameters of plain Asynchronous SGD on a fleet whose staleness is known.

    With gradients of staleness <= tau it is Ringmaster ASGD with R = tau + 1, which then throws
    nothing away: gamma = min(1/(2 (tau+1) L_g), eps^2/(4 L_g sigma^2)), T = 4 Delta/(gamma eps^2).

    Args:
        objective: with its target.
        largest_staleness: tau >= 0, server steps.

    Raises:
        ConfigurationError: a number is out of range, or a count beyond 2^53.
    """
    if isinstance(largest_staleness, bool) or largest_staleness < 0:
        raise ConfigurationError(
            f"largest_staleness = {largest_staleness!r}: expected an integer >= 0 (server steps)"
        )
    return _stale_sgd(objective, largest_staleness + 1)


def recommend_horizon(
    error: float, discount: float, reward_bound: float, score_bound: float
) -> int:
    """H: the least horizon with |grad J - grad J_H| <= error (``guarantees.truncation_error``).

    Raises:
        ConfigurationError: a number is out of range.
    """
    if not error > 0:
        raise ConfigurationError(f"error = {error!r}: expected a number > 0")

    def is_enough(horizon: int) -> bool:
        bound = guarantees.truncation_error(horizon, discount, reward_bound, score_bound)
        return bound <= error

    return _least(is_enough)


def _noise(momentum: float, is_sharp: bool) -> float:
    """Variance of d_t, in terms of a gradient's: eta, or eta / (2 - eta)."""
    return momentum / (2 - momentum) if is_sharp else momentum


def _largest_momentum(noise: float, is_sharp: bool) -> float:
    """The largest with at most so much noise."""
    return min(1.0, 2 * noise / (1 + noise) if is_sharp else noise)


def _per_momentum(objective: Objective, momentum: float, is_sharp: bool) -> float:
    """The largest alpha/eta that curvature allows."""
    curved = objective.hessian_lipschitz * (1 - momentum if is_sharp else 4.0)
    share = SHARES["curvature"] * objective.epsilon
    return math.sqrt(share / curved) if curved else math.inf


def _least_momentum(objective: Objective, longest: float, is_sharp: bool) -> float:
    """The least with which curvature allows ``longest``: eta^2 = q (1 - eta), or eta^2 = 4 q."""
    share = SHARES["curvature"] * objective.epsilon
    q = longest**2 * objective.hessian_lipschitz / share
    return min(1.0, (math.sqrt(q * (q + 4)) - q) / 2 if is_sharp else 2 * math.sqrt(q))


def _least(is_enough: Callable[[int], bool]) -> int:
    """The least integer >= 1 from which on a condition holds, if it holds monotonically."""
    high = 1
    while not is_enough(high):
        high *= 2
        if high > _LARGEST_COUNT:
            raise ConfigurationError("horizon: expected one below 2^53 to be enough")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _count(name: str, value: float) -> int:
    """``value`` rounded up, at least 1."""
    if not value <= _LARGEST_COUNT:
        raise ConfigurationError(
            f"{name}: {value:.3g} would be needed, more than 2^53; expected a larger epsilon, or "
            "smaller constants"
        )
    return max(1, math.ceil(value))


def _multiple(name: str, value: float, of: int) -> int:
    return _count(name, value / of) * of
