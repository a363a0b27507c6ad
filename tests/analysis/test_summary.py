import math

import pytest
from analysis_data import LOSS, curve, write_run

from analysis.summary import summarise
from simulator.errors import ConfigurationError
from simulator.records import MethodRecord, Metric, RunDirectory, RunRow

TIMES = [0, 1, 2]


def test_rows_hold_what_the_seeds_did(tmp_path):
    run = write_run(
        tmp_path / "run",
        {
            "slow": {s: (TIMES, [0, 1, 10 + s]) for s in range(3)},
            "quick": {0: (TIMES, [0, 100, 80]), 1: (TIMES, [0, 90, 100])},
        },
    )
    table = summarise(run.path)
    assert [row.method for row in table.rows] == ["slow", "quick"]
    assert (table.target, table.target_is_default) == (pytest.approx(81), True)
    slow, quick = table.rows
    assert (slow.label, slow.n_seeds, slow.n_failed) == ("Slow", 3, 0)
    assert slow.final == pytest.approx((11, 10.4, 11.6))
    assert (slow.used, slow.steps) == (101, 10)
    assert slow.seconds_to_target == (math.inf, math.inf, math.inf)
    assert slow.n_reached == 0
    assert quick.final.median == 90
    assert quick.best.median == 100
    assert quick.seconds_to_target == (1, 1, 1)
    assert quick.n_reached == 2


def test_targets_the_callers_before_the_metrics_before_the_default(tmp_path):
    data = {"a": {0: (TIMES, [8, 4, 2])}}
    named = write_run(tmp_path / "named", data, Metric("gap", "Gap", "", False, target=3.0))
    assert summarise(named).target == 3.0
    assert not summarise(named).target_is_default
    assert summarise(named).rows[0].seconds_to_target.median == 2
    assert summarise(named, target=4.0).rows[0].seconds_to_target.median == 1
    assert summarise(write_run(tmp_path / "loss", data, LOSS)).target == pytest.approx(2.6)


def test_no_target_no_time(tmp_path):
    table = summarise(write_run(tmp_path / "run", {"a": {0: (TIMES, [3, 2, 1])}}))
    assert math.isnan(table.target)
    assert math.isnan(table.rows[0].seconds_to_target.median)


def test_half_the_seeds_reach_the_target(tmp_path):
    data = {"a": {0: (TIMES, [0, 9, 9]), 1: (TIMES, [0, 1, 9]), 2: (TIMES, [0, 0, 0])}}
    row = summarise(write_run(tmp_path / "run", data), target=9).rows[0]
    assert row.n_reached == 2
    assert row.seconds_to_target.median == 2
    assert row.seconds_to_target.high == math.inf


def test_failures_are_counted_and_told(tmp_path):
    methods = [MethodRecord(m, m, "c", "u") for m in ("fails", "diverges", "never-ran")]
    run = RunDirectory.create(
        tmp_path / "run", name="x", scenario="", metrics=[LOSS], methods=methods
    )
    run.write(RunRow("fails", 0, error="out of memory"))
    run.write(RunRow("fails", 1, error="out of memory"))
    shares = {"useful_share": 0.25, "idle_share": 0.75}
    for seed, values in enumerate([[4, 2, 1], [4, math.nan, math.nan], [4, math.nan, math.nan]]):
        row = RunRow(
            "diverges",
            seed,
            used=seed,
            mean_length_used=1.0,
            mean_length_started=2.0,
            error="diverged" if seed else "",
            stalled="nobody left",
            **shares,
        )
        run.write(row, curve("diverges", seed, TIMES, {"loss_gap": values}))
    table = summarise(run)
    fails, diverges = table.rows
    assert (fails.n_seeds, fails.n_failed, fails.errors) == (0, 2, ("out of memory",))
    assert math.isnan(fails.final.median)
    assert math.isnan(fails.used)
    assert (diverges.n_seeds, diverges.n_failed) == (3, 2)
    assert math.isnan(diverges.final.median)  # most of its seeds diverged
    assert diverges.final.low == pytest.approx(math.nan, nan_ok=True)
    assert diverges.best.median == 4
    assert (diverges.used, diverges.length_bias, diverges.stalled) == (1, 0.5, ("nobody left",))
    assert diverges.shares.useful == 0.25


def test_lengths_of_zero_have_no_bias(tmp_path):
    run = RunDirectory.create(
        tmp_path, name="x", scenario="", metrics=[LOSS], methods=[MethodRecord("a", "a", "c", "u")]
    )
    row = RunRow("a", 0, mean_length_used=0.0, mean_length_started=0.0)
    run.write(row, curve("a", 0, TIMES, {"loss_gap": TIMES}))
    assert math.isnan(summarise(run).rows[0].length_bias)


def test_an_unknown_metric_is_refused(tmp_path):
    run = write_run(tmp_path / "run", {"a": {0: (TIMES, TIMES)}})
    with pytest.raises(ConfigurationError, match="Did you mean 'return'"):
        summarise(run, metric="retrun")
