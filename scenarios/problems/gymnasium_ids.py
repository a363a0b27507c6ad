"""Gymnasium's registry: find an id, and say plainly what is wrong with it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from simulator.errors import ConfigurationError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, eq=False)
class Found:
    """What Gymnasium has under an id.

    Attributes:
        functional: a ``FuncEnv``, if there is one.
        max_episode_steps: its time limit, or None.
    """

    functional: Any
    max_episode_steps: int | None


@contextmanager
def plain_errors(environment: str, kwargs: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Turn what Gymnasium and environments raise while being made into one clear message.

    Raises:
        ConfigurationError: whatever it was.
    """
    where = f"environment = {environment!r}"
    try:
        yield
    except gym.error.DependencyNotInstalled as error:
        extra = "mujoco" if "mujoco" in str(error).lower() else ""
        hint = f" Try: pip install 'straggler[{extra}]'" if extra else ""
        raise ConfigurationError(f"{where}: {str(error).splitlines()[0]}.{hint}") from error
    except gym.error.UnregisteredEnv as error:
        # Namespaces make the plain distance misleading: "Cartpole" is near "phys2d/CartPole-v1".
        hint = nearest(environment, sorted(gym.registry))
        if hint.startswith(" Known"):
            hint = " See gymnasium.farama.org for ids."
        raise ConfigurationError(f"{where}: Gymnasium has no such environment.{hint}") from error
    except ConfigurationError:
        raise
    except _MAKING as error:
        given = f" with {dict(kwargs)!r}" if kwargs else ""
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigurationError(f"{where} can not be made{given}: {reason}") from error


_MAKING = (
    gym.error.Error,
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Constructors of environments validate as they please: a bad keyword argument may be any."""


def find_environment(environment: str) -> Found:
    """Look an id up.

    Raises:
        ConfigurationError: unknown id, or a dependency that is not installed.
    """
    from gymnasium.envs.functional_jax_env import FunctionalJaxEnv

    with plain_errors(environment):
        module, _, name = environment.rpartition(":")
        if module:  # as gym.make: importing it registers its environments
            importlib.import_module(module)
        spec = gym.spec(name)
        creator: Any = spec.entry_point
        if isinstance(creator, str):
            creator = load_env_creator(creator)
        functional = None
        if isinstance(creator, type) and issubclass(creator, FunctionalJaxEnv):
            # A fresh one: the wrapper's own methods are already jitted, and fix the parameters.
            functional = type(creator(**spec.kwargs).func_env)()
    return Found(functional, spec.max_episode_steps)
