"""A program's steps for the agents of one device at once.

`each` maps a function over agents, but not over their rings: one write stores a round of every agent, in
place, and learning reads rows through a `Part`. So a call costs the same whatever the rings' size, and no
copy of them is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from augury.agents import Learner
from augury.augmentations import Augmentation
from augury.fleet.program.base import Agent, Program, Settings
from augury.replay import Buffers
from augury.replay.ring import LISTS, RINGS
from augury.transition import Array

Each = Callable[..., Callable[..., Any]]
"""Maps a function of one agent over many, whose arguments have a leading axis over agents."""


class Part:
    """One agent's part of an array that holds many agents', read without being cut out of it."""

    def __init__(self, whole: Array, agent: Array) -> None:
        self.whole, self.agent = whole, agent

    @property
    def shape(self) -> tuple[int, ...]:
        return self.whole.shape[1:]

    def __getitem__(self, places: Any) -> Array:
        places = places if isinstance(places, tuple) else (places,)
        return self.whole[(self.agent, *places)]


def part(buffers: Buffers, agent: Array) -> Buffers:
    """One agent's buffers, of many agents'."""

    def own(path: Any, leaf: Array) -> Any:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        return Part(leaf, agent) if name in RINGS | LISTS else leaf[agent]

    return jax.tree_util.tree_map_with_path(own, buffers)


def stored(
    program: Program, each: Each, buffers: Buffers, settings: Settings, rows: Array, round_: Array
) -> Buffers:
    """Buffers of every agent with a round added to each: rows (agents, environments, steps, width)."""
    added = round_ * program.collect
    plain = replace(program.replay, copies=0)
    buffers = jax.vmap(lambda own, rows, ratio: plain.add(own, rows, added, ratio, None))(
        buffers, rows, settings.ratio
    )
    if not program.replay.copies:
        return buffers
    # Copies are made one agent at a time, as they are when sampled: on a page that holds just the round.
    page = replace(program.replay, capacity=program.collect, fractional=False)

    def copies(key: Array, rows: Array, ratio: Array, augmentation: Augmentation) -> Array:
        blank = page.init(jax.random.wrap_key_data(key))
        return page.add(blank, rows, added, ratio, augmentation).augmented

    made = each(copies)(buffers.key, rows, settings.ratio, settings.augmentation)
    start = (0, 0, added % program.replay.capacity, 0, 0)
    return buffers._replace(augmented=jax.lax.dynamic_update_slice(buffers.augmented, made, start))


def learned(
    program: Program, each: Each, learners: Learner, buffers: Buffers, settings: Settings, round_: Array
) -> Learner:
    """Learners of every agent after the updates of a round, if any are due."""

    def own(agent: Array, learner: Learner, settings: Settings) -> Learner:
        _, key = program.keys(settings, round_)
        return program.learn(key, learner, part(buffers, agent), settings, round_)

    return jax.lax.cond(
        round_ >= program.first_update_round,
        lambda learners: each(own)(jnp.arange(len(buffers.observed)), learners, settings),
        lambda learners: learners,
        learners,
    )


def looked_at(program: Program, each: Each, agents: Agent, settings: Settings, rounds: Array) -> Any:
    """The fields of `Measured` that do not come from episodes, of every agent, by name."""

    def look(agent: Array, learner: Learner, settings: Settings) -> Any:
        _, key = program.evaluation_keys(settings, rounds)
        return program.look(key, learner, part(agents.buffers, agent), settings, rounds)

    return each(look)(jnp.arange(len(agents.buffers.observed)), agents.learner, settings)
