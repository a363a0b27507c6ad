"""A Ray cluster of two nodes on this machine, one of which is killed in the middle of a sweep."""

from __future__ import annotations

import importlib.util
import sys

import pytest
from sweep_data import contents, sweep_file

from scenarios.backends import make_backend
from scenarios.backends.local import LocalBackend
from scenarios.sweeps.execute import SweepReporter
from scenarios.sweeps.sweep import run_sweep
from scenarios.sweeps.sweep_file import load_sweep
from simulator.errors import ConfigurationError

HAS_RAY = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="Ray is not installed: the extra 'ray'")


class KillsNode(SweepReporter):
    """Kills a node once a few runs are done."""

    def __init__(self, cluster, node) -> None:
        self.cluster, self.node = cluster, node
        self.done = 0

    def finished(self, spec, outcome):
        self.done += outcome.kind == "done"
        if self.done == 3 and self.node is not None:
            self.cluster.remove_node(self.node, allow_graceful=False)
            self.node = None


@needs_ray
def test_a_node_is_killed_and_the_store_is_as_from_local_processes(tmp_path):
    from ray.cluster_utils import Cluster

    sweep = load_sweep(sweep_file(tmp_path, seeds=5))
    local = LocalBackend(1)
    run_sweep(sweep, tmp_path / "local", local)
    local.close()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        reporter = KillsNode(cluster, cluster.add_node(num_cpus=1))
        backend = make_backend("ray", address=cluster.address)
        try:
            tally = run_sweep(sweep, tmp_path / "ray", backend, reporter).tally
        finally:
            backend.close()
    finally:
        cluster.shutdown()
    assert reporter.node is None, "no node was killed"
    assert (tally.done, tally.failures) == (20, ())
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")


@needs_ray
def test_no_cluster_is_told():
    with pytest.raises(ConfigurationError, match=r"address = '127.0.0.1:1': no Ray cluster there"):
        make_backend("ray", address="127.0.0.1:1")


def test_a_missing_ray_is_told_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'straggler\[ray\]'"):
        make_backend("ray")


def test_jobs_are_for_processes_of_this_machine():
    with pytest.raises(ConfigurationError, match="jobs = 2: expected with backend = 'local' only"):
        make_backend("ray", jobs=2)
