"""A pendulum is swung up and held upright by a motor that is too weak to lift it.

| index | quantity |
|---|---|
| 0, 1 | cosine and sine of the angle, which is 0 when upright |
| 2 | angular velocity, as a share of the largest |

An action is a share of the motor's torque, in [-1, 1]. Rewards lie in [0, 1].
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from augury.envs.base import with_numbers
from augury.envs.families.base import (
    IDENTITY,
    NEAR,
    NOISE,
    ROUNDING,
    TRAINING,
    Change,
    Family,
    computed,
    table,
    upright_reward,
)
from augury.pytrees import static
from augury.transition import Array, Key, Transition

STEP = 0.05
"""Seconds."""
LARGEST_RATE = 8.0
"""Radians a second."""
TORQUE = 2.0

REWARDS: Mapping[str, float] = MappingProxyType({"sparse": 0.0, "dense": 1.0})


def reflected(task: Pendulum, key: Key, transition: Transition, amount: Any) -> Transition:
    """Left becomes right."""
    del task, key, amount
    flip = jnp.array([1.0, -1.0, -1.0], transition.observation.dtype)
    return transition._replace(
        observation=flip * transition.observation,
        action=-transition.action,
        next_observation=flip * transition.next_observation,
    )


def turned(task: Pendulum, key: Key, transition: Transition, amount: Any) -> Transition:
    """Turn both angles alike, as if nothing weighed anything; the reward is the task's."""
    del amount
    turn = jax.random.uniform(key, minval=-jnp.pi, maxval=jnp.pi)

    def seen(observation: Array) -> Array:
        angle, rate = task.restore(observation, {})
        return task.observe(jnp.stack([angle + turn, rate]))

    following = seen(transition.next_observation)
    return transition._replace(
        observation=seen(transition.observation),
        reward=upright_reward(task.reward, following[0]),
        next_observation=following,
    )


def moved(task: Pendulum, key: Key, transition: Transition, amount: Any) -> Transition:
    """Begin at any angle; the velocity stays."""
    del amount
    angle = jax.random.uniform(key, minval=-jnp.pi, maxval=jnp.pi)
    _, rate = task.restore(transition.observation, {})
    return computed(task, transition, task.observe(jnp.stack([angle, rate])))


def moved_near(task: Pendulum, key: Key, transition: Transition, p: Any) -> Transition:
    """Begin near the top, and slowly, with probability p; else as observed."""
    coin_key, state_key = jax.random.split(key)
    near = NEAR * jax.random.uniform(state_key, (2,), minval=-1.0, maxval=1.0)
    here = task.restore(transition.observation, {})
    chosen = jnp.where(jax.random.bernoulli(coin_key, p), near, here)
    return computed(task, transition, task.observe(chosen))


@with_numbers
class Pendulum(Family):
    """Swing up and stay there. Its state is (angle, angular velocity)."""

    wind: float = 0.0
    """A torque to the left that the motor does not make, as a share of the motor's: breaks the reflection."""
    gravity: float = 10.0
    """The larger, the more swings it takes."""
    friction: float = 0.0
    """Share of the velocity that is lost in a step."""
    reward: float = REWARDS["dense"]
    """dense: the height, from 0 to 1; sparse: 1 near the top, else 0."""
    start_spread: float = 1.0
    """Episodes start up to this share of half a turn away from hanging."""
    horizon: int = static(default=100)
    """Steps of an episode, at most."""

    name = "family/pendulum"
    measure = "returns"
    training = MappingProxyType({**TRAINING, "discount": 0.97})
    changes = MappingProxyType(
        {
            "identity": IDENTITY,
            "reflect": Change(
                reflected, "Mirror along x.", "coverage, unless starts cover it", ("wind",), involution=True
            ),
            "move-agent": Change(moved, "Put the agent anywhere.", "coverage"),
            "move-near": Change(
                moved_near,
                "Put the agent near success with probability p.",
                "reward, little coverage",
                amount=("p", 0.5),
            ),
            "turn": Change(
                turned,
                "Turn the angle, as if nothing weighed anything.",
                "coverage, and errors with gravity",
                exact=False,
            ),
            "noise": NOISE,
        }
    )
    words = MappingProxyType({"reward": REWARDS})
    limits = MappingProxyType(
        {
            "wind": (-1, 1),
            "gravity": (0, 30),
            "friction": (0, 1),
            "reward": (0, 1),
            "start_spread": (0, 1),
            "horizon": (1, 10_000),
        }
    )
    observation_low = -np.ones(3, np.float32)
    observation_high = np.ones(3, np.float32)
    action_low = -np.ones(1, np.float32)
    action_high = np.ones(1, np.float32)

    @property
    def table(self) -> Any:
        """What each observed number is."""
        return table(["cosine of the angle", "sine of the angle", "angular velocity"])

    def reset(self, key: Key) -> Array:
        angle_key, rate_key = jax.random.split(key)
        away = self.start_spread * jax.random.uniform(angle_key, minval=-1.0, maxval=1.0)
        rate = self.start_spread * jax.random.uniform(rate_key, minval=-1.0, maxval=1.0)
        return jnp.stack([jnp.pi * (1 + away), rate])

    def observe(self, state: Array) -> Array:
        angle, rate = state
        return jnp.stack([jnp.cos(angle), jnp.sin(angle), rate / LARGEST_RATE])

    def restore(self, observation: Array, extras: Mapping[str, Array]) -> Array:
        """The state that looks like this."""
        del extras
        cosine, sine, rate = observation
        return jnp.stack([jnp.arctan2(sine, cosine), rate * LARGEST_RATE])

    def outcome(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        angle, rate = state
        torque = TORQUE * (action[0] + self.wind)
        faster = rate + STEP * (1.5 * self.gravity * jnp.sin(angle) + 3.0 * torque)
        rate = jnp.clip((1 - self.friction) * faster, -LARGEST_RATE, LARGEST_RATE)
        angle = angle + STEP * rate
        reward = upright_reward(self.reward, jnp.cos(angle))
        return jnp.stack([angle, rate]), reward, jnp.zeros((), bool)

    def succeeded(self, transition: Transition) -> Array:
        """Whether a step ends near the top."""
        return transition.next_observation[..., 0] > np.cos(NEAR)

    def is_possible(self, observation: Any) -> Any:
        """Whether the angle is one, and the pendulum no faster than it can be."""
        length = (observation[..., :2] ** 2).sum(-1)
        return (abs(length - 1) < 1e-3) & (abs(observation[..., 2]) <= 1 + ROUNDING)
