"""What the verifier asks of a simulator, and what simulators of our own tasks share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
import numpy.typing as npt

from augury.envs import HostEngine
from augury.envs.mujoco.physics import Physics
from augury.envs.mujoco.terms import Quantity
from augury.envs.mujoco.vector import Moment, Outcome, Start, Task
from augury.transition import Observation, Transition
from augury.verify.observations import taken

Rows = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Policy = Callable[[Any], npt.ArrayLike]
"""Actions for a batch of observations."""

COLLECTING = 100
"""Environments in which transitions are collected side by side."""


class Answer(NamedTuple):
    """What the simulator says comes next."""

    next_observation: Observation
    reward: Rows
    terminated: Flags
    extras: dict[str, npt.NDArray[Any]]
    observation: Observation | None = None
    """What is seen where it was put: for simulators that are put there by extras, which know more."""


class Simulator(Protocol):
    """What the verifier asks of an environment."""

    name: str
    table: tuple[Quantity, ...]
    """What each observed number is; of a dict, each number of its entries side by side."""
    single_precision: bool
    """Whether it computes, or shows what it computed, with 32 bits."""

    def collect(self, samples: int, policy: Policy | None, seed: int) -> Transition:
        """Transitions under random actions, or a policy's; in rows."""

    def ask(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        """Restore every row, step, and look."""

    def in_contact(self, transition: Transition) -> Flags | None:
        """Which transitions begin or end touching something; None where that means nothing."""


def played(
    engine: HostEngine,
    rounds: int,
    act: Callable[[Observation], Rows],
    seed: Any,
    *,
    extras: Sequence[str] = (),
    begins: Callable[[], dict[str, Rows]] = dict,
) -> list[Transition]:
    """A transition of every environment in each round, with these extras of a step's infos.

    `begins` is asked for more of them before every step.
    """
    observation, _ = engine.reset(seed=seed)
    rounds_played = []
    for _ in range(rounds):
        action = act(observation)
        before = begins()
        following, reward, terminated, truncated, infos = engine.step(action)
        end = infos.get("final_obs", following)
        named = before | {name: infos[name] for name in extras}
        rounds_played.append(
            rows(taken(observation), action, reward, taken(end), terminated, truncated, named)
        )
        observation = following
    return rounds_played


def one_step(task: Task, physics: Physics, start: Start, action: Rows) -> tuple[Moment, Moment, Outcome]:
    """Where a task of the vector engine begins, and what comes of an action there; all rows at once."""
    before = physics.start(start.qpos, start.qvel)
    begins = Moment.of(physics, before, start.goal)
    after = physics.advance(before, task.control(begins, action))
    ends = Moment.of(physics, after, start.goal)
    return begins, ends, task.outcome(begins, action, ends)


def rows(*fields: Any) -> Transition:
    """A transition of NumPy arrays."""
    return Transition(*fields)


def joined(parts: Sequence[Transition], samples: int | None = None) -> Transition:
    """One transition with `samples` rows, or all."""
    together: Transition = jax.tree.map(lambda *leaves: np.concatenate(leaves)[:samples], *parts)
    return together
