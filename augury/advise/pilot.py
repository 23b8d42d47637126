"""A pilot: a few thousand transitions of a short run without augmentation, from which signals are measured.

    train one agent for `steps`, as the arm would, without augmentation
    observed  ← its buffer, in the order of time
    evaluated ← a few episodes of its policy without exploration
    critic    ← what it believes actions are worth by then

The run goes through the fleet's own trainer, so any environment that can be trained on has a pilot. Its
settings are the environment's defaults; only the random phase is shortened, so that there is a policy too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from augury import envs
from augury.advise.playing import played
from augury.agents import Learner
from augury.agents.networks import apply
from augury.augmentations import augmentation
from augury.envs import Environment
from augury.envs.actions import action_bounds
from augury.errors import UserError, nearest
from augury.fleet.arm import Arm
from augury.fleet.building import program_of, settings_of
from augury.fleet.checks import resolved
from augury.fleet.program.base import Agent, Program
from augury.fleet.trainers import trainer_for
from augury.pytrees import static
from augury.transition import Array, Key, Observation, Transition, seen
from augury.verify.base import Bounds, Played

Rows = npt.NDArray[np.float64]
Values = Callable[[Observation, Any], Rows]
"""What actions are worth, row by row: Q(s, a)."""
Policy = Callable[[Observation], npt.NDArray[Any]]
"""What a policy does without exploration, row by row, in the environment's units."""

MOST_STEPS = 4_000
FEWEST_STEPS = 200
OF_ALL_STEPS = 0.25
"""A pilot's share of the steps that it advises on, at most."""
RANDOM_SHARE = 0.5
"""Of a pilot's steps, at most: the rest follows a policy that learns."""
PARTS = 10
"""In which a pilot trains, so that one sees how far it is."""
BLOCK = 1024
"""Networks are asked about so many rows at a time, so that they are compiled for one shape."""


@dataclass(frozen=True, eq=False)
class Pilot:
    """What a short run without augmentation showed."""

    arm: Arm
    """The run, every setting filled in."""
    environment: Environment
    observed: Played
    """Every transition of its buffer; those of one environment are in a row, in the order of time."""
    finished: npt.NDArray[np.bool_]
    """Which of these are of an episode that the pilot saw to its end."""
    evaluated: Played
    """Transitions of a few episodes of the final policy, without exploration."""
    critic: Values
    """The final critics' mean. Actions are in the environment's units."""
    policy: Policy

    @property
    def observation_bounds(self) -> Bounds:
        """Of what the policy sees, as one vector."""
        low, high = self.environment.observation_low, self.environment.observation_high
        return Bounds(np.asarray(seen(low), float), np.asarray(seen(high), float))

    @property
    def action_bounds(self) -> Bounds:
        """Of an action as the environment takes it."""
        return Bounds(*(np.asarray(end, float) for end in action_bounds(self.environment)))

    @property
    def replay_ratio(self) -> float:
        """Updates per observed transition, once updates have begun."""
        return self.arm.updates / self.arm.collect


@augmentation
class _Carry:
    """Nothing changes; but what an augmentation needs is stored."""

    needs: tuple[str, ...] = static()

    def __call__(self, key: Key, transition: Transition) -> Transition:
        del key
        return transition


def pilot_steps_for(steps: int) -> int:
    """How long a pilot is by default, for a budget of so many steps."""
    return max(FEWEST_STEPS, min(MOST_STEPS, int(OF_ALL_STEPS * steps)))


def gather(
    environment: str | Environment,
    *,
    steps: int = MOST_STEPS,
    seed: int = 0,
    episodes: int = 64,
    watch: Callable[[], None] = lambda: None,
    **settings: Any,
) -> Pilot:
    """A pilot of this many transitions, and of so many evaluation episodes, fewer where these are long.

    Further settings are an arm's: `gather("goal2d", algorithm="sac")`. The same seed gives the same pilot.
    `watch` is called whenever another tenth of it is done.
    """
    for name, value, least in (("steps", steps, FEWEST_STEPS), ("episodes", episodes, 1)):
        if value < least:
            raise UserError(f"{name} of a pilot must be at least {least}, not {value}")
    arm = _arm(environment, steps, seed, settings)
    program = program_of(arm)
    with closing(trainer_for([arm])) as trainer:
        agents = trainer.init()
        for part in range(PARTS):
            first, after = (arm.rounds * end // PARTS for end in (part, part + 1))
            if after > first:
                agents = trainer.advance(agents, first, after - first)
            watch()
    own: Agent = agents if isinstance(agents, Agent) else agents[0]  # programs that share a simulation
    learner = jax.tree.map(lambda leaf: leaf[0], own.learner)
    if not all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(learner)):
        raise UserError(f"the pilot diverged on {program.environment.name}: lower its learning_rate")

    def act(observation: Observation) -> npt.NDArray[Any]:
        return _in_blocks(partial(_acted, program, learner.actor), observation)

    def critic(observation: Observation, action: Any) -> Rows:
        return _in_blocks(partial(_valued, program, learner), observation, action).astype(float)

    where: Any = envs.make(arm.environment)
    one = jax.tree.map(lambda leaf: leaf[0], settings_of(arm))
    observed, finished = _in_time(program, np.asarray(own.buffers.observed)[0])
    evaluated = played(program, one, where, learner.actor, act, episodes, seed)
    return Pilot(arm, where, observed, finished, evaluated, critic, act)


def _arm(environment: Any, steps: int, seed: int, settings: dict[str, Any]) -> Arm:
    """The arm of a pilot. It stores all extras that the environment has, for whoever will need them."""
    known = {field.name for field in fields(Arm)} - {"environment", "agents", "augmentation"}
    for name in settings:
        if name not in known:
            raise UserError(f"a pilot has no setting '{name}'{nearest(name, known)}")
    asked = Arm(environment=environment, agents=1, seed=seed, **settings)
    whole = resolved(replace(asked, steps=max(steps, 2**30)))
    arm = replace(
        asked,
        steps=steps,
        random_steps=settings.get("random_steps", min(whole.random_steps, int(RANDOM_SHARE * steps))),
        buffer_size=steps,
    )
    where: Any = envs.make(environment)
    if where.runs_in == "host" and where.extras:
        arm = replace(arm, augmentation=_Carry(tuple(where.extras)), ratio=1, update_ratio=0)
    return resolved(arm)


def _in_time(program: Program, rings: Any) -> tuple[Played, npt.NDArray[np.bool_]]:
    """The transitions of rings that are just full: (environments, steps, width)."""
    transition: Transition = jax.tree.map(
        np.asarray, program.replay.layout.unpack(rings.reshape(-1, rings.shape[-1]))
    )
    over: npt.NDArray[np.bool_] = np.asarray(transition.terminated | transition.truncated)
    last = over.copy()
    last[rings.shape[1] - 1 :: rings.shape[1]] = True  # where an environment's transitions end
    return numbered(transition, last), over[_end_of(last)]


def numbered(transition: Transition, last: npt.NDArray[np.bool_]) -> Played:
    """Transitions in the order of time, of which these are the last of their episodes."""
    episode: npt.NDArray[np.intp] = np.cumsum(last) - last
    return Played(transition, episode, _end_of(last) - np.arange(len(last)))


def _end_of(last: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Where the episode of each transition ends."""
    ends = np.flatnonzero(last)
    return ends[np.searchsorted(ends, np.arange(len(last)))]


@partial(jax.jit, static_argnums=0)
def _acted(program: Program, actor: Any, observation: Observation) -> Array:
    return program.act(actor, observation)


@partial(jax.jit, static_argnums=0)
def _valued(program: Program, learner: Learner, observation: Observation, action: Array) -> Array:
    algorithm: Any = program.algorithm
    if algorithm.discrete:
        values = apply(algorithm.values, learner.actor, observation)
        return jnp.take_along_axis(values, action[:, None], 1)[:, 0]
    return apply(algorithm.critic, learner.critic, observation, program.scale.to_unit(action)).mean(0)


def _in_blocks(function: Callable[..., Array], *inputs: Any) -> npt.NDArray[Any]:
    """A function of rows, asked about a block of them at a time; the last row fills up the last block."""
    count = len(jax.tree.leaves(inputs)[0])
    parts = []
    for first in range(0, count, BLOCK):
        rows = np.minimum(np.arange(first, first + BLOCK), count - 1)
        parts.append(np.asarray(function(*jax.tree.map(lambda leaf: leaf[rows], inputs))))  # noqa: B023
    return np.concatenate(parts)[:count]
