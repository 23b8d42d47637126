"""The policies of a finished run: to act with, and to evaluate elsewhere, such as in another simulator."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from augury import envs
from augury.agents import Parameters
from augury.errors import UserError
from augury.fleet.arm import Arm
from augury.fleet.building import program_of
from augury.fleet.checks import check_fits, resolved
from augury.fleet.program.base import Program, blank_observation
from augury.fleet.trainers import trainer_for
from augury.runs import arrays as files
from augury.runs import results
from augury.runs.arrays import Arrays, DamagedError
from augury.transition import Observation

Numbers = npt.NDArray[np.float32]


class Played(NamedTuple):
    """Results of every agent's episodes without exploration."""

    success: Numbers
    """Share of the episodes that succeeded."""
    returns: Numbers
    """Mean undiscounted return."""


@dataclass(frozen=True)
class Policies:
    """The policies of a finished run's agents."""

    asked: dict[str, Any]
    """The settings of their run."""
    actors: Parameters
    """Their parameters, as NumPy arrays; agents are the leading axis."""

    @property
    def environment(self) -> str:
        """Where they were trained."""
        return str(self.asked["environment"])

    @property
    def seeds(self) -> list[int]:
        """Of every agent."""
        return self._arm().seeds

    def act(self, agent: int, observation: Observation) -> Numbers:
        """What an agent does, in its environment's units: one action, or one for every row."""
        expected = jax.tree.map(np.shape, self._program.environment.observation_low)
        if jax.tree.map(lambda part: np.shape(part)[-1:], observation) != expected:
            raise UserError(f"observations of {self.environment} have shape {expected}")
        actor = jax.tree.map(lambda leaf: leaf[agent], self.actors)
        shown = jax.tree.map(lambda part: np.asarray(part, np.float32), observation)
        return np.asarray(self._act(actor, shown))

    def play(self, environment: Any = None, episodes: int = 80, seed: int = 0) -> Played:
        """Evaluate every agent, by default where it was trained. The seed decides how episodes start."""
        for name, value, least in (("episodes", episodes, 1), ("seed", seed, 0)):
            if not least <= value < 2**31:
                raise UserError(f"{name} must be at least {least}, and below 2^31, not {value}")
        where = environment or self.environment
        arm = self._arm(evaluation_environment=where, evaluation_episodes=episodes)
        trained, other = envs.make(arm.environment), envs.make(where)
        check_fits(trained, other)
        if trained.runs_in != other.runs_in:  # it is played where it is simulated: on the host, or in JAX
            arm = replace(arm, environment=where)
        with closing(trainer_for([resolved(arm)])) as trainer:
            return Played(*trainer.play(self.actors, seed))

    def _arm(self, **changes: Any) -> Arm:
        """The arm they were trained by, with only the settings that acting needs."""
        unaugmented = {"augmentation": None, "ratio": None, "update_ratio": None}
        return replace(Arm.from_description(self.asked), **(unaugmented | changes))

    @cached_property
    def _program(self) -> Program:
        return program_of(resolved(self._arm(evaluation_environment=None)))

    @cached_property
    def _act(self) -> Any:
        return jax.jit(self._program.act)


def load_policies(folder: Path | str) -> Policies:
    """The policies of the finished run in a folder."""
    folder = Path(folder)
    run = results.read_run(folder)
    path = folder / results.POLICIES
    if not path.exists():
        raise UserError(f"{folder} holds no policies: {results.POLICIES} is missing")
    try:
        return _checked(Policies(run["asked"], None), files.load(path)[0])
    except UserError:
        raise
    except (DamagedError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is damaged ({error})") from error


def _checked(policies: Policies, stored: Arrays) -> Policies:
    """The policies with the stored parameters, which must have the shapes of such a run's."""
    program = policies._program

    def actor() -> Parameters:
        return program.algorithm.init(jax.random.key(0), blank_observation(program.environment)).actor

    shapes = jax.eval_shape(actor)
    names = files.named(shapes)
    if stored.keys() != names.keys():
        raise DamagedError("other parameters than its run's")
    for name, shape in names.items():
        if stored[name].shape != (policies.asked["agents"], *shape.shape):
            raise DamagedError(f"{name} has shape {stored[name].shape}")
    actors = jax.tree.unflatten(jax.tree.structure(shapes), [stored[name] for name in names])
    return Policies(policies.asked, actors)
