"""Update rules by name: *how* the server steps."""

from __future__ import annotations

from algorithms.update_rule import UpdateRule
from algorithms.updates.delay_adaptive import delay_adaptive
from algorithms.updates.heavy_ball import HEAVY_BALL
from algorithms.updates.nigt import NIGT, NORMALIZED_SGD
from algorithms.updates.optax_rule import OPTAX_NAMES, from_optax, optax_rule
from algorithms.updates.sgd import SGD

UPDATE_RULES: dict[str, UpdateRule] = {
    rule.name: rule for rule in (SGD, HEAVY_BALL, NORMALIZED_SGD, NIGT, delay_adaptive(SGD))
}


def rule_names() -> list[str]:
    """Every name that :func:`update_rule` accepts."""
    return [*UPDATE_RULES, *(f"optax.{name}" for name in OPTAX_NAMES)]


def update_rule(name: str) -> UpdateRule:
    """The rule of that name.

    Raises:
        KeyError: if there is none.
    """
    if name.startswith("optax."):
        return optax_rule(name.removeprefix("optax."))
    return UPDATE_RULES[name]


__all__ = ["UPDATE_RULES", "delay_adaptive", "from_optax", "rule_names", "update_rule"]
