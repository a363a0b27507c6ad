"""Running: what is written, what fails alone, what an interrupt keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scenario_data import small

from scenarios import run as run_module
from scenarios.api import Interrupted, Reporter, from_data, run
from scenarios.judging import divergence, evaluation_times, judge
from scenarios.load import parse
from scenarios.schedule_cache import ScheduleCache
from scenarios.schema import EvaluationSection
from simulator.errors import ConfigurationError
from simulator.records import RunDirectory


def scenario(**changes):
    return from_data(small(**changes), "small.toml")


def test_every_method_and_seed_is_written(tmp_path):
    result = run(scenario(seeds=2), out=tmp_path / "run", verify=True)
    assert result.failures == ()
    read = RunDirectory.open(tmp_path / "run")
    pairs = [("rennala-sgd", 0), ("rennala-sgd", 1), ("asynchronous-sgd", 0)]
    assert [(c.method, c.seed) for c in read.curves()] == [*pairs, ("asynchronous-sgd", 1)]
    for curve in read.curves():
        assert curve.seconds.tolist() == [0.0, 2.5, 5.0]
        assert curve.step[-1] == read.schedule(curve.method, curve.seed).n_steps
        assert curve.metrics["loss_gap"][-1] < curve.metrics["loss_gap"][0]
    assert read.metric().name == "loss_gap"


def test_the_resolved_scenario_reproduces_the_run(tmp_path):
    first = run(scenario(seeds=[4]), out=tmp_path / "a").directory
    text = (tmp_path / "a" / "scenario.toml").read_text("utf-8")
    second = run(from_data(parse(text, "a"), "a"), out=tmp_path / "b").directory
    for one, other in zip(first.curves(), second.curves(), strict=True):
        assert one.metrics["loss_gap"].tolist() == other.metrics["loss_gap"].tolist()


def test_executors_agree_in_float64(tmp_path):
    curves = []
    for name in ("sequential", "batched"):
        result = run(scenario(precision="float64"), out=tmp_path / name, executor=name)
        curves.append([c.metrics["loss_gap"] for c in result.directory.curves()])
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-9)


def test_a_problem_that_no_memory_holds(tmp_path):
    with pytest.raises(ConfigurationError, match="problem: does not fit into memory"):
        run(scenario(problem__dimension=10**16), out=tmp_path / "run")


def test_narrowing(tmp_path):
    result = run(scenario(), out=tmp_path, seeds=[7, 3], methods=["asynchronous-sgd"])
    assert [(row.method, row.seed) for row in result.directory.runs()] == [
        ("asynchronous-sgd", 3),
        ("asynchronous-sgd", 7),
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"methods": ["renala-sgd"]}, "has no method 'renala-sgd'. Did you mean 'rennala-sgd'?"),
        ({"methods": []}, "methods"),
        ({"seeds": 0}, "seeds: expected a count from 1"),
        ({"executor": "bached"}, "Did you mean 'batched'?"),
    ],
)
def test_narrowing_refuses_nonsense(tmp_path, arguments, expected):
    with pytest.raises(ConfigurationError, match=expected.replace("?", r"\?")):
        run(scenario(), out=tmp_path / "run", **arguments)
    assert not (tmp_path / "run").exists()


def test_a_step_budget_ends_each_method_at_its_own_time(tmp_path):
    result = run(scenario(budget={"steps": 4}), out=tmp_path)
    ends = [curve.seconds[-1] for curve in result.directory.curves()]
    assert [row.steps for row in result.directory.runs()] == [4, 4]
    assert ends[0] != ends[1]
    assert [row.end_seconds for row in result.directory.runs()] == ends


def test_a_schedule_that_no_seed_changes_is_simulated_once(tmp_path, monkeypatch):
    from scenarios import workshop

    calls = []
    simulate = workshop.simulate
    monkeypatch.setattr(workshop, "SCHEDULES", ScheduleCache())

    def counted(*args, **kwargs):
        calls.append(args[4])
        return simulate(*args, **kwargs)

    monkeypatch.setattr(workshop, "simulate", counted)
    run(scenario(seeds=3), out=tmp_path / "constant")
    assert calls == [0, 0]
    other = scenario(seeds=2, methods__0__stepsize=0.1, name="other", evaluation={"points": 9})
    run(other, out=tmp_path / "other")
    assert calls == [0, 0]
    run(scenario(methods__0__batch_size=3), out=tmp_path / "batch")
    assert calls == [0, 0, 0]
    model = {"kind": "distribution", "name": "expon"}
    calls.clear()
    run(scenario(seeds=2, fleet__compute__model=model), out=tmp_path / "random")
    assert calls == [0, 0, 1, 1]


def test_a_method_that_diverges_keeps_its_nan_and_the_others_go_on(tmp_path):
    data = small(budget={"steps": 200})
    data["methods"][0]["stepsize"] = 1e6
    result = run(from_data(data, "small.toml"), out=tmp_path)
    [failure] = result.failures
    assert (failure.method, failure.seed) == ("rennala-sgd", 0)
    assert failure.text.startswith("diverged: not a finite number any more at ")
    bad, good = result.directory.curves()
    assert math.isnan(bad.metrics["loss_gap"][-1])
    assert math.isfinite(bad.metrics["loss_gap"][0])
    assert math.isfinite(good.metrics["loss_gap"][-1])
    assert result.directory.runs("rennala-sgd")[0].error == failure.text


def test_a_method_that_stalls_fails_alone(tmp_path):
    data = small(fleet__compute=[1.0, 1.0, math.inf], budget={"steps": 3})
    data["methods"].append({"id": "synchronous-sgd", "stepsize": 0.1})
    result = run(from_data(data, "small.toml"), out=tmp_path)
    [failure] = result.failures
    assert failure.method == "synchronous-sgd"
    assert "no further step can complete; it waits for worker 2, whose work never" in failure.text
    assert [row.method for row in result.directory.runs() if not row.error] == [
        "rennala-sgd",
        "asynchronous-sgd",
    ]


@pytest.mark.parametrize(
    "slow",
    [
        {"fleet__compute": [1.0, 1.0, math.inf]},
        {"network": {"kind": "star", "up": 0.0, "down": [0.0, 0.0, math.inf]}},
    ],
)
def test_waiting_for_ever_while_others_compute_is_refused(tmp_path, slow):
    data = small(**slow, methods=[{"id": "malenia-sgd", "batch_size": 2, "stepsize": 0.1}])
    data["budget"] = {"steps": 3}
    [failure] = run(from_data(data, "small.toml"), out=tmp_path / "steps").failures
    assert "no further step can complete; it waits for worker 2, whose work never" in failure.text
    data["budget"] = {"steps": 3, "seconds": 5}
    result = run(from_data(data, "small.toml"), out=tmp_path / "seconds")
    assert result.failures == ()
    assert result.directory.runs()[0].steps == 0


def test_all_workers_infinitely_slow(tmp_path):
    result = run(scenario(fleet__compute=math.inf), out=tmp_path / "seconds")
    assert result.failures == ()
    for row, curve in zip(result.directory.runs(), result.directory.curves(), strict=True):
        assert row.steps == 0
        assert "no further step can complete" in row.stalled
        assert len(set(curve.metrics["loss_gap"].tolist())) == 1
    slow = scenario(fleet__compute=math.inf, budget={"gradients": 5})
    result = run(slow, out=tmp_path / "gradients")
    assert ["never finishes" in failure.text for failure in result.failures] == [True, True]


def test_an_environment_that_raises_fails_alone(tmp_path, monkeypatch):
    def explode(self, seed):
        raise ZeroDivisionError("the pole\nbroke") if seed == 1 else MemoryError

    from scenarios.problems.quadratics import QuadraticOracle

    monkeypatch.setattr(QuadraticOracle, "initial_point", explode)
    result = run(scenario(seeds=2), out=tmp_path, methods=["rennala-sgd"])
    assert [failure.text for failure in result.failures] == [
        "out of memory",
        "ZeroDivisionError: the pole",
    ]


class PressCtrlC(Reporter):
    """Interrupts while some (method, seed) is in a phase."""

    def __init__(self, what: str, phase: str) -> None:
        self.when = (what, phase)

    def doing(self, what: str, trials: int, phase: str, fraction: float) -> None:
        if (what, phase) == self.when and fraction >= 0.4:
            raise KeyboardInterrupt


def test_ctrl_c_keeps_what_is_done(tmp_path):
    reporter = PressCtrlC("asynchronous-sgd seed 1", "training")
    with pytest.raises(Interrupted) as caught:
        run(scenario(seeds=3), out=tmp_path, reporter=reporter)
    assert str(caught.value) == (
        f"3 finished runs are in {tmp_path}; asynchronous-sgd seed 1 as far as 2.5 of 5 "
        "simulated seconds"
    )
    read = RunDirectory.open(tmp_path)
    assert [row.error for row in read.runs()] == [
        "",
        "",
        "",
        "interrupted at 2.5 of 5 simulated seconds",
    ]
    assert [len(curve.seconds) for curve in read.curves()] == [3, 3, 3, 2]


def test_ctrl_c_keeps_every_curve_of_a_batch_as_far_as_it_got(tmp_path):
    reporter = PressCtrlC("asynchronous-sgd, 3 seeds", "training")
    with pytest.raises(Interrupted, match=r"3 finished runs .*; asynchronous-sgd seed 0 as far as"):
        run(scenario(seeds=3, executor="compiled"), out=tmp_path, reporter=reporter)
    read = RunDirectory.open(tmp_path)
    assert [row.error[:11] for row in read.runs()] == [""] * 3 + ["interrupted"] * 3
    assert [len(curve.seconds) for curve in read.curves()] == [3, 3, 3, 2, 1, 1]


def test_ctrl_c_while_judging_loses_nothing(tmp_path, monkeypatch):
    judge_once = [KeyboardInterrupt]

    def interrupted(*args):
        if judge_once:
            raise judge_once.pop()
        return judge(*args)

    monkeypatch.setattr("scenarios.trial.judge", interrupted)
    with pytest.raises(Interrupted, match="2 finished runs are in"):
        run(scenario(seeds=2, executor="compiled"), out=tmp_path)
    read = RunDirectory.open(tmp_path)
    assert [(row.method, row.error) for row in read.runs()] == [("rennala-sgd", "")] * 2
    assert [len(curve.seconds) for curve in read.curves()] == [3, 3]


def test_ctrl_c_while_simulating_drops_that_one(tmp_path, monkeypatch):
    def interrupted(self, method, seed, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module.Workshop, "schedule", interrupted)
    with pytest.raises(Interrupted, match=r"0 finished runs .* rennala-sgd seed 0 was dropped"):
        run(scenario(), out=tmp_path)
    assert RunDirectory.open(tmp_path).runs() == []


LENGTHS = {
    "problem": {
        "kind": "environment",
        "environment": "phys2d/CartPole-v1",
        "horizon": 30,
        "hidden": [4],
    },
    "fleet__timing": "environment-step",
    "fleet__compute": 0.1,
    "evaluation": {"points": 3, "episodes": 2},
}


def test_timing_by_environment_step_reports_the_bias_it_makes(tmp_path):
    data = small(**LENGTHS, budget={"seconds": 20})
    result = run(from_data(data, "small.toml"), out=tmp_path, verify=True, methods=["rennala-sgd"])
    assert result.failures == ()
    [row] = result.directory.runs()
    schedule = result.directory.schedule("rennala-sgd", 0)
    used = schedule.status == 1
    lengths = (schedule.stop_seconds - schedule.start_seconds)[used] / 0.1
    assert row.mean_length_used == pytest.approx(lengths.mean())
    assert row.mean_length_used < row.mean_length_started


def test_timing_by_environment_step_where_each_takes_one_step(tmp_path):
    curves = []
    for timing, budget in (("trajectory", {"seconds": 5}), ("environment-step", {"seconds": 5}),
                           ("environment-step", {"seconds": 5, "steps": 1000})):  # fmt: skip
        data = small(fleet__timing=timing, precision="float64", budget=budget)
        result = run(from_data(data, "small.toml"), out=tmp_path / str(len(curves)))
        curves.append([curve.metrics["loss_gap"] for curve in result.directory.curves()])
    np.testing.assert_allclose(curves[1], curves[0], rtol=1e-9)
    np.testing.assert_allclose(curves[2], curves[0], rtol=1e-9)


def test_nothing_is_written_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = [str(run(scenario()).directory.path) for _ in range(3)]
    assert places == ["runs/small", "runs/small-2", "runs/small-3"]
    with pytest.raises(ConfigurationError, match="holds an earlier run, which is never"):
        run(scenario(), out="runs/small")


def test_a_directory_that_can_not_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way", "utf-8")
    with pytest.raises(ConfigurationError, match="file"):
        run(scenario(), out=tmp_path / "file" / "run")


def test_evaluation_times():
    def times(end, **section):
        return evaluation_times(EvaluationSection(**section), end).tolist()

    assert times(4.0, points=3) == [0.0, 2.0, 4.0]
    assert times(1.0, every_seconds=0.4) == [0.0, 0.4, 0.8, 1.0]
    assert times(1.0, every_seconds=0.5) == [0.0, 0.5, 1.0]
    assert times(1.0, every_seconds=7.0) == [0.0, 1.0]
    assert times(0.0, points=3) == [0.0]
    with pytest.raises(ConfigurationError, match=r"= 1e-06: expected at least 0\.001"):
        times(100.0, every_seconds=1e-6)


class Norms:
    """A problem whose metric is the sum of a point, however odd the point."""

    def __init__(self) -> None:
        from scenarios.problems.problem import LOSS_GAP

        self.metrics = (LOSS_GAP,)

    def evaluate(self, points, seed):
        assert np.isfinite(points).all()
        return {"loss_gap": points.sum(axis=1)}


def test_points_that_are_not_finite_are_not_judged():
    points = np.array([[1.0, 2.0], [np.nan, 0.0], [np.inf, 0.0], [1e308, 1e308]])
    values = judge(Norms(), points, 0)["loss_gap"].tolist()
    assert values[0] == 3.0
    assert np.isnan(values[1:]).all()
    assert np.isnan(judge(Norms(), points[1:2], 0)["loss_gap"]).all()


def test_divergence_says_since_when(tmp_path):
    [curve, _] = run(scenario(), out=tmp_path).directory.curves()
    assert divergence(curve) == ""
    curve.metrics["loss_gap"][1:] = np.nan
    assert divergence(curve).startswith("diverged: not a finite number any more at 2.5 simulated")
