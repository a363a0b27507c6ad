"""Processes on this machine. They stay warm, and one that dies takes nothing with it but its run.

Not ``concurrent.futures``: there, one killed process breaks the pool, and every script needs a
guard around its main part. JAX does not survive a fork, so processes start from nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

from scenarios.backends.backend import Listener, Outcome, single_threaded
from scenarios.backends.dealer import Dealer
from scenarios.store import RunSpec, Store
from simulator.errors import ConfigurationError

_MOST_DEATHS = 2
"""A run in which so many processes died is recorded as failed."""


class LocalBackend:
    """See :class:`scenarios.backends.backend.Backend`.

    Args:
        jobs: processes; default as many as there are cores.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or cores()
        self._crew: _Crew | None = None

    def run(self, store: Store, specs: Sequence[RunSpec], listener: Listener) -> None:
        """See :class:`scenarios.backends.backend.Backend`."""
        if self._crew is None or self._crew.store.path != store.path:
            self.close()
            self._crew = _Crew(store, self.jobs)
        try:
            self._crew.work(specs, listener)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """See :class:`scenarios.backends.backend.Backend`."""
        if self._crew is not None:
            self._crew.dismiss()
            self._crew = None


class _Crew:
    """Processes that work on one store, and what they are at."""

    def __init__(self, store: Store, most: int) -> None:
        self.store = store
        self._most = most
        self._dealer = Dealer(most)
        self._members: dict[Connection, _Member] = {}

    def work(self, specs: Sequence[RunSpec], listener: Listener) -> None:
        """Compute runs until none is left."""
        self._specs = {spec.key: spec for spec in specs}
        self._deaths = dict.fromkeys(self._specs, 0)
        self._listener = listener
        self._dealer.add(specs)
        while len(self._members) < min(self._most, len(specs)):
            self._hire(len(self._members))
        self._deal()
        while self._dealer.left() or any(member.holds for member in self._members.values()):
            for pipe in wait(list(self._members)):
                self._hear(self._members[pipe])  # type: ignore[index]
            self._deal()

    def dismiss(self) -> None:
        """End all processes; runs in flight are lost."""
        for member in self._members.values():
            member.end()
        self._members.clear()

    def _hire(self, number: int) -> None:
        member = _Member(number, self.store)
        self._members[member.pipe] = member

    def _hear(self, member: _Member) -> None:
        try:
            kind, *rest = member.pipe.recv()
        except (EOFError, ConnectionResetError):
            self._bury(member)
            return
        if kind == "ready":
            member.is_ready = True
        elif kind == "started":
            member.n_begun += 1
            self._listener.started(self._specs[rest[0]])
        elif kind == "finished":
            self._finish(member, rest[0])
        else:
            raise ConfigurationError(rest[0])

    def _deal(self) -> None:
        """Give runs to everybody who has none."""
        for member in self._members.values():
            if member.is_ready and not member.holds:
                member.holds = self._dealer.deal(member.number)
                if member.holds:
                    member.send(member.holds)

    def _finish(self, member: _Member, outcome: Outcome) -> None:
        spec = member.holds.pop(0)
        member.n_begun -= 1
        if outcome.wall_seconds:
            self._dealer.took(spec, outcome.wall_seconds)
        self._listener.finished(spec, outcome)

    def _bury(self, member: _Member) -> None:
        """A process died. What it was at gets another chance; another process takes its place."""
        del self._members[member.pipe]
        code = member.end()
        if not member.is_ready:
            raise ConfigurationError(
                f"a process that computes runs ended with code {code} before its first one; "
                f"what it printed is above"
            )
        if member.holds:
            self._count_death(member, code)
        self._dealer.forget(member.number)
        begun = member.holds[: member.n_begun]
        self._dealer.give_back(member.holds[member.n_begun :])
        self._dealer.give_back(begun, are_suspect=True)
        self._hire(member.number)

    def _count_death(self, member: _Member, code: int) -> None:
        begun = member.holds[: max(1, member.n_begun)]
        for spec in begun:
            self._deaths[spec.key] += 1
        spec = begun[0]
        if len(begun) > 1 or self._deaths[spec.key] < _MOST_DEATHS:
            return  # which of them it was will show when each is alone
        member.holds.pop(0)
        member.n_begun = 0
        why = f"signal {-code}" if code < 0 else f"code {code}"
        hint = ": out of memory?" if code == -9 else ""
        error = f"the process that computed it died {_MOST_DEATHS} times ({why}{hint})"
        self.store.fail(spec, error)
        self._listener.finished(spec, Outcome(spec.key, "failed", error))


class _Member:
    """One process.

    Attributes:
        pipe: to it.
        holds: runs that it has and has not finished, in order.
        n_begun: of these, the first so many are being computed.
    """

    def __init__(self, number: int, store: Store) -> None:
        self.number = number
        self.holds: list[RunSpec] = []
        self.n_begun = 0
        self.is_ready = False
        self.pipe, theirs = Pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "scenarios.backends.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment(single_threaded()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        self.send((str(store.path.absolute()), store.axes))

    def send(self, value: Any) -> None:
        """Tell it something; that it is gone will be noticed on listening."""
        try:
            self.pipe.send(value)
        except (BrokenPipeError, ConnectionResetError):
            return

    def end(self) -> int:
        """Let it go; what it is at is lost.

        Returns:
            Its exit code, negative for a signal.
        """
        self.pipe.close()
        if self._process.poll() is None and self.holds:
            self._process.kill()
        return self._process.wait()


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def environment(more: dict[str, str]) -> dict[str, str]:
    """This process's environment and more, for one that imports what this one would."""
    path = os.pathsep.join(path for path in sys.path if path)
    return {**os.environ, "PYTHONPATH": path, **more}
