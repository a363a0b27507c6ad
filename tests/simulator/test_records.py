import json
import math
import os
import stat
from dataclasses import fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import parquet
from simulator.errors import ConfigurationError
from simulator.records import (
    SCHEMA_VERSION,
    Curve,
    MethodRecord,
    Metric,
    RunDirectory,
    RunRow,
    Shares,
    installed_versions,
    is_run,
)
from simulator.schedule import Schedule, Status

METRICS = (Metric("return", "Return", "", True), Metric("loss", "Loss gap", "J", False, 0.1))
METHODS = (
    MethodRecord("slow", "Slow method", "synchronous", "sgd"),
    MethodRecord("a/b: ..", "Odd name", "rennala", "nigt"),
)
SHARES = Shares(0.3, 0.35, 0.25, 0.0, 0.1)


def make_schedule(**changes):
    """Two workers, one step of two gradients at 2 s; a discarded, a cancelled, an unfinished."""
    columns = {
        "n_workers": 2,
        "end_seconds": 5.0,
        "worker": np.array([0, 1, 0, 1, 0], np.int32),
        "k": np.array([0, 0, 1, 1, 2], np.int32),
        "version": np.array([0, 0, 0, 1, 1], np.int32),
        "start_seconds": np.array([0, 0, 1, 2, 2.5]),
        "stop_seconds": np.array([1, 2, 2.5, 4, np.inf]),
        "status": np.array([1, 1, 2, 3, 0], np.int8),
        "step": np.array([0, 0, -1, -1, -1], np.int32),
        "weight": np.array([0.5, 0.5, 0, 0, 0]),
        "step_seconds": np.array([2.0]),
        "close_seconds": np.array([2.0]),
        "uploads": np.array([2], np.int64),
        "message_worker": np.zeros(0, np.int32),
        "message_direction": np.zeros(0, np.int8),
        "message_sent_seconds": np.zeros(0),
        "message_received_seconds": np.zeros(0),
        "stalled": "why ü",
    }
    return Schedule(**(columns | changes))


def arrays_of_schedule():
    return {k: v for k, v in vars(make_schedule()).items() if isinstance(v, np.ndarray)}


def make_curve(method="slow", seed=0, values=(1.0, math.nan, 3.0)):
    return Curve.of(
        method, seed, make_schedule(), [0.0, 2.0, 5.0], {"return": values, "loss": values}
    )


def create(path, **changes):
    arguments = {"name": "test", "scenario": "x = 1\r\n", "metrics": METRICS, "methods": METHODS}
    return RunDirectory.create(path, **(arguments | changes))


def make_run(path, keys=(("a/b: ..", 1), ("slow", 10), ("slow", 2))):
    run = create(path)
    for method, seed in keys:
        row = RunRow.of(method, seed, make_schedule(), SHARES, wall_seconds=0.5)
        run.write(row, make_curve(method, seed), make_schedule())
    return run


def assert_same_schedule(left, right):
    for item in fields(Schedule):
        a, b = getattr(left, item.name), getattr(right, item.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes()
        else:
            assert (type(a), a) == (type(b), b)


def test_a_curve_counts_what_the_schedule_says():
    curve = Curve.of("slow", 0, make_schedule(), [0, 1, 1.9, 2, 2.5, 5], {})
    assert curve.step.tolist() == [0, 0, 0, 1, 1, 1]
    assert curve.gradients.tolist() == [0, 0, 0, 2, 2, 2]
    assert curve.computed.tolist() == [0, 1, 1, 2, 3, 3]  # the cancelled one never finished
    assert curve.communications.tolist() == [0, 0, 0, 2, 2, 2]


def test_a_curve_of_a_run_without_steps():
    empty = {name: array[:0] for name, array in arrays_of_schedule().items()}
    curve = Curve.of("slow", 0, make_schedule(**empty, end_seconds=0.0), [0.0], {"loss": [1.0]})
    assert (curve.step, curve.gradients, curve.computed, curve.communications) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("seconds", "values", "text"),
    [([0, 2, 1], [1, 2, 3], "seconds falls"), ([0, 1], [1, 2, 3], "loss has shape")],
)
def test_a_curve_refuses_nonsense(seconds, values, text):
    with pytest.raises(ValueError, match=text):
        Curve.of("slow", 0, make_schedule(), seconds, {"loss": values})


def test_what_is_written_is_read(tmp_path):
    make_run(tmp_path / "new" / "run")
    run = RunDirectory.open(tmp_path / "new" / "run")
    assert (run.name, run.metrics, run.methods) == ("test", METRICS, METHODS)
    assert run.scenario() == "x = 1\r\n"
    assert run.versions() == installed_versions()
    keys = [("slow", 2), ("slow", 10), ("a/b: ..", 1)]
    assert [(row.method, row.seed) for row in run.runs()] == keys
    assert [(curve.method, curve.seed) for curve in run.curves()] == keys
    assert [curve.seed for curve in run.curves("slow")] == [2, 10]
    row = run.runs("a/b: ..")[0]
    assert (row.used, row.discarded, row.cancelled, row.in_flight) == (2, 1, 1, 1)
    assert (row.steps, row.end_seconds, row.stalled, row.error) == (1, 5.0, "why ü", "")
    assert row.shares == SHARES
    assert math.isnan(row.mean_length_used)
    written, read = make_curve("slow", 2), run.curves("slow")[0]
    for name in ("seconds", "step", "gradients", "computed", "communications"):
        assert getattr(read, name).dtype == getattr(written, name).dtype
        np.testing.assert_array_equal(getattr(read, name), getattr(written, name))
    np.testing.assert_array_equal(read.metrics["loss"], written.metrics["loss"])
    assert_same_schedule(run.schedule("a/b: ..", 1), make_schedule())


def test_other_readers_find_labels_beside_numbers(tmp_path):
    make_run(tmp_path)
    table = pq.read_table(tmp_path / "runs.parquet")
    assert table.column("label").to_pylist() == ["Slow method", "Slow method", "Odd name"]
    assert table.column("coordinator").to_pylist()[-1] == "rennala"
    assert pq.read_table(tmp_path / "curves.parquet").column_names == [
        *("method", "label", "seed", "seconds", "step", "gradients", "computed"),
        *("communications", "return", "loss"),
    ]


@settings(max_examples=25, deadline=None)
@given(
    data=st.data(),
    n=st.integers(0, 30),
    stalled=st.text(st.characters(exclude_categories=["Cs"])),
    end=st.floats(0, allow_nan=False),
)
def test_schedules_round_trip_to_the_bit(tmp_path_factory, data, n, stalled, end):
    columns = {
        name: np.frombuffer(data.draw(st.binary(min_size=8 * n, max_size=8 * n)), like.dtype)[:n]
        for name, like in arrays_of_schedule().items()
    }
    schedule = Schedule(n_workers=7, end_seconds=end, stalled=stalled, **columns)
    path = tmp_path_factory.mktemp("schedule") / "x--seed0"
    parquet.write_schedule(path, schedule)
    assert_same_schedule(parquet.read_schedule(path), schedule)


def test_the_same_input_gives_the_same_bytes(tmp_path):
    make_run(tmp_path / "one")
    # Another order, and one pair written twice.
    make_run(tmp_path / "two", [("slow", 2), ("slow", 10), ("slow", 2), ("a/b: ..", 1)])
    files = {p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*") if p.is_file()}
    assert len(files) == 5 + 3 * 3
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_each_finished_pair_is_on_disk_at_once(tmp_path):
    run = create(tmp_path)
    assert RunDirectory.open(tmp_path).runs() == []
    run.write(RunRow("slow", 0), make_curve(seed=0))
    assert len(RunDirectory.open(tmp_path).curves()) == 1
    run.write(RunRow("slow", 1, error="it failed"))
    read = RunDirectory.open(tmp_path)
    assert [row.error for row in read.runs()] == ["", "it failed"]
    assert [curve.seed for curve in read.curves()] == [0]


def test_an_interrupted_write_leaves_the_pair_out_and_the_rest_in(tmp_path, monkeypatch):
    run = create(tmp_path)
    run.write(RunRow("slow", 0), make_curve(seed=0))
    real_replace = os.replace

    def interrupt(source, target):
        if str(target).endswith("runs.parquet"):
            raise KeyboardInterrupt
        real_replace(source, target)

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run.write(RunRow("slow", 1), make_curve(seed=1), make_schedule())
    read = RunDirectory.open(tmp_path)
    assert [row.seed for row in read.runs()] == [0]
    assert [curve.seed for curve in read.curves()] == [0]
    assert not [p for p in tmp_path.rglob("*") if "partial" in p.name]


def test_a_run_can_be_opened_and_continued(tmp_path):
    make_run(tmp_path)
    RunDirectory.open(tmp_path).write(RunRow("slow", 3), make_curve(seed=3))
    assert [curve.seed for curve in RunDirectory.open(tmp_path).curves("slow")] == [2, 3, 10]


def test_something_else_is_never_overwritten(tmp_path):
    for name in ("thesis.tex", "data.csv", "b.txt", "c.txt"):
        (tmp_path / name).write_text("precious")
    with pytest.raises(ConfigurationError, match=r"it holds b.txt, c.txt, data.csv \.\.\.$"):
        create(tmp_path, overwrite=True)
    (tmp_path / "record.json").write_text("{}")
    with pytest.raises(ConfigurationError, match="it holds"):
        create(tmp_path, overwrite=True)
    with pytest.raises(ConfigurationError, match="not a straggler run"):
        RunDirectory.open(tmp_path)


def test_an_earlier_run_is_overwritten_only_when_asked(tmp_path):
    make_run(tmp_path)
    (tmp_path / "notes.md").write_text("mine")
    with pytest.raises(ConfigurationError, match="holds an earlier run"):
        create(tmp_path)
    assert is_run(tmp_path)
    assert len(RunDirectory.open(tmp_path).runs()) == 3
    create(tmp_path, overwrite=True)
    assert RunDirectory.open(tmp_path).runs() == []
    assert not list((tmp_path / "schedules").iterdir())
    assert (tmp_path / "notes.md").read_text() == "mine"


def test_a_file_is_not_a_directory(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigurationError, match=r"file: cannot use as a run's directory"):
        create(tmp_path / "file")
    with pytest.raises(ConfigurationError, match="not a straggler run"):
        RunDirectory.open(tmp_path / "nowhere")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_an_unwritable_directory_is_named(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(ConfigurationError, match="Permission denied"):
        create(tmp_path / "run")


def set_column(path, name, values):
    table = pq.read_table(path)
    column = pa.chunked_array([values[: len(table)]])
    pq.write_table(table.set_column(table.column_names.index(name), name, column), path)


DAMAGE = {
    "missing": lambda path: path.unlink(),
    "damaged: .*size": lambda path: path.write_bytes(b""),
    "damaged: .*footer": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "damaged: .*magic": lambda path: path.write_text("method,seed\n"),
    "expected one column": lambda path: pq.write_table(pa.table({"other": [1]}), path),
    "column 'seed' holds string": lambda path: set_column(path, "seed", ["x"] * 9),
    "'seed' has empty cells": lambda path: set_column(path, "seed", pa.nulls(9, pa.int64())),
    "method 'other' is not in": lambda path: set_column(path, "method", ["other"] * 9),
}


@pytest.mark.parametrize("name", ["runs.parquet", "curves.parquet"])
@pytest.mark.parametrize("text", DAMAGE)
def test_damaged_files_are_named(tmp_path, name, text):
    make_run(tmp_path)
    DAMAGE[text](tmp_path / name)
    with pytest.raises(ConfigurationError, match=f"{name}: .*{text}|{name}: {text}"):
        RunDirectory.open(tmp_path)


@settings(max_examples=100, deadline=None)
@given(position=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255), data=st.data())
def test_a_flipped_byte_is_an_error_or_harmless(tmp_path_factory, position, mask, data):
    path = tmp_path_factory.mktemp("flip")
    make_run(path, [("slow", 0)])
    name = data.draw(st.sampled_from(["runs.parquet", "curves.parquet"]))
    content = bytearray((path / name).read_bytes())
    content[int(position * len(content))] ^= mask
    (path / name).write_bytes(bytes(content))
    message = name
    try:
        RunDirectory.open(path).curves()
    except ConfigurationError as error:
        message = str(error)
    assert name in message


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000, '{"format": "straggler-run"}'])
def test_a_damaged_header_is_named(tmp_path, text):
    make_run(tmp_path)
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(ConfigurationError, match=r"record.json: damaged"):
        RunDirectory.open(tmp_path)


def change_header(path, **changes):
    header = json.loads((path / "record.json").read_text())
    (path / "record.json").write_text(json.dumps(header | changes))


@pytest.mark.parametrize(
    "changes", [{"metrics": []}, {"methods": 3}, {"metrics": [{"a": 1}]}, {"schema_version": "1"}]
)
def test_a_senseless_header_is_named(tmp_path, changes):
    make_run(tmp_path)
    change_header(tmp_path, **changes)
    with pytest.raises(ConfigurationError, match=r"record.json: damaged"):
        RunDirectory.open(tmp_path)


def test_a_newer_schema_says_so(tmp_path):
    make_run(tmp_path)
    change_header(tmp_path, schema_version=SCHEMA_VERSION + 1, methods="unknown to us")
    with pytest.raises(ConfigurationError, match=r"newer straggler \(schema_version = 2"):
        RunDirectory.open(tmp_path)


def test_a_schedule_not_kept_is_named(tmp_path):
    run = make_run(tmp_path)
    with pytest.raises(ConfigurationError, match=r"slow--seed77.computations.parquet: missing"):
        run.schedule("slow", 77)
    (tmp_path / "schedules" / "slow--seed2" / "steps.parquet").write_bytes(b"PAR1")
    with pytest.raises(ConfigurationError, match=r"slow--seed2.steps.parquet: damaged"):
        run.schedule("slow", 2)


def test_an_unknown_metric_suggests_the_nearest(tmp_path):
    run = make_run(tmp_path)
    assert run.metric() == METRICS[0]
    assert run.metric("loss") == METRICS[1]
    with pytest.raises(ConfigurationError, match=r"metric = 'los'.*Did you mean 'loss'"):
        run.metric("los")


@pytest.mark.parametrize(
    "changes",
    [
        {"metrics": ()},
        {"metrics": (METRICS[0], METRICS[0])},
        {"metrics": (replace(METRICS[0], name="seconds"),)},
        {"methods": (METHODS[0], METHODS[0])},
    ],
)
def test_names_must_be_distinct(tmp_path, changes):
    with pytest.raises(ValueError, match="expected distinct"):
        create(tmp_path, **changes)


def test_rows_that_do_not_belong_are_refused(tmp_path):
    run = create(tmp_path)
    with pytest.raises(ValueError, match="not one of this run's"):
        run.write(RunRow("other", 0))
    with pytest.raises(ValueError, match="curve of slow seed 1"):
        run.write(RunRow("slow", 0), make_curve(seed=1))
    with pytest.raises(ValueError, match="has metrics"):
        run.write(RunRow("slow", 0), replace(make_curve(), metrics={}))


def test_status_names_are_the_columns_of_a_row():
    assert {status.name.lower() for status in Status} <= {item.name for item in fields(RunRow)}
