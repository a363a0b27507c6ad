"""The store: what a key depends on, what survives what, and what is said."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sweep_data import HereBackend, contents, small_specs

from scenarios.backends.bench import Bench
from scenarios.backends.worker import compute
from scenarios.store import RunSpec, Status, Store, keys
from scenarios.store.claims import claim, is_held
from scenarios.sweeps.execute import SweepReporter, execute
from simulator.errors import ConfigurationError

BENCH = Bench()


class Notes(SweepReporter):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


@pytest.fixture
def store(tmp_path) -> Store:
    return Store.create(tmp_path / "store", {})


@pytest.fixture
def spec() -> RunSpec:
    return small_specs()[0]


# -- keys -------------------------------------------------------------------------------------

SAME = {
    "name": {"name": "another"},
    "description": {"description": "says something"},
    "label": {"methods__0__label": "Another label"},
    "seeds of others": {"seeds": [0, 7]},
    "a method less": {"methods__1": None},
    "a whole number": {"budget": {"seconds": 5.0}},
}
OTHER = {
    "seed": {"seeds": [1]},
    "method's name": {"methods__0__name": "mine"},
    "hyperparameter": {"methods__0__stepsize": 0.25},
    "argument": {"methods__0__batch_size": 3},
    "budget": {"budget": {"seconds": 6}},
    "evaluation": {"evaluation": {"points": 4}},
    "problem": {"problem__noise": 0.2},
    "fleet": {"fleet__workers": 4},
    "network": {"network": {"kind": "star", "down": 1, "up": 1}},
    "executor": {"executor": "batched"},
    "precision": {"precision": "float64"},
}


@pytest.mark.parametrize("what", SAME)
def test_presentation_and_company_change_no_key(what):
    assert small_specs(**SAME[what])[0].key == small_specs()[0].key


@pytest.mark.parametrize("what", OTHER)
def test_whatever_changes_numbers_changes_the_key(what):
    assert small_specs(**OTHER[what])[0].key != small_specs()[0].key


def test_a_change_of_results_changes_every_key(monkeypatch):
    before = small_specs()[0].key
    monkeypatch.setattr(keys, "RESULTS_VERSION", keys.RESULTS_VERSION + 1)
    assert small_specs()[0].key != before


def test_a_measured_file_counts_by_what_is_in_it(tmp_path):
    found = []
    for name, text in (
        ("a", "seconds\n1\n2\n"),
        ("b", "seconds\n1\n2\n"),
        ("c", "seconds\n1\n3\n"),
    ):
        path = tmp_path / f"{name}.csv"
        path.write_text(text)
        model = {"kind": "empirical", "path": str(path)}
        found.append(small_specs(fleet__compute__model=model)[0].key)
    assert found[0] == found[1] != found[2]


# -- files ------------------------------------------------------------------------------------


def test_a_run_reads_back_as_it_was(tmp_path):
    [spec, _] = small_specs()
    spec = replace(spec, settings={"n": 3, "x": 0.5, "kind": "a", "flag": True, "none": None})
    axes = {"n": "int64", "x": "double", "kind": "string", "flag": "bool", "none": "double"}
    store = Store.create(tmp_path / "store", axes)
    [outcome] = compute(store, BENCH, [spec])
    assert (outcome.kind, outcome.error) == ("done", "")
    run = store.read(spec.key)
    assert run.settings == spec.settings
    assert run.parameters["batch_size"] == 2
    assert run.row.used > 0
    assert run.metrics[0].name == "loss_gap"
    assert run.curve.seconds.tolist() == [0.0, 2.5, 5.0]
    assert np.isfinite(run.curve.metrics["loss_gap"]).all()


def test_one_line_reads_all(tmp_path):
    pandas = pytest.importorskip("pandas")
    store = Store.create(tmp_path / "store", {})
    wanted = small_specs(seeds=2)
    execute(store, wanted, HereBackend(), SweepReporter())
    frame = pandas.read_parquet(tmp_path / "store" / "runs")
    assert len(frame) == 4 * 3
    assert set(frame["method"]) == {"rennala-sgd", "asynchronous-sgd"}
    assert set(frame["key"]) == {spec.key for spec in wanted}
    files = str(tmp_path / "store" / "runs" / "*.parquet")
    for name in ("polars", "duckdb"):
        module = pytest.importorskip(name)
        assert len(module.read_parquet(files)) == len(frame)


def test_the_same_run_gives_the_same_bytes(tmp_path, spec):
    found = []
    for name in ("a", "b"):
        store = Store.create(tmp_path / name, {})
        compute(store, Bench(), [spec])
        found.append(contents(store.path))
    assert found[0] == found[1]


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _flip(data: bytes) -> bytes:
    return data[:200] + bytes([data[200] ^ 255]) + data[201:]


@pytest.mark.parametrize("damage", [_cut, _flip, lambda data: b"", lambda data: b"junk" * 50])
def test_a_damaged_file_is_set_aside_and_computed_again(store, spec, damage):
    compute(store, BENCH, [spec])
    before = contents(store.path)
    path = store.path / "runs" / f"{spec.key}.parquet"
    path.write_bytes(damage(path.read_bytes()))
    reporter = Notes()
    execute(store, [spec], HereBackend(), reporter)
    [note] = reporter.notes
    assert note.startswith(f"{path}: damaged: ")
    assert "set aside in" in note
    [kept] = (store.path / "damaged").iterdir()
    assert kept.name.endswith(path.name)
    assert contents(store.path) == before


@pytest.mark.parametrize(
    ("version", "expected"),
    [(2, "by a newer version of"), (0, "by an older version of"), ("x", "damaged: schema_version")],
)
def test_stores_of_other_versions_say_so(store, version, expected):
    marker = store.path / "store.json"
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"schema_version": version}))
    with pytest.raises(ConfigurationError, match=expected):
        Store.create(store.path, {})


def test_a_run_of_another_version_in_the_store_stops_it_unharmed(store, spec, monkeypatch):
    monkeypatch.setattr("scenarios.store.run_file.SCHEMA_VERSION", 2)
    compute(store, BENCH, [spec])
    monkeypatch.undo()
    before = contents(store.path)
    with pytest.raises(ConfigurationError, match="written by a newer version"):
        execute(store, [spec], HereBackend(), SweepReporter())
    assert contents(store.path) == before


def test_mixed_stores_are_refused(store, tmp_path):
    with pytest.raises(
        ConfigurationError, match=r"told apart by nothing; these would be by n \(int"
    ):
        Store.create(store.path, {"n": "int64"})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("precious")
    with pytest.raises(ConfigurationError, match=r"not a straggler store: store.json is missing"):
        Store.create(tmp_path / "other", {})
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("where", ["/proc/nowhere", "/dev/null/store"])
def test_a_directory_that_can_not_be_written(where):
    with pytest.raises(ConfigurationError, match="cannot use as a store"):
        Store.create(where, {})


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_told_and_nothing_is_lost(store):
    first, second = small_specs()
    compute(store, BENCH, [first])
    before = contents(store.path)

    partial = f".{second.key}.parquet.{os.getpid()}-{threading.get_ident()}.partial"
    (store.path / "runs" / partial).symlink_to("/dev/full")  # takes no byte: ENOSPC
    with pytest.raises(ConfigurationError, match=f"{second.key}.*cannot write: No space left"):
        compute(store, BENCH, [second])
    assert contents(store.path) == before
    assert not list((store.path / "runs").glob(".*"))  # no partial file takes the room that is left
    assert not list((store.path / "claims").iterdir())
    assert compute(store, BENCH, [second])[0].kind == "done"


# -- status -----------------------------------------------------------------------------------


def test_status_of_each_run(store):
    wanted = small_specs(seeds=2)
    store.plan(wanted)
    assert [row["key"] for row in store.wanted()] == [spec.key for spec in wanted]
    compute(store, BENCH, [wanted[0]])
    store.fail(wanted[1], "no such luck")
    held = store.claim(wanted[2].key)
    assert [store.status(spec.key).value for spec in wanted] == [
        "done", "failed", "running", "missing",
    ]  # fmt: skip
    assert store.error(wanted[1].key) == "no such luck"
    assert held is not None
    held.release()
    assert store.status(wanted[2].key) is Status.MISSING


def test_a_failure_is_recorded_others_go_on_and_it_can_be_tried_again(store, monkeypatch):
    wanted = small_specs()
    real = Bench._compute

    def broken(bench, party, *rest):
        if party[0].method.name == "rennala-sgd":
            raise RuntimeError("the environment fell over\nand broke")
        return real(bench, party, *rest)

    monkeypatch.setattr(Bench, "_compute", broken)
    tally = execute(store, wanted, HereBackend(), SweepReporter())
    assert [(spec.method.name, error) for spec, error in tally.failures] == [
        ("rennala-sgd", "RuntimeError: the environment fell over")
    ]
    assert tally.done == 1
    monkeypatch.undo()
    again = execute(store, wanted, HereBackend(), SweepReporter())
    assert (again.done, again.skipped, len(again.failures)) == (1, 1, 1)
    again = execute(store, wanted, HereBackend(), SweepReporter(), retry=True)
    assert (again.done, again.skipped, again.failures) == (2, 1, ())


def test_a_diverged_run_is_done_and_says_so(store):
    [spec, _] = small_specs(methods__0__stepsize=1e30)
    assert compute(store, BENCH, [spec])[0].kind == "done"
    assert store.read(spec.key).row.error.startswith("diverged: ")


# -- claims -----------------------------------------------------------------------------------


def gone_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_claim_is_exclusive_until_released(tmp_path):
    path = tmp_path / "run.json"
    mine = claim(path)
    assert mine is not None
    assert claim(path) is None
    mine.release()
    assert claim(path) is not None


def test_claims_of_runs_that_were_kept_before_a_kill_are_cleared(tmp_path):
    store = Store.create(tmp_path / "store", {})
    store.claim("mine")
    store.claim("killed")
    left = store.path / "claims" / "killed.json"
    left.write_text(json.dumps(json.loads(left.read_text()) | {"pid": gone_process()}))
    store.clear_stale_claims()
    assert [path.name for path in (store.path / "claims").iterdir()] == ["mine.json"]


def test_a_claim_that_somebody_else_removed_first_is_released_all_the_same(tmp_path):
    path = tmp_path / "run.json"
    mine = claim(path)
    path.unlink()
    mine.release()
    assert claim(path) is not None


def test_claims_of_processes_that_are_gone_are_stale(tmp_path):
    path = tmp_path / "run.json"
    claim(path)
    owner = json.loads(path.read_text())
    assert is_held(path)
    for change in ({"pid": gone_process()}, {"born": "12"}):  # the number may be another's now
        path.write_text(json.dumps(owner | change))
        assert not is_held(path)
        assert claim(path) is not None
        assert json.loads(path.read_text()) == owner


def test_claims_of_another_host_hold_while_they_are_touched(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"host": f"not-{platform.node()}", "pid": 1, "born": "1"}))
    assert is_held(path)
    long_ago = time.time() - 7200
    os.utime(path, (long_ago, long_ago))
    assert not is_held(path)


def test_a_torn_claim_holds_for_a_moment_only(tmp_path):
    path = tmp_path / "run.json"
    path.write_text('{"host": ')
    assert is_held(path)
    long_ago = time.time() - 60
    os.utime(path, (long_ago, long_ago))
    assert claim(path) is not None
