"""Which problems there are, and how a specification becomes one. Cheap to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scenarios.problems.exact_specs import HardInstanceSpec, MDPSpec
from scenarios.problems.specs import EnvironmentSpec, ProblemSpec, QuadraticSpec
from simulator.errors import ConfigurationError

if TYPE_CHECKING:
    from scenarios.problems.problem import Problem


@dataclass(frozen=True)
class Entry:
    """One line of ``straggler list environments``.

    Attributes:
        id: as in scenario files: a Gymnasium id, or a kind of quadratic or MDP.
        kind: as in scenario files.
        claim: one line.
        reference: who published it.
    """

    id: str
    kind: str
    claim: str
    reference: str


_GYM = "Towers et al. (2024), arXiv 2407.17032"
_BARTO = f"Barto, Sutton & Anderson (1983); {_GYM}"
_MUJOCO = f"Todorov, Erez & Tassa (2012); {_GYM}"
_TR23 = "Tyurin & Richtarik (2023), arXiv 2305.12387"

# fmt: off
PROBLEMS: tuple[Entry, ...] = (
    Entry("phys2d/CartPole-v1", "environment",
          "Balance a pole; two actions; runs inside jit.", _BARTO),
    Entry("phys2d/Pendulum-v0", "environment",
          "Swing a pendulum up; one torque; runs inside jit.", _GYM),
    Entry("CartPole-v1", "environment", "Balance a pole, stepped by Python.", _BARTO),
    Entry("FrozenLake-v1", "environment",
          "Cross a slippery lake; 16 states, 4 actions; tabular policy.", _GYM),
    Entry("Reacher-v5", "environment", "Reach a target with a two-joint arm (MuJoCo).", _MUJOCO),
    Entry("Hopper-v5", "environment", "Hop forward on one leg (MuJoCo).", _MUJOCO),
    Entry("Humanoid-v5", "environment", "Walk on two legs, 17 joints (MuJoCo).", _MUJOCO),
    Entry("tridiagonal", "quadratic",
          "The worst-case quadratic of first-order methods, with noise.", _TR23),
    Entry("given", "quadratic", "Quadratics A_i, b_i given for each worker, with noise.", _TR23),
    Entry("garnet", "mdp", "A random MDP; exact values and gradients; runs inside jit.",
          "Archibald, McKinnon & Thomas (1995)"),
    Entry("chain", "mdp", "One action leads on, the others back; gradients vanish far off.",
          "Agarwal, Kakade, Lee & Mahajan (2021)"),
    Entry("grid", "mdp", "Find the opposite corner; exact values and gradients.",
          "Sutton & Barto (2018)"),
    Entry("hard-instance", "hard-instance",
          "Coordinates to be found one by one, each by luck: the lower bound's function.",
          "Arjevani et al. (2019), arXiv 1912.02365"),
)
# fmt: on

OTHER_ENVIRONMENTS = (
    "Any other Gymnasium id works too, if its observations are a vector or discrete "
    "and its actions continuous or discrete."
)


def build_problem(spec: ProblemSpec, n_workers: int) -> Problem:
    """Build what ``spec`` describes, for a fleet of ``n_workers``.

    Raises:
        ConfigurationError: unknown environment, unsupported space, wrong number of per-worker
            values, a missing optional dependency.
    """
    if isinstance(spec, QuadraticSpec):
        from scenarios.problems.quadratics import QuadraticProblem

        return QuadraticProblem(spec, n_workers)
    if isinstance(spec, MDPSpec):
        from scenarios.problems.tabular import TabularProblem

        return TabularProblem(spec, n_workers)
    if isinstance(spec, HardInstanceSpec):
        from scenarios.problems.hard_instance import HardInstanceProblem

        return HardInstanceProblem(spec, n_workers)
    return _build_environment(spec, n_workers)


def _build_environment(spec: EnvironmentSpec, n_workers: int) -> Problem:
    from scenarios.problems.gymnasium_ids import find_environment

    found = find_environment(spec.environment)
    if found.functional is not None:
        if spec.stepper != "gymnasium":
            raise ConfigurationError(
                f"stepper = {spec.stepper!r}: expected 'gymnasium' for {spec.environment!r}, which "
                "runs inside jit"
            )
        from scenarios.problems.jax_environments import JaxEnvironmentProblem

        return JaxEnvironmentProblem(spec, n_workers, found.functional, found.max_episode_steps)
    from scenarios.problems.host_environments import HostEnvironmentProblem

    return HostEnvironmentProblem(spec, n_workers, found.max_episode_steps)
