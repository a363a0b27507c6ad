"""The self-check finds a schedule that was tampered with, whichever rule is broken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from algorithms.coordinators import Rennala
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.engine import simulate
from simulator.errors import SimulationBug
from simulator.network import NoNetwork, Star
from simulator.schedule import Schedule
from simulator.verify import verify_schedule

COMPUTE = Constant([1.0, 1.5, 4.0])
LINKS = Star(Constant([0.5, 0.0, 0.25]), Constant([0.25, 0.5, 0.0]))


def make(network=NoNetwork()) -> Schedule:  # noqa: B008
    return simulate(Rennala(3, batch_size=3), COMPUTE, network, Budget(steps=6), 0)


def changed(schedule: Schedule, column: str, row: int, value: float) -> Schedule:
    values = np.array(getattr(schedule, column))
    values[row] = value
    return replace(schedule, **{column: values})


def test_an_honest_schedule_passes() -> None:
    verify_schedule(make(), COMPUTE, NoNetwork(), 0)
    verify_schedule(make(LINKS), COMPUTE, LINKS, 0)


@pytest.mark.parametrize(
    ("column", "row", "value", "rule"),
    [
        ("stop_seconds", 0, 1.25, "must end at start"),
        ("start_seconds", 0, 0.5, "the next start is earlier"),
        ("version", 0, 3, "from a later step"),
        ("version", 0, -1, "negative version"),
        ("status", 0, 2, "used and in a step"),
        ("status", 0, 3, "used and in a step"),
        ("step", 0, 99, "in a step that was not taken"),
        ("weight", 0, 0.9, "do not add up to 1"),
        ("weight", 0, 0.0, "used with no weight"),
        ("step_seconds", 1, 0.1, "the next step is earlier"),
        ("step_seconds", 5, 1e6, "a step after the end"),
        ("close_seconds", 1, 99.0, "closes after it"),
        ("k", 0, 1, "two things at once"),
    ],
)
def test_tampering_is_found(column, row, value, rule) -> None:
    with pytest.raises(SimulationBug, match=rule):
        verify_schedule(changed(make(), column, row, value), COMPUTE, NoNetwork(), 0)


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("message_received_seconds", 77.0, "must take its delay"),
        ("message_sent_seconds", 77.0, "must take its delay"),
    ],
)
def test_tampered_messages_are_found(column, value, rule) -> None:
    with pytest.raises(SimulationBug, match=rule):
        verify_schedule(changed(make(LINKS), column, 0, value), COMPUTE, LINKS, 0)


def test_a_schedule_of_other_delays_is_found() -> None:
    with pytest.raises(SimulationBug, match="start \\+ duration"):
        verify_schedule(make(), Constant([1.0, 1.25, 4.0]), NoNetwork(), 0)
