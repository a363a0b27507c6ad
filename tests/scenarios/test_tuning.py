"""Tuning: what is tried, who wins and why, and that only what is new is computed."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from scenario_data import small
from sweep_data import HereBackend, sweep_file

from scenarios.load import from_data, load
from scenarios.store import Store
from scenarios.sweeps.point import Point
from scenarios.sweeps.sweep import run_sweep
from scenarios.sweeps.sweep_file import Sweep, load_sweep
from scenarios.tuning.candidates import all_candidates, candidate, edges, grids
from scenarios.tuning.command import tune_section
from scenarios.tuning.judging import judge_candidate, sensitivities
from scenarios.tuning.settings import TuneSection
from scenarios.tuning.tune import tune
from simulator.errors import ConfigurationError

SMALL = from_data(small(), "small")
RENNALA, ASYNCHRONOUS = SMALL.methods


def section(**keys) -> TuneSection:
    return TuneSection.model_validate({"seeds": (7, 8), **keys})


# -- what is tried ----------------------------------------------------------------------------


def test_a_shared_grid_goes_to_whoever_has_the_hyperparameter():
    found = grids(SMALL, section(grid={"stepsize": (0.1, 0.2), "batch_size": (1, 2)}))
    assert list(found["rennala-sgd"]) == ["stepsize", "batch_size"]
    assert list(found["asynchronous-sgd"]) == ["stepsize"]


def test_a_grid_of_one_method_replaces_the_shared_one():
    tuning = section(grid={"stepsize": (0.1,)}, methods={"rennala-sgd": {"stepsize": (0.3, 0.4)}})
    found = grids(SMALL, tuning)
    assert found == {
        "rennala-sgd": {"stepsize": (0.3, 0.4)},
        "asynchronous-sgd": {"stepsize": (0.1,)},
    }


def test_without_a_grid_stepsizes_around_the_scenarios():
    found = grids(SMALL, section())["rennala-sgd"]["stepsize"]
    assert (min(found), max(found), len(found)) == (0.5 / 16, 0.5 * 16, 9)


MISTAKES = {
    "name": ({"grid": {"stepsiz": (1.0,)}}, "tune.grid.stepsiz: no method here has it"),
    "method": ({"methods": {"renala": {}}}, "tune.methods.renala: no such method."),
    "of one": (
        {"methods": {"asynchronous-sgd": {"batch_size": (1,)}}},
        "tune.methods.asynchronous-sgd.batch_size: not a hyperparameter",
    ),
    "value": ({"grid": {"stepsize": (-1.0,)}}, "stepsize = -1.0: expected a finite number > 0"),
    "argument": ({"grid": {"batch_size": (0,)}}, "batch_size = 0: expected an integer >= 1"),
    "seeds": ({"grid": {}, "seeds": (0,)}, r"tune.seeds: [0] are also seeds of the scenario"),
    "target": ({"criterion": "time-to-target"}, "evaluation.target: missing"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_told_before_anything_runs(tmp_path, case):
    keys, expected = MISTAKES[case]
    with pytest.raises(ConfigurationError) as raised:
        tune(tmp_path / "store", [Point({}, SMALL)], section(**keys), HereBackend())
    assert expected in str(raised.value)
    assert not (tmp_path / "store").exists()


# -- judging ----------------------------------------------------------------------------------


def runs_of(tmp_path, scores, target=None):
    """Stored runs whose metric, of which less is better, is a constant; None is a lost one."""
    plan = Sweep("small", (Point({}, from_data(small(methods__1=None), "small")),), None)
    store = run_sweep(plan, tmp_path / "store", HereBackend()).store
    run = store.read(store.done()[0])
    metrics = (replace(run.metrics[0], target=target), *run.metrics[1:])

    def scored(score):
        values = {metric.name: 0 * run.curve.seconds + score for metric in metrics}
        row = replace(run.row, error="diverged" if math.isnan(score) else "")
        return replace(run, curve=replace(run.curve, metrics=values), row=row, metrics=metrics)

    return [None if score is None else scored(score) for score in scores]


def test_area_is_the_mean_over_seeds_of_the_average_over_time(tmp_path):
    one = candidate(RENNALA, {"stepsize": 0.1}, 3)
    judged = judge_candidate(one, runs_of(tmp_path, [1.0, 4.0]), "area")
    assert (judged.score, judged.n_seeds, judged.n_lost) == (2.5, 2, 0)


def test_a_candidate_that_lost_a_seed_comes_last_however_good(tmp_path):
    one = candidate(RENNALA, {"stepsize": 0.1}, 3)
    scores = {"lost": [0.1, None], "diverged": [0.1, math.nan], "whole": [9.0, 9.0]}
    judged = {k: judge_candidate(one, runs_of(tmp_path, v), "area") for k, v in scores.items()}
    assert min(judged, key=lambda name: judged[name].rank) == "whole"
    assert judged["lost"].n_lost == judged["diverged"].n_lost == 1
    assert math.isnan(judge_candidate(one, [None, None], "area").score)


def test_time_to_target_counts_a_miss_as_the_length_of_the_run_and_ranks_it_last(tmp_path):
    one = candidate(RENNALA, {"stepsize": 0.1}, 3)
    reached, missed = (
        judge_candidate(one, runs_of(tmp_path, scores, target=1.0), "time-to-target")
        for scores in ([0.5, 0.5], [0.5, 2.0])
    )
    assert (reached.score, reached.n_missed) == (0.0, 0)
    assert (missed.score, missed.n_missed) == (2.5, 1)  # of a run of 5 s
    assert reached.rank < missed.rank


def test_sensitivity_is_the_best_possible_with_each_value(tmp_path):
    tried = all_candidates(RENNALA, {"stepsize": (0.1, 0.2), "batch_size": (1, 2)}, 3)
    scores = [4.0, 3.0, 2.0, 5.0]
    judged = [
        judge_candidate(one, runs_of(tmp_path, [score]), "area")
        for one, score in zip(tried, scores, strict=True)
    ]
    found = [(s.hyperparameter, s.value, s.judged.score) for s in sensitivities(judged)]
    assert found == [
        ("stepsize", 0.1, 3.0),
        ("stepsize", 0.2, 2.0),
        ("batch_size", 1, 2.0),
        ("batch_size", 2, 3.0),
    ]


@pytest.mark.parametrize(
    ("tried", "expected"),
    [
        ({"stepsize": 0.1, "batch_size": 4}, ["stepsize = 0.1 is the smallest"]),
        ({"stepsize": 0.3, "batch_size": 8}, ["batch_size = 8 is the largest"]),
        ({"stepsize": 0.3, "batch_size": 4}, []),
        ({"stepsize": 0.9, "batch_size": 1}, ["stepsize = 0.9 is the largest"]),  # 1 is the least
    ],
)
def test_a_winner_at_an_end_that_could_be_moved_is_named(tried, expected):
    grid = {"stepsize": (0.1, 0.3, 0.9), "batch_size": (1, 4, 8)}
    found = edges(candidate(RENNALA, tried, 3), grid)
    assert [text.partition(" of its grid")[0] for text in found] == expected


def test_momentum_1_is_no_edge():
    nigt = from_data(
        small(methods=[{"id": "afedpg", "stepsize": 0.1, "momentum": 1.0}]), "s"
    ).methods[0]
    assert edges(candidate(nigt, {"momentum": 1.0}, 3), {"momentum": (0.1, 1.0)}) == []


# -- the whole --------------------------------------------------------------------------------


def test_the_winner_is_run_on_fresh_seeds_and_written_as_a_scenario(tmp_path):
    scenario = from_data(small(seeds=2), "small")
    tuning = section(grid={"stepsize": (0.001, 0.5)})
    plan = Sweep("small", (Point({}, scenario),), tuning)
    result = run_sweep(plan, tmp_path / "store", HereBackend())
    assert [one.best.candidate.tried for one in result.tuned] == [{"stepsize": 0.5}] * 2
    assert {(spec.seed, spec.settings["stepsize"]) for spec in result.runs} == {(0, 0.5), (1, 0.5)}
    tuned = load(tmp_path / "store" / "tuned.toml")
    assert [method.hyperparameters["stepsize"] for method in tuned.methods] == [0.5, 0.5]
    assert tuned.seeds == (0, 1)


def test_a_larger_grid_computes_what_is_new_only(tmp_path):
    for values, n_new in (((0.1, 0.5), 2 * 2 * 2 + 2), ((0.1, 0.25, 0.5), 2 * 2)):
        before = len(list((tmp_path / "store" / "runs").glob("*"))) if n_new == 4 else 0
        found = tune(
            tmp_path / "store",
            [Point({}, SMALL)],
            section(grid={"stepsize": values}),
            HereBackend(),
        )
        assert {one.best.candidate.tried["stepsize"] for one in found.tuned} == {0.5}
        assert len(Store.open(tmp_path / "store").done()) - before == n_new


def test_a_sweep_tunes_at_every_point(tmp_path):
    pandas = pytest.importorskip("pandas")
    tuned = {"seeds": [7], "grid": {"stepsize": [0.01, 0.5]}}
    sweep = load_sweep(sweep_file(tmp_path, seeds=1, tune=tuned))
    store = run_sweep(sweep, tmp_path / "store", HereBackend()).store
    table = pandas.read_parquet(store.path / "tuning.parquet")
    assert len(table) == 2 * 2 * 2
    winners = table[table["rank"] == 0]
    assert sorted(winners["budget.seconds"]) == [3, 3, 5, 5]
    assert set(winners["stepsize"]) == {0.5}
    assert all("largest of its grid" in text for text in winners["edge"])
    sensitivity = pandas.read_parquet(store.path / "sensitivity.parquet")
    assert len(sensitivity) == 2 * 2 * 2
    assert sorted(path.name for path in (store.path / "tuned").iterdir()) == ["0.toml", "1.toml"]


def test_optuna_finds_the_same_again_from_its_store(tmp_path):
    pytest.importorskip("optuna")
    tuning = section(
        grid={"stepsize": (0.01, 1.0), "batch_size": (1, 4)}, search="optuna", trials=10
    )
    found = [tune(tmp_path / "store", [Point({}, SMALL)], tuning, HereBackend()) for _ in range(2)]
    assert found[1].tuning.skipped == found[1].tuning.done == found[0].tuning.done == 2 * 2 * 10
    tried = [[dict(j.candidate.tried) for j in one.tuned[0].judged] for one in found]
    assert tried[0] == tried[1]
    assert all(0.01 <= one["stepsize"] <= 1 and 1 <= one["batch_size"] <= 4 for one in tried[0])
    assert len({json.dumps(one) for one in tried[0]}) > 5


def test_the_options_of_the_command():
    found = tune_section(["stepsize=0.1,1", "rennala-sgd.batch_size=2,4"], "2", "area", "grid", 5)
    assert found.grid == {"stepsize": (0.1, 1)}
    assert found.methods == {"rennala-sgd": {"batch_size": (2, 4)}}
    assert found.seeds == (1000, 1001)
    assert tune_section([], "5,6", "area", "grid", 5).seeds == (5, 6)
    assert tune_section([], "5,", "area", "grid", 5).seeds == (5,)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((["stepsize"], "2", "area", "grid", 5), "--grid 'stepsize': expected name=values"),
        ((["stepsize="], "2", "area", "grid", 5), "--grid 'stepsize=': expected name=values"),
        (([], "none", "area", "grid", 5), "--tuning-seeds 'none': expected a count"),
        (([], "0", "area", "grid", 5), "--tuning-seeds '0': expected a count"),
        (([], "2", "aera", "grid", 5), "Did you mean 'area'?"),
        (([], "2", "area", "optun", 5), "Did you mean 'optuna'?"),
    ],
)
def test_options_that_mean_nothing(options, expected):
    with pytest.raises(ConfigurationError) as raised:
        tune_section(*options)
    assert expected in str(raised.value)
