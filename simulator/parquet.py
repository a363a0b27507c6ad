"""Files of a run on disk: atomic writes, and reads that say which file is wrong and how.

pyarrow is imported when the first file is read or written: it costs a tenth of a second.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.errors import ConfigurationError
from simulator.schedule import Schedule

if TYPE_CHECKING:
    import pyarrow

Columns = dict[str, np.ndarray[Any, Any]]

COMPUTATIONS = {
    "worker": "int32",
    "k": "int32",
    "version": "int32",
    "start_seconds": "double",
    "stop_seconds": "double",
    "status": "int8",
    "step": "int32",
    "weight": "double",
}
STEPS = {"step_seconds": "double", "close_seconds": "double", "uploads": "int64"}
MESSAGES = {
    "message_worker": "int32",
    "message_direction": "int8",
    "message_sent_seconds": "double",
    "message_received_seconds": "double",
}
_SCHEDULE_FILES = {
    "computations.parquet": COMPUTATIONS,
    "steps.parquet": STEPS,
    "messages.parquet": MESSAGES,
}


@contextmanager
def user_errors(path: Path, doing: str) -> Iterator[None]:
    """Turn what the file system says about ``path`` into a ConfigurationError."""
    try:
        yield
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot {doing}: {error.strerror or error}") from error


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a file beside ``path``, then rename it: readers see all or nothing.

    Raises:
        ConfigurationError: if the file system refuses.
    """
    partial = path.with_name(f".{path.name}.partial")
    with user_errors(path, "write"):
        try:
            write(partial)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)


def write_durably(path: Path, content: bytes, wait: bool = True) -> None:
    """Write a file beside ``path``, see it onto the disk, and only then give it its name.

    Args:
        path: of the file.
        content: of it.
        wait: for the disk; False where a file that a power cut damages can be made again.

    Raises:
        ConfigurationError: the file system refuses (disk full, no permission); what was there
            before is still there.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.partial")
    with user_errors(path, "write"):
        try:
            with partial.open("wb") as file:
                file.write(content)
                file.flush()
                if wait:
                    os.fsync(file.fileno())
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8, atomically, with line ends as they are."""
    write_atomically(path, lambda partial: partial.write_bytes(text.encode()))


def write_json(path: Path, value: object) -> None:
    """Write ``value`` as indented JSON, atomically; NaN is refused (ValueError)."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, line ends as they are.

    Raises:
        ConfigurationError: missing, unreadable or not UTF-8.
    """
    with user_errors(path, "read"):
        content = path.read_bytes()
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: damaged: not UTF-8 at byte {error.start}") from error


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        ConfigurationError: missing, unreadable, not JSON, or not an object.
    """
    try:
        value = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{path}: damaged: {error}") from error
    if not isinstance(value, dict):
        raise ConfigurationError(f"{path}: damaged: expected a JSON object")
    return value


def make_table(columns: Mapping[str, Any], types: Mapping[str, str]) -> pyarrow.Table:
    """An Arrow table of ``columns``, in the order and with the Arrow types of ``types``."""
    import pyarrow as pa

    fields = [pa.field(name, pa.type_for_alias(kind), False) for name, kind in types.items()]
    arrays = [pa.array(columns[field.name], type=field.type) for field in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def write_tables(
    path: Path,
    tables: Sequence[pyarrow.Table],
    metadata: Mapping[str, str],
) -> None:
    """Write tables of one schema one after the other as one Parquet file, atomically.

    The bytes depend on the contents and the pyarrow version alone.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.concat_tables(tables).combine_chunks().replace_schema_metadata(dict(metadata))
    write_atomically(
        path,
        lambda partial: pq.write_table(
            table, partial, compression="zstd", write_page_checksum=True
        ),
    )


def read_table(path: Path, types: Mapping[str, str]) -> tuple[Columns, dict[str, str]]:
    """Columns of a Parquet file as NumPy arrays (strings: dtype object), and its metadata.

    Raises:
        ConfigurationError: missing or damaged file, a missing column, another type, a null.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with user_errors(path, "read"):
        if not path.is_file():
            raise ConfigurationError(f"{path}: missing")
        try:
            # One whole-file read: no dataset machinery guessing columns from directory names.
            # In this thread: Arrow's pool, started for small files, can abort a process that exits.
            table = pq.ParquetFile(path, page_checksum_verification=True).read(use_threads=False)
            for name, kind in types.items():
                _check_column(table, name, kind)
            metadata = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
            return {name: table.column(name).to_numpy() for name in types}, metadata
        except PermissionError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            # ValueError: also text that is not UTF-8, which Arrow does not check on reading.
            first_line = (str(error) or repr(error)).splitlines()[0]
            raise ConfigurationError(f"{path}: damaged: {first_line}") from error


def _check_column(table: pyarrow.Table, name: str, kind: str) -> None:
    if table.column_names.count(name) != 1:
        raise ValueError(f"expected one column {name!r}")
    column = table.column(name)
    if str(column.type) != kind:
        raise ValueError(f"column {name!r} holds {column.type}, expected {kind}")
    if column.null_count:
        raise ValueError(f"column {name!r} has empty cells")


def write_schedule(directory: Path, schedule: Schedule) -> None:
    """Write a schedule as a directory of three Parquet files, which appears complete or not at all.

    Scalars (n_workers, end_seconds, stalled) are metadata of ``computations.parquet``.

    Raises:
        ConfigurationError: if the file system refuses.
    """
    scalars = {
        "n_workers": str(schedule.n_workers),
        "end_seconds": repr(float(schedule.end_seconds)),
        "stalled": schedule.stalled,
    }
    partial = directory.with_name(f".{directory.name}.partial")
    with user_errors(directory, "write"):
        try:
            partial.mkdir(parents=True, exist_ok=True)
            for name, types in _SCHEDULE_FILES.items():
                metadata = scalars if types is COMPUTATIONS else {}
                write_tables(partial / name, [make_table(vars(schedule), types)], metadata)
            remove_schedule(directory)
            os.replace(partial, directory)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def remove_schedule(directory: Path) -> None:
    """Remove what :func:`write_schedule` wrote, and nothing else."""
    for name in _SCHEDULE_FILES:
        (directory / name).unlink(missing_ok=True)
    if directory.is_dir():
        directory.rmdir()


def read_schedule(directory: Path) -> Schedule:
    """Read what :func:`write_schedule` wrote: equal in every bit.

    Raises:
        ConfigurationError: missing or damaged, naming the file.
    """
    columns: Columns = {}
    scalars: dict[str, str] = {}
    for name, types in _SCHEDULE_FILES.items():
        part, metadata = read_table(directory / name, types)
        columns |= part
        scalars |= metadata
    try:
        return Schedule(
            n_workers=int(scalars["n_workers"]),
            end_seconds=float(scalars["end_seconds"]),
            stalled=scalars["stalled"],
            **columns,
        )
    except (KeyError, ValueError) as error:
        raise ConfigurationError(
            f"{directory / 'computations.parquet'}: damaged: metadata: {error}"
        ) from error
