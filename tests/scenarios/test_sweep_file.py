"""Sweep files: points, and what is said about mistakes."""

from __future__ import annotations

import pytest
from sweep_data import sweep_file

from scenarios.load import parse_override
from scenarios.sweeps.point import specs
from scenarios.sweeps.sweep_file import load_sweep
from simulator.errors import ConfigurationError


def test_a_product_has_every_combination_the_last_axis_fastest(tmp_path):
    axes = {"fleet": {"workers": [2, 3]}, "budget": {"seconds": [1, 2]}}
    sweep = load_sweep(sweep_file(tmp_path, axes=axes))
    assert [tuple(point.settings.values()) for point in sweep.points] == [
        (2, 1), (2, 2), (3, 1), (3, 2),
    ]  # fmt: skip
    assert [point.scenario.fleet.workers for point in sweep.points] == [2, 2, 3, 3]
    assert sweep.points[1].scenario.budget.seconds == 2
    assert list(sweep.points[0].settings) == ["fleet.workers", "budget.seconds"]


def test_zipped_axes_advance_together(tmp_path):
    axes = {"fleet.workers": [2, 3], "budget.seconds": [1, 2]}
    sweep = load_sweep(sweep_file(tmp_path, axes=axes, combine="zip"))
    assert [tuple(point.settings.values()) for point in sweep.points] == [(2, 1), (3, 2)]


def test_set_and_overrides_hold_for_every_point(tmp_path):
    path = sweep_file(tmp_path, set={"fleet": {"workers": 7}, "problem.noise": 0.5})
    sweep = load_sweep(path, [parse_override("problem.noise=0.25")])
    assert {point.scenario.fleet.workers for point in sweep.points} == {7}
    assert {point.scenario.problem.noise for point in sweep.points} == {0.25}


def test_tables_and_lists_can_be_values(tmp_path):
    star = {"kind": "star", "down": 1.0, "up": [1.0, 2.0, 3.0]}
    sweep = load_sweep(sweep_file(tmp_path, axes={"network": [{"kind": "none"}, star]}))
    assert [point.scenario.network.kind for point in sweep.points] == ["none", "star"]
    assert sweep.points[0].settings == {"network": '{"kind": "none"}'}


def test_an_axis_of_one_method_does_not_concern_the_others(tmp_path):
    axes = {"methods.rennala-sgd.batch_size": [1, 2, 3]}
    sweep = load_sweep(sweep_file(tmp_path, axes=axes, seeds=1))
    runs = {spec.key: spec for point in sweep.points for spec in specs(point)}
    found = sorted((s.method.name, str(s.settings[next(iter(axes))])) for s in runs.values())
    assert found == [("asynchronous-sgd", "None")] + [("rennala-sgd", str(m)) for m in (1, 2, 3)]


def test_no_axes_is_one_point(tmp_path):
    assert len(load_sweep(sweep_file(tmp_path, axes={})).points) == 1


MISTAKES = {
    "unknown key": ({"axis": {}}, "axis: unknown key. Did you mean 'axes'?"),
    "unknown field": ({"axes": {"fleet.wokers": [1]}}, "Did you mean 'workers'?"),
    "where it is": (
        {"axes": {"fleet.workers": [1, -1]}},
        "at fleet.workers = -1: fleet.workers = -1: expected a number >= 1",
    ),
    "no list": ({"axes": {"fleet.workers": 3}}, "axes.fleet.workers = 3: expected a list"),
    "empty list": ({"axes": {"fleet.workers": []}}, "axes.fleet.workers"),
    "zip": (
        {"axes": {"fleet.workers": [1, 2], "budget.seconds": [1]}, "combine": "zip"},
        "expected lists of one length to zip: fleet.workers has 2, budget.seconds has 1",
    ),
    "combine": ({"combine": "zipp"}, "Did you mean 'zip'?"),
    "scenario": ({"scenario": "two-sped"}, "Did you mean 'two-speed'?"),
    "scenario file": ({"scenario": "./none.toml"}, "no such scenario file"),
    "method": ({"methods": ["renala-sgd"]}, "Did you mean 'rennala-sgd'?"),
    "method axis": ({"axes": {"methods.renala-sgd.batch_size": [1]}}, "Did you mean 'rennala-sgd'"),
    "seeds": ({"seeds": 0}, "seeds: expected a count from 1"),
    "seeds axis": ({"axes": {"seeds": [1, 2]}}, "axes.seeds: not an axis; set seeds of the sweep"),
    "too many": ({"axes": {"a": list(range(400)), "b": list(range(400))}}, "160000 points"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_name_the_place(tmp_path, case):
    keys, expected = MISTAKES[case]
    path = sweep_file(tmp_path, **keys)
    with pytest.raises(ConfigurationError) as raised:
        load_sweep(path)
    assert expected in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path)) or case == "scenario file"


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigurationError, match="no such sweep file"):
        load_sweep(tmp_path / "none.toml")


def test_an_axis_of_a_method_by_its_place_and_of_all_cells_of_its_grid(tmp_path):
    for axis in ("methods.0.batch_size", "methods.rennala-sgd.batch_size"):
        keys = {"axes": {axis: [1, 2]}, "seeds": 1, "set": {"methods.0.stepsize": [0.1, 0.2]}}
        sweep = load_sweep(sweep_file(tmp_path, **keys))
        runs = {spec.key: spec for point in sweep.points for spec in specs(point)}
        found = sorted(str(spec.settings[axis]) for spec in runs.values())
        assert found == ["1", "1", "2", "2", "None"]
