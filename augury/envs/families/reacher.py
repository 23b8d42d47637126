"""An arm with two links reaches for a goal in the plane.

| index | quantity |
|---|---|
| 0, 1 | cosine and sine of the first joint's angle |
| 2, 3 | the same of the second joint's, relative to the first link |
| 4, 5 | velocities of the joints, in strides a step |
| 6, 7 | position of the tip |
| 8, 9 | position of the goal |

An action is what the joints' velocities tend to, in [-1, 1]². The arm is of length 1 when stretched.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

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
    in_ball,
    reaching_reward,
    table,
)
from augury.pytrees import static
from augury.transition import Array, Key, Transition

LINK = 0.5
"""Length of each link."""
NEAREST, FARTHEST = 0.2, 0.9
"""How far from the base goals are set."""


class State(NamedTuple):
    """Of arm and goal."""

    angles: Array
    rates: Array
    goal: Array


def rotated(task: Reacher, key: Key, transition: Transition, amount: Any) -> Transition:
    """Turn arm and goal about the base."""
    del task, amount
    turn = jax.random.uniform(key, minval=-jnp.pi, maxval=jnp.pi)
    matrix = jnp.array([[jnp.cos(turn), -jnp.sin(turn)], [jnp.sin(turn), jnp.cos(turn)]])

    def seen(observation: Array) -> Array:
        first, rest = observation[:2], observation[2:6]
        return jnp.concatenate([matrix @ first, rest, matrix @ observation[6:8], matrix @ observation[8:]])

    return transition._replace(
        observation=seen(transition.observation), next_observation=seen(transition.next_observation)
    )


def reflected(task: Reacher, key: Key, transition: Transition, amount: Any) -> Transition:
    """Mirror at the axis along x: angles, velocities and actions change sign."""
    del task, key, amount
    flip = jnp.array([1.0, -1, 1, -1, -1, -1, 1, -1, 1, -1], transition.observation.dtype)
    return transition._replace(
        observation=flip * transition.observation,
        action=-transition.action,
        next_observation=flip * transition.next_observation,
    )


def moved(task: Reacher, key: Key, transition: Transition, amount: Any) -> Transition:
    """Begin with the arm in any pose; velocities, goal and action stay."""
    del amount
    angles = jax.random.uniform(key, (2,), minval=-jnp.pi, maxval=jnp.pi)
    state = task.restore(transition.observation, {})
    return computed(task, transition, task.observe(state._replace(angles=angles)))


@with_numbers
class Reacher(Family):
    """Bring the tip to a goal; success ends the episode."""

    wind: float = 0.0
    """A push on the first joint that depends on where its link points: it breaks rotation and reflection."""
    drag: float = 0.5
    """Share of the velocities that is replaced in a step: 1 leaves no memory."""
    reward: float = REWARDS["sparse"]
    """sparse, dense or shaped."""
    goal_spread: float = 1.0
    """Goals are set up to this share of half a turn either way from the axis along x."""
    start_spread: float = 1.0
    """The same for the first link at the start; the second starts anywhere."""
    radius: float = 0.2
    """Of the goal."""
    speed: float = 0.3
    """The stride: radians in a step at full velocity."""
    horizon: int = static(default=50)
    """Steps of an episode, at most."""

    name = "family/reacher"
    changes = MappingProxyType(
        {
            "identity": IDENTITY,
            "reflect": Change(reflected, "Mirror along x.", "coverage", ("wind",), involution=True),
            "rotate": Change(rotated, "Turn about the base.", "coverage", ("wind",)),
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
            "drag": (0.01, 1),
            "reward": (0, 2),
            "goal_spread": (0, 1),
            "start_spread": (0, 1),
            "radius": (0.001, 1),
            "speed": (0.001, 3),
            "horizon": (1, 10_000),
        }
    )
    observation_low = -np.ones(10, np.float32)
    observation_high = np.ones(10, np.float32)
    action_low = -np.ones(2, np.float32)
    action_high = np.ones(2, np.float32)

    @property
    def table(self) -> Any:
        """What each observed number is."""
        angles = [f"{part} of joint {joint}" for joint in (1, 2) for part in ("cosine", "sine")]
        rates = ["velocity of joint 1", "velocity of joint 2"]
        return table([*angles, *rates, "tip x", "tip y", "goal x", "goal y"])

    def goal_reached(self, key: Key, transition: Transition) -> Array:
        """A goal that a step reaches."""
        return transition.next_observation[6:8] + in_ball(key, 2, self.radius)

    def draw_goal(self, key: Key) -> Array:
        """A goal as the task sets them."""
        distance, angle = jax.random.uniform(key, (2,))
        angle = jnp.pi * self.goal_spread * (2 * angle - 1)
        distance = NEAREST + (FARTHEST - NEAREST) * distance
        return distance * jnp.stack([jnp.cos(angle), jnp.sin(angle)])

    def reset(self, key: Key) -> State:
        angle_key, goal_key = jax.random.split(key)
        angles = jnp.pi * jax.random.uniform(angle_key, (2,), minval=-1.0, maxval=1.0)
        return State(angles.at[0].multiply(self.start_spread), jnp.zeros(2), self.draw_goal(goal_key))

    def observe(self, state: State) -> Array:
        cosines, sines = jnp.cos(state.angles), jnp.sin(state.angles)
        turns = jnp.stack([cosines, sines], 1).reshape(-1)
        return jnp.concatenate([turns, state.rates, tip(state.angles), state.goal])

    def restore(self, observation: Array, extras: Mapping[str, Array]) -> State:
        """The state that looks like this."""
        del extras
        angles = jnp.arctan2(observation[jnp.array([1, 3])], observation[jnp.array([0, 2])])
        return State(angles, observation[4:6], observation[8:])

    def outcome(self, state: State, action: Array) -> tuple[State, Array, Array]:
        push = action.at[0].add(self.wind * jnp.cos(state.angles[0]))
        rates = (1 - self.drag) * state.rates + self.drag * push
        angles = state.angles + self.speed * rates
        reward, reached = self.judged(tip(state.angles), tip(angles), state.goal)
        return State(angles, rates, state.goal), reward, reached

    def judged(self, position: Array, following: Array, goal: Array) -> tuple[Array, Array]:
        """Reward and success of a step between two positions of the tip."""
        before, after = jnp.linalg.norm(position - goal), jnp.linalg.norm(following - goal)
        reached = after < self.radius
        return reaching_reward(self.reward, reached, before, after, self.speed), reached

    def with_goal(self, transition: Transition, goal: Array) -> Transition:
        """The transition with another goal, and what the task says of it."""
        here, there = transition.observation, transition.next_observation
        reward, reached = self.judged(here[6:8], there[6:8], goal)
        return transition._replace(
            observation=here.at[8:].set(goal),
            reward=reward,
            next_observation=there.at[8:].set(goal),
            terminated=reached,
        )

    def is_possible(self, observation: Any) -> Any:
        """Whether the angles are some, and the goal can almost be reached."""
        lengths = (observation[..., :4].reshape(*observation.shape[:-1], 2, 2) ** 2).sum(-1)
        farthest = ((observation[..., 8:] ** 2).sum(-1)) ** 0.5
        return (abs(lengths - 1) < 1e-3).all(-1) & (farthest <= 2 * LINK + self.radius + ROUNDING)

    def sets_goal(self, observation: Any) -> Any:
        """Whether an episode may have this goal."""
        goal = observation[..., 8:]
        distance = (goal**2).sum(-1) ** 0.5
        angle = abs(np.arctan2(goal[..., 1], goal[..., 0]))
        fits = (distance >= NEAREST - ROUNDING) & (distance <= FARTHEST + ROUNDING)
        return fits & (angle <= np.pi * self.goal_spread + ROUNDING)


def tip(angles: Array) -> Array:
    """Where the tip of the second link is."""
    first, both = angles[0], angles[0] + angles[1]
    return LINK * jnp.stack([jnp.cos(first) + jnp.cos(both), jnp.sin(first) + jnp.sin(both)])
