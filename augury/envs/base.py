"""What the trainer asks of an environment: one written in JAX, or one that runs on the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from augury.transition import Array, Key, Observation, Transition

Measure = Literal["success", "returns"]
Bounds = Any  # an array of float32, or a dict of them: as an observation is
State = Any  # whatever pytree the environment carries from step to step


class Environment(Protocol):
    """What is true of every environment."""

    @property
    def name(self) -> str: ...

    @property
    def horizon(self) -> int:
        """Steps after which an episode is truncated."""

    @property
    def measure(self) -> Measure:
        """What its learning curves show."""

    @property
    def training(self) -> Mapping[str, Any]:
        """An arm's settings where they are not Goal2D's."""

    @property
    def extras(self) -> tuple[str, ...]:
        """Named numbers beyond the observation that its transitions can carry."""

    @property
    def observation_low(self) -> Bounds:
        """Finite bounds, between which coverage is measured."""

    @property
    def observation_high(self) -> Bounds: ...

    @property
    def action_low(self) -> npt.NDArray[np.float32]: ...

    @property
    def action_high(self) -> npt.NDArray[np.float32]: ...

    def succeeded(self, transition: Transition) -> Array:
        """Whether a transition carries the success reward; works on batches too."""


class JaxEnvironment(Environment, Protocol):
    """A task as pure functions of ONE environment; the trainer batches and resets it."""

    def reset(self, key: Key) -> State:
        """Draw the start of an episode."""

    def observe(self, state: State) -> Observation:
        """What the agent sees of a state."""

    def step(self, key: Key, state: State, action: Array) -> tuple[State, Array, Array]:
        """Return the next state, the reward and whether the task terminated."""


class HostEngine(Protocol):
    """Many copies of a task on the host: a Gymnasium vector environment that can be saved and restored.

    Observations are arrays, rows first, or dicts of them; so is `infos["final_obs"]`, with all rows.
    """

    num_envs: int

    def reset(self, *, seed: list[int]) -> tuple[Any, dict[str, Any]]: ...

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]: ...

    def state(self) -> dict[str, npt.NDArray[Any]]: ...

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None: ...

    def close(self) -> None: ...


class HostEnvironment(Environment, Protocol):
    """A task that is simulated on the host, many copies at a time."""

    def vector(self, count: int, *, autoreset: bool = True) -> HostEngine:
        """So many copies.

        With autoreset they start again in the step that ends an episode, and `infos["final_obs"]` keeps its
        end; without, they then stand still and earn nothing.
        """
