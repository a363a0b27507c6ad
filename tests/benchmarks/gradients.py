"""CartPole policy gradients in the batched executor against one hand-written jitted batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.envs.phys2d.cartpole import CartPoleFunctional

from algorithms.coordinators import Rennala
from algorithms.hyperparameters import make_hyperparameters
from algorithms.updates import update_rule
from scenarios.problems.registry import build_problem
from scenarios.problems.specs import EnvironmentSpec
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.engine import simulate
from simulator.executors import executor
from simulator.network import NoNetwork
from tests.benchmarks.timing import Line, against, rates

BATCH = 64
HORIZON = 200
DISCOUNT = 0.99
STEPS = 30
ROUNDS = 5
NEVER_ENDS = {"x_threshold": 1e9, "theta_threshold_radians": 1e9}


def hand_written(parameters: dict[str, float]) -> Callable[[], int]:
    """REINFORCE on CartPole as one would write it for the purpose: scan, vmap, jit, SGD step."""
    environment = CartPoleFunctional()
    params = environment.get_default_params(**parameters)

    def logits(weights: Any, observation: jax.Array) -> jax.Array:
        (w1, b1), (w2, b2), (w3, b3) = weights
        hidden = jnp.tanh(observation @ w1 + b1)
        return jnp.tanh(hidden @ w2 + b2) @ w3 + b3

    def rollout(weights: Any, key: jax.Array) -> Any:
        first_key, key = jax.random.split(key)

        def step(carry: Any, key: jax.Array) -> Any:
            state, alive = carry
            action = jax.random.categorical(key, logits(weights, state))
            following = environment.transition(state, action, None, params)
            reward = alive.astype(jnp.float32)
            still = alive & ~environment.terminal(following, None, params)
            return (following, still), (state, action, reward)

        start = (environment.initial(first_key, params), jnp.array(True))
        return jax.lax.scan(step, start, jax.random.split(key, HORIZON))[1]

    def loss(weights: Any, states: jax.Array, actions: jax.Array, rewards: jax.Array) -> jax.Array:
        gammas = DISCOUNT ** jnp.arange(HORIZON)
        to_go = jnp.cumsum((gammas * rewards)[:, ::-1], axis=1)[:, ::-1]
        log_p = jax.nn.log_softmax(logits(weights, states))
        chosen = jnp.take_along_axis(log_p, actions[..., None], axis=-1)[..., 0]
        return -jnp.mean(jnp.sum(chosen * to_go * rewards, axis=1))

    @jax.jit
    def update(weights: Any, key: jax.Array) -> Any:
        keys = jax.random.split(key, BATCH)
        gradient = jax.grad(loss)(weights, *jax.vmap(rollout, (None, 0))(weights, keys))
        return jax.tree.map(lambda w, g: w - 1e-6 * g, weights, gradient)

    sizes = [(4, 64), (64, 64), (64, 2)]
    rng = np.random.default_rng(0)
    start = [
        (jnp.asarray(rng.normal(size=s) / s[0] ** 0.5, jnp.float32), jnp.zeros(s[1])) for s in sizes
    ]

    def run() -> int:
        weights = start
        for number in range(STEPS):
            weights = update(weights, jax.random.key(number))
        jax.block_until_ready(weights)
        return STEPS * BATCH

    return run


def ours(parameters: dict[str, float]) -> Callable[[], int]:
    """Rennala SGD with M = 64 through the batched executor."""
    spec = EnvironmentSpec(
        environment="phys2d/CartPole-v1",
        horizon=HORIZON,
        discount=DISCOUNT,
        environment_parameters=parameters,
    )
    oracle = build_problem(spec, 10).oracle
    rule = update_rule("sgd")
    hyperparameters = make_hyperparameters(rule, {"stepsize": 1e-6})
    compute = Constant([1.0] * 10)
    schedule = simulate(Rennala(10, BATCH), compute, NoNetwork(), Budget(steps=STEPS), 0)

    def run() -> int:
        execution = executor("batched")(schedule, oracle, rule, hyperparameters, 0)
        for _ in execution.snapshots([schedule.n_steps]):
            pass
        return STEPS * BATCH

    return run


def run() -> list[Line]:
    """With episodes that last the whole horizon, and with those of a random policy."""
    lines = []
    for name, parameters, wanted in (
        ("all episodes 200 steps", NEVER_ENDS, ">= 0.85"),
        ("a random policy's episodes", {}, ">= 0.85"),
    ):
        found = rates({"bare": hand_written(parameters), "ours": ours(parameters)}, ROUNDS)
        what = f"CartPole 2 x 64, horizon 200, batched executor, M = 64, {name}"
        lines.append(against(what, "gradients/s", found, "ours", "bare", wanted))
    return lines
