"""The file of one finished run: a row per evaluation, with everything about the run in each row.

Columns::

    key                       of the run
    (settings)                what the sweep set at this run's point, by dotted path
    method, label, coordinator, update
    parameters                the method's arguments and hyperparameters, JSON
    seed
    seconds, step, gradients, computed, communications, and the problem's metrics: the curve
    used, discarded, cancelled, in_flight, steps, end_seconds, (shares), mean_length_used,
    mean_length_started, error, stalled: the outcome, the same in every row

The file's metadata hold the metrics and the scenario of this run alone, TOML. Everything in it is
determined by the run and its presentation: no clock and no host, so that the bytes are the same
wherever and whenever it was computed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any

import tomli_w

from scenarios.store.keys import RunSpec
from simulator.errors import ConfigurationError
from simulator.parquet import user_errors
from simulator.record_types import POSITION, Curve, Metric, RunRow

FORMAT = "straggler-store"
SCHEMA_VERSION = 1
_ARROW = {"str": "string", "int": "int64", "float": "double"}
_OUTCOME = {
    item.name: _ARROW[str(item.type)]
    for item in fields(RunRow)
    if item.name not in ("method", "seed", "wall_seconds")
}
_PLAIN: dict[str, Any] = {
    "compression": "snappy",  # a few kilobytes: setting up zstd takes longer than all the rest
    "write_statistics": False,
    "write_page_checksum": True,
}
_METHOD = ("method", "label", "coordinator", "update", "parameters")


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A finished run, read back.

    Attributes:
        key: of it.
        settings: column -> value.
        curve, row: as in ``simulator.records``; the row's ``wall_seconds`` is NaN.
        metrics: of the curve, the first being the main one.
        parameters: of the method.
    """

    key: str
    settings: Mapping[str, Any]
    curve: Curve
    row: RunRow
    metrics: tuple[Metric, ...]
    parameters: Mapping[str, Any]


def encode(
    spec: RunSpec, types: Mapping[str, str], row: RunRow, curve: Curve, metrics: tuple[Metric, ...]
) -> bytes:
    """The bytes of a run's file.

    Args:
        spec: the run.
        types: Arrow type of each settings column of the store.
        row, curve: what came of it.
        metrics: of the curve.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_points = len(curve.seconds)
    columns: dict[str, tuple[Any, str]] = {"key": (spec.key, "string")}
    columns |= {n: (matching(spec.settings.get(n), kind), kind) for n, kind in types.items()}
    columns |= {name: (value, "string") for name, value in _method_columns(spec).items()}
    columns |= {"seed": (spec.seed, "int64")}
    arrays = {name: pa.repeat(pa.scalar(v, kind), n_points) for name, (v, kind) in columns.items()}
    arrays |= {name: pa.array(getattr(curve, name)) for name in POSITION}
    arrays |= {metric.name: pa.array(curve.metrics[metric.name]) for metric in metrics}
    for name, kind in _OUTCOME.items():
        arrays[name] = pa.repeat(pa.scalar(getattr(row, name), kind), n_points)
    metadata = {
        "format": FORMAT,
        "schema_version": str(SCHEMA_VERSION),
        "key": spec.key,
        "metrics": json.dumps([asdict(metric) for metric in metrics]),
        "settings": json.dumps(dict(spec.settings)),
        "scenario": tomli_w.dumps(spec.alone().as_data()),
    }
    table = pa.table(arrays).replace_schema_metadata(metadata)
    buffer = BytesIO()
    pq.write_table(table, buffer, **_PLAIN)
    return buffer.getvalue()


def _method_columns(spec: RunSpec) -> dict[str, str]:
    method = spec.method
    parameters = json.dumps({**method.arguments, **method.hyperparameters})
    values = (method.name, method.label, method.coordinator, method.update, parameters)
    return dict(zip(_METHOD, values, strict=True))


def decode(path: Path) -> StoredRun:
    """Read a run's file.

    Raises:
        ConfigurationError: missing, damaged, or written by another version: naming the file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with user_errors(path, "read"):
        content = path.read_bytes()
    try:
        table = pq.ParquetFile(BytesIO(content), page_checksum_verification=True).read(
            use_threads=False
        )
        metadata = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
        check_version(path, metadata.get("format"), metadata.get("schema_version"))
        return _stored(table, metadata)
    except (pa.ArrowException, OSError, KeyError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, ConfigurationError):
            raise
        first_line = (str(error) or repr(error)).splitlines()[0]
        raise ConfigurationError(f"{path}: damaged: {first_line}") from error


def _stored(table: Any, metadata: Mapping[str, str]) -> StoredRun:
    metrics = tuple(Metric(**item) for item in json.loads(metadata["metrics"]))
    first = table.slice(0, 1).to_pylist()[0]
    if first["key"] != metadata["key"]:
        raise ValueError("its key is not the one in its metadata")
    curve = Curve(
        first["method"],
        first["seed"],
        **{name: table.column(name).to_numpy() for name in POSITION},
        metrics={metric.name: table.column(metric.name).to_numpy() for metric in metrics},
    )
    curve.check()
    row = RunRow(first["method"], first["seed"], **{name: first[name] for name in _OUTCOME})
    return StoredRun(
        key=metadata["key"],
        settings=json.loads(metadata["settings"]),
        curve=curve,
        row=row,
        metrics=metrics,
        parameters=json.loads(first["parameters"]),
    )


def check_version(path: Path, found_format: Any, version: Any) -> None:
    """Refuse what another program or version wrote.

    Raises:
        ConfigurationError: naming the file and what to do.
    """
    if found_format != FORMAT:
        raise ConfigurationError(f"{path}: not part of a straggler store")
    if str(version) == str(SCHEMA_VERSION):
        return
    try:
        age = "a newer" if int(version) > SCHEMA_VERSION else "an older"
    except (TypeError, ValueError):
        raise ConfigurationError(f"{path}: damaged: schema_version = {version!r}") from None
    raise ConfigurationError(
        f"{path}: written by {age} version of straggler (store schema {version}, this one reads "
        f"{SCHEMA_VERSION}): use that version, or another directory"
    )


def finished_metrics(names: Any, target: float | None) -> tuple[Metric, ...]:
    """Metrics of a problem as records keep them; the main one has the scenario's target."""
    return tuple(
        Metric(m.name, m.label, m.unit, m.higher_is_better, target if index == 0 else None)
        for index, m in enumerate(names)
    )


def settings_types(settings: list[Mapping[str, Any]]) -> dict[str, str]:
    """Arrow types for the columns of many runs' settings, in order of first appearance.

    A column is int64, double, bool or string; anything else is written as JSON, see
    :func:`setting`.
    """
    values: dict[str, set[str]] = {}
    for one in settings:
        for name, value in one.items():
            values.setdefault(name, set()).add(_kind(value))
    return {name: _common(kinds) for name, kinds in values.items()}


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    kinds = {bool: "bool", int: "int64", float: "double", str: "string"}
    return kinds.get(type(value), "string")


def _common(kinds: set[str]) -> str:
    kinds = kinds - {"null"}
    if len(kinds) == 1:
        return next(iter(kinds))
    return "double" if kinds == {"int64", "double"} else "string"


def setting(value: Any) -> Any:
    """A value as a settings column holds it: lists and tables as JSON."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return json.dumps(value)


def matching(value: Any, kind: str) -> Any:
    """A setting in the type of its column."""
    if value is None:
        return None
    if kind == "double":
        return float(value)
    return str(value) if kind == "string" else value
