"""What the compiled trainer asks of an environment written in JAX."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from augury.transition import Array, Key, Observation, Transition

State = Any  # whatever pytree the environment carries from step to step


class JaxEnvironment(Protocol):
    """A task as pure functions of ONE environment; the trainer batches and resets it."""

    @property
    def name(self) -> str: ...

    @property
    def horizon(self) -> int:
        """Steps after which an episode is truncated."""

    @property
    def observation_low(self) -> npt.NDArray[np.float32]: ...

    @property
    def observation_high(self) -> npt.NDArray[np.float32]: ...

    @property
    def action_low(self) -> npt.NDArray[np.float32]: ...

    @property
    def action_high(self) -> npt.NDArray[np.float32]: ...

    def reset(self, key: Key) -> State:
        """Draw the start of an episode."""

    def observe(self, state: State) -> Observation:
        """What the agent sees of a state."""

    def step(self, key: Key, state: State, action: Array) -> tuple[State, Array, Array]:
        """Return the next state, the reward and whether the task terminated."""

    def succeeded(self, transition: Transition) -> Array:
        """Whether a transition carries the success reward; works on batches too."""
