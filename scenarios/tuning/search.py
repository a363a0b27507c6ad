"""Searching a grid: every combination, or what Optuna proposes between its ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from scenarios.method_section import MethodSection
from scenarios.tuning.candidates import Candidate, all_candidates, candidate
from scenarios.tuning.judging import Judged
from scenarios.tuning.settings import Grid, TuneSection
from simulator.errors import ConfigurationError

_ROUND = 8
"""Candidates that Optuna proposes at a time, whatever the number of processes: proposals depend
on what was known before, and must be the same when a search is resumed."""
_LOG_RATIO = 8.0
_DIGITS = 4


class Search(Protocol):
    """Proposes candidates until it has seen enough."""

    def ask(self) -> list[Candidate]:
        """What to try next; empty at the end."""

    def tell(self, judged: Sequence[Judged]) -> None:
        """How what was asked for did, in its order."""


def make_search(method: MethodSection, grid: Grid, n_workers: int, tune: TuneSection) -> Search:
    """The search of a method.

    Raises:
        ConfigurationError: a value that the method can not have, or Optuna is missing.
    """
    if tune.search == "optuna" and any(len(set(values)) > 1 for values in grid.values()):
        return OptunaSearch(method, grid, n_workers, tune.trials)
    return GridSearch(all_candidates(method, grid, n_workers))


class GridSearch:
    """Everything at once."""

    def __init__(self, candidates: list[Candidate]) -> None:
        self._candidates = candidates

    def ask(self) -> list[Candidate]:
        """See :class:`Search`."""
        candidates, self._candidates = self._candidates, []
        return candidates

    def tell(self, judged: Sequence[Judged]) -> None:
        """See :class:`Search`."""


class OptunaSearch:
    """Optuna's TPE sampler, seeded: the same results bring the same proposals.

    Akiba, Sano, Yanase, Ohta, Koyama (2019). Numbers are searched between the smallest and the
    largest of the grid, by their logarithm if these are positive and a factor of 8 apart; integers
    stay integers; anything else is a choice.
    """

    def __init__(self, method: MethodSection, grid: Grid, n_workers: int, trials: int) -> None:
        try:
            import optuna
        except ImportError as error:
            raise ConfigurationError(
                "search = 'optuna': Optuna is not installed: pip install 'straggler[optuna]'"
            ) from error
        all_candidates(method, {name: _ends(values) for name, values in grid.items()}, n_workers)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._failed = optuna.trial.TrialState.FAIL
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
        self._method, self._grid, self._n_workers = method, grid, n_workers
        self._left = trials
        self._asked: list[Any] = []

    def ask(self) -> list[Candidate]:
        """See :class:`Search`."""
        many = min(_ROUND, self._left)
        self._left -= many
        self._asked = [self._study.ask() for _ in range(many)]
        return [self._candidate(trial) for trial in self._asked]

    def tell(self, judged: Sequence[Judged]) -> None:
        """See :class:`Search`."""
        for trial, one in zip(self._asked, judged, strict=True):
            if math.isfinite(one.rank[-1]) and not one.n_lost:
                self._study.tell(trial, _objective(one))
            else:
                self._study.tell(trial, state=self._failed)

    def _candidate(self, trial: Any) -> Candidate:
        tried = {name: _suggest(trial, name, values) for name, values in self._grid.items()}
        return candidate(self._method, tried, self._n_workers)


def _objective(judged: Judged) -> float:
    """To be minimised; a seed that missed the target counts twice."""
    if len(judged.rank) == 3:  # area
        return judged.rank[-1]
    return judged.score * (1 + judged.n_missed / max(judged.n_seeds, 1))


def _suggest(trial: Any, name: str, values: Sequence[Any]) -> Any:
    if not all(_is_number(value) for value in values):
        return values[trial.suggest_int(name, 0, len(values) - 1)]
    low, high = min(values), max(values)
    by_logarithm = low > 0 and high / low >= _LOG_RATIO
    if all(isinstance(value, int) for value in values):
        return trial.suggest_int(name, low, high, log=by_logarithm)
    found = trial.suggest_float(name, low, high, log=by_logarithm)
    return min(max(float(f"{found:.{_DIGITS}g}"), low), high)


def _ends(values: Sequence[Any]) -> tuple[Any, ...]:
    numbers = [value for value in values if _is_number(value)]
    return (min(numbers), max(numbers)) if len(numbers) == len(values) else tuple(values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
