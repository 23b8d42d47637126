"""A point in a box goes to a goal, by pushing.

| index, for d dimensions | quantity |
|---|---|
| 0 … d-1 | position, between walls at ±1 |
| d … 2d-1 | velocity, in strides a step |
| 2d … 3d-1 | position of the goal |
| 3d … | distractors, if any: chaotic numbers that mean nothing |

An action is a push in [-1, 1]^d; where it is `discrete`, a push of 1 along an axis: +x, -x, +y, -y …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

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

AXES = "xyzuvw"


class Parts(NamedTuple):
    """An observation, taken apart."""

    position: Array
    velocity: Array
    goal: Array
    distractors: Array


def reflected(task: Point, key: Key, transition: Transition, amount: Any, *, axis: int) -> Transition:
    """Mirror position, velocity, goal and push along an axis."""
    del key, amount
    return task.mapped(transition, partial(flipped, axis))


def rotated(task: Point, key: Key, transition: Transition, amount: Any) -> Transition:
    """Turn everything by 90, 180 or 270 degrees in the plane of x and y."""
    del amount
    return task.mapped(transition, partial(quarter_turns, jax.random.randint(key, (), 1, 4)))


def translated(task: Point, key: Key, transition: Transition, amount: Any) -> Transition:
    """Move agent and goal together between the walls; not along an axis whose wall was touched."""
    del amount
    here, there = task.parts(transition.observation), task.parts(transition.next_observation)
    points = jnp.stack([here.position, there.position, here.goal])
    lowest, highest = -1.0 - points.min(0), 1.0 - points.max(0)
    offset = lowest + (highest - lowest) * jax.random.uniform(key, lowest.shape)
    touched = jnp.abs(there.position) >= 1.0 - ROUNDING
    # A hair less, so that rounding cannot make them touch a wall now.
    offset = jnp.where(touched, 0.0, (1 - ROUNDING) * offset)

    def moved(parts: Parts) -> Array:
        return task.joined(parts._replace(position=parts.position + offset, goal=parts.goal + offset))

    return transition._replace(observation=moved(here), next_observation=moved(there))


def moved_agent(task: Point, key: Key, transition: Transition, amount: Any) -> Transition:
    """Put the agent anywhere; velocity, goal and action stay."""
    del amount
    here = task.parts(transition.observation)
    position = jax.random.uniform(key, here.position.shape, minval=-1.0, maxval=1.0)
    return computed(task, transition, task.joined(here._replace(position=position)))


def distracted(task: Point, key: Key, transition: Transition, amount: Any) -> Transition:
    """Draw new distractors."""
    del amount
    here, there = task.parts(transition.observation), task.parts(transition.next_observation)
    drawn = jax.random.uniform(key, here.distractors.shape, minval=-1.0, maxval=1.0)
    return transition._replace(
        observation=task.joined(here._replace(distractors=drawn)),
        next_observation=task.joined(there._replace(distractors=chaotic(drawn))),
    )


def chaotic(values: Array) -> Array:
    """The next values of distractors: Chebyshev's map, which fills [-1, 1] and forgets where it began."""
    return 1.0 - 2.0 * values**2


CHANGES: Mapping[str, Change] = MappingProxyType(
    {
        "identity": IDENTITY,
        "reflect": Change(
            partial(reflected, axis=0), "Mirror along x.", "coverage", ("wind",), involution=True
        ),
        "reflect-y": Change(partial(reflected, axis=1), "Mirror along y.", "coverage", involution=True),
        "rotate": Change(rotated, "Turn by quarter turns.", "coverage", ("wind",)),
        "translate": Change(translated, "Move agent and goal together.", "coverage, same reward"),
        "move-agent": Change(moved_agent, "Put the agent anywhere.", "coverage, little reward"),
        "relabel": RELABEL,
        "relabel-near": RELABEL_NEAR,
        "distract": Change(distracted, "Draw new distractors.", "independence of what means nothing"),
        "noise": NOISE,
    }
)


@with_numbers
class Point(Family):
    """Reach a goal in a box; success ends the episode. Its state is its observation."""

    wind: float = 0.0
    """A push along x that the agent does not make: it breaks reflections along x, and rotations."""
    drag: float = 0.5
    """Share of the velocity that is replaced in a step: 1 leaves no memory."""
    reward: float = REWARDS["sparse"]
    """sparse, dense or shaped."""
    goal_spread: float = 1.0
    """Half the width of where goals are set."""
    goal_centre: float = 0.0
    """Its middle, along x."""
    start_spread: float = 1.0
    """Half the width of where episodes start, around the middle of the box."""
    radius: float = 0.2
    """Of the goal."""
    speed: float = 0.1
    """The stride: how far full velocity carries in a step."""
    dimensions: int = static(default=2)
    """Of the box."""
    distractors: int = static(default=0)
    """Numbers of the observation that mean nothing."""
    discrete: bool = static(default=False)
    """Pushes along one axis at a time, for DQN."""
    horizon: int = static(default=50)
    """Steps of an episode, at most."""

    name = "family/point"
    changes = CHANGES
    words = MappingProxyType({"reward": REWARDS})
    limits = MappingProxyType(
        {
            "wind": (-1, 1),
            "drag": (0.01, 1),
            "reward": (0, 2),
            "goal_spread": (0, 1),
            "goal_centre": (-1, 1),
            "start_spread": (0, 1),
            "radius": (0.001, 1),
            "speed": (0.001, 1),
            "dimensions": (1, len(AXES)),
            "distractors": (0, 100),
            "horizon": (1, 10_000),
        }
    )

    @property
    def menu(self) -> Mapping[str, Change]:
        lacking = {"reflect-y", "rotate"} if self.dimensions < 2 else set()
        lacking |= {"distract"} if self.distractors == 0 else set()
        return {name: change for name, change in self.changes.items() if name not in lacking}

    @property
    def observation_low(self) -> npt.NDArray[np.float32]:
        return -self.observation_high

    @property
    def observation_high(self) -> npt.NDArray[np.float32]:
        return np.ones(3 * self.dimensions + self.distractors, np.float32)

    @property
    def action_count(self) -> int | None:
        return 2 * self.dimensions if self.discrete else None

    @property
    def action_low(self) -> npt.NDArray[np.float32]:
        return -self.action_high

    @property
    def action_high(self) -> npt.NDArray[np.float32]:
        return np.ones(self.dimensions, np.float32)

    @property
    def table(self) -> Any:
        """What each observed number is."""
        parts = ("position", "velocity", "goal")
        named = [f"{part} {axis}" for part in parts for axis in AXES[: self.dimensions]]
        return table([*named, *(f"distractor {number}" for number in range(self.distractors))])

    def parts(self, observation: Array) -> Parts:
        """An observation, taken apart."""
        d = self.dimensions
        return Parts(
            observation[:d], observation[d : 2 * d], observation[2 * d : 3 * d], observation[3 * d :]
        )

    def joined(self, parts: Parts) -> Array:
        """The observation again."""
        return jnp.concatenate(parts)

    def goal_reached(self, key: Key, transition: Transition) -> Array:
        """A goal that a step reaches."""
        arrived = self.parts(transition.next_observation).position
        # The walls bring a goal beyond them only nearer to an agent between them.
        return jnp.clip(arrived + in_ball(key, self.dimensions, self.radius), -1.0, 1.0)

    def draw_goal(self, key: Key) -> Array:
        """A goal as the task sets them."""
        centre = jnp.zeros(self.dimensions).at[0].set(self.goal_centre)
        return within(key, self.dimensions, centre, self.goal_spread)

    def reset(self, key: Key) -> Array:
        start_key, goal_key, distractor_key = jax.random.split(key, 3)
        return self.joined(
            Parts(
                within(start_key, self.dimensions, 0.0, self.start_spread),
                jnp.zeros(self.dimensions),
                self.draw_goal(goal_key),
                jax.random.uniform(distractor_key, (self.distractors,), minval=-1.0, maxval=1.0),
            )
        )

    def outcome(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        position, velocity, goal, distractors = self.parts(state)
        push = self.push(action).at[0].add(self.wind)
        velocity = (1 - self.drag) * velocity + self.drag * push
        free = position + self.speed * velocity
        following = jnp.clip(free, -1.0, 1.0)
        velocity = jnp.where(free == following, velocity, 0.0)  # a wall stops it
        reward, reached = self.judged(position, following, goal)
        return self.joined(Parts(following, velocity, goal, chaotic(distractors))), reward, reached

    def judged(self, position: Array, following: Array, goal: Array) -> tuple[Array, Array]:
        """Reward and success of a step between two positions."""
        before, after = jnp.linalg.norm(position - goal), jnp.linalg.norm(following - goal)
        reached = after < self.radius
        return reaching_reward(self.reward, reached, before, after, self.speed), reached

    def with_goal(self, transition: Transition, goal: Array) -> Transition:
        """The transition with another goal, and what the task says of it."""
        here, there = self.parts(transition.observation), self.parts(transition.next_observation)
        reward, reached = self.judged(here.position, there.position, goal)
        return transition._replace(
            observation=self.joined(here._replace(goal=goal)),
            reward=reward,
            next_observation=self.joined(there._replace(goal=goal)),
            terminated=reached,
        )

    def mapped(self, transition: Transition, change: Callable[[Array], Array]) -> Transition:
        """The transition with every vector changed in the same way, the push too."""

        def whole(observation: Array) -> Array:
            position, velocity, goal, distractors = self.parts(observation)
            return self.joined(Parts(change(position), change(velocity), change(goal), distractors))

        action = change(self.push(transition.action))
        if self.discrete:
            action = jnp.argmax(self._pushes() @ action).astype(transition.action.dtype)
        return transition._replace(
            observation=whole(transition.observation),
            action=action,
            next_observation=whole(transition.next_observation),
        )

    def push(self, action: Array) -> Array:
        """An action as a vector."""
        return self._pushes()[action] if self.discrete else action

    def _pushes(self) -> Array:
        """Those of discrete actions, in rows."""
        axes = jnp.repeat(jnp.eye(self.dimensions), 2, axis=0)
        return axes.at[1::2].multiply(-1)

    def is_possible(self, observation: Any) -> Any:
        """Whether agent, goal and distractors lie between the walls."""
        d = self.dimensions
        inside = abs(observation) <= 1 + ROUNDING
        return inside[..., :d].all(-1) & inside[..., 2 * d :].all(-1)

    def sets_goal(self, observation: Any) -> Any:
        """Whether an episode may have this goal."""
        d = self.dimensions
        goal = observation[..., 2 * d : 3 * d]
        centre = np.zeros(d)
        centre[0] = self.goal_centre
        low, high = (np.clip(centre + end * self.goal_spread, -1, 1) for end in (-1, 1))
        return ((goal >= low - ROUNDING) & (goal <= high + ROUNDING)).all(-1)
