"""Schedules made by hand, and small oracles, for the tests of executors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algorithms.messages import Arrival, Average, Then
from simulator.executors.common import key_of_gradient
from simulator.oracle import Sample
from simulator.schedule import Schedule, Status

PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "asynchronous": [{}],
    "ringmaster": [{"max_staleness": 3}],
    "buffered": [{"buffer_size": 4}],
    "synchronous": [{}, {"gradients_per_worker": 2, "wait_for": 2}],
    "rennala": [{"batch_size": 5}, {"batch_size": 3, "stale": "discard", "initial_batch_size": 7}],
    "malenia": [{"batch_size": 5}, {"batch_size": 9, "stale": "discard"}],
}
"""Every coordinator with arguments to test it with."""

COLUMNS = {
    "worker": np.int32,
    "k": np.int32,
    "version": np.int32,
    "start_seconds": np.float64,
    "stop_seconds": np.float64,
    "status": np.int8,
    "step": np.int32,
    "weight": np.float64,
}


class Rows:
    """Computations and steps as they happen; instants are consecutive integers."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self.now = 0
        self.rows: list[dict[str, Any]] = []
        self.step_seconds: list[int] = []
        self.started = [0] * n_workers

    def start(self, worker: int, version: int) -> int:
        self.rows.append(
            {
                "worker": worker,
                "k": self.started[worker],
                "version": version,
                "start_seconds": self.now,
                "stop_seconds": np.inf,
                "status": Status.IN_FLIGHT,
                "step": -1,
                "weight": 0.0,
            }
        )
        self.started[worker] += 1
        return len(self.rows) - 1

    def end(self, row: int, status: Status) -> None:
        self.rows[row].update(stop_seconds=self.now, status=status)

    def step(self, weights: dict[int, float]) -> None:
        total = sum(weights.values())
        for row, weight in weights.items():
            self.rows[row].update(
                step=len(self.step_seconds), weight=weight / total, status=Status.USED
            )
        self.step_seconds.append(self.now)

    def schedule(self) -> Schedule:
        columns = {
            name: np.array([row[name] for row in self.rows], dtype)
            for name, dtype in COLUMNS.items()
        }
        steps = np.array(self.step_seconds, float)
        none = np.zeros(0)
        return Schedule(
            n_workers=self.n_workers,
            end_seconds=float(self.now),
            **columns,
            step_seconds=steps,
            close_seconds=steps,
            uploads=np.zeros(len(steps), np.int64),
            message_worker=none.astype(np.int32),
            message_direction=none.astype(np.int8),
            message_sent_seconds=none,
            message_received_seconds=none,
        )


def drive(coordinator: Any, finishing: Any, n_steps: int) -> Schedule:
    """Let workers finish in the given order until ``n_steps`` steps have been taken."""
    rows = Rows(coordinator.n_workers)
    current = {i: [rows.start(i, 0)] for i in range(coordinator.n_workers)}
    collected: dict[int, float] = {}
    version = 0
    for worker in finishing:
        if version == n_steps:
            break
        rows.now += 1
        if worker not in current:
            continue
        mine = current[worker]
        at = rows.rows[mine[0]]["version"]
        rows.end(mine[-1], Status.IN_FLIGHT)
        if len(mine) < coordinator.gradients_per_assignment:
            mine.append(rows.start(worker, at))
            continue
        decision = coordinator.arrive(Arrival(worker, at, version))
        del current[worker]
        if decision.use:
            collected.update(dict.fromkeys(mine, decision.weight))
        else:
            for row in mine:
                rows.end(row, Status.DISCARDED)
        if decision.step:
            if decision.cancel_others:
                for theirs in current.values():
                    rows.end(theirs[-1], Status.CANCELLED)
                current.clear()
            rows.step(weighted(coordinator, rows, collected))
            collected, version = {}, version + 1
        if decision.then is Then.CONTINUE:
            current[worker] = [rows.start(worker, at)]
        elif decision.then is Then.SEND:
            current[worker] = [rows.start(worker, version)]
        if decision.step:
            for other in range(coordinator.n_workers):
                if other not in current:
                    current[other] = [rows.start(other, version)]
    assert version == n_steps, "the list of finishing workers is too short"
    return rows.schedule()


def weighted(coordinator: Any, rows: Rows, collected: dict[int, float]) -> dict[int, float]:
    if coordinator.average is Average.GRADIENTS:
        return collected
    workers = [rows.rows[row]["worker"] for row in collected]
    return {r: w / workers.count(rows.rows[r]["worker"]) for r, w in collected.items()}


class Quadratic:
    """f_i(x) = x'A_i x / 2 - b_i'x with noise; counts how often it is traced.

    The noise is made of the key's bits alone: a proper generator would take long to compile.
    """

    def __init__(self, n_workers: int, dim: int = 3, noise: float = 0.3, dtype: Any = None) -> None:
        rng = np.random.default_rng(dim)
        self.dim, self.n_workers, self.noise = dim, n_workers, noise
        root = rng.normal(size=(n_workers, dim, dim))
        self.A = jnp.asarray(root @ root.swapaxes(1, 2) / dim + np.eye(dim), dtype)
        self.b = jnp.asarray(rng.normal(size=(n_workers, dim)), dtype)
        self.traces = 0

    def initial_point(self, seed: int) -> jax.Array:
        return jnp.full(self.dim, 1.0 + seed, self.b.dtype)

    def sample(self, point: jax.Array, worker: jax.Array, key: jax.Array) -> Sample:
        self.traces += 1
        bits = jax.random.key_data(key)[0].astype(point.dtype)
        noise = (bits / 2.0**31 - 1.0) * jnp.arange(1.0, 1.0 + self.dim, dtype=point.dtype)
        gradient = self.A[worker] @ point - self.b[worker] + self.noise * noise
        return Sample(gradient, worker + 1, point @ gradient)


class HostQuadratic:
    """The same numbers with Python in the loop; remembers what it was asked."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._inner = Quadratic(*args, **kwargs)
        self.dim, self.n_workers = self._inner.dim, self._inner.n_workers
        self.initial_point = self._inner.initial_point
        self._one = jax.jit(self._inner.sample)
        self.asked: list[tuple[int, int]] = []
        self.batches: list[tuple[int, ...]] = []

    def sample_batch(self, points: Any, workers: Any, ks: Any, seeds: Any) -> Sample:
        self.asked += zip(workers.tolist(), ks.tolist(), strict=True)
        self.batches.append(np.shape(points))
        points = np.broadcast_to(points, (len(workers), self.dim))
        keys = [key_of_gradient(*key) for key in zip(seeds, workers, ks, strict=True)]
        samples = [self._one(*each) for each in zip(points, workers, keys, strict=True)]
        return Sample(*(np.stack(column) for column in zip(*samples, strict=True)))
