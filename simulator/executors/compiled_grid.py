"""A grid: many replicas of one method, seeds x hyperparameters, in few calls of one compiled loop.

Replicas that follow one schedule share its arrays; where delays are random, each seed has a
schedule of its own, and the loop takes the same steps in all of them. As many replicas run side by
side as memory allows; the others follow, in the same program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from algorithms.update_rule import Hyperparameters, UpdateRule
from simulator.executors.common import Snapshot, starting_point
from simulator.executors.compiled_kernels import Replicas
from simulator.executors.compiled_plan import Shape, Track, Tracks
from simulator.executors.compiled_replicas import DEFAULT_MEMORY_BYTES, Lockstep, fit, most_lanes
from simulator.oracle import JaxOracle
from simulator.schedule import Schedule

_VECTORS_PER_REPLICA = 16


class Grid:
    """Replicas of one method, executed side by side.

    Args:
        schedules: what happens in each; the same object where it is the same.
        oracle, rule: see :class:`simulator.executors.common.Execution`.
        hyperparameters: of each replica.
        seeds: of each replica's gradients and initial point.
        memory_bytes: what all arrays on the device may take together.
        width: replicas to make room for, at least; idle ones repeat the last. XLA rounds a sum
            differently for another number of replicas, and the same whoever they are: of replicas
            that follow one schedule, at most ``width`` of them, each gets the same bytes in
            whatever company.

    Attributes:
        lengths: of each replica, int32 [n_computations], environment steps of each trajectory; -1
            if not computed.

    Raises:
        ValueError: a schedule is for another fleet, or the lists differ in length.
    """

    def __init__(
        self,
        schedules: Sequence[Schedule],
        oracle: JaxOracle,
        rule: UpdateRule,
        hyperparameters: Sequence[Hyperparameters],
        seeds: Sequence[int],
        *,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        width: int = 1,
    ) -> None:
        if not len(schedules) == len(hyperparameters) == len(seeds):
            raise ValueError(
                f"{len(schedules)} schedules, {len(hyperparameters)} hyperparameters and "
                f"{len(seeds)} seeds: expected one of each for every replica"
            )
        for schedule in schedules:
            if schedule.n_workers != oracle.n_workers:
                raise ValueError(
                    f"a schedule for {schedule.n_workers} workers, an oracle for {oracle.n_workers}"
                )
        self._schedules, self._oracle, self._rule = list(schedules), oracle, rule
        self._hyperparameters, self._seeds = list(hyperparameters), list(seeds)
        self._memory_bytes = memory_bytes
        self._width = max(width, self.n_replicas)
        tracks = {id(schedule): Track.of(schedule) for schedule in schedules}
        self._tracks = [tracks[id(schedule)] for schedule in schedules]
        self._all = Tracks(self._tracks)
        self._shapes: dict[tuple[int, int], Shape] = {}
        self._starts: dict[int, NDArray[Any]] = {}
        self.lengths = [np.full(s.n_computations, -1, np.int32) for s in schedules]

    @property
    def n_replicas(self) -> int:
        """Replicas."""
        return len(self._schedules)

    def snapshots(self, versions: Sequence[Sequence[int]]) -> Iterator[tuple[int, Snapshot]]:
        """Execute, yielding (replica, the model) at each of its versions.

        A replica's snapshots come in order; those of several are interleaved. What has been
        yielded stays valid, whatever happens afterwards.

        Args:
            versions: for each replica, ascending, from 0 to its number of steps.

        Raises:
            ValueError: they are not.
            ConfigurationError: not even one replica fits into ``memory_bytes``.
        """
        for mine, schedule in zip(versions, self._schedules, strict=True):
            bounds = [0, *mine, schedule.n_steps]
            if any(later < earlier for earlier, later in pairwise(bounds)):
                raise ValueError(
                    f"versions {list(mine)}: expected ascending numbers in [0, {schedule.n_steps}]"
                )
        return self._run([list(mine) for mine in versions])

    def _run(self, versions: list[list[int]]) -> Iterator[tuple[int, Snapshot]]:
        count, points, first = self._most_replicas(), 0, 0
        while first < self.n_replicas:
            members = list(range(first, min(first + count, self.n_replicas)))
            wanted = {version for replica in members for version in versions[replica]} - {0}
            stop = max(wanted, default=0)

            def make(many: int, lanes: int, first: int = first, points: int = points) -> Lockstep:
                return self._lockstep(first, many, lanes, points)

            lockstep = fit(make, count, self._most_lanes(), stop, wanted, self._memory_bytes)
            count = lockstep.n_replicas
            points = lockstep.prepare(stop, wanted).points
            members = members[:count]
            yield from self._follow(lockstep, members, versions, stop, wanted)
            first += count

    def _follow(
        self,
        lockstep: Lockstep,
        members: list[int],
        versions: list[list[int]],
        stop: int,
        wanted: set[int],
    ) -> Iterator[tuple[int, Snapshot]]:
        """Run the replicas in ``members`` to the end."""
        at = {replica: Counter(versions[replica]) for replica in members}
        start = lockstep.params
        for place, replica in enumerate(members):
            for _ in range(at[replica][0]):
                yield replica, Snapshot(0, start[place])
        for version, params in lockstep.advance(stop, wanted):
            for place, replica in enumerate(members):
                for _ in range(at[replica][version]):
                    yield replica, Snapshot(version, params[place].copy())

    def _most_lanes(self) -> int:
        return most_lanes(self._bytes_per_vector(), self._memory_bytes)

    def _bytes_per_vector(self) -> int:
        return self._start(0).nbytes

    def _most_replicas(self) -> int:
        """So many may fit side by side: an estimate, to compile for few that do not."""
        is_fresh = all(bool(np.all(track.step == track.version)) for track in self._tracks)
        schedule = self._schedules[0]
        points = 0 if is_fresh else min(schedule.n_workers, schedule.n_steps) + 1
        vectors = points + _VECTORS_PER_REPLICA
        return max(1, min(self._width, self._memory_bytes // (vectors * self._bytes_per_vector())))

    def _start(self, replica: int) -> NDArray[Any]:
        seed = self._seeds[replica]
        if seed not in self._starts:
            self._starts[seed] = np.asarray(starting_point(self._oracle, seed, None))
        return self._starts[seed]

    def _lockstep(self, first: int, count: int, lanes: int, least_points: int) -> Lockstep:
        """Replicas from ``first`` on; past the last one, it again: its results are dropped."""
        members = [min(first + place, self.n_replicas - 1) for place in range(count)]
        x0 = _stacked([self._start(replica) for replica in members])
        dtype = x0.dtype
        replicas = Replicas(
            jnp.asarray([self._seeds[replica] for replica in members], jnp.uint32),
            jax.tree.map(
                lambda *leaves: _stacked(leaves, dtype),
                *(self._hyperparameters[replica] for replica in members),
            ),
            jnp.asarray(self._oracle.n_workers, jnp.int32),
        )

        def note(rows: list[NDArray[np.int64]], lengths: Any, values: Any) -> None:
            del values
            for place, replica in enumerate(members[: self.n_replicas - first]):
                mine = rows[0 if len(rows) == 1 else place]
                live = mine >= 0
                self.lengths[replica][mine[live]] = lengths[live, place]

        tracks = Tracks([self._tracks[replica] for replica in members], self._all.is_shared)
        shape = self._shape(count, lanes)
        return Lockstep(
            tracks, self._oracle, self._rule, replicas, x0, shape, note, least_points=least_points
        )

    def _shape(self, count: int, lanes: int) -> Shape:
        """Of the blocks of all replicas, so that those that take turns share a program."""
        if (count, lanes) not in self._shapes:
            self._shapes[count, lanes] = self._all.shape(count, lanes)
        return self._shapes[count, lanes]


def _stacked(leaves: Sequence[Any], dtype: Any = None) -> jax.Array:
    """Stacked on the host: on the device, thousands of operands are slow to compile and to pass."""
    return jnp.asarray(np.stack([np.asarray(leaf, dtype) for leaf in leaves]))
