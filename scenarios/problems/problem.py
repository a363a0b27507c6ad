"""The problem protocol: gradients to simulate with, metrics to judge points by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

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
