"""What the simulator asks of a problem: stochastic gradients keyed by (seed, worker, k).

Two kinds. A :class:`JaxOracle` is a pure function of one gradient, which executors vmap, jit and
scan. A :class:`HostOracle` computes a batch with Python in the loop (MuJoCo). Both give the same
gradient for the same (point, seed, worker, k), whatever else is in the batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax


class Sample(NamedTuple):
    """One computation's outcome (batched: a leading [batch] axis).

    Attributes:
        gradient: [dim], a stochastic gradient of the loss; RL minimises -J.
        length: [] int32, environment steps of the trajectory; 1 for a synthetic oracle.
        value: [] the sampled objective: a trajectory's undiscounted return, or a sampled loss.
    """

    gradient: Any
    length: Any
    value: Any


@runtime_checkable
class JaxOracle(Protocol):
    """Gradients as a pure JAX function."""

    dim: int
    n_workers: int

    def initial_point(self, seed: int) -> jax.Array:
        """x_0, [dim], in the dtype all computing is done in."""
        ...

    def sample(self, point: jax.Array, worker: jax.Array, key: jax.Array) -> Sample:
        """One gradient at ``point`` [dim] by ``worker`` [] int32 with randomness ``key``.

        Pure and traceable; executors batch it with ``vmap``.
        """
        ...


@runtime_checkable
class DrawingOracle(JaxOracle, Protocol):
    """A JAX oracle whose randomness can be drawn before its point is known.

    ``sample(point, worker, key)`` is ``gradient_at(point, worker, draw(worker, key))``, bit for
    bit. Where drawing costs as much as the gradient, executors draw for many gradients at once.
    """

    def draw(self, worker: jax.Array, key: jax.Array) -> Any:
        """The randomness of one gradient: arrays of a shape that is always the same."""
        ...

    def gradient_at(self, point: jax.Array, worker: jax.Array, noise: Any) -> Sample:
        """The gradient with that randomness."""
        ...


@runtime_checkable
class HostOracle(Protocol):
    """Gradients computed batch-wise with Python in the loop."""

    dim: int
    n_workers: int

    def initial_point(self, seed: int) -> jax.Array:
        """x_0, [dim]."""
        ...

    def sample_batch(self, points: Any, workers: Any, ks: Any, seeds: Any) -> Sample:
        """A batch of gradients.

        Args:
            points: [dim] shared by the batch, or [batch, dim].
            workers, ks, seeds: int arrays, [batch].
        """
        ...


Oracle = JaxOracle | HostOracle
