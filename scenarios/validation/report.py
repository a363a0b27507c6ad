"""The report of a validation: ``report.md`` to read, ``results.json`` to compute with, figures.

Nothing in it depends on the clock or on where it is written: the same code, machine and effort
give the same bytes.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from analysis.theory.figures import draw_and_save
from scenarios.validation.outcome import Effort, NumberTable, Outcome, Part
from simulator.errors import ConfigurationError

_RESULTS, _REPORT, _FIGURES = "results.json", "report.md", "figures"
_FORMAT = "straggler-validation 1"
_PACKAGES = ("straggler", "simpy", "numpy", "scipy", "jax")
_MANY_ROWS = 60


class Report:
    """A directory with a report, complete after every part.

    Args:
        directory: new, empty, or of an earlier report, which is replaced.
        effort: quick or full.
        parts: that are to come.

    Raises:
        ConfigurationError: it holds something else, or can not be written.
    """

    def __init__(self, directory: Path, effort: Effort, parts: Sequence[Part]) -> None:
        self._directory, self._effort, self._parts = directory, effort, parts
        self._done: list[tuple[Part, Outcome, list[str]]] = []
        with _told(directory):
            _clear(directory)
            directory.mkdir(parents=True, exist_ok=True)
            self._write()

    def add(self, part: Part, outcome: Outcome) -> None:
        """Draw a part's figures and write it down."""
        stems = []
        for figure in outcome.figures:
            stem = self._directory / _FIGURES / figure.stem
            draw_and_save(figure.draw, stem, *figure.arguments)
            stems.append(f"{_FIGURES}/{figure.stem}.png")
        self._done.append((part, outcome, stems))
        self._done.sort(key=lambda entry: self._parts.index(entry[0]))
        with _told(self._directory):
            self._write()

    def _write(self) -> None:
        text = "\n".join(self._lines()) + "\n"
        (self._directory / _REPORT).write_text(text, encoding="utf-8")
        results = json.dumps(_plain(self._results()), indent=1, ensure_ascii=False)
        (self._directory / _RESULTS).write_text(results + "\n", encoding="utf-8")

    def _results(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "effort": "quick" if self._effort.is_quick else "full",
            "versions": {name: version(name) for name in _PACKAGES},
            "is_complete": len(self._done) == len(self._parts),
            "parts": [_part_results(part, outcome, stems) for part, outcome, stems in self._done],
        }

    def _lines(self) -> Iterator[str]:
        effort = "quick" if self._effort.is_quick else "full"
        yield "# Theory beside measurement"
        yield ""
        yield (
            f"Report of `straggler validate`, {effort}. "
            + ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
            + "."
        )
        yield ""
        yield from self._summary()
        for part, outcome, stems in self._done:
            yield from _part_lines(part, outcome, stems)

    def _summary(self) -> Iterator[str]:
        done = {part.id: outcome for part, outcome, _ in self._done}
        rows = []
        for part in self._parts:
            outcome = done.get(part.id)
            if outcome is None:
                rows.append((part.id, part.title, "not run", ""))
                continue
            passed = sum(check.is_passed for check in outcome.checks)
            verdict = "pass" if outcome.is_passed else "**FAIL**"
            rows.append((part.id, part.title, verdict, f"{passed} of {len(outcome.checks)}"))
        yield from _table(("part", "about", "result", "checks passed"), rows)
        yield (
            "A check is a statement that measurement can refute. What theory only bounds is "
            'compared under "Where measurement and theory disagree", with the reason.'
        )
        yield ""


def _part_lines(part: Part, outcome: Outcome, stems: Sequence[str]) -> Iterator[str]:
    yield f"## {part.id}. {part.title}"
    yield ""
    yield part.question
    yield ""
    rows = [
        ("pass" if check.is_passed else "**FAIL**", check.claim, check.measured)
        for check in outcome.checks
    ]
    yield from _table(("result", "claim", "measured"), rows)
    for figure, path in zip(outcome.figures, stems, strict=True):
        yield f"![{figure.caption}]({path})"
        yield ""
        yield f"*{figure.caption}*"
        yield ""
    if outcome.disagreements:
        yield "### Where measurement and theory disagree"
        yield ""
        for found in outcome.disagreements:
            yield f"**{found.what}.**"
            yield ""
            for line in found.size.split("; "):
                yield f"- {line}"
            yield ""
            yield found.why
            yield ""
    for table in outcome.tables:
        yield f"### {table.title}"
        yield ""
        yield from _table(table.columns, table.rows[:_MANY_ROWS])
        if len(table.rows) > _MANY_ROWS:
            yield f"The first {_MANY_ROWS} of {len(table.rows)} rows; all are in `{_RESULTS}`."
            yield ""


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    yield "| " + " | ".join(_cell(column) for column in columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(_cell(value) for value in row) + " |"
    yield ""


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "-" if math.isnan(value) else f"{float(value):.4g}"
    return str(value).replace("|", "\\|")


def _part_results(part: Part, outcome: Outcome, stems: Sequence[str]) -> dict[str, Any]:
    return {
        "id": part.id,
        "title": part.title,
        "is_passed": outcome.is_passed,
        "checks": [vars(check) for check in outcome.checks],
        "disagreements": [vars(found) for found in outcome.disagreements],
        "figures": list(stems),
        "tables": [_table_results(table) for table in outcome.tables],
    }


def _table_results(table: NumberTable) -> dict[str, Any]:
    return {"title": table.title, "columns": list(table.columns), "rows": table.rows}


def _plain(value: Any) -> Any:
    """What JSON knows; a number that it does not know becomes its name."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _clear(directory: Path) -> None:
    """Remove an earlier report, and nothing else."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise ConfigurationError(f"--out {directory}: a file; expected a directory, new or empty")
    if not any(directory.iterdir()):
        return
    if not _is_ours(directory / _RESULTS):
        raise ConfigurationError(
            f"--out {directory}: holds something else; expected a new or empty directory, or an "
            "earlier report of `straggler validate`, which is replaced"
        )
    shutil.rmtree(directory / _FIGURES, ignore_errors=True)
    for name in (_REPORT, _RESULTS):
        (directory / name).unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and str(found.get("format", "")).startswith(
        "straggler-validation"
    )


@contextmanager
def _told(directory: Path) -> Iterator[None]:
    """Turns what the disk refuses into a message."""
    try:
        yield
    except OSError as error:
        raise ConfigurationError(
            f"{directory}: cannot write the report: {error.strerror or error}"
        ) from error
