"""Of many methods the best of each kind is drawn, and the figure says so."""

from __future__ import annotations

import numpy as np

from analysis.plots import lines_of, plot_run
from analysis.selection import worth_drawing
from scenarios.api import from_data, run

SCENARIO = {
    "name": "grid",
    "seeds": 2,
    "problem": {"kind": "quadratic", "dimension": 5, "noise": 0.01},
    "fleet": {"workers": 3},
    "methods": [
        {"id": "asynchronous-sgd", "stepsize": [0.001, 0.01, 0.1, 0.5, 1e9]},
        {"id": "rennala-sgd", "batch_size": [2, 3], "stepsize": [0.001, 0.5]},
    ],
    "budget": {"seconds": 20},
    "evaluation": {"points": 5},
}


def test_the_best_cell_of_each_method(tmp_path):
    directory = run(from_data(SCENARIO, "grid"), out=tmp_path).directory
    metric, curves = directory.metrics[0], directory.curves()
    chosen, note = worth_drawing(directory, curves, metric)
    assert note == "the best of each method's settings by mean over time, 9 in all"
    names = list(dict.fromkeys(curve.method for curve in chosen))
    assert [name.split()[0] for name in names] == ["asynchronous-sgd", "rennala-sgd"]
    means = {
        name: np.mean([c.metrics["loss_gap"].mean() for c in curves if c.method == name])
        for name in {curve.method for curve in curves}
    }
    for name in names:
        rivals = [mean for other, mean in means.items() if other.split()[0] == name.split()[0]]
        # The last value has no time to itself, and grid points are even: close, not equal.
        assert means[name] <= 1.05 * np.nanmin(rivals)
    assert [line.index for line in lines_of(directory, chosen, metric, "seconds")] == [0, 1]
    assert plot_run(directory)


def test_few_methods_are_all_drawn(tmp_path):
    few = {**SCENARIO, "methods": SCENARIO["methods"][1:]}
    directory = run(from_data(few, "few"), out=tmp_path).directory
    curves = directory.curves()
    assert worth_drawing(directory, curves, directory.metrics[0]) == (curves, "")
