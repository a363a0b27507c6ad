"""The schema: what is filled in, what is refused and in which words."""

from __future__ import annotations

import math

import pytest
from scenario_data import small

from scenarios.dump import to_toml
from scenarios.load import from_data, parse
from simulator.errors import ConfigurationError


def refusal(data: dict) -> str:
    with pytest.raises(ConfigurationError) as caught:
        from_data(data, "small.toml")
    return str(caught.value)


def test_everything_is_filled_in():
    data = from_data(small(), "small.toml").as_data()
    assert data["seeds"] == [0]
    assert data["network"] == {"kind": "none"}
    assert data["precision"] == "float32"
    assert data["fleet"]["compute"] == {
        "profile": {"kind": "power", "exponent": 0.5, "base_seconds": 1.0},
        "model": {"kind": "constant"},
        "scale_with_dimension": 0.0,
    }
    assert data["methods"][0] == {
        "name": "rennala-sgd",
        "label": "Rennala SGD",
        "coordinator": "rennala",
        "update": "sgd",
        "batch_size": 2,
        "stale": "cancel",
        "stepsize": 0.5,
    }


VARIANTS = {
    "plain": small(),
    "number": small(fleet__compute=2.5),
    "list": small(fleet__compute=[1.0, math.inf, 3]),
    "star": small(
        network={"kind": "star", "down": 0.0, "up": {"profile": "linear", "model": "constant"}}
    ),
    "allreduce": small(
        methods__1=None,
        network={
            "kind": "allreduce",
            "seconds": {"profile": {"kind": "ring", "bandwidth_bytes_per_second": 1e6}},
        },
    ),
    "distribution": small(
        fleet__compute__model={
            "kind": "distribution",
            "name": "lognorm",
            "parameters": {"s": 1.0},
        }
    ),
    "empirical": small(fleet__compute__model={"kind": "empirical", "values": [1, 2.5]}),
    "schedule": small(methods__0__stepsize={"value": 1.0, "offset": 2.0, "power": 0.8}),
    "halves": small(methods=[{"coordinator": "buffered", "update": "optax.adam",
                              "buffer_size": 2, "stepsize": 0.1}]),
    "seeds": small(seeds=[3, 1], budget={"steps": 4, "gradients": 100}),
    "every": small(evaluation={"every_seconds": 0.5, "target": -1.0}),
    "given": small(problem={"kind": "quadratic", "quadratic": "given",
                            "A": [[2.0, 0.0], [0.0, 1.0]], "b": [1.0, 0.0]}),
    "environment": small(problem={
        "kind": "environment",
        "environment": "phys2d/CartPole-v1",
        "hidden": [8],
        "environment_parameters": {"length": {"low": 0.4, "high": 0.6}, "gravity": [9, 9.8, 10]},
        "observation_scale": {"cycle": [1, -1]},
    }),
    "mdp": small(problem={"kind": "mdp", "mdp": "grid", "slip": 0.25, "seed": {"cycle": [1, 2]},
                          "reward_perturbation": 0.5, "horizon": 9}),
    "hard instance": small(problem={"kind": "hard-instance", "dimension": 3}),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_resolved_scenario_loads_as_an_equal_one(name: str):
    scenario = from_data(VARIANTS[name], "small.toml")
    text = to_toml(scenario)
    again = from_data(parse(text, "resolved"), "resolved")
    assert again == scenario
    assert again.content_id() == scenario.content_id()
    assert to_toml(again) == text


def test_content_id_is_about_content():
    base = from_data(small(), "small.toml").content_id()
    same = small(name="other", description="told otherwise", methods__0__label="R")
    assert from_data(same, "small.toml").content_id() == base
    assert from_data(small(budget__seconds=5.0), "small.toml").content_id() == base
    assert from_data(small(budget__seconds=6), "small.toml").content_id() != base
    assert from_data(small(methods__0__stepsize=0.4), "small.toml").content_id() != base


def test_content_id_is_about_what_is_in_a_file_not_where_it_is(tmp_path):
    ids = []
    for name, rows in (("a", "1\n2\n"), ("b", "1\n2\n"), ("c", "1\n3\n")):
        path = tmp_path / f"{name}.csv"
        path.write_text(f"seconds\n{rows}", encoding="utf-8")
        model = {"kind": "empirical", "path": path.name}
        data = small(fleet__compute__model=model)
        ids.append(from_data(data, "small.toml", tmp_path).content_id())
    assert ids[0] == ids[1] != ids[2]


REFUSALS = {
    "unknown MDP": (
        small(problem={"kind": "mdp", "mdp": "garnett"}),
        "small.toml: problem.mdp = 'garnett': expected 'garnet' or 'chain' or 'grid'. Did you mean "
        "'garnet'?",
    ),
    "what another MDP takes": (
        small(problem={"kind": "mdp", "mdp": "chain", "branching": 2}),
        "problem.branching: a chain does not take it; it takes states, actions, slip",
    ),
    "a key of no MDP": (
        small(problem={"kind": "mdp", "brnching": 2}),
        "problem.brnching: unknown key. Did you mean 'branching'?",
    ),
    "a probability": (
        small(problem={"kind": "hard-instance", "probability": 2}),
        "problem.probability = 2: expected a number in [1e-9, 1]",
    ),
    "unknown method": (
        small(methods__0={"id": "renala-sgd", "batch_size": 2, "stepsize": 1}),
        "small.toml: methods[0].id = 'renala-sgd': no such method. Did you mean 'rennala-sgd'?",
    ),
    "unknown key of a method": (
        small(methods__0__batchsize=3),
        "methods[0].batchsize: not a key of this method. Did you mean 'batch_size'? It takes "
        "batch_size, initial_batch_size, stale, stepsize.",
    ),
    "M = 0": (
        small(methods__0__batch_size=0),
        "methods[0].batch_size = 0: expected an integer >= 1 (gradients)",
    ),
    "M missing": (
        small(methods__0__batch_size=None),
        "methods[0].batch_size: missing; the coordinator 'rennala' needs it",
    ),
    "M of the wrong type": (
        small(methods__0__batch_size=True),
        "methods[0].batch_size = True: expected an integer >= 1 (gradients)",
    ),
    "stepsize": (
        small(methods__1__stepsize=0),
        "methods[1].stepsize = 0: expected a finite number > 0",
    ),
    "stepsize missing": (
        small(methods__1__stepsize=None),
        "methods[1].stepsize: 'sgd' needs it; expected a finite number > 0",
    ),
    "schedule": (
        small(methods__1__stepsize={"value": 1.0, "powr": 2}),
        "methods[1].stepsize.powr: not part of a schedule. Did you mean 'power'?",
    ),
    "wait_for above n": (
        small(methods__0={"id": "backup-workers-sgd", "wait_for": 4, "stepsize": 1}),
        "methods[0].wait_for = 4: expected an integer from 1 to 3 (workers)",
    ),
    "unknown coordinator": (
        small(methods__0={"coordinator": "renala", "update": "sgd"}),
        "methods[0].coordinator = 'renala': no such coordinator. Did you mean 'rennala'?",
    ),
    "unknown update": (
        small(methods__0={"coordinator": "asynchronous", "update": "optax.adm"}),
        "methods[0].update = 'optax.adm': no such update rule. Did you mean 'optax.adam'?",
    ),
    "method twice": (
        small(methods__1={"id": "rennala-sgd", "batch_size": 3, "stepsize": 1}),
        "methods: 'rennala-sgd' is there 2 times: expected distinct ones; give each a name",
    ),
    "no method": (small(methods=[]), "small.toml: methods: expected at least one"),
    "methods of the wrong type": (small(methods=3), "methods = 3: expected a list"),
    "section of the wrong type": (small(budget=3), "budget = 3: expected a table"),
    "unknown section": (small(flet={}), "small.toml: flet: unknown key. Did you mean 'fleet'?"),
    "unknown key": (
        small(fleet__wokers=2),
        "fleet.wokers: unknown key. Did you mean 'workers'?",
    ),
    "workers": (small(fleet__workers=0), "fleet.workers = 0: expected a number >= 1"),
    "workers of the wrong type": (
        small(fleet__workers="3"),
        "fleet.workers = '3': expected a valid integer",
    ),
    "bool as int": (small(fleet__workers=True), "fleet.workers = True: expected a valid integer"),
    "negative delay": (
        small(fleet__compute=[1.0, -1.0, 1.0]),
        "fleet.compute.profile.values[1] = -1.0: expected a number >= 0 (seconds)",
    ),
    "negative base": (
        small(fleet__compute=-2),
        "fleet.compute.profile.base_seconds = -2: expected a number >= 0 (seconds)",
    ),
    "NaN delay": (
        small(fleet__compute=[1.0, math.nan, 1.0]),
        "small.toml: fleet.compute[1] = nan: expected a number",
    ),
    "zero delay": (small(fleet__compute=0), "fleet.compute: worker 0 takes 0 seconds"),
    "wrong number of delays": (
        small(fleet__compute=[1.0, 2.0]),
        "fleet.compute.profile.values: 2 numbers for 3 workers; expected one for each",
    ),
    "negative support": (
        small(fleet__compute__model={"kind": "distribution", "name": "norm"}),
        "fleet.compute.model.parameters: norm with its defaults takes values in [-inf, inf], "
        "but a delay cannot be negative",
    ),
    "unknown distribution": (
        small(fleet__compute__model={"kind": "distribution", "name": "lognormal"}),
        "fleet.compute.model.name = 'lognormal': expected a continuous distribution",
    ),
    "unknown profile": (
        small(fleet__compute={"profile": "two-sped"}),
        "fleet.compute.profile.kind = 'two-sped': no such profile. Did you mean 'two-speed'?",
    ),
    "profile parameter missing": (
        small(fleet__compute={"profile": "power"}),
        "fleet.compute.profile.exponent: missing; the profile 'power' needs it",
    ),
    "unknown model": (
        small(fleet__compute__model={"kind": "trase"}),
        "fleet.compute.model.kind = 'trase': no such kind. Did you mean 'trace'?",
    ),
    "unknown network": (
        small(network={"kind": "sta"}),
        "network.kind = 'sta': no such kind. Did you mean 'star'?",
    ),
    "network without kind": (small(network={"up": 1.0}), "network.kind: missing"),
    "star without up": (small(network={"kind": "star", "down": 1.0}), "network.up: missing"),
    "negative link": (
        small(network={"kind": "star", "down": 1.0, "up": -1}),
        "network.up.profile.base_seconds = -1: expected a number >= 0",
    ),
    "allreduce for an asynchronous method": (
        small(network={"kind": "allreduce", "seconds": 1.0}),
        "methods[1] = 'asynchronous-sgd': expected a method in which all workers exchange at once",
    ),
    "horizon 0": (
        small(problem={"kind": "environment", "environment": "CartPole-v1", "horizon": 0}),
        "problem.horizon = 0: expected an integer >= 1 (environment steps)",
    ),
    "budget 0": (small(budget__seconds=0), "budget.seconds = 0: expected a number > 0"),
    "infinite budget": (
        small(budget__seconds=math.inf),
        "budget.seconds = inf: expected a finite number",
    ),
    "no budget": (small(budget={}), "budget.seconds: missing; expected it, steps or gradients"),
    "unknown problem": (
        small(problem={"kind": "quadratc"}),
        "problem.kind: no such kind: 'quadratc'. Did you mean 'quadratic'?",
    ),
    "precision in the problem": (
        small(problem__dtype="float64"),
        "problem.dtype: set precision instead",
    ),
    "seeds": (small(seeds=0), "seeds: expected a count from 1 to 10000, or a list of seeds"),
    "negative seed": (small(seeds=[-1]), "seeds[0] = -1: expected a number >= 0"),
    "seed twice": (small(seeds=[1, 1]), "seeds: 1 is there 2 times"),
    "executor": (
        small(executor="bached"),
        "expected 'compiled', 'batched' or 'sequential'. Did you mean 'batched'?",
    ),
    "two grids": (
        small(evaluation={"points": 3, "every_seconds": 1.0}),
        "evaluation.points: expected it or every_seconds, and not both",
    ),
    "huge integer": (small(budget={"steps": 10**30}), "budget.steps: expected an integer below"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_name_field_value_and_range(case: str):
    data, expected = REFUSALS[case]
    assert expected in refusal(data)


def test_several_problems_are_listed_at_once():
    text = refusal(small(fleet__workers=0, budget__seconds=-1, methods__0__stepsize=-1))
    assert text.splitlines() == [
        "small.toml: 3 problems",
        "  fleet.workers = 0: expected a number >= 1",
        "  methods[0].stepsize = -1: expected a finite number > 0",
        "  budget.seconds = -1: expected a number > 0",
    ]


def test_a_scenario_can_not_be_changed():
    scenario = from_data(small(), "small.toml")
    with pytest.raises(ValueError, match="frozen"):
        scenario.name = "other"
