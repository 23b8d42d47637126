"""A cart on a track swings its pole up and balances it.

| index | quantity |
|---|---|
| 0 | position of the cart, between walls at ±1, as a share of half the track |
| 1 | velocity of the cart, scaled |
| 2, 3 | cosine and sine of the pole's angle, which is 0 when upright |
| 4 | angular velocity of the pole, scaled |

An action is a share of the largest force on the cart, in [-1, 1]. Rewards lie in [0, 1].
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
from augury.envs.families.pendulum import REWARDS
from augury.pytrees import static
from augury.transition import Array, Key, Transition

STEP = 0.05
"""Seconds."""
CART, POLE, HALF_LENGTH = 1.0, 0.1, 0.5
"""Masses, and half the pole's length."""
FORCE = 10.0
TRACK = 2.4
"""Half its length."""
LARGEST_VELOCITY = 5.0
LARGEST_RATE = 12.0


def reflected(task: Cartpole, key: Key, transition: Transition, amount: Any) -> Transition:
    """Left becomes right."""
    del task, key, amount
    flip = jnp.array([-1.0, -1.0, 1.0, -1.0, -1.0], transition.observation.dtype)
    return transition._replace(
        observation=flip * transition.observation,
        action=-transition.action,
        next_observation=flip * transition.next_observation,
    )


def shifted(task: Cartpole, key: Key, transition: Transition, amount: Any) -> Transition:
    """Move the cart along the track, unless it touched an end of it; the reward is the task's."""
    del amount
    here, there = transition.observation, transition.next_observation
    lowest, highest = -1.0 - jnp.minimum(here[0], there[0]), 1.0 - jnp.maximum(here[0], there[0])
    offset = (1 - ROUNDING) * (lowest + (highest - lowest) * jax.random.uniform(key))
    offset = jnp.where(jnp.abs(there[0]) >= 1.0 - ROUNDING, 0.0, offset)
    following = there.at[0].add(offset)
    return transition._replace(
        observation=here.at[0].add(offset),
        reward=task.judged(following[0], following[2]),
        next_observation=following,
    )


def moved(task: Cartpole, key: Key, transition: Transition, amount: Any) -> Transition:
    """Begin with the pole at any angle; velocities and cart stay."""
    del amount
    angle = jax.random.uniform(key, minval=-jnp.pi, maxval=jnp.pi)
    state = task.restore(transition.observation, {})
    return computed(task, transition, task.observe(state.at[2].set(angle)))


def moved_near(task: Cartpole, key: Key, transition: Transition, p: Any) -> Transition:
    """Begin with the pole near the top, and slowly, with probability p; else as observed."""
    coin_key, state_key = jax.random.split(key)
    here = task.restore(transition.observation, {})
    near = here.at[2:].set(NEAR * jax.random.uniform(state_key, (2,), minval=-1.0, maxval=1.0))
    chosen = jnp.where(jax.random.bernoulli(coin_key, p), near, here)
    return computed(task, transition, task.observe(chosen))


@with_numbers
class Cartpole(Family):
    """Swing up and balance, near the middle. Its state is (position, velocity, angle, angular velocity)."""

    wind: float = 0.0
    """A force to the right that the cart does not make, as a share of its own: breaks the reflection."""
    gravity: float = 9.8
    """The larger, the more swings it takes."""
    friction: float = 0.0
    """Share of both velocities that is lost in a step."""
    reward: float = REWARDS["dense"]
    """dense: the height, from 0 to 1, less towards the track's ends; sparse: the same near the top alone."""
    start_spread: float = 1.0
    """Episodes start up to this share of half a turn away from hanging, and of half the track from its
    middle."""
    horizon: int = static(default=100)
    """Steps of an episode, at most."""

    name = "family/cartpole"
    measure = "returns"
    training = MappingProxyType({**TRAINING, "discount": 0.97})
    changes = MappingProxyType(
        {
            "identity": IDENTITY,
            "reflect": Change(
                reflected, "Mirror along x.", "coverage, unless starts cover it", ("wind",), involution=True
            ),
            "shift": Change(shifted, "Move the cart along its track.", "coverage of one number"),
            "move-agent": Change(moved, "Put the agent anywhere.", "coverage"),
            "move-near": Change(
                moved_near,
                "Put the agent near success with probability p.",
                "reward, little coverage",
                amount=("p", 0.5),
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
    observation_low = -np.ones(5, np.float32)
    observation_high = np.ones(5, np.float32)
    action_low = -np.ones(1, np.float32)
    action_high = np.ones(1, np.float32)

    @property
    def table(self) -> Any:
        """What each observed number is."""
        angle = ["cosine of the angle", "sine of the angle", "angular velocity"]
        return table(["position", "velocity", *angle])

    def reset(self, key: Key) -> Array:
        place, angle, *slow = jax.random.uniform(key, (4,), minval=-1.0, maxval=1.0)
        spread = self.start_spread
        return jnp.stack(
            [0.5 * TRACK * spread * place, 0.1 * slow[0], jnp.pi * (1 + spread * angle), 0.1 * slow[1]]
        )

    def observe(self, state: Array) -> Array:
        position, velocity, angle, rate = state
        return jnp.stack(
            [
                position / TRACK,
                velocity / LARGEST_VELOCITY,
                jnp.cos(angle),
                jnp.sin(angle),
                rate / LARGEST_RATE,
            ]
        )

    def restore(self, observation: Array, extras: Mapping[str, Array]) -> Array:
        """The state that looks like this."""
        del extras
        position, velocity, cosine, sine, rate = observation
        angle = jnp.arctan2(sine, cosine)
        return jnp.stack([position * TRACK, velocity * LARGEST_VELOCITY, angle, rate * LARGEST_RATE])

    def outcome(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        position, velocity, angle, rate = state
        sine, cosine = jnp.sin(angle), jnp.cos(angle)
        force = FORCE * (action[0] + self.wind)
        pushed = (force + POLE * HALF_LENGTH * rate**2 * sine) / (CART + POLE)
        turning = (self.gravity * sine - cosine * pushed) / (
            HALF_LENGTH * (4 / 3 - POLE * cosine**2 / (CART + POLE))
        )
        acceleration = pushed - POLE * HALF_LENGTH * turning * cosine / (CART + POLE)
        kept = 1 - self.friction
        rate = jnp.clip(kept * (rate + STEP * turning), -LARGEST_RATE, LARGEST_RATE)
        velocity = jnp.clip(kept * (velocity + STEP * acceleration), -LARGEST_VELOCITY, LARGEST_VELOCITY)
        free = position + STEP * velocity
        position = jnp.clip(free, -TRACK, TRACK)
        velocity = jnp.where(free == position, velocity, 0.0)  # an end of the track stops it
        angle = angle + STEP * rate
        reward = self.judged(position / TRACK, jnp.cos(angle))
        return jnp.stack([position, velocity, angle, rate]), reward, jnp.zeros((), bool)

    def judged(self, place: Array, cosine: Array) -> Array:
        """The reward for a place on the track, as a share of its half, and a pole."""
        return upright_reward(self.reward, cosine) * (1 - 0.5 * place**2)

    def succeeded(self, transition: Transition) -> Array:
        """Whether a step ends with the pole near the top."""
        return transition.next_observation[..., 2] > np.cos(NEAR)

    def is_possible(self, observation: Any) -> Any:
        """Whether the angle is one, and everything else within its limits."""
        length = (observation[..., 2:4] ** 2).sum(-1)
        return (abs(length - 1) < 1e-3) & (abs(observation) <= 1 + ROUNDING).all(-1)
