"""Claims: who is computing a run right now, so that two processes do not both.

A claim is a file made with O_EXCL that names host, process and the process's birth. It is stale if
that process is gone: at once on this host, and from another host once it was not touched for an
hour (a worker touches its claim while it computes). Whoever finds a stale claim removes it.

Claims save work, nothing else: should two processes ever compute one run, both write the same
bytes, each atomically.
"""

from __future__ import annotations

import json
import os
import platform
import time
from contextlib import suppress
from pathlib import Path

from simulator.parquet import user_errors

_FOREIGN_SECONDS = 3600.0
_TOUCH_SECONDS = 30.0


class Claim:
    """A claim that this process holds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._touched = time.monotonic()

    def touch(self) -> None:
        """Say that work goes on; cheap to call often."""
        if time.monotonic() - self._touched > _TOUCH_SECONDS:
            self._touched = time.monotonic()
            with suppress(OSError):
                os.utime(self._path)

    def release(self) -> None:
        """Give it up."""
        with user_errors(self._path, "remove"):
            self._path.unlink(missing_ok=True)


def claim(path: Path) -> Claim | None:
    """Claim a run; None if a living process has it.

    Args:
        path: of the claim's file.

    Raises:
        ConfigurationError: the file system refuses.
    """
    for _ in range(2):
        if _create(path):
            return Claim(path)
        if is_held(path):
            return None
        with user_errors(path, "remove"):
            path.unlink(missing_ok=True)  # another process may have been faster
    return None


def is_held(path: Path) -> bool:
    """Whether a living process holds a claim there."""
    try:
        age_seconds = time.time() - path.stat().st_mtime
        owner = json.loads(path.read_text(encoding="utf-8"))
        host, pid, born = str(owner["host"]), int(owner["pid"]), str(owner["born"])
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError, TypeError):
        return age_seconds < _TOUCH_SECONDS  # being written at this moment, or torn
    if host != platform.node():
        return age_seconds < _FOREIGN_SECONDS
    return _is_alive(pid, born)


def _create(path: Path) -> bool:
    owner = {"host": platform.node(), "pid": os.getpid(), "born": _born(os.getpid())}
    with user_errors(path, "write"):
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            return False
        try:
            os.write(descriptor, json.dumps(owner).encode())
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
    return True


def _is_alive(pid: int, born: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    state_and_birth = _process_status(pid)
    if not state_and_birth:
        return True
    state, now_born = state_and_birth
    return state != "Z" and now_born == born


def _born(pid: int) -> str:
    """When a process began, in ticks since boot: numbers of processes are used again."""
    status = _process_status(pid)
    return status[1] if status else ""


def _process_status(pid: int) -> tuple[str, str] | None:
    """State and birth; None where there is no /proc."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields[0], fields[19]
