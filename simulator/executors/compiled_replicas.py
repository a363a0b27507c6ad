"""Replicas in lockstep: they take the same server steps in the same calls of a compiled loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from algorithms.update_rule import UpdateRule
from simulator.errors import ConfigurationError
from simulator.executors.common import fresh
from simulator.executors.compiled_kernels import (
    Carry,
    Outputs,
    Program,
    Replicas,
    noise_bytes,
    program,
)
from simulator.executors.compiled_plan import Blocks, Columns, Shape, Tracks
from simulator.executors.plan import round_up
from simulator.oracle import DrawingOracle, JaxOracle
from simulator.resume import Arrays, pack, unpack

DEFAULT_MEMORY_BYTES = 1 << 30

OnBlocks = Callable[[list[NDArray[np.int64]], Any, Any], None]

_CALL_SECONDS = 0.5
_MOST_LANES = 4096
_VECTORS_PER_LANE = 8
_MOST_BLOCKS = 4096
_STRIP_BYTES = 1 << 19
_LONGEST_STRIP = 64
_FEWEST_BLOCKS = 64
_MOST_OUTPUT_BYTES = 1 << 24


class Reached(NamedTuple):
    """The replicas after ``version`` server steps; params [R, dim]."""

    version: int
    params: NDArray[Any]


class Prepared(NamedTuple):
    """A program and what it is to run.

    Attributes:
        blocks: the plan.
        points: slots to hold, one of them for points that nobody reads; 0 if none waits.
        capacity: blocks in a call, at most.
        grain: a call runs a multiple of so many blocks, but for the last. Floating-point draws
            depend, in their last bit, on where in its strip a block is; so this is a strip.
        program: for these.
    """

    blocks: Blocks
    points: int
    capacity: int
    grain: int
    program: Program


class Lockstep:
    """Replicas of one method, as far as one asks.

    Args:
        tracks: one that all replicas follow, or one for each.
        oracle, rule: the problem and the update rule.
        replicas: R seeds and hyperparameters.
        x0: [R, dim].
        shape: of the blocks, see ``Tracks.shape``.
        on_blocks: called with the schedule's rows of each track, or -1, [lanes]; and with lengths
            and values of their gradients, [lanes, R].
        least_points: slots to hold at least, so as to share a program with others.

    Attributes:
        version: server steps taken.
    """

    def __init__(
        self,
        tracks: Tracks,
        oracle: JaxOracle,
        rule: UpdateRule,
        replicas: Replicas,
        x0: jax.Array,
        shape: Shape,
        on_blocks: OnBlocks,
        *,
        least_points: int = 0,
    ) -> None:
        self._tracks, self._oracle, self._rule = tracks, oracle, rule
        self._replicas, self._x0, self._on_blocks = replicas, x0, on_blocks
        self._shape = shape
        init = jax.vmap(rule.init)
        self._state = fresh(init(x0, replicas.hyperparameters))
        self._points: jax.Array | None = None
        self._slots: list[NDArray[np.int32]] = []
        self._least_points = least_points
        self._pace = 1.0  # blocks in half a second
        self._prepared: tuple[Any, Prepared] | None = None
        self._carry: Carry | None = None
        self._done = 0  # blocks of the plan
        self._pending: list[Reached] = []  # of the latest call, not yielded yet
        self._resumed = False
        self.version = 0

    @property
    def params(self) -> NDArray[Any]:
        """Of the replicas now, [R, dim]; a copy."""
        return np.array(self._state.params)

    @property
    def n_replicas(self) -> int:
        """Replicas side by side."""
        return len(self._x0)

    @property
    def lanes(self) -> int:
        """Gradients of each replica that are computed together."""
        return self._shape.lanes

    def prepare(self, stop: int, wanted: Iterable[int]) -> Prepared:
        """Plan and compile the way to version ``stop``, stopping by at ``wanted``."""
        what = (self.version, stop, frozenset(wanted))
        if self._prepared is None or self._prepared[0] != what:
            self._prepared = (what, self._prepare(stop, wanted))
        return self._prepared[1]

    def _prepare(self, stop: int, wanted: Iterable[int]) -> Prepared:
        blocks = Blocks(self._tracks, self._shape, self.version, stop, wanted)
        needed = 0 if self._shape.is_fresh else round_up(blocks.n_slots + 1)
        points = max(needed, self._least_points)
        capacity = self._capacity(blocks.n_blocks)
        arguments = (
            self._empty_carry(points, jax.ShapeDtypeStruct),
            self._columns_like(capacity),
            jax.ShapeDtypeStruct((), jnp.uint32),
            self._replicas,
        )
        strip = self._strip(capacity)
        made = program(self._oracle, self._rule, self._shape, strip, arguments)
        grain = strip if isinstance(self._oracle, DrawingOracle) else 1
        return Prepared(blocks, points, capacity, grain, made)

    def _capacity(self, n_blocks: int) -> int:
        """Blocks in a call: a power of two, so that calls have few shapes."""
        replicas, dim = self._x0.shape
        per_block = replicas * (dim * self._x0.itemsize + 32 * self._shape.lanes)
        most = min(_MOST_BLOCKS, max(1, _MOST_OUTPUT_BYTES // per_block))
        needed = max(_FEWEST_BLOCKS, 1 << max(n_blocks - 1, 0).bit_length())
        return min(1 << (most.bit_length() - 1), needed)

    def _strip(self, capacity: int) -> int:
        """Blocks whose randomness is drawn at once: enough to be fast, and still in the cache."""
        per_block = len(self._x0) * self._shape.lanes * noise_bytes(self._oracle)
        most = max(1, _STRIP_BYTES // max(1, per_block))
        return min(1 << (most.bit_length() - 1), capacity, _LONGEST_STRIP)

    def _empty_carry(self, points: int, make: Callable[..., Any]) -> Carry:
        shape, dtype = self._x0.shape, self._x0.dtype
        return Carry(
            self._state,
            None if self._shape.is_whole else make(shape, dtype),
            make((points, *shape), dtype) if points else None,
        )

    def _columns_like(self, capacity: int) -> Columns:
        groups = (capacity, self._shape.groups)
        replicas = () if self._shape.is_shared else (len(self._x0),)
        rows, steps = (*groups, self._shape.rows, *replicas), (*groups, *replicas)
        lanes = jax.ShapeDtypeStruct(rows, jnp.int32)
        return Columns(
            n_groups=jax.ShapeDtypeStruct((capacity,), jnp.uint32),
            ends_step=jax.ShapeDtypeStruct(groups, jnp.bool_),
            worker=lanes,
            k=lanes,
            slot=jax.ShapeDtypeStruct(rows, jnp.uint32),
            weight=jax.ShapeDtypeStruct(rows, self._x0.dtype),
            staleness=jax.ShapeDtypeStruct(steps, jnp.int32),
            write=jax.ShapeDtypeStruct(steps, jnp.uint32),
        )

    def advance(self, stop: int, wanted: Iterable[int]) -> Iterator[Reached]:
        """Take steps until version ``stop``.

        What has been yielded stays valid, whatever happens afterwards. Another call goes on from
        where the last one was left.

        Args:
            stop: at most the steps of the tracks.
            wanted: versions in (version, stop] at which to yield the parameters.
        """
        wanted = set(wanted)
        prepared = self.prepare(stop, wanted)
        blocks, carry, done = prepared.blocks, self._start(prepared), 0
        if self._resumed and self._carry is not None:
            carry, done, self._resumed = self._carry, self._done, False
            self._become(carry, blocks, done)
            yield from self._yielded()
        while done < blocks.n_blocks:
            grains = max(1, int(self._pace) // prepared.grain)
            count = min(prepared.capacity, grains * prepared.grain, blocks.n_blocks - done)
            carry, outputs = self._call(prepared, carry, done, count)
            versions = blocks.versions[done : done + count].tolist()
            done += count
            self._become(carry, blocks, done)
            params = np.asarray(outputs.params)
            for position, version in enumerate(versions):
                if version in wanted:
                    wanted.discard(version)
                    self._pending.append(Reached(version, params[position].copy()))
            yield from self._yielded()

    def _become(self, carry: Carry, blocks: Blocks, done: int) -> None:
        """Be where the plan is after so many blocks."""
        self._carry, self._done = carry, done
        self._state, self._points = carry.state, carry.points
        self.version = int(blocks.versions[done - 1])

    def _yielded(self) -> Iterator[Reached]:
        while self._pending:
            yield self._pending.pop(0)

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """What it takes to go on within the plan at hand, after something was yielded."""
        versions = [reached.version for reached in self._pending]
        params = [reached.params for reached in self._pending]
        return {
            "done": np.array(self._done, np.int64),
            "pending_versions": np.array(versions, np.int64),
            "pending_params": np.stack([self.params, *params])[1:],
            **pack("carry", self._carry),
        }

    def resume(self, arrays: Arrays, stop: int, wanted: Iterable[int]) -> None:
        """Go on from a checkpoint with the next ``advance``, which must ask for the same.

        Raises:
            CheckpointMismatch: it was made otherwise.
        """
        like = self._empty_carry(self.prepare(stop, wanted).points, jnp.zeros)
        self._carry, self._done = unpack("carry", like, arrays), int(arrays["done"])
        pending = zip(arrays["pending_versions"].tolist(), arrays["pending_params"], strict=True)
        self._pending = [Reached(version, params) for version, params in pending]
        self._resumed = True

    def _start(self, prepared: Prepared) -> Carry:
        """The carry, with the points known so far in their slots of this plan."""
        carry = self._empty_carry(prepared.points, jnp.zeros)
        slots = prepared.blocks.slots
        points = carry.points
        if points is not None:
            for replica, now in enumerate(slots):
                which = slice(None) if len(slots) == 1 else replica
                known = np.flatnonzero(now[: self.version + 1] >= 0)
                points = points.at[now[known], which].set(self._known_points(known, replica, which))
        self._slots = slots
        return carry._replace(points=points)

    def _known_points(self, versions: NDArray[np.int64], replica: int, which: Any) -> Any:
        """The points of some versions, [versions, (R,) dim], of those that have a slot."""
        if self._points is None:
            query = jax.vmap(self._rule.query)
            point = query(self._state, self._replicas.hyperparameters)
            return jnp.broadcast_to(point[which], (len(versions), *point[which].shape))
        return self._points[self._slots[replica][versions], which]

    def _call(
        self, prepared: Prepared, carry: Carry, block: int, count: int
    ) -> tuple[Carry, Outputs]:
        """Run some blocks, and learn how many fit into a call that one can wait for."""
        capacity = prepared.capacity
        columns, rows = prepared.blocks.columns(
            block, count, capacity, self._x0.dtype, max(prepared.points - 1, 0)
        )
        started = time.perf_counter()
        arguments = jax.tree.map(jnp.asarray, (columns, np.uint32(count)))
        carry, outputs = prepared.program.run(carry, *arguments, self._replicas)
        many = count * self._shape.lanes
        lengths, values = (
            np.asarray(leaf).reshape(-1, len(self._x0))[:many] for leaf in outputs[1:]
        )
        seconds = time.perf_counter() - started
        self._pace = min(count * _CALL_SECONDS / seconds, 8.0 * count)
        self._on_blocks([row[:many] for row in rows], lengths, values)
        return carry, outputs


def fit(
    make: Callable[[int, int], Lockstep],
    replicas: int,
    most_lanes: int,
    stop: int,
    wanted: Iterable[int],
    memory_bytes: int,
) -> Lockstep:
    """As many replicas side by side, in as many lanes, as there is memory for.

    Args:
        make: (replicas, most_lanes) -> what would run.
        replicas, most_lanes: the largest numbers.
        stop, wanted: of the run.
        memory_bytes: for all arrays together.

    Raises:
        ConfigurationError: not even one gradient of one replica at a time fits.
    """
    while True:
        lockstep = make(replicas, most_lanes)
        needs = lockstep.prepare(stop, wanted).program
        if needs.bytes <= memory_bytes:
            return lockstep
        if lockstep.lanes > 1 and (replicas == 1 or 2 * needs.temporary_bytes > needs.bytes):
            most_lanes = replicas * lockstep.lanes // 2
        elif replicas > 1:
            replicas = max(1, min(replicas - 1, replicas * memory_bytes // needs.bytes))
        else:
            raise ConfigurationError(
                f"memory_bytes = {memory_bytes}: expected at least {needs.bytes} (bytes), which "
                "one replica of this method needs"
            )


def most_lanes(bytes_per_vector: int, memory_bytes: int) -> int:
    """Gradients to compute together at first: as many as may fit, before one knows."""
    return max(1, min(_MOST_LANES, memory_bytes // (_VECTORS_PER_LANE * bytes_per_vector)))
