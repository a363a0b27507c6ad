"""The engine: drives a coordinator through simulated time and writes down what happens.

It knows durations and the order of events; the coordinator knows what to do about them. Rules:

- a worker's k-th computation takes c(worker, k) seconds, cancelled ones included in the count;
- at one instant: server steps that were on their way, then arrivals in worker order, then models
  reaching workers, in worker order;
- a message that takes no time is handed over at once, so a star without delays is no network;
- a cancelled worker drops what it does: computing, sending or receiving. A finished gradient that
  was not delivered is then discarded, an unfinished one cancelled; a computation that would have
  started at the very instant of the cancellation was never started.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from simpy.core import StopSimulation

from algorithms.coordinator import Coordinator
from algorithms.messages import Arrival, Reports, Then
from simulator.budget import Budget
from simulator.clock import FIRST, Alarm, Callback, Clock
from simulator.delays import Delays
from simulator.errors import ConfigurationError, SimulationStalled
from simulator.ledger import Ledger
from simulator.network import AllReduce, Network, Star
from simulator.randomness import Purpose
from simulator.schedule import Direction, Schedule
from simulator.verify import verify_schedule
from simulator.worker import Worker

_new_tuple = tuple.__new__  # what a NamedTuple calls in the end, at a third of the cost
_WAIT, _CONTINUE, _SEND = Then.WAIT, Then.CONTINUE, Then.SEND
_INFINITY = math.inf

_STANDSTILL_LIMIT = 100_000
_PROGRESS_EVERY = 1024


class Observer(Protocol):
    """Somebody who needs the values behind the schedule while it is made (see ``live``)."""

    def starting(self, workers: Sequence[Worker], version: int) -> None:
        """These workers are about to start computing at the point of ``version``."""
        ...

    def stepped(self, rows: list[int], seconds: float, ledger: Ledger) -> None:
        """The server took a step at ``seconds`` with the gradients in these ledger rows."""
        ...


def simulate(
    coordinator: Coordinator,
    compute: Delays,
    network: Network,
    budget: Budget,
    seed: int,
    *,
    verify: bool = False,
    progress: Callable[[float, int], None] | None = None,
) -> Schedule:
    """Run a coordinator on a fleet and return everything that happened but the gradients.

    Args:
        coordinator: fresh (it keeps state); its ``n_workers`` is the fleet's.
        compute: seconds of every computation.
        network: what communication costs.
        budget: when to stop.
        seed: keys every random delay.
        verify: check the finished schedule against the rules of the simulation.
        progress: called now and then with (simulated seconds, server steps).

    Raises:
        ConfigurationError: the coordinator can not run on this fleet or network.
        SimulationStalled: a budget of steps or gradients that can never be reached, or a clock
            that stands still. With a budget of seconds the schedule says so in ``stalled``.
        SimulationBug: ``verify`` found a broken rule.
    """
    engine = Engine(coordinator, compute, network, budget, seed, progress=progress)
    schedule = engine.run()
    if verify:
        verify_schedule(schedule, compute, network, seed)
    return schedule


class Engine:
    """One simulation. Use :func:`simulate` unless you need an observer."""

    def __init__(
        self,
        coordinator: Coordinator,
        compute: Delays,
        network: Network,
        budget: Budget,
        seed: int,
        *,
        observer: Observer | None = None,
        progress: Callable[[float, int], None] | None = None,
    ) -> None:
        check_fleet(coordinator, compute, network)
        self.coordinator = coordinator
        self._decide = coordinator.arrive
        self._horizon = budget.seconds
        self._max_steps = sys.maxsize if budget.steps is None else budget.steps
        self._max_gradients = sys.maxsize if budget.gradients is None else budget.gradients
        self.clock = Clock()
        self.ledger = Ledger(coordinator.n_workers, coordinator.average)
        self.workers = [Worker(index) for index in range(coordinator.n_workers)]
        self.steps = 0
        self.seconds_of: Callable[[int, int], float] = compute.sampler(seed, Purpose.COMPUTE)
        self.observer = observer
        self._progress = progress
        self._network = network
        self._down = self._up = self._collective = None
        if isinstance(network, Star):
            self._down = network.down.sampler(seed, Purpose.DOWN)
            self._up = network.up.sampler(seed, Purpose.UP)
        elif isinstance(network, AllReduce):
            self._collective = network.collective.sampler(seed, Purpose.COLLECTIVE)
        self._counts = coordinator.reports is Reports.COUNTS
        self._is_gathered = not self._counts and self._collective is None
        """Whether a step's vectors are with the server when its last gradient is counted."""
        self._uploads_per_arrival = 0 if self._counts else 1
        self._reports_at_once = self._counts or (
            coordinator.gradients_per_assignment == 1 and self._up is None
        )
        self._assignment = coordinator.gradients_per_assignment
        self._on_received: list[Callback] = [self._received]
        self._on_finished: list[Callback] = [self._finished]
        self._on_delivered: list[Callback] = [self._delivered]
        self._waiting: list[Worker] = list(self.workers)
        self._collected: list[int] = []  # rows of the step that is being collected
        self._used = 0
        self._is_spent = False
        self._uploads = 0
        self._stuck: set[int] = set()  # workers whose present work never ends
        self._stalled = ""
        self._standstill = 0
        self._standstill_since = -1.0

    # -- running ------------------------------------------------------------------------------

    def run(self) -> Schedule:
        """Run to the end of the budget."""
        if self._horizon is not None:
            self.clock.set(Alarm(), self._horizon, 2 * len(self.workers), [StopSimulation.callback])
        self._send_points(0.0)
        self.clock.run()
        return self._finish()

    def _finish(self) -> Schedule:
        stalled = "" if self._is_spent else self._stalled
        if not stalled and self.clock.is_empty and not self._is_spent:
            stalled = self._stall_text(self._stuck or range(len(self.workers)))
        if stalled and self._horizon is None:
            raise SimulationStalled(stalled)
        end_seconds = float(self.clock.now)
        if self._horizon is not None and not self._is_spent:
            end_seconds = self._horizon
        return self.ledger.schedule(end_seconds, stalled)

    # -- workers ------------------------------------------------------------------------------

    def _send_points(self, now: float) -> None:
        """Send the current query point to every waiting worker."""
        waiting, self._waiting = self._waiting, []
        if len(waiting) > 1:
            waiting.sort(key=_index)
        if self.observer is not None:
            self.observer.starting(waiting, self.steps)
        for worker in waiting:
            self._send_point(worker, now)

    def _send_point(self, worker: Worker, now: float) -> None:
        worker.version = self.steps
        if self._down is None:
            self._start(worker, now)
            return
        worker.row = -1
        delay = self._down(worker.index, worker.downloads)
        worker.downloads += 1
        self.ledger.message(worker.index, Direction.DOWN, now, now + delay)
        if delay == 0.0:
            self._start(worker, now)
        elif delay < _INFINITY:
            self.clock.set(worker.alarm, delay, len(self.workers) + worker.index, self._on_received)
        else:
            self._stuck.add(worker.index)

    def _received(self, alarm: Alarm) -> None:
        self._start(alarm.owner, self.clock.now)

    def _start(self, worker: Worker, now: float) -> None:
        """Start a computation at the worker's point."""
        index, k = worker.index, worker.k
        seconds = self.seconds_of(index, k)
        worker.k = k + 1
        stop = now + seconds
        worker.row = self.ledger.start_computation(index, worker.version, now, stop)
        if stop == now:
            self._stand_still(worker, now)
        if seconds < _INFINITY:
            self.clock.set(worker.alarm, seconds, index, self._on_finished)
        else:
            self._stuck.add(worker.index)

    def _finished(self, alarm: Alarm) -> None:
        """A computation is done: the server hears of it, or the assignment goes on."""
        worker: Worker = alarm.owner
        if self._reports_at_once:
            self._arrive(worker, [worker.row], self.clock.now)
            return
        rows = worker.finished_rows
        rows.append(worker.row)
        worker.row = -1
        if len(rows) < self._assignment:
            self._start(worker, self.clock.now)
        else:
            self._send_vector(worker, self.clock.now)

    def _send_vector(self, worker: Worker, now: float) -> None:
        delay = 0.0
        if self._up is not None:
            delay = self._up(worker.index, worker.uploads)
            worker.uploads += 1
            self.ledger.message(worker.index, Direction.UP, now, now + delay)
        if delay == 0.0:
            self._delivered(worker.alarm)
        elif delay < _INFINITY:
            self.clock.set(worker.alarm, delay, worker.index, self._on_delivered)
        else:
            self._stuck.add(worker.index)

    def _delivered(self, alarm: Alarm) -> None:
        worker: Worker = alarm.owner
        rows, worker.finished_rows = worker.finished_rows, []
        self._arrive(worker, rows, self.clock.now)

    # -- server -------------------------------------------------------------------------------

    def _arrive(self, worker: Worker, rows: list[int], now: float) -> None:
        """Ask the coordinator about an arrival and do as it says."""
        use, step, then, cancel_others, weight = self._decide(
            _new_tuple(Arrival, (worker.index, worker.version, self.steps))
        )
        self._uploads += self._uploads_per_arrival
        if self._stuck:
            self._look_for_stall()
        if not use:
            self.ledger.discard(rows)
        else:
            self._collected += rows
            if weight != 1.0:
                self.ledger.weigh(rows, weight)
        if step and self._is_gathered and not cancel_others and not self._waiting:
            self._step(now, now)  # the common case of asynchronous methods, without detours
            then = _SEND
        elif then is _WAIT:
            self._waiting.append(worker)
            if step:
                self._close(cancel_others, now)
            return
        elif step:
            self._close(cancel_others, now)
        if then is _CONTINUE:
            self._start(worker, now)
            return
        if self.observer is not None:
            self.observer.starting((worker,), self.steps)
        self._send_point(worker, now)

    def _close(self, cancel_others: bool, now: float) -> None:
        """The step has its last gradient: stop the others, and step when the vectors are here."""
        if cancel_others:
            self._cancel_others(now)
        delay = 0.0 if self._is_gathered else self._seconds_to_gather(now)
        if delay == 0.0:
            self._step_and_send(now, now)
        elif delay < _INFINITY:
            self.clock.set(
                Alarm(), delay, FIRST, [lambda _: self._step_and_send(self.clock.now, now)]
            )

    def _step_and_send(self, now: float, close_seconds: float) -> None:
        self._step(now, close_seconds)
        self._send_points(now)

    def _cancel_others(self, now: float) -> None:
        waiting = set(map(_index, self._waiting))
        for worker in self.workers:
            if worker.index in waiting:
                continue
            if worker.row >= 0 and not self.ledger.cancel(worker.row, now):
                worker.k -= 1
            if worker.finished_rows:
                self.ledger.discard(worker.finished_rows)
                worker.finished_rows = []
            worker.row = -1
            worker.renew_alarm(self.clock)
        self._waiting = list(self.workers)
        self._stuck.clear()

    def _seconds_to_gather(self, now: float) -> float:
        """Seconds from the last gradient to the step: the slowest upload, or a collective."""
        contributors = self._contributors() if self._counts else []
        self._uploads += len(contributors)
        if self._collective is not None:
            return self._collective(0, self.steps)
        if self._up is None:
            return 0.0
        longest = 0.0
        for worker in contributors:
            delay = self._up(worker.index, worker.uploads)
            worker.uploads += 1
            self.ledger.message(worker.index, Direction.UP, now, now + delay)
            longest = max(longest, delay)
            if delay == _INFINITY:
                self._stuck.add(worker.index)
        return longest

    def _contributors(self) -> list[Worker]:
        """Workers with a gradient in the step that is being collected, in order."""
        worker_of = self.ledger.worker_of
        return [self.workers[index] for index in sorted(set(map(worker_of, self._collected)))]

    def _step(self, now: float, close_seconds: float) -> None:
        """The model changes."""
        rows, self._collected = self._collected, []
        self._used += len(rows)
        self.steps += 1
        self._is_spent = self.steps >= self._max_steps or self._used >= self._max_gradients
        if self._used > self._max_gradients:  # the step would use too many: it is not taken
            raise StopSimulation(None)
        self.ledger.take_step(rows, close_seconds, now, self._uploads)
        if self.observer is not None:
            self.observer.stepped(rows, now, self.ledger)
        if self._progress is not None and self.steps % _PROGRESS_EVERY == 0:
            self._progress(now, self.steps)
        if self._is_spent:
            raise StopSimulation(None)

    # -- what can go wrong --------------------------------------------------------------------

    def _stand_still(self, worker: Worker, now: float) -> None:
        """Count computations that take no time, and give up on a clock that never advances."""
        if now > self._standstill_since:
            self._standstill_since, self._standstill = now, 0
        self._standstill += 1
        if self._standstill > _STANDSTILL_LIMIT:
            raise SimulationStalled(
                f"at {now:g} s, after {self.steps} server steps: the clock stands still; "
                f"{_STANDSTILL_LIMIT} computations in a row took no time (last: worker "
                f"{worker.index}). Computation needs seconds > 0."
            )

    def _look_for_stall(self) -> None:
        """Others may work on for ever, but no step completes without the awaited workers."""
        never = self._stuck.intersection(self.coordinator.awaited())
        if never and not self._stalled:
            self._stalled = self._stall_text(never)
            if self._horizon is None:
                raise SimulationStalled(self._stalled)

    def _stall_text(self, workers: Iterable[int]) -> str:
        never = sorted(workers)
        shown = ", ".join(str(i) for i in never[:10]) + (", ..." if len(never) > 10 else "")
        noun = "worker" if len(never) == 1 else "workers"
        return (
            f"at {self.clock.now:g} s, after {self.steps} server steps: no further step can "
            f"complete; it waits for {noun} {shown}, whose work never finishes"
        )


def check_fleet(coordinator: Coordinator, compute: Delays, network: Network) -> None:
    """Refuse a coordinator, fleet and network that do not fit together.

    Raises:
        ConfigurationError: naming what does not fit.
    """
    n_workers = coordinator.n_workers
    if compute.n_workers != n_workers:
        raise ConfigurationError(
            f"fleet.compute: delays for {compute.n_workers} workers, but the fleet has {n_workers}"
        )
    if isinstance(network, AllReduce) and not coordinator.collective:
        raise ConfigurationError(
            f"network.kind = 'allreduce': {type(coordinator).__name__.lower()} has no step in "
            "which all workers exchange at once; use 'star' or 'none'"
        )
    if isinstance(network, Star):
        for field, link in (("down", network.down), ("up", network.up)):
            if link.n_workers != n_workers:
                raise ConfigurationError(
                    f"network.{field}: delays for {link.n_workers} workers, but the fleet has "
                    f"{n_workers}"
                )


def _index(worker: Worker) -> int:
    return worker.index
