"""What tests of stores and sweeps share: a small sweep, and a backend without processes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w
from scenario_data import small

from scenarios.backends.backend import Listener
from scenarios.backends.bench import Bench
from scenarios.backends.worker import compute
from scenarios.load import from_data
from scenarios.store import RunSpec, Store
from scenarios.sweeps.point import Point, specs

_BENCH = Bench()


class HereBackend:
    """Computes in this process, in order."""

    def run(self, store: Store, specs: Sequence[RunSpec], listener: Listener) -> None:
        for party in _BENCH.parties(specs):
            for spec in party:
                listener.started(spec)
            for spec, outcome in zip(party, compute(store, _BENCH, party), strict=True):
                listener.finished(spec, outcome)

    def close(self) -> None:
        pass


def small_specs(**changes: Any) -> list[RunSpec]:
    return specs(Point({}, from_data(small(**changes), "small.toml")))


def sweep_file(directory: Path, **keys: Any) -> Path:
    """A sweep over the small scenario, two points and two methods."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "small.toml").write_text(tomli_w.dumps(small()), encoding="utf-8")
    data = {"scenario": "small.toml", "seeds": 2, "axes": {"budget.seconds": [3, 5]}} | keys
    path = directory / "sweep.toml"
    path.write_text(tomli_w.dumps(data), encoding="utf-8")
    return path


def contents(store: str | Path) -> dict[str, bytes]:
    """Name -> bytes of every finished run."""
    return {path.name: path.read_bytes() for path in (Path(store) / "runs").glob("*.parquet")}
