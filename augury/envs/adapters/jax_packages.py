"""What adapters of packages in JAX share: how a package is imported, and states that a trainer can carry."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from augury.envs.adapters.defaults import TRAINING
from augury.envs.adapters.gymnasium.spaces import LARGEST_BOUND, UNKNOWN_BOUND
from augury.envs.base import JaxEnvironment, State
from augury.errors import UserError, nearest
from augury.transition import Array, Key

Bound = npt.NDArray[np.float32]


class PackagedEnvironment(JaxEnvironment):
    """A task of a package in JAX."""

    @property
    def training(self) -> Mapping[str, Any]:
        """Settings for continuous actions; those for discrete ones are the defaults of DQN."""
        return TRAINING if self.action_count is None else {}


class StateEnvironment(PackagedEnvironment):
    """A task whose states hold observation, reward and `done`: Brax's form, which Playground took over.

    The package's own randomness is in its states. Actions lie in [-1, 1].
    """

    @property
    def made(self) -> Any:
        """The package's own task."""
        raise NotImplementedError

    @property
    def observation_low(self) -> Bound:
        return unbounded(_observation_size(self))[0]

    @property
    def observation_high(self) -> Bound:
        return unbounded(_observation_size(self))[1]

    @property
    def action_low(self) -> Bound:
        return -self.action_high

    @property
    def action_high(self) -> Bound:
        return np.ones(self.made.action_size, np.float32)

    def observe(self, state: State) -> Array:
        return vector(state.obs)

    def reset(self, key: Key) -> State:
        return settled(self.made.reset(key))

    def step(self, key: Key, state: State, action: Array) -> tuple[State, Array, Array]:
        del key
        # Tasks write into the dicts of the state they are given.
        copied = jax.tree.map(lambda leaf: leaf, state)
        following = settled(self.made.step(copied, action), state)
        return following, following.reward, following.done > 0


@lru_cache(maxsize=64)
def _observation_size(environment: StateEnvironment) -> int:
    """How many numbers are observed: Brax itself resets to find out, and compiles each operation of it."""
    seen = jax.eval_shape(lambda key: environment.observe(environment.reset(key)), jax.random.key(0))
    return int(seen.size)


def imported(module: str, package: str, extra: str) -> Any:
    """A module of an optional package, or the line that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(f"{package} cannot be imported: pip install 'augury[{extra}]' ({error})") from error


def known(task: str, tasks: Iterable[str], package: str) -> str:
    """The name of a task, if the package has it."""
    if task not in tasks:
        raise UserError(f"{package} has no task '{task}'{nearest(task, tasks)}")
    return task


def loaded(name: str, load: Callable[[], Any], hint: str = "") -> Any:
    """What a package makes of a task's name.

    Its arrays outlive the program in which it may first be asked for, so they are made outside of any.
    """
    try:
        with jax.ensure_compile_time_eval():
            return load()
    except Exception as error:
        raise UserError(f"{name} cannot be loaded: {type(error).__name__}: {error}{hint}") from error


def finite(low: Any, high: Any, shape: tuple[int, ...]) -> tuple[Bound, Bound]:
    """Bounds between which coverage can be measured, as vectors."""
    low, high = (np.broadcast_to(np.asarray(bound, np.float64), shape).ravel() for bound in (low, high))
    low = np.where(np.abs(low) < LARGEST_BOUND, low, -UNKNOWN_BOUND)
    high = np.where(np.abs(high) < LARGEST_BOUND, high, UNKNOWN_BOUND)
    high = np.where(low < high, high, low + 1)  # a number that never changes
    return low.astype(np.float32), high.astype(np.float32)


def unbounded(count: int) -> tuple[Bound, Bound]:
    """Bounds of so many numbers of which nothing is known."""
    return finite(-np.inf, np.inf, (count,))


def vector(observation: Any) -> Array:
    """An observation of any shape as the vector that networks and replay buffers take."""
    return jnp.ravel(observation).astype(jnp.float32)


def settled(state: State, like: State | None = None) -> State:
    """A state whose every leaf is an array of a definite dtype: that of `like`, where there is one.

    Packages put Python numbers into states, and a step may return another dtype than a reset. A trainer that
    carries a state from step to step, and a checkpoint that brings it back, need one dtype for good.
    """
    return jax.tree.map(_settled, state, state if like is None else like)


def _settled(leaf: Any, like: Any) -> Any:
    return leaf if _is_key(leaf) else jnp.asarray(leaf, jnp.result_type(like))


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
