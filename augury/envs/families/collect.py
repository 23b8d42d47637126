"""A point collects coins, which are all alike.

| index, for k coins | quantity |
|---|---|
| 0, 1 | position x, y |
| 2 … 2k+1 | positions x, y of the coins |
| 2k+2 … | 1 for a coin that is still there, -1 for one that was collected |

An action is a share of the longest step, in [-1, 1]². The return is the share of the coins collected.
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
    ROUNDING,
    Change,
    Family,
    computed,
    flipped,
    in_ball,
    quarter_turns,
    table,
    within,
)
from augury.pytrees import static
from augury.transition import Array, Key, Transition

REWARDS: Mapping[str, float] = MappingProxyType({"sparse": 0.0, "dense": 1.0})


class Parts(NamedTuple):
    """An observation, taken apart."""

    position: Array
    coins: Array
    """In rows."""
    left: Array
    """Above 0 for coins that are still there."""


def permuted(task: Collect, key: Key, transition: Transition, amount: Any) -> Transition:
    """Exchange coins."""
    del amount
    order = jax.random.permutation(key, task.coins)

    def whole(observation: Array) -> Array:
        position, coins, left = task.parts(observation)
        return task.joined(Parts(position, coins[order], left[order]))

    return transition._replace(
        observation=whole(transition.observation), next_observation=whole(transition.next_observation)
    )


def mapped(task: Collect, transition: Transition, change: Callable[[Array], Array]) -> Transition:
    """The transition with every vector changed in the same way."""

    def whole(observation: Array) -> Array:
        position, coins, left = task.parts(observation)
        return task.joined(Parts(change(position), jax.vmap(change)(coins), left))

    return transition._replace(
        observation=whole(transition.observation),
        action=change(transition.action),
        next_observation=whole(transition.next_observation),
    )


def reflected(task: Collect, key: Key, transition: Transition, amount: Any, *, axis: int) -> Transition:
    """Mirror everything along an axis."""
    del key, amount
    return mapped(task, transition, partial(flipped, axis))


def rotated(task: Collect, key: Key, transition: Transition, amount: Any) -> Transition:
    """Turn everything by 90, 180 or 270 degrees."""
    del amount
    return mapped(task, transition, partial(quarter_turns, jax.random.randint(key, (), 1, 4)))


def moved(task: Collect, key: Key, transition: Transition, amount: Any) -> Transition:
    """Put the agent anywhere; coins and action stay."""
    del amount
    here = task.parts(transition.observation)
    return computed(
        task,
        transition,
        task.joined(here._replace(position=within(key, 2, 0.0, 1.0).astype(here.left.dtype))),
    )


def relabelled(task: Collect, key: Key, transition: Transition, amount: Any) -> Transition:
    """Put all coins anywhere."""
    del amount
    here = task.parts(transition.observation)
    return computed(task, transition, task.joined(here._replace(coins=task.draw_coins(key))))


def relabelled_near(task: Collect, key: Key, transition: Transition, p: Any) -> Transition:
    """Put the first coin where this step collects it, with probability p."""
    coin_key, near_key = jax.random.split(key)
    here = task.parts(transition.observation)
    arrived = task.parts(transition.next_observation).position
    near = jnp.clip(arrived + in_ball(near_key, 2, task.radius), -1.0, 1.0)
    there = here._replace(coins=here.coins.at[0].set(near), left=here.left.at[0].set(1.0))
    chosen = jnp.where(jax.random.bernoulli(coin_key, p), task.joined(there), transition.observation)
    return computed(task, transition, chosen)


@with_numbers
class Collect(Family):
    """Collect all coins, which ends the episode. Its state is its observation."""

    wind: float = 0.0
    """A push along x that the agent does not make: it breaks reflection along x, and rotations."""
    reward: float = REWARDS["sparse"]
    """sparse: for each coin its share of 1; dense: less a twentieth of the distance to the nearest coin."""
    coin_spread: float = 1.0
    """Half the width of where coins lie, around the middle."""
    start_spread: float = 1.0
    """The same for starts."""
    radius: float = 0.25
    """Within which a coin is collected."""
    speed: float = 0.15
    """The longest step along an axis."""
    coins: int = static(default=2)
    """How many."""
    horizon: int = static(default=50)
    """Steps of an episode, at most."""

    name = "family/collect"
    measure = "returns"
    changes = MappingProxyType(
        {
            "identity": IDENTITY,
            "permute": Change(
                permuted, "Exchange objects that are alike.", "coverage, unless starts cover it"
            ),
            "reflect": Change(
                partial(reflected, axis=0), "Mirror along x.", "coverage", ("wind",), involution=True
            ),
            "reflect-y": Change(partial(reflected, axis=1), "Mirror along y.", "coverage", involution=True),
            "rotate": Change(rotated, "Turn by quarter turns.", "coverage", ("wind",)),
            "move-agent": Change(moved, "Put the agent anywhere.", "coverage, little reward"),
            "relabel": Change(relabelled, "Set another goal of the task's own.", "goals, little reward"),
            "relabel-near": Change(
                relabelled_near,
                "Set a goal that is reached with probability p.",
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
            "reward": (0, 1),
            "coin_spread": (0, 1),
            "start_spread": (0, 1),
            "radius": (0.001, 1),
            "speed": (0.001, 1),
            "coins": (1, 20),
            "horizon": (1, 10_000),
        }
    )
    action_low = -np.ones(2, np.float32)
    action_high = np.ones(2, np.float32)

    @property
    def observation_low(self) -> npt.NDArray[np.float32]:
        return -self.observation_high

    @property
    def observation_high(self) -> npt.NDArray[np.float32]:
        return np.ones(2 + 3 * self.coins, np.float32)

    @property
    def perfect_return(self) -> float:
        """Every coin is a share of 1."""
        return 1.0

    @property
    def menu(self) -> Mapping[str, Change]:
        lacking = "permute" if self.coins < 2 else ""
        return {name: change for name, change in self.changes.items() if name != lacking}

    @property
    def table(self) -> Any:
        """What each observed number is."""
        coins = [f"coin {number} {axis}" for number in range(self.coins) for axis in "xy"]
        left = [f"coin {number} is there" for number in range(self.coins)]
        return table(["position x", "position y", *coins, *left])

    def parts(self, observation: Array) -> Parts:
        """An observation, taken apart."""
        end = 2 + 2 * self.coins
        return Parts(observation[:2], observation[2:end].reshape(-1, 2), observation[end:])

    def joined(self, parts: Parts) -> Array:
        """The observation again."""
        return jnp.concatenate([parts.position, parts.coins.reshape(-1), parts.left])

    def draw_coins(self, key: Key) -> Array:
        """Coins as the task sets them."""
        return within(key, 2 * self.coins, 0.0, self.coin_spread).reshape(-1, 2)

    def reset(self, key: Key) -> Array:
        start_key, coin_key = jax.random.split(key)
        start = within(start_key, 2, 0.0, self.start_spread)
        return self.joined(Parts(start, self.draw_coins(coin_key), jnp.ones(self.coins)))

    def outcome(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        position, coins, left = self.parts(state)
        following = jnp.clip(position + self.speed * action.at[0].add(self.wind), -1.0, 1.0)
        distances = jnp.linalg.norm(coins - following, axis=1)
        collected = (left > 0) & (distances < self.radius)
        nearest = jnp.where(left > 0, distances, jnp.inf).min()
        nearest = jnp.where(jnp.isfinite(nearest), nearest, 0.0)
        share = collected.mean(dtype=state.dtype)
        reward = share - jnp.where(self.reward < 0.5, 0.0, 0.05 * nearest)
        left = jnp.where(collected, -1.0, left)
        return self.joined(Parts(following, coins, left)), reward, (left < 0).all()

    def is_possible(self, observation: Any) -> Any:
        """Whether agent and coins lie between the walls."""
        return (abs(observation) <= 1 + ROUNDING).all(-1)
