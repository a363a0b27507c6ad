"""The seven parts of the validation, in order."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.validation import (
    bias,
    hard_progress,
    momentum,
    random_times,
    rates,
    scaling,
    step_times,
)
from scenarios.validation.outcome import Part
from simulator.errors import ConfigurationError

PARTS: tuple[Part, ...] = (
    Part(
        "1",
        "Times of one aggregation",
        "Do simulated steps take the time that the exact formulas say, and never more than the "
        "bounds? Random fleets of 1 to 40 workers, their speeds alike or up to a thousandfold "
        "apart, without network, with a star or an AllReduce; times are multiples of 1/8 s, so "
        "that equal means equal.",
        step_times.run,
        weight=0.2,
    ),
    Part(
        "2",
        "Random delays",
        "Is the mean of simulated times the expected one? Delays are gamma distributed, from "
        "heavier than exponential to nearly constant; the expectation is an integral over the "
        "chance that a step is not over, computed without simulating.",
        random_times.run,
        weight=0.1,
    ),
    Part(
        "3",
        "Seconds to a target",
        "With the parameters that theory recommends, is E|grad f| <= epsilon reached within the "
        "seconds that theory allows, and how do they grow as epsilon falls? Hard instances whose "
        "constants are those of one class of functions, and an exact MDP; nothing is tuned.",
        rates.run,
        weight=1.4,
    ),
    Part(
        "4",
        "Progress on the hard instance",
        "Does any method, with any stepsize, find coordinates faster than the lower bound allows?",
        hard_progress.run,
        weight=0.5,
    ),
    Part(
        "5",
        "More workers, slower workers",
        "Does the minimum over m do what it promises: slow workers never hurt Rennala, and do hurt "
        "the synchronous method?",
        scaling.run,
        weight=0.1,
    ),
    Part(
        "6",
        "Workers with different objectives",
        "Is a step of Malenia unbiased, and Rennala's biased just as its workers' shares say?",
        bias.run,
        weight=0.45,
    ),
    Part(
        "7",
        "Error of the momentum",
        "Does E|d_t - grad f(x_t)| decay as Lemma D.2 says?",
        momentum.run,
        weight=0.15,
    ),
)


def choose(wanted: Sequence[str] | None) -> tuple[Part, ...]:
    """Parts by their numbers, in order; all if ``wanted`` is None.

    Raises:
        ConfigurationError: there is no such part.
    """
    if wanted is None:
        return PARTS
    known = [part.id for part in PARTS]
    unknown = [text for text in wanted if text not in known]
    if unknown or not wanted:
        what = ", ".join(repr(text) for text in unknown) or "none given"
        listed = ", ".join(f"{part.id} ({part.title})" for part in PARTS)
        raise ConfigurationError(f"--parts: no part {what}; expected numbers out of {listed}")
    return tuple(part for part in PARTS if part.id in wanted)
