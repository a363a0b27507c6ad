"""A directory of runs. What a ``kill -9`` can take is the run in flight, and nothing else.

::

    store.json        format, schema version, and the columns that tell its runs apart (axes)
    runs/KEY.parquet  a finished run; ``pandas.read_parquet("STORE/runs")`` reads them all
    failed/KEY.json   a run that ended in an error
    claims/KEY.json   who is computing a run (``scenarios.store.claims``)
    checkpoints/KEY.* how far a long run has come
    plans/*.json      which runs were asked for, for ``straggler status``
    journal/*.jsonl   what each process did, and how long it took
    tuning.parquet, ...  what tuning found (``scenarios.tuning.write``)
    damaged/          files of runs that could not be read, set aside and never removed

Rules: a run is done if and only if its file is in ``runs``; there is no index. Every file appears
complete or not at all. A store has one set of axes: another sweep needs another directory. Runs are
read through before they are relied on, and computed again if damaged; so they need not wait for the
disk, and what a power cut takes is computed again.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any

from scenarios.schema import digest
from scenarios.store import run_file
from scenarios.store.claims import Claim, claim, is_held
from scenarios.store.keys import RunSpec
from scenarios.store.run_file import FORMAT, SCHEMA_VERSION, StoredRun, check_version
from simulator.errors import ConfigurationError
from simulator.parquet import read_json, user_errors, write_durably

_FOLDERS = ("runs", "failed", "claims", "checkpoints", "plans", "journal", "damaged")
_ABANDONED_SECONDS = 3600.0


class Status(Enum):
    """How it stands with a run."""

    DONE = "done"
    FAILED = "failed"
    RUNNING = "running"
    MISSING = "missing"


class Store:
    """The runs in a directory; see the top of this file. Make one with ``create`` or ``open``.

    Attributes:
        path: where it is.
        axes: settings column -> Arrow type, in order.
    """

    def __init__(self, path: Path, axes: Mapping[str, str]) -> None:
        self.path = path
        self.axes = dict(axes)

    # -- beginning ----------------------------------------------------------------------------

    @classmethod
    def create(cls, path: str | Path, axes: Mapping[str, str]) -> Store:
        """A store with these axes: a new one, or the one that is there.

        Raises:
            ConfigurationError: the directory holds something else, or a store of other axes or of
                another version, or can not be written.
        """
        path = Path(path)
        with user_errors(path, "use as a store"):
            path.mkdir(parents=True, exist_ok=True)
            found = sorted(item.name for item in path.iterdir() if not item.name.startswith("."))
        if not found:
            write_durably(path / "store.json", _header(axes))
        store = cls.open(path)
        if store.axes != dict(axes):
            raise ConfigurationError(
                f"{path}: holds runs that are told apart by {_listed(store.axes)}; these would be "
                f"by {_listed(axes)}: choose another directory"
            )
        with user_errors(path, "use as a store"):
            for folder in _FOLDERS:
                (path / folder).mkdir(exist_ok=True)
                _remove_abandoned(path / folder)
        return store

    @classmethod
    def open(cls, path: str | Path) -> Store:
        """The store in a directory.

        Raises:
            ConfigurationError: none there, or one of another version.
        """
        path = Path(path)
        marker = path / "store.json"
        with user_errors(marker, "read"):
            is_there = marker.is_file()
        if not is_there:
            raise ConfigurationError(f"{path}: not a straggler store: {marker.name} is missing")
        header = read_json(marker)
        check_version(marker, header.get("format"), header.get("schema_version"))
        axes = header.get("axes")
        if not isinstance(axes, dict):
            raise ConfigurationError(f"{marker}: damaged: axes = {axes!r}")
        return cls(path, axes)

    # -- writing ------------------------------------------------------------------------------

    def claim(self, key: str) -> Claim | None:
        """Begin a run; None if a living process has."""
        return claim(self.path / "claims" / f"{key}.json")

    def clear_stale_claims(self) -> None:
        """Remove what processes left that were killed between keeping a run and saying so."""
        for path in (self.path / "claims").glob("*.json"):
            if not is_held(path):
                with user_errors(path, "remove"):
                    path.unlink(missing_ok=True)

    def write(self, key: str, content: bytes) -> None:
        """Keep a finished run.

        Args:
            key: of the run.
            content: from :func:`scenarios.store.run_file.encode`.

        Raises:
            ConfigurationError: the file system refuses; nothing of the run is left then.
        """
        write_durably(self._run_path(key), content, wait=False)
        for leftover in (self._failure_path(key), *self.path.glob(f"checkpoints/{key}.*")):
            leftover.unlink(missing_ok=True)

    def fail(self, spec: RunSpec, error: str) -> None:
        """Keep why a run failed."""
        record = {"method": spec.method.name, "seed": spec.seed, "error": error}
        settings = {"settings": dict(spec.settings)}
        write_durably(self._failure_path(spec.key), _json({"key": spec.key, **record, **settings}))

    def forget_failures(self, keys: Iterable[str]) -> None:
        """Let runs that failed be tried again."""
        for key in keys:
            with user_errors(self._failure_path(key), "remove"):
                self._failure_path(key).unlink(missing_ok=True)

    def plan(self, specs: Sequence[RunSpec]) -> None:
        """Say which runs are wanted, for ``straggler status``."""
        rows = [
            {"key": s.key, "method": s.method.name, "seed": s.seed, "settings": dict(s.settings)}
            for s in specs
        ]
        name = digest(sorted(spec.key for spec in specs))[:16]
        write_durably(self.path / "plans" / f"{name}.json", _json({"runs": rows}))

    def note(self, **entry: Any) -> None:
        """Add a line to this process's journal."""
        path = self.path / "journal" / f"{platform.node()}-{os.getpid()}.jsonl"
        with user_errors(path, "write"), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"at": round(time.time(), 3), **entry}) + "\n")

    # -- reading ------------------------------------------------------------------------------

    def status(self, key: str) -> Status:
        """How it stands with a run."""
        on_disk = self.status_on_disk(key)
        if on_disk is not Status.DONE and is_held(self.path / "claims" / f"{key}.json"):
            return Status.RUNNING
        return on_disk

    def status_on_disk(self, key: str) -> Status:
        """The same, whoever may be computing it."""
        if self._run_path(key).exists():
            return Status.DONE
        return Status.FAILED if self._failure_path(key).exists() else Status.MISSING

    def read(self, key: str) -> StoredRun:
        """A finished run.

        Raises:
            ConfigurationError: missing or damaged.
        """
        return run_file.decode(self._run_path(key))

    def error(self, key: str) -> str:
        """Why a run failed; "" if it is not known to have."""
        path = self._failure_path(key)
        return str(read_json(path).get("error", "")) if path.exists() else ""

    def wanted(self) -> list[dict[str, Any]]:
        """Every run that a plan asked for: key, method, seed, settings."""
        rows: dict[str, dict[str, Any]] = {}
        for path in sorted((self.path / "plans").glob("*.json")):
            rows |= {row["key"]: row for row in read_json(path).get("runs", [])}
        return list(rows.values())

    def done(self) -> list[str]:
        """Keys of all finished runs, sorted."""
        with user_errors(self.path, "read"):
            return sorted(path.stem for path in (self.path / "runs").glob("*.parquet"))

    def wall_seconds(self) -> dict[str, float]:
        """Real seconds that runs took, as far as journals tell."""
        found: dict[str, float] = {}
        for path in (self.path / "journal").glob("*.jsonl"):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    entry = json.loads(line)
                    found[str(entry["key"])] = float(entry["wall_seconds"])
                except (ValueError, KeyError, TypeError):
                    continue  # the beginning of a journal, or a line that a kill cut off
        return found

    def set_aside_damaged(self, keys: Iterable[str]) -> list[str]:
        """Rename finished runs that can not be read, so that they are computed again.

        Returns:
            What was wrong, a line for each.

        Raises:
            ConfigurationError: one was written by another version; or the file system refuses.
        """
        problems = []
        for key in keys:
            path = self._run_path(key)
            if not path.exists():
                continue
            try:
                self.read(key)
            except ConfigurationError as error:
                if ": damaged: " not in str(error):
                    raise
                problems.append(str(error))
                with user_errors(path, "rename"):
                    path.rename(self.path / "damaged" / f"{time.time_ns()}-{path.name}")
        return problems

    def checkpoint_path(self, key: str) -> Path:
        """Where a long run keeps how far it has come."""
        return self.path / "checkpoints" / f"{key}.npz"

    def _run_path(self, key: str) -> Path:
        return self.path / "runs" / f"{key}.parquet"

    def _failure_path(self, key: str) -> Path:
        return self.path / "failed" / f"{key}.json"


def _remove_abandoned(folder: Path) -> None:
    """Remove what killed processes had begun to write; they leave a file, and no run."""
    for partial in folder.glob(".*.partial"):
        with suppress(FileNotFoundError):
            if time.time() - partial.stat().st_mtime > _ABANDONED_SECONDS:
                partial.unlink()


def _header(axes: Mapping[str, str]) -> bytes:
    return _json({"format": FORMAT, "schema_version": SCHEMA_VERSION, "axes": dict(axes)})


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


def _listed(axes: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in axes.items()) or "nothing"
