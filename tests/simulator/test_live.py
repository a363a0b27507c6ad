"""Timing per environment step: engine and executor together."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms.coordinators import COORDINATORS, Asynchronous, Rennala
from algorithms.hyperparameters import make_hyperparameters
from algorithms.updates import UPDATE_RULES
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.engine import simulate
from simulator.executors import executor
from simulator.live import run_live
from simulator.network import NoNetwork, Star
from simulator.oracle import Sample
from simulator.precision import precision

NIGT = UPDATE_RULES["nigt"]
SECONDS = Constant([0.5, 0.75, 1.0])
LINKS = Star(Constant([0.25, 0.5, 0.0]), Constant([0.125, 0.0, 1.0]))


class Episodes:
    """A noisy quadratic whose "episode length" is drawn with the gradient: 1 to ``longest``."""

    dim = 3
    n_workers = 3

    def __init__(self, longest: int) -> None:
        self.longest = longest

    def initial_point(self, seed: int) -> jax.Array:
        return jnp.array([1.0, -2.0, 0.5], jnp.float64)

    def sample(self, point: jax.Array, worker: jax.Array, key: jax.Array) -> Sample:
        noise_key, length_key = jax.random.split(key)
        noise = 0.1 * jax.random.normal(noise_key, (self.dim,), jnp.float64)
        length = jax.random.randint(length_key, (), 1, self.longest + 1)
        gradient = (1.0 + worker) * point + noise
        return Sample(gradient, length, 0.5 * (point @ point))


CASES = {
    "asynchronous": {},
    "ringmaster": {"max_staleness": 2},
    "buffered": {"buffer_size": 4},
    "synchronous": {"gradients_per_worker": 2, "wait_for": 2},
    "rennala": {"batch_size": 5, "stale": "discard"},
    "malenia": {"batch_size": 6},
}


@pytest.mark.parametrize("network", [NoNetwork(), LINKS], ids=["none", "star"])
@pytest.mark.parametrize("name", COORDINATORS)
def test_episodes_of_one_step_are_timing_per_trajectory(name, network) -> None:
    """Same schedule, same numbers as the engine followed by the sequential executor."""
    with precision("float64"):
        oracle = Episodes(longest=1)
        hyperparameters = make_hyperparameters(NIGT, {"stepsize": 0.1, "momentum": 0.3})
        budget = Budget(steps=12)
        live = run_live(
            COORDINATORS[name](3, **CASES[name]),
            SECONDS,
            network,
            budget,
            4,
            oracle,
            NIGT,
            hyperparameters,
        )
        schedule = simulate(COORDINATORS[name](3, **CASES[name]), SECONDS, network, budget, 4)
        assert live.schedule.step_seconds.tolist() == schedule.step_seconds.tolist()
        assert live.schedule.stop_seconds.tolist() == schedule.stop_seconds.tolist()
        execution = executor("sequential")(schedule, oracle, NIGT, hyperparameters, 4)
        versions = range(schedule.n_steps + 1)
        for snapshot in execution.snapshots(versions):
            np.testing.assert_allclose(
                live.snapshots[snapshot.version].params, snapshot.params, rtol=1e-12
            )


@pytest.mark.parametrize("name", COORDINATORS)
def test_a_computation_takes_its_episode(name) -> None:
    with precision("float64"):
        oracle = Episodes(longest=9)
        hyperparameters = make_hyperparameters(NIGT, {"stepsize": 0.1, "momentum": 0.3})
        live = run_live(
            COORDINATORS[name](3, **CASES[name]),
            SECONDS,
            LINKS,
            Budget(seconds=200.0),
            4,
            oracle,
            NIGT,
            hyperparameters,
            snapshot_seconds=[0.0, 50.0, 199.0],
        )
    schedule = live.schedule
    seconds = np.array([0.5, 0.75, 1.0])[schedule.worker] * live.lengths
    whole = np.isin(schedule.status, (1, 2))
    assert schedule.n_steps > 5
    assert (schedule.start_seconds + seconds)[whole].tolist() == schedule.stop_seconds[
        whole
    ].tolist()
    wanted = set(schedule.version_at(np.array([0.0, 50.0, 199.0])).tolist())
    assert set(live.snapshots) == wanted | {schedule.n_steps}


def test_the_first_to_finish_have_short_episodes() -> None:
    """Rennala used per-step timing over-represents short episodes; asynchronous does not."""

    def mean_lengths(coordinator) -> tuple[float, float, float]:
        with precision("float64"):
            hyperparameters = make_hyperparameters(NIGT, {"stepsize": 0.1, "momentum": 0.3})
            live = run_live(
                coordinator,
                Constant([1.0] * 3),
                NoNetwork(),
                Budget(steps=400),
                0,
                Episodes(longest=20),
                NIGT,
                hyperparameters,
                snapshot_seconds=[],
            )
        used = live.lengths[live.schedule.status == 1]
        return used.mean(), live.lengths.mean(), used.std() / np.sqrt(len(used))

    used, started, error = mean_lengths(Rennala(3, batch_size=1))
    assert used < started - 5 * error
    used, started, error = mean_lengths(Asynchronous(3))
    assert abs(used - started) < 4 * error
