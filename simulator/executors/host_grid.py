"""A grid of a host oracle: replicas whose gradients are computed in the same calls.

Python steps the environments one by one, but decides on actions for all of them at once; so seeds
and hyperparameters side by side fill batches that a single replica leaves almost empty. Each
replica goes on as it would alone: only who asks for its gradients differs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from algorithms.update_rule import Hyperparameters, UpdateRule
from simulator.executors.common import Snapshot
from simulator.executors.compiled_replicas import DEFAULT_MEMORY_BYTES
from simulator.executors.host import BatchedHost, Request
from simulator.oracle import HostOracle, Sample
from simulator.schedule import Schedule

_MAX_ROWS = 1024


class HostGrid:
    """Replicas of one method on a host oracle; used as ``compiled_grid.Grid`` is.

    Args:
        schedules, hyperparameters, seeds: of each replica.
        oracle, rule: see :class:`simulator.executors.common.Execution`.
        memory_bytes: what points and gradients of replicas side by side may take together.

    Attributes:
        lengths: of each replica, int32 [n_computations], environment steps of each trajectory; -1
            if not computed.

    Raises:
        ValueError: a schedule is for another fleet, or the lists differ in length.
    """

    def __init__(
        self,
        schedules: Sequence[Schedule],
        oracle: HostOracle,
        rule: UpdateRule,
        hyperparameters: Sequence[Hyperparameters],
        seeds: Sequence[int],
        *,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
    ) -> None:
        each = zip(schedules, hyperparameters, seeds, strict=True)
        self._replicas = [BatchedHost(s, oracle, rule, values, seed) for s, values, seed in each]
        self._oracle, self._memory_bytes = oracle, memory_bytes

    @property
    def lengths(self) -> list[NDArray[np.int32]]:
        """See the class."""
        return [replica.lengths for replica in self._replicas]

    def snapshots(self, versions: Sequence[Sequence[int]]) -> Iterator[tuple[int, Snapshot]]:
        """Execute, yielding (replica, the model) at each of its versions; see ``Grid.snapshots``.

        Args:
            versions: for each replica, ascending, from 0 to its number of steps.

        Raises:
            ValueError: they are not.
        """
        for replica, mine in zip(self._replicas, versions, strict=True):
            replica.snapshots(mine)  # made for its check; nothing runs
        return self._run([deque(mine) for mine in versions])

    def _run(self, versions: list[deque[int]]) -> Iterator[tuple[int, Snapshot]]:
        waiting = deque(range(len(self._replicas)))
        going: list[int] = []
        taken = 0
        while waiting or going:
            while waiting:
                needed = self._replicas[waiting[0]].waiting_bytes
                if going and taken + needed > self._memory_bytes:
                    break
                going.append(waiting.popleft())
                taken += needed
            for index in going:
                yield from self._follow(index, versions[index])
            over = {index for index in going if not versions[index]}
            taken -= sum(self._replicas[index].waiting_bytes for index in over)
            going = [index for index in going if index not in over]
            self._compute([self._replicas[index] for index in going])

    def _follow(self, index: int, versions: deque[int]) -> Iterator[tuple[int, Snapshot]]:
        """Take a replica's steps as far as it has their gradients."""
        replica = self._replicas[index]
        while versions:
            if replica.version == versions[0]:
                yield index, Snapshot(versions.popleft(), replica.params)
            elif replica.is_in_need:
                return
            else:
                replica.advance(versions[0])

    def _compute(self, replicas: Sequence[BatchedHost]) -> None:
        """Give all of them what they are about to ask, in as few calls as may be."""
        asked = [(replica, replica.about_to_ask()) for replica in replicas]
        requests = [(replica, request) for replica, request in asked if request is not None]
        while requests:
            rows = np.cumsum([len(request.workers) for _, request in requests])
            many = max(1, int(np.searchsorted(rows, _MAX_ROWS, side="right")))
            now, requests = requests[:many], requests[many:]
            sample = self._oracle.sample_batch(*_joined([request for _, request in now]))
            ends = [0, *rows[:many].tolist()]
            for (replica, _), start, stop in zip(now, ends, ends[1:], strict=False):
                replica.give(Sample(*(column[start:stop] for column in sample)))


def _joined(requests: Sequence[Request]) -> Request:
    """One request for all; a point that a batch shares is repeated, unless it is the only one."""
    if len(requests) == 1:
        return requests[0]
    points = [
        np.broadcast_to(request.points, (len(request.workers), request.points.shape[-1]))
        for request in requests
    ]
    rest = (np.concatenate(column) for column in zip(*(r[1:] for r in requests), strict=True))
    return Request(np.concatenate(points), *rest)
