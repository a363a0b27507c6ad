"""Tables of delays on disk, CSV or Parquet, read with errors that name file, line and column."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.errors import ConfigurationError, nearest

_LARGEST_COUNT = 2.0**53


@dataclass(frozen=True, eq=False)
class DelayFile:
    """The columns of a file, unread as yet.

    Attributes:
        path: the file.
        columns: name -> cells, [n_rows]: text of a CSV file, values of a Parquet file.
        lines: CSV line of each row, [n_rows]; None for a Parquet file.
        seconds_column: the column that holds the delays.
    """

    path: Path
    columns: dict[str, Sequence[Any]]
    lines: Sequence[int] | None
    seconds_column: str

    def seconds(self) -> NDArray[np.float64]:
        """The delays, [n_rows], >= 0.

        Raises:
            ConfigurationError: a cell is no such number.
        """
        values = self._numbers(self.seconds_column)
        self._require(values >= 0, self.seconds_column, "a number >= 0 (seconds)")
        return values

    def counts(self, name: str) -> NDArray[np.int64]:
        """A column of integers >= 0, [n_rows].

        Raises:
            ConfigurationError: no such column, or a cell is no such number.
        """
        if name not in self.columns:
            raise ConfigurationError(
                f"{self.path}: no column {name!r}; it has {', '.join(self.columns)}; expected "
                "worker, step and seconds"
            )
        values = self._numbers(name)
        is_count = (values >= 0) & (values < _LARGEST_COUNT) & (values == np.floor(values))
        self._require(is_count, name, "an integer >= 0")
        return values.astype(np.int64)

    def position(self, row: int) -> str:
        """Where a row is: 'line 7' or 'row 6'."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def where(self, row: int) -> str:
        """File and position of a row."""
        return f"{self.path}: {self.position(row)}"

    def _numbers(self, name: str) -> NDArray[np.float64]:
        cells = self.columns[name]
        try:
            return np.array([float(cell) for cell in cells])
        except (TypeError, ValueError, OverflowError):
            for row, cell in enumerate(cells):
                if not _is_number(cell):
                    self._refuse(row, name, "a number")
            raise

    def _require(self, is_right: NDArray[np.bool_], name: str, expected: str) -> None:
        for row in np.flatnonzero(~is_right):
            self._refuse(int(row), name, expected)

    def _refuse(self, row: int, name: str, expected: str) -> None:
        cell = self.columns[name][row]
        value = "is empty" if cell in ("", None) else f"= {cell}"
        raise ConfigurationError(f"{self.where(row)}, column {name!r} {value}: expected {expected}")


def read_delay_file(path: Path, column: str | None = None) -> DelayFile:
    """Read a table and find its column of seconds.

    Args:
        path: ends in ``.csv`` or ``.parquet``.
        column: of the seconds; default ``seconds``, the only one that ends in ``seconds``, or
            the only one at all.

    Raises:
        ConfigurationError: missing, unreadable, empty or ragged file; no or several columns that
            could be meant.
    """
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise ConfigurationError(f"{path}: expected a file that ends in .csv or .parquet")
    try:
        columns, lines = read(path)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot read: {error.strerror or error}") from error
    seconds_column = _seconds_column(path, list(columns), column)
    if not len(columns[seconds_column]):
        raise ConfigurationError(f"{path}: no rows; expected at least one delay")
    return DelayFile(path, columns, lines, seconds_column)


_Columns = tuple[dict[str, Sequence[Any]], Sequence[int] | None]


def _read_csv(path: Path) -> _Columns:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        try:
            names = [name.strip() for name in next(reader, [])]
            _check_names(path, names)
            rows, lines = [], []
            for row in reader:
                if row:
                    _check_width(path, reader.line_num, len(row), len(names))
                    rows.append(row)
                    lines.append(reader.line_num)
        except csv.Error as error:
            raise ConfigurationError(f"{path}: line {reader.line_num}: {error}") from error
        except UnicodeDecodeError as error:
            raise ConfigurationError(f"{path}: not a UTF-8 text file: {error.reason}") from error
    cells = zip(*rows, strict=True) if rows else [()] * len(names)
    return dict(zip(names, cells, strict=True)), lines


def _check_names(path: Path, names: Sequence[str]) -> None:
    if not names:
        raise ConfigurationError(f"{path}: empty; expected column names in line 1")
    for name in names:
        if _is_number(name):
            raise ConfigurationError(
                f"{path}: line 1 has the number {name}; expected column names, such as seconds"
            )
        if names.count(name) > 1:
            raise ConfigurationError(f"{path}: line 1 has two columns {name!r}")


def _check_width(path: Path, line: int, width: int, expected: int) -> None:
    if width != expected:
        raise ConfigurationError(
            f"{path}: line {line} has {width} cells; expected {expected}, as in line 1"
        )


def _read_parquet(path: Path) -> _Columns:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise ConfigurationError(f"{path}: cannot read: no such file")
    try:
        # Not read_table: it would take column names from directories.
        table = pq.ParquetFile(path).read(use_threads=False)
    except pa.ArrowException as error:
        raise ConfigurationError(f"{path}: damaged: {str(error).splitlines()[0]}") from error
    names = table.column_names
    if len(set(names)) < len(names):
        raise ConfigurationError(f"{path}: two columns of one name among {', '.join(names)}")
    return {name: table.column(name).to_pylist() for name in names}, None


_READERS: dict[str, Callable[[Path], _Columns]] = {".csv": _read_csv, ".parquet": _read_parquet}


def _seconds_column(path: Path, names: Sequence[str], column: str | None) -> str:
    if column is not None:
        if column not in names:
            raise ConfigurationError(
                f"{path}: no column {column!r}; it has {', '.join(names)}.{nearest(column, names)}"
            )
        return column
    if "seconds" in names:
        return "seconds"
    found = [name for name in names if name.endswith("seconds")]
    if len(names) == 1:
        found = list(names)
    if len(found) > 1:
        raise ConfigurationError(
            f"{path}: columns {', '.join(found)} could all be meant; name one as `column`"
        )
    if not found:
        raise ConfigurationError(
            f"{path}: no column 'seconds'; it has {', '.join(names)}; name one as `column`"
        )
    return found[0]


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
