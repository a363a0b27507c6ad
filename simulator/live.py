"""Simulation and execution at once, for timing that depends on values.

When computation is timed per environment step, a computation takes (environment steps of its
trajectory) x (seconds per step), so the order of events depends on the gradients' trajectories.
The engine then asks this module for the length of each trajectory as it starts; here trajectories
that start at known points are computed together, and server steps are taken as the engine takes
them. Every *started* trajectory is computed, cancelled ones too: their lengths are needed to know
whether they finish.

"The first M to finish" then over-represents short episodes. ``LiveRun.lengths`` has the length of
every started trajectory, so that a report can compare used ones with all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from algorithms.coordinator import Coordinator
from algorithms.update_rule import Hyperparameters, UpdateRule
from simulator.budget import Budget
from simulator.delays import Delays
from simulator.engine import Engine
from simulator.executors.common import Snapshot, per_problem, rule_kernels
from simulator.executors.plan import round_up
from simulator.ledger import Ledger
from simulator.network import Network
from simulator.oracle import JaxOracle, Oracle, Sample
from simulator.randomness import Purpose, gradient_key
from simulator.resume import (
    Arrays,
    CheckpointMismatch,
    Keeper,
    keyed,
    pack,
    sample_columns,
    samples_of,
    stacked,
    unpack,
)
from simulator.schedule import Schedule
from simulator.worker import Worker


@dataclass(frozen=True, eq=False)
class LiveRun:
    """What a live simulation leaves.

    Attributes:
        schedule: as if the durations had been known.
        snapshots: of the versions that were current at the times asked for, and the last one.
        lengths: int32 [n_computations], environment steps of every started trajectory.
        values: float64 [n_computations], their sampled objectives.
        gradients_computed: trajectories computed, some of them perhaps never started.
    """

    schedule: Schedule
    snapshots: dict[int, Snapshot]
    lengths: NDArray[np.int32]
    values: NDArray[np.float64]
    gradients_computed: int


def run_live(
    coordinator: Coordinator,
    compute: Delays,
    network: Network,
    budget: Budget,
    seed: int,
    oracle: Oracle,
    rule: UpdateRule,
    hyperparameters: Hyperparameters,
    *,
    snapshot_seconds: Sequence[float] | None = None,
    progress: Callable[[float, int], None] | None = None,
    keeper: Keeper | None = None,
) -> LiveRun:
    """Simulate with computations timed per environment step.

    Args:
        coordinator, network, budget, seed, progress: as in ``engine.simulate``.
        compute: seconds per environment step of computation (worker, k).
        oracle, rule, hyperparameters: as in the executors.
        snapshot_seconds: ascending times; None keeps the model of every version.
        keeper: of checkpoints, after server steps.

    Raises:
        ConfigurationError, SimulationStalled: as ``engine.simulate``.
        CheckpointMismatch: the keeper's checkpoint is of another run.
    """
    live = _Live(oracle, rule, hyperparameters, seed, snapshot_seconds, keeper)
    engine = Engine(coordinator, compute, network, budget, seed, observer=live, progress=progress)
    live.attach(engine, compute.sampler(seed, Purpose.COMPUTE))
    return live.result(engine.run())


class _Live:
    """The engine's observer: knows the model, and every trajectory in flight."""

    def __init__(
        self,
        oracle: Oracle,
        rule: UpdateRule,
        hyperparameters: Hyperparameters,
        seed: int,
        snapshot_seconds: Sequence[float] | None,
        keeper: Keeper | None,
    ) -> None:
        self._oracle = oracle
        self._seed = seed
        self._kernels = rule_kernels(oracle, rule)
        self._x0 = oracle.initial_point(seed)
        dtype = self._x0.dtype
        self._hyperparameters = jax.tree.map(lambda x: jnp.asarray(x, dtype), hyperparameters)
        state = rule.init(self._x0, self._hyperparameters)
        self._state = jax.tree.map(lambda x: jnp.array(x, jnp.result_type(x)), state)
        self._n_workers = jnp.asarray(oracle.n_workers, jnp.int32)
        self._version = 0
        self._points = {0: self._kernels.query(self._state, self._hyperparameters)}
        self._sampler = _batch_sampler(oracle, rule)
        self._grid = snapshot_seconds
        self._due = 0  # first of the grid that no snapshot was taken for
        self._snapshots: dict[int, Snapshot] = {}
        self._ready: dict[tuple[int, int, int], Sample] = {}  # (worker, k, version), not started
        self._running: dict[int, Sample] = {}  # by ledger row, until used or thrown away
        self._lengths: list[int] = []
        self._values: list[float] = []
        self._computed = 0
        self._keeper = keeper
        self._replayed: Arrays | None = keeper.load() if keeper else None

    def attach(self, engine: Engine, seconds_per_step: Callable[[int, int], float]) -> None:
        """Become the clock of an engine's computations."""
        self._engine = engine
        self._seconds_per_step = seconds_per_step
        engine.seconds_of = self._seconds

    # -- asked by the engine ------------------------------------------------------------------

    def starting(self, workers: Sequence[Worker], version: int) -> None:
        """Compute together the trajectories of workers that are about to get the point."""
        if self._replayed is not None:
            return
        many = self._engine.coordinator.gradients_per_assignment
        self._compute([(w.index, w.k + more) for w in workers for more in range(many)], version)

    def stepped(self, rows: list[int], seconds: float, ledger: Ledger) -> None:
        """Take the server step."""
        if self._replayed is not None:
            self._replay_step(self._replayed)
            return
        self._take_snapshots_before(seconds)
        gradients = jnp.stack([self._running.pop(row).gradient for row in rows])
        weights = jnp.asarray(ledger.weights(rows), self._x0.dtype)
        staleness = self._version - min(ledger.version_of(row) for row in rows)
        self._state = self._kernels.update(
            self._state, weights @ gradients, staleness, self._n_workers, self._hyperparameters
        )
        self._version += 1
        self._points[self._version] = self._kernels.query(self._state, self._hyperparameters)
        self._forget()
        if self._keeper is not None:
            self._keeper.offer(self._checkpoint)

    def _seconds(self, worker: int, k: int) -> float:
        """Seconds of a computation that starts now: steps of its trajectory x seconds a step."""
        if self._replayed is not None:
            return self._replayed_steps(self._replayed) * self._seconds_per_step(worker, k)
        version = self._engine.workers[worker].version
        if (worker, k, version) not in self._ready:
            self._look_ahead(worker, k, version)
        sample = self._ready.pop((worker, k, version))
        self._running[self._engine.ledger.n_computations] = sample
        self._lengths.append(int(sample.length))
        self._values.append(float(sample.value))
        return int(sample.length) * self._seconds_per_step(worker, k)

    # -- trajectories -------------------------------------------------------------------------

    def _look_ahead(self, worker: int, k: int, version: int) -> None:
        """Compute one and, with it, the next of every other worker that runs at the same point.

        They will want theirs soon, unless the step ends first.
        """
        others = [
            (other.index, other.k)
            for other in self._engine.workers
            if other.index != worker and other.version == version and other.row >= 0
        ]
        self._compute([(worker, k), *others], version)

    def _compute(self, wanted: list[tuple[int, int]], version: int) -> None:
        keys = [(worker, k, version) for worker, k in wanted]
        keys = [key for key in keys if key not in self._ready]
        if not keys:
            return
        workers = np.array([key[0] for key in keys], np.int32)
        ks = np.array([key[1] for key in keys], np.int32)
        batch = self._sample(self._points[version], workers, ks)
        self._computed += len(keys)
        for index, key in enumerate(keys):
            self._ready[key] = Sample(*(leaf[index] for leaf in batch))

    def _sample(self, point: Any, workers: NDArray[np.int32], ks: NDArray[np.int32]) -> Sample:
        """A batch at one point, as NumPy arrays."""
        batch = self._sampler(point, workers, ks, np.full(len(workers), self._seed, np.uint32))
        return Sample(*(np.asarray(leaf)[: len(workers)] for leaf in batch))

    def _forget(self) -> None:
        """Drop points, and trajectories, that nobody has any more."""
        workers = self._engine.workers
        rows = {worker.row for worker in workers}
        rows.update(row for worker in workers for row in worker.finished_rows)
        self._running = {row: self._running[row] for row in rows if row in self._running}
        versions = {worker.version for worker in workers} | {self._version}
        self._points = {v: point for v, point in self._points.items() if v in versions}
        self._ready = {
            (worker, k, version): sample
            for (worker, k, version), sample in self._ready.items()
            if workers[worker].version == version and k >= workers[worker].k
        }

    # -- checkpoints --------------------------------------------------------------------------

    def _replayed_steps(self, arrays: Arrays) -> int:
        """The length of the next computation that starts, as it was before the checkpoint."""
        index = len(self._lengths)
        if index >= len(arrays["lengths"]):
            raise CheckpointMismatch("the same events do not happen again")
        self._lengths.append(int(arrays["lengths"][index]))
        return self._lengths[-1]

    def _replay_step(self, arrays: Arrays) -> None:
        """Count a server step, and at the checkpoint's become what this was then."""
        self._version += 1
        version, self._due, self._computed = (int(count) for count in arrays["counts"])
        if self._version < version:
            return
        if len(self._lengths) != len(arrays["lengths"]):
            raise CheckpointMismatch("the same events do not happen again")
        self._replayed = None
        self._values = arrays["values"].tolist()
        self._state = unpack("state", self._state, arrays)
        self._points = keyed(arrays["point_versions"], arrays["points"])
        self._snapshots = {
            version: Snapshot(version, params)
            for version, params in keyed(arrays["snapshot_versions"], arrays["snapshots"]).items()
        }
        self._running = keyed(arrays["running_rows"], samples_of("running", arrays))
        ready = zip(
            map(tuple, arrays["ready_keys"].tolist()), samples_of("ready", arrays), strict=True
        )
        self._ready = dict(ready)

    def _checkpoint(self) -> Arrays:
        """After a server step: what :meth:`_replay_step` needs."""
        dim, dtype = self._oracle.dim, self._x0.dtype
        snapshots = [snapshot.params for snapshot in self._snapshots.values()]
        return {
            "counts": np.array([self._version, self._due, self._computed], np.int64),
            "lengths": np.array(self._lengths, np.int32),
            "values": np.array(self._values),
            **pack("state", self._state),
            "point_versions": np.array(list(self._points), np.int64),
            "points": stacked(list(self._points.values()), dim, dtype),
            "snapshot_versions": np.array(list(self._snapshots), np.int64),
            "snapshots": stacked(snapshots, dim, dtype),
            "running_rows": np.array(list(self._running), np.int64),
            **sample_columns("running", list(self._running.values()), dim, dtype),
            "ready_keys": np.array(list(self._ready), np.int64).reshape(-1, 3),
            **sample_columns("ready", list(self._ready.values()), dim, dtype),
        }

    # -- snapshots ----------------------------------------------------------------------------

    def _take_snapshots_before(self, seconds: float) -> None:
        """Keep the model that was current until ``seconds`` if it was asked for."""
        is_wanted = self._grid is None
        while self._grid is not None and self._due < len(self._grid):
            if self._grid[self._due] >= seconds:
                break
            self._due += 1
            is_wanted = True
        if is_wanted:
            self._keep_snapshot()

    def _keep_snapshot(self) -> None:
        params = np.array(self._state.params)
        self._snapshots[self._version] = Snapshot(self._version, params)

    def result(self, schedule: Schedule) -> LiveRun:
        """Close the books."""
        self._keep_snapshot()
        kept = self._engine.ledger.kept_rows()
        return LiveRun(
            schedule=schedule,
            snapshots=self._snapshots,
            lengths=np.array(self._lengths, np.int32)[kept],
            values=np.array(self._values)[kept],
            gradients_computed=self._computed,
        )


@per_problem
def _batch_sampler(oracle: Oracle, rule: UpdateRule) -> Callable[..., Sample]:
    """(point [dim], workers, ks, seeds [batch]) -> batch, padded to few shapes for a JAX oracle."""
    del rule
    if not isinstance(oracle, JaxOracle):
        return oracle.sample_batch

    def one(point: Any, worker: Any, k: Any, seed: Any) -> Sample:
        return oracle.sample(point, worker, gradient_key(seed, worker, k))

    compiled = jax.jit(jax.vmap(one, (None, 0, 0, 0)))

    def sample(point: Any, *columns: NDArray[Any]) -> Sample:
        many = len(columns[0])
        lanes = np.minimum(np.arange(round_up(many)), many - 1)
        batch: Sample = compiled(point, *(column[lanes] for column in columns))
        return batch

    return sample
