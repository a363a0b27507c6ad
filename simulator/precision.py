"""Single or double precision for everything computed in a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from simulator.errors import ConfigurationError, nearest

PRECISIONS = ("float32", "float64")


@contextmanager
def precision(dtype: str) -> Iterator[None]:
    """Compute in ``dtype``, and go back to what was before.

    Everything that touches the numbers of a run belongs in the block: making the problem,
    executing, evaluating. It is a property of the thread, not of the process. ::

        with precision("float64"):
            execution = Batched(schedule, oracle, rule, hyperparameters, seed)
            *_, last = execution.snapshots([schedule.n_steps])

    Args:
        dtype: "float32", or "float64" to allow JAX 64-bit numbers.

    Raises:
        ConfigurationError: ``dtype`` is neither.
    """
    if dtype not in PRECISIONS:
        raise ConfigurationError(
            f"precision = {dtype!r}: expected 'float32' or 'float64'.{nearest(dtype, PRECISIONS)}"
        )
    import jax

    with jax.enable_x64(dtype == "float64"):
        yield
