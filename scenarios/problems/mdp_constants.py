"""Smoothness and variance of softmax policies in tabular MDPs: proved, and searched for.

**Proved.** Let v be a unit vector, l_N(e) the likelihood of a trajectory's first N actions at
theta + e v over that at theta, and U, A, M (of length N) its first three derivatives at e = 0. The
likelihood is a product and each factor is 1 on average whatever e, so with a, b, c the derivatives
of the N-th factor, and length N - 1 on the right,

    U_N = U + a,   A_N = A + 2 a U + b,   M_N = M + 3 a A + 3 b U + c

are martingales: E U_N^2, E A_N^2, E M_N^2 are sums over the steps. Let D = v(s, a) - E_pi v(s, .),
of range at most sqrt(2) |v|, q its variance and mu3 its third moment. For softmax, a = D,
b = D^2 - q and c = D^3 - 3 D q - mu3. Over all distributions on an interval of length R, of which
the worst has two points, E D^2 <= R^2/4 = 1/2, |E D^3| <= R^3/(6 sqrt 3) = sqrt(2/27),
E D^4 <= R^4/12 = 1/3, and E D^6 <= R^6/12 = 2/3. With E[a b] = mu3 and Minkowski's inequality
these give E A_N^2 and E M_N^2; besides, |A_N| <= U_N^2 + sum of q, so E|A_N| <= N. The derivatives
of J are sum_t gamma^t E[r_t X_{t+1}], X in {U, A, M}, and as E X = 0, rewards may be shifted: with
r half their range (in which 0 counts if there are terminal states, which pay it),

    L_g <= r sum_t gamma^t E|A_{t+1}| <= r / (1 - gamma)^2,
    L_h <= r sum_t gamma^t E|M_{t+1}|, of the order r (1 - gamma)^-2.5,

for J and J_H. (A symmetric trilinear form is largest at one v thrice: Banach 1938. Yuan, Gower &
Lazaric 2022 (arXiv 2107.11433) have (2 - 1/A) r / (1 - gamma)^2 for L_g.) The estimator is
sum_h gamma^h r_h S_h, S_h the sum of h + 1 scores, also a martingale, and a score u has
E|u|^2 = 1 - |pi|^2 <= 1 - 1/A. So, with R = max |r|,

    sigma <= sqrt(E|g|^2) <= R sum_{h<H} gamma^h sqrt((h + 1)(1 - 1/A)).

The average over workers has the average L_g and L_h; sigma is the largest of any worker.

**Searched for.** ``searched`` looks for the largest curvatures and variance by power iteration and
sampling at random points: no more than the true constants, but for sampling error in sigma. The
proved ones hold for the worst MDP of its rewards and discount; these can be far smaller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from scenarios.problems.constants import Constants
from scenarios.problems.curvature import largest_curvatures
from scenarios.problems.mdp import Float64
from scenarios.problems.mdp_exact import reward_sizes
from simulator.precision import precision
from simulator.randomness import Purpose, key_of

if TYPE_CHECKING:
    from scenarios.problems.tabular import TabularProblem

SECOND, THIRD, FOURTH, SIXTH = 1 / 2, (2 / 27) ** 0.5, 1 / 3, 2 / 3
"""Bounds on |E D^k|, for a range of sqrt(2)."""

_NEGLIGIBLE = 60.0
"""exp(-60) of a sum is left out of it; 1e-9 is added, far more."""


def likelihood_derivatives(steps: int) -> tuple[Float64, Float64, Float64]:
    """Bounds on sqrt(E U_N^2), E|A_N| and E|M_N| for N = 1 .. steps, [steps] each."""
    count = np.arange(1, steps + 1)
    before = SECOND * (count - 1)  # E U^2, one step earlier
    second = np.cumsum(FOURTH + 4 * THIRD * np.sqrt(before) + 4 * SECOND * before)
    second_before = np.concatenate([[0.0], second[:-1]])
    c = np.sqrt(SIXTH) + 3 * SECOND**1.5
    b_times_u = np.sqrt(FOURTH * before)
    a_times_a = np.sqrt(SECOND * second_before)
    third = np.cumsum((c + 3 * b_times_u + 3 * a_times_a) ** 2)
    return np.sqrt(SECOND * count), np.minimum(count, np.sqrt(second)), np.sqrt(third)


def smoothness_per_reward(discount: float) -> tuple[float, float]:
    """Bounds on L_g and L_h where rewards have half range 1."""
    steps = int(np.ceil(_NEGLIGIBLE / -np.log(discount))) + 1
    _, second, third = likelihood_derivatives(steps)
    powers = discount ** np.arange(steps)
    return float(powers @ second * (1 + 1e-9)), float(powers @ third * (1 + 1e-9))


def deviation_per_reward(discount: float, horizon: int, actions: int) -> float:
    """Bound on sigma where rewards are at most 1 in size."""
    h = np.arange(horizon)
    return float(np.sum(discount**h * np.sqrt((h + 1) * (1 - 1 / actions))))


def proved(problem: TabularProblem) -> Constants:
    """True upper bounds; ``initial_gap`` is exact if all workers share an MDP."""
    workers, discount = problem.workers, problem.discount
    sizes = [reward_sizes(workers.variant(index)) for index in range(workers.n)]
    largest = max(size for size, _ in sizes)
    half_range = float(workers.share @ [half for _, half in sizes])
    actions = workers.mdps.transition.shape[2]
    gradient, hessian = smoothness_per_reward(discount) if actions > 1 else (0.0, 0.0)
    return Constants(
        gradient_lipschitz=half_range * gradient,
        hessian_lipschitz=half_range * hessian,
        sigma=largest * deviation_per_reward(discount, problem.horizon, actions),
        initial_gap=problem.initial_gap,
    )


def searched(
    problem: TabularProblem, points: int = 8, samples: int = 256, seed: int = 0
) -> Constants:
    """The largest found at random points: see the top of the file.

    Args:
        problem: whose.
        points: the initial one, and others with normal logits of deviations 0.5, 1 and 2 in turn.
        samples: gradients for each point and distinct MDP.
        seed: of points and samples.
    """
    with precision("float64"):
        key = jax.random.fold_in(key_of(seed, Purpose.EVALUATION), 1)
        scales = np.resize([0.5, 1.0, 2.0], points - 1)
        draws = jax.random.normal(key, (points - 1, problem.oracle.dim))
        tried = np.concatenate([np.zeros((1, problem.oracle.dim)), scales[:, None] * draws])
        gradient, hessian = largest_curvatures(problem.objective, tried, seed)
        sigma = max(sampled_deviations(problem, tried, samples, seed))
    return Constants(gradient, hessian, sigma, problem.initial_gap)


def sampled_deviations(
    problem: TabularProblem, points: Float64, samples: int, seed: int
) -> list[float]:
    """sqrt(E|g - E g|^2) of one gradient, the largest over workers, at each of ``points``.

    The unbiased estimate from ``samples`` gradients of each distinct MDP; no exact mean is needed.
    """
    first_worker = np.unique(problem.workers.of_worker, return_index=True)[1]
    keys = jax.random.split(key_of(seed, Purpose.GRADIENT), samples)
    dtype = problem.oracle.initial_point(0).dtype
    oracle = problem.jax_oracle

    @jax.jit
    def variance(point: jax.Array, worker: jax.Array) -> jax.Array:
        drawn = jax.vmap(oracle.sample, in_axes=(None, None, 0))(point, worker, keys)
        return jnp.sum(jnp.var(drawn.gradient, axis=0, ddof=1))

    return [
        float(max(variance(jnp.asarray(point, dtype), jnp.int32(w)) for w in first_worker) ** 0.5)
        for point in points
    ]
