"""Whole episodes of a policy without exploration, transition by transition, wherever its environment runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from augury.agents import Parameters
from augury.envs.checks import checked_engine
from augury.fleet.program.base import Settings
from augury.transition import Array, Key, Observation, Transition
from augury.verify.base import Played, rows

Flags = npt.NDArray[np.bool_]

MOST_EVALUATED = 6_400
"""Steps of all of a pilot's episodes together."""
FEWEST_EPISODES = 2

_PILOT = np.uint32(2**32 - 3)
"""Folded into an agent's key: episodes of their own, that no training and no evaluation has."""


def played(
    program: Any,
    settings: Settings,
    environment: Any,
    actor: Parameters,
    act: Callable[[Observation], npt.NDArray[Any]],
    *,
    episodes: int,
    most_steps: int,
    seed: int,
) -> Played:
    """So many episodes, one after the other; fewer, and not to their end, where they are long.

    `settings` are those of the agent alone.
    """
    episodes = int(np.clip(4 * most_steps // environment.horizon, min(FEWEST_EPISODES, episodes), episodes))
    if environment.runs_in == "host":
        rounds = _on_host(environment, act, episodes, most_steps, seed)
    else:
        rounds = _in_jax(program, settings, environment.horizon, actor, episodes, most_steps)
    return _one_after_the_other(rounds)


def _in_jax(
    program: Any, settings: Settings, horizon: int, actor: Parameters, episodes: int, most_steps: int
) -> list[Transition]:
    reset_key, step_key = jax.random.split(jax.random.fold_in(settings.key, _PILOT))
    states = _started(program, settings, jax.random.split(reset_key, episodes))
    rounds: list[Transition] = []
    running = np.ones(episodes, bool)
    for number in range(horizon):
        states, shown = _stepped(program, settings, actor, states, step_key, np.int32(number))
        truncated = np.full(episodes, number == horizon - 1)
        rounds.append(shown._replace(truncated=truncated & ~np.asarray(shown.terminated)))
        running &= ~np.asarray(shown.terminated)
        if not running.any() or number * episodes >= most_steps:
            break
    return jax.tree.map(np.asarray, rounds)


@partial(jax.jit, static_argnums=0)
def _started(program: Any, settings: Settings, keys: Key) -> Any:
    return jax.vmap(program.for_agent(settings).evaluation_environment.reset)(keys)


@partial(jax.jit, static_argnums=0)
def _stepped(
    program: Any, settings: Settings, actor: Parameters, states: Any, key: Key, number: Array
) -> tuple[Any, Transition]:
    environment = program.for_agent(settings).evaluation_environment
    observation = jax.vmap(environment.observe)(states)
    action = program.act(actor, observation)
    keys = jax.random.split(jax.random.fold_in(key, number), action.shape[0])
    states, reward, terminated = jax.vmap(environment.step)(keys, states, action)
    following = jax.vmap(environment.observe)(states)
    return states, Transition(
        observation, action, reward, following, terminated, jnp.zeros_like(terminated), {}
    )


def _on_host(
    environment: Any, act: Callable[..., Any], episodes: int, most_steps: int, seed: int
) -> list[Transition]:
    """With the extras that the environment has; engines stand still where an episode is over."""
    seeds = [
        int(np.random.SeedSequence(seed, spawn_key=(int(_PILOT), row)).generate_state(1, np.uint64)[0] >> 1)
        for row in range(episodes)
    ]
    rounds: list[Transition] = []
    running = np.ones(episodes, bool)
    with closing(checked_engine(environment.vector(episodes, autoreset=False), environment)) as engine:
        observation, _ = engine.reset(seed=seeds)
        while running.any() and len(rounds) * episodes < most_steps:
            before = _in_single_precision(observation)
            action = act(before)
            observation, reward, terminated, truncated, infos = engine.step(action)
            extras = {name: np.array(infos[name], np.float32) for name in environment.extras if name in infos}
            outcome = (np.array(reward, np.float32), _in_single_precision(observation))
            flags = (np.array(terminated), np.array(truncated) & ~np.asarray(terminated))
            rounds.append(rows(before, action, *outcome, *flags, extras))
            running &= ~(flags[0] | flags[1])
    return rounds


def _in_single_precision(observation: Observation) -> Observation:
    """As buffers hold it; a copy, since an engine may write over its own."""
    return jax.tree.map(lambda part: np.array(part, np.float32), observation)


def _one_after_the_other(rounds: list[Transition]) -> Played:
    """Transitions of episodes side by side, without what came after an episode's end."""
    over = np.stack([one.terminated | one.truncated for one in rounds])
    lived = np.cumsum(over, 0) - over == 0
    episode, step = np.nonzero(lived.T)
    length = lived.sum(0)
    transition: Transition = jax.tree.map(lambda *leaves: np.stack(leaves)[step, episode], *rounds)
    return Played(transition, episode, length[episode] - 1 - step)
