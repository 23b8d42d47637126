"""How often a random relabelling succeeds: the paper's table of probabilities, by sampling."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from augury import augmentations, envs
from augury.augmentations import Augmentation
from augury.augmentations.base import needs_of
from augury.envs import Environment
from augury.envs.goal2d import Goal2D
from augury.envs.panda.goals import PositionTask, task_of
from augury.errors import UserError
from augury.study.schema import Chance, ChanceStudy
from augury.transition import Key, Transition

_BLOCK = 250_000
"""Samples at a time, at most."""


class Measured(NamedTuple):
    """A row of the table, as measured."""

    chance: Chance
    measured: float
    error: float
    """Standard error."""
    confirmed: bool
    """Whether the paper's figure is right to the study's accuracy."""


def check(study: ChanceStudy, where: str) -> None:
    """Refuse what cannot be sampled. `where` is the file, which errors name."""
    for number, chance in enumerate(study.chances, 1):
        try:
            _made(chance)
        except UserError as error:
            raise UserError(f"{where}: in [[chances]] {number}, {error}") from None


def measure(study: ChanceStudy, seed: int = 0) -> list[Measured]:
    """Sample every row."""
    keys = jax.random.split(jax.random.key(seed), len(study.chances))
    return [_measure(chance, study, key) for chance, key in zip(study.chances, keys, strict=True)]


def _made(chance: Chance) -> tuple[Environment, Augmentation]:
    environment: Any = envs.make(chance.task)
    if task_of(chance.task) is None and not isinstance(environment, Goal2D):
        raise UserError(f"{chance.task} has no goals to relabel")
    augmentation = augmentations.make(chance.augmentation, chance.task)
    if needs := needs_of(augmentation):
        raise UserError(f"'{chance.augmentation}' looks at episodes ({', '.join(needs)}): no sample has one")
    return environment, augmentation


def _measure(chance: Chance, study: ChanceStudy, key: Key) -> Measured:
    environment, augmentation = _made(chance)
    blocks = math.ceil(study.samples / _BLOCK)
    each = math.ceil(study.samples / blocks)
    count = jax.jit(partial(_successes, environment, augmentation, each))
    share = sum(int(count(block)) for block in jax.random.split(key, blocks)) / (blocks * each)
    error = math.sqrt(share * (1 - share) / (blocks * each))
    confirmed = abs(share - chance.paper) <= study.within * chance.paper
    return Measured(chance, share, error, confirmed)


def _successes(environment: Environment, augmentation: Augmentation, samples: int, key: Key) -> Any:
    """How many of a block of transitions succeed after they were augmented."""

    def succeeds(key: Key) -> Any:
        first, second = jax.random.split(key)
        augmented = augmentation(second, _transition(environment, first))
        return environment.succeeded(augmented)

    return jax.vmap(succeeds)(jax.random.split(key, samples)).sum()


def _transition(environment: Any, key: Key) -> Transition:
    """A transition somewhere; of a Panda task one whose object lies where a goal might be."""
    start_key, action_key, step_key = jax.random.split(key, 3)
    low, high = jnp.asarray(environment.action_low), jnp.asarray(environment.action_high)
    action = jax.random.uniform(action_key, low.shape, minval=low, maxval=high)
    no = jnp.zeros((), bool)
    goals = task_of(environment.name)
    if goals is None:
        state = environment.reset(start_key)
        following, reward, terminated = environment.step(step_key, state, action)
        before, after = environment.observe(state), environment.observe(following)
        return Transition(before, action, reward, after, terminated, no, {})
    achieved = goals.goal(jax.random.uniform(start_key, (goals.draws,)))
    if isinstance(goals, PositionTask):
        achieved = achieved.at[2].set(goals.low[2])
    seen = {name: jnp.zeros_like(part) for name, part in environment.observation_low.items()}
    seen["achieved_goal"] = achieved
    return Transition(seen, action, jnp.float32(0), seen, no, no, {})
