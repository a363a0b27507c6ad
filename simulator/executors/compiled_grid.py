"""Compiled, for many replicas: seeds and hyperparameters of one method through one program.

Replicas run side by side, as many as there is memory for, and the rest after them in the same
program: it is compiled once, however many there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from algorithms.update_rule import Hyperparameters, UpdateRule
from simulator.executors.common import Snapshot, as_arrays, starting_point
from simulator.executors.compiled_kernels import Replicas
from simulator.executors.compiled_plan import Shape, Track, Tracks
from simulator.executors.compiled_replicas import DEFAULT_MEMORY_BYTES, Lockstep, fit, most_lanes
from simulator.oracle import JaxOracle
from simulator.schedule import Schedule

Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Replica:
    """One run of a method.

    Attributes:
        schedule: what happens; give the same object to replicas that share it.
        hyperparameters: of the update rule.
        seed: in [0, 2^32).
        versions: ascending, at which its model is wanted.
        x0: [dim], instead of the oracle's initial point.
    """

    schedule: Schedule
    hyperparameters: Hyperparameters
    seed: int
    versions: Sequence[int]
    x0: Any = None


class Grid:
    """Many replicas of one method. Compute inside ``simulator.precision.precision``.

    Args:
        replicas: at least one. Those that run together are neighbours.
        oracle, rule: the problem and the update rule of all of them.
        memory_bytes: what all arrays of the program may take together.
        progress: called now and then with the fraction that is done.

    Attributes:
        gradients_computed: int64 [R], so far.
        lengths_total: int64 [R], environment steps of their trajectories.

    Raises:
        ValueError: a schedule is for another fleet, or versions fall or are not in the schedule.
    """

    def __init__(
        self,
        replicas: Sequence[Replica],
        oracle: JaxOracle,
        rule: UpdateRule,
        *,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        progress: Progress | None = None,
    ) -> None:
        for replica in replicas:
            _check(replica, oracle.n_workers)
        self._replicas, self._oracle, self._rule = list(replicas), oracle, rule
        self._memory_bytes, self._progress = memory_bytes, progress
        schedules = {id(r.schedule): r.schedule for r in replicas}
        self._tracks = {key: Track.of(schedule) for key, schedule in schedules.items()}
        self._all = Tracks([self._tracks[id(replica.schedule)] for replica in replicas])
        self._shapes: dict[tuple[int, int], Shape] = {}
        self.gradients_computed = np.zeros(len(replicas), np.int64)
        self.lengths_total = np.zeros(len(replicas), np.int64)

    def snapshots(self) -> Iterator[tuple[int, Snapshot]]:
        """Execute everything, yielding (index of the replica, its model) at its versions.

        The snapshots of one replica come in order. All stay valid whatever happens afterwards.

        Raises:
            ConfigurationError: not even one replica fits into ``memory_bytes``.
        """
        for index, replica in enumerate(self._replicas):
            at_start = [version for version in replica.versions if version == 0]
            if at_start:
                params = np.asarray(starting_point(self._oracle, replica.seed, replica.x0))
            for version in at_start:
                yield index, Snapshot(version, params.copy())
        if any(replica.versions and replica.versions[-1] > 0 for replica in self._replicas):
            yield from self._run()

    def side_by_side(self) -> int:
        """How many replicas run at a time; finding out compiles."""
        return self._fit()[1]

    def _run(self) -> Iterator[tuple[int, Snapshot]]:
        first_lockstep, size, lanes = self._fit()
        for number, first in enumerate(range(0, len(self._replicas), size)):
            chunk = range(first, min(first + size, len(self._replicas)))
            wanted = _wanted([self._replicas[index] for index in chunk])
            stop = max(wanted, default=0)
            lockstep = self._lockstep(chunk, size, lanes, number) if number else first_lockstep
            for reached in lockstep.advance(stop, set(wanted)):
                for position, times in wanted[reached.version]:
                    snapshot = Snapshot(reached.version, reached.params[position])
                    yield from [(chunk[position], snapshot)] * times

    def _fit(self) -> tuple[Lockstep, int, int]:
        """The first chunk, the replicas of each, and lanes for all of them."""
        point = starting_point(self._oracle, self._replicas[0].seed, self._replicas[0].x0)
        lanes = most_lanes(point.nbytes, self._memory_bytes)

        def make(size: int, lanes: int) -> Lockstep:
            return self._lockstep(range(size), size, lanes, 0)

        wanted = _wanted(self._replicas)
        many = len(self._replicas)
        return fit(make, many, lanes, max(wanted), set(wanted), self._memory_bytes)

    def _lockstep(self, chunk: range, size: int, lanes: int, number: int) -> Lockstep:
        """Replicas of a chunk; the last repeats itself until there are ``size``."""
        indices = [*chunk, *[chunk[-1]] * (size - len(chunk))]
        mine = [self._replicas[index] for index in indices]
        x0 = jnp.stack([starting_point(self._oracle, r.seed, r.x0) for r in mine])
        values = [as_arrays(r.hyperparameters, x0.dtype) for r in mine]
        replicas = Replicas(
            jnp.asarray([r.seed for r in mine], jnp.uint32),
            jax.tree.map(lambda *leaves: jnp.stack(leaves), *values),
            jnp.asarray(self._oracle.n_workers, jnp.int32),
        )
        tracks = Tracks([self._tracks[id(r.schedule)] for r in mine], self._all.is_shared)
        shape = self._shape(size, lanes)
        note = self._note(chunk, tracks, number, math.ceil(len(self._replicas) / size))
        return Lockstep(tracks, self._oracle, self._rule, replicas, x0, shape, note)

    def _shape(self, size: int, lanes: int) -> Shape:
        """One for all chunks, whatever is in them."""
        if (size, lanes) not in self._shapes:
            self._shapes[size, lanes] = self._all.shape(size, lanes)
        return self._shapes[size, lanes]

    def _note(self, chunk: range, tracks: Tracks, number: int, chunks: int) -> Any:
        """What hears of finished blocks."""
        total = max(1, sum(len(track.rows) for track in tracks.tracks))
        done = 0

        def note(rows: list[NDArray[np.int64]], lengths: Any, values: Any) -> None:
            nonlocal done
            del values
            for position, index in enumerate(chunk):
                live = rows[0 if tracks.is_shared else position] >= 0
                self.gradients_computed[index] += live.sum()
                self.lengths_total[index] += lengths[live, position].sum()
            done += sum(int((row >= 0).sum()) for row in rows)
            if self._progress is not None:
                self._progress((number + min(1.0, done / total)) / chunks)

        return note


def _wanted(replicas: Sequence[Replica]) -> dict[int, list[tuple[int, int]]]:
    """Version > 0 -> (position, how many times) of the replicas that want it, ascending."""
    wanted: dict[int, list[tuple[int, int]]] = {}
    for position, replica in enumerate(replicas):
        for version in sorted(set(replica.versions) - {0}):
            times = list(replica.versions).count(version)
            wanted.setdefault(version, []).append((position, times))
    return dict(sorted(wanted.items()))


def _check(replica: Replica, n_workers: int) -> None:
    schedule, versions = replica.schedule, list(replica.versions)
    if schedule.n_workers != n_workers:
        raise ValueError(f"a schedule for {schedule.n_workers} workers, an oracle for {n_workers}")
    bounded = [0, *versions, schedule.n_steps]
    if sorted(bounded) != bounded:
        raise ValueError(
            f"versions {versions}: expected ascending numbers in [0, {schedule.n_steps}]"
        )
