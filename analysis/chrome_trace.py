"""A schedule as a Chrome trace: a file that ui.perfetto.dev and chrome://tracing open.

One simulated second is one second there. Process 0 is the server, process 1 the workers, a thread
each; format: Google, "Trace Event Format".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from analysis.accounting import message_ends
from analysis.intervals import KIND_OF_STATUS
from simulator.errors import ConfigurationError
from simulator.schedule import Direction, Schedule, Status

_SERVER, _WORKERS = 0, 1
_MOST_COMPUTATIONS = 100_000
_MICROSECONDS = 1e6


def write(
    schedule: Schedule, path: Path, start: float | None = None, stop: float | None = None
) -> str:
    """Write what lies between two instants; by default all, or the first 100,000 computations.

    Returns:
        What was left out, in words; empty if nothing.

    Raises:
        ConfigurationError: the file can not be written.
    """
    begin, end, note = _bounds(schedule, start or 0.0, stop)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            file.write('{"displayTimeUnit":"ms","traceEvents":[\n')
            file.write(",\n".join(json.dumps(e) for e in events(schedule, begin, end)))
            file.write("\n]}\n")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot write: {error.strerror or error}") from error
    return note


def _bounds(schedule: Schedule, start: float, stop: float | None) -> tuple[float, float, str]:
    end = schedule.end_seconds if stop is None else min(stop, schedule.end_seconds)
    starts = np.sort(schedule.start_seconds)
    first = int(np.searchsorted(starts, start))
    if int(np.searchsorted(starts, end)) - first <= _MOST_COMPUTATIONS:
        return start, end, ""
    last = float(starts[first + _MOST_COMPUTATIONS])
    return start, last, f"trace: {start:.4g} to {last:.4g} of {schedule.end_seconds:.4g} s"


def events(schedule: Schedule, start: float, stop: float) -> Iterator[dict[str, Any]]:
    """Trace events of what overlaps ``start .. stop`` (simulated seconds), names first."""
    yield _name("process_name", _SERVER, 0, "server")
    yield _name("process_name", _WORKERS, 0, "workers")
    for worker in range(schedule.n_workers):
        yield _name("thread_name", _WORKERS, worker, f"worker {worker}")
    yield from _computations(schedule, start, stop)
    yield from _messages(schedule, start, stop)
    yield from _steps(schedule, start, stop)


def _name(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _span(name: str, kind: str, thread: int, start: float, stop: float) -> dict[str, Any]:
    when = {"ts": start * _MICROSECONDS, "dur": (stop - start) * _MICROSECONDS}
    return {"ph": "X", "name": name, "cat": kind, "pid": _WORKERS, "tid": thread} | when


def _computations(schedule: Schedule, start: float, stop: float) -> Iterator[dict[str, Any]]:
    ends = np.minimum(schedule.stop_seconds, schedule.end_seconds)
    staleness = schedule.staleness()
    for row in np.flatnonzero((ends > start) & (schedule.start_seconds < stop)).tolist():
        status = Status(schedule.status[row])
        kind, began = KIND_OF_STATUS[status], float(schedule.start_seconds[row])
        event = _span(kind, "computation", int(schedule.worker[row]), began, float(ends[row]))
        event["args"] = {
            "status": status.name.lower(),
            "k": int(schedule.k[row]),
            "version": int(schedule.version[row]),
        }
        if status is Status.USED:
            event["args"] |= {"step": int(schedule.step[row]), "staleness": int(staleness[row])}
        yield event


def _messages(schedule: Schedule, start: float, stop: float) -> Iterator[dict[str, Any]]:
    """Messages overlap computations, so they are asynchronous events ("b" and "e")."""
    sent = schedule.message_sent_seconds
    over = np.minimum(message_ends(schedule), schedule.end_seconds)
    for row in np.flatnonzero((over > start) & (sent < stop)).tolist():
        name = Direction(schedule.message_direction[row]).name.lower()
        event = {"name": name, "cat": "message", "id": row, "pid": _WORKERS}
        event["tid"] = int(schedule.message_worker[row])
        yield event | {"ph": "b", "ts": float(sent[row]) * _MICROSECONDS}
        yield event | {"ph": "e", "ts": float(over[row]) * _MICROSECONDS}


def _steps(schedule: Schedule, start: float, stop: float) -> Iterator[dict[str, Any]]:
    inside = (schedule.step_seconds >= start) & (schedule.step_seconds <= stop)
    for step in np.flatnonzero(inside).tolist():
        event = {"pid": _SERVER, "tid": 0, "cat": "step"}
        closed, done = float(schedule.close_seconds[step]), float(schedule.step_seconds[step])
        if done > closed:
            span = {"ts": closed * _MICROSECONDS, "dur": (done - closed) * _MICROSECONDS}
            yield event | {"ph": "X", "name": "communicating"} | span
        yield event | {"ph": "i", "s": "t", "name": f"step {step}", "ts": done * _MICROSECONDS}
