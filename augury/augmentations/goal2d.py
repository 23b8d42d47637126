"""The augmentations of Goal2D. Reward and termination are recomputed by the environment's own functions."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from augury.augmentations.base import augmentation
from augury.envs import goal2d
from augury.errors import UserError
from augury.transition import Array, Key, Transition


@augmentation
class Translate:
    """Move the agent to a uniformly random position; goal and action stay."""

    def __call__(self, key: Key, transition: Transition) -> Transition:
        return _started_at(_uniform_positions(key, 1)[0], transition)


@augmentation
class Rotate:
    """Rotate agent, goal and action by 90, 180 or 270 degrees."""

    def __call__(self, key: Key, transition: Transition) -> Transition:
        return rotate(jax.random.randint(key, (), 1, 4), transition)


@augmentation
class TranslateProximal:
    """Move the agent so that the step ends in the goal with probability p, and outside it otherwise."""

    p: float | Array

    def __post_init__(self) -> None:
        if isinstance(self.p, float | int) and not 0 <= self.p <= 1:
            raise UserError(f"goal2d/translate-proximal: p must lie in [0, 1], not {self.p}")

    def __call__(self, key: Key, transition: Transition) -> Transition:
        coin_key, near_key, far_key = jax.random.split(key, 3)
        goal = transition.observation[2:]
        displacement = goal2d.displacement(transition.action)

        near = _arriving_in_goal(near_key, goal, displacement)
        candidates = _uniform_positions(far_key, 3)
        ends = goal2d.move(candidates, jnp.broadcast_to(transition.action, candidates.shape))
        far = goal2d.far_from_goal(candidates, goal, where=ends)

        succeed = jax.random.bernoulli(coin_key, self.p)
        return _started_at(jnp.where(succeed, near, far), transition)


def rotate(quarter_turns: Array, transition: Transition) -> Transition:
    """Rotate a transition about the origin; the square and the dynamics look the same from all four sides."""
    angle = transition.action[1] + quarter_turns.astype(transition.action.dtype) * (jnp.pi / 2)
    return transition._replace(
        observation=_rotate_points(quarter_turns, transition.observation),
        action=transition.action.at[1].set(angle % (2 * jnp.pi)),
        next_observation=_rotate_points(quarter_turns, transition.next_observation),
    )


def _rotate_points(quarter_turns: Array, points: Array) -> Array:
    """Rotate the (x, y) pairs of a vector by exchange and sign alone, so that nothing is rounded."""
    rotated = points
    for turn in (1, 2, 3):
        pairs = rotated.reshape(-1, 2)
        quarter = jnp.stack([-pairs[:, 1], pairs[:, 0]], -1).reshape(points.shape)
        rotated = jnp.where(quarter_turns >= turn, quarter, rotated)
    return rotated


def _uniform_positions(key: Key, count: int) -> Array:
    return jax.random.uniform(key, (count, 2), minval=-goal2d.START_LIMIT, maxval=goal2d.START_LIMIT)


def _arriving_in_goal(key: Key, goal: Array, displacement: Array) -> Array:
    """A position inside the walls from which `displacement` leads to a uniform point of the goal's disc."""
    radius_key, angle_key = jax.random.split(key)
    # A hair inside the rim, so that rounding cannot carry the step's end out of the goal.
    radius = 0.999 * goal2d.GOAL_RADIUS * jnp.sqrt(jax.random.uniform(radius_key))
    angle = jax.random.uniform(angle_key, maxval=2 * jnp.pi)
    offset = radius * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
    start = goal + offset - displacement
    # The goal's own centre can always be reached from inside the walls, so the mirrored offset can too.
    outside = jnp.abs(start) > goal2d.POSITION_LIMIT
    return jnp.where(outside, goal - offset - displacement, start)


def _started_at(position: Array, transition: Transition) -> Transition:
    """The same action and goal from another position."""
    observation = jnp.concatenate([position, transition.observation[2:]])
    next_observation, reward, terminated = goal2d.step(observation, transition.action)
    return transition._replace(
        observation=observation, reward=reward, next_observation=next_observation, terminated=terminated
    )
