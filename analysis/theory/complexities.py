"""The table of time complexities: seconds until E|grad f| <= epsilon, up to universal constants.

Every row is data: terms (``terms``), a pace (``paces``) and where it comes from. Logarithms and
universal constants are dropped, so rows compare in how they scale; ``parameters`` gives times with
every constant.

Sources. APG: Tyurin, Spiridonov & Rudenko (2025), arXiv 2509.24305, Table 1, Theorems 4.4 and 5.1.
TR23: Tyurin & Richtarik (2023), arXiv 2305.12387. Lower bounds: Carmon et al. (2017), arXiv
1711.00841 and Arjevani et al. (2019), arXiv 1912.02365, (2020), arXiv 2006.13476, over TR23's
argument for workers.

Where we deviate from the table as it was given to us:

- Synchronised NIGT communicates once a round, and computes n gradients a round: with T rounds of
  batch n, T = L_g Delta/eps^2 + sqrt(L_h) Delta/eps^1.5 + sigma^2 sqrt(L_h) Delta/(n eps^3.5). So
  communication is kappa T, its noise term kappa/(n eps^3.5). The table has kappa/eps^3.5, which
  is n = 1 and contradicts its own computation, max h/(n eps^3.5) in rounds of max h.
- AFedPG takes K = n^(7/3) eps^(-7/3) + eps^-3.5 server steps, and worker i takes part in K/n of
  them on average, so that it waits kappa K/n = kappa (n^(4/3) eps^(-7/3) + 1/(n eps^3.5)). The
  table's kappa/eps^3 is the least of this over n, at n = eps^-0.5. No constants are known for its
  first term, whose schedule of stepsizes hides them; they are 1 here (``has_all_constants``).
- The lower bounds hold for small eps. At eps > L_g^2/L_h the instance for L_g alone has a Hessian
  smooth enough, so each term is the lesser of the first- and the second-order one.
- The normalising of NIGT's first batch (sigma^2/(m eps^2)) is in Theorem 4.4 and not in Table 1;
  it is at most the noise term once eps <= (sqrt(L_h) Delta)^(2/3), and is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.theory import paces
from analysis.theory.paces import Pace
from analysis.theory.setting import Setting
from analysis.theory.terms import Power, Term, fixed, shared
from simulator.errors import ConfigurationError, nearest

_SMOOTH = fixed("smoothness", Power(2, gradient_lipschitz=1, initial_gap=1))
_CURVATURE = fixed("curvature", Power(1.5, hessian_lipschitz=0.5, initial_gap=1))
_FIRST_BATCH = shared("first batch", Power(2, sigma=2))
_NOISE = shared("noise", Power(3.5, hessian_lipschitz=0.5, sigma=2, initial_gap=1))
_NOISE_SGD = shared("noise", Power(4, gradient_lipschitz=1, sigma=2, initial_gap=1))
_STALENESS = fixed("staleness", Power(7 / 3, workers=4 / 3))
_LEAST_STEPS = fixed(
    "steps",
    Power(2, gradient_lipschitz=1, initial_gap=1),
    Power(12 / 7, gradient_lipschitz=3 / 7, hessian_lipschitz=2 / 7, initial_gap=1),
)
_LEAST_NOISE = shared(
    "noise",
    Power(4, gradient_lipschitz=1, sigma=2, initial_gap=1),
    Power(3.5, hessian_lipschitz=0.5, sigma=2, initial_gap=1),
)


@dataclass(frozen=True)
class Complexity:
    """A row.

    Attributes:
        id: of the method in ``algorithms.catalogue``, or of a lower bound.
        label: for tables and plots.
        pace: from work to seconds.
        computation: terms, in gradients.
        communication: terms, in rounds of kappa seconds; shared ones are divided by n.
        source: of the row.
        is_heterogeneous: whether it holds when workers have different objectives.
        is_collective: whether an AllReduce can do its communication.
        is_communication_at_least: whether the communication is a lower bound on what it takes.
        has_all_constants: whether every term's constants are known.
    """

    id: str
    label: str
    pace: Pace
    computation: tuple[Term, ...]
    communication: tuple[Term, ...]
    source: str
    is_heterogeneous: bool = False
    is_collective: bool = True
    is_communication_at_least: bool = False
    has_all_constants: bool = True


_NIGT = (_SMOOTH, _CURVATURE, _FIRST_BATCH, _NOISE)
_SGD = (_SMOOTH, _NOISE_SGD)
_APG, _TR23 = "arXiv 2509.24305, ", "arXiv 2305.12387, "

# fmt: off
COMPLEXITIES: tuple[Complexity, ...] = (
    Complexity("rennala-nigt", "Rennala NIGT", paces.best, _NIGT, (_SMOOTH, _CURVATURE),
               _APG + "Theorem 4.4"),
    Complexity("malenia-nigt", "Malenia NIGT", paces.balanced, _NIGT, (_SMOOTH, _CURVATURE),
               _APG + "Theorem 5.1", is_heterogeneous=True),
    Complexity("synchronous-nigt", "Synchronised NIGT", paces.slowest, _NIGT,
               (_SMOOTH, _CURVATURE, _NOISE), _APG + "Table 1, corrected", is_heterogeneous=True),
    Complexity("afedpg", "AFedPG", paces.everybody, (_STALENESS, _NOISE), (_STALENESS, _NOISE),
               "arXiv 2404.08003, in " + _APG + "Table 1", is_collective=False,
               is_communication_at_least=True, has_all_constants=False),
    Complexity("rennala-sgd", "Rennala SGD", paces.best, _SGD, (_SMOOTH,),
               _TR23 + "Section 7; " + _APG + "Table 1"),
    Complexity("malenia-sgd", "Malenia SGD", paces.balanced, _SGD, (_SMOOTH,),
               _TR23 + "appendix on heterogeneous workers", is_heterogeneous=True),
    Complexity("ringmaster-sgd", "Ringmaster ASGD", paces.best, _SGD, _SGD,
               "arXiv 2501.16168, Theorem 4.2", is_collective=False,
               is_communication_at_least=True),
    Complexity("delay-adaptive-sgd", "Delay-adaptive ASGD", paces.everybody, _SGD, _SGD,
               "arXiv 2206.07638 and 2206.08307, in " + _TR23 + "Table 1",
               is_collective=False, is_communication_at_least=True),
    Complexity("synchronous-sgd", "Synchronous SGD", paces.slowest, _SGD, _SGD,
               _APG + "Table 1", is_heterogeneous=True),
    Complexity("backup-workers-sgd", "Backup workers", paces.best_waited_for, _SGD, _SGD,
               "as Synchronous SGD, of the best m workers"),
)
"""Upper bounds, by method. A method that is not here has no guarantee we know of that holds for
any speeds: with a constant stepsize, plain Asynchronous SGD depends on its largest staleness."""

LOWER_BOUNDS: tuple[Complexity, ...] = (
    Complexity("lower-bound", "Lower bound", paces.best, (_LEAST_STEPS, _LEAST_NOISE),
               (_LEAST_STEPS,), "arXiv 1711.00841 and 2006.13476, in " + _APG + "Table 1"),
    Complexity("lower-bound-first-order", "Lower bound, L_g only", paces.best, _SGD, (_SMOOTH,),
               "arXiv 1912.02365, in " + _TR23 + "Section 6"),
    Complexity("lower-bound-heterogeneous", "Lower bound, L_g only, heterogeneous",
               paces.balanced, _SGD, (_SMOOTH,), _TR23 + "appendix on heterogeneous workers",
               is_heterogeneous=True),
)
"""What no method of the class beats: smooth gradients and Hessians; smooth gradients; the latter
with different objectives. The first holds for every method of the table."""
# fmt: on


@dataclass(frozen=True)
class Share:
    """What one term costs: its seconds, in "computation" or "communication"."""

    part: str
    name: str
    seconds: float


@dataclass(frozen=True)
class Breakdown:
    """A row's seconds.

    Attributes:
        row: the row.
        shares: seconds of each term; empty parts are left out.
        workers: m*, workers that count in the computation.
    """

    row: Complexity
    shares: tuple[Share, ...]
    workers: int

    def seconds(self, part: str | None = None) -> float:
        """Of "computation", of "communication", or of both."""
        return sum(share.seconds for share in self.shares if part in (None, share.part))

    @property
    def dominant(self) -> Share:
        """The largest share."""
        return max(self.shares, key=lambda share: share.seconds)


def complexity(name: str) -> Complexity:
    """The row of that id.

    Raises:
        ConfigurationError: there is none; with the nearest.
    """
    rows = {row.id: row for row in (*COMPLEXITIES, *LOWER_BOUNDS)}
    if name not in rows:
        raise ConfigurationError(f"{name!r}: no such complexity.{nearest(name, rows)}")
    return rows[name]


def breakdown(row: Complexity, setting: Setting) -> Breakdown:
    """Evaluate a row, term by term.

    Args:
        row: of the table.
        setting: the fleet and the objective; ``setting.without_constants()`` for orders only.
    """
    objective, n_workers = setting.objective, setting.n_workers
    amounts = [term.amount(objective, n_workers) for term in row.computation]
    totals = {
        is_shared: sum(
            amount
            for term, amount in zip(row.computation, amounts, strict=True)
            if term.is_shared is is_shared
        )
        for is_shared in (False, True)
    }
    rate = row.pace(setting, totals[False], totals[True])
    shares = [
        Share("computation", term.name, (rate.per_shared if term.is_shared else rate.per_fixed) * a)
        for term, a in zip(row.computation, amounts, strict=True)
    ]
    if setting.kappa_seconds:
        shares += [
            Share("communication", term.name, setting.kappa_seconds * _rounds(term, setting))
            for term in row.communication
        ]
    return Breakdown(row, tuple(shares), rate.workers)


def _rounds(term: Term, setting: Setting) -> float:
    amount = term.amount(setting.objective, setting.n_workers)
    return amount / setting.n_workers if term.is_shared else amount


def total_seconds(row: Complexity, setting: Setting) -> float:
    """Computation and communication together."""
    return breakdown(row, setting).seconds()
