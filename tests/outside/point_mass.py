"""A point mass in the plane, pushed to the origin: an environment in JAX, with its mirror, in one file."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import augury

SMALL = {"steps": 320, "random_steps": 64, "collect": 16, "updates": 4, "batch_size": 16, "hidden": (16,)}


@dataclass(frozen=True)
class PointMass(augury.JaxEnvironment):
    """Its state is its observation: position x, y and velocity x, y."""

    wind: float = 0.0
    name = "point-mass"
    horizon = 20
    measure = "success"
    training = SMALL
    observation_low, observation_high = -2 * np.ones(4, np.float32), 2 * np.ones(4, np.float32)
    action_low, action_high = -np.ones(2, np.float32), np.ones(2, np.float32)

    def reset(self, key):
        return jnp.concatenate([jax.random.uniform(key, (2,), minval=-1, maxval=1), jnp.zeros(2)])

    def observe(self, state):
        return state

    def step(self, key, state, action):
        velocity = 0.8 * state[2:] + 0.2 * action + jnp.array([self.wind, 0.0])
        position = jnp.clip(state[:2] + 0.5 * velocity, -2, 2)
        distance = jnp.sqrt((position**2).sum())
        return jnp.concatenate([position, velocity]), -distance, distance < 0.2

    def succeeded(self, transition):
        return transition.terminated

    def restore(self, observation, extras):
        return observation

    def draw(self, axes, transitions):
        axes.plot(*np.stack([transitions.observation[:, :2], transitions.next_observation[:, :2]]).T)


def mirror(key, transition):
    """Left becomes right."""
    flip = jnp.array([-1.0, 1.0, -1.0, 1.0], transition.observation.dtype)
    return transition._replace(
        observation=flip * transition.observation,
        action=flip[:2] * transition.action,
        next_observation=flip * transition.next_observation,
    )


windy = PointMass(wind=0.1)
