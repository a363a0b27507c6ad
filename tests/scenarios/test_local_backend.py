"""Processes: kills, Ctrl-C, several at once. Every store ends as if nothing had happened."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe
from pathlib import Path

import pytest
from scenario_data import hears_ctrl_c
from sweep_data import HereBackend, contents, small_specs, sweep_file

from scenarios.backends import make_backend
from scenarios.backends.local import LocalBackend
from scenarios.store import Store
from scenarios.sweeps.execute import SweepReporter, execute
from scenarios.sweeps.sweep import run_sweep
from scenarios.sweeps.sweep_file import load_sweep
from simulator.errors import ConfigurationError

COMMAND = [sys.executable, "-c", "from scenarios.cli import main; main()"]
N_RUNS = 2 * 2 * 15


@pytest.fixture(scope="module")
def sweep_path(tmp_path_factory) -> Path:
    return sweep_file(tmp_path_factory.mktemp("sweep"), seeds=15)


@pytest.fixture(scope="module")
def undisturbed(sweep_path, tmp_path_factory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed") / "store"
    result = subprocess.run(
        [*COMMAND, "sweep", str(sweep_path), "--out", str(out), "--jobs", "1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert f"[{N_RUNS}/{N_RUNS}]" in result.stderr
    assert f"{N_RUNS} runs done, 0 of them earlier; 0 failed. Store: {out}" in result.stdout
    found = contents(out)
    assert len(found) == N_RUNS
    return found


def start(sweep_path: Path, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "sweep", str(sweep_path), "--out", str(out), "--jobs", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=hears_ctrl_c,
    )  # fmt: skip


def wait_for_runs(out: Path, many: int, process: subprocess.Popen[str]) -> None:
    while len(contents(out)) < many and process.poll() is None:
        time.sleep(0.002)


def is_rid_of_claims(out: Path) -> bool:
    """A worker that outlived who started it has kept its run, and is about to give up its claim."""
    deadline = time.monotonic() + 10
    while (left := list((out / "claims").glob("*"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left


def test_kill_9_again_and_again_then_the_same_store(sweep_path, undisturbed, tmp_path):
    out, rng = tmp_path / "store", random.Random(0)
    for _ in range(2):
        process = start(sweep_path, out)
        wait_for_runs(out, min(len(contents(out)) + rng.randrange(1, 12), N_RUNS - 5), process)
        everybody = rng.random() < 0.5  # or the process that deals the runs, alone
        (os.killpg if everybody else os.kill)(process.pid, signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "it was over before it was killed"
    found = contents(out)
    assert set(found) < set(undisturbed)
    process = start(sweep_path, out)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert contents(out) == undisturbed
    assert int(re.search(r"done, (\d+) of them earlier", stdout)[1]) >= len(found)
    assert is_rid_of_claims(out)


def test_two_processes_share_a_store(sweep_path, undisturbed, tmp_path):
    out = tmp_path / "store"
    both = [start(sweep_path, out) for _ in range(2)]
    for process in both:
        stdout, stderr = process.communicate(timeout=120)
        assert process.returncode == 0, stderr
        assert f"{N_RUNS} runs done" in stdout
    assert contents(out) == undisturbed


def test_ctrl_c_keeps_what_is_done(sweep_path, undisturbed, tmp_path):
    out = tmp_path / "store"
    process = start(sweep_path, out)
    wait_for_runs(out, 3, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert f"interrupted: what is done is in {out}; the same command goes on" in stderr
    assert "Traceback" not in stderr
    assert stdout == ""
    found = contents(out)
    assert 3 <= len(found) < N_RUNS
    assert all(undisturbed[name] == content for name, content in found.items())


class KillsWorkers(SweepReporter):
    """Kills the process that has just begun a run, so many times."""

    def __init__(self, store: Store, times: int, seed: int | None = None) -> None:
        self.store, self.times, self.seed = store, times, seed
        self.outcomes = {}

    def started(self, spec):
        if self.times and self.seed in (None, spec.seed):
            self.times -= 1
            for process in children():
                os.kill(process, signal.SIGKILL)

    def finished(self, spec, outcome):
        self.outcomes[spec.key] = outcome


def children() -> list[int]:
    found = []
    for task in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = task.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and b"backends.worker" in _command(task):
            found.append(int(task.parent.name))
    return found


def _command(task: Path) -> bytes:
    return (task.parent / "cmdline").read_bytes()


def test_a_worker_that_is_killed_is_replaced(tmp_path):
    wanted = small_specs(seeds=3)
    store = Store.create(tmp_path / "store", {})
    backend, reporter = LocalBackend(1), KillsWorkers(store, times=1)
    tally = execute(store, wanted, backend, reporter)
    assert (tally.done, tally.failures) == (6, ())
    there = len(children())
    execute(store, wanted, backend, reporter)  # the process stays for what may come
    assert len(children()) == there == 1
    backend.close()
    assert not children()


def test_a_run_that_kills_its_process_is_recorded_and_the_others_go_on(tmp_path):
    wanted = small_specs(methods__1=None, seeds=3)
    store = Store.create(tmp_path / "store", {})
    backend, reporter = LocalBackend(1), KillsWorkers(store, times=2, seed=1)
    [(spec, error)] = execute(store, wanted, backend, reporter).failures
    backend.close()
    assert spec.seed == 1
    assert error == "the process that computed it died 2 times (signal 9: out of memory?)"
    assert [outcome.kind for outcome in reporter.outcomes.values()] == ["done", "failed", "done"]


def test_of_runs_computed_together_only_the_one_that_kills_is_recorded(tmp_path):
    """Seeds 0 to 3 are in flight when a process dies; each gets another chance, alone."""
    wanted = small_specs(methods__1=None, seeds=4, executor="compiled")
    store = Store.create(tmp_path / "store", {})
    backend, reporter = LocalBackend(1), KillsWorkers(store, times=2, seed=2)
    [(spec, error)] = execute(store, wanted, backend, reporter).failures
    backend.close()
    assert spec.seed == 2
    assert error.startswith("the process that computed it died 2 times (signal 9")


def test_what_a_process_can_not_write_ends_the_sweep_with_one_message(tmp_path):
    sweep = load_sweep(sweep_file(tmp_path))

    class Removes(SweepReporter):
        def finished(self, spec, outcome):
            os.rename(tmp_path / "store" / "claims", tmp_path / "store" / "gone")

    with pytest.raises(ConfigurationError, match=r"claims.*: cannot write: No such file"):
        run_sweep(sweep, tmp_path / "store", LocalBackend(1), Removes())
    assert len(contents(tmp_path / "store")) >= 1
    assert not children()


def test_processes_compute_what_one_thread_here_would(tmp_path, undisturbed, sweep_path):
    store = run_sweep(load_sweep(sweep_path), tmp_path / "store", HereBackend()).store
    assert set(contents(store.path)) == set(undisturbed)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("locl",), "Did you mean 'local'?"),
        (("local", None, "10.0.0.1:6379"), "address = '10.0.0.1:6379': expected with backend"),
    ],
)
def test_options_that_do_not_fit(arguments, expected):
    with pytest.raises(ConfigurationError, match=re.escape(expected)):
        make_backend(*arguments)


def test_a_worker_whose_master_is_gone_ends_without_a_word():
    mine, theirs = Pipe()
    mine.send(("/nowhere", {}))
    mine.close()  # before it could say that it is ready
    result = subprocess.run(
        [sys.executable, "-m", "scenarios.backends.worker", str(theirs.fileno())],
        pass_fds=[theirs.fileno()], capture_output=True, text=True, check=False,
    )  # fmt: skip
    theirs.close()
    assert (result.returncode, result.stderr) == (0, "")
