"""Parts of the validation side by side, a process for each: they share nothing."""

from __future__ import annotations

import multiprocessing
import queue
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from scenarios.validation.outcome import Check, Effort, Outcome, Part

Doing = Callable[[Part, float], None]
"""Hears which part is running, and how much of it is done."""

_POLL_SECONDS = 0.2


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
        yield from _side_by_side(parts, effort, min(jobs, len(parts)), doing)
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
    context = multiprocessing.get_context("spawn")  # JAX does not survive a fork
    told: Any = context.Queue()
    pool = ProcessPoolExecutor(jobs, context, initializer=_prepare, initargs=(told,))
    longest_first = sorted(parts, key=lambda part: -part.weight)
    running = {pool.submit(_run, part.id, effort): part for part in longest_first}
    by_id = {part.id: part for part in parts}
    try:
        while running:
            done, _ = wait(running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            _pass_on(told, by_id, doing)
            for future in done:
                yield running.pop(future), result_of(future)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        if running:  # interrupted: nobody wants the others any more
            for child in multiprocessing.active_children():
                child.terminate()


def result_of(future: Future[Outcome]) -> Outcome:
    """What a process found; if it died, a check that failed."""
    try:
        return future.result()
    except BrokenProcessPool as error:
        return _broken(f"a process of the validation died: {error}")


def _pass_on(told: Any, by_id: dict[str, Part], doing: Doing) -> None:
    while True:
        try:
            part_id, fraction = told.get_nowait()
        except queue.Empty:
            return
        doing(by_id[part_id], fraction)


_told: Any = None
"""In a process of the pool: where its progress goes."""


def _prepare(told: Any) -> None:
    global _told
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started this
    _told = told


def _run(part_id: str, effort: Effort) -> Outcome:
    from scenarios.validation.parts import choose

    (part,) = choose([part_id])
    _told.put((part_id, 0.0))
    return outcome_of(part, effort, lambda fraction: _told.put((part_id, fraction)))
