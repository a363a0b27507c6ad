"""From a scenario to what theory works with: mean seconds of its workers, and constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.theory.complexities import COMPLEXITIES, Breakdown, Complexity, breakdown
from analysis.theory.fleet import Seconds
from analysis.theory.setting import Objective, Setting
from analysis.theory.steps import Cluster, StepTime, step_time
from scenarios.compose import Composer, build_problem
from scenarios.delay_section import LINKS
from scenarios.method_section import MethodSection
from scenarios.objective import CONSTANTS, known_constants
from scenarios.recipes import RECIPES, recommend
from scenarios.schema import Scenario
from simulator.delays import Constant, Delays
from simulator.errors import ConfigurationError
from simulator.network import AllReduce, Star
from simulator.precision import precision

DEFAULT_EPSILON = 0.1


@dataclass(frozen=True, eq=False)
class Prediction:
    """A scenario as theory sees it.

    Attributes:
        scenario: which.
        cluster: mean seconds of the workers, in their order, and of communication.
        setting: the same, the fastest first, and the objective.
        known: constants that are known, and where each is from; the others are 1.
        notes: what was assumed, for people.
        is_heterogeneous: whether only methods count that hold for different objectives.
    """

    scenario: Scenario
    cluster: Cluster
    setting: Setting
    known: dict[str, str]
    notes: tuple[str, ...]
    is_heterogeneous: bool = False

    @property
    def is_orders_only(self) -> bool:
        """Whether all constants are 1."""
        return not self.known

    @property
    def comparable(self) -> tuple[Complexity, ...]:
        """Rows that may be held against each other: with all constants, if any are known."""
        return tuple(
            row
            for row in COMPLEXITIES
            if (row.has_all_constants or self.is_orders_only)
            and (row.is_heterogeneous or not self.is_heterogeneous)
        )


def predict(
    scenario: Scenario,
    epsilon: float | None = None,
    is_orders_only: bool = False,
    is_heterogeneous: bool = False,
) -> Prediction:
    """Collect what theory needs.

    Args:
        scenario: what to predict.
        epsilon: target, instead of the scenario's.
        is_orders_only: take all constants as 1.
        is_heterogeneous: compare only methods that hold for workers with different objectives.

    Raises:
        ConfigurationError: a worker's delays have no mean, a number is out of range, or the
            problem can not be built.
    """
    notes: list[str] = []
    cluster = _cluster(scenario, notes)
    objective, known = _objective(scenario, epsilon, is_orders_only, notes)
    ordered = np.sort(cluster.seconds_per_gradient)
    setting = Setting(ordered, objective, cluster.kappa_seconds)
    return Prediction(scenario, cluster, setting, known, tuple(notes), is_heterogeneous)


def step_times(prediction: Prediction) -> list[tuple[MethodSection, StepTime]]:
    """Seconds of a server step of each method of the scenario."""
    return [
        (method, step_time(method.coordinator, method.arguments, prediction.cluster))
        for method in prediction.scenario.methods
    ]


def breakdowns(prediction: Prediction) -> list[Breakdown]:
    """Every row of the table, the fastest first; those that do not compare last."""
    found = [breakdown(row, prediction.setting) for row in COMPLEXITIES]
    comparable = prediction.comparable
    return sorted(found, key=lambda parts: (parts.row not in comparable, parts.seconds()))


@dataclass(frozen=True)
class Advice:
    """What theory recommends for a method of the scenario.

    Attributes:
        method: which.
        keys: of a scenario file -> number.
        steps: T.
        seconds: until then, by the predicted times of steps.
        guarantee: bound on the mean of E|grad f|.
        obstacle: why there is nothing, "" if there is.
    """

    method: MethodSection
    keys: dict[str, float]
    steps: int = 0
    seconds: float = float("nan")
    guarantee: float = float("nan")
    obstacle: str = ""


def advice(prediction: Prediction) -> list[Advice]:
    """Recommended parameters, one for each coordinator and update rule of the scenario."""
    seen: dict[Any, Advice] = {}
    for method in prediction.scenario.methods:
        key = (method.coordinator, method.update, method.arguments.get("wait_for"))
        if key not in seen:
            seen[key] = _advise(prediction, method)
    return list(seen.values())


def _advise(prediction: Prediction, method: MethodSection) -> Advice:
    scenario = prediction.scenario
    recipe = RECIPES.get((method.coordinator, method.update))
    if recipe is None:
        return Advice(method, {}, obstacle="theory recommends nothing for it")
    missing = [name for name in recipe.needs if name not in prediction.known]
    if missing:
        return Advice(method, {}, obstacle=f"needs {', '.join(missing)}")
    try:
        found, keys = recommend(
            prediction.setting.objective,
            method,
            scenario.fleet.workers,
            is_sharp=scenario.theory is not None and scenario.theory.sharp,
        )
    except ConfigurationError as error:
        return Advice(method, {}, obstacle=str(error))
    arguments = {**method.arguments, **{k: keys[k] for k in recipe.keys if k in keys}}
    time = step_time(method.coordinator, arguments, prediction.cluster)
    seconds = time.first_seconds + (found.steps - 1) * time.seconds
    return Advice(method, keys, found.steps, seconds, found.guarantee)


def _cluster(scenario: Scenario, notes: list[str]) -> Cluster:
    composer = Composer(scenario, _dimension(scenario))
    seconds = _means(composer.compute(), "fleet.compute", notes)
    if scenario.fleet.timing == "environment-step":
        horizon = getattr(scenario.problem, "horizon", 1)
        seconds = seconds * horizon
        notes.append(
            f"fleet.timing = 'environment-step': a gradient is taken as {horizon} steps, the "
            "longest trajectory"
        )
    network = composer.network()
    if isinstance(network, Star):
        down = _means(network.down, "network.down", notes)
        up = _means(network.up, "network.up", notes)
        notes.append("kappa: the slowest worker's way down and up; steps use every worker's own")
        return Cluster(seconds, down, up)
    if isinstance(network, AllReduce):
        (collective,) = _means(network.collective, "network.seconds", notes).tolist()
        return Cluster(seconds, collective_seconds=collective)
    return Cluster(seconds)


def _dimension(scenario: Scenario) -> int:
    """d if any time depends on it, else 1: building a problem may take long."""
    depends = [
        delay.scale_with_dimension != 0 or delay.profile.kind in LINKS
        for delay in scenario.delays().values()
    ]
    if not any(depends):
        return 1
    with precision(scenario.precision):
        return int(build_problem(scenario).oracle.dim)


def _means(delays: Delays, field: str, notes: list[str]) -> Seconds:
    if isinstance(delays, Constant):
        return delays.per_worker
    means = delays.mean_seconds()
    least, _ = delays.bounds_seconds()
    for worker in np.flatnonzero(np.isinf(means) & np.isfinite(least)):
        raise ConfigurationError(
            f"{field}: the delays of worker {worker} have no finite mean, which theory for "
            "constant speeds would need"
        )
    notes.append(
        f"{field} varies: theory for constant speeds is given each worker's mean, so its times "
        "are approximate"
    )
    return means


def _objective(
    scenario: Scenario, epsilon: float | None, is_orders_only: bool, notes: list[str]
) -> tuple[Objective, dict[str, str]]:
    if epsilon is None and scenario.theory is not None:
        epsilon = scenario.theory.epsilon
    if epsilon is None:
        epsilon = DEFAULT_EPSILON
        notes.append(f"epsilon = {epsilon}: no theory.epsilon in the scenario; see --epsilon")
    if is_orders_only:
        return Objective(epsilon), {}
    known = known_constants(scenario)
    if known.missing:
        what = "all constants" if len(known.missing) == len(CONSTANTS) else ", ".join(known.missing)
        notes.append(f"{what} taken as 1: not in [theory], and the problem does not know them")
    return Objective(epsilon, **known.values), known.sources
