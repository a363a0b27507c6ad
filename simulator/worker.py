"""A worker: what it is doing now, and the one alarm it is waiting for.

A worker does one thing at a time: it receives a point, computes, sends a vector, or waits. Each
of the first three ends when its alarm goes off.
"""

from __future__ import annotations

from simulator.clock import Alarm, Clock


class Worker:
    """State of one worker.

    Attributes:
        index: from 0.
        alarm: goes off when what the worker does now is done.
        version: server steps taken when its point was sent.
        k: computations it has started.
        row: ledger row of the computation that runs now; -1 while it receives or sends.
        finished_rows: rows of this assignment that are done but not yet handed to the server.
        downloads, uploads: messages so far, to key their delays.
    """

    __slots__ = (
        "alarm",
        "downloads",
        "finished_rows",
        "index",
        "k",
        "row",
        "uploads",
        "version",
    )

    def __init__(self, index: int) -> None:
        self.index = index
        self.alarm = Alarm(self)
        self.version = 0
        self.k = 0
        self.row = -1
        self.finished_rows: list[int] = []
        self.downloads = 0
        self.uploads = 0

    def renew_alarm(self, clock: Clock) -> None:
        """Forget what the worker was waiting for."""
        clock.drop(self.alarm)
        self.alarm = Alarm(self)
