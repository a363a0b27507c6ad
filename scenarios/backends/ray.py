"""A Ray cluster that is running. Its nodes need straggler installed, and no shared disk.

The store belongs to the process that started the sweep: it claims runs, sends them out, gets back
the bytes of their files and writes them. A node that dies takes its runs in flight with it; they
are computed again on another. What computes a run is the same as in ``scenarios.backends.local``,
in one thread too, so the bytes are the same.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from typing import Any

from scenarios.backends.backend import Listener, Outcome, single_threaded
from scenarios.backends.bench import Bench, Computed
from scenarios.backends.dealer import Dealer
from scenarios.backends.worker import keep
from scenarios.store import RunSpec, Store
from scenarios.store.claims import Claim
from simulator.errors import ConfigurationError

_WAIT_SECONDS = 1.0
_KNOCK_SECONDS = 5.0
_MOST_LOSSES = 5
"""A run lost so often, with its node or its process, is recorded as failed."""

_bench = Bench()


def compute_all(specs: Sequence[RunSpec], axes: dict[str, str]) -> list[Computed]:
    """Compute runs in a process of the cluster, which keeps what it has compiled."""
    parties = _bench.parties(specs)
    return [done for party in parties for done in _bench.compute(party, axes, lambda: None)]


class RayBackend:
    """See :class:`scenarios.backends.backend.Backend`.

    Args:
        address: of the cluster; default the one that ``ray start`` began on this machine, or that
            RAY_ADDRESS names.

    Raises:
        ConfigurationError: Ray is not installed, or there is no such cluster.
    """

    def __init__(self, address: str | None = None) -> None:
        try:
            import ray
        except ImportError as error:
            raise ConfigurationError(
                "backend = 'ray': Ray is not installed: pip install 'straggler[ray]'"
            ) from error
        self._ray = ray
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            self._connect(address)
        self._compute = ray.remote(num_cpus=1, max_retries=0)(compute_all).options(
            runtime_env={"env_vars": single_threaded()}
        )

    def _connect(self, address: str | None) -> None:
        where = address or "auto"
        try:
            _knock(where)
            self._ray.init(address=where, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, ValueError, RuntimeError) as error:
            first = next(iter(str(error).splitlines()), "")
            raise ConfigurationError(
                f"address = {where!r}: no Ray cluster there: {first}; start one with "
                "`ray start --head`"
            ) from error

    def run(self, store: Store, specs: Sequence[RunSpec], listener: Listener) -> None:
        """See :class:`scenarios.backends.backend.Backend`."""
        _Job(self._ray, self._compute, store, listener).work(specs)

    def close(self) -> None:
        """See :class:`scenarios.backends.backend.Backend`."""
        if self._is_ours:
            self._ray.shutdown()


def _knock(address: str) -> None:
    """Refuse an address HOST:PORT where nobody answers: Ray itself would try for minutes.

    Raises:
        OSError: nobody answers.
    """
    host, colon, port = address.rpartition(":")
    if colon and "/" not in host and port.isdecimal():
        socket.create_connection((host, int(port)), _KNOCK_SECONDS).close()


class _Job:
    """One call of ``RayBackend.run``: what is out on the cluster."""

    def __init__(self, ray: Any, compute: Any, store: Store, listener: Listener) -> None:
        self._ray, self._compute, self._store, self._listener = ray, compute, store, listener
        self._slots = self._n_slots()
        self._dealer = Dealer(self._slots)
        self._out: dict[Any, tuple[int, list[RunSpec]]] = {}  # task -> slot, its runs
        self._claims: dict[str, Claim] = {}
        self._losses: dict[str, int] = {}

    def _n_slots(self) -> int:
        """Processors of the cluster as it is now: nodes come and go."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def work(self, specs: Sequence[RunSpec]) -> None:
        """Compute runs until none is left."""
        self._dealer.add(specs)
        try:
            self._send()
            while self._out:
                ready, _ = self._ray.wait(list(self._out), timeout=_WAIT_SECONDS)
                for task in ready:
                    self._receive(task)
                for claim in self._claims.values():
                    claim.touch()
                self._send()
        finally:
            for task in self._out:
                self._ray.cancel(task, force=True)
            for claim in self._claims.values():
                claim.release()

    def _send(self) -> None:
        """Give every free slot something to do."""
        busy = {slot for slot, _ in self._out.values()}
        for slot in range(self._n_slots()):
            if slot not in busy:
                self._send_to(slot)

    def _send_to(self, slot: int) -> None:
        while dealt := self._dealer.deal(slot):
            mine = [spec for spec in dealt if self._claim(spec)]
            if mine:
                for spec in mine:
                    self._listener.started(spec)
                self._out[self._compute.remote(mine, self._store.axes)] = (slot, mine)
                return

    def _claim(self, spec: RunSpec) -> bool:
        claim = self._store.claim(spec.key)
        if claim is None:
            self._listener.finished(spec, Outcome(spec.key, "busy"))
            return False
        self._claims[spec.key] = claim
        return True

    def _receive(self, task: Any) -> None:
        slot, specs = self._out.pop(task)
        try:
            computed: list[Computed] = self._ray.get(task)
        except self._ray.exceptions.RayError as error:
            self._dealer.forget(slot)
            self._lost(specs, error)
            return
        for spec, done in zip(specs, computed, strict=True):
            keep(self._store, spec, done.content, done.error)
            wall_seconds = round(done.wall_seconds, 4)
            self._store.note(key=spec.key, wall_seconds=wall_seconds, error=done.error)
            self._dealer.took(spec, done.wall_seconds)
            kind = "failed" if done.content is None else "done"
            self._end(spec, Outcome(spec.key, kind, done.error, done.wall_seconds))

    def _lost(self, specs: Sequence[RunSpec], error: Exception) -> None:
        """A node or process died with these runs: they get another chance, one task each."""
        for spec in specs:
            self._losses[spec.key] = self._losses.get(spec.key, 0) + 1
            if self._losses[spec.key] < _MOST_LOSSES:
                self._claims.pop(spec.key).release()
                self._dealer.give_back([spec], are_suspect=True)
                continue
            first = next(iter(str(error).splitlines()), "")
            text = f"lost {_MOST_LOSSES} times with its process: {type(error).__name__}: {first}"
            self._store.fail(spec, text)
            self._end(spec, Outcome(spec.key, "failed", text))

    def _end(self, spec: RunSpec, outcome: Outcome) -> None:
        self._claims.pop(spec.key).release()
        self._listener.finished(spec, outcome)
