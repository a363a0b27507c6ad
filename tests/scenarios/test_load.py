"""Loading: finding files, syntax errors, overrides, files beside a scenario."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tomli_w
from scenario_data import small

from scenarios.load import find, load, override, parse_override, shipped
from simulator.errors import ConfigurationError


def written(directory: Path, data: dict, name: str = "mine.toml") -> Path:
    path = directory / name
    path.write_text(tomli_w.dumps(data), encoding="utf-8")
    return path


def refusal(path: str | Path, overrides: object = ()) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(path, overrides)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_file_is_called_by_its_stem(tmp_path):
    data = small(name=None)
    assert load(written(tmp_path, data)).name == "mine"


def test_shipped_scenarios_go_by_name():
    assert load("two-speed").name == "two-speed"
    assert find("two-speed") == shipped()["two-speed"]


def test_unknown_shipped_scenario_suggests_the_nearest():
    assert refusal("two-sped") == (
        "'two-sped': no such shipped scenario. Did you mean 'two-speed'?"
    )


@pytest.mark.parametrize("text", ["no/such.toml", "nothing.toml", "\0.toml", "/"])
def test_missing_file(text):
    assert "no such scenario file" in refusal(text)


def test_syntax_error_names_file_line_and_column(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("[fleet]\nworkers == 3\n", encoding="utf-8")
    assert refusal(path) == f"{path}: not TOML: Invalid value (at line 2, column 10)"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"name = '\xff'", "byte 8 is not UTF-8"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b"a = 2020-13-45", "not TOML"),
        (b"a = " + b"9" * 5000, "not TOML: a number has too many digits"),
        (b"", "problem: missing"),
        (b"seeds = 2020-01-01", "seeds = 2020-01-01: expected a number, text, list or table"),
    ],
)
def test_damaged_files(tmp_path, content, expected):
    path = tmp_path / "damaged.toml"
    path.write_bytes(content)
    assert expected in refusal(path)


def test_a_trace_lies_beside_its_scenario(tmp_path, monkeypatch):
    rows = "".join(f"{worker},{step},1.5\n" for worker in range(3) for step in range(2))
    (tmp_path / "trace.csv").write_text(f"worker,step,seconds\n{rows}", encoding="utf-8")
    path = written(tmp_path, small(fleet__compute__model={"kind": "trace", "path": "trace.csv"}))
    monkeypatch.chdir("/")
    assert load(path).fleet.compute.path == str(tmp_path / "trace.csv")


def test_trace_with_missing_workers(tmp_path):
    (tmp_path / "trace.csv").write_text("worker,step,seconds\n0,0,1.0\n1,0,2.0\n", "utf-8")
    path = written(tmp_path, small(fleet__compute__model={"kind": "trace", "path": "trace.csv"}))
    text = refusal(path)
    assert text.startswith(f"{path}: fleet.compute.model: {tmp_path / 'trace.csv'}: no rows for")
    assert "worker 2" in text


def test_missing_trace(tmp_path):
    path = written(tmp_path, small(fleet__compute__model={"kind": "trace", "path": "no.csv"}))
    assert f"fleet.compute.model: {tmp_path / 'no.csv'}: " in refusal(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fleet.workers=100", ("fleet.workers", 100)),
        ("seeds=[1, 2]", ("seeds", [1, 2])),
        ("a.b = { kind = 'power', exponent = 1 }", ("a.b", {"kind": "power", "exponent": 1})),
        ("executor=sequential", ("executor", "sequential")),
        ("name=a = b", ("name", "a = b")),
        ("name=1\nother = 2", ("name", "1\nother = 2")),
        ("name=", ("name", "")),
    ],
)
def test_override_values_are_toml_or_text(text, expected):
    assert parse_override(text) == expected


@pytest.mark.parametrize("text", ["fleet.workers", "=3", ""])
def test_override_needs_a_path_and_a_value(text):
    with pytest.raises(ConfigurationError, match="expected path=value"):
        parse_override(text)


def test_overrides_reach_methods_by_position_name_and_id(tmp_path):
    path = written(tmp_path, small(methods__1__name="mine"))
    scenario = load(
        path,
        {
            "methods.0.stepsize": 0.1,
            "methods.mine.stepsize": 0.2,
            "methods.rennala-sgd.batch_size": 7,
            "evaluation.target": 1,
        },
    )
    assert [m.hyperparameters["stepsize"] for m in scenario.methods] == [0.1, 0.2]
    assert scenario.methods[0].arguments["batch_size"] == 7
    assert scenario.evaluation.target == 1


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("methods.renala-sgd.stepsize", "no entry 'renala-sgd'. Did you mean 'rennala-sgd'?"),
        ("methods.7.stepsize", "no entry '7'. Known: asynchronous-sgd, rennala-sgd."),
        ("fleet.workers.x", "fleet.workers is 3 and has no parts; set fleet.workers itself"),
        ("fleet.wokers", "fleet.wokers: unknown key. Did you mean 'workers'?"),
        ("fleet..workers", "unknown key"),
    ],
)
def test_overrides_that_lead_nowhere(tmp_path, place, expected):
    assert expected in refusal(written(tmp_path, small()), {place: 1})


def test_an_override_makes_the_tables_it_needs():
    data: dict = {}
    override(data, "network.up.model", "constant")
    assert data == {"network": {"up": {"model": "constant"}}}


def test_loading_imports_no_jax_before_a_method_is_read():
    code = "import sys, scenarios.load, scenarios.schema, scenarios.compose; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"jax", "scipy.stats", "matplotlib", "gymnasium"} & set(result.stdout.split())
