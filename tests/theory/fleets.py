"""Random fleets whose times are exact in floating point: small multiples of 1/8."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

EIGHTHS = st.integers(1, 80).map(lambda k: k / 8)
FLEETS = st.lists(EIGHTHS, min_size=1, max_size=7)
ANY_FLEETS = st.lists(st.floats(0.01, 100), min_size=1, max_size=7)


def random_fleets(count: int, seed: int):
    """(h ascending, M) pairs of all sizes and spreads."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        n_workers = int(generator.integers(1, 40))
        spread = generator.uniform(0, 3)
        seconds = np.sort(
            generator.uniform(0.1, 1, n_workers) * np.arange(1, n_workers + 1) ** spread
        )
        yield seconds, int(generator.integers(1, 6 * n_workers + 2))
