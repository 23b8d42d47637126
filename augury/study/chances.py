"""How often a random relabelling succeeds: the paper's table of probabilities, by sampling."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from augury import augmentations, envs
from augury.augmentations import Augmentation
from augury.augmentations.base import needs_of
from augury.envs import Environment
from augury.errors import UserError
from augury.study.schema import Chance, ChanceStudy
from augury.transition import Array, Key, Transition

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
    if environment.measure != "success":
        raise UserError(f"{chance.task} has no goals to relabel: it is measured by its {environment.measure}")
    _sampler(environment)
    augmentation = augmentations.make(chance.augmentation, chance.task)
    if needs := needs_of(augmentation):
        raise UserError(f"'{chance.augmentation}' reads episodes ({', '.join(needs)}), and a sample has none")
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
    sample = _sampler(environment)

    def succeeds(key: Key) -> Any:
        first, second = jax.random.split(key)
        augmented = augmentation(second, sample(first))
        return environment.succeeded(augmented)

    return jax.vmap(succeeds)(jax.random.split(key, samples)).sum()


def _sampler(environment: Any) -> Callable[[Key], Transition]:
    """Transitions to relabel: the environment's `sample_transition`, else, in JAX, a random first step."""
    if hasattr(environment, "sample_transition"):
        sample: Callable[[Key], Transition] = environment.sample_transition
        return sample
    if environment.runs_in == "host":
        raise UserError(
            f"{environment.name} has no transitions to relabel: give it a method sample_transition(key) that "
            "returns one, in JAX"
        )

    def step(key: Key) -> Transition:
        start_key, action_key, step_key = jax.random.split(key, 3)
        action = _random_action(action_key, environment)
        state = environment.reset(start_key)
        following, reward, terminated = environment.step(step_key, state, action)
        before, after = environment.observe(state), environment.observe(following)
        return Transition(before, action, reward, after, terminated, jnp.zeros((), bool), {})

    return step


def _random_action(key: Key, environment: Any) -> Array:
    if environment.action_count is not None:
        return jax.random.randint(key, (), 0, environment.action_count, jnp.int32)
    low, high = jnp.asarray(environment.action_low), jnp.asarray(environment.action_high)
    return jax.random.uniform(key, low.shape, minval=low, maxval=high)
