"""What families share: knobs with words and limits, a menu of augmentations, and the rewards of reaching.

A family's step is `outcome(state, action)`: deterministic, so that the verifier can repeat it, and so that an
augmentation that moves something can compute again what would have happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from augury.envs.base import JaxEnvironment, State
from augury.envs.knobs import number_of
from augury.transition import Array, Key, Transition

ROUNDING = 1e-6
"""How far beyond its bounds rounding may put something."""

NEAR = 0.3
"""Radians within which something is near the top."""

REWARDS: Mapping[str, float] = MappingProxyType({"sparse": 0.0, "dense": 1.0, "shaped": 2.0})
"""Rewards of reaching a goal, as numbers in which agents of one fleet may differ."""

TRAINING: Mapping[str, Any] = MappingProxyType(
    {
        "steps": 20_000,
        "random_steps": 1_000,
        "collect": 32,
        "updates": 16,
        "batch_size": 64,
        "hidden": (32, 32),
        "discount": 0.95,
        "target_rate": 0.02,
        "random_action_probability": 0.2,
        "evaluate_every": 1_000,
        "evaluation_episodes": 40,
    }
)
"""Settings with which every family is learned in seconds."""


class Change(NamedTuple):
    """An augmentation of a family: what it does to one transition, and what is known about it."""

    apply: Callable[[Any, Key, Transition, Any], Transition]
    """A function of the task, a key, the transition and `amount`, where it takes one."""
    does: str
    adds: str
    """What the copies have that observed transitions lack, for the documentation."""
    broken_by: tuple[str, ...] = ()
    """Knobs that make it wrong where they are not 0."""
    exact: bool = True
    """Whether the simulator agrees with it, but for those knobs."""
    amount: tuple[str, float] | None = None
    """The name and default of a number of its own."""
    involution: bool = False
    """Whether doing it twice does nothing."""


class Family(JaxEnvironment):
    """To subclass: a task with knobs and a menu, made `with_numbers`.

    Yours has `reset(key)` and `outcome(state, action) -> (state, reward, terminated)`. If its state is not
    what is observed, it has `observe(state)` and `restore(observation, extras)` too.
    """

    name: ClassVar[str]
    horizon: int
    observation_low: Any
    observation_high: Any
    action_low: Any
    action_high: Any
    changes: ClassVar[Mapping[str, Change]]
    """Its augmentations, by name."""
    words: ClassVar[Mapping[str, Mapping[str, float]]] = MappingProxyType({})
    limits: ClassVar[Mapping[str, tuple[float, float]]] = MappingProxyType({})
    measure: Any = "success"
    training: Any = TRAINING

    def __post_init__(self) -> None:
        for knob in self.words:
            if isinstance(word := getattr(self, knob), str):
                object.__setattr__(self, knob, number_of(self, knob, word))

    @property
    def perfect_return(self) -> float:
        """What no policy exceeds, where a member is measured by returns: a step earns at most 1."""
        return float(self.horizon)

    @property
    def menu(self) -> Mapping[str, Change]:
        """The augmentations of this member: a line has no rotations, for example."""
        return self.changes

    def reset(self, key: Key) -> State:
        """Draw the start of an episode."""
        raise NotImplementedError

    def outcome(self, state: State, action: Array) -> tuple[State, Array, Array]:
        """The next state, the reward and whether the task terminated."""
        raise NotImplementedError

    def observe(self, state: State) -> Array:
        return state

    def restore(self, observation: Array, extras: Mapping[str, Array]) -> State:
        """The state that looks like this."""
        del extras
        return observation

    def step(self, key: Key, state: State, action: Array) -> tuple[State, Array, Array]:
        del key  # deterministic
        return self.outcome(state, action)

    def succeeded(self, transition: Transition) -> Array:
        return transition.terminated


def unchanged(task: Any, key: Key, transition: Transition, amount: Any) -> Transition:
    """Nothing new: copies of what was observed."""
    del task, key, amount
    return transition


def blurred(task: Any, key: Key, transition: Transition, scale: Any) -> Transition:
    """Normal noise on both observations: neither dynamics nor reward agree with it."""
    del task
    noise = scale * jax.random.normal(key, (2, *transition.observation.shape))
    return transition._replace(
        observation=transition.observation + noise[0],
        next_observation=transition.next_observation + noise[1],
    )


def relabelled(task: Any, key: Key, transition: Transition, amount: Any) -> Transition:
    """Set another goal, as the task sets them."""
    del amount
    return task.with_goal(transition, task.draw_goal(key))


def relabelled_near(task: Any, key: Key, transition: Transition, p: Any) -> Transition:
    """Set a goal that this step reaches with probability p; else as the task sets them."""
    coin_key, near_key, goal_key = jax.random.split(key, 3)
    near, drawn = task.goal_reached(near_key, transition), task.draw_goal(goal_key)
    return task.with_goal(transition, jnp.where(jax.random.bernoulli(coin_key, p), near, drawn))


IDENTITY = Change(unchanged, "Repeat what was observed.", "nothing")
NOISE = Change(
    blurred, "Add normal noise to both observations.", "errors", exact=False, amount=("scale", 0.1)
)
RELABEL = Change(relabelled, "Set another goal of the task's own.", "goals, little reward")
RELABEL_NEAR = Change(
    relabelled_near,
    "Set a goal that is reached with probability p.",
    "reward, little coverage",
    amount=("p", 0.5),
)


def computed(task: Any, transition: Transition, observation: Array) -> Transition:
    """The transition from another observation under the same action: the task says what happens."""
    following, reward, terminated = task.outcome(task.restore(observation, {}), transition.action)
    return transition._replace(
        observation=observation,
        reward=reward,
        next_observation=task.observe(following),
        terminated=terminated,
    )


def reaching_reward(kind: Any, reached: Array, before: Array, after: Array, stride: Any) -> Array:
    """The reward for coming from one distance of the goal to another.

    Sparse: -1 a step, 0 in the goal. Dense: minus the distance. Shaped: sparse, plus 1 for a whole stride
    towards the goal.
    """
    sparse = jnp.where(reached, 0.0, -1.0)
    return jnp.where(kind < 0.5, sparse, jnp.where(kind < 1.5, -after, sparse + (before - after) / stride))


def upright_reward(kind: Any, cosine: Array) -> Array:
    """The reward for a pendulum: its height, from 0 to 1; sparse: 1 near the top."""
    return jnp.where(kind < 0.5, jnp.where(cosine > np.cos(NEAR), 1.0, 0.0), 0.5 * (1 + cosine))


def within(key: Key, size: int, centre: Any, spread: Any) -> Array:
    """A uniform point of a cube around a centre, as far as it lies in [-1, 1]."""
    return jnp.clip(centre + spread * jax.random.uniform(key, (size,), minval=-1.0, maxval=1.0), -1.0, 1.0)


def in_ball(key: Key, size: int, radius: Any) -> Array:
    """A uniform point of a ball, a hair inside its rim."""
    direction_key, distance_key = jax.random.split(key)
    direction = jax.random.normal(direction_key, (size,))
    distance = 0.999 * radius * jax.random.uniform(distance_key) ** (1 / size)
    return distance * direction / jnp.linalg.norm(direction)


def quarter_turns(turns: Array, vector: Array) -> Array:
    """Turn x and y by quarter turns, by exchange and sign alone, so that nothing is rounded."""
    x, y = vector[0], vector[1]
    turned_x = jnp.select([turns == 0, turns == 1, turns == 2], [x, -y, -x], y)
    turned_y = jnp.select([turns == 0, turns == 1, turns == 2], [y, x, -y], -x)
    return vector.at[0].set(turned_x).at[1].set(turned_y)


def flipped(axis: int, vector: Array) -> Array:
    """Mirror a vector along an axis."""
    return vector.at[axis].multiply(-1)


def table(names: Any, unit: str = "") -> Any:
    """What each observed number is, for the verifier."""
    from augury.envs.mujoco.quantities import Quantity

    return tuple(Quantity("scalar", index, "", name, unit) for index, name in enumerate(names))
