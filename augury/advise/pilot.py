"""A pilot: a few thousand transitions of a short run without augmentation, from which signals are measured.

    train four agents for `steps`, as the arm would, without augmentation
    observed  ← the buffer of the first, in the order of time
    evaluated ← a few episodes of each one's policy, without exploration
    critic    ← what the first believes actions are worth by then

One policy goes where its own data is. Four of them show where a policy of this task may go: a cart that the
first drives to the left, another drives to the right.

The run goes through the fleet's own trainer, so any environment that can be trained on has a pilot. Its
settings are the environment's defaults; only the random phase is shortened, so that there is a policy too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from augury import envs
from augury.advise.playing import MOST_EVALUATED, played
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
POLICIES = 4
"""Agents of a pilot; the first one's transitions are looked at, and all of them are evaluated."""
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
    """Transitions of a few episodes of the agents' final policies, without exploration, agent by agent."""
    critic: Values
    """The mean of the first agent's final critics. Actions are in the environment's units."""
    policy: Policy
    """The first agent's."""

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
    """A pilot of so many transitions, and of so many evaluation episodes in all, fewer where these are long.

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
    trained = jax.tree.map(np.asarray, own.learner)  # agents of several devices meet on the host
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(trained)):
        raise UserError(f"the pilot diverged on {program.environment.name}: lower its learning_rate")
    learners = [_of_agent(trained, number) for number in range(POLICIES)]
    policies = [partial(_in_blocks, partial(_acted, program, learner.actor)) for learner in learners]

    def critic(observation: Observation, action: Any) -> Rows:
        return _in_blocks(partial(_valued, program, learners[0]), observation, action).astype(float)

    where: Any = envs.make(arm.environment)
    observed, finished = _in_time(program, np.asarray(own.buffers.observed)[0])
    of_agents = settings_of(arm)
    shown = [
        played(
            program,
            _of_agent(of_agents, number),
            where,
            learners[number].actor,
            policies[number],
            episodes=-(-episodes // POLICIES),
            most_steps=MOST_EVALUATED // POLICIES,
            seed=seed + number,
        )
        for number in range(POLICIES)
    ]
    return Pilot(arm, where, observed, finished, in_a_row(shown), critic, policies[0])


def _arm(environment: Any, steps: int, seed: int, settings: dict[str, Any]) -> Arm:
    """The arm of a pilot. It stores all extras that the environment has, for whoever will need them."""
    known = {field.name for field in fields(Arm)} - {"environment", "agents", "augmentation"}
    for name in settings:
        if name not in known:
            raise UserError(f"a pilot has no setting '{name}'{nearest(name, known)}")
    asked = Arm(environment=environment, agents=POLICIES, seed=seed, **settings)
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


def in_a_row(parts: Sequence[Played]) -> Played:
    """One after the other; their episodes are numbered on."""
    counts = [int(part.episode.max()) + 1 for part in parts]
    firsts = np.cumsum([0, *counts[:-1]])
    together: Played = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    return together._replace(
        episode=np.concatenate([part.episode + first for part, first in zip(parts, firsts, strict=True)])
    )


def _of_agent(tree: Any, number: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[number], tree)


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
