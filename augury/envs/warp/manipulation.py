"""The four Panda tasks with physics on a GPU: `panda-push-warp` and its like.

Model, goals, control and observations are those of `augury.envs.panda.tasks`; MuJoCo Warp takes MuJoCo's
place, and everything else is JAX. So a whole round of a fleet is one compiled call, and nothing goes to the
host between evaluations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from augury.envs.base import RunsIn
from augury.envs.panda import robot, settings
from augury.envs.panda.environment import PandaEnvironment
from augury.envs.panda.goals import START_DRAWS
from augury.envs.panda.kinematics import hand_motion, reaching
from augury.envs.panda.observations import JOINTS, Snapshot, asked, both_goals, observed, servo_targets
from augury.envs.panda.robot import FINE, Pace
from augury.envs.panda.tasks import PANDA_TASKS, PandaTask
from augury.errors import UserError
from augury.transition import Array, Key, Observation

if TYPE_CHECKING:
    from augury.envs.warp.worlds import Worlds

MOST_CONTACTS = 16
"""Points at which bodies may touch at the same time, on average over all worlds. Exploring hands made three,
and 25 rows of a world's 77 in the solver."""


class World(NamedTuple):
    """The state of one environment."""

    qpos: Array
    qvel: Array
    goal: Array


@dataclass(frozen=True)
class WarpPandaTask(PandaEnvironment):
    """One task, as pure functions of one environment in JAX."""

    pace: Pace = FINE
    needs_gpu: bool = True
    """On a CPU it is exact, but a hundred times as slow as MuJoCo: good for tests only."""

    runs_in: ClassVar[RunsIn] = "device"
    extras: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        # What the goals are called comes last, as it does of every task: studies put it there.
        goals = self.goals.name.removeprefix(settings.task_name(self.goals))
        return f"{self.twin.name.removesuffix(goals)}-warp{goals}"

    @property
    def twin(self) -> PandaTask:
        """The same task on the host."""
        return PandaTask(self.goals, self.pace)

    def reset(self, key: Key) -> World:
        goal_key, start_key = jax.random.split(key)
        goal = self.goals.goal(jax.random.uniform(goal_key, (self.goals.draws,)))
        position = self.goals.start(jax.random.uniform(start_key, (START_DRAWS,)))
        rest = jnp.array([*robot.NEUTRAL, 0, 0], jnp.float32)
        qpos = jnp.concatenate([rest, position, jnp.array([1, 0, 0, 0], jnp.float32)])
        return World(qpos, jnp.zeros(len(qpos) - 1), goal)

    def observe(self, state: World) -> Observation:
        return observed(self.goals, _snapshot(state))

    def step(self, key: Key, state: World, action: Array) -> tuple[World, Array, Array]:
        target, fingers = asked(self.goals, _snapshot(state), action)
        angles, torques = reaching(state.qpos[:JOINTS], target)
        control = servo_targets(angles, torques, self._stiffness, fingers)
        qpos, qvel = self.worlds.advance(state.qpos, state.qvel, control)
        after = World(qpos, qvel, state.goal)
        goals = both_goals(self.goals, _snapshot(after)).values()
        return after, self.goals.reward(*goals), self.goals.succeeded(*goals)

    @cached_property
    def _stiffness(self) -> npt.NDArray[np.float32]:
        return self.twin.stiffness.astype(np.float32)

    @property
    def worlds(self) -> Worlds:
        """What steps its worlds; it is made when first asked for."""
        if self.needs_gpu and jax.default_backend() != "gpu":
            raise UserError(
                f"{self.name} needs an NVIDIA GPU, and JAX finds none: install jax[cuda13] where there "
                f"is one, or choose {self.twin.name}"
            )
        return _worlds(self)


@lru_cache(maxsize=8)
def _worlds(task: WarpPandaTask) -> Worlds:
    try:
        from augury.envs.warp.worlds import Worlds
    except ImportError as error:
        raise UserError(f"{task.name} needs MuJoCo Warp: pip install 'augury[warp]' ({error})") from error
    return Worlds(task.twin.bare_model, task.pace.substeps, MOST_CONTACTS)


def _snapshot(state: World) -> Snapshot:
    hand, velocity = hand_motion(state.qpos[:JOINTS], state.qvel[:JOINTS])
    return Snapshot(state.qpos, state.qvel, hand, velocity, state.goal)


WARP_PANDA_TASKS = {
    task.name: task for twin in PANDA_TASKS.values() for task in [WarpPandaTask(twin.goals, twin.pace)]
}
"""Tasks by name."""
