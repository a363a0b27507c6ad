"""The lower bound's function, on which coordinates can only be found one by one, and by luck.

    F_T(x) = -Psi(1) Phi(x_1) + sum_{i=2..T} [Psi(-x_{i-1}) Phi(-x_i) - Psi(x_{i-1}) Phi(x_i)]
    Psi(x) = 0 for x <= 1/2, else exp(1 - 1/(2x - 1)^2)
    Phi(x) = sqrt(e) * integral_{-inf}^x exp(-s^2/2) ds

Here f(x) = c F_T(x / s) with c = L s^2 / 152. The progress prog_a(x) is the largest i with
|x_i| > a s, 0 if there is none. While prog_1(x) < T, |grad f(x)| > L s / 152. A stochastic gradient
is grad f(x) with every coordinate beyond prog_{1/4}(x) multiplied by z / p, one z ~ Bernoulli(p):
unbiased, and it shows the next coordinate with probability p only. No method whose points have no
coordinate that it has not been shown finds all T in much less than T / p gradients.

Known of F_T: F_T(0) - inf F_T = sqrt(2 pi e) (1/2 + (T-1) e) <= 12 T; the gradient is 152-Lipschitz
and its coordinates are at most 23 in size, so the oracle's variance is at most 23^2 (1-p)/p. In
fact it is at most e^3 (1-p)/p, attained: beyond prog_{1/4} only the next coordinate is not 0, and
there, Psi and its derivatives being 0, it is Psi(|x_{i-1}|) Phi'(x_i) <= e sqrt(e) in size.

The Lipschitz constants: with P_k and F_k the largest k-th derivatives of Psi and Phi, and each
coordinate the inner one of one term and the outer one of another, a unit vector's second derivative
is at most P_2 F_0 + 2 P_1 F_1 + P_0 F_2 < 152, its third at most P_3 F_0 + 3 P_2 F_1 + 3 P_1 F_2 +
P_0 F_3 < 2070. (The paper gives the first; the second is ours, P_3 = 457.7 found numerically.)

Source: Arjevani, Carmon, Duchi, Foster, Srebro & Woodworth (2019), arXiv 1912.02365, section 3 and
appendix; the function is Carmon, Duchi, Hinder & Sidford's (2017), arXiv 1711.00841.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from scenarios.problems.constants import Constants
from scenarios.problems.exact_specs import HardInstanceSpec
from scenarios.problems.problem import (
    DISCOVERED,
    GRADIENT_NORM,
    LOSS_GAP,
    PROGRESS,
    Metric,
)
from simulator.oracle import Oracle, Sample
from simulator.precision import precision

Array = jax.Array
Float64 = NDArray[np.float64]

GRADIENT_LIPSCHITZ = 152.0
LARGEST_HIDDEN = math.exp(1.5)
HESSIAN_LIPSCHITZ = 2070.0

_SQRT_E = math.sqrt(math.e)
_TOP = math.sqrt(2 * math.pi * math.e)


def psi(x: Array) -> Array:
    """Psi, elementwise; smooth, 0 up to 1/2, at most e."""
    beyond = x > 0.5
    inside = jnp.where(beyond, 2 * x - 1, 1)  # differentiated, too, where not taken
    # So near 1/2 that 1/(2x-1)^2 overflows, the exponential is 0 to any precision.
    return jnp.where(beyond & (inside > 1e-2), jnp.exp(1 - 1 / jnp.maximum(inside, 1e-2) ** 2), 0)


def phi(x: Array) -> Array:
    """Phi, elementwise: sqrt(2 pi e) times the normal distribution function."""
    return _TOP * jax.scipy.stats.norm.cdf(x)


def chain_function(x: Array) -> Array:
    """F_T(x), [], of x [T]."""
    before = jnp.concatenate([jnp.ones(1, x.dtype), x[:-1]])
    # The first term has Psi(-1) = 0 in the pattern of the others.
    return jnp.sum(psi(-before) * phi(-x) - psi(before) * phi(x))


def infimum(dimension: int) -> float:
    """inf F_T = -sqrt(2 pi e) (1 + (T-1) e), approached as all coordinates grow."""
    return -_TOP * (1 + (dimension - 1) * math.e)


def progress(x: Any, above: float, xp: Any = np) -> Any:
    """prog_a: the largest i, counted from 1, with |x_i| > a; 0 if none. [..., T] -> [...]."""
    position = xp.arange(1, x.shape[-1] + 1)
    return xp.max(xp.where(xp.abs(x) > above, position, 0), axis=-1)


@dataclass(eq=False)
class HardInstanceOracle:
    """Gradients that show the next coordinate with probability p.

    Attributes:
        dim: T.
        n_workers: all alike.
        probability: p.
        height: c.
        scale: s.
        dtype: of everything.
    """

    dim: int
    n_workers: int
    probability: float
    height: float
    scale: float
    dtype: Any

    def initial_point(self, seed: int) -> Array:
        """0, [T], whatever the seed."""
        del seed
        return jnp.zeros(self.dim, self.dtype)

    def loss(self, point: Array) -> Array:
        """f, []."""
        return self.height * chain_function(point / self.scale)

    def sample(self, point: Array, worker: Array, key: Array) -> Sample:
        """The gradient, unseen coordinates times z / p; value is f, exact."""
        return self.gradient_at(point, worker, self.draw(worker, key))

    def draw(self, worker: Array, key: Array) -> Array:
        """z / p, []."""
        del worker
        z = jax.random.bernoulli(key, self.probability)
        return jnp.where(z, jnp.asarray(1 / self.probability, self.dtype), 0)

    def gradient_at(self, point: Array, worker: Array, factor: Array) -> Sample:
        """The same, with z / p already drawn."""
        del worker
        value, gradient = jax.value_and_grad(self.loss)(point)
        beyond = jnp.arange(self.dim) >= progress(point / self.scale, 0.25, jnp)
        seen = jnp.where(beyond, factor * gradient, gradient)
        return Sample(seen, jnp.ones((), jnp.int32), value)


class HardInstanceProblem:
    """The lower bound's function, to minimise.

    Args:
        spec: what to build.
        n_workers: size of the fleet.
    """

    oracle: Oracle
    metrics: tuple[Metric, ...] = (LOSS_GAP, GRADIENT_NORM, PROGRESS, DISCOVERED)

    def __init__(self, spec: HardInstanceSpec, n_workers: int) -> None:
        self._spec = spec
        self._height = spec.gradient_lipschitz * spec.scale**2 / GRADIENT_LIPSCHITZ
        oracle = HardInstanceOracle(
            spec.dimension,
            n_workers,
            spec.probability,
            self._height,
            spec.scale,
            jnp.dtype(spec.dtype),
        )
        self.oracle = oracle
        self._exact = jax.jit(jax.vmap(jax.value_and_grad(oracle.loss)))

    @property
    def gradient_floor(self) -> float:
        """L s / 152: the gradient is longer until prog_1 is T."""
        return self._height / self._spec.scale

    @property
    def constants(self) -> Constants:
        """See the top of the file; Delta is exact."""
        p, floor = self._spec.probability, self.gradient_floor
        return Constants(
            gradient_lipschitz=self._spec.gradient_lipschitz,
            hessian_lipschitz=HESSIAN_LIPSCHITZ * self._height / self._spec.scale**3,
            sigma=LARGEST_HIDDEN * floor * math.sqrt((1 - p) / p),
            initial_gap=self._height * (-_TOP / 2 - infimum(self._spec.dimension)),
        )

    def evaluate(self, points: Any, seed: int) -> dict[str, Float64]:
        """f - inf f, |grad f|, prog_1 and prog_0 (coordinates that are not 0): [E] each, exact."""
        del seed
        points = np.asarray(points, np.float64)
        with precision("float64"):
            value, gradient = map(np.asarray, self._exact(points))
        return {
            LOSS_GAP.name: value - self._height * infimum(self._spec.dimension),
            GRADIENT_NORM.name: np.linalg.norm(gradient, axis=1),
            PROGRESS.name: progress(points / self._spec.scale, 1.0).astype(np.float64),
            DISCOVERED.name: progress(points, 0.0).astype(np.float64),
        }
