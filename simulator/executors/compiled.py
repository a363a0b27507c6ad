"""Compiled: a schedule is data of one compiled loop.

One program serves every seed, every hyperparameter and every schedule of the same shape. See
``compiled_plan`` for the shapes, ``compiled_kernels`` for the loop, and ``compiled_grid`` for many
seeds and hyperparameters at once, which is what this executor is best at.

Only JAX oracles can be compiled. For an oracle that computes with Python in the loop, "compiled"
is the batched executor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from simulator.executors.batched import batched
from simulator.executors.common import Execution, Snapshot
from simulator.executors.compiled_kernels import Replicas
from simulator.executors.compiled_plan import Track, Tracks
from simulator.executors.compiled_replicas import DEFAULT_MEMORY_BYTES, Lockstep, fit, most_lanes
from simulator.oracle import JaxOracle
from simulator.resume import Arrays
from simulator.schedule import Schedule


def compiled(schedule: Schedule, oracle: Any, *args: Any, **kwargs: Any) -> Execution:
    """An execution in one compiled loop; batched for a host oracle. See :class:`Execution`."""
    make = Compiled if isinstance(oracle, JaxOracle) else batched
    return make(schedule, oracle, *args, **kwargs)


class Compiled(Execution):
    """One replica on a JAX oracle. See :class:`Execution`.

    Args:
        memory_bytes: what all arrays may take together. A run that needs more raises a
            ``ConfigurationError`` when it is asked for a snapshot.
    """

    _oracle: JaxOracle

    def __init__(self, *args: Any, memory_bytes: int = DEFAULT_MEMORY_BYTES, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._memory_bytes = memory_bytes
        self._tracks = Tracks([Track.of(self._schedule)])
        self._lockstep: Lockstep | None = None
        self._plan: tuple[int, set[int]] = (0, set())  # last and wanted versions
        self._is_resumed = False
        self._yielded = 0  # latest version; the loop may be ahead of it

    def _snapshots(self, versions: Sequence[int]) -> Iterator[Snapshot]:
        versions = list(versions)
        yield from self._here(versions)
        ahead = {version for version in versions if version > self.version}
        if not ahead:
            return
        stop, ahead = self._plan if self._is_resumed else (max(ahead), ahead)
        self._plan, self._is_resumed = (stop, ahead), False
        lockstep = self._lockstep = self._lockstep or self._fitted(stop, ahead)
        for reached in lockstep.advance(stop, ahead):
            self.version = lockstep.version
            self._yielded = reached.version
            for _ in range(versions.count(reached.version)):
                yield Snapshot(reached.version, reached.params[0])

    def _here(self, versions: list[int]) -> Iterator[Snapshot]:
        params = np.array(self._x0) if self._lockstep is None else self._lockstep.params[0]
        for _ in range(versions.count(self.version)):
            yield Snapshot(self.version, params.copy())

    def _fitted(self, stop: int, wanted: set[int]) -> Lockstep:
        """Replica and plan in as many lanes as there is memory for."""
        lanes = most_lanes(self._x0.nbytes, self._memory_bytes)
        return fit(self._make, 1, lanes, stop, wanted, self._memory_bytes)

    def _waiting_work(self) -> dict[str, NDArray[Any]]:
        """What the loop carries. Its plan is part of the bytes: where it began, and its stops."""
        if self._lockstep is None:
            return {}
        stop, wanted = self._plan
        plan = np.array([self._yielded, stop, *sorted(wanted)], np.int64)
        return {"plan": plan, **self._lockstep.checkpoint()}

    def _resume_work(self, arrays: Arrays) -> None:
        if "plan" not in arrays:
            return
        self.version, stop, *wanted = arrays["plan"].tolist()
        self._plan, self._is_resumed = (stop, set(wanted)), True
        self._lockstep = self._fitted(stop, set(wanted))
        self._lockstep.resume(arrays, stop, set(wanted))

    def _advance_to(self, version: int) -> None:
        for _ in self._snapshots([version]):
            pass

    def _make(self, replicas: int, lanes: int) -> Lockstep:
        shape = self._tracks.shape(replicas, lanes)
        one = Replicas(
            self._seed[None],
            jax.tree.map(lambda leaf: leaf[None], self._hyperparameters),
            self._n_workers,
        )
        x0 = jnp.asarray(self._x0)[None]
        return Lockstep(self._tracks, self._oracle, self._rule, one, x0, shape, self._note)

    def _note(self, rows: list[NDArray[np.int64]], lengths: Any, values: Any) -> None:
        live = rows[0] >= 0
        self._lengths[rows[0][live]] = lengths[live, 0]
        self._values[rows[0][live]] = values[live, 0]
        self.gradients_computed += int(live.sum())
