import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.envs.phys2d.cartpole import CartPoleFunctional, CartPoleParams

from scenarios.problems.host_environments import HostEnvironmentProblem
from scenarios.problems.jax_environments import JaxEnvironmentProblem, check_parameters
from scenarios.problems.registry import PROBLEMS, build_problem
from scenarios.problems.specs import EnvironmentSpec
from simulator.errors import ConfigurationError
from simulator.oracle import HostOracle, JaxOracle


def cartpole(n_workers=1, **fields):
    defaults = {"horizon": 60, "hidden": (8,), "evaluation_episodes": 16}
    return build_problem(EnvironmentSpec("phys2d/CartPole-v1", **defaults | fields), n_workers)


def host(environment, n_workers=1, **fields):
    defaults = {"horizon": 60, "hidden": (8,), "evaluation_episodes": 16}
    return build_problem(EnvironmentSpec(environment, **defaults | fields), n_workers)


# ---- functional environments ------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed():
    """Four workers: as in the classic CartPole; a long pole; no way to fail; upside down."""
    return cartpole(
        4,
        environment_parameters={
            "length": [0.5, 1.5, 0.5, 0.5],
            "polemass_length": 0.05,  # the classic; Gymnasium's functional CartPole has 0.6
            "theta_threshold_radians": [12 * 2 * np.pi / 360] * 2 + [1e6, 12 * 2 * np.pi / 360],
            "x_threshold": [2.4, 2.4, 1e9, 2.4],
        },
        observation_scale=[1, 1, 1, -1],
        reward_scale=[1, 1, 1, 2],
        evaluation_episodes=64,
    )


@pytest.fixture(scope="module")
def mixed_samples(mixed):
    """200 trajectories of each worker at one point, with the same keys."""
    oracle = mixed.oracle
    point = jax.random.normal(jax.random.key(0), (oracle.dim,))
    keys = jax.random.split(jax.random.key(1), 200)
    over_keys = jax.vmap(oracle.sample, in_axes=(None, None, 0))
    both = jax.jit(jax.vmap(over_keys, in_axes=(None, 0, None)))
    return jax.tree.map(np.asarray, both(point, jnp.arange(4), keys)), point


def test_each_worker_has_its_own_environment(mixed, mixed_samples):
    sample, _ = mixed_samples
    assert isinstance(mixed.oracle, JaxOracle)
    for other in (1, 2, 3):
        assert (sample.length[0] != sample.length[other]).any()
    assert (sample.length[2] == 60).all()  # the horizon, and no further
    assert (sample.length[:2] < 60).any()
    np.testing.assert_array_equal(sample.value[3], 2 * sample.length[3])
    np.testing.assert_array_equal(sample.value[0], sample.length[0])


def test_evaluation_is_the_plain_average_over_workers(mixed, mixed_samples):
    sample, point = mixed_samples
    found = mixed.evaluate(point[None], 0)["return"][0]
    means = sample.value.mean(axis=1)
    error = (sample.value.var(axis=1) * (1 / 200 + 1 / 16)).sum() ** 0.5 / 4
    assert abs(found - means.mean()) < 4.5 * error


def test_evaluation_depends_on_seed_and_point_alone(mixed, mixed_samples):
    points = jnp.stack([mixed_samples[1], -mixed_samples[1], mixed_samples[1]])
    together = mixed.evaluate(points, 0)["return"]
    alone = [mixed.evaluate(point[None], 0)["return"][0] for point in points[:2]]
    assert together.tolist() == [*alone, alone[0]]
    assert mixed.evaluate(points[:1], 1)["return"][0] != alone[0]
    assert mixed.evaluate(points[:0], 1)["return"].shape == (0,)


def test_derived_parameters_follow_gymnasiums_formulas():
    full = check_parameters(CartPoleParams(), {"length": 1.0, "masscart": 2.0})
    assert full["total_mass"] == pytest.approx(2.1)
    assert full["polemass_length"] == pytest.approx(CartPoleParams().masspole + 1.0)
    assert check_parameters(CartPoleParams(), {"gravity": 1.0}) == {"gravity": 1.0}
    given = check_parameters(CartPoleParams(), {"length": 1.0, "polemass_length": 7.0})
    assert given["polemass_length"] == 7.0
    defaults = check_parameters(CartPoleParams(), {"masspole": CartPoleParams().masspole})
    assert defaults["total_mass"] == CartPoleParams().total_mass
    assert defaults["polemass_length"] == CartPoleParams().polemass_length


def test_pendulum_actions_are_bounded_torques():
    problem = host("phys2d/Pendulum-v0", horizon=5)
    assert isinstance(problem, JaxEnvironmentProblem)
    policy = problem.oracle.policy
    assert type(policy).__name__ == "GaussianPolicy"
    assert float(policy.action(jnp.array([99.0]))[0]) == 2.0


# ---- host environments ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def classic():
    return host("CartPole-v1", 3)


def test_functional_and_classic_cartpole_step_alike():
    params = CartPoleParams(polemass_length=0.05)
    functional = CartPoleFunctional()
    env = gym.make("CartPole-v1").unwrapped
    state = np.asarray(env.reset(seed=0)[0])
    rng = np.random.default_rng(0)
    for _ in range(12):
        action = int(rng.integers(2))
        expected, _, terminated, _, _ = env.step(action)
        state = functional.transition(jnp.asarray(state), action, None, params)
        np.testing.assert_allclose(state, expected, rtol=1e-4, atol=1e-5)
        assert bool(functional.terminal(state, None, params)) == terminated


def test_functional_and_classic_cartpole_have_the_same_returns(classic, mixed_samples):
    functional, point = mixed_samples[0].value[0], mixed_samples[1]
    zeros = np.zeros(192, int)
    values = classic.oracle.sample_batch(point, zeros, np.arange(192), zeros).value
    error = (values.var() / len(values) + functional.var() / len(functional)) ** 0.5
    assert abs(values.mean() - functional.mean()) < 4.5 * error
    assert error < values.mean() / 20


def test_a_trajectory_does_not_depend_on_its_batch(classic):
    oracle = classic.oracle
    assert isinstance(oracle, HostOracle)
    point = jax.random.normal(jax.random.key(2), (oracle.dim,))
    workers, ks, seeds = np.arange(70) % 3, np.arange(70) // 3, np.arange(70) % 2
    batch = oracle.sample_batch(point, workers, ks, seeds)
    assert batch.gradient.shape == (70, oracle.dim)
    for i in (0, 33, 69):
        one = oracle.sample_batch(point, workers[[i]], ks[[i]], seeds[[i]])
        assert one.length[0] == batch.length[i]
        assert one.value[0] == batch.value[i]
        np.testing.assert_allclose(one.gradient[0], batch.gradient[i], rtol=1e-4, atol=1e-3)
    distinct = np.unique(np.round(batch.gradient, 3), axis=0)
    assert len(distinct) == 70  # different (seed, worker, k), different trajectories


def test_shared_and_own_points_agree(classic):
    oracle = classic.oracle
    point = np.asarray(jax.random.normal(jax.random.key(2), (oracle.dim,)))
    zeros, ks = np.zeros(64, int), np.arange(64)
    shared = oracle.sample_batch(point, zeros, ks, zeros)
    own = oracle.sample_batch(np.tile(point, (64, 1)), zeros, ks, zeros)
    np.testing.assert_array_equal(shared.length, own.length)
    np.testing.assert_array_equal(shared.gradient, own.gradient)
    points = np.stack([point, -point] * 32)
    mixed = oracle.sample_batch(points, zeros, ks, zeros)
    np.testing.assert_array_equal(mixed.gradient[::2], own.gradient[::2])
    assert (mixed.gradient[1::2] != own.gradient[1::2]).any(axis=1).all()


def test_flipped_observations_are_flipped_weights():
    flipped = host("CartPole-v1", 2, hidden=(), observation_scale=[1, [-1, -1, -1, -1]])
    point = np.asarray(jax.random.normal(jax.random.key(5), (flipped.oracle.dim,)))
    mirrored = np.concatenate([-point[:8], point[8:]])  # weights, then biases
    ones, ks = np.ones(4, int), np.arange(4)
    # Randomness belongs to the worker, so worker 1 is compared with worker 1.
    plain = host("CartPole-v1", 2, hidden=())
    got = flipped.oracle.sample_batch(point, ones, ks, ones)
    expected = plain.oracle.sample_batch(mirrored, ones, ks, ones)
    np.testing.assert_array_equal(got.length, expected.length)
    np.testing.assert_allclose(got.gradient[:, :8], -expected.gradient[:, :8], rtol=1e-4, atol=1e-3)


def test_host_evaluation_depends_on_seed_and_point_alone(classic):
    point = np.asarray(jax.random.normal(jax.random.key(2), (classic.oracle.dim,)))
    points = np.stack([point, -point, point, 2 * point, point])
    together = classic.evaluate(points, 0)["return"]
    assert together[0] == together[2] == together[4]
    assert classic.evaluate(points[:1], 0)["return"][0] == together[0]
    assert classic.evaluate(points[:1], 1)["return"][0] != together[0]


def test_time_limit_is_the_environments_own_or_the_horizon():
    problem = host("MountainCar-v0", horizon=1000, hidden=(2,))  # its limit: 200
    zero = np.zeros(2, int)
    sample = problem.oracle.sample_batch(problem.oracle.initial_point(0), zero, np.arange(2), zero)
    assert sample.length.tolist() == [200, 200]
    assert sample.value.tolist() == [-200, -200]


def test_discrete_states_get_a_table_or_one_hot_vectors():
    table = host("FrozenLake-v1", horizon=10)
    assert table.oracle.dim == 16 * 4
    network = host("FrozenLake-v1", horizon=10, policy="categorical", hidden=(3,))
    assert network.oracle.dim == 16 * 3 + 3 + 3 * 4 + 4
    for problem in (table, network):
        zeros = np.zeros(8, int)
        point = problem.oracle.initial_point(0)
        sample = problem.oracle.sample_batch(point, zeros, np.arange(8), zeros)
        assert (sample.length >= 1).all()
        assert np.isfinite(sample.gradient).all()


def test_keyword_arguments_and_transforms_per_worker():
    problem = host(
        "FrozenLake-v1",
        2,
        horizon=30,
        environment_parameters={"is_slippery": [True, False], "map_name": "4x4"},
        reward_scale=[1.0, 5.0],
    )
    point = np.zeros((16, 4), np.float32)
    point[[0, 4, 9], 1] = point[[8, 13, 14], 2] = 50.0  # down, down, right, down, right, right
    point[8], point[14] = [0, 0, 50, 0], [0, 0, 50, 0]
    ks = np.arange(20)
    slippery, firm = (
        problem.oracle.sample_batch(point.ravel(), np.full(20, i), ks, 0 * ks) for i in (0, 1)
    )
    assert firm.length.tolist() == [6] * 20
    assert firm.value.tolist() == [5.0] * 20
    assert slippery.length.std() > 0


@pytest.mark.parametrize("environment", ["Reacher-v5", "Hopper-v5", "Humanoid-v5"])
def test_mujoco(environment):
    pytest.importorskip("mujoco")
    problem = host(environment, horizon=8, evaluation_episodes=2, hidden=(4,))
    zeros, ks = np.zeros(4, int), np.arange(4)
    point = problem.oracle.initial_point(0)
    sample = problem.oracle.sample_batch(point, zeros, ks, zeros)
    again = problem.oracle.sample_batch(point, zeros[:2], ks[[1, 2]], zeros[:2])
    assert np.isfinite(sample.gradient).all()
    np.testing.assert_array_equal(again.value, sample.value[1:3])
    assert sample.gradient.dtype == np.float32


# ---- what is refused ------------------------------------------------------------------------


class Odd(gym.Env):
    """Spaces by keyword argument."""

    def __init__(self, observation, action):
        self.observation_space = observation
        self.action_space = action


VECTOR = gym.spaces.Box(-1, 1, (3,))
TWO = gym.spaces.Discrete(2)


@pytest.mark.parametrize(
    ("observation", "action", "text"),
    [
        (gym.spaces.Dict({"a": TWO}), TWO, "its observations, Dict"),
        (gym.spaces.Tuple([TWO, TWO]), TWO, "its observations, Tuple"),
        (gym.spaces.MultiBinary(3), TWO, "its observations, MultiBinary"),
        (gym.spaces.Box(0, 255, (8, 8, 3), np.uint8), TWO, "its observations, Box"),
        (VECTOR, gym.spaces.MultiDiscrete([2, 2]), "its actions, MultiDiscrete"),
        (VECTOR, gym.spaces.Box(0, np.inf, (1,)), "its actions, Box"),
        (VECTOR, gym.spaces.Box(0, 3, (1,), np.int32), "its actions, Box"),
    ],
)
def test_spaces_that_are_not_supported(observation, action, text):
    gym.registry.pop("straggler-tests/Odd-v0", None)
    gym.register(
        "straggler-tests/Odd-v0",
        entry_point=Odd,
        kwargs={"observation": observation, "action": action},
    )
    spec = EnvironmentSpec("straggler-tests/Odd-v0")
    with pytest.raises(ConfigurationError, match=rf"{text}.*Supported are"):
        HostEnvironmentProblem(spec, 1)


@pytest.mark.parametrize(
    ("environment", "fields", "text"),
    [
        ("Cartpole-v1", {}, "Did you mean 'CartPole-v1'"),
        ("no_module_of_that_name:X-v0", {}, "no_module_of_that_name"),
        ("not an id", {}, "Malformed"),
        ("CartPole-v1", {"policy": "gaussian"}, "has discrete actions"),
        ("CartPole-v1", {"policy": "tabular"}, "has no finite set of states"),
        ("Pendulum-v1", {"policy": "categorical"}, "has continuous actions"),
        ("FrozenLake-v1", {"observation_scale": -1}, "observation_scale = -1: a tabular policy"),
        ("CartPole-v1", {"observation_scale": [1, 1, 1]}, "3 entries for 2 workers"),
        ("CartPole-v1", {"observation_scale": [[1, 2], 1]}, r"observation_scale\[0\] has 2"),
        ("CartPole-v1", {"reward_scale": [1, "a"]}, r"reward_scale\[1\] = 'a'"),
        ("CartPole-v1", {"environment_parameters": {"nope": 1}}, "nope"),
        ("phys2d/CartPole-v1", {"environment_parameters": {"lenght": 1}}, "mean 'length'"),
        ("phys2d/CartPole-v1", {"environment_parameters": {"length": -1}}, "number > 0"),
        ("phys2d/CartPole-v1", {"environment_parameters": {"length": "a"}}, "finite number"),
        (
            "FrozenLake-v1",
            {"environment_parameters": {"map_name": ["4x4", "8x8"]}},
            "one policy must fit all workers",
        ),
    ],
)
def test_what_is_refused(environment, fields, text):
    spec = EnvironmentSpec(environment, **fields)
    with pytest.raises(ConfigurationError, match=text):
        build_problem(spec, 2)


def test_mujoco_missing(monkeypatch):
    def missing(*args, **kwargs):
        raise gym.error.DependencyNotInstalled("MuJoCo is not installed, run `pip install x`")

    monkeypatch.setattr("scenarios.problems.gymnasium_ids.load_env_creator", missing)
    spec = EnvironmentSpec("Reacher-v5")
    with pytest.raises(ConfigurationError, match=r"pip install 'straggler\[mujoco\]'"):
        build_problem(spec, 1)


def test_listed_environments_are_in_gymnasiums_registry():
    listed = [entry.id for entry in PROBLEMS if entry.kind == "environment"]
    assert set(listed) <= set(gym.registry)
