"""Tabular MDPs, and one for each worker.

- **garnet**: from each state each action leads to ``branching`` states drawn without replacement,
  with probabilities the gaps between uniform draws; rewards r(s, a) are uniform in [-1, 1], the
  first state uniform (Archibald, McKinnon & Thomas 1995; Bhatnagar et al. 2009).
- **chain**: states 0 .. S-1; the last action leads one state on, every other one back (from state 0
  nowhere); ``slip`` is the probability of the opposite direction. Entering the last state pays 1
  and ends the episode. From afar the gradient vanishes: random walks hardly ever get there
  (Agarwal, Kakade, Lee & Mahajan 2021, JMLR 22(98)).
- **grid**: cells row by row; actions up, right, down, left, of which a wall makes staying; with
  probability ``slip`` the direction is drawn uniformly. From one corner to the opposite one, which
  pays 1 and ends the episode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenarios.problems.exact_specs import MDPSpec
from scenarios.problems.heterogeneity import worker_numbers
from simulator.errors import ConfigurationError
from simulator.randomness import Purpose

Float64 = NDArray[np.float64]

MAX_ENTRIES = 50_000_000
"""Of all workers' transition tables together: 400 MB of float64."""


class MDP(NamedTuple):
    """A finite MDP; or several of the same size, stacked along a leading axis.

    Attributes:
        transition: P(s' | s, a), [S, A, S].
        reward: r(s, a, s'), [S, A, S]; 0 from terminal states.
        initial: of the first state, [S].
        terminal: bool, [S]; such a state leads to itself, and the trajectory ends there.
    """

    transition: Any
    reward: Any
    initial: Any
    terminal: Any


@dataclass(frozen=True, eq=False)
class WorkerMDPs:
    """The distinct MDPs among the workers'.

    Attributes:
        mdps: stacked, [n_variants, ...].
        of_worker: int32, [n_workers], which one each worker has.
        share: of the workers that have it, [n_variants].
    """

    mdps: MDP
    of_worker: NDArray[np.int32]
    share: Float64

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.share)

    def variant(self, index: int) -> MDP:
        """One of them."""
        return MDP(*(array[index] for array in self.mdps))


def make_mdp(spec: MDPSpec, seed: int) -> MDP:
    """The MDP before any perturbation; only a garnet depends on ``seed``."""
    numbers: dict[str, Any] = {
        name: getattr(spec, name) for name in ("states", "actions", "slip", "width", "height")
    }
    if spec.kind == "chain":
        return chain(numbers["states"], numbers["actions"], numbers["slip"])
    if spec.kind == "grid":
        return grid(numbers["width"], numbers["height"], numbers["slip"])
    branching: Any = spec.branching
    return garnet(numbers["states"], numbers["actions"], branching, _generator(seed))


def _generator(*key: int) -> np.random.Generator:
    return np.random.default_rng([int(Purpose.PROBLEM), *key])


def garnet(states: int, actions: int, branching: int, generator: np.random.Generator) -> MDP:
    """A random MDP."""
    transition = np.zeros((states, actions, states))
    for s in range(states):
        for a in range(actions):
            after = generator.choice(states, branching, replace=False)
            cuts = np.sort(generator.uniform(size=branching - 1))
            transition[s, a, after] = np.diff(np.concatenate([[0.0], cuts, [1.0]]))
    reward = generator.uniform(-1.0, 1.0, (states, actions, 1))
    return MDP(
        transition,
        np.broadcast_to(reward, transition.shape).copy(),
        np.full(states, 1 / states),
        np.zeros(states, bool),
    )


def chain(states: int, actions: int, slip: float) -> MDP:
    """A walk to the last state."""
    transition = np.zeros((states, actions, states))
    for s in range(states - 1):
        for a in range(actions):
            on = 1 - slip if a == actions - 1 else slip
            transition[s, a, s + 1] += on
            transition[s, a, max(s - 1, 0)] += 1 - on
    return _to_a_goal(transition, goal=states - 1)


def grid(width: int, height: int, slip: float) -> MDP:
    """A walk from cell (0, 0) to the opposite corner."""
    transition = np.zeros((width * height, 4, width * height))
    moves = ((-1, 0), (0, 1), (1, 0), (0, -1))
    for s in range(width * height - 1):
        row, column = divmod(s, width)
        for direction, (down, right) in enumerate(moves):
            to_row = min(max(row + down, 0), height - 1)
            to_column = min(max(column + right, 0), width - 1)
            transition[s, :, to_row * width + to_column] += slip / 4
            transition[s, direction, to_row * width + to_column] += 1 - slip
    return _to_a_goal(transition, goal=width * height - 1)


def _to_a_goal(transition: Float64, goal: int) -> MDP:
    """Start in state 0; entering the goal pays 1 and ends."""
    states = len(transition)
    transition[goal, :, goal] = 1.0
    reward = np.zeros_like(transition)
    reward[:goal, :, goal] = 1.0
    return MDP(transition, reward, np.eye(states)[0], np.arange(states) == goal)


def perturbed(mdp: MDP, reward: float, transition: float, generator: np.random.Generator) -> MDP:
    """One worker's version; what is terminal stays so.

    Args:
        mdp: what all have in common.
        reward: r(s, a, s') + reward * U(s, a), U uniform in [-1, 1].
        transition: q of (1 - q) P + q R; the rows R(. | s, a) are uniform on the simplex.
        generator: draws U, then R.
    """
    states, actions, _ = mdp.transition.shape
    noise = generator.uniform(-1.0, 1.0, (states, actions, 1))
    rows = generator.dirichlet(np.ones(states), (states, actions))
    alive = ~mdp.terminal[:, None, None]
    return mdp._replace(
        transition=np.where(
            alive, (1 - transition) * mdp.transition + transition * rows, mdp.transition
        ),
        reward=mdp.reward + np.where(alive, reward * noise, 0.0),
    )


def worker_mdps(spec: MDPSpec, n_workers: int) -> WorkerMDPs:
    """Every worker's MDP.

    Raises:
        ConfigurationError: a per-worker value of the wrong length, form or range; too large.
    """
    seeds = _in_range("seed", spec.seed, n_workers, 2**53)
    if np.any(seeds % 1):
        raise ConfigurationError(f"seed = {spec.seed!r}: expected integers >= 0")
    rewards = _in_range("reward_perturbation", spec.reward_perturbation, n_workers, np.inf)
    moves = _in_range("transition_perturbation", spec.transition_perturbation, n_workers, 1)
    # A worker that is perturbed has an MDP of its own; the others share one for each seed.
    own = np.where((rewards > 0) | (moves > 0), np.arange(1, n_workers + 1), 0)
    matters = (own > 0) | (spec.kind == "garnet")
    keys = list(zip(np.where(matters, seeds, 0).astype(int).tolist(), own.tolist(), strict=True))
    index = {key: position for position, key in enumerate(dict.fromkeys(keys))}
    _check_size(spec, len(index))
    bases = {seed: make_mdp(spec, seed) for seed, _ in index}
    mdps = [
        perturbed(bases[seed], rewards[own - 1], moves[own - 1], _generator(seed, own))
        if own
        else bases[seed]
        for seed, own in index
    ]
    of_worker = np.array([index[key] for key in keys], np.int32)
    stacked = MDP(*(np.stack(arrays) for arrays in zip(*mdps, strict=True)))
    return WorkerMDPs(stacked, of_worker, np.bincount(of_worker) / n_workers)


def _in_range(name: str, value: Any, n_workers: int, high: float) -> Float64:
    numbers = worker_numbers(name, value, n_workers)
    if np.any((numbers < 0) | (numbers > high)):
        allowed = "numbers in [0, 1]" if high == 1 else "numbers >= 0"
        raise ConfigurationError(f"{name} = {value!r}: expected {allowed}")
    return numbers


def _check_size(spec: MDPSpec, distinct: int) -> None:
    states = spec.states or (spec.width or 1) * (spec.height or 1)
    entries = distinct * states**2 * (spec.actions or 4)
    if entries > MAX_ENTRIES:
        field = "width" if spec.kind == "grid" else "states"
        raise ConfigurationError(
            f"{field} = {getattr(spec, field)}: {distinct} distinct MDP(s) of {states} states have "
            f"{entries:,} transition probabilities: expected at most {MAX_ENTRIES:,}"
        )
