"""What a backend does: compute runs into a store, and say how it goes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from scenarios.store import RunSpec, Store


class Outcome(NamedTuple):
    """What became of a run.

    Attributes:
        key: of the run.
        kind: "done"; "failed", recorded in the store; or "busy": another process has it.
        error: "" or why it failed, or that it diverged.
        wall_seconds: real seconds it took.
    """

    key: str
    kind: str
    error: str = ""
    wall_seconds: float = 0.0


class Listener(Protocol):
    """Hears what becomes of runs."""

    def started(self, spec: RunSpec) -> None:
        """A run has begun."""

    def finished(self, spec: RunSpec, outcome: Outcome) -> None:
        """A run has ended, and what is to be kept of it is in the store."""


class Backend(Protocol):
    """Computes runs."""

    def run(self, store: Store, specs: Sequence[RunSpec], listener: Listener) -> None:
        """Compute runs into a store, in any order, until none is left.

        A run that fails is recorded and the others go on. Ctrl-C and errors stop all work; what
        is in the store stays.

        Raises:
            ConfigurationError: results can not be kept, or no work be done.
        """

    def close(self) -> None:
        """End processes that stayed for another call of ``run``."""


_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def single_threaded() -> dict[str, str]:
    """Environment of every process that computes: one run at a time in one thread.

    Sums are then split alike everywhere, so that bytes do not depend on a machine's number of
    cores; and as many processes as there are cores do not fight over them.
    """
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    flags = f"{os.environ.get('XLA_FLAGS', '')} {_ONE_THREAD}".strip()
    return {**threads, "XLA_FLAGS": flags}
