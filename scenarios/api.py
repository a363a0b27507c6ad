"""The Python interface: three names are enough to run a comparison.

    from scenarios.api import load, run

    result = run(load("demo"), seeds=3, out="runs/demo")

``analysis.summary.summarise(result.directory)`` is its table, and
``analysis.plots.plot_run(result.directory)`` draws it.
"""

from scenarios.load import from_data, load, shipped
from scenarios.run import Failure, Interrupted, Reporter, RunResult, run

__all__ = [
    "Failure",
    "Interrupted",
    "Reporter",
    "RunResult",
    "from_data",
    "load",
    "run",
    "shipped",
]
