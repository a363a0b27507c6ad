"""Blocks: what one iteration of the compiled loop does, for all replicas at once.

A *group* is up to ``rows`` gradients of one server step; a step with more is several groups. A
*block* is up to ``groups`` consecutive groups whose gradients are all taken at versions known when
the block starts: it computes them together, then takes their server steps one after the other.
An arrival of Asynchronous SGD is a group of one; a Rennala step is a block of one group.

Replicas whose delays differ have a schedule each but share the blocks: block j takes the same
steps in all of them, so it may only use what *every* schedule knows by then. Where a schedule has
fewer gradients in a step, or no such step, lanes idle.

The point of a version is kept in a *slot* from the block that makes it to the last that reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.executors.plan import round_up
from simulator.schedule import Schedule

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]

_OVERHEAD_LANES = 16
"""A block costs as much as this many gradients, besides those it computes."""
_MOST_GROUPS = 1024
_MOST_ROWS = 4096


class Shape(NamedTuple):
    """What is compiled in.

    Attributes:
        groups: of a block, at most.
        rows: gradients of a group, at most.
        is_fresh: every gradient is taken at the version its step starts from: no point waits.
        is_whole: every step is one group.
        is_padded: some groups have fewer gradients.
        is_shared: all replicas follow one schedule.
    """

    groups: int
    rows: int
    is_fresh: bool
    is_whole: bool
    is_padded: bool
    is_shared: bool

    @property
    def lanes(self) -> int:
        """Gradients that a block computes for each replica."""
        return self.groups * self.rows


@dataclass(frozen=True, eq=False)
class Track:
    """The used gradients of a schedule in the order of use, [n_used], and its steps.

    Attributes:
        rows: of the schedule.
        step, version, worker, k, weight: of those rows.
        offsets: [n_steps + 1], step s uses ``rows[offsets[s]:offsets[s + 1]]``.
    """

    rows: Int64
    step: Int32
    version: Int32
    worker: Int32
    k: Int32
    weight: NDArray[np.float64]
    offsets: Int64

    @classmethod
    def of(cls, schedule: Schedule) -> Track:
        """A schedule's."""
        rows, offsets = schedule.used_rows()
        names = ("step", "version", "worker", "k", "weight")
        columns = {name: getattr(schedule, name)[rows] for name in names}
        return cls(rows=rows, offsets=offsets, **columns)

    @property
    def n_steps(self) -> int:
        """Server steps."""
        return len(self.offsets) - 1

    def reduce(self, function: np.ufunc, n_steps: int, missing: Int64) -> Int64:
        """A ufunc over the versions of each step, [n_steps]; ``missing`` where there is none."""
        values = missing.copy()
        if self.n_steps:
            values[: self.n_steps] = function.reduceat(self.version, self.offsets[:-1])
        return values[:n_steps]

    def counts(self, n_steps: int) -> Int64:
        """Gradients in each step, [n_steps]; 0 past the last."""
        counts = np.zeros(n_steps, np.int64)
        counts[: self.n_steps] = np.diff(self.offsets)
        return counts


class Tracks:
    """The tracks of replicas side by side.

    Args:
        tracks: of each replica.
        is_shared: whether one stands for all; by default, if they are all the same.

    Attributes:
        tracks: of each replica, or the one.
        n_steps: of the longest.
        counts, newest: int64 [n_steps], most gradients in the step and newest version it uses.
        staleness: for each track, int32 [n_steps], the largest of the step.
        is_shared: see above.
        is_fresh: every gradient is taken at the version its step starts from.
    """

    def __init__(self, tracks: Sequence[Track], is_shared: bool | None = None) -> None:
        distinct = list({id(track): track for track in tracks}.values())
        self.is_shared = len(distinct) == 1 if is_shared is None else is_shared
        self.tracks = distinct if self.is_shared else list(tracks)
        self.n_steps = max(track.n_steps for track in distinct)
        steps = np.arange(self.n_steps)
        none = np.zeros_like(steps)
        self.counts = np.max([t.counts(self.n_steps) for t in distinct], axis=0)
        self.newest = np.max([t.reduce(np.maximum, self.n_steps, none) for t in distinct], axis=0)
        oldest = {id(t): t.reduce(np.minimum, self.n_steps, steps) for t in distinct}
        staleness = {key: (steps - column).astype(np.int32) for key, column in oldest.items()}
        self.staleness = [staleness[id(track)] for track in self.tracks]
        self.is_fresh = not any(column.any() for column in staleness.values())

    def shape(self, replicas: int, most_lanes: int) -> Shape:
        """The block size that should take least time, with at most so many lanes in all.

        Args:
            replicas: side by side.
            most_lanes: gradients to compute together, over all replicas, if it is enough for one
                gradient of each.
        """
        most = max(1, min(most_lanes // replicas, _MOST_ROWS))
        rows = self._best_rows(replicas, most)
        groups = 1 if self.is_fresh else self._best_groups(replicas, rows, max(1, most // rows))
        is_whole = int(self.counts.max(initial=1)) <= rows
        is_padded = any(
            self._is_padded(track, rows) for track in {id(t): t for t in self.tracks}.values()
        )
        return Shape(groups, rows, self.is_fresh, is_whole, is_padded, self.is_shared)

    def _is_padded(self, track: Track, rows: int) -> bool:
        counts = track.counts(self.n_steps)
        return bool(np.any((counts % rows != 0) | (counts == 0)))

    def _best_rows(self, replicas: int, most: int) -> int:
        counts, many = np.unique(np.maximum(self.counts, 1), return_counts=True)
        if not len(counts):
            return 1
        sizes = counts if len(counts) <= 3 else np.unique([round_up(int(c)) for c in counts])
        candidates = np.unique(np.minimum(sizes, most))
        overhead = _OVERHEAD_LANES if self.is_fresh else 0
        cost = [
            np.sum(many * -(-counts // rows)) * (overhead + replicas * rows) for rows in candidates
        ]
        return int(candidates[np.argmin(cost)])

    def _best_groups(self, replicas: int, rows: int, most: int) -> int:
        groups = np.maximum(-(-self.counts // rows), 1)
        runs = np.diff(_block_starts(groups, self.newest, 0, _MOST_GROUPS, ()))
        candidates = [
            1 << power for power in range(_MOST_GROUPS.bit_length()) if 1 << power <= most
        ]
        cost = [
            np.sum(-(-runs // size)) * (_OVERHEAD_LANES + replicas * rows * size)
            for size in candidates
        ]
        return candidates[int(np.argmin(cost))]


def _block_starts(
    groups: Int64, newest: Int64, first: int, most: int, cuts: Iterable[int]
) -> Int64:
    """First groups of blocks, and the number of groups.

    Args:
        groups: of each step.
        newest: version that each step uses.
        first: number of the first of these steps.
        most: groups in a block.
        cuts: versions at which a block must end.
    """
    ends = np.cumsum(groups)
    n_groups = int(ends[-1]) if len(ends) else 0
    step = np.repeat(np.arange(len(groups)), groups)
    # newest[s] <= s, so what is too new for a block that starts at version b comes after it.
    limit = np.searchsorted(np.maximum.accumulate(newest[step]), step + first, side="right")
    limit = np.minimum(limit, np.arange(n_groups) + most)
    stops = np.array([*(ends[v - first - 1] for v in sorted(cuts) if v > first), n_groups])
    limit = np.minimum(limit, stops[np.searchsorted(stops, np.arange(n_groups), side="right")])
    following, starts = limit.tolist(), [0]
    while starts[-1] < n_groups:
        starts.append(following[starts[-1]])
    return np.array(starts, np.int64)


class Columns(NamedTuple):
    """Blocks as arrays; Q is absent if the schedule is shared, else the number of replicas.

    Attributes:
        n_groups: uint32 [blocks], >= 1.
        ends_step: bool [blocks, groups].
        worker, k: int32 [blocks, groups, rows, Q]; idle lanes repeat the one before them.
        slot: uint32 [blocks, groups, rows, Q].
        weight: [blocks, groups, rows, Q], 0 in idle lanes.
        staleness: int32 [blocks, groups, Q].
        write: uint32 [blocks, groups, Q], slot for the point made by the step that ends there.
    """

    n_groups: Any
    ends_step: Any
    worker: Any
    k: Any
    slot: Any
    weight: Any
    staleness: Any
    write: Any


class Blocks:
    """Steps ``first`` to ``stop - 1`` in blocks.

    Args:
        tracks: what happens.
        shape: of the blocks.
        first, stop: which steps.
        cuts: versions whose parameters are wanted: a block ends there.

    Attributes:
        versions: int64 [n_blocks], server steps taken when a block is over.
        slots: for each track, int32 [stop + 1]: of each version's point, or -1 if it has none.
        n_slots: slots that are ever in use together, the most over tracks.
    """

    def __init__(
        self, tracks: Tracks, shape: Shape, first: int, stop: int, cuts: Iterable[int]
    ) -> None:
        self._tracks, self._shape = tracks, shape
        self._first, self._stop = first, stop
        groups = np.maximum(-(-tracks.counts[first:stop] // shape.rows), 1)
        self._group_of = np.r_[0, np.cumsum(groups)]  # of a step, its first
        newest = tracks.newest[first:stop]
        self._starts = _block_starts(groups, newest, first, shape.groups, cuts)
        self._block_of = np.repeat(np.arange(self.n_blocks), np.diff(self._starts))  # of a group
        steps_done = np.searchsorted(self._group_of, self._starts[1:], side="right") - 1
        self.versions = first + steps_done
        self.slots, self.n_slots = self._assign_slots()

    @property
    def n_blocks(self) -> int:
        """Blocks."""
        return len(self._starts) - 1

    def _assign_slots(self) -> tuple[list[Int32], int]:
        if self._shape.is_fresh:
            return [np.full(self._stop + 1, -1, np.int32) for _ in self._tracks.tracks], 0
        assigned: dict[int, tuple[Int32, int]] = {}
        for track in self._tracks.tracks:
            if id(track) not in assigned:
                assigned[id(track)] = self._assign_slots_of(track)
        both = [assigned[id(track)] for track in self._tracks.tracks]
        return [slots for slots, _ in both], max(many for _, many in both)

    def _assign_slots_of(self, track: Track) -> tuple[Int32, int]:
        """A slot for every version that is read in these steps or later: the last one freed."""
        last_read = np.full(self._stop + 1, -1, np.int64)
        ahead = slice(track.offsets[min(self._first, track.n_steps)], None)
        step, version = track.step[ahead], track.version[ahead]
        known = version <= self._stop
        step, version = step[known], version[known]
        block = np.full(len(step), self.n_blocks)
        here = step < self._stop
        group = self._group_of[step[here] - self._first + 1] - 1  # the last of the step will do
        block[here] = self._block_of[group]
        np.maximum.at(last_read, version, block)
        made = np.full(self._stop + 1, -1)
        made[self._first + 1 :] = self._block_of[self._group_of[1:] - 1]
        return _share_slots(made, last_read)

    def columns(
        self, block: int, count: int, capacity: int, dtype: Any, spare_slot: int
    ) -> tuple[Columns, list[Int64]]:
        """Blocks ``block`` to ``block + count - 1``, in arrays for ``capacity`` blocks.

        Args:
            block, count: which.
            capacity: >= count.
            dtype: of weights.
            spare_slot: for points that nobody reads.

        Returns:
            The columns, and for each track the row of the schedule in every lane,
            [capacity * groups * rows]; -1 in idle lanes.
        """
        starts = self._starts[block : block + count + 1]
        n_groups = np.ones(capacity, np.uint32)
        n_groups[:count] = np.diff(starts)
        group = np.arange(starts[0], starts[-1])
        place = (self._block_of[group] - block) * self._shape.groups
        place += group - self._starts[self._block_of[group]]
        step = np.searchsorted(self._group_of, group, side="right") - 1  # from ``first``
        ends_step = np.zeros(capacity * self._shape.groups, bool)
        ends_step[place] = self._group_of[step + 1] == group + 1
        window = _Window(capacity, place, int(starts[0]), step, spare_slot)
        tracks = self._tracks.tracks
        one_of = {id(track): index for index, track in enumerate(tracks)}
        made = {key: self._lanes(index, window, dtype) for key, index in one_of.items()}
        parts = [made[id(track)] for track in tracks]
        columns = Columns(
            n_groups,
            ends_step.reshape(capacity, -1),
            *(self._joined(column) for column in zip(*(part for part, _ in parts), strict=True)),
        )
        return columns, [source for _, source in parts]

    def _joined(self, columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return columns[0] if self._shape.is_shared else np.stack(columns, axis=-1)

    def _lanes(
        self, index: int, window: _Window, dtype: Any
    ) -> tuple[tuple[NDArray[Any], ...], Int64]:
        """What one track puts into the columns, and its row in every lane."""
        track, slots = self._tracks.tracks[index], self.slots[index]
        groups, rows = self._shape.groups, self._shape.rows
        capacity, shape = window.capacity, (window.capacity, groups, rows)
        first, last = (self._first + int(window.step[at]) for at in (0, -1))
        many = track.n_steps
        used = np.arange(track.offsets[min(first, many)], track.offsets[min(last + 1, many)])
        step = track.step[used]
        position = used - track.offsets[step]
        group = self._group_of[step - self._first] + position // rows - window.group
        # A step may go on before and after these blocks.
        inside = (group >= 0) & (group < len(window.place))
        used, lane = used[inside], position[inside] % rows + window.place[group[inside]] * rows
        source = np.full(capacity * groups * rows, -1, np.int64)
        source[lane] = used
        filled = np.maximum(_filled(source.reshape(capacity, -1)), 0).reshape(shape)
        weight = np.zeros(len(source), dtype)
        weight[lane] = track.weight[used]
        staleness = np.zeros(capacity * groups, np.int32)
        write = np.zeros(capacity * groups, np.uint32)
        staleness[window.place] = self._tracks.staleness[index][self._first + window.step]
        slot = slots[self._first + window.step + 1]
        write[window.place] = np.where(slot >= 0, slot, window.spare_slot)
        source[lane] = track.rows[used]
        if not len(track.rows):
            empty = np.zeros(shape, np.int32)
            columns = (empty, empty, empty.astype(np.uint32))
        else:
            slot = slots[np.minimum(track.version[filled], self._stop)]
            columns = (track.worker[filled], track.k[filled], np.maximum(slot, 0).astype(np.uint32))
        tail = (weight.reshape(shape), *(a.reshape(capacity, groups) for a in (staleness, write)))
        return (*columns, *tail), source


class _Window(NamedTuple):
    """Some blocks: for each of their groups, where it goes and of which step it is.

    Attributes:
        capacity: blocks that the arrays hold.
        place: int64 [n], position among ``capacity * groups``.
        group: the first group.
        step: int64 [n], counted from the first of the plan.
        spare_slot: for points that nobody reads.
    """

    capacity: int
    place: Int64
    group: int
    step: Int64
    spare_slot: int


def _share_slots(made: Int64, last_read: Int64) -> tuple[Int32, int]:
    """Slots for versions that are read, and how many there are.

    A version takes the slot that has been free for longest, or a new one if none is free: it does
    if more versions wait than ever before. So the r-th version that reuses a slot reuses that of
    the r-th version read for the last time, and following these links back leads to a new one.

    Args:
        made: block that makes each version, ascending; -1 if it is there from the start.
        last_read: block that reads it last, or -1. It reads before it writes.
    """
    slots = np.full(len(made), -1, np.int32)
    read = np.flatnonzero(last_read >= 0)
    if not len(read):
        return slots, 0
    ends = last_read[read]
    dying = np.argsort(ends, kind="stable")
    gone = np.searchsorted(ends[dying], made[read], side="right")
    most = np.maximum.accumulate(np.arange(1, len(read) + 1) - gone)
    is_new = np.diff(most, prepend=0) > 0
    link = np.arange(len(read))
    link[~is_new] = dying[: len(read) - int(is_new.sum())]
    while not is_new[link].all():
        link = link[link]
    slots[read] = (np.cumsum(is_new) - 1)[link]
    return slots, int(most[-1])


def _filled(source: Int64) -> Int64:
    """Every -1 replaced by the entry before it in its row, where there is one."""
    position = np.where(source >= 0, np.arange(source.shape[1]), 0)
    return np.take_along_axis(source, np.maximum.accumulate(position, axis=1), axis=1)
