"""Checkpoints of long runs as files: at most one for each run, replaced about once a minute."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenarios.trial import Trial
from scenarios.workshop import Progress
from simulator.parquet import user_errors, write_durably
from simulator.resume import Arrays, CheckpointMismatch

EVERY_SECONDS = 60.0
_FINGERPRINT = "fingerprint"


class _Saved(dict[str, NDArray[Any]]):
    """Arrays of a checkpoint; asking for one that is not there says that it does not fit."""

    def __missing__(self, name: str) -> NDArray[Any]:
        raise CheckpointMismatch(f"{name} is missing")


class FileKeeper:
    """Keeps a run's latest checkpoint in a file.

    Args:
        path: of the file.
        fingerprint: of the run, so that no other one goes on from it.
        every_seconds: real seconds between checkpoints, default a minute. A run that is over
            before writes none.
    """

    def __init__(self, path: Path, fingerprint: str, every_seconds: float | None = None) -> None:
        self.path = path
        self._fingerprint = fingerprint
        self._every_seconds = EVERY_SECONDS if every_seconds is None else every_seconds
        self._latest = time.monotonic()

    def load(self) -> Arrays | None:
        """See :class:`simulator.resume.Keeper`; a damaged file counts as none."""
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                arrays = _Saved((name, file[name]) for name in file.files)
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
            return None
        is_ours = str(arrays.pop(_FINGERPRINT, "")) == self._fingerprint
        return arrays if is_ours else None

    def offer(self, make: Callable[[], Arrays]) -> None:
        """See :class:`simulator.resume.Keeper`.

        Raises:
            ConfigurationError: the file system refuses.
        """
        if time.monotonic() - self._latest < self._every_seconds:
            return
        buffer = BytesIO()
        arrays: dict[str, Any] = {_FINGERPRINT: np.array(self._fingerprint), **make()}
        np.savez(buffer, **arrays)
        with user_errors(self.path, "write"):
            self.path.parent.mkdir(exist_ok=True)
        write_durably(self.path, buffer.getvalue())
        self._latest = time.monotonic()

    def remove(self) -> None:
        """Forget the checkpoint, and the folder if it was the last one in there."""
        with user_errors(self.path, "remove"):
            self.path.unlink(missing_ok=True)
        with suppress(OSError):
            self.path.parent.rmdir()


def run_resumably(trial: Trial, progress: Progress, keeper: FileKeeper | None) -> None:
    """Run a trial, from its checkpoint if there is one; from the beginning if that does not fit.

    Raises:
        ConfigurationError, SimulationStalled: as ``Trial.run``.
    """
    try:
        trial.run(progress, keeper)
    except CheckpointMismatch:
        if keeper is None:
            raise
        keeper.remove()
        trial.run(progress, keeper)
