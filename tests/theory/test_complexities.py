"""Complexities: against formulas written down again, units, brute force over m, and each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.catalogue import methods_by_id
from analysis.theory import comparison, parameters
from analysis.theory.complexities import (
    COMPLEXITIES,
    LOWER_BOUNDS,
    breakdown,
    complexity,
    total_seconds,
)
from analysis.theory.setting import Objective, Setting
from simulator.errors import ConfigurationError

CASES = 40


def random_settings(seed: int = 0, kappa: float | None = None):
    generator = np.random.default_rng(seed)
    for _ in range(CASES):
        n_workers = int(generator.integers(1, 30))
        seconds = np.sort(10 ** generator.uniform(-1, 2, n_workers))
        eps, smooth, curved, sigma, delta = 10 ** generator.uniform(-2, 1, 5)
        yield Setting(
            seconds,
            Objective(eps / 10, smooth, curved, sigma, delta),
            float(generator.uniform(0, 5)) if kappa is None else kappa,
        )


def over_fastest(times, fixed, shared) -> float:
    """min over m, one m after the other."""
    return min(time * (fixed + shared / m) for m, time in enumerate(times, start=1))


def expected(setting: Setting) -> dict[str, tuple[float, float]]:
    """(computation, communication) of every row, written as in the papers."""
    h, kappa = [float(x) for x in setting.seconds_per_gradient], setting.kappa_seconds
    n, o = len(h), setting.objective
    eps, L, Lh, s2, delta = (
        o.epsilon, o.gradient_lipschitz, o.hessian_lipschitz, o.sigma**2, o.initial_gap,
    )  # fmt: skip
    harmonic = [m / sum(1 / x for x in h[:m]) for m in range(1, n + 1)]
    rounds = L * delta / eps**2 + math.sqrt(Lh) * delta / eps**1.5
    noise = s2 * math.sqrt(Lh) * delta / eps**3.5
    nigt = s2 / eps**2 + noise
    smooth, sgd = L * delta / eps**2, s2 * L * delta / eps**4
    steps = min(L * delta / eps**2, L ** (3 / 7) * Lh ** (2 / 7) * delta / eps ** (12 / 7))
    least = min(sgd, noise)
    stale = n ** (4 / 3) * eps ** (-7 / 3)
    return {
        "rennala-nigt": (over_fastest(harmonic, rounds, nigt), kappa * rounds),
        "malenia-nigt": (h[-1] * rounds + sum(h) / n * nigt / n, kappa * rounds),
        "synchronous-nigt": (h[-1] * (rounds + nigt / n), kappa * (rounds + noise / n)),
        "afedpg": (harmonic[-1] * (stale + noise / n), kappa * (stale + noise / n)),
        "synchronous-sgd": (h[-1] * (smooth + sgd / n), kappa * (smooth + sgd / n)),
        "backup-workers-sgd": (over_fastest(h, smooth, sgd), kappa * (smooth + sgd / n)),
        "rennala-sgd": (over_fastest(harmonic, smooth, sgd), kappa * smooth),
        "malenia-sgd": (h[-1] * smooth + sum(h) / n * sgd / n, kappa * smooth),
        "delay-adaptive-sgd": (harmonic[-1] * (smooth + sgd / n), kappa * (smooth + sgd / n)),
        "ringmaster-sgd": (over_fastest(harmonic, smooth, sgd), kappa * (smooth + sgd / n)),
        "lower-bound": (over_fastest(harmonic, steps, least), kappa * steps),
        "lower-bound-first-order": (over_fastest(harmonic, smooth, sgd), kappa * smooth),
        "lower-bound-heterogeneous": (
            h[-1] * smooth + sum(h) / n * sgd / n, kappa * smooth,
        ),
    }  # fmt: skip


def test_every_row_against_the_formula_of_its_paper() -> None:
    for setting in random_settings():
        wanted = expected(setting)
        assert set(wanted) == {row.id for row in (*COMPLEXITIES, *LOWER_BOUNDS)}
        for row in (*COMPLEXITIES, *LOWER_BOUNDS):
            parts = breakdown(row, setting)
            found = parts.seconds("computation"), parts.seconds("communication")
            assert found == pytest.approx(wanted[row.id], rel=1e-10), row.id


def test_ids_are_of_the_catalogue() -> None:
    assert {row.id for row in COMPLEXITIES} <= set(methods_by_id())


def test_terms_have_no_units_where_constants_are_known() -> None:
    for row in (*COMPLEXITIES, *LOWER_BOUNDS):
        for term in (*row.computation, *row.communication):
            known = row.has_all_constants or term.name != "staleness"
            assert all(power.is_dimensionless for power in term.powers) is known, row.id


def test_units_change_no_seconds() -> None:
    """Objective values in other units, points in others: the same times."""
    for setting in random_settings(1):
        o, value, length = setting.objective, 7.0, 0.3
        gradient = value / length
        other = Objective(
            o.epsilon * gradient,
            o.gradient_lipschitz * gradient / length,
            o.hessian_lipschitz * gradient / length**2,
            o.sigma * gradient,
            o.initial_gap * value,
        )
        changed = Setting(setting.seconds_per_gradient, other, setting.kappa_seconds)
        for row in (*COMPLEXITIES, *LOWER_BOUNDS):
            if row.has_all_constants:
                assert total_seconds(row, changed) == pytest.approx(total_seconds(row, setting))


def test_nobody_beats_the_lower_bound() -> None:
    for setting in random_settings(2):
        for row in COMPLEXITIES:
            chosen = setting if row.has_all_constants else setting.without_constants()
            assert comparison.gap(row, chosen) >= 1 - 1e-12, row.id
        assert comparison.gap(
            complexity("rennala-sgd"), setting, "lower-bound-first-order"
        ) == pytest.approx(1)
        assert comparison.gap(
            complexity("malenia-sgd"), setting, "lower-bound-heterogeneous"
        ) == pytest.approx(1)


def test_exponents_of_epsilon() -> None:
    """Slopes of log seconds in log epsilon, far down, with one worker and free communication."""
    slopes = {
        "rennala-nigt": 3.5, "malenia-nigt": 3.5, "synchronous-nigt": 3.5, "afedpg": 3.5,
        "rennala-sgd": 4, "synchronous-sgd": 4, "ringmaster-sgd": 4, "lower-bound": 3.5,
    }  # fmt: skip
    for name, slope in slopes.items():
        pair = [
            math.log(total_seconds(complexity(name), Setting([1.0], Objective(eps))))
            for eps in (1e-8, 1e-9)
        ]
        assert (pair[1] - pair[0]) / math.log(10) == pytest.approx(slope, abs=0.01)


def test_afedpg_needs_at_least_eps_to_the_minus_three_communications() -> None:
    """The published kappa eps^-3 is the least over n, taken at n = eps^(-1/2)."""
    for eps in (1e-2, 1e-4):
        sizes = np.unique(np.geomspace(1, 10 / eps, 400).astype(int)).tolist()
        rounds = [
            breakdown(complexity("afedpg"), Setting([1.0] * n, Objective(eps), 1.0)).seconds(
                "communication"
            )
            for n in sizes
            if n <= 10_000
        ]
        assert 1 <= min(rounds) * eps**3 <= 2.5
        assert sizes[int(np.argmin(rounds))] == pytest.approx(eps**-0.5, rel=0.5)


def test_the_least_nigt_steps_scale_as_the_terms() -> None:
    """T minimised numerically over the bound is the largest term, times constants derived by hand.

    Of the noise term: maximise x^2 sqrt(z) (1 - x - z), x and z the shares of noise and curvature.
    """
    constants = (2.0, 3 * math.sqrt(3), 8 / ((4 / 7) ** 2 * (1 / 7) ** 0.5 * (2 / 7)))
    generator = np.random.default_rng(7)
    leads = set()
    for _ in range(100):
        smooth, curved, sigma, delta = (10 ** generator.uniform(-0.7, 0.7, 4)).tolist()
        eps = float(10 ** generator.uniform(-2.5, -1))
        batch_size = int(10 ** generator.uniform(0, 7))
        objective = Objective(eps, smooth, curved, sigma, delta)
        terms = (
            smooth * delta / eps**2,
            math.sqrt(curved) * delta / eps**1.5,
            sigma**2 * math.sqrt(curved) * delta / (batch_size * eps**3.5),
        )
        costs = [constant * term for constant, term in zip(constants, terms, strict=True)]
        leads.add(int(np.argmax(costs)))
        least = least_steps(objective, batch_size)
        assert 0.999 * max(costs) <= least <= 1.5 * sum(costs)
        given = parameters.recommend_nigt(objective, batch_size=batch_size)
        assert 0.98 * least <= given.steps <= 10 * least + 1
    assert leads == {0, 1, 2}


def least_steps(objective: Objective, batch_size: int) -> float:
    """The least T with Delta/(alpha T) + ... <= eps over a fine grid of eta and alpha."""
    o = objective
    momentum = np.geomspace(1e-9, 1, 700)[:, None]
    longest = o.epsilon * 2 / o.gradient_lipschitz
    stepsize = longest * np.geomspace(1e-9, 1, 700)[None, :]
    rest = (
        2 * np.sqrt(momentum / batch_size) * o.sigma
        + 4 * o.hessian_lipschitz * (stepsize / momentum) ** 2
        + o.gradient_lipschitz * stepsize / 2
    )
    return o.initial_gap / float((stepsize * (o.epsilon - rest)).max())


def test_crossovers_are_where_costs_are_equal() -> None:
    nigt, sgd = complexity("rennala-nigt"), complexity("rennala-sgd")

    def at(eps: float) -> Setting:
        return Setting([1.0, 2.0, 4.0], Objective(eps, 3.0, 2.0, 1.5, 2.0))

    found = comparison.crossovers(nigt, sgd, at, 1e-4, 10)
    assert len(found) == 1
    assert total_seconds(nigt, at(found[0])) == pytest.approx(total_seconds(sgd, at(found[0])))
    assert total_seconds(nigt, at(found[0] / 2)) < total_seconds(sgd, at(found[0] / 2))
    assert comparison.crossovers(nigt, nigt, at, 1e-4, 10) == []


def test_a_crossover_on_a_linear_scale() -> None:
    """One slow worker: waiting for it pays once communication, kappa from 0, is dear enough."""
    waits, never_waits = complexity("synchronous-nigt"), complexity("afedpg")

    def at(kappa: float) -> Setting:
        return Setting([1.0] * 9 + [50.0], Objective(0.1), kappa)

    (found,) = comparison.crossovers(waits, never_waits, at, 0.0, 100.0)
    assert total_seconds(waits, at(found)) == pytest.approx(total_seconds(never_waits, at(found)))
    assert total_seconds(waits, at(0.0)) > total_seconds(never_waits, at(0.0))
    assert total_seconds(waits, at(2 * found)) < total_seconds(never_waits, at(2 * found))


def test_winners() -> None:
    rows = [complexity(name) for name in ("synchronous-nigt", "rennala-nigt", "afedpg")]

    def at(spread: float, kappa: float) -> Setting:
        return Setting(np.arange(1.0, 11) ** spread, Objective(0.05), kappa)

    found = comparison.winners(rows, at, [0.0, 1.0, 2.0], [0.0, 10.0])
    for y, kappa in enumerate([0.0, 10.0]):
        for x, spread in enumerate([0.0, 1.0, 2.0]):
            times = [total_seconds(row, at(spread, kappa)) for row in rows]
            assert found.winner[y, x] == np.argmin(times)
            assert found.margin[y, x] == pytest.approx(sorted(times)[1] / min(times))


def test_extremes_are_numbers() -> None:
    quiet = Setting([1.0, math.inf], Objective(1e-3, 1.0, 0.0, 0.0, 0.0), 1.0)
    assert total_seconds(complexity("rennala-nigt"), quiet) == 0
    assert comparison.gap(complexity("rennala-nigt"), quiet) == math.inf
    tiny = Setting([1.0], Objective(1e-300))
    assert total_seconds(complexity("rennala-nigt"), tiny) == math.inf


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Objective(0.0), "epsilon = 0.0: expected a finite number > 0"),
        (lambda: Objective(-1.0), "epsilon = -1.0"),
        (lambda: Objective(math.nan), "epsilon = nan"),
        (lambda: Objective(0.1, sigma=-1), "sigma = -1: expected a finite number >= 0"),
        (lambda: Setting([2.0, 1.0], Objective(0.1)), "expected the fastest worker first"),
        (lambda: Setting([1.0], Objective(0.1), -1.0), "kappa_seconds = -1.0"),
        (lambda: complexity("renala-nigt"), "Did you mean 'rennala-nigt'"),
        (
            lambda: comparison.crossovers(COMPLEXITIES[0], COMPLEXITIES[1], lambda x: None, 2, 1),
            "low = 2, high = 1: expected finite, low < high",
        ),
    ],
)
def test_mistakes_are_named(call, text) -> None:
    with pytest.raises(ConfigurationError, match=text):
        call()
