"""Stochastic policies on a flat parameter vector. Pure JAX.

A policy is asked three things: what to do (``act``, given noise drawn beforehand, so that a whole
block of it can be drawn at once), what the environment is to be handed (``action``), and how
likely that was (``log_probability``). What ``act`` returns is what is scored: for the Gaussian
that is u, before squashing, so the logarithm needs no correction for tanh.

``unpack`` turns the flat vector into arrays once, outside any loop; the other methods take its
result as ``parameters``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

Array = jax.Array
Parameters = Any

MINIMUM_DEVIATION = 1e-5
"""Added to the Gaussian's standard deviation: a collapsed one divides by this, not by zero."""

LAST_LAYER_SCALE = 0.01
"""Last layers start this much smaller: the first policy is nearly the same in every state."""


@dataclass(frozen=True)
class Noise:
    """The randomness of one action: a vector of independent draws.

    Attributes:
        kind: "gumbel" or "normal", both standard.
        size: of the vector.
        dtype: of the vector.
    """

    kind: Literal["gumbel", "normal"]
    size: int
    dtype: Any

    def draw(self, key: Array, steps: int) -> Array:
        """A number of actions', [steps, size]."""
        sample = jax.random.gumbel if self.kind == "gumbel" else jax.random.normal
        # Drawn flat: XLA takes several times longer to compile draws of more dimensions.
        return sample(key, (steps * self.size,), self.dtype).reshape(steps, self.size)

    def draw_on_host(self, generator: np.random.Generator, steps: int) -> NDArray[Any]:
        """The next ``steps`` actions', [steps, size]."""
        sample = generator.gumbel if self.kind == "gumbel" else generator.normal
        return sample(size=(steps, self.size)).astype(self.dtype)


class Policy(Protocol):
    """A distribution over actions given an observation."""

    dim: int
    noise: Noise

    def initial(self, key: Array) -> Array:
        """Starting parameters, [dim]."""
        ...

    def unpack(self, point: Array) -> Parameters:
        """The flat vector [dim] as the arrays the other methods use."""
        ...

    def act(self, parameters: Parameters, observation: Array, noise: Array) -> Array:
        """Draw a decision for one observation."""
        ...

    def action(self, decision: Array) -> Array:
        """What the environment is handed for a decision."""
        ...

    def log_probability(self, parameters: Parameters, observation: Array, decision: Array) -> Array:
        """Logarithm of the probability (density) of a decision, []."""
        ...


@dataclass(frozen=True)
class TanhNetwork:
    """A fully connected network with tanh between its layers, on a flat vector.

    Attributes:
        sizes: units of each layer, input and output included.
        dtype: of the parameters.
    """

    sizes: tuple[int, ...]
    dtype: Any = jnp.float32

    @property
    def dim(self) -> int:
        """Parameters, weights and biases together."""
        return sum((m + 1) * n for m, n in zip(self.sizes, self.sizes[1:], strict=False))

    def initial(self, key: Array) -> Array:
        """Weights N(0, 1/inputs), smaller in the last layer; biases 0. [dim]."""
        deviations = []
        last = len(self.sizes) - 2
        for i, (m, n) in enumerate(zip(self.sizes, self.sizes[1:], strict=False)):
            scale = LAST_LAYER_SCALE if i == last else 1.0
            deviations += [np.full(m * n, scale / m**0.5), np.zeros(n)]
        draws = jax.random.normal(key, (self.dim,), self.dtype)
        return draws * jnp.asarray(np.concatenate(deviations), self.dtype)

    def unpack(self, point: Array) -> tuple[tuple[Array, Array], ...]:
        """(weights [m, n], bias [n]) for each layer."""
        layers = []
        start = 0
        for m, n in zip(self.sizes, self.sizes[1:], strict=False):
            bias = start + m * n
            layers.append((point[start:bias].reshape(m, n), point[bias : bias + n]))
            start = bias + n
        return tuple(layers)

    def __call__(self, layers: tuple[tuple[Array, Array], ...], inputs: Array) -> Array:
        """Outputs [..., sizes[-1]] for inputs [..., sizes[0]]."""
        *hidden, (weights, bias) = layers
        x = inputs
        for w, b in hidden:
            x = jnp.tanh(x @ w + b)
        return x @ weights + bias


def _choose(logits: Array, gumbel: Array) -> Array:
    """argmax(logits + Gumbel noise) is a draw from softmax(logits)."""
    return jnp.argmax(logits + gumbel, axis=-1).astype(jnp.int32)


def _score(logits: Array, choice: Array) -> Array:
    # A one-hot product, not a gather: its derivative is a product too, not a scatter.
    chosen = jax.nn.one_hot(choice, logits.shape[-1], dtype=logits.dtype)
    return jnp.sum(jax.nn.log_softmax(logits) * chosen, axis=-1)


class CategoricalPolicy:
    """Softmax over ``n_actions`` outputs of a tanh network.

    Args:
        observation_size: coordinates of an observation.
        n_actions: number of actions, numbered from 0.
        hidden: units of each hidden layer.
        dtype: of everything.
    """

    def __init__(
        self,
        observation_size: int,
        n_actions: int,
        hidden: tuple[int, ...] = (64, 64),
        dtype: Any = jnp.float32,
    ) -> None:
        self.network = TanhNetwork((observation_size, *hidden, n_actions), dtype)
        self.dim = self.network.dim
        self.noise = Noise("gumbel", n_actions, dtype)

    def initial(self, key: Array) -> Array:
        """Starting parameters, [dim]."""
        return self.network.initial(key)

    def unpack(self, point: Array) -> Parameters:
        """Layers of the network."""
        return self.network.unpack(point)

    def act(self, parameters: Parameters, observation: Array, noise: Array) -> Array:
        """Draw an action, [] int32."""
        return _choose(self.network(parameters, observation), noise)

    def action(self, decision: Array) -> Array:
        """The decision itself."""
        return decision

    def log_probability(self, parameters: Parameters, observation: Array, decision: Array) -> Array:
        """log softmax(logits)[decision], []."""
        return _score(self.network(parameters, observation), decision)


class TabularPolicy:
    """Softmax over one row of logits per state; starts uniform.

    Args:
        n_states: observations are integers from 0 to n_states - 1.
        n_actions: number of actions, numbered from 0.
        dtype: of everything.
    """

    def __init__(self, n_states: int, n_actions: int, dtype: Any = jnp.float32) -> None:
        self.n_states = n_states
        self._n_actions = n_actions
        self.dim = n_states * n_actions
        self.noise = Noise("gumbel", n_actions, dtype)

    def initial(self, key: Array) -> Array:
        """Zeros, [dim], whatever the key."""
        del key
        return jnp.zeros(self.dim, self.noise.dtype)

    def unpack(self, point: Array) -> Array:
        """Logits, [n_states, n_actions]."""
        return point.reshape(self.n_states, self._n_actions)

    def act(self, parameters: Array, observation: Array, noise: Array) -> Array:
        """Draw an action, [] int32."""
        return _choose(parameters[observation], noise)

    def action(self, decision: Array) -> Array:
        """The decision itself."""
        return decision

    def log_probability(self, parameters: Array, observation: Array, decision: Array) -> Array:
        """log softmax(logits[observation])[decision], []."""
        return _score(parameters[observation], decision)


class GaussianPolicy:
    """u ~ N(mean, deviation^2) from a tanh network; action = centre + scale * tanh(u).

    The network's outputs are the means and the deviations before softplus. Coordinates without
    bounds are not squashed: action = u.

    Args:
        observation_size: coordinates of an observation.
        low, high: bounds of the action, [action_size]; -inf and inf where there are none.
        hidden: units of each hidden layer.
        dtype: of everything.

    Raises:
        ValueError: a coordinate bounded on one side only.

    Source: Tyurin, Spiridonov & Rudenko (2025), arXiv 2509.24305, experiments.
    """

    def __init__(
        self,
        observation_size: int,
        low: Any,
        high: Any,
        hidden: tuple[int, ...] = (64, 64),
        dtype: Any = jnp.float32,
    ) -> None:
        low, high = jnp.asarray(low, dtype), jnp.asarray(high, dtype)
        bounded = jnp.isfinite(low) & jnp.isfinite(high)
        if bool(jnp.any(~bounded & (jnp.isfinite(low) | jnp.isfinite(high)))):
            raise ValueError("an action bounded on one side only can not be squashed by tanh")
        self._bounded = bounded
        self._low, self._high = low, high
        self._centre = jnp.where(bounded, (low + high) / 2, 0)
        self._scale = jnp.where(bounded, (high - low) / 2, 1)
        self.action_size = int(low.size)
        self.network = TanhNetwork((observation_size, *hidden, 2 * self.action_size), dtype)
        self.dim = self.network.dim
        self.noise = Noise("normal", self.action_size, dtype)

    def initial(self, key: Array) -> Array:
        """Starting parameters, [dim]: means near 0, deviations near softplus(0) = 0.69."""
        return self.network.initial(key)

    def unpack(self, point: Array) -> Parameters:
        """Layers of the network."""
        return self.network.unpack(point)

    def moments(self, parameters: Parameters, observation: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of u, [..., action_size] each."""
        outputs = self.network(parameters, observation)
        mean, raw = jnp.split(outputs, 2, axis=-1)
        return mean, jax.nn.softplus(raw) + MINIMUM_DEVIATION

    def act(self, parameters: Parameters, observation: Array, noise: Array) -> Array:
        """Draw u, [action_size]."""
        mean, deviation = self.moments(parameters, observation)
        return mean + deviation * noise

    def action(self, decision: Array) -> Array:
        """Squash u into the bounds, [action_size]."""
        squashed = self._centre + self._scale * jnp.tanh(decision)
        squashed = jnp.clip(squashed, self._low, self._high)  # rounding can overshoot
        return jnp.where(self._bounded, squashed, decision)

    def log_probability(self, parameters: Parameters, observation: Array, decision: Array) -> Array:
        """Log density of u, []."""
        mean, deviation = self.moments(parameters, observation)
        z = (decision - mean) / deviation
        constant = 0.5 * jnp.log(2 * jnp.pi).astype(deviation.dtype)
        return -jnp.sum(0.5 * z * z + jnp.log(deviation) + constant, axis=-1)
