"""The quick validation passes, part by part: this is ``straggler validate --quick`` in CI."""

from __future__ import annotations

import pytest

from scenarios.validation.outcome import Effort
from scenarios.validation.parts import PARTS, choose
from simulator.errors import ConfigurationError


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"part-{part.id}")
def test_a_quick_part_passes(part) -> None:
    fractions: list[float] = []
    outcome = part.run(Effort(is_quick=True), fractions.append)
    failed = [f"{check.claim}: {check.measured}" for check in outcome.checks if not check.is_passed]
    assert not failed, "\n".join(failed)
    assert len(outcome.checks) >= 2
    assert outcome.figures
    assert outcome.tables
    assert outcome.disagreements
    assert fractions == sorted(fractions)
    assert all(0 <= fraction <= 1 for fraction in fractions)


def test_parts_are_chosen_by_number() -> None:
    assert [part.id for part in choose(["4", "1"])] == ["1", "4"]
    assert len(choose(None)) == 7


@pytest.mark.parametrize("wanted", [["8"], ["x"], []])
def test_a_part_that_is_not_there(wanted) -> None:
    with pytest.raises(ConfigurationError, match=r"expected numbers out of 1 \(Times"):
        choose(wanted)
