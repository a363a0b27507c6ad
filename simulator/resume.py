"""Checkpoints: how far a run has come, as named arrays, and going on from them to the same bytes.

What is kept is what can not be made again: the rule's state, gradients that wait, points that are
still needed, and what was measured. Everything else is made again: the schedule is a function of
the scenario and the seed, and all randomness is keyed. Where the order of events depends on
trajectories (``simulator.live``), the lengths of the trajectories so far are kept, and the
engine's event queue is made again by running through the same events without computing anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from simulator.oracle import Sample

Arrays = Mapping[str, NDArray[Any]]


class Keeper(Protocol):
    """Keeps the latest checkpoint of one run."""

    def load(self) -> Arrays | None:
        """The checkpoint, if there is one that fits this run."""

    def offer(self, make: Callable[[], Arrays]) -> None:
        """A checkpoint can be made now; the keeper decides whether it is time for one."""


class CheckpointMismatch(RuntimeError):
    """A checkpoint does not belong to the run that is to go on from it."""


def pack(prefix: str, tree: Any) -> dict[str, NDArray[Any]]:
    """The leaves of a tree of arrays, in order."""
    leaves = jax.tree.leaves(tree)
    return {f"{prefix}.{index}": np.asarray(leaf) for index, leaf in enumerate(leaves)}


def unpack(prefix: str, like: Any, arrays: Arrays) -> Any:
    """A tree shaped as ``like`` of what :func:`pack` made, on the device.

    Raises:
        CheckpointMismatch: leaves are missing, or of another shape or type.
    """
    leaves, shape = jax.tree.flatten(like)
    found = []
    for index, leaf in enumerate(leaves):
        array = arrays.get(f"{prefix}.{index}")
        expected = np.asarray(leaf)
        if array is None or (array.shape, array.dtype) != (expected.shape, expected.dtype):
            raise CheckpointMismatch(f"{prefix}.{index} is not as this run has it")
        found.append(jnp.array(array))
    return jax.tree.unflatten(shape, found)


def stacked(vectors: list[Any], dim: int, dtype: Any) -> NDArray[Any]:
    """Vectors as rows, [n, dim], also if there is none."""
    return np.stack([np.asarray(v) for v in vectors]) if vectors else np.zeros((0, dim), dtype)


def keyed(keys: NDArray[Any], values: Any) -> dict[Any, Any]:
    """Rows of ``values`` by key."""
    return dict(zip(keys.tolist(), values, strict=True))


def sample_columns(
    prefix: str, samples: list[Sample], dim: int, dtype: Any
) -> dict[str, NDArray[Any]]:
    """Gradients, lengths and values of trajectories, as arrays."""
    return {
        f"{prefix}_gradients": stacked([sample.gradient for sample in samples], dim, dtype),
        f"{prefix}_lengths": np.array([sample.length for sample in samples], np.int32),
        f"{prefix}_values": np.array([sample.value for sample in samples], dtype),
    }


def samples_of(prefix: str, arrays: Arrays) -> list[Sample]:
    """What :func:`sample_columns` made, as trajectories again."""
    columns = (arrays[f"{prefix}_{name}"] for name in ("gradients", "lengths", "values"))
    return [Sample(*leaves) for leaves in zip(*columns, strict=True)]
