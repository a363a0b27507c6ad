"""What determines a run, and its key: equal keys, equal bytes.

A run is one method on one seed in one scenario. Its key is a digest of everything that changes its
numbers: the scenario without name, description and labels, with the contents of measured files in
place of their paths; the method with all its arguments; the seed; and ``RESULTS_VERSION``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scenarios.method_section import MethodSection, write_method
from scenarios.schema import Scenario, canonical, digest

RESULTS_VERSION = 2
"""Raised by every change that the changelog marks [RESULTS]: older results are then not reused."""

_KEY_DIGITS = 20


@dataclass(frozen=True)
class RunSpec:
    """One run that a sweep or a tuning asks for.

    Attributes:
        key: names its file; made by :func:`specs_of`.
        scenario: shared by the runs of one point; its own methods and seeds do not count.
        method, seed: which.
        settings: column -> value, what the sweep set at this run's point, for its file.
        family: the same for runs of one scenario, coordinator and update rule: they share most of
            what is compiled.
        group: the same for runs that, besides, have the same arguments of the coordinator: they
            share all of it, and their schedule if nothing is random.
    """

    key: str
    scenario: Scenario
    method: MethodSection
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    family: str = ""
    group: str = ""

    @property
    def name(self) -> str:
        """For messages: method, seed, and where in the sweep."""
        told = {key: value for key, value in self.settings.items() if value is not None}
        where = ", ".join(f"{key} = {value}" for key, value in told.items())
        return f"{self.method.name} seed {self.seed}{f' ({where})' if where else ''}"

    def alone(self) -> Scenario:
        """The scenario that holds this run and no other."""
        return self.scenario.model_copy(update={"methods": (self.method,), "seeds": (self.seed,)})


def specs_of(
    scenario: Scenario,
    methods: Iterable[tuple[MethodSection, Mapping[str, Any]]],
    seeds: Iterable[int],
    settings: Mapping[str, Any],
) -> list[RunSpec]:
    """Runs of methods on seeds in one scenario: those of one method beside each other.

    Args:
        scenario: what they share.
        methods: each with settings of its own, which come after ``settings``.
        seeds: for each method.
        settings: of the scenario in its sweep.

    Raises:
        OSError: a measured file can not be read.
    """
    shared = {k: v for k, v in scenario.content().items() if k not in ("methods", "seeds")}
    common = digest([RESULTS_VERSION, shared])
    seeds = list(seeds)
    return [
        RunSpec(
            key=_key(common, method, seed),
            scenario=scenario,
            method=method,
            seed=seed,
            settings={**settings, **own},
            family=f"{common} {method.coordinator} {method.update}",
            group=f"{common} {method.coordinator} {method.update} {method.arguments}",
        )
        for method, own in methods
        for seed in seeds
    ]


def _key(common: str, method: MethodSection, seed: int) -> str:
    written = canonical({k: v for k, v in write_method(method).items() if k != "label"})
    return digest([common, written, seed])[:_KEY_DIGITS]
