"""What the README shows works as shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from scenarios.api import load
from scenarios.run import narrowed

README = Path(__file__).parents[1] / "README.md"


def block(language: str) -> str:
    found = re.findall(rf"```{language}\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert len(found) == 1
    return found[0]


def test_the_scenario_is_one(tmp_path: Path) -> None:
    rows = [f"{worker},{step},{worker + 1}" for worker in range(8) for step in range(3)]
    (tmp_path / "steps.csv").write_text("\n".join(["worker,step,seconds", *rows]), "utf-8")
    path = tmp_path / "mine.toml"
    path.write_text(block("toml"), "utf-8")
    scenario = load(str(path))
    assert scenario.fleet.workers == 8
    assert scenario.methods[0].hyperparameters == {"stepsize": 0.08, "momentum": 0.5}


def test_the_python_snippet_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-c", block("python")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Rennala SGD" in done.stdout
    assert list((tmp_path / "runs/quadratic/plots").glob("*.png"))


def test_every_scenario_and_method_it_names_is_shipped() -> None:
    commands = re.findall(r"straggler (?:run|tune|theory) ([a-z][a-z-]+)(.*)", README.read_text())
    assert len(commands) > 5
    for name, rest in commands:
        methods = re.search(r"--methods (\S+)", rest)
        narrowed(load(name), methods=methods[1].split(",") if methods else None)
