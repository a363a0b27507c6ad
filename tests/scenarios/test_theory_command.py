"""``straggler theory``: what it assumes, prints, draws and refuses."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from scenario_data import small
from typer.testing import CliRunner

from analysis.theory.complexities import complexity, total_seconds
from analysis.theory.setting import Objective, Setting
from scenarios.cli import app
from scenarios.load import from_data
from scenarios.theory.axes import AXES, Axis
from scenarios.theory.prediction import advice, predict, step_times
from scenarios.theory.winning import reigns
from simulator.errors import ConfigurationError

THEORY = {
    "epsilon": 0.3,
    "gradient_lipschitz": 1.5,
    "hessian_lipschitz": 0.7,
    "sigma": 2.0,
    "initial_gap": 3.0,
}
NIGT = {"id": "rennala-nigt", "batch_size": 4, "stepsize": 0.1, "momentum": 0.2}
SETTING = Setting(np.array([1.0, 2.0, 5.0]), Objective(0.1))


def straggler(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def theory_of(data, tmp_path: Path, *arguments: object):
    path = tmp_path / "small.toml"
    path.write_text(tomli_w.dumps(data), encoding="utf-8")
    return straggler("theory", path, "--out", tmp_path / "out", *arguments)


def predicted(**changes):
    return predict(from_data(small(**changes), "small.toml"))


def test_it_prints_every_table_and_draws_every_figure(tmp_path):
    data = small(theory=dict(THEORY), methods=[NIGT, {"id": "afedpg", "stepsize": 0.1}])
    data["network"] = {"kind": "star", "down": 0.5, "up": 1.5}
    result = theory_of(data, tmp_path, "--debug")
    assert result.exit_code == 0, result.output
    for words in (
        "3 workers, 1 to 1.732 s per gradient, kappa = 2 s",
        "sigma = 2, initial_gap = 3 (from [theory])",
        "Predicted server steps",
        "times the",
        "Lower bound",
        "workers are worth waiting for",
        "momentum = ",
        "theory recommends nothing for it",
        "Fastest along heterogeneity p",
        "Fastest along kappa",
    ):
        assert words in result.stdout, words
    files = [Path(line) for line in result.stdout.splitlines() if line.endswith((".png", ".pdf"))]
    names = {"step-seconds", "terms", "seconds-vs-epsilon", "winners"}
    assert {(path.stem, path.suffix) for path in files} == {
        (name, suffix) for name in names for suffix in (".png", ".pdf")
    }
    assert all(path.stat().st_size > 1000 for path in files)
    before = {path: path.read_bytes() for path in files}
    assert theory_of(data, tmp_path).exit_code == 0
    assert {path: path.read_bytes() for path in files} == before


def test_orders_and_heterogeneous_choose_who_competes(tmp_path):
    scenario = from_data(small(theory=dict(THEORY)), "small.toml")
    everyone = {row.id for row in predict(scenario, is_orders_only=True).comparable}
    known = {row.id for row in predict(scenario).comparable}
    assert everyone - known == {"afedpg"}
    any_objectives = {row.id for row in predict(scenario, is_heterogeneous=True).comparable}
    assert any_objectives == {"malenia-nigt", "synchronous-nigt", "malenia-sgd", "synchronous-sgd"}
    result = theory_of(small(), tmp_path, "--orders", "--axes", "workers,epsilon=0.01:1")
    assert "all taken as 1: orders only" in result.stdout
    assert "from 0.01 to 1" in result.stdout


def test_seconds_are_those_of_the_scenario():
    """Rennala with batch 2 of workers 1, sqrt 2, sqrt 3; and 3 arrivals a cycle."""
    times = {method.name: time for method, time in step_times(predicted())}
    assert times["rennala-sgd"].seconds == math.sqrt(2)
    rate = 1 + 1 / math.sqrt(2) + 1 / math.sqrt(3)
    assert times["asynchronous-sgd"].seconds == pytest.approx(1 / rate)


def test_random_delays_are_taken_by_their_mean_and_it_says_so():
    model = {"kind": "distribution", "name": "expon", "parameters": {}}
    compute = {"profile": {"kind": "linear", "base_seconds": 2.0}, "model": model}
    found = predicted(fleet__compute=compute)
    assert found.setting.seconds_per_gradient.tolist() == [2.0, 4.0, 6.0]
    assert any("fleet.compute varies" in note and "mean" in note for note in found.notes)
    with pytest.raises(ConfigurationError, match="worker 0 have no finite mean"):
        predicted(fleet__compute__model={**model, "name": "pareto", "parameters": {"b": 0.5}})


def test_what_is_assumed_is_said():
    notes = predicted().notes
    assert any("epsilon = 0.1" in note for note in notes)
    problem = {"kind": "environment", "environment": "phys2d/CartPole-v1", "horizon": 30}
    timed = predicted(problem=problem, fleet__timing="environment-step")
    assert timed.setting.seconds_per_gradient[0] == 30
    assert any("30 steps" in note for note in timed.notes)
    assert any("all constants taken as 1" in note for note in timed.notes)
    assert timed.is_orders_only
    theory = {"epsilon": 0.1, "sigma": 2.0}
    partly = predicted(problem=problem, theory=theory)
    assert any("gradient_lipschitz, hessian_lipschitz, initial_gap" in n for n in partly.notes)
    assert partly.setting.objective == Objective(0.1, sigma=2.0)


def test_workers_in_any_order_and_one_that_never_finishes():
    found = predicted(fleet__compute=[5.0, 1.0, math.inf])
    assert found.setting.seconds_per_gradient.tolist() == [1.0, 5.0, math.inf]
    assert found.cluster.seconds_per_gradient.tolist() == [5.0, 1.0, math.inf]


def test_advice_is_what_a_file_would_get():
    method = {
        "id": "rennala-nigt",
        **dict.fromkeys(
            ("stepsize", "momentum", "batch_size", "initial_batch_size"), "recommended"
        ),
    }
    scenario = from_data(small(theory=dict(THEORY), methods=[method]), "small.toml")
    (item,) = advice(predict(scenario))
    (filled,) = scenario.methods
    written = {**filled.arguments, **filled.hyperparameters}
    assert item.keys == {key: written[key] for key in item.keys}
    (time,) = [time for _, time in step_times(predict(scenario))]
    assert item.seconds == pytest.approx(time.first_seconds + (item.steps - 1) * time.seconds)


def test_reigns_against_all_points():
    rows = [complexity(name) for name in ("rennala-nigt", "rennala-sgd", "synchronous-sgd")]
    axis = Axis("epsilon", AXES["epsilon"], 1e-3, 10.0)
    found = reigns(rows, SETTING, axis)
    assert len(found) == 2
    assert found[0].high == found[1].low
    assert (found[0].low, found[1].high) == pytest.approx((1e-3, 10.0))
    for value in np.geomspace(1e-3, 10, 200):
        times = [total_seconds(row, axis.kind.change(SETTING, float(value))) for row in rows]
        (reign,) = [
            item for item in found if item.low <= value * (1 + 1e-12) <= item.high * 1.0001
        ][:1]
        assert total_seconds(reign.row, axis.kind.change(SETTING, float(value))) == pytest.approx(
            min(times), rel=1e-3
        )


@pytest.mark.parametrize("name", AXES)
def test_axes_change_one_thing(name):
    kind = AXES[name]
    low, high = kind.span(SETTING)
    assert 0 <= low < high
    changed = kind.change(SETTING, high)
    here = kind.here(SETTING)
    if here is not None:
        assert kind.change(SETTING, here).seconds_per_gradient.tolist() == [1.0, 2.0, 5.0]
        assert kind.here(kind.change(SETTING, here)) == here
    same_fleet = np.array_equal(changed.seconds_per_gradient, SETTING.seconds_per_gradient)
    others = (changed.objective, changed.kappa_seconds) == (SETTING.objective, 0.0)
    assert same_fleet != others


def test_other_sizes_keep_the_spread():
    kind = AXES["workers"]
    many = kind.change(SETTING, 300).seconds_per_gradient
    assert len(many) == 300
    assert (many[0], many[-1]) == (1.0, 5.0)
    assert np.median(many) == pytest.approx(2.0, rel=0.02)
    assert AXES["exponent"].change(SETTING, 2.0).seconds_per_gradient.tolist() == [1.0, 4.0, 9.0]
    assert AXES["spread"].change(SETTING, 2.0).seconds_per_gradient.tolist() == [1.0, 4.0, 25.0]


MISTAKES = {
    "epsilon": (["--epsilon", 0], "epsilon = 0.0: expected a finite number > 0"),
    "negative epsilon": (["--epsilon=-1"], "epsilon = -1.0"),
    "an axis": (["--axes", "exponnent,kappa"], "Did you mean 'exponent'?"),
    "one axis": (["--axes", "kappa"], "expected two, as exponent,kappa"),
    "the same": (["--axes", "kappa,kappa"], "expected two different ones"),
    "a range": (["--axes", "kappa=0:1,n"], "kappa=0:1: expected LOW:HIGH, finite numbers > 0"),
    "a word": (["--axes", "spread=a,kappa"], "spread=a: expected LOW:HIGH"),
    "too many": (["--axes", "workers=1:1e9,kappa"], "workers=1:1e9: expected LOW:HIGH, 1 to"),
    "no time": (["--set", "fleet.compute=[1.0, 0.0, 2.0]"], "worker 1 takes 0 seconds"),
    "negative": (["--set", "fleet.compute=[1.0, -1.0, 2.0]"], "expected a number >= 0"),
    "a number missing": (["--set", "fleet.compute=[1.0, 2.0]"], "2 numbers for 3 workers"),
    "nobody": (["--set", "fleet.compute=[inf, inf, inf]"], "no worker ever finishes"),
    "out": (["--out", "/proc/nowhere"], "cannot write figures"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_one_message(case, tmp_path):
    arguments, expected = MISTAKES[case]
    result = theory_of(small(theory=dict(THEORY)), tmp_path, *arguments)
    assert result.exit_code == 2, result.output
    assert expected in result.stderr
    assert "Traceback" not in result.output


def test_a_worker_missing_in_a_fleet_file(tmp_path):
    (tmp_path / "fleet.csv").write_text("worker,step,seconds\n0,0,1.5\n2,0,2.5\n")
    model = {"kind": "trace", "path": "fleet.csv"}
    result = theory_of(small(fleet__compute={"model": model}), tmp_path)
    assert result.exit_code == 2
    assert "no rows for worker 1, which the fleet of 3 needs" in result.stderr
