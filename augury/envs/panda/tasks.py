"""The four Panda tasks on MuJoCo: panda-gym's observations, goals, actions, starts and motions.

| task | does |
|---|---|
| `panda-push` | push a cube to a place on the table |
| `panda-slide` | strike a puck so that it slides to a place out of reach |
| `panda-pick-and-place` | bring a cube to a place, on the table or above it |
| `panda-flip` | turn a cube |

    observation    = hand (place, velocity), fingers' width, thing (place, turn, velocity, angular velocity)
    action         = displacement of the hand, 0.05 m a unit, and of the fingers, 0.2 m a unit
    reward         = 0 at the goal, else -1; reaching it ends the episode

`panda-push-quadrant` … set a part of the goals; `panda-push-coarse` … are simulated in half as many substeps.

One thing is odd, and kept because it decides how the arm moves: PyBullet tells the hand's place as it was
one substep before, and that is where panda-gym's displacements start from too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import mujoco
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict

from augury.envs.base import Measure, RunsIn
from augury.envs.mujoco.physics import Physics, Rollout, Rows
from augury.envs.mujoco.vector import Moment, Outcome, Start, VectorEnvironment
from augury.envs.panda import model as panda_model
from augury.envs.panda import settings as panda_settings
from augury.envs.panda.goals import GOAL_TASKS, START_DRAWS, GoalTask, RotationTask
from augury.envs.panda.kinematics import joint_targets
from augury.envs.panda.model import COARSE, FINE, Pace
from augury.envs.panda.settings import Bounds
from augury.errors import UserError
from augury.transition import Array, Transition

REACH = 0.05
"""Metres that a unit of action moves the hand."""
GRIP = 0.2
"""Metres that a unit of action opens the fingers."""
JOINTS = len(panda_model.LINKS)
_SHOWN_ABOVE = (0.0, 0.0, 0.06)
"""Where pictures show a rotation that is to be reached, as panda-gym does."""

Vector = npt.NDArray[np.float32]
Observation = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class PandaTask:
    """One task, as pure functions of arrays with a row for each environment."""

    goals: GoalTask
    pace: Pace = FINE
    """20 substeps as in panda-gym, or 10."""

    horizon: ClassVar[int] = panda_settings.HORIZON
    runs_in: ClassVar[RunsIn] = "host"
    measure: ClassVar[Measure] = "success"
    extras: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        return f"panda-{self.goals.name}{'' if self.pace == FINE else '-coarse'}"

    @property
    def quadrant(self) -> PandaTask:
        """The same task with a part of its goals."""
        return replace(self, goals=self.goals.quadrant)

    @property
    def all_goals(self) -> GoalTask:
        """What relabelling draws goals from: all of the task's, also where it sets a part of them itself."""
        return GOAL_TASKS[panda_settings.task_name(self.goals)]

    @property
    def training(self) -> Mapping[str, Any]:
        return panda_settings.TRAINING[panda_settings.task_name(self.goals)]

    def vector(self, count: int, *, autoreset: bool = True, threads: int | None = None) -> VectorEnvironment:
        """Many of them, simulated together."""
        return VectorEnvironment(self, count, autoreset=autoreset, threads=threads)

    def physics(self, threads: int | None = None) -> Physics:
        return Rollout(self._spec(), self.pace.substeps, threads)

    def start(self, generator: np.random.Generator) -> Start:
        # In panda-gym's order: the goal, then the thing.
        goal = self.goals.goal(generator.random(self.goals.draws))
        place = self.goals.start(generator.random(START_DRAWS))
        qpos = np.concatenate([panda_model.NEUTRAL, (0, 0), place, (1, 0, 0, 0)])
        return Start(qpos, np.zeros(self.model.nv), goal)

    def observe(self, moment: Moment) -> Observation:
        turn = _turn(moment)
        seen = [
            _hand_place(moment),
            _hand_velocity(moment),
            self._width(moment) if self._grips else moment.qpos[:, :0],
            _place(moment),
            turn if self._turns else _euler_angles(turn),
            moment.qvel[:, -6:-3],
            _rotated(turn, moment.qvel[:, -3:]),
        ]
        return {"observation": np.concatenate(seen, 1).astype(np.float32), **self._goals(moment)}

    def control(self, moment: Moment, action: Rows) -> Rows:
        """Where the joints shall go, for the hand to move by what is asked; never below the table."""
        action = np.clip(action, -1, 1)
        target = _hand_place(moment) + REACH * action[:, :3]
        target[:, 2] = np.maximum(target[:, 2], 0)
        angles, torques = joint_targets(moment.qpos[:, :JOINTS], target)
        # A servo that gives a torque stands off its target. So it is given one that far beyond.
        angles = angles + torques / self._stiffness
        width = self._width(moment) + GRIP * action[:, 3:] if self._grips else np.zeros((len(action), 1))
        return np.concatenate([angles, width / 2, width / 2], 1)

    def outcome(self, before: Moment, action: Rows, after: Moment) -> Outcome:
        # Of what is observed, in 32 bits: so that whoever looks at an observation comes to the same.
        goals = self._goals(after).values()
        reached = self.goals.succeeded(*goals)
        return Outcome(self.goals.reward(*goals).astype(np.float64), reached, {"is_success": reached})

    def restored(self, observation: Observation, extras: Mapping[str, Rows]) -> Start:
        """The joints are not observed: `extras["state"]` has them, as `state` gives it."""
        if "state" not in extras:
            raise UserError(f"{self.name} is restored from extras['state'], since joints are not observed")
        state = extras["state"]
        return Start(state[:, : self.model.nq], state[:, self.model.nq :], observation["desired_goal"])

    def state(self, moment: Moment) -> Rows:
        """Positions and velocities, for `restored`."""
        return np.concatenate([moment.qpos, moment.qvel], 1)

    def succeeded(self, transition: Transition) -> Array:
        """Whether transitions reach the goal that they desire."""
        after = transition.next_observation
        return self.goals.succeeded(after["achieved_goal"], after["desired_goal"])

    @cached_property
    def model(self) -> mujoco.MjModel:
        """The compiled model, to be read."""
        return self._spec().compile()

    @cached_property
    def scene(self) -> mujoco.MjModel:
        """The model with all that pictures show."""
        return self._spec(scenery=True).compile()

    def target(self, goal: Rows) -> tuple[Rows, Rows]:
        """Place and turn, a quaternion w, x, y, z, at which a picture shows a goal."""
        if self._turns:
            return np.array(_SHOWN_ABOVE), goal[[3, 0, 1, 2]]
        return goal, np.array([1.0, 0.0, 0.0, 0.0])

    @cached_property
    def _stiffness(self) -> Rows:
        """Of the arm's servos, N·m per radian."""
        stiffness: Rows = self.model.actuator_gainprm[:JOINTS, 0]
        return stiffness

    @property
    def seconds(self) -> float:
        """Simulated time of one step."""
        return panda_model.STEP

    @property
    def observation_space(self) -> Dict:
        low, _ = self._bounds
        return Dict({name: Box(-10.0, 10.0, part.shape, np.float32) for name, part in low.items()})

    @property
    def action_space(self) -> Box:
        return Box(self.action_low, self.action_high)

    @property
    def action_low(self) -> Vector:
        return -self.action_high

    @property
    def action_high(self) -> Vector:
        return np.ones(panda_settings.action_size(self.goals), np.float32)

    @property
    def observation_low(self) -> Bounds:
        """Where coverage looks: no observation is limited to it."""
        return self._bounds[0]

    @property
    def observation_high(self) -> Bounds:
        return self._bounds[1]

    def _goals(self, moment: Moment) -> Observation:
        achieved = _turn(moment) if self._turns else _place(moment)
        return {
            "achieved_goal": achieved.astype(np.float32),
            "desired_goal": moment.goal.astype(np.float32),
        }

    @cached_property
    def _bounds(self) -> tuple[Bounds, Bounds]:
        return panda_settings.bounds(self.goals)

    @property
    def _turns(self) -> bool:
        """Whether goals are rotations."""
        return isinstance(self.goals, RotationTask)

    @property
    def _grips(self) -> bool:
        return panda_settings.task_name(self.goals) in panda_settings.WITH_GRIPPER

    def _width(self, moment: Moment) -> Rows:
        """Between the fingers."""
        return moment.qpos[:, JOINTS : JOINTS + 2].sum(1, keepdims=True)

    def _spec(self, *, scenery: bool = False) -> mujoco.MjSpec:
        thing: panda_model.Thing = "puck" if panda_settings.task_name(self.goals) == "slide" else "cube"
        return panda_model.build(thing, self.pace, blocked=not self._grips, scenery=scenery)


def _hand_place(moment: Moment) -> Rows:
    """As PyBullet tells it: one substep behind."""
    return moment.readings[:, :3] - panda_model.LAG * _hand_velocity(moment)


def _hand_velocity(moment: Moment) -> Rows:
    return moment.readings[:, 3:]


def _place(moment: Moment) -> Rows:
    """Of the thing."""
    return moment.qpos[:, -7:-4]


def _turn(moment: Moment) -> Rows:
    """Of the thing, a quaternion x, y, z, w.

    Two quaternions are the same turn. PyBullet tells the one with a positive w; or, where w is within ± 1/2,
    the one whose largest other number is positive.
    """
    turn = moment.qpos[:, [-3, -2, -1, -4]]
    largest = turn[np.arange(len(turn)), np.abs(turn[:, :3]).argmax(1)]
    leading = np.where(np.abs(turn[:, 3]) > 0.5, turn[:, 3], largest)
    return np.where(leading[:, None] < 0, -turn, turn)


def _rotated(quaternion: Rows, vector: Rows) -> Rows:
    """A vector of the turned body, in the world."""
    axis, scalar = quaternion[:, :3], quaternion[:, 3:]
    twice = 2 * _cross(axis, vector)
    return vector + scalar * twice + _cross(axis, twice)


def _cross(first: Rows, second: Rows) -> Rows:
    """NumPy's own takes ten times as long for a few rows."""
    return first[:, _NEXT] * second[:, _LAST] - first[:, _LAST] * second[:, _NEXT]


_NEXT, _LAST = [1, 2, 0], [2, 0, 1]


def _euler_angles(quaternion: Rows) -> Rows:
    """Roll, pitch and yaw as PyBullet gives them; where the pitch is a right angle it calls all roll yaw."""
    x, y, z, w = quaternion.T
    sine = 2 * (w * y - x * z)
    locked = np.abs(sine) >= 0.99999
    roll = np.where(locked, 0, np.arctan2(2 * (y * z + w * x), w * w - x * x - y * y + z * z))
    pitch = np.arcsin(np.clip(np.where(locked, np.sign(sine), sine), -1, 1))
    side = np.where(sine > 0, -1, 1)
    yaw = np.where(
        locked,
        2 * np.arctan2(side * x, -side * y),
        np.arctan2(2 * (x * y + w * z), w * w + x * x - y * y - z * z),
    )
    return np.stack([roll, pitch, yaw], 1)


PANDA_TASKS = {
    task.name: task
    for goals in GOAL_TASKS.values()
    for task in (PandaTask(goals), PandaTask(goals.quadrant), PandaTask(goals, COARSE))
}
"""Tasks by name."""
