"""Synthetic records for the tests of analysis."""

import numpy as np

from simulator.records import Curve, MethodRecord, Metric, RunDirectory, RunRow

REWARD = Metric("return", "Mean return", "", True)
LOSS = Metric("loss_gap", "Loss gap", "", False)


def curve(method, seed, seconds, metrics, per_second=10):
    """A curve with ``per_second`` gradients and half as many vectors per second."""
    seconds = np.asarray(seconds, float)
    gradients = (seconds * per_second).astype(np.int64)
    metrics = {name: np.asarray(values, float) for name, values in metrics.items()}
    return Curve(
        method, seed, seconds, gradients, gradients, 2 * gradients, gradients // 2, metrics
    )


def write_run(path, data, metric=REWARD):
    """A run of {method: {seed: (seconds, values)}}."""
    methods = [MethodRecord(m, m.replace("-", " ").title(), "c", "u") for m in data]
    run = RunDirectory.create(path, name=path.name, scenario="", metrics=[metric], methods=methods)
    for method, seeds in data.items():
        for seed, (seconds, values) in seeds.items():
            row = RunRow(method, seed, used=100 + seed, steps=10, end_seconds=10.0)
            run.write(row, curve(method, seed, seconds, {metric.name: values}))
    return run
