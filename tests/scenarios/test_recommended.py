""" "recommended" in a scenario file: what it becomes, and what is refused."""

from __future__ import annotations

import math

import pytest
from scenario_data import small

from analysis.theory import guarantees, parameters
from analysis.theory.setting import Objective
from scenarios.dump import to_toml
from scenarios.load import from_data, load, parse
from scenarios.problems.quadratics import QuadraticProblem
from scenarios.run import run
from simulator.errors import ConfigurationError
from simulator.records import RunDirectory

THEORY = {
    "epsilon": 0.3,
    "gradient_lipschitz": 1.5,
    "hessian_lipschitz": 0.7,
    "sigma": 2.0,
    "initial_gap": 3.0,
}
OBJECTIVE = Objective(**THEORY)
NIGT = {
    "id": "rennala-nigt",
    "stepsize": "recommended",
    "momentum": "recommended",
    "batch_size": "recommended",
    "initial_batch_size": "recommended",
}


def asking(*methods, **changes):
    return small(methods=list(methods), theory=dict(THEORY), **changes)


def refusal(data) -> str:
    with pytest.raises(ConfigurationError) as caught:
        from_data(data, "small.toml")
    return str(caught.value)


def test_everything_of_nigt_is_filled_in_and_keeps_its_promise():
    scenario = from_data(asking(NIGT, budget={"steps": "recommended"}), "small.toml")
    (method,) = scenario.methods
    parts = guarantees.nigt_guarantee(
        OBJECTIVE,
        scenario.budget.steps,
        method.hyperparameters["momentum"],
        method.hyperparameters["stepsize"],
        method.arguments["batch_size"],
        method.arguments["initial_batch_size"],
    )
    assert 0.5 * OBJECTIVE.epsilon < guarantees.total(parts) <= OBJECTIVE.epsilon


def test_a_resolved_file_holds_numbers_and_reads_as_the_same():
    scenario = from_data(asking(NIGT), "small.toml")
    text = to_toml(scenario)
    assert "recommended" not in text
    assert from_data(parse(text, "again"), "again") == scenario
    assert (
        scenario.content_id()
        == from_data(
            {key: value for key, value in scenario.as_data().items() if key != "theory"}, "again"
        ).content_id()
    )


def test_sharp_constants_are_asked_for_in_the_theory_table():
    data = asking(NIGT, theory__sharp=True)
    (method,) = from_data(data, "small.toml").methods
    found = parameters.recommend_nigt(OBJECTIVE, is_sharp=True)
    assert method.arguments["batch_size"] == found.batch_size
    assert found.batch_size < parameters.recommend_nigt(OBJECTIVE).batch_size


def test_a_given_batch_is_kept_and_the_rest_chosen_for_it():
    given = {**NIGT, "batch_size": 9}
    (method,) = from_data(asking(given), "small.toml").methods
    found = parameters.recommend_nigt(OBJECTIVE, batch_size=9)
    assert method.arguments["batch_size"] == 9
    assert method.hyperparameters == {"stepsize": found.stepsize, "momentum": found.momentum}


def test_synchronous_batches_are_per_worker_waited_for():
    entry = {
        "id": "synchronous-nigt",
        "wait_for": 2,
        "gradients_per_worker": "recommended",
        "stepsize": "recommended",
        "momentum": "recommended",
    }
    scenario = from_data(asking(entry, budget={"steps": "recommended"}), "small.toml")
    (method,) = scenario.methods
    found = parameters.recommend_nigt(OBJECTIVE, batch_multiple=2, has_first_batch=False)
    assert 2 * method.arguments["gradients_per_worker"] == found.batch_size
    assert scenario.budget.steps == found.steps


def test_sgd_and_ringmaster_and_the_largest_number_of_steps():
    sgd = {"id": "rennala-sgd", "stepsize": "recommended", "batch_size": "recommended"}
    ring = {"id": "ringmaster-sgd", "stepsize": "recommended", "max_staleness": "recommended"}
    scenario = from_data(asking(sgd, ring, budget={"steps": "recommended"}), "small.toml")
    first, second = scenario.methods
    wanted = parameters.recommend_sgd(OBJECTIVE), parameters.recommend_ringmaster(OBJECTIVE)
    assert first.arguments["batch_size"] == wanted[0].batch_size
    assert first.hyperparameters["stepsize"] == wanted[0].stepsize
    assert second.arguments["max_staleness"] == wanted[1].max_staleness
    assert second.hyperparameters["stepsize"] == wanted[1].stepsize
    assert scenario.budget.steps == max(found.steps for found in wanted)


def test_what_theory_does_not_say_the_problem_does():
    data = asking(NIGT)
    data["theory"] = {"epsilon": 0.1, "sigma": 2.0}
    scenario = from_data(data, "small.toml")
    constants = QuadraticProblem(scenario.problem, scenario.fleet.workers).constants
    objective = Objective(
        0.1, constants.gradient_lipschitz, constants.hessian_lipschitz, 2.0, constants.initial_gap
    )
    found = parameters.recommend_nigt(objective)
    assert scenario.methods[0].hyperparameters["stepsize"] == pytest.approx(found.stepsize)


def test_the_horizon_takes_a_tenth_of_epsilon():
    problem = {"kind": "mdp", "mdp": "garnet", "horizon": "recommended", "discount": 0.8}
    data = asking(NIGT, problem=problem)
    data["theory"] = {**THEORY, "reward_bound": 1.0, "score_bound": math.sqrt(2)}
    scenario = from_data(data, "small.toml")
    horizon = scenario.problem.horizon
    errors = [
        guarantees.truncation_error(h, 0.8, 1.0, math.sqrt(2)) for h in (horizon, horizon - 1)
    ]
    assert errors[0] <= 0.03 < errors[1]
    rest = Objective(**{**THEORY, "epsilon": 0.27})
    found = parameters.recommend_nigt(rest)
    assert scenario.methods[0].hyperparameters["momentum"] == pytest.approx(found.momentum)


def test_a_recommended_run_reaches_its_target(tmp_path):
    """The gradient norm, averaged over the run, on a quadratic with known constants."""
    data = small(
        problem={"kind": "quadratic", "dimension": 3, "noise": 0.1},
        methods=[NIGT, {"id": "rennala-sgd", "stepsize": "recommended", "batch_size": 4}],
        theory={"epsilon": 0.5},
        budget={"steps": "recommended"},
        evaluation={"points": 40},
        executor="batched",
    )
    result = run(from_data(data, "small.toml"), out=tmp_path / "out")
    assert not result.failures
    for curve in RunDirectory.open(tmp_path / "out").curves():
        assert curve.metrics["gradient_norm"].mean() <= 0.5


def test_a_name_or_label_may_be_that_word():
    data = small(description="recommended", methods__0__name="recommended")
    assert from_data(data, "small.toml").methods[0].name == "recommended"


REFUSED = {
    "no epsilon": (asking(NIGT, theory__epsilon=None), "theory.epsilon: missing; 'recommended'"),
    "no table": (small(methods=[NIGT]), "theory.epsilon: missing"),
    "a constant": (
        small(
            methods=[NIGT],
            theory={"epsilon": 0.1, "sigma": 1.0},
            problem={"kind": "environment", "environment": "phys2d/CartPole-v1"},
        ),
        "theory.gradient_lipschitz: missing; 'recommended' needs it, and the problem does not",
    ),
    "only the stepsize": (
        asking({**NIGT, "momentum": 0.1}),
        "methods[0].momentum: expected 'recommended', or a value for the others too",
    ),
    "a first batch": (
        asking({**NIGT, "initial_batch_size": 7}),
        "methods[0].initial_batch_size = 7: expected 'recommended', or none of its own",
    ),
    "a list beside": (
        asking({**NIGT, "batch_size": [1, 2]}),
        "methods[0].batch_size: expected one value beside 'recommended', not a list",
    ),
    "another key": (
        asking({**NIGT, "stale": "recommended"}),
        "methods[0].stale = 'recommended': expected a value; theory recommends stepsize, momentum",
    ),
    "another method": (
        asking({"id": "afedpg", "stepsize": "recommended", "momentum": "recommended"}),
        "methods[0].stepsize = 'recommended': theory recommends nothing here; it does for rennala",
    ),
    "steps of nothing": (
        small(budget={"steps": "recommended"}),
        "budget.steps: expected a method with recommended parameters",
    ),
    "out of reach": (
        asking(NIGT, theory__epsilon=1e-9),
        "methods[0] = 'rennala-nigt': steps: 7.2e+19 would be",
    ),
    "a horizon": (
        asking(NIGT, problem={"kind": "mdp", "horizon": "recommended"}),
        "theory.reward_bound: missing; problem.horizon = 'recommended' needs it",
    ),
    "a typing error": (asking(NIGT, theory__sigm=1.0), "theory.sigm: unknown key. Did you mean"),
    "a bad constant": (asking(NIGT, theory__sigma=-1.0), "theory.sigma = -1.0: expected a number"),
    "elsewhere": (asking(NIGT, fleet__workers="recommended"), "fleet.workers = 'recommended'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    data, text = REFUSED[case]
    assert text in refusal(data)


def test_shipped_scenarios_do_not_change():
    assert load("demo").theory is None
