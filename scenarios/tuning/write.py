"""What a tuning leaves beside its runs.

::

    tuning.parquet        a row per candidate: point, method, hyperparameters, score, rank; the
                          winner has rank 0, and in ``edge`` where it is at an end of its grid
    sensitivity.parquet   a row per value of each hyperparameter: the best score possible with it
    tuned.toml            the scenario with the winners, for ``straggler run``; for a sweep,
                          tuned/0.toml, tuned/1.toml, ..., a file per point
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from scenarios.dump import to_toml
from scenarios.store import Store
from scenarios.store.run_file import matching, setting
from scenarios.tuning.judging import Judged, sensitivities
from scenarios.tuning.settings import Criterion
from scenarios.tuning.tune import Tuned
from simulator.parquet import user_errors, write_durably

_SCORE = {
    "criterion": "string",
    "score": "double",
    "n_seeds": "int64",
    "n_lost": "int64",
    "n_missed": "int64",
}


def write_tuning(store: Store, tuned: Sequence[Tuned], criterion: Criterion) -> None:
    """Write all of it.

    Raises:
        ConfigurationError: the file system refuses.
    """
    _write_candidates(store, tuned, criterion)
    _write_sensitivities(store, tuned, criterion)
    for path, toml in _winners(store.path, tuned):
        with user_errors(path, "write"):
            path.parent.mkdir(exist_ok=True)
        write_durably(path, toml.encode())


def _write_candidates(store: Store, tuned: Sequence[Tuned], criterion: Criterion) -> None:
    types = {**store.axes, "method": "string", "label": "string", **_SCORE}
    rows = [
        {
            **one.point.settings_of(one.method),
            **judged.candidate.settings,
            **_method(one),
            **_score(judged, criterion),
            "rank": rank,
            "edge": "; ".join(one.edges) if rank == 0 else "",
        }
        for one in tuned
        for rank, judged in enumerate(one.judged)
    ]
    _write(store.path / "tuning.parquet", rows, {**types, "rank": "int64", "edge": "string"})


def _write_sensitivities(store: Store, tuned: Sequence[Tuned], criterion: Criterion) -> None:
    points = {name: store.axes[name] for one in tuned for name in one.point.settings}
    types = {**points, "method": "string", "label": "string", "hyperparameter": "string"}
    rows = [
        {
            **one.point.settings_of(one.method),
            **_method(one),
            "hyperparameter": found.hyperparameter,
            "value": _number(found.value),
            "text": str(setting(found.value)),
            **_score(found.judged, criterion),
        }
        for one in tuned
        for found in sensitivities(one.judged)
    ]
    path = store.path / "sensitivity.parquet"
    _write(path, rows, {**types, "value": "double", "text": "string", **_SCORE})


def _method(tuned: Tuned) -> dict[str, str]:
    return {"method": tuned.method.name, "label": tuned.method.label}


def _score(judged: Judged, criterion: Criterion) -> dict[str, Any]:
    return {
        "criterion": criterion,
        "score": judged.score,
        "n_seeds": judged.n_seeds,
        "n_lost": judged.n_lost,
        "n_missed": judged.n_missed,
    }


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _write(path: Path, rows: Sequence[dict[str, Any]], types: dict[str, str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        name: pa.array([matching(row.get(name), kind) for row in rows], pa.type_for_alias(kind))
        for name, kind in types.items()
    }
    buffer = BytesIO()
    pq.write_table(pa.table(columns), buffer, compression="zstd")
    write_durably(path, buffer.getvalue())


def _winners(path: Path, tuned: Sequence[Tuned]) -> list[tuple[Path, str]]:
    """A scenario per point, in which every method has its best hyperparameters."""
    points = list({id(one.point): one.point for one in tuned}.values())
    found = []
    for index, point in enumerate(points):
        methods = tuple(one.best.candidate.method for one in tuned if one.point is point)
        scenario = point.scenario.model_copy(update={"methods": methods})
        name = "tuned.toml" if len(points) == 1 else f"tuned/{index}.toml"
        where = "".join(f"# {key} = {value}\n" for key, value in point.settings.items())
        found.append((path / name, f"{where}{to_toml(scenario)}"))
    return found
