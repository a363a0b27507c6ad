"""The one table of methods: Method = Coordinator x UpdateRule.

A row is the whole method. The command line, the documentation and the conformance tests are
derived from this table; to add a method, add a row. Importing it imports neither jax nor optax.
"""

from __future__ import annotations

from dataclasses import dataclass

from algorithms.coordinators import COORDINATORS


@dataclass(frozen=True)
class Method:
    """One row.

    Attributes:
        id: name in scenario files, result columns and plots.
        label: name as published, for legends.
        coordinator: key of ``algorithms.coordinators.COORDINATORS``.
        update: name of an update rule, see ``algorithms.updates``.
        reference: who published it.
        claim: one sentence.
    """

    id: str
    label: str
    coordinator: str
    update: str
    reference: str
    claim: str


_APG = "Tyurin, Spiridonov & Rudenko (2025), arXiv 2509.24305"
_TR23 = "Tyurin & Richtarik (2023), arXiv 2305.12387"

# fmt: off
METHODS: tuple[Method, ...] = (
    Method("rennala-nigt", "Rennala NIGT", "rennala", "nigt", _APG,
           "Collects M gradients from whoever is fastest, then a normalised momentum step."),
    Method("malenia-nigt", "Malenia NIGT", "malenia", "nigt", _APG,
           "Rennala NIGT for workers with different objectives: unbiased whatever their speeds."),
    Method("synchronous-nigt", "Synchronised NIGT", "synchronous", "nigt", _APG,
           "Waits for every worker, then a normalised momentum step."),
    Method("afedpg", "AFedPG", "asynchronous", "nigt", "Lan et al. (2025), arXiv 2404.08003",
           "Steps on every arrival; the lookahead point makes stale gradients useful."),
    Method("synchronous-sgd", "Synchronous SGD", "synchronous", "sgd", "Robbins & Monro (1951)",
           "Minibatch SGD, vanilla policy gradient: waits for every worker."),
    Method("rennala-sgd", "Rennala SGD", "rennala", "sgd", _TR23,
           "Minibatch SGD on the first M gradients; optimal time for smooth problems."),
    Method("malenia-sgd", "Malenia SGD", "malenia", "sgd", _TR23,
           "Rennala SGD for workers with different objectives."),
    Method("asynchronous-sgd", "Asynchronous SGD", "asynchronous", "sgd",
           "Recht et al. (2011), arXiv 1106.5730",
           "Steps on every arrival, however stale; on a policy, asynchronous policy gradient."),
    Method("delay-adaptive-sgd", "Delay-adaptive ASGD", "asynchronous", "delay-adaptive-sgd",
           "Koloskova et al. (2022), arXiv 2206.08307; Mishchenko et al. (2022), 2206.07638",
           "Asynchronous SGD with smaller steps for staler gradients."),
    Method("ringmaster-sgd", "Ringmaster ASGD", "ringmaster", "sgd",
           "Maranjyan, Tyurin & Richtarik (2025), arXiv 2501.16168",
           "Asynchronous SGD that throws away gradients staler than a threshold."),
    Method("backup-workers-sgd", "Backup workers", "synchronous", "sgd",
           "Chen et al. (2016), arXiv 1604.00981",
           "Synchronous SGD that waits for the first m of n workers (wait_for)."),
    Method("buffered-sgd", "Buffered ASGD", "buffered", "sgd",
           "Nguyen et al. (2022), arXiv 2106.06639",
           "Asynchronous mini-batch SGD: a step for every B arrivals."),
)
# fmt: on


def methods_by_id(rows: tuple[Method, ...] = METHODS) -> dict[str, Method]:
    """Index the table, refusing duplicates and unknown coordinators.

    Raises:
        ValueError: naming the row at fault.
    """
    table: dict[str, Method] = {}
    for row in rows:
        if row.id in table:
            raise ValueError(f"method {row.id!r} is in the catalogue twice")
        if row.coordinator not in COORDINATORS:
            raise ValueError(f"method {row.id!r}: no coordinator {row.coordinator!r}")
        table[row.id] = row
    return table
