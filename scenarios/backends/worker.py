"""A process that computes runs for ``scenarios.backends.local``: told what over a pipe.

It gets (store path, axes), then lists of runs; it says ("ready",), ("started", key),
("finished", Outcome), and ("broken", text) when results can not be kept.
It ends when the pipe does: nobody is left to tell it what to do.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from scenarios.backends.backend import Outcome
from scenarios.backends.bench import Bench
from scenarios.store import RunSpec, Status, Store
from scenarios.store.claims import Claim
from simulator.errors import ConfigurationError


def serve(pipe: Connection) -> None:
    """Compute what comes over the pipe until it closes."""
    try:
        _serve(pipe)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # whoever started this is gone; what was computed is in the store
    except ConfigurationError as error:
        with suppress(BrokenPipeError, ConnectionResetError):
            pipe.send(("broken", str(error)))


def _serve(pipe: Connection) -> None:
    path, axes = pipe.recv()
    store, bench = Store(Path(path), axes), Bench()
    pipe.send(("ready",))
    while True:
        specs: Sequence[RunSpec] = pipe.recv()
        for party in bench.parties(specs):
            for spec in party:
                pipe.send(("started", spec.key))
            for outcome in compute(store, bench, party):
                pipe.send(("finished", outcome))


def compute(store: Store, bench: Bench, party: Sequence[RunSpec]) -> list[Outcome]:
    """Claim runs, compute together those that are to be had, and keep them.

    Raises:
        ConfigurationError: the store can not be written.
    """
    found: dict[str, Outcome] = {}
    claims: dict[str, Claim] = {}
    try:
        for spec in party:
            claim = store.claim(spec.key)
            if claim is None:
                found[spec.key] = Outcome(spec.key, "busy")
                continue
            claims[spec.key] = claim
            if store.status_on_disk(spec.key) is Status.DONE:  # since it was dealt
                found[spec.key] = Outcome(spec.key, "done")
        mine = [spec for spec in party if spec.key not in found]
        found |= {outcome.key: outcome for outcome in _compute(store, bench, mine, claims)}
    finally:
        for claim in claims.values():
            claim.release()
    return [found[spec.key] for spec in party]


def _compute(
    store: Store, bench: Bench, party: Sequence[RunSpec], claims: dict[str, Claim]
) -> Iterator[Outcome]:
    if not party:
        return

    def touch() -> None:
        for claim in claims.values():
            claim.touch()

    checkpoint = store.checkpoint_path(party[0].key)
    for spec, done in zip(party, bench.compute(party, store.axes, touch, checkpoint), strict=True):
        keep(store, spec, done.content, done.error)
        store.note(key=spec.key, wall_seconds=round(done.wall_seconds, 4), error=done.error)
        kind = "failed" if done.content is None else "done"
        yield Outcome(spec.key, kind, done.error, done.wall_seconds)


def keep(store: Store, spec: RunSpec, content: bytes | None, error: str) -> None:
    """Put what came of a run into the store.

    Raises:
        ConfigurationError: the file system refuses.
    """
    if content is None:
        store.fail(spec, error)
    else:
        store.write(spec.key, content)


def main() -> None:
    """Serve the pipe whose descriptor is the only argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started this
    serve(Connection(int(sys.argv[1])))


if __name__ == "__main__":
    main()
