"""``straggler sweep | tune | status``: what they print, and how they end."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli_w
from scenario_data import small
from sweep_data import HereBackend, contents, sweep_file
from typer.testing import CliRunner

from scenarios.cli import app
from scenarios.store import Store


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    monkeypatch.setattr("scenarios.backends.make_backend", lambda *arguments: HereBackend())


def straggler(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_sweep_prints_a_row_per_point_and_method_and_goes_on(tmp_path):
    path, out = sweep_file(tmp_path), tmp_path / "store"
    result = straggler("sweep", path, "--out", out)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines() if "SGD" in line]
    assert [line[:2] for line in lines] == [
        ["3", "Rennala"], ["3", "Asynchronous"], ["5", "Rennala"], ["5", "Asynchronous"],
    ]  # fmt: skip
    assert "8 runs done, 0 of them earlier; 0 failed." in result.stdout
    assert "8 runs, 0 of them there already" in result.stderr
    again = straggler("sweep", path, "--out", out, "--quiet")
    assert "8 runs done, 8 of them earlier; 0 failed." in again.stdout
    assert again.stderr == ""


def test_the_default_store_is_the_same_every_time(tmp_path, monkeypatch):
    path = sweep_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    for there in (0, 8):
        assert f"done, {there} of them earlier" in straggler("sweep", path).stdout
    assert len(contents(Path("runs") / "sweep-sweep")) == 8


def test_status_counts_and_lists(tmp_path):
    path, out = sweep_file(tmp_path), tmp_path / "store"
    straggler("sweep", path, "--out", out)
    store = Store.open(out)
    done, gone = store.done()[:2]
    (out / "runs" / f"{gone}.parquet").unlink()
    result = straggler("status", out)
    assert result.exit_code == 0
    assert "8 runs: 7 done, 0 failed, 0 running, 1 missing" in result.stdout
    assert "s of computing" in result.stdout
    lines = straggler("status", out, "--runs").stdout.splitlines()
    assert sum(line.startswith("done ") for line in lines) == 7
    [missing] = [line for line in lines if line.startswith("missing")]
    assert "-sgd seed " in missing
    assert "(budget.seconds = " in missing
    assert done


def test_a_run_that_fails_gives_exit_code_1_and_stays_told(tmp_path, monkeypatch):
    path, out = sweep_file(tmp_path, axes={}, seeds=1), tmp_path / "store"
    monkeypatch.setattr("scenarios.trial.Trial.curve", lambda trial: None)
    result = straggler("sweep", path, "--out", out)
    assert result.exit_code == 1
    assert "failed: rennala-sgd seed 0: RuntimeError: the run has no curve" in result.stderr
    assert "failed: rennala-sgd seed 0: RuntimeError" in straggler("status", out).stdout
    monkeypatch.undo()
    monkeypatch.setattr("scenarios.backends.make_backend", lambda *arguments: HereBackend())
    assert straggler("sweep", path, "--out", out).exit_code == 1
    assert straggler("sweep", path, "--out", out, "--retry-failed").exit_code == 0


def test_tune_names_the_winner_its_edges_and_sensitivities(tmp_path):
    path, out = tmp_path / "small.toml", tmp_path / "store"
    path.write_text(tomli_w.dumps(small()), encoding="utf-8")
    result = straggler(
        "tune", path, "--out", out, "--grid", "stepsize=0.01,0.5", "--tuning-seeds", 2,
        "--methods", "rennala-sgd", "--seeds", 2,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "Rennala SGD: stepsize = 0.5 (score " in result.stdout
    assert "best of 2" in result.stdout
    assert "edge: stepsize = 0.5 is the largest of its grid: try larger ones" in result.stdout
    assert "Best score with each value" in result.stdout
    assert "the metric averaged over simulated time" in result.stdout
    assert "2 runs done" in result.stdout
    assert len(contents(out)) == 2 * 2 + 2
    assert straggler("run", out / "tuned.toml", "--out", tmp_path / "run").exit_code == 0


MISTAKES = {
    "no file": (["sweep", "none.toml"], "no such sweep file"),
    "not a store": (["status", "{dir}"], "not a straggler store: store.json is missing"),
    "grid": (["tune", "quadratic", "--grid", "stepsize"], "expected name=values"),
    "scenario": (["tune", "quadrtic"], "Did you mean 'quadratic'?"),
    "unwritable": (["sweep", "{dir}/sweep.toml", "--out", "/proc/none"], "cannot use as a store"),
    "something else": (["sweep", "{dir}/sweep.toml", "--out", "{dir}"], "not a straggler store"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_told_without_a_traceback(tmp_path, case):
    sweep_file(tmp_path)
    arguments, expected = MISTAKES[case]
    result = straggler(*(text.replace("{dir}", str(tmp_path)) for text in arguments))
    assert result.exit_code == 2
    assert expected in result.stderr
    assert result.stderr.startswith("straggler: ")
    assert "Traceback" not in result.output
