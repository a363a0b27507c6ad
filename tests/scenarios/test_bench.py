"""Runs of a sweep that are computed in one call get the bytes that they would get alone."""

from __future__ import annotations

import pytest
from scenario_data import small

from scenarios import trial
from scenarios.backends import bench
from scenarios.backends.bench import Bench
from scenarios.load import from_data, load, parse_override
from scenarios.schema import Scenario
from scenarios.store import RunSpec
from scenarios.sweeps.point import Point, specs


def specs_of(scenario: Scenario) -> list[RunSpec]:
    return specs(Point({}, scenario))


def light(**changes) -> list[RunSpec]:
    made = {"executor": "compiled", "methods__1": None, "seeds": 11} | changes
    return specs_of(from_data(small(**made), "small.toml"))


def bytes_in(parties: list[list[RunSpec]]) -> dict[str, bytes | None]:
    """Key -> bytes of the run, computed in this company."""
    ours, found = Bench(), {}
    for party in parties:
        done = ours.compute(party, {}, lambda: None)
        assert not any(one.error for one in done)
        found |= {spec.key: one.content for spec, one in zip(party, done, strict=True)}
    return found


def garnet() -> list[RunSpec]:
    changes = ["budget.seconds=40", "problem.horizon=8", "seeds=5", "evaluation.points=4"]
    scenario = load("garnet", [parse_override(text) for text in changes])
    methods = tuple(method for method in scenario.methods if method.coordinator == "rennala")
    return specs_of(scenario.model_copy(update={"methods": methods[:1]}))


@pytest.mark.parametrize(
    "wanted",
    [
        light(),
        light(methods=[{"id": "asynchronous-sgd", "stepsize": [0.1, 0.2]}], seeds=4),
        garnet(),
    ],
    ids=["rennala on a quadratic", "a grid of asynchronous", "a tabular MDP"],
)
def test_the_same_bytes_in_any_company(wanted):
    parties = list(Bench().parties(wanted))
    assert [spec for party in parties for spec in party] == wanted
    assert max(map(len, parties)) > 1
    together = bytes_in(parties)
    assert bytes_in([[spec] for spec in wanted]) == together
    backwards = wanted[::-1]
    assert bytes_in([backwards[i : i + 3] for i in range(0, len(wanted), 3)]) == together


def test_at_most_so_many_together():
    assert [len(party) for party in Bench().parties(light(seeds=20))] == [8, 8, 4]


@pytest.mark.parametrize(
    "changes",
    [
        {"executor": "sequential"},
        {"fleet__compute": {"model": {"kind": "distribution", "name": "expon"}}},
        {"problem__dimension": 1025},
        {"budget__seconds": None, "budget__gradients": 2**18 + 1, "evaluation__points": 2},
    ],
    ids=["not compiled", "random delays", "a large model", "a long run"],
)
def test_alone(changes):
    assert [len(party) for party in Bench().parties(light(seeds=3, **changes))] == [1, 1, 1]


def test_methods_with_other_schedules_are_other_parties():
    wanted = light(methods=[{"id": "rennala-sgd", "batch_size": [2, 3], "stepsize": 0.1}], seeds=2)
    assert [len(party) for party in Bench().parties(wanted)] == [2, 2]


def test_one_that_fails_does_not_fail_the_others(monkeypatch):
    wanted = light(seeds=4)
    expected = bytes_in([wanted])
    judge = trial.judge

    def fails(problem, points, seed):
        if seed == 2:
            raise ValueError("no such luck")
        return judge(problem, points, seed)

    monkeypatch.setattr(trial, "judge", fails)
    done = Bench().compute(wanted, {}, lambda: None)
    assert [one.error for one in done] == ["", "", "ValueError: no such luck", ""]
    assert done[2].content is None
    for index in (0, 1, 3):
        assert done[index].content == expected[wanted[index].key]


def test_what_can_not_be_built_is_told_run_by_run(monkeypatch):
    def fails(scenario):
        raise ValueError("no such environment")

    monkeypatch.setattr(bench, "build_problem", fails)
    parties = list(Bench().parties(light(seeds=2)))
    assert [len(party) for party in parties] == [1, 1]
    [done] = Bench().compute(parties[0], {}, lambda: None)
    assert done.error == "ValueError: no such environment"
