"""Search for the largest second and third derivatives of a function along a unit vector.

Power iteration, v <- D^2 f[v, .] / |.| and v <- D^3 f[v, v, .] / |.| (for the third derivative
the symmetric higher-order power method: De Lathauwer, De Moor & Vandewalle 2000). Every value met
on the way is attained, so what is found never exceeds the true constant.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from simulator.randomness import Purpose, key_of

Array = jax.Array
Function = Callable[[Array], Array]

ITERATIONS = 30
STARTS = 4


def second_derivative(f: Function, x: Array, v: Array) -> Array:
    """D^2 f(x)[v, .], [dim]."""
    return jax.jvp(jax.grad(f), (x,), (v,))[1]


def third_derivative(f: Function, x: Array, v: Array) -> Array:
    """D^3 f(x)[v, v, .], [dim]."""
    return jax.jvp(lambda y: second_derivative(f, y, v), (x,), (v,))[1]


def _climb(form: Callable[[Array], Array], start: Array) -> Array:
    """The largest |<form(v), v>| met, []."""
    tiny = jnp.finfo(start.dtype).tiny

    def step(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        v, best = carry
        image = form(v)
        size = jnp.linalg.norm(image)
        # Where the form is 0 there is nowhere to climb.
        following = jnp.where(size > tiny, image / jnp.maximum(size, tiny), v)
        return (following, jnp.maximum(best, jnp.abs(image @ v))), None

    first = (start / jnp.linalg.norm(start), jnp.zeros((), start.dtype))
    (_, best), _ = jax.lax.scan(step, first, None, length=ITERATIONS)
    return best


def largest_curvatures(f: Function, points: NDArray[np.float64], seed: int) -> tuple[float, float]:
    """The largest |D^2 f[v, v]| and |D^3 f[v, v, v]| found at ``points``, over unit v.

    Args:
        f: [dim] -> [], differentiable three times.
        points: [E, dim]; where to look. Call it in float64.
        seed: of the first v, ``STARTS`` at each point.
    """

    @jax.jit
    def at(x: Array, starts: Array) -> tuple[Array, Array]:
        second = jax.vmap(partial(_climb, partial(second_derivative, f, x)))(starts)
        third = jax.vmap(partial(_climb, partial(third_derivative, f, x)))(starts)
        return second.max(), third.max()

    key = jax.random.fold_in(key_of(seed, Purpose.EVALUATION), 2)
    starts = jax.random.normal(key, (STARTS, points.shape[1]))
    found = [at(jnp.asarray(x), starts) for x in points]
    return float(max(second for second, _ in found)), float(max(third for _, third in found))
