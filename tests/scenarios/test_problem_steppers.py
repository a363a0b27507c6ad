"""envpool as a stepper: Gymnasium's physics, streams of its own, and what it refuses."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from scenarios.problems import steppers
from scenarios.problems.registry import build_problem
from scenarios.problems.specs import EnvironmentSpec
from simulator.errors import ConfigurationError

N_STEPS = 5  # after many, contacts blow rounding up


def start_like(environment: Any, name: str, seen: np.ndarray) -> None:
    """Put a Gymnasium environment where that observation was made."""
    environment.reset(seed=0)
    if name == "CartPole-v1":
        environment.state = seen.astype(np.float64)
    elif name == "Pendulum-v1":
        environment.state = np.array([np.arctan2(seen[1], seen[0]), seen[2]], np.float64)
    elif name == "InvertedPendulum-v5":
        environment.set_state(seen[:2], seen[2:])
    elif name == "Reacher-v5":
        angles = np.arctan2(seen[2:4], seen[0:2])
        environment.goal = seen[4:6]
        environment.set_state(np.r_[angles, seen[4:6]], np.r_[seen[6:8], 0, 0])
    else:  # where it is along the track is not observed, and does not matter
        n_positions = environment.model.nq
        environment.set_state(np.r_[0, seen[: n_positions - 1]], seen[n_positions - 1 :])


@pytest.mark.parametrize("name", steppers.CHECKED)
def test_the_same_physics(name: str) -> None:
    pytest.importorskip("envpool", reason="envpool is not installed")
    n, rng = 3, np.random.default_rng(0)
    pool = steppers.EnvpoolStepper(name)
    environments = [gym.make(name, disable_env_checker=True).unwrapped for _ in range(n)]
    for environment, seen in zip(environments, pool.reset(range(n)), strict=True):
        start_like(environment, name, np.asarray(seen, np.float64))
    space: Any = environments[0].action_space
    one_by_one = steppers.GymnasiumStepper(environments)
    for _ in range(N_STEPS):
        if isinstance(space, gym.spaces.Discrete):
            actions = rng.integers(0, space.n, n)
        else:
            actions = rng.uniform(space.low, space.high, (n, *space.shape)).astype(space.dtype)
        got, right = (stepper.step(np.arange(n), actions) for stepper in (pool, one_by_one))
        # Classic control observes in single precision, MuJoCo's rewards are rounded to it.
        tight = 1e-5 if name in ("CartPole-v1", "Pendulum-v1") else 1e-10
        np.testing.assert_allclose(got[0], np.array(right[0]), rtol=tight, atol=tight)
        np.testing.assert_allclose(got[1], right[1], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(got[2], right[2])


def test_a_gradient_depends_on_its_own_key_alone() -> None:
    pytest.importorskip("envpool", reason="envpool is not installed")
    spec = EnvironmentSpec(environment="CartPole-v1", horizon=20, hidden=(4,), stepper="envpool")
    oracle = build_problem(spec, 3).oracle
    point = oracle.initial_point(0)
    workers, ks, seeds = np.array([0, 1, 2]), np.array([5, 6, 7]), np.array([1, 1, 2])
    together = oracle.sample_batch(point, workers, ks, seeds)
    alone = oracle.sample_batch(point, workers[2:], ks[2:], seeds[2:])
    assert (together.length[2], together.value[2]) == (alone.length[0], alone.value[0])
    np.testing.assert_allclose(together.gradient[2], alone.gradient[0], rtol=1e-4)
    assert len(np.unique(together.gradient, axis=0)) == 3


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"environment": "Acrobot-v1"}, "its physics was not checked for 'Acrobot-v1'; expected"),
        (
            {"environment": "Reacher-v5", "environment_parameters": {"frame_skip": 3}},
            "expected 'gymnasium' for environments with environment_parameters",
        ),
        ({"environment": "phys2d/CartPole-v1"}, "expected 'gymnasium' for 'phys2d/CartPole-v1'"),
        ({"stepper": "envpol"}, "Did you mean 'envpool'"),
    ],
)
def test_what_it_can_not_step(changes: dict[str, Any], text: str) -> None:
    values = {"environment": "CartPole-v1", "stepper": "envpool", **changes}
    with pytest.raises(ConfigurationError, match=text):
        build_problem(EnvironmentSpec(**values), 2)


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(ConfigurationError, match=r"Try: pip install 'straggler\[envpool\]'"):
        build_problem(EnvironmentSpec(environment="CartPole-v1", stepper="envpool"), 2)
