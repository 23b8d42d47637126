"""The four Panda tasks on MuJoCo: panda-gym's observations, goals, actions, starts and motions.

| task | does |
|---|---|
| `panda-push` | push a cube to a position on the table |
| `panda-slide` | strike a puck so that it slides to a position out of reach |
| `panda-pick-and-place` | bring a cube to a position, on the table or above it |
| `panda-flip` | rotate a cube to an orientation |

    observation    = hand (position, velocity), distance between the fingers where they move,
                     object (position, orientation, velocity, angular velocity)
    action         = displacement of the hand, 0.05 m a unit, and of the fingers, 0.2 m a unit
    reward         = 0 at the goal, else -1; reaching it ends the episode

`panda-push-quadrant` and its like set a part of the goals; `panda-push-coarse` and its like are simulated in
half as many substeps.

One oddity of panda-gym is kept, because it decides how the arm moves: PyBullet reports the hand's position as
it was one substep before, and panda-gym's displacements start from that position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import mujoco
import numpy as np
import numpy.typing as npt

from augury.envs.base import Panel
from augury.envs.mujoco.physics import Physics, Rollout, Rows
from augury.envs.mujoco.vector import Moment, Outcome, Start, VectorEnvironment
from augury.envs.panda import robot, scenes, settings
from augury.envs.panda.contacts import ObjectShape
from augury.envs.panda.environment import PandaEnvironment
from augury.envs.panda.goals import GOAL_TASKS, START_DRAWS, RotationTask
from augury.envs.panda.kinematics import joint_targets
from augury.envs.panda.model import build
from augury.envs.panda.observations import JOINTS, Snapshot, asked, both_goals, observed, servo_targets
from augury.envs.panda.robot import COARSE, FINE, Pace
from augury.errors import UserError
from augury.transition import Transition

_ORIENTATIONS_DRAWN_AT = (0.0, 0.0, 0.06)
"""Position at which pictures show a desired orientation, as in panda-gym."""

Observation = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class PandaTask(PandaEnvironment):
    """One task, as pure functions of arrays with a row for each environment."""

    pace: Pace = FINE
    """20 substeps as in panda-gym, or 10."""

    extras: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        return f"panda-{self.goals.name}{'' if self.pace == FINE else '-coarse'}"

    @property
    def quadrant(self) -> PandaTask:
        """The same task with a part of its goals."""
        return replace(self, goals=self.goals.quadrant)

    def vector(self, count: int, *, autoreset: bool = True, threads: int | None = None) -> VectorEnvironment:
        """Many of them, simulated together."""
        return VectorEnvironment(self, count, autoreset=autoreset, threads=threads)

    def physics(self, threads: int | None = None) -> Physics:
        return Rollout(self._spec(), self.pace.substeps, threads)

    def start(self, generator: np.random.Generator) -> Start:
        # In panda-gym's order: the goal, then the object.
        goal = self.goals.goal(generator.random(self.goals.draws))
        position = self.goals.start(generator.random(START_DRAWS))
        qpos = np.concatenate([robot.NEUTRAL, (0, 0), position, (1, 0, 0, 0)])
        return Start(qpos, np.zeros(self.model.nv), goal)

    def observe(self, moment: Moment) -> Observation:
        rows = len(moment.qpos)
        shown = observed(self.goals, _snapshot(moment))
        return {name: numbers.reshape(rows, -1) for name, numbers in shown.items()}

    def control(self, moment: Moment, action: Rows) -> Rows:
        """Joint targets that move the hand by the action's displacement."""
        target, fingers = asked(self.goals, _snapshot(moment), _alone(action))
        rows = len(action)
        angles, torques = joint_targets(moment.qpos[:, :JOINTS], target.reshape(rows, -1))
        return servo_targets(angles, torques, self.stiffness, fingers.reshape(rows, -1))

    def outcome(self, before: Moment, action: Rows, after: Moment) -> Outcome:
        # Computed from the observed 32-bit goals, so that anyone who relabels an observation gets the same.
        goals = both_goals(self.goals, _snapshot(after)).values()
        reached, rows = self.goals.succeeded(*goals), len(action)
        reward = self.goals.reward(*goals).astype(np.float64).reshape(rows)
        return Outcome(reward, reached.reshape(rows), {"is_success": reached.reshape(rows)})

    def restored(self, observation: Observation, extras: Mapping[str, Rows]) -> Start:
        """The start in `extras["state"]`, which is what `state` returns: joints are not observed."""
        if "state" not in extras:
            raise UserError(f"{self.name} is restored from extras['state'], since joints are not observed")
        state = extras["state"]
        return Start(state[:, : self.model.nq], state[:, self.model.nq :], observation["desired_goal"])

    def state(self, moment: Moment) -> Rows:
        """Positions and velocities, for `restored`."""
        return np.concatenate([moment.qpos, moment.qvel], 1)

    @cached_property
    def model(self) -> mujoco.MjModel:
        """The compiled model, to be read."""
        return self._spec().compile()

    @property
    def bare_model(self) -> mujoco.MjModel:
        """The model without sensors."""
        spec = self._spec()
        for sensor in spec.sensors:
            spec.delete(sensor)
        return spec.compile()

    @cached_property
    def scene(self) -> mujoco.MjModel:
        """The model with scenery, for pictures."""
        return self._spec(scenery=True).compile()

    def target(self, goal: Rows) -> tuple[Rows, Rows]:
        """Position and orientation (a quaternion w, x, y, z) at which a picture shows a goal."""
        if isinstance(self.goals, RotationTask):
            return np.array(_ORIENTATIONS_DRAWN_AT), goal[[3, 0, 1, 2]]
        return goal, np.array([1.0, 0.0, 0.0, 0.0])

    @property
    def panel(self) -> Panel:
        return scenes.panel(self.goals)

    def draw(self, axes: Any, transitions: Transition) -> None:
        """The scene in which a transition begins, and its goal; for `augury show`."""
        scenes.draw(axes, self, transitions)

    def draw_augmented(self, axes: Any, observed: Transition, augmented: Transition) -> None:
        """The same, and the goal that it had before."""
        scenes.draw(axes, self, augmented, observed)

    def explore(self, observation: Observation, generator: np.random.Generator) -> Rows:
        """Actions that lead the hand to the object."""
        return scenes.reach(self.goals, observation, generator)

    def worth_drawing(self, transitions: Transition) -> Rows:
        return scenes.worth_drawing(self.goals, transitions)

    @property
    def seconds(self) -> float:
        """Simulated time of one step."""
        return robot.STEP

    @cached_property
    def stiffness(self) -> Rows:
        """Of the arm's servos, N·m per radian."""
        stiffness: Rows = self.model.actuator_gainprm[:JOINTS, 0]
        return stiffness

    def _spec(self, *, scenery: bool = False) -> mujoco.MjSpec:
        shape: ObjectShape = "puck" if settings.task_name(self.goals) == "slide" else "cube"
        return build(shape, self.pace, blocked=not settings.grips(self.goals), scenery=scenery)


def _snapshot(moment: Moment) -> Snapshot:
    """Of the vector engine's rows, whose readings are the hand's position and velocity."""
    qpos, qvel, readings, goal = map(_alone, moment[:4])
    return Snapshot(qpos, qvel, readings[..., :3], readings[..., 3:], goal)


def _alone(rows: Rows) -> Rows:
    """A single row without its axis, which is computed faster (see `components`); several as they are."""
    return rows[0] if len(rows) == 1 else rows


PANDA_TASKS = {
    task.name: task
    for goals in GOAL_TASKS.values()
    for task in (PandaTask(goals), PandaTask(goals.quadrant), PandaTask(goals, COARSE))
}
"""Tasks by name."""
