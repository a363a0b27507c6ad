"""Where the runs of a sweep are computed: processes of this machine, or a Ray cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.errors import ConfigurationError, nearest

if TYPE_CHECKING:
    from scenarios.backends.backend import Backend

BACKENDS = ("local", "ray")


def make_backend(name: str, jobs: int | None = None, address: str | None = None) -> Backend:
    """The backend of that name.

    Args:
        name: one of ``BACKENDS``.
        jobs: processes, for "local"; default one per core.
        address: of the cluster, for "ray".

    Raises:
        ConfigurationError: no such backend, an option of another one, or Ray is not there.
    """
    if name not in BACKENDS:
        raise ConfigurationError(f"backend = {name!r}: no such backend.{nearest(name, BACKENDS)}")
    if name == "local":
        from scenarios.backends.local import LocalBackend

        if address is not None:
            raise ConfigurationError(f"address = {address!r}: expected with backend = 'ray' only")
        return LocalBackend(jobs)
    from scenarios.backends.ray import RayBackend

    if jobs is not None:
        raise ConfigurationError(f"jobs = {jobs}: expected with backend = 'local' only")
    return RayBackend(address)
