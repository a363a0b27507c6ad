"""``python -m tests.benchmarks.kills``: ``kill -9`` at twenty random moments of a sweep.

Starts the same sweep again and again, kills it, sometimes with all its processes and sometimes
only the one that deals the runs; lets it end; and compares the store with an undisturbed one, byte
for byte. Exits with 1 if they differ.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tomli_w

SWEEP = {
    "scenario": "quadratic",
    "methods": ["rennala-sgd", "asynchronous-sgd"],
    "seeds": 100,
    "set": {"budget": {"seconds": 500}, "fleet": {"workers": 20}},
    "axes": {"problem.noise": [0.02, 0.05]},
}
COMMAND = [sys.executable, "-c", "from scenarios.cli import main; main()"]


def start(path: Path, out: Path) -> subprocess.Popen[bytes]:
    """The sweep, in a process group of its own."""
    command = [*COMMAND, "sweep", str(path), "--out", str(out), "--jobs", "2", "--quiet"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)


def contents(out: Path) -> dict[str, bytes]:
    """Name -> bytes of every finished run."""
    return {path.name: path.read_bytes() for path in (out / "runs").glob("*.parquet")}


def kill(process: subprocess.Popen[bytes], rng: random.Random, after_seconds: float) -> bool:
    """Kill a sweep after a random time; whether it was still going."""
    time.sleep(rng.uniform(0, after_seconds))
    if process.poll() is not None:
        return False
    everybody = rng.random() < 0.5
    (os.killpg if everybody else os.kill)(process.pid, signal.SIGKILL)
    process.wait()
    return True


def main() -> None:
    """Kill, resume, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, kills = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "sweep.toml"
        path.write_text(tomli_w.dumps(SWEEP), encoding="utf-8")
        started = time.perf_counter()
        if start(path, Path(name) / "undisturbed").wait():
            sys.exit("the undisturbed sweep failed")
        whole_seconds = time.perf_counter() - started
        undisturbed = contents(Path(name) / "undisturbed")
        out, number = Path(name) / "killed-0", 0
        while kills < options.kills:
            if kill(start(path, out), rng, whole_seconds / 2):
                kills += 1
                print(f"kill {kills}: {len(contents(out))} of {len(undisturbed)} runs", flush=True)
                continue
            _compare(contents(out), undisturbed)  # it had ended: begin another store
            number += 1
            out = Path(name) / f"killed-{number}"
        if start(path, out).wait():
            sys.exit("the last sweep failed")
        _compare(contents(out), undisturbed)
    print(f"{kills} kills, {number + 1} stores: all as undisturbed, byte for byte")


def _compare(found: dict[str, bytes], undisturbed: dict[str, bytes]) -> None:
    if found != undisturbed:
        names = [n for n in found.keys() | undisturbed.keys() if found.get(n) != undisturbed.get(n)]
        sys.exit(f"{len(names)} runs differ from the undisturbed ones: {sorted(names)[:3]}")


if __name__ == "__main__":
    main()
