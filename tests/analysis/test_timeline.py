"""Timelines, against the accounting of the same schedules and against hand-made ones."""

import json

import numpy as np
import pytest
from analysis_data import write_run
from typer.testing import CliRunner

from algorithms.coordinators import COORDINATORS
from analysis import chrome_trace, intervals
from analysis.accounting import time_spent, union_seconds
from analysis.timeline import draw_timeline, write_timelines
from scenarios.cli import app
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.engine import simulate
from simulator.errors import ConfigurationError
from simulator.network import AllReduce, NoNetwork, Star
from simulator.records import MethodRecord, Metric, RunDirectory, RunRow

NETWORKS = {
    "none": NoNetwork(),
    "star": Star(Constant([0.5, 1, 2, 9]), Constant([1, 0.25, 3, 0])),
    "allreduce": AllReduce(Constant([1.5])),
}
SECONDS = 60.0


def simulated(network="none", compute=(1, 2, 3.5, 7), seconds=SECONDS, method="rennala"):
    parameters = {"batch_size": 5} if method == "rennala" else {}
    coordinator = COORDINATORS[method](len(compute), **parameters)
    return simulate(
        coordinator, Constant(list(compute)), NETWORKS[network], Budget(seconds=seconds), 0
    )


def whole(schedule):
    return intervals.choose_window(schedule, 0.0, SECONDS, 100)


def lengths(found, n_workers):
    return np.bincount(found.worker, found.stop - found.start, minlength=n_workers)


def run_directory(path, schedule):
    methods = [MethodRecord("rennala-sgd", "Rennala SGD costing $1", "c", "u")]
    metrics = [Metric("loss", "Loss", "", False)]
    run = RunDirectory.create(path, name="run", scenario="", metrics=metrics, methods=methods)
    row = RunRow("rennala-sgd", 3, steps=schedule.n_steps, end_seconds=schedule.end_seconds)
    run.write(row, None, schedule)
    return run


@pytest.mark.parametrize("network", NETWORKS)
def test_what_is_drawn_is_what_is_accounted_for(network):
    schedule = simulated(network)
    spent = time_spent(schedule)
    computing = intervals.computing(schedule, whole(schedule))
    for kind, found in computing.items():
        np.testing.assert_allclose(lengths(found, 4), getattr(spent, kind), rtol=1e-12)
    parts = [*computing.values(), intervals.communicating(schedule, whole(schedule))]
    worker, start, stop = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("worker", "start", "stop")
    )
    covered = union_seconds(worker, start, stop, 4)
    np.testing.assert_allclose(SECONDS - covered, spent.idle, atol=1e-9)


def test_windows_cut_at_their_edges():
    schedule = simulated(compute=(4.0,), method="synchronous")
    window = intervals.choose_window(schedule, 2.0, 9.0, 30)
    found = intervals.computing(schedule, window)["useful"]
    assert found.start.tolist() == [2, 4, 8]
    assert found.stop.tolist() == [4, 8, 9]
    assert window.note == "2 to 9 of 60 s"


def test_large_fleets_and_long_runs_are_cut_and_say_so():
    schedule = simulated(compute=(1.0,) * 1000, seconds=100.0, method="synchronous")
    window = intervals.choose_window(schedule, None, None, 30)
    assert window.workers[0] == 0
    assert window.workers[-1] == 999
    assert window.stop == 40.0
    assert window.note == "0 to 40 of 100 s; 30 of 1000 workers, evenly chosen"
    figure = draw_timeline(schedule, window, "large")
    drawn = sum(len(c.get_paths()) for c in figure.axes[0].collections[30:-1])
    assert drawn == 30 * 40


@pytest.mark.parametrize(("start", "stop"), [(5.0, 5.0), (-1.0, 3.0), (60.0, None), (9.0, 2.0)])
def test_empty_windows_are_refused(start, stop):
    with pytest.raises(ConfigurationError, match=r"expected 0 <= from < to.* end at 60 s"):
        intervals.choose_window(simulated(), start, stop, 30)


@pytest.mark.parametrize("network", NETWORKS)
def test_traces_hold_every_computation_step_and_message(tmp_path, network):
    schedule = simulated(network)
    path = tmp_path / "a.trace.json"
    assert chrome_trace.write(schedule, path) == ""
    events = json.loads(path.read_text())["traceEvents"]
    useful = [e for e in events if e["name"] == "useful"]
    seconds = sum(e["dur"] for e in useful) / 1e6
    assert seconds == pytest.approx(time_spent(schedule).useful.sum(), rel=1e-12)
    assert len(useful) == schedule.counts()["used"]
    assert sum(e["ph"] == "i" for e in events) == schedule.n_steps
    opened, closed = (sorted(e["id"] for e in events if e["ph"] == p) for p in "be")
    assert opened == closed
    assert bool(opened) == (network == "star")
    assert {e["args"]["staleness"] for e in useful} == {0}


def test_long_traces_are_cut_and_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(chrome_trace, "_MOST_COMPUTATIONS", 3)
    schedule = simulated(compute=(4.0,), method="synchronous")
    path = tmp_path / "a.json"
    assert chrome_trace.write(schedule, path) == "trace: 0 to 12 of 60 s"
    events = json.loads(path.read_text())["traceEvents"]
    assert sum(e["ph"] == "X" for e in events) == 3


def test_files_of_a_run_and_the_command(tmp_path):
    run = run_directory(tmp_path / "run", simulated("star"))
    result = CliRunner().invoke(app, ["timeline", str(run.path), "--from", "5", "--to", "30"])
    assert result.exit_code == 0, result.stderr
    stems = ("rennala-sgd-seed3", "fleet-seed3")
    names = [f"{stem}.{kind}" for stem in stems for kind in ("png", "pdf")]
    names.insert(2, "rennala-sgd-seed3.trace.json")
    assert result.stdout.split() == [str(run.path / "timeline" / name) for name in names]
    assert "not all is shown: rennala-sgd, picture: 5 to 30 of 60 s" in result.stderr
    pdf = (run.path / "timeline" / names[1]).read_bytes()
    assert b"/CIDFontType2" in pdf or b"/Type42" in pdf


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "renala-sgd"}, "no such method. Did you mean 'rennala-sgd'"),
        ({"seed": 0}, "seed = 0: .* has seed 3"),
    ],
)
def test_unknown_methods_and_seeds_are_refused(tmp_path, options, message):
    run = run_directory(tmp_path / "run", simulated())
    with pytest.raises(ConfigurationError, match=message):
        write_timelines(run, **options)


def test_runs_without_anything_are_refused(tmp_path):
    run = write_run(tmp_path / "run", {"a": {}})
    with pytest.raises(ConfigurationError, match="nothing to draw"):
        write_timelines(run)
