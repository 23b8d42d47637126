"""From a resolved arm to what is compiled: its program, and the numbers in which its agents may differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from augury import augmentations, envs
from augury.agents import ALGORITHMS, Hyperparameters
from augury.augmentations import Augmentation
from augury.augmentations.base import needs_of
from augury.augmentations.goals import LATER_GOALS
from augury.envs import Environment
from augury.envs.actions import action_bounds, blank_action
from augury.envs.base import numbers_of, without_numbers
from augury.fleet.arm import Arm
from augury.fleet.program.base import Settings, blank_observation
from augury.fleet.program.in_jax import JaxProgram
from augury.fleet.program.with_host import HostProgram
from augury.replay import Layout, Replay
from augury.replay.coverage import Grid
from augury.transition import Transition, seen


def augmentation_of(arm: Arm) -> Augmentation | None:
    """The augmentation itself; none where m = 0 leaves nothing augmented."""
    if arm.ratio == 0 or arm.augmentation is None:
        return None
    return augmentations.make(arm.augmentation, arm.environment)


def program_of(arm: Arm) -> JaxProgram | HostProgram:
    """Everything that fixes shapes. Arms with equal programs train in one fleet."""
    assert arm.ratio is not None, "resolve the arm first"
    assert arm.update_ratio is not None, "resolve the arm first"
    environment: Any = envs.make(arm.environment)
    function = augmentation_of(arm)
    augmented = function is not None
    needs = needs_of(function) if function is not None else ()
    extras = tuple(name for name in needs if name not in LATER_GOALS)
    with_host = partial(HostProgram, extras=extras)
    kinds: dict[str, Any] = {"program": JaxProgram, "device": JaxProgram, "host": with_host}
    program: JaxProgram | HostProgram = kinds[environment.runs_in](
        environment=without_numbers(environment),
        evaluation_environment=without_numbers(envs.make(arm.evaluation_environment or arm.environment)),
        algorithm=ALGORITHMS[arm.algorithm](actions=_actions(environment), hidden=arm.hidden),
        replay=Replay(
            layout=Layout.of(example(environment, extras)),
            environments=round(arm.policy_data * arm.environments),
            capacity=arm.collect * math.ceil(min(arm.buffer_size, arm.steps) / arm.round_steps),
            batch_size=round(arm.batch_size * arm.policy_data),
            update_ratio=arm.update_ratio if augmented else 0.0,
            copies=math.ceil(arm.ratio) if augmented and arm.storage == "eager" else 0,
            fractional=augmented and not math.isinf(arm.ratio) and arm.ratio % 1 > 0,
            later=tuple(name for name in LATER_GOALS if name in needs),
        ),
        grid=Grid.over(
            (seen(environment.observation_low), seen(environment.observation_high)),
            action_bounds(environment),
        ),
        counted=arm.environments,
        collect=arm.collect,
        updates=arm.updates * arm.environments,
        random_steps=arm.random_steps,
        evaluation_episodes=arm.evaluation_episodes,
    )
    return program


def settings_of(arm: Arm) -> Settings:
    """What may differ from agent to agent; agents are the leading axis."""

    def each(value: Any) -> Any:
        return np.full(arm.agents, value, np.float32)

    def repeated(leaf: Any) -> Any:
        return jnp.broadcast_to(jnp.asarray(leaf), (arm.agents, *jnp.shape(leaf)))

    def own(environment: Any) -> Any:
        return jax.tree.map(each, numbers_of(envs.make(environment)))

    return Settings(
        key=jax.vmap(jax.random.key)(np.array(arm.seeds, np.uint32)),
        hyper=Hyperparameters(*(each(getattr(arm, name)) for name in Hyperparameters._fields)),
        ratio=each(arm.ratio),
        augmentation=jax.tree.map(repeated, augmentation_of(arm)),
        environment=own(arm.environment),
        evaluation_environment=own(arm.evaluation_environment or arm.environment),
    )


def fleets_of(arms: Sequence[Arm]) -> list[list[int]]:
    """Group the arms (by their position) that can train together.

    They have one schedule and one program; or one simulation, where that is shared by several programs.
    """

    def together(arm: Arm) -> Any:
        program = program_of(arm)
        if program.environment.runs_in == "device":
            shared = (program.environment, program.evaluation_environment)
            return *shared, program.algorithm, program.collect, program.round_steps
        return _compiled(arm)

    return _grouped(arms, lambda arm: (together(arm), arm.rounds, tuple(arm.evaluation_rounds)))


def by_program(arms: Sequence[Arm]) -> list[list[int]]:
    """Group the arms (by their position) that share a program."""
    return _grouped(arms, _compiled)


def _compiled(arm: Arm) -> Any:
    """What is the same for arms that share a program."""
    return _shared(program_of(arm)), jax.tree.structure(augmentation_of(arm))


def _grouped(arms: Sequence[Arm], by: Callable[[Arm], Any]) -> list[list[int]]:
    groups: dict[Any, list[int]] = {}
    for position, arm in enumerate(arms):
        groups.setdefault(by(arm), []).append(position)
    return list(groups.values())


def shared_program(arms: Sequence[Arm]) -> JaxProgram | HostProgram:
    """The program of arms that train together: it grants extra copies where some arm's m is a fraction."""
    programs = [program_of(arm) for arm in arms]
    fractional = any(program.replay.fractional for program in programs)
    return replace(programs[0], replay=replace(programs[0].replay, fractional=fractional))


def _shared(program: JaxProgram | HostProgram) -> JaxProgram | HostProgram:
    """The program without the part in which arms of one fleet may differ."""
    return replace(program, replay=replace(program.replay, fractional=False))


def example(environment: Environment, extras: Sequence[str]) -> Transition:
    """What a transition of the environment looks like, with the extras that are stored."""
    observation = blank_observation(environment)
    action = jnp.asarray(blank_action(environment))
    number, no = jnp.float32(0), jnp.zeros((), bool)
    return Transition(observation, action, number, observation, no, no, dict.fromkeys(extras, number))


def _actions(environment: Environment) -> int:
    """How many actions an algorithm chooses from or, where they are continuous, how many numbers it gives."""
    return environment.action_count or len(environment.action_low)
