"""Parts of the validation side by side, a process for each: they share nothing."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from scenarios.validation.outcome import Check, Effort, Outcome, Part

Doing = Callable[[Part, float], None]
"""Hears which part is running, and how much of it is done."""


def outcomes(
    parts: Sequence[Part], effort: Effort, jobs: int, doing: Doing
) -> Iterator[tuple[Part, Outcome]]:
    """Run parts, yielding each with what came of it when it is done.

    Args:
        parts: all to run; out of ``parts.PARTS`` if in several processes.
        effort: quick or full.
        jobs: processes; with one, or for one part, all happens in this one and in order.
        doing: hears of progress.
    """
    if min(jobs, len(parts)) > 1:
        yield from _side_by_side(parts, effort, jobs, doing)
        return
    for part in parts:
        doing(part, 0.0)
        yield part, outcome_of(part, effort, lambda fraction, part=part: doing(part, fraction))  # type: ignore[misc]


def outcome_of(part: Part, effort: Effort, advance: Callable[[float], None]) -> Outcome:
    """Run a part; if it breaks, that is a check that failed."""
    try:
        return part.run(effort, advance)
    except Exception as error:  # noqa: BLE001  a coordinator that is broken may break anyhow
        return _broken(f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}")


def _broken(text: str) -> Outcome:
    return Outcome((Check("the part runs to its end", False, text),))


def _side_by_side(
    parts: Sequence[Part], effort: Effort, jobs: int, doing: Doing
) -> Iterator[tuple[Part, Outcome]]:
    waiting = sorted(parts, key=lambda part: -part.weight)
    running: dict[Any, tuple[Part, Any]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                part = waiting.pop(0)
                heard_through, process = _start(part, effort)
                running[heard_through] = (part, process)
            for pipe in wait(list(running)):
                part, process = running[pipe]
                said = hear(pipe, process)
                if isinstance(said, Outcome):
                    del running[pipe]
                    yield part, said
                else:
                    doing(part, said)
    finally:
        for _, process in running.values():
            process.kill()


def _start(part: Part, effort: Effort) -> tuple[Connection, Any]:
    """A process for a part, and what it will be heard through."""
    context = multiprocessing.get_context("spawn")  # JAX does not survive a fork
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(theirs, part.id, effort), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def hear(pipe: Any, process: Any) -> Outcome | float:
    """What a process says: how far it is, or what it found. If it died, a check that failed."""
    try:
        said: Outcome | float = pipe.recv()
    except EOFError:
        process.join()
        return _broken(f"the process that ran it ended with code {process.exitcode}")
    return said


def _serve(pipe: Connection, part_id: str, effort: Effort) -> None:
    from scenarios.validation.parts import choose

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started this
    (part,) = choose([part_id])
    with suppress(BrokenPipeError):  # then whoever started this is gone
        pipe.send(0.0)
        pipe.send(outcome_of(part, effort, pipe.send))
