"""A plan: which gradients of a schedule can be computed together. Made without any value.

The server's steps are cut into *segments*. At the start of a segment, version b is known and
later ones are not. All used gradients whose version is known by then and that were not computed
before are computed together; then the server takes every step that needs no others. So segment j
covers steps ``bounds[j]`` to ``bounds[j + 1] - 1``, the longest run with

    largest version among the gradients of step s  <=  bounds[j],

and computes the used rows with ``bounds[j - 1] < version <= bounds[j]``. A Rennala step is a
segment of its own; n workers of Asynchronous SGD with equal speeds make segments of n steps.

Only used rows are in a plan: discarded, cancelled and unfinished ones are never computed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from simulator.schedule import Schedule

_MAX_SHAPES = 4
"""Shapes that a run may compile for batches that vary in size."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Segments of a schedule.

    Used rows in the order in which they are computed, [n_used]:

    Attributes:
        rows: rows of the schedule.
        points: int32, where the row's version is in its segment's window: version minus the
            first version that was not known before.
        slots: int32, where the gradient waits for its step; no other one is there meanwhile.

    Segments:

    Attributes:
        bounds: int64 [n_segments + 1], first steps, and the number of steps.
        computes: int64 [n_segments + 1]: segment j computes
            ``rows[computes[j]:computes[j + 1]]``.
        is_batch: bool [n_segments], whether the segment is one step, all of whose gradients are
            taken at the version it starts from, and nothing else is computed: no gradient waits.

    Used rows in the order in which they are used, [n_used]:

    Attributes:
        uses: int64, positions in ``rows``, ordered by step, then by row.
        offsets: int64 [n_steps + 1], step s uses ``uses[offsets[s]:offsets[s + 1]]``.
        staleness: int32 [n_steps], the largest of each step.

    And:

    Attributes:
        n_slots: gradients that ever wait together.
    """

    rows: NDArray[np.int64]
    points: NDArray[np.int32]
    slots: NDArray[np.int32]
    bounds: NDArray[np.int64]
    computes: NDArray[np.int64]
    is_batch: NDArray[np.bool_]
    uses: NDArray[np.int64]
    offsets: NDArray[np.int64]
    staleness: NDArray[np.int32]
    n_slots: int

    @property
    def n_segments(self) -> int:
        """Segments."""
        return len(self.is_batch)

    @property
    def longest(self) -> int:
        """Steps of the longest segment, >= 1."""
        return int(np.diff(self.bounds).max(initial=1))

    def counts(self, is_batch: bool) -> NDArray[np.int64]:
        """Rows that each segment of that kind computes."""
        return np.diff(self.computes)[self.is_batch == is_batch]

    def widest(self) -> int:
        """Most gradients in a step outside batch segments, >= 1."""
        many = np.diff(self.bounds)
        is_batch_step = np.repeat(self.is_batch, many)
        return int(np.diff(self.offsets)[~is_batch_step].max(initial=1))


def make_plan(schedule: Schedule, max_steps: int) -> Plan:
    """Cut a schedule into segments of at most ``max_steps`` server steps."""
    used, offsets = schedule.used_rows()
    step, version = schedule.step[used], schedule.version[used]
    newest = _reduce(np.maximum, version, offsets)
    bounds = _segment_bounds(newest, max_steps)
    segment = np.searchsorted(bounds[:-1], version, side="left")
    order = np.argsort(segment, kind="stable")
    computes = np.searchsorted(segment[order], np.arange(len(bounds)))
    uses = np.empty_like(order)
    uses[order] = np.arange(len(order))
    window = np.r_[0, bounds[:-1] + 1][segment]  # the first version new to the segment
    is_batch = _batch_segments(step[order], version[order], bounds, computes)
    slots, n_slots = _assign_slots(uses, offsets, bounds, computes, is_batch)
    return Plan(
        rows=used[order],
        points=(version - window)[order].astype(np.int32),
        slots=slots,
        bounds=bounds,
        computes=computes,
        is_batch=is_batch,
        uses=uses,
        offsets=offsets,
        staleness=np.arange(schedule.n_steps, dtype=np.int32)
        - _reduce(np.minimum, version, offsets),
        n_slots=n_slots,
    )


def _reduce(
    function: np.ufunc, values: NDArray[np.int32], offsets: NDArray[np.int64]
) -> NDArray[np.int32]:
    """A ufunc over each step's values, [n_steps]; every step has some."""
    if len(offsets) == 1:
        return np.zeros(0, np.int32)
    return np.asarray(function.reduceat(values, offsets[:-1]), np.int32)


def _segment_bounds(newest: NDArray[np.int32], max_steps: int) -> NDArray[np.int64]:
    """First steps of the longest runs whose gradients are all of versions known at their start."""
    bounds = [0] if len(newest) else []
    for step, version in enumerate(newest.tolist()):
        if version > bounds[-1] or step - bounds[-1] >= max_steps:
            bounds.append(step)
    return np.array([*bounds, len(newest)], np.int64)


def _batch_segments(
    step: NDArray[np.int32],
    version: NDArray[np.int32],
    bounds: NDArray[np.int64],
    computes: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Segments of one step that use, at once, all they compute and nothing else, [n_segments]."""
    first = np.repeat(bounds[:-1], np.diff(computes))
    is_own = (step == first) & (version == first)
    own = np.r_[0, np.cumsum(is_own)][computes]
    n_used = np.bincount(step, minlength=int(bounds[-1]))[bounds[:-1]]
    n_computed = np.diff(computes)
    is_alone = (np.diff(own) == n_computed) & (n_computed == n_used)
    return np.asarray(is_alone & (np.diff(bounds) == 1))


def _assign_slots(
    uses: NDArray[np.int64],
    offsets: NDArray[np.int64],
    bounds: NDArray[np.int64],
    computes: NDArray[np.int64],
    is_batch: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], int]:
    """A place for every gradient that waits, the lowest that is free; 0 in batch segments."""
    slots = np.zeros(len(uses), np.int32)
    free: list[int] = []
    n_slots = 0
    for segment in np.flatnonzero(~is_batch).tolist():
        start, stop = computes[segment], computes[segment + 1]
        while len(free) < stop - start:
            free.append(n_slots)
            n_slots += 1
        taken = len(free) - int(stop - start)
        slots[start:stop] = free[taken:]
        del free[taken:]
        consumed = uses[offsets[bounds[segment]] : offsets[bounds[segment + 1]]]
        free.extend(slots[consumed].tolist())
    return slots, n_slots


def choose_sizes(counts: Iterable[int], largest: int) -> tuple[int, ...]:
    """Few batch sizes for batches of these counts, ascending; padded, every count fits or splits.

    Up to three different counts are their own sizes. Otherwise sizes come from 1, 2, 4, 6, 8, 12,
    16, ..., the same for all schedules, and those are merged upwards that cost the least padding.

    Args:
        counts: rows per batch, each >= 1.
        largest: no size is larger; a larger batch is split.
    """
    counts = np.minimum(np.asarray(list(counts), np.int64), largest)
    distinct = np.unique(counts)
    if len(distinct) <= 3:
        return tuple(distinct.tolist())
    calls = dict.fromkeys(sorted({min(round_up(c), largest) for c in distinct.tolist()}), 0)
    for count, many in zip(*np.unique(counts, return_counts=True), strict=True):
        calls[min(round_up(int(count)), largest)] += int(many)
    sizes = list(calls)
    while len(sizes) > _MAX_SHAPES:
        padding = [calls[a] * (b - a) for a, b in pairwise(sizes)]
        merged = int(np.argmin(padding))
        calls[sizes[merged + 1]] += calls[sizes[merged]]
        del sizes[merged]
    return tuple(sizes)


def round_up(count: int) -> int:
    """The next of 1, 2, 4, 6, 8, 12, 16, 24, ...: less than a third is padding."""
    power = 1 << max(count - 1, 0).bit_length()
    three_quarters = 3 * power // 4
    return three_quarters if power >= 8 and count <= three_quarters else power


def split(count: int, sizes: tuple[int, ...]) -> list[tuple[int, int]]:
    """Cut ``count`` rows into (rows, size) with rows <= size, the largest size first."""
    whole, rest = divmod(count, sizes[-1])
    chunks = [(sizes[-1], sizes[-1])] * whole
    if rest:
        chunks.append((rest, next(size for size in sizes if size >= rest)))
    return chunks
