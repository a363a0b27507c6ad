"""The rows of a run's records: metrics, methods, outcomes and curves, as plain frozen values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.schedule import Schedule, Status

POSITION = ("seconds", "step", "gradients", "computed", "communications")
"""Columns of a curve that say where the run was."""


@dataclass(frozen=True)
class Metric:
    """What a metric column means.

    Attributes:
        name: column of ``curves.parquet``.
        label: for axes and tables, without the unit.
        unit: "" if it has none.
        higher_is_better: True for a reward, False for a loss.
        target: the value whose first crossing is timed, or None to let analysis choose one.
    """

    name: str
    label: str
    unit: str
    higher_is_better: bool
    target: float | None = None


@dataclass(frozen=True)
class MethodRecord:
    """One method of the run: its id (unique), its label for legends, and what it is made of."""

    id: str
    label: str
    coordinator: str
    update: str


class Shares(NamedTuple):
    """Where the workers' time went, as fractions of n_workers x end_seconds; NaN if that is 0."""

    useful: float
    """Computing gradients that entered a step."""
    wasted: float
    """Computing gradients that were discarded or cancelled."""
    unfinished: float
    """Computing gradients that were neither used nor thrown away when the run ended."""
    communicating: float
    """Sending or receiving, and not computing."""
    idle: float
    """The rest."""


@dataclass(frozen=True)
class RunRow:
    """The outcome of one (method, seed).

    Attributes:
        method: id of the method.
        seed: >= 0.
        used, discarded, cancelled, in_flight: gradients by status; together, all started.
        steps: server steps.
        end_seconds: simulated seconds at the end.
        useful_share, wasted_share, unfinished_share, communicating_share, idle_share: see
            :class:`Shares`.
        mean_length_used, mean_length_started: mean episode length, in environment steps, of used
            and of all started gradients: they differ when short episodes are preferred. NaN if
            the run does not measure them.
        wall_seconds: real seconds it took.
        error: "" or why it failed.
        stalled: "" or why nothing could happen any more before the horizon.
    """

    method: str
    seed: int
    used: int = 0
    discarded: int = 0
    cancelled: int = 0
    in_flight: int = 0
    steps: int = 0
    end_seconds: float = math.nan
    useful_share: float = math.nan
    wasted_share: float = math.nan
    unfinished_share: float = math.nan
    communicating_share: float = math.nan
    idle_share: float = math.nan
    mean_length_used: float = math.nan
    mean_length_started: float = math.nan
    wall_seconds: float = math.nan
    error: str = ""
    stalled: str = ""

    @classmethod
    def of(
        cls,
        method: str,
        seed: int,
        schedule: Schedule,
        shares: Shares,
        *,
        mean_length_used: float = math.nan,
        mean_length_started: float = math.nan,
        wall_seconds: float = math.nan,
        error: str = "",
    ) -> RunRow:
        """The row of a simulated run; ``shares`` come from ``analysis.accounting``."""
        return cls(
            method=method,
            seed=seed,
            **schedule.counts(),
            steps=schedule.n_steps,
            end_seconds=float(schedule.end_seconds),
            useful_share=shares.useful,
            wasted_share=shares.wasted,
            unfinished_share=shares.unfinished,
            communicating_share=shares.communicating,
            idle_share=shares.idle,
            mean_length_used=mean_length_used,
            mean_length_started=mean_length_started,
            wall_seconds=wall_seconds,
            error=error,
            stalled=schedule.stalled,
        )

    @property
    def shares(self) -> Shares:
        """The five shares of worker time."""
        return Shares(*(getattr(self, f"{name}_share") for name in Shares._fields))


@dataclass(frozen=True, eq=False)
class Curve:
    """The metrics of one (method, seed) along the run. A metric holds until the next point.

    Arrays, [n_points], none of the positions ever falling:

    Attributes:
        method: id of the method.
        seed: >= 0.
        seconds: float64, simulated.
        step: int64, server steps taken.
        gradients: int64, gradients that entered these steps.
        computed: int64, gradients finished so far, discarded ones included.
        communications: int64, vectors that workers had sent up to the last of these steps.
        metrics: float64 by metric name; NaN once a run has diverged.
    """

    method: str
    seed: int
    seconds: NDArray[np.float64]
    step: NDArray[np.int64]
    gradients: NDArray[np.int64]
    computed: NDArray[np.int64]
    communications: NDArray[np.int64]
    metrics: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        method: str,
        seed: int,
        schedule: Schedule,
        seconds: ArrayLike,
        metrics: Mapping[str, ArrayLike],
    ) -> Curve:
        """A curve at the times ``seconds`` [n_points], rising, counted from the schedule.

        To cover the run, the first time is 0 and the last is ``schedule.end_seconds``.

        Raises:
            ValueError: if times fall, or a metric has another number of points.
        """
        times = np.asarray(seconds, np.float64)
        step = schedule.version_at(times)
        used = np.bincount(schedule.step[schedule.step >= 0], minlength=schedule.n_steps)
        finished = np.sort(schedule.stop_seconds[schedule.status != Status.CANCELLED])
        curve = cls(
            method=method,
            seed=seed,
            seconds=times,
            step=step.astype(np.int64),
            gradients=np.concatenate([[0], np.cumsum(used)])[step].astype(np.int64),
            computed=np.searchsorted(finished, times, side="right").astype(np.int64),
            communications=np.concatenate([[0], schedule.uploads])[step].astype(np.int64),
            metrics={name: np.asarray(v, np.float64) for name, v in metrics.items()},
        )
        curve.check()
        return curve

    def check(self) -> None:
        """Refuse arrays of different lengths and positions that fall.

        Raises:
            ValueError: naming the column.
        """
        columns = {name: getattr(self, name) for name in POSITION}
        for name, values in (columns | dict(self.metrics)).items():
            if values.shape != self.seconds.shape:
                raise ValueError(
                    f"curve of {self.method} seed {self.seed}: {name} has shape {values.shape}, "
                    f"seconds {self.seconds.shape}"
                )
        for name, values in columns.items():
            if not np.all(values[1:] >= values[:-1]):
                raise ValueError(f"curve of {self.method} seed {self.seed}: {name} falls")
