"""Grids of hyperparameters: what cells are called, and that each is what it would be alone."""

from __future__ import annotations

import numpy as np
import pytest
from scenario_data import small

from scenarios.api import Reporter, from_data, run
from scenarios.batch import batches
from scenarios.problems.registry import build_problem
from scenarios.schedule_cache import ScheduleCache
from scenarios.trial import Trial
from scenarios.workshop import Workshop
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.engine import simulate
from simulator.errors import ConfigurationError
from simulator.network import NoNetwork

GRID = [
    {"id": "rennala-nigt", "batch_size": 2, "stepsize": [0.1, 0.25], "momentum": [0.5, 1.0]},
    {"id": "asynchronous-sgd", "stepsize": 0.2},
]
NAMES = [
    "rennala-nigt stepsize=0.1 momentum=0.5",
    "rennala-nigt stepsize=0.1 momentum=1.0",
    "rennala-nigt stepsize=0.25 momentum=0.5",
    "rennala-nigt stepsize=0.25 momentum=1.0",
    "asynchronous-sgd",
]


def scenario(**changes):
    return from_data(small(**{"methods": GRID, "executor": "compiled", **changes}), "small.toml")


def test_a_list_is_a_method_for_each_value():
    methods = scenario().methods
    assert [method.name for method in methods] == NAMES
    assert [method.label for method in methods] == [*NAMES[:-1], "Asynchronous SGD"]
    assert [dict(m.hyperparameters) for m in methods[:4]] == [
        {"stepsize": stepsize, "momentum": momentum}
        for stepsize in (0.1, 0.25)
        for momentum in (0.5, 1.0)
    ]
    assert from_data(scenario().as_data(), "again") == scenario()


def test_names_labels_and_coordinators_of_cells():
    grid = [
        {
            "id": "rennala-sgd",
            "name": "mine",
            "label": "Mine",
            "batch_size": [1, 2],
            "stepsize": 1.0,
        },
        {
            "id": "asynchronous-sgd",
            "name": "decaying",
            "stepsize": [{"value": 0.1, "power": 0.5}, 0.2],
        },
    ]
    methods = scenario(methods=grid).methods
    assert [(m.name, m.label) for m in methods] == [
        ("mine batch_size=1", "Mine, batch_size=1"),
        ("mine batch_size=2", "Mine, batch_size=2"),
        ("decaying stepsize=0.1-0.5", "decaying stepsize=0.1-0.5"),
        ("decaying stepsize=0.2", "decaying stepsize=0.2"),
    ]
    assert [m.arguments["batch_size"] for m in methods[:2]] == [1, 2]
    long = scenario(methods=[{**GRID[0], "name": "x" * 50}]).methods
    assert [method.name for method in long] == [f"{'x' * 50} cell {i}" for i in range(4)]


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"stepsize": []}, "methods[1].stepsize = []: expected a value, or a list of at least one"),
        ({"stepsize": [0.1, -1.0]}, "methods[1].stepsize = -1.0: expected a finite number > 0"),
        ({"stepsize": [[0.1]]}, "methods[1].stepsize = (0.1,): expected a finite number > 0"),
        ({"batch_size": [2, 0]}, "methods[1].batch_size = 0: expected an integer >= 1"),
        ({"stepsize": [0.1, 0.1]}, "methods: 'rennala-sgd stepsize=0.1' is there 2 times"),
        ({"stepsize": [float(i) for i in range(1, 10_002)]}, "at most 10000 cells in a grid"),
    ],
)
def test_what_is_wrong_with_a_grid(entry, text):
    methods = [GRID[1], {"id": "rennala-sgd", "batch_size": 2, "stepsize": 1.0, **entry}]
    with pytest.raises(ConfigurationError) as caught:
        scenario(methods=methods)
    assert text in str(caught.value)


@pytest.mark.parametrize("model", ["constant", {"kind": "distribution", "name": "expon"}])
def test_each_cell_and_seed_as_the_sequential_executor_has_it(tmp_path, model):
    curves = {}
    for executor in ("compiled", "sequential"):
        settings = {"executor": executor, "precision": "float64", "seeds": 2}
        made = scenario(**settings, fleet__compute__model=model)
        result = run(made, out=tmp_path / executor, verify=True)
        assert result.failures == ()
        curves[executor] = result.directory.curves()
    assert [(c.method, c.seed) for c in curves["compiled"]] == [
        (name, seed) for name in NAMES for seed in (0, 1)
    ]
    for one, other in zip(curves["compiled"], curves["sequential"], strict=True):
        assert (one.method, one.seed) == (other.method, other.seed)
        np.testing.assert_allclose(one.metrics["loss_gap"], other.metrics["loss_gap"], rtol=1e-9)
        np.testing.assert_array_equal(one.seconds, other.seconds)


def test_cells_of_one_schedule_are_one_batch():
    made = scenario(seeds=3)
    workshop = Workshop(made, build_problem(made.problem, 3))
    trials = [Trial(workshop, method, seed) for seed in made.seeds for method in made.methods]
    assert [len(batch.trials) for batch in batches(workshop, trials)] == [12, 3]
    assert [batch.name for batch in batches(workshop, trials)] == [
        "rennala-nigt (4 cells), 3 seeds",
        "asynchronous-sgd, 3 seeds",
    ]


def test_a_cell_that_diverges_fails_alone(tmp_path):
    grid = [{"id": "asynchronous-sgd", "stepsize": [0.2, 1e9]}]
    result = run(scenario(methods=grid, budget={"steps": 200}), out=tmp_path)
    [failure] = result.failures
    assert failure.method == "asynchronous-sgd stepsize=1000000000.0"
    assert failure.text.startswith("diverged")


def test_all_cells_by_the_name_of_their_grid(tmp_path):
    result = run(scenario(), out=tmp_path, methods=["rennala-nigt"])
    assert [row.method for row in result.directory.runs()] == NAMES[:4]


def test_too_little_memory_is_told(tmp_path):
    result = run(scenario(memory_bytes=100), out=tmp_path, methods=["asynchronous-sgd"])
    [failure] = result.failures
    assert failure.text.startswith("memory_bytes = 100: expected at least")


def test_the_cache_forgets_what_was_asked_for_longest_ago():
    made = []

    def schedule(name):
        coordinator = scenario(methods=[GRID[1]]).methods[0].build_coordinator(2)
        made.append(name)
        return simulate(coordinator, Constant([1.0, 2.0]), NoNetwork(), Budget(steps=50), 0)

    size = schedule("").nbytes
    cache = ScheduleCache(most_bytes=2 * size)
    for name in "abac":
        cache.get(name, lambda name=name: schedule(name))
    assert made == ["", "a", "b", "c"]
    cache.get("a", lambda: schedule("a"))
    assert made == ["", "a", "b", "c"]
    cache.get("b", lambda: schedule("b"))
    assert made == ["", "a", "b", "c", "b"]


class Noting(Reporter):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


CARTPOLE = {"kind": "environment", "horizon": 10, "hidden": [4]}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"problem": {**CARTPOLE, "environment": "CartPole-v1"}}, "stepped by Python: trained in"),
        (
            {
                "problem": {**CARTPOLE, "environment": "phys2d/CartPole-v1"},
                "fleet__timing": "environment-step",
            },
            "times depend on the trajectories",
        ),
        ({}, None),
    ],
)
def test_what_can_not_be_compiled_is_batched_and_says_so(tmp_path, changes, text):
    reporter = Noting()
    evaluation = {"points": 2, "episodes": 2}
    made = scenario(evaluation=evaluation, methods=GRID[1:], **changes)
    result = run(made, out=tmp_path, reporter=reporter)
    assert result.failures == ()
    if text is None:
        assert reporter.notes == []
    else:
        [note] = reporter.notes
        assert text in note
