"""Scenarios to files: the resolved scenario, with every default filled in, as TOML."""

from __future__ import annotations

import tomli_w

from scenarios.schema import Scenario


def to_toml(scenario: Scenario) -> str:
    """TOML that loads as an equal scenario, and says which content it has.

    Relative paths have become absolute ones.
    """
    header = f"# Resolved by straggler: every default is filled in. Content {scenario.content_id()}"
    return f"{header}\n\n{tomli_w.dumps(scenario.as_data())}"
