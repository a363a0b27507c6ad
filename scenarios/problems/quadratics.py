"""Noisy quadratics: worker i holds f_i(x) = 1/2 x'A_i x - b_i'x; the objective is their mean.

The tridiagonal one, A = 1/4 tridiag(-1, 2, -1) and b = 1/4 (-1, 0, ..., 0), is the worst case of
first-order methods (Nesterov 2018, section 2.1.2), as in the experiments of Tyurin & Richtarik
(2023), arXiv 2305.12387; its products never form the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from scenarios.problems.constants import Constants
from scenarios.problems.problem import GRADIENT_NORM, LOSS_GAP, Metric
from scenarios.problems.specs import QuadraticSpec
from simulator.errors import ConfigurationError
from simulator.oracle import Oracle, Sample
from simulator.threefry import normal

Array = jax.Array
Float64 = NDArray[np.float64]


class Quadratic(Protocol):
    """The workers' functions, and their mean in float64."""

    minimiser: Float64
    """x*, [dim], of the mean."""

    largest_eigenvalue: float
    """Of the mean A: how fast the gradient may change."""

    def gradient(self, point: Array, worker: Array) -> tuple[Array, Array]:
        """A_i x - b_i, [dim], and b_i, [dim]; traceable."""
        ...

    def product(self, points: Float64) -> Float64:
        """A x for the mean A: [E, dim] -> [E, dim]."""
        ...


def tridiagonal_product(x: Any, xp: Any = jnp) -> Any:
    """1/4 tridiag(-1, 2, -1) x along the last axis: [..., dim] -> [..., dim]."""
    pads = [(0, 0)] * (x.ndim - 1)
    left = xp.pad(x[..., :-1], [*pads, (1, 0)])
    right = xp.pad(x[..., 1:], [*pads, (0, 1)])
    return (2 * x - left - right) / 4


class Tridiagonal:
    """The worst case, the same for every worker.

    Args:
        dimension: d >= 1.
        dtype: of the gradients.
    """

    def __init__(self, dimension: int, dtype: Any) -> None:
        # 2 x_1 - x_2 = -1 and 2 x_i = x_{i-1} + x_{i+1}: a straight line from -1 to 0.
        self.minimiser = np.arange(1, dimension + 1) / (dimension + 1) - 1.0
        # Eigenvalues (1 - cos(k pi / (d+1))) / 2, k = 1 .. d.
        self.largest_eigenvalue = float(1 + np.cos(np.pi / (dimension + 1))) / 2
        self._b = jnp.zeros(dimension, dtype).at[0].set(-0.25)

    def gradient(self, point: Array, worker: Array) -> tuple[Array, Array]:
        """A x - b, [dim], and b, [dim]."""
        del worker
        return tridiagonal_product(point) - self._b, self._b

    def product(self, points: Float64) -> Float64:
        """A x, row by row."""
        return np.asarray(tridiagonal_product(points, np))


class Given:
    """Matrices and vectors as given.

    Args:
        A: symmetric, [dim, dim] or [n_workers, dim, dim].
        b: [dim] or [n_workers, dim].
        n_workers: size of the fleet.
        dtype: of the gradients.

    Raises:
        ConfigurationError: wrong shape, not symmetric, or a mean without a minimum.
    """

    def __init__(self, A: Any, b: Any, n_workers: int, dtype: Any) -> None:
        matrices, vectors = _numbers("A", A), _numbers("b", b)
        dim = matrices.shape[-1] if matrices.ndim else 0
        _check_shape("A", matrices, n_workers, (dim, dim))
        _check_shape("b", vectors, n_workers, (dim,))
        if not np.allclose(matrices, np.swapaxes(matrices, -1, -2), rtol=1e-9, atol=0):
            raise ConfigurationError("A: expected symmetric matrices")
        self._mean = matrices if matrices.ndim == 2 else matrices.mean(axis=0)
        self.minimiser = _minimiser(
            self._mean, vectors if vectors.ndim == 1 else vectors.mean(axis=0)
        )
        self.largest_eigenvalue = float(np.linalg.eigvalsh(self._mean)[-1])
        self._A = jnp.asarray(matrices, dtype)
        self._b = jnp.asarray(vectors, dtype)

    def gradient(self, point: Array, worker: Array) -> tuple[Array, Array]:
        """A_i x - b_i, [dim], and b_i, [dim]."""
        matrix = self._A if self._A.ndim == 2 else self._A[worker]
        vector = self._b if self._b.ndim == 1 else self._b[worker]
        return matrix @ point - vector, vector

    def product(self, points: Float64) -> Float64:
        """A x for the mean A, row by row."""
        return points @ self._mean


def _numbers(name: str, value: Any) -> Float64:
    try:
        array = np.array(value, np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{name}: expected numbers in equally long rows") from error
    if not array.size or not np.all(np.isfinite(array)):
        raise ConfigurationError(f"{name}: expected finite numbers, at least one")
    return array


def _check_shape(name: str, array: Float64, n_workers: int, shape: tuple[int, ...]) -> None:
    if array.shape not in (shape, (n_workers, *shape)):
        raise ConfigurationError(
            f"{name} has shape {list(array.shape)}: expected {list(shape)} for all workers, "
            f"or {[n_workers, *shape]}, one per worker"
        )


def _minimiser(matrix: Float64, vector: Float64) -> Float64:
    """x* of 1/2 x'Ax - b'x, the shortest if there are several.

    Raises:
        ConfigurationError: if it is not bounded below.
    """
    values, vectors = np.linalg.eigh(matrix)
    tolerance = 1e-12 * len(values) * max(np.abs(values).max(), np.finfo(float).tiny)
    if values.min() < -tolerance:
        raise ConfigurationError(
            f"A: the mean over workers has the eigenvalue {values.min():.3g}, so the objective "
            "has no minimum: expected a positive semi-definite mean"
        )
    coordinates = vectors.T @ vector
    flat = values <= tolerance
    if np.any(np.abs(coordinates[flat]) > 1e-9 * max(np.abs(vector).max(), 1e-300)):
        raise ConfigurationError(
            "b: the mean over workers has a part that the mean of A maps nothing to, so the "
            "objective has no minimum"
        )
    return np.asarray(vectors[:, ~flat] @ (coordinates[~flat] / values[~flat]))


@dataclass(eq=False)
class QuadraticOracle:
    """Noisy gradients of worker i's quadratic."""

    quadratic: Quadratic
    dim: int
    n_workers: int
    start: Array
    noise: float

    def initial_point(self, seed: int) -> Array:
        """x_0, [dim], whatever the seed."""
        del seed
        return self.start

    def sample(self, point: Array, worker: Array, key: Array) -> Sample:
        """A_i x - b_i + noise * N(0, I); value is f_i(x), without noise."""
        return self.gradient_at(point, worker, self.draw(worker, key))

    def draw(self, worker: Array, key: Array) -> Array:
        """noise * N(0, I), [dim]; [0] if there is none."""
        del worker
        dtype = self.start.dtype
        draws = normal(key, self.dim if self.noise else 0, dtype)
        return jnp.asarray(self.noise, dtype) * draws

    def gradient_at(self, point: Array, worker: Array, noise: Array) -> Sample:
        """The same, with noise already drawn."""
        gradient, vector = self.quadratic.gradient(point, worker)
        value = point @ (gradient - vector) / 2
        if self.noise:
            gradient = gradient + noise
        return Sample(gradient, jnp.ones((), jnp.int32), value)


class QuadraticProblem:
    """A quadratic to minimise.

    Args:
        spec: what to build.
        n_workers: size of the fleet.

    Raises:
        ConfigurationError: see :class:`Given`; x0 of the wrong length.
    """

    oracle: Oracle
    metrics: tuple[Metric, ...] = (LOSS_GAP, GRADIENT_NORM)

    def __init__(self, spec: QuadraticSpec, n_workers: int) -> None:
        dtype = jnp.dtype(spec.dtype)
        self._quadratic: Quadratic = (
            Tridiagonal(spec.dimension, dtype)
            if spec.kind == "tridiagonal"
            else Given(spec.A, spec.b, n_workers, dtype)
        )
        dim = len(self._quadratic.minimiser)
        start = np.sqrt(dim) * np.eye(1, dim)[0] if spec.x0 is None else _numbers("x0", spec.x0)
        if start.shape != (dim,):
            raise ConfigurationError(f"x0 has shape {list(start.shape)}: expected [{dim}]")
        self._start, self._sigma = start, spec.noise * np.sqrt(dim)
        self.oracle = QuadraticOracle(
            self._quadratic, dim, n_workers, jnp.asarray(start, dtype), spec.noise
        )

    @property
    def minimiser(self) -> Float64:
        """x*, [dim], of the mean objective, in float64."""
        return self._quadratic.minimiser

    @property
    def constants(self) -> Constants:
        """All exact: the largest eigenvalue of the mean A, 0, noise * sqrt(dim), f(x_0) - f*."""
        return Constants(
            gradient_lipschitz=self._quadratic.largest_eigenvalue,
            hessian_lipschitz=0.0,
            sigma=float(self._sigma),
            initial_gap=float(self.evaluate(self._start[None], 0)[LOSS_GAP.name][0]),
        )

    def evaluate(self, points: Any, seed: int) -> dict[str, Float64]:
        """f(x) - f* and the gradient's norm, exact, in float64: [E] each."""
        del seed
        away = np.asarray(points, np.float64) - self.minimiser
        # With A x* = b, f(x) - f* = 1/2 (x - x*)'A(x - x*): no cancellation near x*.
        gradient = self._quadratic.product(away)
        return {
            LOSS_GAP.name: np.einsum("ed,ed->e", away, gradient) / 2,
            GRADIENT_NORM.name: np.linalg.norm(gradient, axis=1),
        }
