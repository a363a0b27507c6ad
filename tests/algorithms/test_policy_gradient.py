import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.policies import CategoricalPolicy, TabularPolicy
from algorithms.policy_gradient import (
    Estimator,
    Trajectory,
    anywhere,
    block_steps,
    padded_steps,
    policy_gradient,
    weights_of,
)


def weights_by_the_formula(rewards, length, estimator):
    """The double sum, as written."""
    gamma, c = estimator.discount, estimator.baseline
    weights = np.zeros(len(rewards))
    for t in range(length):
        weights[t] = sum(gamma**h * rewards[h] for h in range(t, length))
        weights[t] -= sum(gamma**h * c for h in range(t, estimator.horizon))
    return weights


rewards_lists = st.lists(st.floats(-10, 10, width=32), min_size=8, max_size=8)


@settings(max_examples=40, deadline=None)
@given(
    rewards_lists,
    st.integers(1, 8),
    st.integers(1, 8),
    st.floats(0.01, 1.0),
    st.sampled_from([0.0, 0.7]),
)
def test_weights_are_the_double_sum(rewards, length, horizon, discount, baseline):
    estimator = Estimator(horizon, discount, baseline)
    length = min(length, horizon)
    got = weights_of(jnp.array(rewards, jnp.float32), jnp.int32(length), estimator)
    expected = weights_by_the_formula(rewards, length, estimator)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_normalised_weights_have_mean_zero_and_variance_one_over_the_live_steps():
    estimator = Estimator(6, 0.9, normalise=True)
    got = np.asarray(weights_of(jnp.array([3.0, 1, 4, 1, 5, 9]), jnp.int32(4), estimator))
    assert not got[4:].any()
    assert got[:4].mean() == pytest.approx(0, abs=1e-6)
    assert got[:4].std() == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("length", [1, 5])
def test_normalising_returns_that_are_all_alike_gives_zeros(length):
    # One step, or a reward at the very end only, undiscounted: nothing to tell steps apart by.
    rewards = jnp.zeros(5).at[length - 1].set(0.1)
    got = weights_of(rewards, jnp.int32(length), Estimator(5, 1.0, normalise=True))
    np.testing.assert_array_equal(got, np.zeros(5))


@pytest.mark.parametrize(("horizon", "block"), [(1, 1), (49, 49), (50, 50), (51, 26), (200, 50)])
def test_blocks_divide_the_horizon_evenly(horizon, block):
    assert block_steps(horizon) == block
    assert 0 <= padded_steps(horizon) - horizon < block


def random_trajectory(policy, steps, length):
    keys = jax.random.split(jax.random.key(3), 3)
    observations = jax.random.normal(keys[0], (steps, 3))
    decisions = jax.random.randint(keys[1], (steps,), 0, 2)
    rewards = jax.random.normal(keys[2], (steps,))
    return Trajectory(observations, decisions, rewards, jnp.int32(length))


def test_gradient_by_blocks_is_the_gradient_of_the_whole_sum():
    policy = CategoricalPolicy(3, 2, (4,))
    estimator = Estimator(120, 0.97)
    point = jax.random.normal(jax.random.key(0), (policy.dim,))
    whole = random_trajectory(policy, padded_steps(120), 120)

    @jax.jit
    @jax.grad
    def expected(x, weights):
        score = jax.vmap(policy.log_probability, in_axes=(None, 0, 0))
        return -jnp.sum(weights * score(policy.unpack(x), whole.observations, whole.decisions))

    @jax.jit
    def got(length):
        return policy_gradient(policy, point, whole._replace(length=length), estimator)

    for length in (1, 40, 41, 120):  # blocks of 40
        weights = weights_by_the_formula(np.asarray(whole.rewards), length, estimator)
        np.testing.assert_allclose(
            got(length), expected(point, weights.astype(np.float32)), rtol=1e-3, atol=1e-3
        )


def test_no_reward_no_gradient():
    policy = TabularPolicy(2, 2)
    steps = padded_steps(9)
    nothing = jnp.zeros(steps)
    states = jnp.zeros(steps, jnp.int32)
    trajectory = Trajectory(states, states, nothing, jnp.int32(9))
    gradient = policy_gradient(policy, jnp.ones(4), trajectory, Estimator(9, 1.0))
    np.testing.assert_array_equal(gradient, np.zeros(4))


def test_a_batch_of_different_lengths_is_each_of_them():
    policy = CategoricalPolicy(3, 2, (4,))
    estimator = Estimator(120, 0.97)
    point = jax.random.normal(jax.random.key(0), (policy.dim,))
    lengths = [3, 77, 120]
    trajectories = [random_trajectory(policy, padded_steps(120), length) for length in lengths]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *trajectories)
    one = jax.jit(lambda x, trajectory: policy_gradient(policy, x, trajectory, estimator))
    together = jax.jit(jax.vmap(one, in_axes=(None, 0)))(point, batch)
    alone = jnp.stack([one(point, trajectory) for trajectory in trajectories])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-4)


def test_anywhere_is_one_answer_for_the_whole_batch():
    claims = jnp.array([[False, True], [False, False]])
    assert bool(anywhere(jnp.bool_(True)))
    np.testing.assert_array_equal(jax.vmap(anywhere)(claims[0]), [True, True])
    np.testing.assert_array_equal(jax.vmap(jax.vmap(anywhere))(claims), np.ones((2, 2), bool))
    np.testing.assert_array_equal(jax.vmap(jax.vmap(anywhere))(claims[1:]), [[False, False]])


def test_the_condition_of_a_batched_loop_stays_one_number():
    def count(limit):
        return jax.lax.while_loop(lambda n: anywhere(n < limit), lambda n: n + 1, 0)

    text = str(jax.make_jaxpr(jax.vmap(count))(jnp.arange(4)))
    assert "select_n" not in text
