"""For which methods theory recommends parameters, and under which keys: a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from analysis.theory import parameters
from analysis.theory.parameters import Recommendation
from analysis.theory.setting import Objective
from scenarios.method_section import MethodSection

_Solve = Callable[[Objective, int, int | None, bool, bool], Recommendation]


@dataclass(frozen=True)
class Recipe:
    """What is recommended for one coordinator with one update rule.

    Attributes:
        solve: (objective, batches are multiples of, batch or None, has a first batch, is sharp).
        together: keys that are only recommended together.
        batch: key of the batch.
        first_batch: key of the first batch; "" if it has none of its own.
        is_per_worker: whether the batch is counted per worker that the server waits for.
        needs: constants of the objective.
    """

    solve: _Solve
    together: tuple[str, ...]
    batch: str
    first_batch: str = ""
    is_per_worker: bool = False
    needs: tuple[str, ...] = ("gradient_lipschitz", "sigma", "initial_gap")

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that may be recommended."""
        keys = (*self.together, self.batch, self.first_batch)
        return tuple(key for key in dict.fromkeys(keys) if key)


def _nigt(
    objective: Objective, multiple: int, batch: int | None, first: bool, sharp: bool
) -> Recommendation:
    return parameters.recommend_nigt(objective, multiple, first, batch, sharp)


def _sgd(
    objective: Objective, multiple: int, batch: int | None, first: bool, sharp: bool
) -> Recommendation:
    return parameters.recommend_sgd(objective, multiple, batch)


def _ringmaster(
    objective: Objective, multiple: int, batch: int | None, first: bool, sharp: bool
) -> Recommendation:
    return parameters.recommend_ringmaster(objective)


_NIGT_NEEDS = ("gradient_lipschitz", "hessian_lipschitz", "sigma", "initial_gap")
_COLLECTING = Recipe(
    _nigt, ("stepsize", "momentum"), "batch_size", "initial_batch_size", needs=_NIGT_NEEDS
)

RECIPES: dict[tuple[str, str], Recipe] = {
    ("rennala", "nigt"): _COLLECTING,
    ("malenia", "nigt"): _COLLECTING,
    ("synchronous", "nigt"): Recipe(
        _nigt,
        ("stepsize", "momentum"),
        "gradients_per_worker",
        is_per_worker=True,
        needs=_NIGT_NEEDS,
    ),
    ("rennala", "sgd"): Recipe(_sgd, ("stepsize",), "batch_size"),
    ("malenia", "sgd"): Recipe(_sgd, ("stepsize",), "batch_size"),
    ("synchronous", "sgd"): Recipe(_sgd, ("stepsize",), "gradients_per_worker", is_per_worker=True),
    ("ringmaster", "sgd"): Recipe(_ringmaster, ("stepsize", "max_staleness"), "max_staleness"),
}
"""(coordinator, update rule) -> recipe."""


def recommend(
    objective: Objective,
    method: MethodSection,
    n_workers: int,
    is_batch_chosen: bool = True,
    has_first_batch: bool = True,
    is_sharp: bool = False,
) -> tuple[Recommendation, dict[str, float]]:
    """Parameters of a method with a recipe, and the same as keys of a scenario file.

    Args:
        objective: with its target.
        method: of the coordinator and update rule in question; its batch, if it is kept.
        n_workers: size of the fleet.
        is_batch_chosen: choose the batch too, instead of keeping the method's.
        has_first_batch: choose a first batch of its own, where there can be one.
        is_sharp: see ``analysis.theory.parameters.recommend_nigt``.

    Raises:
        ConfigurationError: a count beyond 2^53.
    """
    recipe = RECIPES[method.coordinator, method.update]
    workers = method.arguments.get("wait_for", n_workers) if recipe.is_per_worker else 1
    given = None if is_batch_chosen else workers * method.arguments.get(recipe.batch, 1)
    first = has_first_batch and bool(recipe.first_batch)
    found = recipe.solve(objective, workers, given, first, is_sharp)
    return found, _as_keys(found, recipe, workers)


def _as_keys(found: Recommendation, recipe: Recipe, workers: int) -> dict[str, float]:
    keys: dict[str, float] = {"stepsize": found.stepsize}
    if found.momentum is not None:
        keys["momentum"] = found.momentum
    keys[recipe.batch] = found.max_staleness or found.batch_size // workers
    if recipe.first_batch:
        keys[recipe.first_batch] = found.initial_batch_size
    return keys
