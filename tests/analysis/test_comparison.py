import re

import pytest
from analysis_data import write_run
from typer.testing import CliRunner

from analysis.comparison import compare
from scenarios.cli import app
from simulator.errors import ConfigurationError
from simulator.records import RunRow


def reaching(seconds):
    """Curves, by seed, that jump from 0 to 1 at these times."""
    return {seed: ([0, at, 100], [0, 1, 1]) for seed, at in enumerate(seconds)}


def run_of(path):
    return write_run(
        path, {"fast": reaching([1, 2, 3, 4]), "same": reaching([10, 20, 30, 40]),
               "slow": reaching([10, 20, 30, 40])},
    )  # fmt: skip


def test_the_command_says_it_in_words(tmp_path):
    run = run_of(tmp_path / "run")
    result = CliRunner().invoke(app, ["compare", str(run.path)])
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [
        "Time until Mean return is 0.9, against slow:",
        "  fast: 10 times faster (95% interval 10 to 10), 4 seeds",
        "  same: no significant difference (95% interval 1 to 1), 4 seeds",
    ]


def test_an_interval_is_of_what_is_said(tmp_path):
    run = write_run(
        tmp_path / "run",
        {"slow": reaching([20, 50, 80, 90]), "base": reaching([10, 20, 30, 40])},
    )
    line = compare(run, "base")[1]
    times, low, high = map(
        float, re.findall(r"[\d.]+(?= times)|(?<=interval )[\d.]+|(?<= to )[\d.]+", line)
    )
    assert "slower" in line
    assert 1 < low <= times <= high


def test_a_failed_seed_is_one_that_never_reached_the_target(tmp_path):
    run = run_of(tmp_path / "run")
    run.write(RunRow("fast", 4, error="boom"), None, None)
    run.write(RunRow("slow", 4, error="interrupted at 3 s"), None, None)
    run.write(RunRow("same", 4, error=""), None, None)
    assert "faster" in compare(run)[1]
    assert "not reached by both on 1 of 5 seeds" in compare(run, "same")[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": "slwo"}, "Did you mean 'slow'"),
        ({"metric": "retrun"}, "Did you mean 'return'"),
        ({"target": 0.0}, "reached before any training"),
        ({"target": float("nan")}, "no method got better"),
    ],
)
def test_mistakes_are_named(tmp_path, options, message):
    run = run_of(tmp_path / "run")
    with pytest.raises(ConfigurationError, match=message):
        compare(run, **options)
