"""``straggler validate`` as it is used: its report, its exit code, and what it refuses."""

from __future__ import annotations

import json
import multiprocessing
import os

import pytest
from typer.testing import CliRunner

from scenarios.cli import app
from scenarios.validation import parts, processes
from scenarios.validation.outcome import Check, Effort, NumberTable, Outcome, Part
from scenarios.validation.report import Report
from scenarios.validation.run import validate
from simulator.errors import ConfigurationError

PART = Part("1", "Bars", "Are bars escaped?", lambda effort, advance: OUTCOME)
OUTCOME = Outcome(
    (Check("E|x| is small", True, "|x| = 1"),),
    (),
    (NumberTable("Sizes", ("E|x|", "seconds"), ((0.5, 1.0), (float("nan"), 2.0))),),
    (),
)


def run(part: Part, directory):
    return validate([part], Effort(True), directory, lambda *_: None, lambda _: None)


def test_tables_survive_bars(tmp_path) -> None:
    run(PART, tmp_path / "report")
    lines = (tmp_path / "report" / "report.md").read_text().splitlines()
    assert "| E\\|x\\| | seconds |" in lines
    assert "| pass | E\\|x\\| is small | \\|x\\| = 1 |" in lines


def test_the_same_bytes_twice_in_the_same_place(tmp_path) -> None:
    first = tmp_path / "first"
    run(PART, first)
    before = {path.name: path.read_bytes() for path in first.iterdir()}
    run(PART, first)
    assert {path.name: path.read_bytes() for path in first.iterdir()} == before
    assert json.loads(before["results.json"])["is_complete"] is True


def test_a_crash_is_a_failed_check_and_the_report_is_there(tmp_path) -> None:
    def crash(effort, advance):
        raise RuntimeError("broken\nsecond line")

    done = run(Part("1", "Crash", "?", crash), tmp_path / "report")
    assert not done[0].outcome.is_passed
    assert "RuntimeError: broken |" in (tmp_path / "report" / "report.md").read_text()


def test_side_by_side_the_report_is_the_same(tmp_path) -> None:
    """In two processes; parts end in another order than they are reported in."""
    chosen = parts.choose(["2", "5"])
    heard = []
    for jobs in (1, 2):
        directory = tmp_path / str(jobs)
        done = validate(
            chosen, Effort(True), directory, lambda part, _: heard.append(part.id), print, jobs
        )
        assert [one.part.id for one in done] == ["2", "5"]
        assert all(one.outcome.is_passed for one in done)
    assert set(heard) == {"2", "5"}
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / jobs).iterdir() if path.is_file()}
        for jobs in ("1", "2")
    )
    assert one == two


def test_a_process_that_dies_is_a_failed_check() -> None:
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=os.abort)
    process.start()
    theirs.close()
    found = processes.hear(ours, process)
    assert isinstance(found, Outcome)
    assert not found.is_passed
    assert found.checks[0].measured == "the process that ran it ended with code -6"


def test_an_interrupt_tells_what_is_kept(tmp_path) -> None:
    def interrupt(effort, advance):
        raise KeyboardInterrupt

    directory = tmp_path / "report"
    chosen = [PART, Part("2", "Interrupted", "?", interrupt)]
    with pytest.raises(KeyboardInterrupt, match=r"1 of 2 parts are in .*report\.md"):
        validate(chosen, Effort(True), directory, lambda *_: None, print)
    assert "| 1 | Bars | pass |" in (directory / "report.md").read_text()


def test_somebody_elses_directory_is_left_alone(tmp_path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(ConfigurationError, match="holds something else"):
        Report(tmp_path, Effort(True), [PART])
    with pytest.raises(ConfigurationError, match="a file; expected a directory"):
        Report(tmp_path / "mine.txt", Effort(True), [PART])
    assert (tmp_path / "mine.txt").read_text() == "precious"


@pytest.mark.parametrize(("is_passed", "code"), [(True, 0), (False, 1)])
def test_the_command_tells_by_its_exit_code(tmp_path, monkeypatch, is_passed, code) -> None:
    outcome = Outcome((Check("claim", is_passed, "measured"),))
    part = Part("1", "Title", "Question?", lambda effort, advance: outcome)
    monkeypatch.setattr(parts, "PARTS", (part,))
    result = CliRunner().invoke(app, ["validate", "--quick", "--out", str(tmp_path / "report")])
    assert result.exit_code == code, result.output
    assert "report.md" in result.output


def test_the_command_refuses_a_part_that_is_not_there(tmp_path) -> None:
    result = CliRunner().invoke(app, ["validate", "--parts", "9", "--out", str(tmp_path / "x")])
    assert result.exit_code == 2
    assert "expected numbers out of 1 (Times" in result.output
    assert not (tmp_path / "x").exists()
