"""A point goes to a goal around inner walls.

| index | quantity |
|---|---|
| 0, 1 | position x, y |
| 2, 3 | position x, y of the goal |

An action is a share of the longest step, in [-1, 1]². There are walls at ±1 and two inside. The upper one
leaves passages at both sides, the lower one leaves one in the middle:

    +-----------+
    |           |
    |  -------  |      y = 1/3
    |           |
    |---     ---|      y = -1/3
    |           |
    +-----------+

So left and right are the same and above and below are not. A mirror along y or a translation is wrong only
where a wall is, or would be, in the way.
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
    in_ball,
    quarter_turns,
    reaching_reward,
    table,
    within,
)
from augury.pytrees import static
from augury.transition import Array, Key, Transition

UPPER, LOWER = 1 / 3, -1 / 3
"""Heights of the inner walls."""


def mapped(transition: Transition, change: Callable[[Array], Array]) -> Transition:
    """The transition with every vector changed in the same way."""

    def whole(observation: Array) -> Array:
        return jnp.concatenate([change(observation[:2]), change(observation[2:])])

    return transition._replace(
        observation=whole(transition.observation),
        action=change(transition.action),
        next_observation=whole(transition.next_observation),
    )


def reflected(task: Maze, key: Key, transition: Transition, amount: Any, *, axis: int) -> Transition:
    """Mirror everything along an axis."""
    del task, key, amount
    return mapped(transition, partial(flipped, axis))


def rotated(task: Maze, key: Key, transition: Transition, amount: Any) -> Transition:
    """Turn everything by 90, 180 or 270 degrees."""
    del task, amount
    return mapped(transition, partial(quarter_turns, jax.random.randint(key, (), 1, 4)))


def translated(task: Maze, key: Key, transition: Transition, amount: Any) -> Transition:
    """Move agent and goal together between the outer walls, as if there were none inside."""
    del task, amount
    points = jnp.stack(
        [transition.observation[:2], transition.next_observation[:2], transition.observation[2:]]
    )
    lowest, highest = -1.0 - points.min(0), 1.0 - points.max(0)
    offset = lowest + (highest - lowest) * jax.random.uniform(key, (2,))
    both = jnp.concatenate([offset, offset])
    return transition._replace(
        observation=transition.observation + both, next_observation=transition.next_observation + both
    )


def moved(task: Maze, key: Key, transition: Transition, amount: Any) -> Transition:
    """Put the agent anywhere; goal and action stay."""
    del amount
    position = jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0)
    return computed(task, transition, jnp.concatenate([position, transition.observation[2:]]))


@with_numbers
class Maze(Family):
    """Reach a goal around walls; success ends the episode. Its state is its observation."""

    wind: float = 0.0
    """A push along x that the agent does not make: it breaks the reflection."""
    gap: float = 0.4
    """Width of each passage of the upper wall, and half of the lower one's."""
    reward: float = REWARDS["sparse"]
    """sparse, dense or shaped; the distance is that as the crow flies."""
    goal_spread: float = 1.0
    """Half the width of where goals are set, around the middle."""
    start_spread: float = 1.0
    """The same for starts."""
    radius: float = 0.2
    """Of the goal, which can be reached through a wall."""
    speed: float = 0.15
    """The longest step along an axis."""
    horizon: int = static(default=50)
    """Steps of an episode, at most."""

    name = "family/maze"
    changes = MappingProxyType(
        {
            "identity": IDENTITY,
            "reflect": Change(
                partial(reflected, axis=0), "Mirror along x.", "coverage", ("wind",), involution=True
            ),
            "reflect-y": Change(
                partial(reflected, axis=1),
                "Mirror along y.",
                "coverage, and errors at inner walls",
                exact=False,
                involution=True,
            ),
            "rotate": Change(
                rotated, "Turn by quarter turns.", "coverage, and errors at inner walls", exact=False
            ),
            "translate": Change(
                translated,
                "Move agent and goal together.",
                "coverage, and errors at inner walls",
                exact=False,
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
            "wind": (-1, 1),
            "gap": (0, 1),
            "reward": (0, 2),
            "goal_spread": (0, 1),
            "start_spread": (0, 1),
            "radius": (0.001, 1),
            "speed": (0.001, 1),
            "horizon": (1, 10_000),
        }
    )
    observation_low = -np.ones(4, np.float32)
    observation_high = np.ones(4, np.float32)
    action_low = -np.ones(2, np.float32)
    action_high = np.ones(2, np.float32)

    @property
    def table(self) -> Any:
        """What each observed number is."""
        return table(["position x", "position y", "goal x", "goal y"])

    def goal_reached(self, key: Key, transition: Transition) -> Array:
        """A goal that a step reaches."""
        return jnp.clip(transition.next_observation[:2] + in_ball(key, 2, self.radius), -1.0, 1.0)

    def draw_goal(self, key: Key) -> Array:
        """A goal as the task sets them."""
        return within(key, 2, 0.0, self.goal_spread)

    def reset(self, key: Key) -> Array:
        start_key, goal_key = jax.random.split(key)
        return jnp.concatenate([within(start_key, 2, 0.0, self.start_spread), self.draw_goal(goal_key)])

    def outcome(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        position, goal = state[:2], state[2:]
        aim = jnp.clip(position + self.speed * action.at[0].add(self.wind), -1.0, 1.0)
        # A wall in the way stops what leads across it; the rest of the step slides along.
        blocked = self._blocked(position, aim)
        following = aim.at[1].set(jnp.where(blocked, position[1], aim[1]))
        reward, reached = self.judged(position, following, goal)
        return jnp.concatenate([following, goal]), reward, reached

    def _blocked(self, position: Array, aim: Array) -> Array:
        """Whether an inner wall lies between two positions."""

        def crosses(height: float, is_wall: Callable[[Array], Array]) -> Array:
            before, after = position[1] - height, aim[1] - height
            share = before / jnp.where(before == after, 1.0, before - after)
            return (before * after < 0) & is_wall(position[0] + share * (aim[0] - position[0]))

        upper = crosses(UPPER, lambda x: jnp.abs(x) < 1 - self.gap)
        return upper | crosses(LOWER, lambda x: jnp.abs(x) > self.gap)

    def judged(self, position: Array, following: Array, goal: Array) -> tuple[Array, Array]:
        """Reward and success of a step between two positions."""
        before, after = jnp.linalg.norm(position - goal), jnp.linalg.norm(following - goal)
        reached = after < self.radius
        return reaching_reward(self.reward, reached, before, after, self.speed), reached

    def with_goal(self, transition: Transition, goal: Array) -> Transition:
        """The transition with another goal, and what the task says of it."""
        here, there = transition.observation[:2], transition.next_observation[:2]
        reward, reached = self.judged(here, there, goal)
        return transition._replace(
            observation=jnp.concatenate([here, goal]),
            reward=reward,
            next_observation=jnp.concatenate([there, goal]),
            terminated=reached,
        )

    def is_possible(self, observation: Any) -> Any:
        """Whether agent and goal lie between the outer walls."""
        return (abs(observation) <= 1 + ROUNDING).all(-1)

    def sets_goal(self, observation: Any) -> Any:
        """Whether an episode may have this goal."""
        return (abs(observation[..., 2:]) <= self.goal_spread + ROUNDING).all(-1)
