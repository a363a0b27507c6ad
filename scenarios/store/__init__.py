"""The store: results of many runs, one Parquet file each, that survives anything."""

from scenarios.store.keys import RESULTS_VERSION, RunSpec, specs_of
from scenarios.store.store import Status, Store

__all__ = ["RESULTS_VERSION", "RunSpec", "Status", "Store", "specs_of"]
