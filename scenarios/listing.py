"""What ``straggler list`` says: one line each, with references, derived from the tables."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterable

from simulator.errors import ConfigurationError, nearest

Line = tuple[str, str, str]
"""Name, claim, reference."""


def listing(what: str | None = None) -> str:
    """The text for one topic, or for all of them.

    Raises:
        ConfigurationError: no such topic.
    """
    if what is None:
        return "\n\n".join(f"{topic}\n{_table(lines())}" for topic, lines in TOPICS.items())
    if what not in TOPICS:
        raise ConfigurationError(
            f"list {what}: nothing of that kind is listed.{nearest(what, TOPICS)}"
        )
    return _table(TOPICS[what]())


def _table(lines: Iterable[Line]) -> str:
    rows = list(lines)
    width = max((len(name) for name, _, _ in rows), default=0)
    return "\n".join(
        f"  {name:<{width}}  {claim}{f' [{reference}]' if reference else ''}"
        for name, claim, reference in rows
    )


def _methods() -> Iterable[Line]:
    from algorithms.catalogue import METHODS

    for row in METHODS:
        made = f"({row.coordinator} x {row.update})"
        yield row.id, f"{row.label} {made}: {row.claim}", row.reference


def _environments() -> Iterable[Line]:
    from scenarios.problems.registry import OTHER_ENVIRONMENTS, PROBLEMS

    for entry in PROBLEMS:
        yield entry.id, f"({entry.kind}) {entry.claim}", entry.reference
    yield "...", OTHER_ENVIRONMENTS, ""


def _scenarios() -> Iterable[Line]:
    from scenarios.load import shipped

    for name, path in shipped().items():
        description = tomllib.loads(path.read_text(encoding="utf-8")).get("description", "")
        yield name, " ".join(description.split()), ""


def _delays() -> Iterable[Line]:
    from scenarios.delay_section import LINKS
    from simulator.delays import DELAY_MODELS
    from simulator.profiles import PROFILES

    for model in DELAY_MODELS:
        takes = f" Takes {', '.join(model.parameters)}." if model.parameters else ""
        yield f"model {model.name}", f"{model.summary}{takes}", model.reference
    for name, profile in PROFILES.items():
        takes = f" Takes {', '.join(profile.parameters)}." if profile.parameters else ""
        yield f"profile {name}", f"{profile.summary}{takes}", ""
    for name, summary in LINKS.items():
        takes = "Takes latency_seconds, bandwidth_bytes_per_second."
        yield f"profile {name}", f"{summary} {takes}", ""


def _updates() -> Iterable[Line]:
    from algorithms.updates import rule_names, update_rule

    for name in rule_names():
        rule = update_rule(name)
        takes = ", ".join(rule.hyperparameters._fields)  # type: ignore[attr-defined]
        yield name, f"{rule.claim}; takes {takes}", rule.reference


def _coordinators() -> Iterable[Line]:
    from algorithms.coordinators import COORDINATORS
    from scenarios.method_section import coordinator_parameters

    for name, cls in COORDINATORS.items():
        claim = inspect.getdoc(cls) or ""
        rule = (inspect.getmodule(cls).__doc__ or "").splitlines()[0].rstrip(".")
        takes = ", ".join(coordinator_parameters(name))
        yield name, f"{rule}.{f' Takes {takes}.' if takes else ''}", _source(claim)


def _source(docstring: str) -> str:
    _, found, text = docstring.partition("Source: ")
    return " ".join(text.split("\n\n")[0].split()).rstrip(".") if found else ""


TOPICS: dict[str, Callable[[], Iterable[Line]]] = {
    "methods": _methods,
    "environments": _environments,
    "scenarios": _scenarios,
    "delays": _delays,
    "updates": _updates,
    "coordinators": _coordinators,
}
