"""Tabular MDPs: exact values by hand and by brute force, gradients by differences and sampling."""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenarios.problems.exact_specs import MDPSpec
from scenarios.problems.mdp import make_mdp, worker_mdps
from scenarios.problems.mdp_exact import optimal_objective, reward_sizes
from scenarios.problems.registry import build_problem
from scenarios.problems.tabular import TabularProblem, thresholds
from simulator.errors import ConfigurationError

SMALL = {"states": 4, "actions": 2, "branching": 2, "horizon": 6, "discount": 0.8}
VARIED = SMALL | {
    "seed": [1, 1, 2],
    "reward_perturbation": [0, 0.5, 0],
    "transition_perturbation": [0, 0.3, 0],
}


def points(problem, n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, problem.oracle.dim))


def softmax(point, states):
    powers = np.exp(point.reshape(states, -1))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("slip", [0.0, 0.2])
def test_a_chain_of_three_by_hand(slip):
    gamma = 0.9
    problem = TabularProblem(MDPSpec("chain", states=3, slip=slip, discount=gamma), 1)
    point = np.array([0.3, -0.4, 0.1, 0.8, 5.0, -5.0])
    chosen = softmax(point, 3)[:, 1]
    p, q = chosen[:2] * (1 - slip) + (1 - chosen[:2]) * slip  # go on from state 0, from state 1
    # v_0 = gamma (p v_1 + (1 - p) v_0),  v_1 = q + gamma (1 - q) v_0
    back = gamma * p / (1 - gamma * (1 - p))  # v_0 / v_1
    value = back * q / (1 - gamma * (1 - q) * back)
    assert problem.exact(point[None]).value[0] == pytest.approx(value, rel=1e-12)
    if slip == 0:
        assert problem.optimal_value == pytest.approx(gamma)


def test_a_chain_goes_on_with_its_last_action_only():
    mdp = make_mdp(MDPSpec("chain", states=4, actions=3, slip=0.1), 0)
    np.testing.assert_allclose(mdp.transition[1, :, 2], [0.1, 0.1, 0.9])
    np.testing.assert_allclose(mdp.transition[1, :, 0], [0.9, 0.9, 0.1])
    np.testing.assert_allclose(mdp.transition[0, :, 0], [0.9, 0.9, 0.1])
    assert mdp.reward[2, 0, 3] == 1
    assert mdp.reward.sum() == 3 * 3


def test_a_grid_has_walls_a_goal_and_a_shortest_way():
    mdp = make_mdp(MDPSpec("grid", width=3, height=2, slip=0.2), 0)
    up, right, down, left = range(4)
    assert mdp.transition[0, right, 1] == pytest.approx(0.85)
    assert mdp.transition[0, up, 0] == pytest.approx(0.85 + 0.05)  # two of four ways are walls
    assert mdp.transition[1, down, 4] == pytest.approx(0.85)
    assert mdp.transition[4, left, 3] == pytest.approx(0.85)
    assert mdp.terminal.tolist() == [False] * 5 + [True]
    straight = TabularProblem(MDPSpec("grid", width=3, height=2, slip=0.0, discount=0.5), 1)
    assert straight.optimal_value == pytest.approx(0.5**2)


def test_a_garnet_branches():
    mdp = make_mdp(MDPSpec(states=9, actions=3, branching=4), 3)
    assert ((mdp.transition > 0).sum(axis=-1) == 4).all()
    assert (np.abs(mdp.reward) <= 1).all()
    assert np.array_equal(mdp.transition, make_mdp(MDPSpec(states=9, actions=3, branching=4), 3)[0])


@pytest.mark.parametrize(
    "spec", [MDPSpec(**VARIED), MDPSpec("grid", slip=0.3), MDPSpec("chain", actions=3, slip=0.1)]
)
def test_every_workers_table_holds_probabilities(spec):
    workers = worker_mdps(spec, 3)
    np.testing.assert_allclose(workers.mdps.transition.sum(axis=-1), 1, rtol=1e-12)
    assert (workers.mdps.transition >= 0).all()
    np.testing.assert_allclose(workers.mdps.initial.sum(axis=-1), 1, rtol=1e-12)


def test_the_truncated_objective_by_enumerating_all_trajectories():
    problem = TabularProblem(MDPSpec(states=3, actions=2, branching=2, horizon=3, discount=0.7), 1)
    mdp, point = problem.workers.variant(0), points(problem, 1)[0]
    policy = softmax(point, 3)
    total = 0.0
    for way in product(range(3), range(2), range(3), range(2), range(3), range(2), range(3)):
        states, actions = way[::2], way[1::2]
        chance, paid = mdp.initial[states[0]], 0.0
        for h in range(3):
            s, a, after = states[h], actions[h], states[h + 1]
            chance *= policy[s, a] * mdp.transition[s, a, after]
            paid += 0.7**h * mdp.reward[s, a, after]
        total += chance * paid
    assert problem.exact(point[None]).truncated_value[0] == pytest.approx(total, rel=1e-12)


def test_the_truncated_objective_tends_to_the_whole_one():
    gaps = []
    for horizon in (1, 5, 25, 125):
        problem = TabularProblem(MDPSpec(**VARIED | {"horizon": horizon}), 3)
        exact = problem.exact(points(problem, 4))
        largest = max(reward_sizes(problem.workers.variant(i))[0] for i in range(3))
        gap = np.abs(exact.value - exact.truncated_value)
        assert (gap <= 0.8**horizon * largest / 0.2 + 1e-13).all()
        gaps.append(np.linalg.norm(exact.gradient - exact.truncated_gradient, axis=1).max())
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[3] < 1e-11


@pytest.mark.parametrize(
    "spec", [MDPSpec(**VARIED), MDPSpec("chain", slip=0.1, horizon=7), MDPSpec("grid", horizon=9)]
)
def test_gradients_against_finite_differences(spec):
    problem = TabularProblem(spec, 3)
    (point,) = points(problem, 1)
    step = 1e-5
    shifts = step * np.eye(problem.oracle.dim)
    ahead, behind = problem.exact(point + shifts), problem.exact(point - shifts)
    exact = problem.exact(point[None])
    for value, gradient in (("value", "gradient"), ("truncated_value", "truncated_gradient")):
        slopes = (getattr(ahead, value) - getattr(behind, value)) / (2 * step)
        (found,) = getattr(exact, gradient)
        assert np.linalg.norm(found) > 1e-3
        np.testing.assert_allclose(found, slopes, atol=1e-6 * np.linalg.norm(found), rtol=0)


@pytest.mark.parametrize("spec", [MDPSpec(**VARIED), MDPSpec("grid", width=2, height=2, horizon=5)])
def test_sampled_gradients_are_right_on_average_for_every_worker(spec):
    fleet = TabularProblem(spec, 3)
    point = points(fleet, 1)[0].astype(np.float32)
    keys = jax.random.split(jax.random.key(5), 20_000)
    sample = jax.jit(jax.vmap(fleet.oracle.sample, in_axes=(None, None, 0)))
    means, errors = [], []
    for worker in range(3):
        drawn = sample(point, worker, keys)
        gradients = np.asarray(drawn.gradient, np.float64)
        means.append(gradients.mean(axis=0))
        errors.append(gradients.std(axis=0) / len(keys) ** 0.5)
        variant = fleet.workers.variant(fleet.workers.of_worker[worker])
        if not variant.terminal.any():
            assert (np.asarray(drawn.length) == spec.horizon).all()
            continue
        # An episode that ended before the horizon was paid once; the shortest way is two steps.
        assert set(np.asarray(drawn.value).tolist()) == {0.0, 1.0}
        early = np.asarray(drawn.length) < spec.horizon
        assert (np.asarray(drawn.value)[early] == 1).all()
        assert np.asarray(drawn.length).min() == 2
    (expected,) = fleet.exact(point[None]).truncated_gradient
    error = np.linalg.norm(errors, axis=0) / 3
    assert np.linalg.norm(expected) > 8 * np.linalg.norm(error)
    assert (np.abs(np.mean(means, axis=0) + expected) <= 4.5 * error + 1e-5).all()


def test_the_objective_is_the_plain_average_over_workers():
    fleet = TabularProblem(MDPSpec(**VARIED), 3)
    assert fleet.workers.n == 3
    where = points(fleet, 2)
    alone = []
    for worker in range(3):
        mdp = fleet.workers.variant(worker)
        values = []
        for point in where:
            policy = softmax(point, 4)
            transition = np.einsum("sa,sat->st", policy, mdp.transition)
            reward = np.einsum("sa,sat,sat->s", policy, mdp.transition, mdp.reward)
            values.append(mdp.initial @ np.linalg.inv(np.eye(4) - 0.8 * transition) @ reward)
        alone.append(values)
    np.testing.assert_allclose(fleet.exact(where).value, np.mean(alone, axis=0), rtol=1e-12)


def test_who_shares_an_mdp():
    def distinct(**fields):
        return worker_mdps(MDPSpec(**SMALL | fields), 4).of_worker.tolist()

    assert distinct() == [0, 0, 0, 0]
    assert distinct(seed=[5, 6, 5, 7]) == [0, 1, 0, 2]
    assert distinct(seed={"cycle": [5, 6]}) == [0, 1, 0, 1]
    assert distinct(reward_perturbation=[0, 0.1, 0, 0.1]) == [0, 1, 0, 2]
    chain = worker_mdps(MDPSpec("chain", seed=[1, 2, 3, 4]), 4)
    assert chain.n == 1
    assert worker_mdps(MDPSpec(seed=[5, 6, 5, 5]), 4).share.tolist() == [0.75, 0.25]


def test_perturbations_are_as_large_as_said_and_spare_terminal_states():
    common = make_mdp(MDPSpec("grid"), 0)
    paid = worker_mdps(MDPSpec("grid", reward_perturbation=0.5), 2)
    change = np.abs(paid.mdps.reward - common.reward)
    assert 0.4 < change.max() <= 0.5
    assert (change[:, -1] == 0).all()
    assert not np.array_equal(*paid.mdps.reward)
    moved = worker_mdps(MDPSpec("grid", transition_perturbation=0.25), 2)
    change = moved.mdps.transition - 0.75 * common.transition
    assert (change[:, :-1] >= -1e-15).all()
    np.testing.assert_allclose(change[:, :-1].sum(axis=-1), 0.25)
    np.testing.assert_array_equal(moved.mdps.transition[:, -1], common.transition[None, -1][[0, 0]])


def test_the_optimum_against_all_deterministic_policies():
    mdp = make_mdp(MDPSpec(**SMALL), 7)
    best = -np.inf
    for choice in product(range(2), repeat=4):
        transition = mdp.transition[range(4), choice]
        reward = np.sum(transition * mdp.reward[range(4), choice], axis=1)
        best = max(best, mdp.initial @ np.linalg.solve(np.eye(4) - 0.8 * transition, reward))
    assert optimal_objective(mdp, 0.8) == pytest.approx(best, rel=1e-12)


def test_ties_do_not_keep_the_optimum_waiting():
    mdp = make_mdp(MDPSpec("grid", width=5, height=5, slip=0.0), 0)
    assert optimal_objective(mdp, 0.9999) == pytest.approx(0.9999**7)


def test_rounding_never_leads_to_an_impossible_state():
    probability = np.array([0.0, 0.1, 0.2, 0.7 - 1e-16, 0.0])
    limits = thresholds(probability)
    draws = np.array([0.0, 0.0999, 0.1, 0.29, 0.31, 1 - 2**-24, 1 - 2**-53])
    assert [(limits <= u).sum() for u in draws] == [1, 1, 2, 2, 3, 3, 3]
    assert thresholds(np.array([1.0])).tolist() == [2.0]


def test_metrics_are_exact_in_any_precision_and_any_grouping():
    problem = build_problem(MDPSpec(**SMALL), 2)
    where = points(problem, 3).astype(np.float32)
    assert problem.oracle.initial_point(0).dtype == jnp.float32
    whole = problem.evaluate(where, 0)
    assert list(whole) == [metric.name for metric in problem.metrics]
    for i in range(3):
        for name, values in problem.evaluate(where[i : i + 1], 4).items():
            assert values.dtype == np.float64
            assert values[0] == whole[name][i]
    with jax.enable_x64(True):
        double = build_problem(MDPSpec(**SMALL | {"dtype": "float64"}), 2)
        assert double.oracle.initial_point(0).dtype == jnp.float64
        for name, values in double.evaluate(where, 0).items():
            np.testing.assert_array_equal(values, whole[name])


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"kind": "garnett"}, "kind = 'garnett': expected .*Did you mean 'garnet'"),
        ({"slip": 0.1}, "slip: a garnet does not take it; it takes states, actions, branching"),
        ({"kind": "grid", "states": 3}, "states: a grid does not take it"),
        ({"states": 1}, r"states = 1: expected an integer >= 2"),
        ({"branching": 21}, "branching = 21: expected at most states = 20"),
        ({"kind": "chain", "actions": 1}, "actions = 1: expected an integer >= 2 for a chain"),
        ({"kind": "grid", "width": 1, "height": 1}, "width = 1: expected at least two cells"),
        ({"kind": "grid", "slip": 1.5}, "slip = 1.5: expected a probability"),
        ({"discount": 1.0}, r"discount = 1.0: expected a number in \(0, 0.9999\]"),
        ({"horizon": 0}, "horizon = 0: expected an integer >= 1"),
        ({"dtype": "float16"}, "dtype"),
    ],
)
def test_what_is_wrong_with_a_specification(fields, text):
    with pytest.raises(ConfigurationError, match=text):
        MDPSpec(**fields)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"seed": -1}, "seed = -1: expected numbers >= 0"),
        ({"seed": 0.5}, "seed = 0.5: expected integers"),
        ({"seed": [1, 2, 3]}, "seed has 3 entries for 2 workers"),
        ({"reward_perturbation": -0.1}, "reward_perturbation = -0.1: expected numbers >= 0"),
        ({"transition_perturbation": [0, 2]}, r"transition_perturbation = \(0, 2\): expected numb"),
        (
            {"states": 100_000},
            r"states = 100000: 1 distinct MDP\(s\) of 100000 states have 40,000,000,000",
        ),
        ({"kind": "grid", "width": 500, "height": 9}, "width = 500: 1 distinct"),
    ],
)
def test_what_is_wrong_with_per_worker_values(fields, text):
    spec = MDPSpec(**fields)
    with pytest.raises(ConfigurationError, match=text):
        worker_mdps(spec, 2)
