"""Sampled policy gradients against exact ones, on problems small enough to enumerate."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.experimental.functional import FuncEnv

from scenarios.problems.host_environments import HostEnvironmentProblem
from scenarios.problems.jax_environments import JaxEnvironmentProblem
from scenarios.problems.specs import EnvironmentSpec

# Three states, two actions; state 2 ends the episode. Rewards depend on where one lands.
PROBABILITY = np.array(
    [
        [[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]],
        [[0.7, 0.1, 0.2], [0.2, 0.7, 0.1]],
        [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]],
    ]
)
REWARD = np.array([[[1.0, -2, 3], [0, 1, -1]], [[2, 0.5, -3], [-1, 2, 4]], [[9, 9, 9], [9, 9, 9]]])
HORIZON, DISCOUNT = 4, 0.8
N_SAMPLES = 20_000


class ChainFunctional(FuncEnv):
    """The chain, through Gymnasium's functional API."""

    observation_space = gym.spaces.Discrete(3)
    action_space = gym.spaces.Discrete(2)

    def initial(self, rng, params=None):
        return jnp.zeros((), jnp.int32)

    def transition(self, state, action, rng, params=None):
        logits = jnp.log(jnp.asarray(PROBABILITY, jnp.float32))[state, action]
        return jax.random.categorical(rng, logits).astype(jnp.int32)

    def observation(self, state, rng, params=None):
        return state

    def reward(self, state, action, next_state, rng, params=None):
        return jnp.asarray(REWARD, jnp.float32)[state, action, next_state]

    def terminal(self, state, rng, params=None):
        return state == 2


class Chain(gym.Env):
    """The chain, stepped by Python."""

    observation_space = gym.spaces.Discrete(3)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = 0
        return 0, {}

    def step(self, action):
        after = int(self.np_random.choice(3, p=PROBABILITY[self.state, action]))
        reward = REWARD[self.state, action, after]
        self.state = after
        # The last state is terminal after one action and a truncation after the other: both end.
        return after, reward, after == 2 and action == 0, after == 2 and action == 1, {}


class SquareFunctional(FuncEnv):
    """One step; the reward falls with the distance of the action from 0.5."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Box(-1.0, 3.0, (1,), np.float32)

    def initial(self, rng, params=None):
        return jnp.ones(1)

    def transition(self, state, action, rng, params=None):
        return state

    def observation(self, state, rng, params=None):
        return state

    def reward(self, state, action, next_state, rng, params=None):
        return -((action[0] - 0.5) ** 2)

    def terminal(self, state, rng, params=None):
        return True


def exact_chain_loss(policy, point, encode):
    """-J by dynamic programming over the horizon, differentiable in ``point``."""
    parameters = policy.unpack(point)
    table = jnp.stack(
        [
            jnp.stack([policy.log_probability(parameters, encode(s), a) for a in range(2)])
            for s in range(3)
        ]
    )
    chances = jnp.exp(table)
    value = jnp.zeros(3)
    for _ in range(HORIZON):
        go_on = jnp.array([1.0, 1.0, 0.0]) * value
        action_values = jnp.sum(PROBABILITY * (REWARD + DISCOUNT * go_on), axis=-1)
        value = jnp.sum(chances * action_values, axis=-1)
    return -value[0]


def assert_unbiased(gradients, exact):
    """Within 4.5 standard errors in every coordinate, and sharp enough to mean something."""
    gradients, exact = np.asarray(gradients, np.float64), np.asarray(exact, np.float64)
    error = gradients.std(axis=0) / len(gradients) ** 0.5
    assert np.linalg.norm(exact) > 8 * np.linalg.norm(error)
    assert (np.abs(gradients.mean(axis=0) - exact) <= 4.5 * error + 1e-5).all()


def chain_point(policy):
    return 0.8 * jax.random.normal(jax.random.key(11), (policy.dim,))


@pytest.mark.parametrize(("policy", "baseline"), [("tabular", 0.0), ("categorical", 1.5)])
def test_categorical_with_termination_discount_and_horizon(policy, baseline):
    spec = EnvironmentSpec(
        "chain", HORIZON, DISCOUNT, policy, hidden=(3,), baseline=baseline, evaluation_episodes=4000
    )
    problem = JaxEnvironmentProblem(spec, 1, ChainFunctional())
    oracle = problem.oracle
    point = chain_point(oracle.policy)
    keys = jax.random.split(jax.random.key(2), N_SAMPLES)
    sample = jax.jit(jax.vmap(oracle.sample, in_axes=(None, None, 0)))(point, 0, keys)

    def encode(state):
        return jnp.int32(state) if policy == "tabular" else jnp.eye(3)[state]

    def loss(x):
        return exact_chain_loss(oracle.policy, x, encode)

    exact, gradient = jax.jit(jax.value_and_grad(loss))(point)
    assert_unbiased(sample.gradient, gradient)
    assert set(np.asarray(sample.length)) == {1, 2, 3, 4}
    if policy == "tabular":
        found = problem.evaluate(point[None], 5)["discounted_return"][0]
        assert found == pytest.approx(-float(exact), abs=4.5 * 3.5 / 4000**0.5)


def test_the_same_on_the_host():
    gym.register("straggler-tests/Chain-v0", entry_point=Chain)
    spec = EnvironmentSpec("straggler-tests/Chain-v0", HORIZON, DISCOUNT, evaluation_episodes=500)
    problem = HostEnvironmentProblem(spec, 1)
    point = chain_point(problem.oracle.policy)
    n = 6000
    zeros = np.zeros(n, int)
    sample = problem.oracle.sample_batch(point, zeros, np.arange(n), zeros)

    def loss(x):
        return exact_chain_loss(problem.oracle.policy, x, jnp.int32)

    exact, gradient = jax.jit(jax.value_and_grad(loss))(point)
    assert_unbiased(sample.gradient, gradient)
    found = problem.evaluate(np.asarray(point)[None], 5)["discounted_return"][0]
    assert found == pytest.approx(-float(exact), abs=4.5 * 3.5 / 500**0.5)


def test_gaussian_against_quadrature():
    spec = EnvironmentSpec("square", 1, 1.0, "gaussian", hidden=())
    oracle = JaxEnvironmentProblem(spec, 1, SquareFunctional()).oracle
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)

    @jax.jit
    @jax.grad
    def exact(x):
        mean, scale = oracle.policy.moments(oracle.policy.unpack(x), jnp.ones(1))
        actions = 1 + 2 * jnp.tanh(mean + scale * nodes)
        return jnp.sum(weights * (actions - 0.5) ** 2) / weights.sum()

    keys = jax.random.split(jax.random.key(4), N_SAMPLES)
    sample = jax.jit(jax.vmap(oracle.sample, in_axes=(None, None, 0)))
    for deviation in (1.0, 0.05):
        before_softplus = float(np.log(np.expm1(deviation)))
        # Weights of mean and deviation, then their biases.
        point = jnp.array([0.3, 0.0, 0.2, before_softplus])
        found = sample(point, 0, keys)
        assert_unbiased(found.gradient, exact(point))
        assert set(np.asarray(found.length)) == {1}
