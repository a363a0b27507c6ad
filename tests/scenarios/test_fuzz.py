"""A thousand random and damaged scenario files: a result or one clear message, never more.

Half are put together from values that are right most of the time; half are a valid file with a
piece of it damaged. Those that turn out valid, and small enough to end, are run.
"""

from __future__ import annotations

import math
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scenario_data import small

from scenarios import compose
from scenarios.api import from_data, load, run
from scenarios.compose import Composer
from scenarios.dump import to_toml
from scenarios.load import parse
from simulator.errors import ConfigurationError, SimulationStalled
from simulator.records import RunDirectory

_EXAMPLES = 500
_SETTINGS = settings(
    max_examples=_EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def mostly(right: st.SearchStrategy[Any], wrong: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Wrong one time in sixty; not at 0, which hypothesis likes too much."""
    return st.integers(0, 59).flatmap(lambda n: wrong if n == 37 else right)


NONSENSE = st.one_of(
    st.sampled_from([0, -1, -0.5, math.nan, math.inf, -math.inf, True, "", "x", [], {}, 10**30]),
    st.lists(st.floats(), max_size=3),
    st.dictionaries(st.sampled_from(["kind", "value", "x"]), st.integers(), max_size=2),
)
SECONDS = mostly(st.sampled_from([0.25, 0.5, 1, 2.0, 3.5]), NONSENSE)
STEPSIZES = mostly(
    st.sampled_from([0.1, 0.5, 1e9, {"value": 0.5, "power": 0.5, "offset": 2.0}]), NONSENSE
)
COUNTS = mostly(st.integers(1, 4), NONSENSE)


def table(**entries: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """All the entries, now and then one less or one more."""
    full = st.fixed_dictionaries(entries)
    less = st.tuples(full, st.sampled_from(sorted(entries))).map(
        lambda pair: {key: value for key, value in pair[0].items() if key != pair[1]}
    )
    more = full.map(lambda data: {**data, "unknwon": 1})
    return mostly(full, st.one_of(less, more))


PROFILES = st.one_of(
    table(kind=st.just("equal"), base_seconds=SECONDS),
    table(kind=st.just("power"), exponent=st.sampled_from([0.5, 1, -1, 400.0])),
    st.just("linear"),
    table(
        kind=st.just("two-speed"),
        slow_factor=mostly(st.sampled_from([2.0, math.inf]), NONSENSE),
        slow_workers=mostly(st.integers(0, 3), NONSENSE),
    ),
    table(kind=st.just("last-slow"), slow_factor=st.just(math.inf)),
    table(
        kind=st.just("drawn"),
        name=st.sampled_from(["expon", "norm"]),
        parameters=st.just({}),
    ),
    table(kind=st.just("link"), bandwidth_bytes_per_second=SECONDS),
)
MODELS = st.one_of(
    st.just("constant"),
    table(
        kind=st.just("distribution"),
        name=st.sampled_from(["expon", "uniform"]),
        parameters=st.sampled_from([{}, {"loc": 1.0}, {"scale": 0.5}]),
    ),
    table(
        kind=st.just("distribution"),
        name=st.sampled_from(["lognorm", "gamma", "norm", "poisson", "nonsense"]),
        parameters=st.sampled_from([{"s": 0.5}, {"a": 2.0}, {}, {"loc": -1}, {"scale": 0}]),
    ),
    table(
        kind=st.just("empirical"),
        values=st.lists(SECONDS, min_size=1, max_size=3),
    ),
    table(kind=st.just("trace"), path=st.just("trace.csv")),
    table(kind=st.just("trace"), path=st.sampled_from(["short.csv", "no.csv"])),
)
DELAYS = st.one_of(
    SECONDS,
    st.lists(SECONDS, min_size=2, max_size=2),
    table(profile=mostly(PROFILES, NONSENSE), model=mostly(MODELS, NONSENSE)),
)
UPDATES = mostly(st.sampled_from(["sgd", "delay-adaptive-sgd", "optax.adam"]), st.just("optax.adm"))
METHODS = st.one_of(
    table(id=st.just("rennala-sgd"), batch_size=COUNTS, stepsize=STEPSIZES),
    table(
        id=st.just("rennala-nigt"),
        batch_size=COUNTS,
        initial_batch_size=COUNTS,
        stepsize=STEPSIZES,
        momentum=mostly(st.sampled_from([0.1, 1.0]), NONSENSE),
        stale=mostly(st.sampled_from(["cancel", "discard"]), NONSENSE),
    ),
    table(id=st.just("malenia-sgd"), batch_size=COUNTS, stepsize=STEPSIZES),
    table(
        id=st.sampled_from(["asynchronous-sgd", "afedpg", "synchronous-sgd"]), stepsize=STEPSIZES
    ),
    table(id=st.just("ringmaster-sgd"), max_staleness=COUNTS, stepsize=STEPSIZES),
    table(
        coordinator=mostly(st.just("synchronous"), st.just("synchronus")),
        update=UPDATES,
        wait_for=st.integers(1, 2),
        gradients_per_worker=COUNTS,
        stepsize=STEPSIZES,
    ),
    table(coordinator=st.just("buffered"), update=UPDATES, buffer_size=COUNTS, stepsize=STEPSIZES),
)
NETWORKS = st.one_of(
    st.just({"kind": "none"}),
    table(kind=st.just("star"), up=DELAYS, down=DELAYS),
    table(kind=st.just("allreduce"), seconds=DELAYS),
)
SCENARIOS = table(
    problem=mostly(
        table(kind=st.just("quadratic"), dimension=st.just(3), noise=st.sampled_from([0, 0.1])),
        NONSENSE,
    ),
    fleet=table(
        workers=mostly(st.just(2), COUNTS),
        compute=DELAYS,
        timing=mostly(st.just("trajectory"), NONSENSE),
    ),
    network=mostly(NETWORKS, NONSENSE),
    methods=mostly(st.lists(mostly(METHODS, NONSENSE), min_size=1, max_size=2), NONSENSE),
    budget=mostly(
        st.sampled_from([{"seconds": 6}, {"steps": 3}, {"gradients": 7, "seconds": 5}]),
        table(seconds=SECONDS, steps=COUNTS),
    ),
    seeds=mostly(st.sampled_from([1, [3]]), NONSENSE),
    evaluation=mostly(st.sampled_from([{"points": 3}, {"every_seconds": 1.0}]), NONSENSE),
    executor=mostly(st.just("sequential"), NONSENSE),
    precision=mostly(st.just("float32"), NONSENSE),
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fuzz")
    rows = [f"{worker},{step},{1 + worker + step}" for worker in range(2) for step in range(2)]
    (path / "trace.csv").write_text("\n".join(["worker,step,seconds", *rows]), "utf-8")
    (path / "short.csv").write_text("\n".join(["worker,step,seconds", *rows[:2]]), "utf-8")
    return path


@pytest.fixture(autouse=True)
def _compile_each_problem_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose, "_PROBLEMS_KEPT", 100)


EXPECTED = {type(None), ConfigurationError, SimulationStalled}  # None: diverged


def attempt(content: bytes, directory: Path, tally: Counter[str]) -> None:
    """Load and, if it is valid and small, run: nothing but the one error may come out."""
    path = directory / "fuzzed.toml"
    path.write_bytes(content)
    try:
        scenario = load(path)
    except ConfigurationError as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert message.startswith(f"{path}: ")
        tally["refused"] += 1
        return
    again = from_data(parse(to_toml(scenario), "resolved"), "resolved")
    assert again == scenario
    if not is_small(scenario):
        tally["too large"] += 1
        return
    out = directory / "run"
    try:
        result = run(scenario, out=out, verify=True)
    except ConfigurationError:  # what only building the problem can find
        tally["refused"] += 1
        return
    assert {type(failure.exception) for failure in result.failures} <= EXPECTED
    assert len(RunDirectory.open(out).runs()) == len(scenario.methods) * len(scenario.seeds)
    shutil.rmtree(out)
    tally["run"] += 1


def is_small(scenario: Any) -> bool:
    """Whether running it takes a moment: few workers, few numbers, not many events."""
    spec, limits = scenario.problem, scenario.budget
    shortest = Composer(scenario, 3).compute().bounds_seconds()[0].min()
    events = min(
        (limits.seconds or math.inf) / max(shortest, 1e-9),
        limits.steps or math.inf,
        limits.gradients or math.inf,
    )
    counts = [n for m in scenario.methods for n in m.arguments.values() if isinstance(n, int)]
    judged = (
        scenario.evaluation.points or (limits.seconds or 10) / scenario.evaluation.every_seconds
    )
    return (
        scenario.fleet.workers <= 3
        and getattr(spec, "dimension", 1000) <= 3
        and len(scenario.seeds) <= 2
        and events <= 100
        and max(counts, default=0) <= 10
        and judged <= 1000
    )


def test_random_scenarios(directory: Path) -> None:
    tally: Counter[str] = Counter()

    @_SETTINGS
    @given(data=SCENARIOS)
    def fuzz(data: dict[str, Any]) -> None:
        attempt(tomli_w.dumps(data).encode(), directory, tally)

    fuzz()
    assert min(tally["refused"], tally["run"]) >= 100, tally  # it was both sides that were tried


VALID = [
    tomli_w.dumps(data)
    for data in (
        small(),
        small(fleet__compute={"profile": "linear", "model": {"kind": "empirical", "values": [1.0]}},
              network={"kind": "star", "up": 1.0, "down": [0.0, 1.0, 2.0]}),
        small(methods__1=None, network={"kind": "allreduce", "seconds": 0.5},
              budget={"steps": 3}, seeds=[1, 2]),
        small(methods__0={"id": "rennala-nigt", "batch_size": 2, "momentum": 0.3,
                          "stepsize": {"value": 1.0, "power": 0.5}}),
    )
]  # fmt: skip
PIECES = [
    b"", b"\n", b"0", b"-", b"\"", b"[", b"]", b"{}", b"=", b".", b"\xff", b"\0", b"[[methods]]\n",
    b"[fleet]\n", b"[" * 2000, b"# ", b"\r", b"1_", b"kind = 'trace'\n", b"x = 1\n",
]  # fmt: skip
VALUES = [
    b"0", b"1", b"2", b"3", b"-1", b"0.5", b"nan", b"inf", b"1e999", b"true", b"''", b"'sgd'",
    b"[1, 2, 3]", b"[]", b"{}", b"2020-01-01", b"9999999999", b"9" * 5000, b"'sequential'",
]  # fmt: skip


@st.composite
def cut(draw: st.DrawFn, text: bytes) -> bytes:
    """With a piece cut out, replaced or repeated."""
    ends = [0, *(i for i, byte in enumerate(text) if byte in b" \n=[]{},."), len(text)]
    start = draw(st.sampled_from(ends))
    end = draw(st.sampled_from([i for i in ends if i >= start][:6]))
    piece = draw(st.sampled_from([*PIECES, text[start:end] * 2]))
    return text[:start] + piece + text[end:]


@st.composite
def reassigned(draw: st.DrawFn, text: bytes) -> bytes:
    """With another value behind one of the keys, or behind another key."""
    lines = text.split(b"\n")
    places = [i for i, line in enumerate(lines) if b" = " in line]
    place, other = draw(st.sampled_from(places)), draw(st.sampled_from(places))
    value = draw(st.sampled_from([*VALUES, *VALUES, lines[other].split(b" = ", 1)[1]]))
    lines[place] = lines[place].split(b" = ", 1)[0] + b" = " + value
    return b"\n".join(lines)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A valid file, damaged once or twice."""
    text = draw(st.sampled_from(VALID)).encode()
    for _ in range(draw(st.integers(1, 2))):
        text = draw(draw(st.sampled_from([cut, reassigned, reassigned]))(text))
    return text


def test_damaged_scenarios(directory: Path) -> None:
    tally: Counter[str] = Counter()

    @_SETTINGS
    @given(content=damaged())
    def fuzz(content: bytes) -> None:
        attempt(content, directory, tally)

    fuzz()
    assert tally["refused"] >= 300, tally
    assert tally["run"] >= 20, tally
