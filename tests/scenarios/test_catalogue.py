"""The shipped scenarios: each says what it is, builds, and starts."""

from __future__ import annotations

import re

import pytest

from scenarios.api import load, run, shipped
from scenarios.compose import Composer
from scenarios.dump import to_toml
from scenarios.load import from_data, parse
from simulator.network import NoNetwork, Star

PAPER = [f"{env}-{times}" for env in ("cartpole", "pendulum", "reacher")
         for times in ("equal", "sqrt", "sqrt-costly")]  # fmt: skip
OTHERS = ["demo", "garnet", "garnet-heterogeneous", "hard-instance", "heterogeneous-cartpole",
          "no-gain", "quadratic", "two-speed"]  # fmt: skip


def test_these_are_shipped():
    assert sorted(shipped()) == sorted(PAPER + OTHERS)


@pytest.mark.parametrize("name", sorted(PAPER + OTHERS))
def test_each_loads_is_described_and_round_trips(name):
    text = shipped()[name].read_text(encoding="utf-8")
    scenario = load(name)
    assert scenario.name == name
    assert len(scenario.description) > 20
    assert re.match(r"#.*\n(#.*\n)*#\n# What to expect: ", text)
    assert from_data(parse(to_toml(scenario), name), name) == scenario


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_time_settings(name):
    scenario = load(name)
    composer = Composer(scenario, dimension=16)
    least, most = composer.compute().bounds_seconds()
    expected = [1.0] * 10 if name.endswith("equal") else [(i + 1) ** 0.5 for i in range(10)]
    assert least.tolist() == most.tolist() == pytest.approx(expected)
    network = composer.network()
    if not name.endswith("costly"):
        assert isinstance(network, NoNetwork)
        return
    assert isinstance(network, Star)
    for link in (network.up, network.down):
        assert link.bounds_seconds()[1].tolist() == pytest.approx([2 * h for h in expected])


def test_the_three_settings_of_an_environment_differ_in_times_and_tuned_values_only():
    for env in ("cartpole", "pendulum", "reacher"):
        equal, sqrt, costly = (load(f"{env}-{t}") for t in ("equal", "sqrt", "sqrt-costly"))
        assert equal.problem == sqrt.problem == costly.problem
        assert [m.name for m in equal.methods] == [m.name for m in sqrt.methods]
        assert [m.name for m in equal.methods] == [m.name for m in costly.methods]
        assert sqrt.fleet == costly.fleet


def test_where_nothing_is_gained_the_nigt_methods_coincide(tmp_path):
    quick = {
        "budget.seconds": 3,
        "evaluation.points": 4,
        "evaluation.episodes": 8,
        "problem.horizon": 40,
        "problem.hidden": [4],
        "executor": "sequential",
    }
    methods = ["rennala-nigt", "malenia-nigt", "synchronous-nigt"]
    result = run(load("no-gain", quick), seeds=1, methods=methods, out=tmp_path, verify=True)
    assert result.failures == ()
    curves = [curve.metrics["return"].tolist() for curve in result.directory.curves()]
    assert curves[0] == curves[1] == curves[2]
    assert len(set(curves[0])) > 1


def test_the_quadratic_one_makes_progress(tmp_path):
    quick = {
        "budget.seconds": 100,
        "evaluation.points": 3,
        "fleet.workers": 10,
        "problem.dimension": 10,
        "executor": "sequential",
    }
    result = run(load("quadratic", quick), seeds=1, out=tmp_path, verify=True)
    assert result.failures == ()
    for curve in result.directory.curves():
        assert curve.metrics["loss_gap"][-1] < curve.metrics["loss_gap"][0]


@pytest.mark.parametrize(
    ("name", "methods", "change"),
    [
        ("garnet-heterogeneous", ["malenia-nigt"], {"problem.horizon": 10}),
        ("hard-instance", ["rennala-sgd", "asynchronous-sgd"], {"problem.probability": 0.5}),
    ],
)
def test_exact_problems_compute_the_same_whatever_the_executor(name, methods, change, tmp_path):
    quick = {"budget.seconds": 25, "evaluation.points": 6, "precision": "float64"} | change
    runs = [
        run(load(name, quick), seeds=1, methods=methods, out=tmp_path / executor, executor=executor)
        for executor in ("sequential", "batched", "compiled")
    ]
    assert [done.failures for done in runs] == [(), (), ()]
    for one, *others in zip(*(done.directory.curves() for done in runs), strict=True):
        assert len(set(one.metrics["gradient_norm"].tolist())) > 1
        for metric, values in one.metrics.items():
            for other in others:
                assert other.metrics[metric] == pytest.approx(values, rel=1e-9, abs=1e-12)
