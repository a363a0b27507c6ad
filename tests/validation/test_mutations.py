"""A validation that can not fail is worth nothing: here coordinators and rules are broken.

Each mutant is a small, plausible mistake. The part that should notice it must fail, by the check
that is about it.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import pytest

from algorithms.coordinators import COORDINATORS
from algorithms.coordinators.malenia import Malenia
from algorithms.coordinators.rennala import Rennala
from algorithms.coordinators.ringmaster import Ringmaster
from algorithms.coordinators.synchronous import Synchronous
from algorithms.messages import Average, Decision, Then
from algorithms.update_rule import query_params
from scenarios.validation import bias, momentum, random_times, scaling, step_times
from scenarios.validation.outcome import Effort, Outcome


class OneMore(Rennala):
    """Waits for M + 1."""

    @property
    def _target(self) -> int:
        return super()._target + 1


class OneLess(Rennala):
    """Steps at M - 1, where that is one."""

    @property
    def _target(self) -> int:
        return max(1, super()._target - 1)


class NoFirstBatch(Rennala):
    """Forgets M_init."""

    @property
    def _target(self) -> int:
        return self.batch_size


class StaleCounts(Rennala):
    """Counts a gradient of an earlier point as if it were of this one."""

    def arrive(self, arrival):
        return super().arrive(arrival._replace(version=arrival.current_version))


class ArithmeticMean(Malenia):
    """Stops by the mean of the counts, as Rennala does, once everybody has one."""

    def _is_reached(self) -> bool:
        target = self.batch_size if self._version else self.initial_batch_size
        return not self._missing and sum(self._counts) >= target


class MoreThanEnough(Malenia):
    """Stops at > M/n instead of >=."""

    def _is_reached(self) -> bool:
        if self._missing:
            return False
        target = self.batch_size if self._version else self.initial_batch_size
        return self.n_workers**2 > target * sum(Fraction(1, count) for count in self._counts)


class NotEverybody(Malenia):
    """Averages gradients alike, so that fast workers weigh more."""

    average: ClassVar[Average] = Average.GRADIENTS


class OneWorkerLess(Synchronous):
    """Does not wait for the last."""

    def __init__(self, n_workers: int, gradients_per_worker: int = 1, wait_for=None) -> None:
        count = n_workers if wait_for is None else wait_for
        super().__init__(n_workers, gradients_per_worker, max(1, count - 1))


class NeverTooStale(Ringmaster):
    """Uses whatever comes."""

    def arrive(self, arrival):
        super().arrive(arrival)
        return Decision(use=True, step=True, then=Then.WAIT)


class OneTooStale(Ringmaster):
    """Uses staleness R too."""

    def __init__(self, n_workers: int, max_staleness: int) -> None:
        super().__init__(n_workers, max_staleness + 1)


def failed(outcome: Outcome) -> str:
    return "\n".join(check.claim for check in outcome.checks if not check.is_passed)


QUICK = Effort(is_quick=True)


@pytest.mark.parametrize(
    ("name", "mutant", "claim"),
    [
        ("rennala", OneMore, "Rennala: every step takes t_R(M)"),
        ("rennala", OneLess, "Rennala: every step takes t_R(M)"),
        ("rennala", NoFirstBatch, "Rennala: every step takes t_R(M)"),
        ("rennala", StaleCounts, "staleness 0"),
        ("malenia", ArithmeticMean, "Malenia: every step takes t_M(M)"),
        ("malenia", MoreThanEnough, "Malenia: every step takes t_M(M)"),
        ("malenia", NotEverybody, "averages M gradients alike, Malenia's each worker alike"),
        ("synchronous", OneWorkerLess, "Synchronous and backup workers"),
        ("ringmaster", NeverTooStale, "Ringmaster's less than R"),
        ("ringmaster", OneTooStale, "Ringmaster's less than R"),
    ],
)
def test_step_times_notice(monkeypatch, name, mutant, claim) -> None:
    monkeypatch.setitem(COORDINATORS, name, mutant)
    monkeypatch.setattr(step_times, "_QUICK_FLEETS", 60)
    assert claim in failed(step_times.run(QUICK, lambda fraction: None))


@pytest.mark.parametrize(
    ("name", "mutant"),
    [("rennala", OneMore), ("malenia", ArithmeticMean), ("synchronous", OneWorkerLess)],
)
def test_random_times_notice(monkeypatch, name, mutant) -> None:
    monkeypatch.setitem(COORDINATORS, name, mutant)
    assert f"{name}: the squared scores" in failed(random_times.run(QUICK, lambda fraction: None))


def test_scaling_notices_who_waits_for_slow_workers(monkeypatch) -> None:
    class Waits(Rennala):
        """Wants a gradient of everybody, too."""

        def arrive(self, arrival):
            decision = super().arrive(arrival)
            self._seen = getattr(self, "_seen", set()) | {arrival.worker}
            if decision.step and len(self._seen) < self.n_workers:
                self._count -= 1
                return Decision(use=True, then=Then.CONTINUE)
            if decision.step:
                self._seen = set()
            return decision

    monkeypatch.setitem(COORDINATORS, "rennala", Waits)
    found = failed(scaling.run(QUICK, lambda fraction: None))
    assert "never makes a step of Rennala longer" in found
    assert "change no step of Rennala's eight fast ones" in found


def test_bias_notices_unequal_workers(monkeypatch) -> None:
    monkeypatch.setitem(COORDINATORS, "malenia", NotEverybody)
    assert "Malenia, quadratics, constant times: no bias" in failed(
        bias.run(QUICK, lambda fraction: None)
    )


def test_momentum_notices_a_missing_extrapolation(monkeypatch) -> None:
    """On a quadratic the extrapolation removes all of the error but noise."""
    monkeypatch.setattr(momentum, "NIGT", replace(momentum.NIGT, query=query_params))
    assert "is the exact one in every step" in failed(momentum.run(QUICK, lambda fraction: None))
