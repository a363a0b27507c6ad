"""Accounting on schedules that the engine makes: worked by hand, and adding up on any network."""

import numpy as np
import pytest

from algorithms.coordinators import COORDINATORS
from analysis.accounting import time_spent
from simulator.budget import Budget
from simulator.delays import Constant
from simulator.engine import simulate
from simulator.network import AllReduce, NoNetwork, Star

N = 4
NETWORKS = {
    "none": NoNetwork(),
    "star": Star(Constant([0.5, 1, 2, 9]), Constant([1, 0.25, 3, 0])),
    "allreduce": AllReduce(Constant([1.5])),
}
METHODS = {
    "synchronous": {},
    "rennala": {"batch_size": 5},
    "rennala-discard": {"batch_size": 5, "stale": "discard"},
    "malenia": {"batch_size": 5},
    "asynchronous": {},
    "ringmaster": {"max_staleness": 2},
    "buffered": {"buffer_size": 3},
}


def simulated(method, network, compute=(1, 2, 3.5, 7), seconds=60.0):
    coordinator = COORDINATORS[method.split("-")[0]](len(compute), **METHODS[method])
    delays = Constant(list(compute))
    return simulate(coordinator, delays, network, Budget(seconds=seconds), 0)


def runs_on(method, network):
    return network != "allreduce" or COORDINATORS[method.split("-")[0]].collective


@pytest.mark.parametrize(
    ("method", "network"), [(m, n) for m in METHODS for n in NETWORKS if runs_on(m, n)]
)
def test_every_second_is_accounted_for(method, network):
    spent = time_spent(simulated(method, NETWORKS[network]))
    np.testing.assert_allclose(spent.total(), 60.0, rtol=1e-12)
    assert spent.useful.sum() > 0
    assert (spent.communicating.sum() > 0) == (network != "none")


def test_synchronous_workers_wait_for_the_slowest():
    spent = time_spent(simulated("synchronous", NoNetwork(), (1, 4), 8.0))
    assert spent.useful.tolist() == [2, 8]
    assert spent.idle.tolist() == [6, 0]


def test_a_collective_after_each_step():
    spent = time_spent(simulated("synchronous", AllReduce(Constant([2])), (1, 4), 12.0))
    assert spent.useful.tolist() == [2, 8]
    assert spent.communicating.tolist() == [4, 4]
    assert spent.idle.tolist() == [6, 0]
