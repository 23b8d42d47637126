"""Moves on a grid, one cell at a time, to a goal: for DQN.

| index | quantity |
|---|---|
| 0, 1 | column and row of the agent, scaled to [-1, 1] |
| 2, 3 | column and row of the goal |

Actions are +x, -x, +y, -y.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from augury.envs.base import with_numbers
from augury.envs.families.base import (
    IDENTITY,
    NOISE,
    RELABEL,
    RELABEL_NEAR,
    REWARDS,
    ROUNDING,
    Change,
    Family,
    computed,
    flipped,
    quarter_turns,
    reaching_reward,
    table,
)
from augury.pytrees import static
from augury.transition import Array, Key, Transition

MOVES = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], np.int32)
"""What each action does."""


def mapped(transition: Transition, change: Callable[[Array], Array]) -> Transition:
    """The transition with both cells and the move changed in the same way."""

    def whole(observation: Array) -> Array:
        return jnp.concatenate([change(observation[:2]), change(observation[2:])])

    move = change(jnp.asarray(MOVES)[transition.action])
    return transition._replace(
        observation=whole(transition.observation),
        action=jnp.argmax(jnp.asarray(MOVES) @ move).astype(transition.action.dtype),
        next_observation=whole(transition.next_observation),
    )


def reflected(task: Grid, key: Key, transition: Transition, amount: Any, *, axis: int) -> Transition:
    """Mirror everything along an axis."""
    del task, key, amount
    return mapped(transition, partial(flipped, axis))


def rotated(task: Grid, key: Key, transition: Transition, amount: Any) -> Transition:
    """Turn everything by 90, 180 or 270 degrees."""
    del task, amount
    return mapped(transition, partial(quarter_turns, jax.random.randint(key, (), 1, 4)))


def translated(task: Grid, key: Key, transition: Transition, amount: Any) -> Transition:
    """Move agent and goal together; not along an axis at whose edge the step ended."""
    del amount
    here, there = task.cells(transition.observation), task.cells(transition.next_observation)
    points = jnp.stack([here[:2], there[:2], here[2:]])
    offset = jax.random.randint(key, (2,), -points.min(0), task.size - points.max(0))
    at_edge = (there[:2] == 0) | (there[:2] == task.size - 1)
    offset = jnp.tile(jnp.where(at_edge, 0, offset), 2)
    return transition._replace(
        observation=task.shown(here + offset), next_observation=task.shown(there + offset)
    )


def moved(task: Grid, key: Key, transition: Transition, amount: Any) -> Transition:
    """Put the agent anywhere; goal and action stay."""
    del amount
    goal = task.cells(transition.observation)[2:]
    cell = jax.random.randint(key, (2,), 0, task.size)
    return computed(task, transition, task.shown(jnp.concatenate([cell, goal.astype(cell.dtype)])))


@with_numbers
class Grid(Family):
    """Reach a cell; success ends the episode. Its state is its observation."""

    wind: float = 0.0
    """Share of the cells, always the same ones, out of which a step is carried one cell further along x: it
    breaks every symmetry and translations."""
    reward: float = REWARDS["sparse"]
    """sparse, dense or shaped."""
    goal_spread: float = 1.0
    """Share of the columns, from the right, in which goals are set."""
    size: int = static(default=9)
    """Cells along each side."""
    horizon: int = static(default=40)
    """Steps of an episode, at most."""

    name = "family/grid"
    action_count = len(MOVES)
    changes = MappingProxyType(
        {
            "identity": IDENTITY,
            "reflect": Change(
                partial(reflected, axis=0), "Mirror along x.", "coverage", ("wind",), involution=True
            ),
            "reflect-y": Change(
                partial(reflected, axis=1), "Mirror along y.", "coverage", ("wind",), involution=True
            ),
            "rotate": Change(rotated, "Turn by quarter turns.", "coverage", ("wind",)),
            "translate": Change(
                translated, "Move agent and goal together.", "coverage, same reward", ("wind",)
            ),
            "move-agent": Change(moved, "Put the agent anywhere.", "coverage, little reward"),
            "relabel": RELABEL,
            "relabel-near": RELABEL_NEAR,
            "noise": NOISE,
        }
    )
    words = MappingProxyType({"reward": REWARDS})
    limits = MappingProxyType(
        {
            "wind": (0, 1),
            "reward": (0, 2),
            "goal_spread": (0, 1),
            "size": (2, 100),
            "horizon": (1, 10_000),
        }
    )
    observation_low = -np.ones(4, np.float32)
    observation_high = np.ones(4, np.float32)

    @property
    def table(self) -> Any:
        """What each observed number is."""
        return table(["column", "row", "goal's column", "goal's row"])

    def cells(self, observation: Array) -> Array:
        """Columns and rows, as whole numbers."""
        return jnp.round((observation + 1) / 2 * (self.size - 1)).astype(jnp.int32)

    def shown(self, cells: Array) -> Array:
        """The observation of columns and rows."""
        return 2 * cells.astype(float) / (self.size - 1) - 1

    def goal_reached(self, key: Key, transition: Transition) -> Array:
        """The goal that a step reaches: there is one only."""
        del key
        return self.cells(transition.next_observation)[:2]

    def draw_goal(self, key: Key) -> Array:
        """A goal as the task sets them."""
        column, row = jax.random.uniform(key, (2,))
        column = 1 - self.goal_spread * column
        return jnp.minimum(jnp.stack([column, row]) * self.size, self.size - 1).astype(jnp.int32)

    def reset(self, key: Key) -> Array:
        start_key, goal_key = jax.random.split(key)
        start = jax.random.randint(start_key, (2,), 0, self.size, jnp.int32)
        return self.shown(jnp.concatenate([start, self.draw_goal(goal_key)]))

    def outcome(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        cells = self.cells(state)
        cell, goal = cells[:2], cells[2:]
        move = jnp.asarray(MOVES)[action]
        following = jnp.clip(cell + move.at[0].add(self._carried(cell)), 0, self.size - 1)
        reward, reached = self.judged(cell, following, goal)
        return self.shown(jnp.concatenate([following, goal])).astype(state.dtype), reward, reached

    def _carried(self, cell: Array) -> Array:
        """One cell, where steps are carried: every cell has a number in [0, 1), in no visible order."""
        number = (cell[0] * 31 + cell[1] * 17 + cell[0] * cell[1] * 7) * 29 % 101
        return (number < self.wind * 101).astype(cell.dtype)

    def judged(self, cell: Array, following: Array, goal: Array) -> tuple[Array, Array]:
        """Reward and success of a step between two cells; distances are in widths of the grid."""
        before, after = (
            jnp.abs(one - goal).sum().astype(float) / (self.size - 1) for one in (cell, following)
        )
        reached = (following == goal).all()
        return reaching_reward(self.reward, reached, before, after, 1 / (self.size - 1)), reached

    def with_goal(self, transition: Transition, goal: Array) -> Transition:
        """The transition with another goal, and what the task says of it."""
        here, there = self.cells(transition.observation)[:2], self.cells(transition.next_observation)[:2]
        reward, reached = self.judged(here, there, goal)
        return transition._replace(
            observation=transition.observation.at[2:].set(self.shown(goal)),
            reward=reward,
            next_observation=transition.next_observation.at[2:].set(self.shown(goal)),
            terminated=reached,
        )

    def is_possible(self, observation: Any) -> Any:
        """Whether agent and goal stand on cells of the grid."""
        scaled = (observation + 1) / 2 * (self.size - 1)
        return ((abs(observation) <= 1 + ROUNDING) & (abs(scaled - scaled.round()) < 1e-3)).all(-1)

    def sets_goal(self, observation: Any) -> Any:
        """Whether an episode may have this goal."""
        column = np.round((observation[..., 2] + 1) / 2 * (self.size - 1))
        first = np.minimum(np.floor((1 - self.goal_spread) * self.size), self.size - 1)
        return column >= first - ROUNDING
