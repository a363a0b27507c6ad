"""delay-adaptive: any rule with a stepsize, scaled by n / max(n, staleness)."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp

from algorithms.update_rule import Array, Hyperparameters, State, StepInfo, UpdateRule


def delay_adaptive(rule: UpdateRule) -> UpdateRule:
    """Return ``rule`` with its stepsize multiplied by n / max(n, staleness).

    Source: Koloskova, Stich & Jaggi (2022, arXiv 2206.08307); Mishchenko et al. (2022,
    arXiv 2206.07638).
    """

    def update(
        state: State, gradient: Array, info: StepInfo, hyperparameters: Hyperparameters
    ) -> State:
        stepsize = hyperparameters.stepsize
        # Not int32 / int32: that is single precision, whatever the rest is computed in.
        n_workers = jnp.asarray(info.n_workers, jnp.result_type(float))
        scale = n_workers / jnp.maximum(n_workers, info.staleness)
        scaled = stepsize._replace(value=stepsize.value * scale)
        return rule.update(state, gradient, info, hyperparameters._replace(stepsize=scaled))

    return replace(
        rule,
        name=f"delay-adaptive-{rule.name}",
        update=update,
        reference="Koloskova et al. (2022), arXiv 2206.08307; Mishchenko et al. (2022)",
        claim=f"{rule.name} with stepsize scaled by n / max(n, staleness)",
    )
