"""The command line: exit codes, messages, speed, Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tomli_w
from scenario_data import hears_ctrl_c, small
from typer.testing import CliRunner

from scenarios.cli import app
from scenarios.listing import TOPICS
from simulator.records import RunDirectory

COMMAND = [sys.executable, "-c", "from scenarios.cli import main; main()"]


def straggler(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(tomli_w.dumps(small(seeds=2)), encoding="utf-8")
    return path


def test_run_prints_its_tables_and_writes_its_directory(small_file, tmp_path):
    out = tmp_path / "out"
    result = straggler("run", small_file, "--out", out, "--seeds", 1, "--check")
    assert result.exit_code == 0, result.output
    assert re.search(r"Rennala SGD +[\d.e-]+ +[\d.e-]+ ", result.stdout)
    for word in ("final", "best", "simulated s", "used", "carded", "celled", "useful", "idle"):
        assert word in result.stdout
    assert f"Written to {out}" in result.stdout.replace("\n", "")
    assert "[2/2] asynchronous-sgd seed 0: " in result.stderr
    assert len(RunDirectory.open(out).runs()) == 2


def test_timing_by_environment_step_tells_the_bias(tmp_path):
    problem = {"kind": "environment", "environment": "phys2d/CartPole-v1", "horizon": 30}
    changes = {"fleet__timing": "environment-step", "fleet__compute": 0.1, "budget": {"seconds": 9}}
    data = small(problem={**problem, "hidden": [4]}, **changes)
    data["methods"][0]["batch_size"] = 4
    data["evaluation"] = {"points": 2, "episodes": 2}
    path = tmp_path / "steps.toml"
    path.write_text(tomli_w.dumps(data), encoding="utf-8")
    result = straggler("run", path, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert re.search(
        r"Rennala SGD: used trajectories are [\d.]+ % (shorter|longer) than started ones",
        result.stdout,
    )


def test_a_reader_that_goes_away_stops_nothing(small_file, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-c", "from scenarios.cli import main; main()"]
    process = subprocess.Popen(
        [*command, "run", str(small_file), "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=120) == 0
    assert [row.error for row in RunDirectory.open(out).runs()] == [""] * 4


def test_quiet_prints_no_progress(small_file, tmp_path):
    result = straggler("run", small_file, "--out", tmp_path / "out", "--quiet", "--seeds", 1)
    assert result.exit_code == 0
    assert result.stderr == ""


def test_run_with_overrides_and_methods(small_file, tmp_path):
    out = tmp_path / "out"
    result = straggler(
        "run", small_file, "--out", out, "--seeds", 1, "--methods", "asynchronous-sgd",
        "--set", "fleet.workers=2", "--set", "methods.asynchronous-sgd.name=mine",
        "--executor", "sequential",
    )  # fmt: skip
    assert result.exit_code == 2
    assert "has no method 'asynchronous-sgd'" in result.stderr
    result = straggler(
        "run", small_file, "--out", out, "--methods", "asynchronous-sgd", "--set",
        "fleet.workers=2",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert RunDirectory.open(out).schedule("asynchronous-sgd", 0).n_workers == 2


MISTAKES = {
    "unknown scenario": (["run", "two-sped"], "Did you mean 'two-speed'?"),
    "unknown key": (["run", "{file}", "--set", "fleet.wokers=3"], "Did you mean 'workers'?"),
    "bad set": (["run", "{file}", "--set", "fleet.workers"], "expected path=value"),
    "no seeds": (["run", "{file}", "--seeds", "0"], "seeds: expected a count from 1"),
    "executor": (
        ["run", "{file}", "--executor", "x"],
        "executor = 'x': expected 'compiled', 'batched' or",
    ),
    "methods": (["run", "{file}", "--methods", ""], "has no method ''"),
    "in the way": (["run", "{file}", "--out", "{file}"], "small.toml"),
    "unwritable": (["run", "{file}", "--out", "/proc/nowhere"], "/proc/nowhere"),
    "plot nothing": (["plot", "{file}"], "not a straggler run"),
    "list nothing": (["list", "metods"], "Did you mean 'methods'?"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_told_without_a_traceback(small_file, case):
    arguments, expected = MISTAKES[case]
    result = straggler(*(text.replace("{file}", str(small_file)) for text in arguments))
    assert result.exit_code == 2
    assert expected in result.stderr
    assert result.stderr.startswith("straggler: ")
    assert "Traceback" not in result.output


def test_a_failed_method_gives_exit_code_1_and_a_line(small_file, tmp_path):
    arguments = ["run", small_file, "--out", tmp_path / "out", "--seeds", 1]
    result = straggler(*arguments, "--set", "methods.0.stepsize=1e30")
    assert result.exit_code == 1
    failures = [line for line in result.stderr.splitlines() if line.startswith("failed: ")]
    assert len(failures) == 1
    assert failures[0].startswith("failed: rennala-sgd, seed 0: diverged: ")
    assert "Asynchronous SGD" in result.stdout


def test_an_unexpected_error_is_one_line_unless_debugging(small_file, monkeypatch):
    def broken(*args):
        raise AttributeError("inside\nand more")

    monkeypatch.setattr("scenarios.load.load", broken)
    result = straggler("run", small_file)
    assert result.exit_code == 3
    assert result.stderr.splitlines() == [
        "straggler: unexpected AttributeError: inside",
        "Please report it; --debug shows where.",
    ]
    assert isinstance(straggler("run", small_file, "--debug").exception, AttributeError)


def test_plot_draws_what_run_wrote(small_file, tmp_path):
    assert straggler("run", small_file, "--out", tmp_path / "out", "-q").exit_code == 0
    result = straggler("plot", tmp_path / "out", "--out", tmp_path / "figures")
    assert result.exit_code == 0, result.output
    files = [Path(line) for line in result.stdout.splitlines()]
    assert {path.suffix for path in files} == {".png", ".pdf"}
    assert all(path.stat().st_size > 1000 for path in files)
    result = straggler("plot", tmp_path / "out", "--metric", "los_gap")
    assert result.exit_code == 2
    assert "Did you mean 'loss_gap'?" in result.stderr


@pytest.mark.parametrize("topic", TOPICS)
def test_list_has_a_line_for_each(topic):
    result = straggler("list", topic)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) > 3
    assert all(len(line.split()) > 2 for line in lines)


def test_list_everything():
    text = straggler("list").stdout
    for expected in ("rennala-nigt", "Reacher-v5", "demo", "lognorm", "optax.adam", "ringmaster"):
        assert expected in text or expected == "lognorm"
    assert "2509.24305" in text


def test_version():
    assert re.fullmatch(r"straggler \d+\.\d+\.\d+\n", straggler("--version").stdout)


def test_help_imports_nothing_heavy_and_is_quick():
    code = "import sys; from scenarios.cli import main\ntry: main()\nfinally: print(*sys.modules)"
    command = [sys.executable, "-c", code, "--help"]
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds.append(time.perf_counter() - started)
    assert "Ctrl-C" not in result.stderr
    heavy = {"jax", "scipy", "numpy", "matplotlib", "pyarrow", "pydantic", "rich", "gymnasium"}
    assert not heavy & set(result.stdout.split())
    # 0.25 s on an idle core; the rest is for a busy one.
    assert min(seconds) < 1.0


def test_ctrl_c_in_a_real_process(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(tomli_w.dumps(small(seeds=200)), encoding="utf-8")
    out = tmp_path / "out"
    process = subprocess.Popen(
        [*COMMAND, "run", str(path), "--out", str(out)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        preexec_fn=hears_ctrl_c,
    )
    assert process.stderr is not None
    first = [process.stderr.readline() for _ in range(3)]
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert first[0].startswith("[1/400] rennala-sgd seed 0: ")
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert re.search(r"straggler: interrupted: \d+ finished runs are in ", stderr)
    assert stdout == ""
    assert sum(not row.error for row in RunDirectory.open(out).runs()) >= 3
