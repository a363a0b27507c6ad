"""The functions that the batched executor compiles: pure, on arrays of few shapes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from algorithms.update_rule import Hyperparameters, State, UpdateRule
from simulator.executors.common import per_problem, take_step
from simulator.oracle import JaxOracle

Array = jax.Array


class Columns(NamedTuple):
    """The used rows of a schedule in the order computed, and padding; all [n_padded].

    Attributes:
        worker: int32.
        key: JAX keys of the gradients' randomness.
        point: int32, index into the window of points.
        slot: int32, where the gradient waits.
        weight: in its step.
        use: int32, positions in the other columns in the order of use.
    """

    worker: Array
    key: Array
    point: Array
    slot: Array
    weight: Array
    use: Array


class Steps(NamedTuple):
    """The server steps of a schedule, and padding; all int32 [n_steps_padded].

    Attributes:
        offset, n_rows: the step uses ``Columns.use[offset:offset + n_rows]``.
        staleness: the largest.
    """

    offset: Array
    n_rows: Array
    staleness: Array


class Method(NamedTuple):
    """What is constant during an execution but must not be compiled in.

    Attributes:
        n_workers: int32 [].
        hyperparameters: of the rule.
    """

    n_workers: Array
    hyperparameters: Hyperparameters


def _lanes(start: Array, count: Array, size: int) -> tuple[Array, Array]:
    """Positions in the columns of ``size`` lanes, and which lanes count, [size] each.

    Lanes past ``count`` repeat the last that counts: they cost no more than it does.
    """
    lane = jnp.arange(size)
    return start + jnp.minimum(lane, count - 1), lane < count


def add_batch(
    oracle: JaxOracle,
    total: Array,
    point: Array,
    columns: Columns,
    start: Array,
    count: Array,
    *,
    size: int,
    is_padded: bool,
) -> tuple[Array, Array, Array]:
    """Add ``count`` weighted gradients, all taken at ``point`` [dim], to ``total`` [dim].

    Returns:
        The total, lengths [size] and values [size].
    """
    row, live = _lanes(start, count, size)
    sample = jax.vmap(oracle.sample, (None, 0, 0))(point, columns.worker[row], columns.key[row])
    weight, gradient = columns.weight[row], sample.gradient
    if is_padded:  # Zero weight is not enough: 0 * inf is NaN.
        weight, gradient = jnp.where(live, weight, 0), jnp.where(live[:, None], gradient, 0)
    return total + weight @ gradient, sample.length, sample.value


def batch_step(
    oracle: JaxOracle,
    rule: UpdateRule,
    state: State,
    columns: Columns,
    start: Array,
    count: Array,
    method: Method,
    *,
    size: int,
    is_padded: bool,
) -> tuple[State, Array, Array]:
    """A server step with ``count`` gradients, all taken at the current query point.

    Returns:
        The state, lengths [size] and values [size].
    """
    point = rule.query(state, method.hyperparameters)
    gradient, lengths, values = add_batch(
        oracle,
        jnp.zeros_like(point),
        point,
        columns,
        start,
        count,
        size=size,
        is_padded=is_padded,
    )
    return fresh_step(rule, state, gradient, method), lengths, values


def fresh_step(rule: UpdateRule, state: State, gradient: Array, method: Method) -> State:
    """A server step with a gradient [dim] that is not stale."""
    fresh = jnp.zeros((), jnp.int32)
    return take_step(rule, state, gradient, fresh, method.n_workers, method.hyperparameters)


def compute(
    oracle: JaxOracle,
    pool: Array,
    points: Array,
    columns: Columns,
    start: Array,
    count: Array,
    *,
    size: int,
) -> tuple[Array, Array, Array]:
    """Compute ``count`` gradients, each at its own point, into their slots.

    Args:
        pool: [n_slots, dim], gradients that wait.
        points: [window, dim].
        columns, start, count: the rows to compute.
        size: lanes to compute them in.

    Returns:
        The pool, lengths [size] and values [size].
    """
    row, live = _lanes(start, count, size)
    sample = jax.vmap(oracle.sample)(
        points[columns.point[row]], columns.worker[row], columns.key[row]
    )
    slot = jnp.where(live, columns.slot[row], len(pool))  # past the end: dropped
    return pool.at[slot].set(sample.gradient, mode="drop"), sample.length, sample.value


def take_steps(
    rule: UpdateRule,
    state: State,
    points: Array,
    pool: Array,
    columns: Columns,
    steps: Steps,
    first: Array,
    stop: Array,
    window: Array,
    method: Method,
    *,
    width: int,
) -> tuple[State, Array]:
    """Take server steps ``first`` to ``stop - 1`` with gradients that wait in the pool.

    Args:
        window: where in ``points`` the query point after step ``first`` goes; others follow.
        width: >= gradients in any of the steps.

    Returns:
        The state and the points.
    """

    def body(step: Array, carry: tuple[State, Array]) -> tuple[State, Array]:
        state, points = carry
        gradient = _averaged(pool, columns, steps.offset[step], steps.n_rows[step], width)
        state = take_step(
            rule,
            state,
            gradient,
            steps.staleness[step],
            method.n_workers,
            method.hyperparameters,
        )
        point = rule.query(state, method.hyperparameters)
        return state, points.at[window + step - first].set(point)

    return jax.lax.fori_loop(first, stop, body, (state, points))


def _averaged(pool: Array, columns: Columns, offset: Array, count: Array, width: int) -> Array:
    """The weighted sum of a step's gradients, [dim]."""
    lane, live = _lanes(offset, count, width)
    row = columns.use[lane]
    weight = jnp.where(live, columns.weight[row], 0)
    if width == 1:
        return weight[0] * pool[columns.slot[row[0]]]
    return weight @ jnp.where(live[:, None], pool[columns.slot[row]], 0)


def put_point(
    rule: UpdateRule, points: Array, state: State, hyperparameters: Hyperparameters
) -> Array:
    """Start a window of points with the current query point."""
    return points.at[0].set(rule.query(state, hyperparameters))


class Kernels(NamedTuple):
    """The functions above for one problem and rule, compiled."""

    batch_step: Callable[..., Any]
    add_batch: Callable[..., Any]
    fresh_step: Callable[..., Any]
    compute: Callable[..., Any]
    take_steps: Callable[..., Any]
    put_point: Callable[..., Any]


@per_problem
def kernels(oracle: JaxOracle, rule: UpdateRule) -> Kernels:
    """Compile; what a call replaces is overwritten in place (donated)."""
    both = ("size", "is_padded")
    return Kernels(
        batch_step=jax.jit(
            partial(batch_step, oracle, rule), static_argnames=both, donate_argnums=0
        ),
        add_batch=jax.jit(partial(add_batch, oracle), static_argnames=both, donate_argnums=0),
        fresh_step=jax.jit(partial(fresh_step, rule), donate_argnums=0),
        compute=jax.jit(partial(compute, oracle), static_argnames="size", donate_argnums=0),
        take_steps=jax.jit(
            partial(take_steps, rule), static_argnames="width", donate_argnums=(0, 1)
        ),
        put_point=jax.jit(partial(put_point, rule), donate_argnums=0),
    )
