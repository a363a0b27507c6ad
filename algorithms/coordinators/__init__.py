"""Coordinators by name: *when* the server steps, one decision policy a file."""

from algorithms.coordinators.asynchronous import Asynchronous
from algorithms.coordinators.buffered import Buffered
from algorithms.coordinators.malenia import Malenia
from algorithms.coordinators.rennala import Rennala
from algorithms.coordinators.ringmaster import Ringmaster
from algorithms.coordinators.synchronous import Synchronous

COORDINATORS = {
    "asynchronous": Asynchronous,
    "ringmaster": Ringmaster,
    "buffered": Buffered,
    "synchronous": Synchronous,
    "rennala": Rennala,
    "malenia": Malenia,
}

__all__ = [
    "COORDINATORS",
    "Asynchronous",
    "Buffered",
    "Malenia",
    "Rennala",
    "Ringmaster",
    "Synchronous",
]
