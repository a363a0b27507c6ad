"""What a run leaves on disk, and how to read it back. Analysis reads this and nothing else.

One directory per run (schema version 1)::

    record.json      format, schema_version, the run's name, its metrics and its methods
    scenario.toml    the scenario with every default filled in
    versions.json    Python, platform and packages
    runs.parquet     a row per (method, seed): counts, shares of worker time, errors
    curves.parquet   a row per (method, seed, evaluation): where the run was, and the metrics
    schedules/METHOD--seedK/{computations,steps,messages}.parquet
                     the columns of :class:`simulator.schedule.Schedule`, a file for each kind

    checkpoints/           while a run is going on: how far it has come

Rules: every file appears complete or not at all; of one (method, seed), the row of runs.parquet is
written last, and until it is there the pair does not count; rows are ordered by method, as
``record.json`` lists them, then by seed. The same input gives the same bytes, except for
``versions.json`` and for the column ``wall_seconds`` of ``runs.parquet``.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from simulator import parquet
from simulator.errors import ConfigurationError, nearest
from simulator.record_types import POSITION, Curve, MethodRecord, Metric, RunRow, Shares
from simulator.schedule import Schedule

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "SCHEMA_VERSION",
    "Curve",
    "MethodRecord",
    "Metric",
    "RunDirectory",
    "RunRow",
    "Shares",
    "installed_versions",
    "is_run",
]

SCHEMA_VERSION = 1
_FORMAT = "straggler-run"
_PACKAGES = [
    "straggler",
    "jax",
    "jaxlib",
    "numpy",
    "scipy",
    "simpy",
    "gymnasium",
    "optax",
    "mujoco",
    "pyarrow",
    "matplotlib",
]
_ARROW = {"str": "string", "int": "int64", "float": "double"}
_METHOD_TYPES = {"label": "string", "coordinator": "string", "update": "string"}
_ROW_TYPES = {item.name: _ARROW[str(item.type)] for item in fields(RunRow)}
_POSITION_TYPES = dict.fromkeys(POSITION, "int64") | {"seconds": "double"}


def installed_versions() -> dict[str, str]:
    """Python, platform and the packages that results depend on; "" for one not installed."""
    versions = {"python": platform.python_version(), "platform": platform.platform()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = ""
    return versions


class RunDirectory:
    """The directory of one run; see the top of this file. Make one with ``create`` or ``open``.

    Attributes:
        path: where it is.
        name: the run's name, for titles.
        metrics: of ``curves.parquet``; the first is the one shown by default.
        methods: in the order of tables and legends, finished or not.
    """

    def __init__(
        self, path: Path, name: str, metrics: Sequence[Metric], methods: Sequence[MethodRecord]
    ) -> None:
        self.path = path
        self.name = name
        self.metrics = tuple(metrics)
        self.methods = tuple(methods)
        self._order = {method.id: index for index, method in enumerate(self.methods)}
        self._rows: dict[tuple[str, int], RunRow] = {}
        self._curves: dict[tuple[str, int], Curve] = {}
        self._tables: dict[tuple[str, int], pyarrow.Table] = {}

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        name: str,
        scenario: str,
        metrics: Sequence[Metric],
        methods: Sequence[MethodRecord],
        versions: Mapping[str, str] | None = None,
        overwrite: bool = False,
    ) -> RunDirectory:
        """Begin a run's directory: a new one, an empty one, or with ``overwrite`` an old run's.

        Args:
            path: the directory; parents are made.
            name: the run's name, for titles.
            scenario: the resolved scenario, TOML.
            metrics: what the curves will hold; the first is the default of plots and tables.
            methods: what will run, in the order of legends.
            versions: default :func:`installed_versions`.
            overwrite: remove the files of an earlier run there, and nothing else.

        Raises:
            ConfigurationError: the directory holds something else (named), or an earlier run
                without ``overwrite``, or cannot be written.
            ValueError: two metrics or two methods of one name, or no metric.
        """
        run = cls(Path(path), name, metrics, methods)
        run._check_names()
        _clear(run.path, overwrite)
        header = {
            "format": _FORMAT,
            "schema_version": SCHEMA_VERSION,
            "name": name,
            "metrics": [asdict(metric) for metric in run.metrics],
            "methods": [asdict(method) for method in run.methods],
        }
        parquet.write_json(run.path / "record.json", header)
        parquet.write_text(run.path / "scenario.toml", scenario)
        parquet.write_json(run.path / "versions.json", dict(versions or installed_versions()))
        run._write_curves()
        run._write_rows()
        return run

    @classmethod
    def open(cls, path: str | Path) -> RunDirectory:
        """Read a run's directory: header, rows and curves (schedules when asked for).

        Raises:
            ConfigurationError: not a run, written by a newer version, or a file is missing or
                damaged: naming the file and what is wrong.
        """
        path = Path(path)
        run = cls(path, *_read_header(path))
        run._read_rows()
        run._read_curves()
        return run

    def write(
        self, row: RunRow, curve: Curve | None = None, schedule: Schedule | None = None
    ) -> None:
        """Put one (method, seed) on disk, replacing what was there of it.

        Args:
            row: its outcome; for one that failed, ``RunRow(method, seed, error=...)``.
            curve: its curve, with every metric of this directory, if it reached its end, diverged
                or not; None if it failed on the way: half a curve has no final value.
            schedule: what happened, or None not to keep it.

        Raises:
            ConfigurationError: if the file system refuses.
            ValueError: method, seed or metrics do not belong together or to this directory.
        """
        key = (row.method, row.seed)
        if row.method not in self._order:
            raise ValueError(f"method {row.method!r} is not one of this run's")
        if curve is not None:
            self._check_curve(curve, key)
        if schedule is not None:
            parquet.write_schedule(self._schedule_path(*key), schedule)
        self._curves.pop(key, None)
        self._tables.pop(key, None)
        if curve is not None:
            self._curves[key] = curve
        self._write_curves()
        self._rows[key] = row
        self._write_rows()

    def curves(self, method: str | None = None) -> list[Curve]:
        """Curves of finished pairs, by method and seed; of one method, or all."""
        keys = [key for key in self._sorted(self._curves) if key in self._rows]
        return [self._curves[key] for key in keys if method in (None, key[0])]

    def runs(self, method: str | None = None) -> list[RunRow]:
        """Rows by method and seed; of one method, or all."""
        return [self._rows[key] for key in self._sorted(self._rows) if method in (None, key[0])]

    def schedule(self, method: str, seed: int) -> Schedule:
        """The schedule of one (method, seed), exactly as written.

        Raises:
            ConfigurationError: not kept, or damaged.
        """
        return parquet.read_schedule(self._schedule_path(method, seed))

    def scenario(self) -> str:
        """The resolved scenario, TOML."""
        return parquet.read_text(self.path / "scenario.toml")

    def versions(self) -> dict[str, str]:
        """Versions of what made the run."""
        return parquet.read_json(self.path / "versions.json")

    def metric(self, name: str | None = None) -> Metric:
        """The metric of that name; the first if None.

        Raises:
            ConfigurationError: unknown, with the nearest one.
        """
        if name is None:
            return self.metrics[0]
        for metric in self.metrics:
            if metric.name == name:
                return metric
        known = [metric.name for metric in self.metrics]
        raise ConfigurationError(
            f"metric = {name!r}: {self.path} has no such metric.{nearest(name, known)}"
        )

    def _schedule_path(self, method: str, seed: int) -> Path:
        return self.path / "schedules" / f"{quote(method, safe='')}--seed{seed}"

    def _sorted(self, keys: Mapping[tuple[str, int], Any]) -> list[tuple[str, int]]:
        return sorted(keys, key=lambda key: (self._order[key[0]], key[1]))

    def _check_names(self) -> None:
        names = [*POSITION, "method", "label", "seed", *(metric.name for metric in self.metrics)]
        if not self.metrics or len(set(names)) < len(names):
            raise ValueError(f"metrics {names[8:]}: expected distinct names, none of {names[:8]}")
        if len(self._order) < len(self.methods):
            raise ValueError(f"methods {[m.id for m in self.methods]}: expected distinct ids")

    def _check_curve(self, curve: Curve, key: tuple[str, int]) -> None:
        if (curve.method, curve.seed) != key:
            raise ValueError(f"curve of {curve.method} seed {curve.seed}, row of {key}")
        if set(curve.metrics) != {metric.name for metric in self.metrics}:
            raise ValueError(f"curve of {key} has metrics {sorted(curve.metrics)}")
        curve.check()

    def _curve_types(self) -> dict[str, str]:
        fixed = {"method": "string", "label": "string", "seed": "int64", **_POSITION_TYPES}
        return fixed | {metric.name: "double" for metric in self.metrics}

    def _curve_table(self, curve: Curve) -> pyarrow.Table:
        n_points = len(curve.seconds)
        label = self.methods[self._order[curve.method]].label
        columns = {name: getattr(curve, name) for name in POSITION} | dict(curve.metrics)
        columns |= {"method": [curve.method] * n_points, "label": [label] * n_points}
        columns |= {"seed": np.full(n_points, curve.seed)}
        return parquet.make_table(columns, self._curve_types())

    def _write_curves(self) -> None:
        types = self._curve_types()
        for key, curve in self._curves.items():
            if key not in self._tables:
                self._tables[key] = self._curve_table(curve)
        tables = [parquet.make_table({name: [] for name in types}, types)]
        tables += [self._tables[key] for key in self._sorted(self._tables)]
        self._write_parquet("curves.parquet", tables)

    def _write_rows(self) -> None:
        rows = self.runs()
        methods = [self.methods[self._order[row.method]] for row in rows]
        columns: dict[str, Any] = {
            name: [getattr(method, name) for method in methods] for name in _METHOD_TYPES
        }
        columns |= {name: [getattr(row, name) for row in rows] for name in _ROW_TYPES}
        types = {"method": "string"} | _METHOD_TYPES | _ROW_TYPES
        self._write_parquet("runs.parquet", [parquet.make_table(columns, types)])

    def _write_parquet(self, name: str, tables: Sequence[pyarrow.Table]) -> None:
        metadata = {"format": _FORMAT, "schema_version": str(SCHEMA_VERSION)}
        parquet.write_tables(self.path / name, tables, metadata)

    def _read_rows(self) -> None:
        path = self.path / "runs.parquet"
        columns, _ = parquet.read_table(path, _ROW_TYPES)
        for values in zip(*(column.tolist() for column in columns.values()), strict=True):
            row = RunRow(*values)
            self._check_method(path, row.method)
            self._rows[row.method, row.seed] = row

    def _read_curves(self) -> None:
        path = self.path / "curves.parquet"
        columns, _ = parquet.read_table(path, self._curve_types())
        method, seed = columns["method"], columns["seed"]
        change = np.flatnonzero((method[1:] != method[:-1]) | (seed[1:] != seed[:-1])) + 1
        for part in np.split(np.arange(len(method)), change):
            if len(part):
                self._read_curve(path, {name: v[part] for name, v in columns.items()})

    def _read_curve(self, path: Path, columns: parquet.Columns) -> None:
        curve = Curve(
            str(columns["method"][0]),
            int(columns["seed"][0]),
            **{name: columns[name] for name in POSITION},
            metrics={metric.name: columns[metric.name] for metric in self.metrics},
        )
        self._check_method(path, curve.method)
        try:
            curve.check()
        except ValueError as error:
            raise ConfigurationError(f"{path}: damaged: {error}") from error
        self._curves[curve.method, curve.seed] = curve

    def _check_method(self, path: Path, method: str) -> None:
        if method not in self._order:
            raise ConfigurationError(f"{path}: damaged: method {method!r} is not in record.json")


def is_run(path: str | Path) -> bool:
    """Whether the directory holds a straggler run of any version."""
    marker = Path(path) / "record.json"
    with parquet.user_errors(marker, "read"):
        present = marker.is_file()
    return present and parquet.read_json(marker).get("format") == _FORMAT


def _clear(path: Path, overwrite: bool) -> None:
    with parquet.user_errors(path, "use as a run's directory"):
        path.mkdir(parents=True, exist_ok=True)
        found = sorted(item.name for item in path.iterdir())
    if not found:
        return
    if not is_run(path):
        raise ConfigurationError(
            f"{path}: expected a new or empty directory, or an earlier run; it holds "
            f"{', '.join(found[:3])}{' ...' if len(found) > 3 else ''}"
        )
    if not overwrite:
        raise ConfigurationError(f"{path}: holds an earlier run; remove it or choose another place")
    with parquet.user_errors(path, "overwrite"):
        for directory in (path / "schedules").glob("*--seed*"):
            parquet.remove_schedule(directory)
        for name in ("runs.parquet", "curves.parquet", "versions.json", "scenario.toml"):
            (path / name).unlink(missing_ok=True)


def _read_header(path: Path) -> tuple[str, list[Metric], list[MethodRecord]]:
    marker = path / "record.json"
    if not marker.is_file():
        raise ConfigurationError(f"{path}: not a straggler run: {marker.name} is missing")
    header = parquet.read_json(marker)
    if header.get("format") != _FORMAT:
        raise ConfigurationError(f"{marker}: not a straggler run: format is not {_FORMAT!r}")
    version = header.get("schema_version")
    if not isinstance(version, int) or version < 1:
        raise ConfigurationError(f"{marker}: damaged: schema_version = {version!r}")
    if version > SCHEMA_VERSION:
        raise ConfigurationError(
            f"{marker}: written by a newer straggler (schema_version = {version}; this one reads "
            f"up to {SCHEMA_VERSION}): upgrade straggler to read it"
        )
    try:
        metrics = [Metric(**metric) for metric in header["metrics"]]
        methods = [MethodRecord(**method) for method in header["methods"]]
        run = RunDirectory(path, str(header["name"]), metrics, methods)
        run._check_names()
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(f"{marker}: damaged: {error}") from error
    return run.name, metrics, methods
