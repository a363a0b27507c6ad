"""The one function that the compiled executor compiles: a loop over blocks, for all replicas.

    for each block:
        gradients of its lanes, at points that are known, together
        for each of its groups:
            total += sum of weight * gradient
            if a step ends here:
                state, total = update(state, total), 0
                slot of the new version's point <- query(state)

Every array of the replicas has them on the axis before the last: a point's slot is then
contiguous over replicas, and is written in place where they share a schedule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from algorithms.update_rule import Hyperparameters, State, StepInfo, UpdateRule
from simulator.executors.common import per_problem
from simulator.executors.compiled_plan import Columns, Shape
from simulator.oracle import DrawingOracle, JaxOracle, Sample
from simulator.randomness import Purpose, key_of

Array = jax.Array


class Replicas(NamedTuple):
    """What replicas differ in, and what must not be compiled in either.

    Attributes:
        seed: uint32 [R].
        hyperparameters: of the rule, leaves [R].
        n_workers: int32 [].
    """

    seed: Array
    hyperparameters: Hyperparameters
    n_workers: Array


class Carry(NamedTuple):
    """What goes from block to block.

    Attributes:
        state: of the rule, leaves [R, ...].
        total: [R, dim], of the step that is being collected; None if every step is one group.
        points: [slots + 1, R, dim], the last for points that nobody reads; None if none waits.
    """

    state: State
    total: Array | None
    points: Array | None


class Outputs(NamedTuple):
    """What blocks leave.

    Attributes:
        params: [blocks, R, dim], when a block is over.
        lengths, values: [blocks, groups, rows, R], of its gradients.
    """

    params: Array
    lengths: Array
    values: Array


_Loop = tuple[Carry, Outputs]


def run_blocks(
    oracle: JaxOracle,
    rule: UpdateRule,
    shape: Shape,
    strip: int,
    carry: Carry,
    columns: Columns,
    n_blocks: Array,
    replicas: Replicas,
) -> tuple[Carry, Outputs]:
    """Run the first ``n_blocks`` blocks of the columns.

    Args:
        oracle, rule, shape, strip: compiled in; randomness is drawn for ``strip`` blocks at once,
            which divides the number of blocks in the columns.
        carry, columns, n_blocks, replicas: data; ``n_blocks`` is uint32 [].
    """
    seeds = jax.vmap(partial(key_of, purpose=Purpose.GRADIENT))(replicas.seed)
    draw, sample_at = _halves(oracle)
    replica = jnp.arange(len(seeds), dtype=jnp.uint32)

    def run(block: Array, first: Array, noise: Any, loop: _Loop) -> _Loop:
        carry, outputs = loop
        here = _at(columns, block)
        noise = _at(noise, block - first)
        if carry.points is None:
            point = jax.vmap(rule.query)(carry.state, replicas.hyperparameters)
            sample = _at_one_point(sample_at, shape, point, here.worker, noise)
        else:
            where = (here.slot,) if shape.is_shared else (here.slot, replica)
            points = carry.points.at[where].get(mode="promise_in_bounds")
            sample = _at_points(sample_at, shape, points, here.worker, noise)
        sums = _sums(shape, here.weight, sample.gradient)
        carry = _take_steps(rule, shape, carry, sums, here, replicas)
        left = Outputs(carry.state.params, sample.length, sample.value)
        return carry, jax.tree.map(lambda all_, one: _put(all_, one, block), outputs, left)

    def run_strip(number: Array, loop: _Loop) -> _Loop:
        first = number * np.uint32(strip)
        worker, k = (
            jax.lax.dynamic_slice_in_dim(column, first, strip)
            for column in (columns.worker, columns.k)
        )
        noise = _draw(draw, shape, seeds, worker, k)
        stop = jnp.minimum(first + np.uint32(strip), n_blocks)
        return jax.lax.fori_loop(first, stop, lambda i, loop: run(i, first, noise, loop), loop)

    outputs = _no_outputs(oracle, shape, len(columns.n_groups), carry.state.params)
    n_strips = (n_blocks + np.uint32(strip - 1)) // np.uint32(strip)
    return jax.lax.fori_loop(np.uint32(0), n_strips, run_strip, (carry, outputs))


def _halves(oracle: JaxOracle) -> tuple[Any, Any]:
    """Drawing and the rest of a sample; if they can not be told apart, the key is the noise."""
    if isinstance(oracle, DrawingOracle):
        return oracle.draw, oracle.gradient_at
    return lambda worker, key: key, oracle.sample


def _no_outputs(oracle: JaxOracle, shape: Shape, blocks: int, params: Array) -> Outputs:
    point = jax.ShapeDtypeStruct(params.shape[1:], params.dtype)
    worker, key = jax.ShapeDtypeStruct((), jnp.int32), jax.eval_shape(jax.random.key, 0)
    sample = jax.eval_shape(oracle.sample, point, worker, key)
    lanes = (blocks, shape.groups, shape.rows, len(params))
    return Outputs(
        params=jnp.zeros((blocks, *params.shape), params.dtype),
        lengths=jnp.zeros(lanes, sample.length.dtype),
        values=jnp.zeros(lanes, sample.value.dtype),
    )


def _at(tree: Any, index: Array) -> Any:
    """An entry of every leaf. Indices are unsigned: JAX checks others for being negative."""
    return jax.tree.map(
        lambda leaf: jax.lax.dynamic_index_in_dim(leaf, index, keepdims=False), tree
    )


def _put(array: Array, entry: Array, index: Array) -> Array:
    return jax.lax.dynamic_update_index_in_dim(array, entry.astype(array.dtype), index, 0)


def _with_replicas(column: Array, shape: Shape) -> Array:
    """With an axis for replicas, of length 1 if they share."""
    return column[..., None] if shape.is_shared else column


def _draw(draw: Any, shape: Shape, seeds: Array, worker: Array, k: Array) -> Any:
    """The noise of a strip, [blocks, groups, rows, R, ...]."""
    lanes = (*worker.shape[:3], len(seeds))
    worker, k = (
        jnp.broadcast_to(_with_replicas(column, shape), lanes).ravel() for column in (worker, k)
    )

    def one(seed: Array, worker: Array, k: Array) -> Any:
        # As in ``randomness.gradient_key``, from the key of the seed on.
        return draw(worker, jax.random.fold_in(jax.random.fold_in(seed, worker), k))

    noise = jax.vmap(one)(jnp.broadcast_to(seeds, lanes).ravel(), worker, k)
    return jax.tree.map(lambda leaf: leaf.reshape(*lanes, *leaf.shape[1:]), noise)


def _at_one_point(sample_at: Any, shape: Shape, point: Array, worker: Array, noise: Any) -> Sample:
    """Gradients [1, rows, R, dim], each replica's all at its point [R, dim]."""
    rows = jax.vmap(sample_at, (None, 0, 0))
    axis = None if shape.is_shared else 1
    noise = jax.tree.map(lambda leaf: leaf[0], noise)
    if len(point) == 1:  # products with one matrix are faster than those with a batch of one
        alone = jax.tree.map(lambda leaf: leaf[:, 0], noise)
        batch = rows(point[0], worker[0] if shape.is_shared else worker[0][:, 0], alone)
        return Sample(*(leaf[None, :, None] for leaf in batch))
    batch = jax.vmap(rows, (0, axis, 1), out_axes=1)(point, worker[0], noise)
    return Sample(*(leaf[None] for leaf in batch))


def _at_points(sample_at: Any, shape: Shape, points: Array, worker: Array, noise: Any) -> Sample:
    """Gradients [groups, rows, R, dim], each at a point of its own, [groups, rows, R, dim]."""
    lanes = points.shape[:3]
    worker = jnp.broadcast_to(_with_replicas(worker, shape), lanes)
    many = math.prod(lanes)
    flat = jax.tree.map(lambda leaf: leaf.reshape(many, *leaf.shape[3:]), (points, worker, noise))
    batch = jax.vmap(sample_at)(*flat)
    return Sample(*(leaf.reshape(*lanes, *leaf.shape[1:]) for leaf in batch))


def _sums(shape: Shape, weight: Array, gradient: Array) -> Array:
    """The weighted sum of each group's gradients, [groups, R, dim]."""
    weight = _with_replicas(weight, shape)
    if shape.is_padded:  # Zero weight is not enough: 0 * inf is NaN.
        gradient = jnp.where((weight != 0)[..., None], gradient, 0)
    if shape.rows == 1:
        return gradient[:, 0] * weight[:, 0, :, None]
    weight = jnp.broadcast_to(weight, gradient.shape[:-1])
    if weight.shape[2] == 1:
        return jnp.einsum("gr,grd->gd", weight[:, :, 0], gradient[:, :, 0])[:, None]
    return jnp.einsum("grq,grqd->gqd", weight, gradient)


def _take_steps(
    rule: UpdateRule, shape: Shape, carry: Carry, sums: Array, here: Columns, replicas: Replicas
) -> Carry:
    """Add each group's sum, [groups, R, dim], to its step, and take the steps that end."""
    axis = None if shape.is_shared else 0
    query = jax.vmap(rule.query)

    def step(state: State, gradient: Array, staleness: Array, hyperparameters: Any) -> State:
        info = StepInfo(staleness, replicas.n_workers)
        return rule.update(state, gradient, info, hyperparameters)

    update = jax.vmap(step, (0, 0, axis, 0))

    def take(group: Array, carry: Carry) -> Carry:
        gradient, staleness, write, ends = _at(
            (sums, here.staleness, here.write, here.ends_step), group
        )
        total = gradient if carry.total is None else carry.total + gradient
        state = update(carry.state, total, staleness, replicas.hyperparameters)
        if carry.total is not None:
            state = jax.tree.map(partial(jnp.where, ends), state, carry.state)
            total = jnp.where(ends, 0, total)
        points = carry.points
        if points is not None:
            point = query(state, replicas.hyperparameters)
            points = _put_point(points, point, write, shape)
        return Carry(state, None if carry.total is None else total, points)

    if shape.groups == 1:
        return take(jnp.uint32(0), carry)
    return jax.lax.fori_loop(np.uint32(0), here.n_groups, take, carry)


def _put_point(points: Array, point: Array, slot: Array, shape: Shape) -> Array:
    """Write the replicas' new points [R, dim] into their slots, [] or [R]."""
    if shape.is_shared:
        return _put(points, point, slot)
    replica = jnp.arange(points.shape[1], dtype=jnp.uint32)
    return points.at[slot, replica].set(point, mode="promise_in_bounds", unique_indices=True)


class Program(NamedTuple):
    """:func:`run_blocks`, compiled.

    Attributes:
        run: a function of its arguments; the carry is overwritten.
        bytes: what its arguments, results and what it needs meanwhile take together.
        temporary_bytes: of these, what it needs meanwhile.
    """

    run: Callable[..., tuple[Carry, Outputs]]
    bytes: int
    temporary_bytes: int


@per_problem
def programs(oracle: JaxOracle, rule: UpdateRule) -> dict[Any, Program]:
    """The programs made so far for a problem and a rule, by shape."""
    del oracle, rule
    return {}


def program(
    oracle: JaxOracle, rule: UpdateRule, shape: Shape, strip: int, arguments: tuple[Any, ...]
) -> Program:
    """The program for arguments of these shapes."""
    known = programs(oracle, rule)
    leaves, tree = jax.tree.flatten(arguments)
    avals = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
    key = (shape, strip, tree, avals, jnp.result_type(float))
    if key not in known:
        run = jax.jit(partial(run_blocks, oracle, rule, shape, strip), donate_argnums=0)
        known[key] = _measured(run.lower(*arguments).compile())
    return known[key]


def _measured(run: Any) -> Program:
    memory = run.memory_analysis()
    arrays = memory.argument_size_in_bytes + memory.output_size_in_bytes
    temporary = memory.temp_size_in_bytes
    return Program(run, int(arrays + temporary - memory.alias_size_in_bytes), int(temporary))


def noise_bytes(oracle: JaxOracle) -> int:
    """What drawing for one gradient leaves."""
    worker, key = jax.ShapeDtypeStruct((), jnp.int32), jax.eval_shape(jax.random.key, 0)
    noise = jax.eval_shape(_halves(oracle)[0], worker, key)
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(noise))
