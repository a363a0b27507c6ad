"""The layers: which package may import which, and what must not be imported at all."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("algorithms", "simulator", "analysis", "scenarios")
INTERFACES = {
    "algorithms.messages",
    "algorithms.coordinator",
    "algorithms.update_rule",
}
RECORD_SCHEMA = {
    "simulator.records",
    "simulator.record_types",
    "simulator.schedule",
    "simulator.errors",
}


def may_import(importer: str, imported: str) -> bool:
    """Whether a module of one package may import a module of another."""
    package, target = importer.split(".")[0], imported.split(".")[0]
    if package == target or package == "scenarios":
        return True
    if package == "simulator":
        return any(imported == name or imported.startswith(f"{name}.") for name in INTERFACES)
    if package == "analysis":
        return any(imported == name or imported.startswith(f"{name}.") for name in RECORD_SCHEMA)
    return False


def modules() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def imports_of(path: Path) -> set[str]:
    """Absolute names imported anywhere in a module, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            submodules = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if _is_module(name) else str(node.module) for name in submodules}
    return found


def _is_module(name: str) -> bool:
    path = ROOT / Path(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_arrows_point_down(path: Path) -> None:
    wrong = {
        imported
        for imported in imports_of(path)
        if imported.split(".")[0] in PACKAGES and not may_import(name_of(path), imported)
    }
    assert not wrong, f"{name_of(path)} must not import {sorted(wrong)}"


@pytest.mark.parametrize(
    "path",
    [
        ROOT / "algorithms/messages.py",
        ROOT / "algorithms/coordinator.py",
        *sorted((ROOT / "algorithms/coordinators").glob("*.py")),
    ],
    ids=name_of,
)
def test_coordinators_import_the_standard_library_only(path: Path) -> None:
    for imported in imports_of(path):
        top = imported.split(".")[0]
        is_own = imported.startswith(
            ("algorithms.messages", "algorithms.coordinator", "algorithms.coordinators")
        )
        assert is_own or top in sys.stdlib_module_names, imported
        assert top not in {"time", "random", "datetime", "asyncio", "threading"}, imported


def test_the_rule_can_fail() -> None:
    assert not may_import("algorithms.catalogue", "simulator.engine")
    assert not may_import("simulator.engine", "algorithms.coordinators.rennala")
    assert not may_import("analysis.plots", "simulator.engine")
    assert not may_import("simulator.engine", "scenarios.run")


@pytest.mark.parametrize("module", ["scenarios.cli", "algorithms.catalogue"])
def test_light_modules_stay_light(module: str) -> None:
    """`straggler --help` is instant because nothing heavy is imported for it."""
    heavy = ("jax", "scipy", "matplotlib", "pyarrow", "gymnasium", "optax")
    code = f"import sys, {module}; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"
