"""The problem protocol: gradients to simulate with, metrics to judge points by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from scenarios.problems.constants import Constants
from simulator.oracle import Oracle


@dataclass(frozen=True)
class Metric:
    """One number that says how good a point is.

    Attributes:
        name: as in result columns.
        label: as on axes.
        unit: "" if it has none.
        higher_is_better: False for losses.
    """

    name: str
    label: str
    unit: str
    higher_is_better: bool


RETURN = Metric("return", "mean return", "reward", higher_is_better=True)
DISCOUNTED_RETURN = Metric(
    "discounted_return", "mean discounted return", "reward", higher_is_better=True
)
LOSS_GAP = Metric("loss_gap", "f(x) - f*", "", higher_is_better=False)
GRADIENT_NORM = Metric("gradient_norm", "gradient norm", "", higher_is_better=False)
TRUNCATED_RETURN = Metric(
    "truncated_return", "mean discounted return up to the horizon", "reward", higher_is_better=True
)
TRUNCATED_GRADIENT_NORM = Metric(
    "truncated_gradient_norm", "gradient norm up to the horizon", "", higher_is_better=False
)
PROGRESS = Metric("progress", "coordinates solved", "", higher_is_better=True)
DISCOVERED = Metric("discovered", "coordinates discovered", "", higher_is_better=True)


class Problem(Protocol):
    """Something to optimise with a fleet of workers."""

    oracle: Oracle
    metrics: tuple[Metric, ...]
    """The first is the main one."""

    def evaluate(self, points: Any, seed: int) -> dict[str, NDArray[np.float64]]:
        """Judge points by the average objective over the workers.

        Randomness is keyed by ``Purpose.EVALUATION`` and ``seed``, and is the same for every
        point: along one curve, differences between points are less noisy than the points.

        Args:
            points: [E, dim].
            seed: >= 0.

        Returns:
            metric name -> [E]; how the points are spread over calls changes nothing.
        """
        ...


@runtime_checkable
class ExactProblem(Problem, Protocol):
    """A problem with known constants, and exact metrics."""

    @property
    def constants(self) -> Constants:
        """True upper bounds of the average objective's; ``sigma`` of any worker's gradients."""
        ...
