import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from algorithms.policies import (
    MINIMUM_DEVIATION,
    CategoricalPolicy,
    GaussianPolicy,
    TabularPolicy,
    TanhNetwork,
)

KEY = jax.random.key(7)
POLICIES = [
    CategoricalPolicy(3, 4, (5,)),
    GaussianPolicy(3, [-1.0, -np.inf], [3.0, np.inf], (5,)),
    TabularPolicy(6, 4),
]


def observation_of(policy):
    return jnp.int32(4) if isinstance(policy, TabularPolicy) else jnp.array([0.3, -1.0, 2.0])


def test_the_papers_network_has_two_layers_of_64():
    assert CategoricalPolicy(4, 2).dim == 4 * 64 + 64 + 64 * 64 + 64 + 64 * 2 + 2
    assert GaussianPolicy(10, [-1, -1], [1, 1]).network.sizes == (10, 64, 64, 4)


def test_network_is_tanh_layers_and_a_linear_one():
    network = TanhNetwork((2, 3, 1))
    point = jnp.linspace(-1, 1, network.dim)
    w1, b1, w2, b2 = np.split(np.asarray(point), [6, 9, 12])
    x = np.array([0.5, -2.0])
    expected = np.tanh(x @ w1.reshape(2, 3) + b1) @ w2.reshape(3, 1) + b2
    np.testing.assert_allclose(network(network.unpack(point), x), expected, rtol=1e-6)


def test_weights_start_with_variance_one_over_inputs_and_the_last_layer_small():
    network = TanhNetwork((50, 40, 30))
    (first, first_bias), (last, last_bias) = network.unpack(network.initial(KEY))
    assert not first_bias.any()
    assert not last_bias.any()
    assert np.std(first) == pytest.approx(50**-0.5, rel=4.5 / (2 * first.size) ** 0.5)
    assert np.std(last) == pytest.approx(0.01 * 40**-0.5, rel=4.5 / (2 * last.size) ** 0.5)


def test_a_network_without_hidden_layers_is_linear():
    policy = CategoricalPolicy(2, 2, ())
    assert policy.dim == 6


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: type(p).__name__)
def test_initial_point_is_keyed_and_its_gradients_finite(policy):
    initial = jax.jit(policy.initial)
    point = initial(KEY)
    assert point.shape == (policy.dim,)
    assert point.dtype == jnp.float32
    np.testing.assert_array_equal(point, initial(KEY))
    seen = observation_of(policy)
    decision = policy.act(policy.unpack(point), seen, policy.noise.draw(KEY, 1)[0])

    def score(x):
        return policy.log_probability(policy.unpack(x), seen, decision)

    assert np.isfinite(jax.jit(jax.grad(score))(point)).all()


def test_float64_stays_float64():
    with jax.enable_x64(True):
        policy = GaussianPolicy(3, [-1.0], [3.0], (5,), jnp.float64)
        point = policy.initial(jax.random.key(0))
        noise = policy.noise.draw(jax.random.key(1), 1)[0]
        seen, parameters = jnp.ones(3), policy.unpack(point)
        decision = policy.act(parameters, seen, noise)
        score = policy.log_probability(parameters, seen, decision)
        kinds = {x.dtype for x in (point, noise, decision, policy.action(decision), score)}
        assert kinds == {jnp.dtype("float64")}


def test_categorical_draws_follow_the_probabilities_it_reports():
    policy = CategoricalPolicy(3, 4, (5,))
    point = jax.random.normal(KEY, (policy.dim,))
    parameters, seen = policy.unpack(point), observation_of(policy)
    score = jax.jit(jax.vmap(policy.log_probability, in_axes=(None, None, 0)))
    scores = score(parameters, seen, jnp.arange(4))
    probabilities = np.exp(np.array(scores, np.float64))
    assert probabilities.sum() == pytest.approx(1, abs=1e-6)

    noise = policy.noise.draw(KEY, 4000)
    act = jax.jit(jax.vmap(policy.act, in_axes=(None, None, 0)))
    draws = np.asarray(act(parameters, seen, noise))
    counts = np.bincount(draws, minlength=4)
    p_value = stats.chisquare(counts, 4000 * probabilities / probabilities.sum()).pvalue
    assert p_value > 1e-4


def test_host_noise_has_the_same_distribution_and_no_seams():
    for policy in POLICIES[:2]:
        noise = policy.noise
        whole = noise.draw_on_host(np.random.default_rng(3), 500)
        generator = np.random.default_rng(3)
        parts = [noise.draw_on_host(generator, n) for n in (100, 250, 150)]
        np.testing.assert_array_equal(whole, np.concatenate(parts))
        on_device = noise.draw(KEY, 500)
        assert stats.ks_2samp(whole.ravel(), np.ravel(on_device)).pvalue > 1e-4


def test_tabular_rows_are_states():
    policy = TabularPolicy(3, 2)
    logits = jnp.array([0.0, 0.0, 1.0, -1.0, 5.0, 2.0])
    score = policy.log_probability(policy.unpack(logits), jnp.int32(1), jnp.int32(0))
    assert float(score) == pytest.approx(-np.log1p(np.exp(-2.0)), rel=1e-6)
    assert not policy.initial(KEY).any()


def test_gaussian_density_is_that_of_u():
    policy = POLICIES[1]
    point = jax.random.normal(KEY, (policy.dim,))
    parameters, seen = policy.unpack(point), observation_of(policy)
    mean, deviation = policy.moments(parameters, seen)
    u = jnp.array([0.2, -0.7])
    expected = stats.norm(np.asarray(mean), np.asarray(deviation)).logpdf(np.asarray(u)).sum()
    got = policy.log_probability(parameters, seen, u)
    assert float(got) == pytest.approx(expected, rel=1e-4)


def test_actions_are_squashed_into_lopsided_bounds_and_left_alone_without_bounds():
    policy = POLICIES[1]  # [-1, 3] and no bounds
    np.testing.assert_allclose(policy.action(jnp.array([0.0, 0.0])), [1.0, 0.0])
    np.testing.assert_allclose(
        policy.action(jnp.array([0.5, -9.0])), [1 + 2 * np.tanh(0.5), -9.0], rtol=1e-6
    )
    extreme = policy.action(jnp.array([50.0, 1e6]))
    assert float(extreme[0]) == 3.0
    assert float(extreme[1]) == 1e6


def test_a_bound_on_one_side_only_is_refused():
    with pytest.raises(ValueError, match="one side only"):
        GaussianPolicy(3, [0.0], [np.inf])


def test_a_collapsed_deviation_makes_no_nan():
    policy = GaussianPolicy(2, [-1.0], [1.0], ())
    # Linear: outputs are the biases. A pre-softplus value of -1000 underflows to zero.
    point = jnp.array([0.0, 0.0, 0.0, 0.0, 0.4, -1000.0])
    seen = jnp.ones(2)
    deviation = policy.moments(policy.unpack(point), seen)[1]
    assert float(deviation[0]) == pytest.approx(MINIMUM_DEVIATION)

    def score(x):
        decision = policy.act(policy.unpack(x), seen, jnp.array([1.5]))
        return policy.log_probability(policy.unpack(x), seen, jax.lax.stop_gradient(decision))

    value, gradient = jax.jit(jax.value_and_grad(score))(point)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
