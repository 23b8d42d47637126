"""Goal2D: a point walks to a goal in the plane.

| index | quantity | unit |
|---|---|---|
| 0, 1 | position x, y of the agent | length |
| 2, 3 | position x, y of the goal | length |

An action is (r, θ) in [0, 1] × [0, 2π]: the share of the longest step, and its direction.

Dynamics, reward and termination are pure functions of arrays. They run on NumPy and on JAX arrays alike,
so the Gymnasium environment, the compiled one and the augmentations cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from augury.envs import goal2d_drawing
from augury.envs.base import Measure, Panel, RunsIn
from augury.transition import Array, Key, Transition

STEP_LENGTH = 0.05
GOAL_RADIUS = 0.05
START_LIMIT = 1.0
"""Starts and goals lie in [-1, 1]²."""
POSITION_LIMIT = 1.05
"""The agent cannot leave [-1.05, 1.05]² (the authors' code; the paper is silent)."""
SUCCESS_REWARD = 1.0
STEP_REWARD = -0.1
HORIZON = 100
ROUNDING = 1e-6
"""How far beyond the walls rounding may put something."""

OBSERVATION_HIGH = np.array([POSITION_LIMIT] * 2 + [START_LIMIT] * 2, np.float32)
ACTION_LOW = np.zeros(2, np.float32)
ACTION_HIGH = np.array([1.0, 2 * np.pi], np.float32)

Goals = Literal["all", "quadrant"]
GOAL_LOW: dict[str, float] = {"all": -START_LIMIT, "quadrant": 0.0}
"""Smallest goal coordinate: the quadrant variant trains on goals in [0, 1]² only."""

AnyArray = Any  # a NumPy or a JAX array


def displacement(action: AnyArray) -> AnyArray:
    """How far an action would move the agent where nothing stops it."""
    xp = action.__array_namespace__()
    radius, angle = action[..., :1], action[..., 1:]
    return STEP_LENGTH * radius * xp.concatenate([xp.cos(angle), xp.sin(angle)], -1)


def move(position: AnyArray, action: AnyArray) -> AnyArray:
    """The dynamics: the next position of the agent."""
    xp = position.__array_namespace__()
    return xp.clip(position + displacement(action), -POSITION_LIMIT, POSITION_LIMIT)


def reached(position: AnyArray, goal: AnyArray) -> AnyArray:
    """Whether the agent is within the goal's radius: success, and the end of the episode."""
    return ((position - goal) ** 2).sum(-1) < GOAL_RADIUS**2


def reward(success: AnyArray) -> AnyArray:
    """+1 on success, -0.1 for every other step."""
    xp = success.__array_namespace__()
    return xp.where(success, xp.float32(SUCCESS_REWARD), xp.float32(STEP_REWARD))


def step(observation: AnyArray, action: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """One environment step: next observation, reward, terminated."""
    xp = observation.__array_namespace__()
    goal = observation[..., 2:]
    position = move(observation[..., :2], action)
    success = reached(position, goal)
    return xp.concatenate([position, goal], -1), reward(success), success


def far_from_goal(candidates: Array, goal: Array, where: Array | None = None) -> Array:
    """The first of the candidate positions (rows) whose `where` (itself, by default) is outside the goal.

    Should all be inside (one in 10⁸ for three uniform ones), the last is shifted by half the square's width.
    """
    tested = candidates if where is None else where
    shifted = jnp.where(candidates[-1] > 0, candidates[-1] - START_LIMIT, candidates[-1] + START_LIMIT)
    outside = jnp.append(~reached(tested, goal), True)
    return jnp.concatenate([candidates, shifted[None]])[jnp.argmax(outside)]


@dataclass(frozen=True)
class Goal2D:
    """The environment inside the compiled trainer. Its state is its observation."""

    goals: Goals = "all"

    runs_in: ClassVar[RunsIn] = "program"
    action_count: ClassVar[None] = None
    measure: ClassVar[Measure] = "success"
    training: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    extras: ClassVar[tuple[str, ...]] = ()
    panel: ClassVar[Panel] = goal2d_drawing.PANEL

    @property
    def name(self) -> str:
        return "goal2d" if self.goals == "all" else "goal2d-quadrant"

    @property
    def horizon(self) -> int:
        return HORIZON

    @property
    def observation_low(self) -> npt.NDArray[np.float32]:
        return -OBSERVATION_HIGH

    @property
    def observation_high(self) -> npt.NDArray[np.float32]:
        return OBSERVATION_HIGH

    @property
    def action_low(self) -> npt.NDArray[np.float32]:
        return ACTION_LOW

    @property
    def action_high(self) -> npt.NDArray[np.float32]:
        return ACTION_HIGH

    def reset(self, key: Key) -> Array:
        """Start and goal, uniform and at least a goal's radius apart."""
        goal_key, start_key = jax.random.split(key)
        goal = jax.random.uniform(goal_key, (2,), minval=GOAL_LOW[self.goals], maxval=START_LIMIT)
        starts = jax.random.uniform(start_key, (3, 2), minval=-START_LIMIT, maxval=START_LIMIT)
        return jnp.concatenate([far_from_goal(starts, goal), goal])

    def restore(self, observation: Array, extras: Mapping[str, Array]) -> Array:
        """The state that looks like this."""
        del extras
        return observation

    def is_possible(self, observation: AnyArray) -> AnyArray:
        """Whether agent and goal lie within the walls."""
        return (abs(observation) <= OBSERVATION_HIGH + ROUNDING).all(-1)

    def sets_goal(self, observation: AnyArray) -> AnyArray:
        """Whether an episode may have this goal."""
        return (observation[..., 2:] >= GOAL_LOW[self.goals] - ROUNDING).all(-1)

    def observe(self, state: Array) -> Array:
        return state

    def step(self, key: Key, state: Array, action: Array) -> tuple[Array, Array, Array]:
        del key  # deterministic
        return step(state, action)

    def succeeded(self, transition: Transition) -> Array:
        return transition.terminated

    def draw(self, axes: Any, transitions: Transition) -> None:
        """Agents, steps and goals; for `augury show`."""
        goal2d_drawing.draw(axes, transitions, radius=GOAL_RADIUS, limit=POSITION_LIMIT)

    def worth_drawing(self, transitions: Transition) -> npt.NDArray[np.float64]:
        """Long steps, whose direction can be seen, and that do not end the episode."""
        return np.where(transitions.terminated, -1.0, transitions.action[:, 0])
