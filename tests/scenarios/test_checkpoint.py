"""Stopped anywhere and gone on from its checkpoint, a run gives the bytes it would have given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scenario_data import small

from scenarios.api import Interrupted, Reporter, run
from scenarios.checkpoint import FileKeeper, run_resumably
from scenarios.compose import build_problem
from scenarios.load import from_data
from scenarios.trial import Trial
from scenarios.workshop import Workshop
from simulator.errors import ConfigurationError
from simulator.executors import compiled_replicas
from simulator.precision import precision


class Killed(BaseException):
    """As sudden as SIGKILL, as far as a run can tell."""


class DyingKeeper(FileKeeper):
    """Keeps every checkpoint it is offered, and dies of the last."""

    def __init__(self, path: Path, lives: int) -> None:
        super().__init__(path, "this run", every_seconds=0)
        self.lives = lives

    def offer(self, make):
        super().offer(make)
        self.lives -= 1
        if not self.lives:
            raise Killed


def trial_of(workshop: Workshop, name: str) -> Trial:
    [method] = [m for m in workshop.scenario.methods if m.name == name]
    return Trial(workshop, method, seed=3)


def outcome(trial: Trial) -> list[bytes]:
    curve, row = trial.curve(), trial.row(0.0)
    columns = [curve.seconds, curve.step, *curve.metrics.values()]
    return [*(column.tobytes() for column in columns), repr(row).encode()]


def ignore(phase: str, fraction: float) -> None:
    del phase, fraction


METHODS = [
    {"id": "rennala-nigt", "batch_size": 3, "stepsize": 0.1, "momentum": 0.3},
    {"id": "asynchronous-sgd", "stepsize": 0.05},
    {"name": "buffered", "coordinator": "buffered", "update": "optax.adam", "buffer_size": 2,
     "stepsize": 0.05},
]  # fmt: skip
ENVIRONMENT = {"kind": "environment", "environment": "phys2d/CartPole-v1", "horizon": 12}
HOST = {"kind": "environment", "environment": "CartPole-v1", "horizon": 6}
CASES = {
    "sequential": {"executor": "sequential"},
    "batched": {"executor": "batched"},
    "compiled": {"executor": "compiled"},
    "compiled policies": {"executor": "compiled", "problem": ENVIRONMENT, "methods": METHODS[1:2]},
    "host": {"executor": "batched", "problem": HOST},
    "live": {"fleet__timing": "environment-step", "problem": ENVIRONMENT,
             "methods": METHODS[:2], "budget": {"seconds": 120}},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_stopped_and_resumed_is_undisturbed_byte_for_byte(tmp_path, case, monkeypatch):
    for name in ("_MOST_BLOCKS", "_FEWEST_BLOCKS", "_LONGEST_STRIP"):  # many short calls
        monkeypatch.setattr(compiled_replicas, name, 1)
    changes = {"methods": METHODS, "budget": {"seconds": 9}}
    evaluation = {"evaluation": {"points": 8, "episodes": 2}}
    scenario = from_data(small(**(changes | evaluation | CASES[case])), case)
    with precision(scenario.precision):
        workshop = Workshop(scenario, build_problem(scenario))
        for method in scenario.methods:
            undisturbed = trial_of(workshop, method.name)
            undisturbed.run(ignore)
            for lives in (1, 4):
                path = tmp_path / f"{method.name}-{lives}.npz"
                with pytest.raises(Killed):
                    trial_of(workshop, method.name).run(ignore, DyingKeeper(path, lives))
                assert path.exists()
                resumed = trial_of(workshop, method.name)
                resumed.run(ignore, FileKeeper(path, "this run"))
                assert outcome(resumed) == outcome(undisturbed)


def test_a_resumed_run_computes_only_the_rest(tmp_path, monkeypatch):
    scenario = from_data(small(executor="sequential", evaluation={"points": 6}), "small")
    with precision(scenario.precision):
        workshop = Workshop(scenario, build_problem(scenario))
        path = tmp_path / "run.npz"
        with pytest.raises(Killed):
            trial_of(workshop, "rennala-sgd").run(ignore, DyingKeeper(path, 3))
        before = [0, 1, 2]
        seen = []
        monkeypatch.setattr(Trial, "take", lambda trial, snapshot: seen.append(snapshot.version))
        resumed = trial_of(workshop, "rennala-sgd")
        resumed.run(ignore, FileKeeper(path, "this run"))
    assert resumed._reached == before  # what was judged before comes from the file
    assert resumed.schedule is not None
    assert seen[0] > before[-1]
    assert seen[-1] == resumed.schedule.n_steps


@pytest.mark.parametrize("what", ["damaged", "of another run", "of another schedule", "incomplete"])
def test_a_checkpoint_that_does_not_fit_is_not_used(tmp_path, what):
    scenario = from_data(small(executor="sequential", evaluation={"points": 6}), "small")
    path = tmp_path / "run.npz"
    with precision(scenario.precision):
        workshop = Workshop(scenario, build_problem(scenario))
        undisturbed = trial_of(workshop, "rennala-sgd")
        undisturbed.run(ignore)
        with pytest.raises(Killed):
            trial_of(workshop, "rennala-sgd").run(ignore, DyingKeeper(path, 3))
        keeper = FileKeeper(path, "this run")
        if what == "damaged":
            path.write_bytes(path.read_bytes()[:-40])
        elif what == "of another run":
            keeper = FileKeeper(path, "another run")
        else:
            with np.load(path) as file:
                arrays = dict(file)
            if what == "incomplete":
                del arrays["judged_points"]
            else:
                arrays["schedule"] = np.array("0" * 64)
            np.savez(path, **arrays)
        resumed = trial_of(workshop, "rennala-sgd")
        run_resumably(resumed, ignore, keeper)
    assert outcome(resumed) == outcome(undisturbed)


def test_a_short_run_writes_no_checkpoint(tmp_path):
    keeper = FileKeeper(tmp_path / "run.npz", "this run")
    keeper.offer(lambda: pytest.fail("asked for a checkpoint"))
    assert keeper.load() is None


def test_no_room_for_a_checkpoint_is_told(tmp_path):
    (tmp_path / "in-the-way").write_text("")
    keeper = FileKeeper(tmp_path / "in-the-way" / "run.npz", "this run", every_seconds=0)
    with pytest.raises(ConfigurationError, match="cannot write: "):
        keeper.offer(lambda: {"a": np.zeros(2)})


class Stopping(Reporter):
    """Presses Ctrl-C once in the middle of the second run."""

    def doing(self, what, trials, phase, fraction):
        if what == "asynchronous-sgd seed 0" and phase == "training" and fraction > 0.5:
            raise KeyboardInterrupt


def test_a_run_that_was_stopped_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("scenarios.checkpoint.EVERY_SECONDS", 0.0)
    scenario = from_data(small(seeds=2, evaluation={"points": 6}), "small")
    whole = run(scenario, out=tmp_path / "whole").directory
    with pytest.raises(Interrupted):
        run(scenario, out=tmp_path / "parts", reporter=Stopping())
    [checkpoint] = (tmp_path / "parts" / "checkpoints").iterdir()
    assert checkpoint.name == "asynchronous-sgd--seed0.npz"
    result = run(scenario, out=tmp_path / "parts", resume=True)
    assert not result.failures
    assert not checkpoint.parent.exists()
    for name in ("curves.parquet", "scenario.toml"):
        assert (tmp_path / "parts" / name).read_bytes() == (whole.path / name).read_bytes()


def test_going_on_refuses_another_scenario(tmp_path):
    run(from_data(small(), "small"), out=tmp_path / "run")
    other = from_data(small(budget={"seconds": 6}), "small")
    with pytest.raises(ConfigurationError, match="holds a run of another scenario"):
        run(other, out=tmp_path / "run", resume=True)
    with pytest.raises(ConfigurationError, match="resume: expected with out"):
        run(other, resume=True)
