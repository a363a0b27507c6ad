"""``"recommended"`` in a scenario file: filled in with what theory recommends, before it is read.

Where it may stand, and for what (see ``analysis.theory.parameters``):

- in ``[[methods]]``, for those with a row in ``scenarios.recipes``: stepsize, momentum, the size of
  a batch and that of the first. A batch may be given, and the rest is chosen for it; stepsize and
  momentum are only recommended together, since each is right for the other;
- ``budget.steps``: the largest T of those methods;
- ``problem.horizon``: H that truncates the gradient by a tenth of epsilon; the methods then get
  nine tenths. Otherwise their target is the gradient of the truncated objective.

Needs ``theory.epsilon`` and constants, from ``[theory]`` or from a problem that knows its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from algorithms.catalogue import methods_by_id
from analysis.theory.parameters import recommend_horizon
from analysis.theory.setting import Objective
from scenarios.objective import known_constants
from scenarios.recipes import RECIPES, Recipe, recommend
from simulator.errors import ConfigurationError

WORD = "recommended"
HORIZON_SHARE = 0.1
"""Of epsilon, for the truncation, if the horizon is recommended."""

Data = dict[str, Any]
_NOT_KEYS = ("id", "name", "label", "coordinator", "update")


class Missing(ValueError):
    """What stands in the way of a recommendation.

    Attributes:
        lines: each "field: ...".
    """

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        super().__init__("; ".join(lines))


def is_asked_for(values: Mapping[str, Any]) -> bool:
    """Whether anything in a scenario's plain data is to be filled in."""
    return bool(_methods_asking(values)) or any(
        _section(values, section).get(key) == WORD for section, key in _SINGLE
    )


def fill_in(values: Data, read: Callable[[Data], Any]) -> Data:
    """Replace every "recommended" by a number.

    Args:
        values: a scenario as plain data.
        read: makes a scenario of such data; what else is wrong with it is told by it.

    Returns:
        The same, with numbers.

    Raises:
        Missing: nothing can be recommended; every reason.
        ConfigurationError: something else is wrong with the scenario, or the target is out of
            reach.
    """
    asking = _methods_asking(values)
    problems = [line for index in asking for line in _misplaced(values, index, asking[index])]
    if problems:
        raise Missing(problems)
    wants_steps, wants_horizon = (_section(values, s).get(key) == WORD for s, key in _SINGLE)
    if wants_steps and not asking:
        raise Missing(["budget.steps: expected a method with recommended parameters to take it of"])
    share = 1.0
    draft = _with_placeholders(values, asking)
    if wants_horizon:
        horizon = _horizon(read(draft))
        values, draft = (_replaced(data, "problem", horizon=horizon) for data in (values, draft))
        share -= HORIZON_SHARE
    steps, methods = _choose(read(draft), asking, share, values)
    values = {**values, "methods": methods}
    return _replaced(values, "budget", steps=steps) if wants_steps else values


_SINGLE = (("budget", "steps"), ("problem", "horizon"))


def _section(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = values.get(name)
    return section if isinstance(section, Mapping) else {}


def _replaced(values: Data, section: str, **changes: Any) -> Data:
    return {**values, section: {**values[section], **changes}}


def _methods_asking(values: Mapping[str, Any]) -> dict[int, list[str]]:
    """Position of a method -> its keys that are to be filled in."""
    entries = values.get("methods")
    found = {}
    for index, entry in enumerate(entries if isinstance(entries, list | tuple) else ()):
        if isinstance(entry, Mapping):
            keys = [key for key, value in entry.items() if value == WORD and key not in _NOT_KEYS]
            if keys:
                found[index] = keys
    return found


def _recipe(entry: Mapping[str, Any]) -> Recipe | None:
    halves = entry.get("coordinator"), entry.get("update")
    row = methods_by_id().get(str(entry.get("id")))
    if row is not None:
        halves = row.coordinator, row.update
    return RECIPES.get((str(halves[0]), str(halves[1])))


def _misplaced(values: Data, index: int, keys: list[str]) -> Iterator[str]:
    """What is wrong with how one method asks."""
    entry, place = values["methods"][index], f"methods[{index}]"
    chosen = _recipe(entry)
    if chosen is None:
        known = ", ".join(f"{coordinator} with {update}" for coordinator, update in RECIPES)
        yield f"{place}.{keys[0]} = {WORD!r}: theory recommends nothing here; it does for {known}"
        return
    for key in keys:
        if key not in chosen.keys:
            allowed = ", ".join(chosen.keys)
            yield f"{place}.{key} = {WORD!r}: expected a value; theory recommends {allowed}"
    for key in chosen.together:
        if key not in keys and any(other in keys for other in chosen.keys):
            yield f"{place}.{key}: expected {WORD!r}, or a value for the others too"
    first = chosen.first_batch
    if first and first in entry and first not in keys:
        yield f"{place}.{first} = {entry[first]!r}: expected {WORD!r}, or none of its own"
    for key in (chosen.batch, "wait_for"):
        if isinstance(entry.get(key), list | tuple):
            yield f"{place}.{key}: expected one value beside {WORD!r}, not a list"


def _with_placeholders(values: Data, asking: Mapping[int, list[str]]) -> Data:
    """The scenario with 1 for whatever is to be filled in: valid if the rest is."""
    draft = dict(values)
    if asking:
        draft["methods"] = [
            ({**entry, **dict.fromkeys(asking[index], 1)} if index in asking else entry)
            for index, entry in enumerate(values["methods"])
        ]
    for section, key in _SINGLE:
        if _section(values, section).get(key) == WORD:
            draft = _replaced(draft, section, **{key: 1})
    return draft


def _horizon(draft: Any) -> int:
    theory = {} if draft.theory is None else draft.theory.model_dump(exclude_none=True)
    lines = [
        f"theory.{name}: missing; problem.horizon = {WORD!r} needs it"
        for name in ("epsilon", "reward_bound", "score_bound")
        if name not in theory
    ]
    if lines:
        raise Missing(lines)
    try:
        return recommend_horizon(
            HORIZON_SHARE * theory["epsilon"],
            draft.problem.discount,
            theory["reward_bound"],
            theory["score_bound"],
        )
    except ConfigurationError as error:
        raise Missing([f"problem.{error}"]) from error


def _choose(
    draft: Any, asking: Mapping[int, list[str]], share: float, values: Data
) -> tuple[int, list[Data]]:
    """The largest T, and the methods with their numbers."""
    methods, largest, lines = list(values["methods"]), 1, []
    if not asking:
        return largest, methods
    recipes = {index: _recipe(methods[index]) for index in asking}
    objective = _objective(draft, [recipe for recipe in recipes.values() if recipe], share)
    for index, keys in asking.items():
        recipe = recipes[index]
        assert recipe is not None
        method = next(cell for cell in draft.methods if cell.position == index)
        try:
            found, numbers = recommend(
                objective,
                method,
                draft.fleet.workers,
                is_batch_chosen=recipe.batch in keys,
                has_first_batch=recipe.first_batch in keys,
                is_sharp=draft.theory.sharp,
            )
        except ConfigurationError as error:
            lines.append(f"methods[{index}] = {method.name!r}: {error}")
            continue
        methods[index] = {**methods[index], **{key: numbers[key] for key in keys}}
        largest = max(largest, found.steps)
    if lines:
        raise Missing(lines)
    return largest, methods


def _objective(draft: Any, recipes: list[Recipe], share: float) -> Objective:
    """The constants, and a share of epsilon.

    Raises:
        Missing: epsilon, or a constant that a recipe needs.
    """
    known = known_constants(draft)
    epsilon = None if draft.theory is None else draft.theory.epsilon
    needed = {name for recipe in recipes for name in recipe.needs}
    lines = [
        f"theory.{name}: missing; {WORD!r} needs it, and the problem does not know it"
        for name in known.missing
        if name in needed
    ]
    if epsilon is None:
        raise Missing([f"theory.epsilon: missing; {WORD!r} needs it", *lines])
    if lines:
        raise Missing(lines)
    return Objective(epsilon * share, **known.values)
