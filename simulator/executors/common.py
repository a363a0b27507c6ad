"""What executors share: one execution's state and results, and a cache of compiled functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from algorithms.update_rule import Hyperparameters, State, StepInfo, UpdateRule
from simulator.oracle import Oracle
from simulator.randomness import gradient_key
from simulator.resume import Arrays, CheckpointMismatch, pack, unpack
from simulator.schedule import Schedule

T = TypeVar("T")

_COMPILED_PROBLEMS = 16


class Snapshot(NamedTuple):
    """The model after ``version`` server steps.

    Attributes:
        version: server steps taken; 0 is x_0.
        params: [dim], a copy that nothing changes any more.
    """

    version: int
    params: NDArray[Any]


class Execution(ABC):
    """One method on one seed, executed step by step as its snapshots are asked for.

    It computes in the dtype of x_0 and belongs inside ``simulator.precision.precision`` if that
    is float64.

    Args:
        schedule: what happens.
        oracle: where gradients come from. Compiled functions are kept for the object: give the
            same one to all executions of a problem.
        rule: how the server steps.
        hyperparameters: of the rule, see ``algorithms.hyperparameters``; changing them compiles
            nothing.
        seed: in [0, 2^32), keys the gradients' randomness and the initial point.
        x0: [dim], instead of ``oracle.initial_point(seed)``; its dtype becomes that one's.

    Attributes:
        version: server steps taken so far.
        gradients_computed: gradients computed so far; after the last step, those that were used.
        lengths: int32 [n_computations], environment steps of each trajectory; -1 if not computed.
        values: float64 [n_computations], sampled objectives; NaN if not computed.

    Raises:
        ValueError: the schedule is for another fleet, or x0 does not have the oracle's shape.
    """

    def __init__(
        self,
        schedule: Schedule,
        oracle: Oracle,
        rule: UpdateRule,
        hyperparameters: Hyperparameters,
        seed: int,
        *,
        x0: Any = None,
    ) -> None:
        if schedule.n_workers != oracle.n_workers:
            raise ValueError(
                f"a schedule for {schedule.n_workers} workers, an oracle for {oracle.n_workers}"
            )
        self._schedule = schedule
        self._oracle = oracle
        self._rule = rule
        self._seed = jnp.asarray(seed, jnp.uint32)
        self._host_seed = seed
        self._x0 = starting_point(oracle, seed, x0)
        self._hyperparameters = as_arrays(hyperparameters, self._x0.dtype)
        self._n_workers = jnp.asarray(schedule.n_workers, jnp.int32)
        self._state: State = fresh(rule.init(self._x0, self._hyperparameters))
        self._lengths = np.full(schedule.n_computations, -1, np.int32)
        self._values = np.full(schedule.n_computations, np.nan)
        self.version = 0
        self.gradients_computed = 0

    def snapshots(self, versions: Sequence[int]) -> Iterator[Snapshot]:
        """Execute as far as the last of ``versions``, yielding the model at each of them.

        A snapshot stays valid whatever happens afterwards, Ctrl-C included. Calling it again goes
        on from where the last call stopped.

        Args:
            versions: ascending, from ``self.version`` to ``schedule.n_steps``.

        Raises:
            ValueError: they are not.
        """
        wanted = [self.version, *versions, self._schedule.n_steps]
        if any(later < earlier for earlier, later in pairwise(wanted)):
            raise ValueError(
                f"versions {list(versions)}: expected ascending numbers in "
                f"[{self.version}, {self._schedule.n_steps}]"
            )
        return self._snapshots(versions)

    def _snapshots(self, versions: Sequence[int]) -> Iterator[Snapshot]:
        for version in versions:
            self._advance_to(version)
            yield Snapshot(version, np.array(self._state.params))

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Environment steps of each trajectory, [n_computations]; -1 if not computed."""
        return self._lengths

    @property
    def values(self) -> NDArray[np.float64]:
        """Sampled objective of each computation, [n_computations]; NaN if not computed."""
        return self._values

    @abstractmethod
    def _advance_to(self, version: int) -> None:
        """Take server steps until ``self.version == version``."""

    # -- checkpoints --------------------------------------------------------------------------

    def checkpoint(self) -> Arrays:
        """What it takes to go on from here, between two snapshots."""
        return {
            "counts": np.array([self.version, self.gradients_computed], np.int64),
            "lengths": self.lengths.copy(),
            "values": self.values.copy(),
            **pack("state", self._state),
            **self._waiting_work(),
        }

    def resume(self, arrays: Arrays) -> None:
        """Go on from a checkpoint of an execution made alike: to the same bytes.

        Raises:
            CheckpointMismatch: it was made otherwise.
        """
        if arrays["lengths"].shape != self._lengths.shape:
            raise CheckpointMismatch("the schedule has another number of computations")
        self.version, self.gradients_computed = (int(count) for count in arrays["counts"])
        self._lengths, self._values = arrays["lengths"].copy(), arrays["values"].copy()
        self._state = unpack("state", self._state, arrays)
        self._resume_work(arrays)

    @abstractmethod
    def _waiting_work(self) -> dict[str, NDArray[Any]]:
        """What an executor has besides: points and gradients that later steps need."""

    @abstractmethod
    def _resume_work(self, arrays: Arrays) -> None:
        """Take that back."""


def starting_point(oracle: Oracle, seed: int, x0: Any) -> jax.Array:
    """``x0``, or the oracle's if it is None, [dim], in the oracle's dtype.

    Raises:
        ValueError: it does not have the oracle's shape.
    """
    default = oracle.initial_point(seed)
    point = jnp.asarray(default if x0 is None else x0, default.dtype)
    if point.shape != (oracle.dim,):
        raise ValueError(f"x0 of shape {point.shape}: expected [{oracle.dim}]")
    return point


def as_arrays(hyperparameters: Hyperparameters, dtype: Any) -> Hyperparameters:
    """Leaves of one dtype: weak or wide ones would change the dtype of a rule's state."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), hyperparameters)


def fresh(state: State) -> State:
    """Copies, each with a buffer of its own to overwrite, of the dtypes every later state has."""
    return jax.tree.map(lambda leaf: jnp.array(leaf, jnp.result_type(leaf)), state)


class Identity:
    """Hashes an object by identity, so that anything can be the key of a cache."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __hash__(self) -> int:
        return id(self.held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.held is other.held


def per_problem(build: Callable[[Any, UpdateRule], T]) -> Callable[[Any, UpdateRule], T]:
    """Keep what ``build(oracle, rule)`` returns for the objects last used.

    Compiled functions live in there, so executions of one problem share them.
    """

    @lru_cache(maxsize=_COMPILED_PROBLEMS)
    def cached(oracle: Identity, rule: Identity) -> T:
        return build(oracle.held, rule.held)

    return lambda oracle, rule: cached(Identity(oracle), Identity(rule))


key_of_gradient = jax.jit(gradient_key)
"""(seed, worker, k) -> key. Compiled here once, not with every problem: hashing compiles slowly."""

keys_of_gradients = jax.jit(jax.vmap(gradient_key, (None, 0, 0)))
"""(seed, workers, ks) -> keys, [len(workers)]."""


def take_step(
    rule: UpdateRule,
    state: State,
    gradient: jax.Array,
    staleness: jax.Array,
    n_workers: jax.Array,
    hyperparameters: Hyperparameters,
) -> State:
    """One server step with the averaged gradient [dim]."""
    return rule.update(state, gradient, StepInfo(staleness, n_workers), hyperparameters)


class RuleKernels(NamedTuple):
    """A rule's functions, compiled."""

    query: Callable[..., jax.Array]
    update: Callable[..., State]


@per_problem
def rule_kernels(oracle: Oracle, rule: UpdateRule) -> RuleKernels:
    """The rule's ``query`` and :func:`take_step`, compiled."""
    del oracle
    return RuleKernels(jax.jit(rule.query), jax.jit(partial(take_step, rule)))
