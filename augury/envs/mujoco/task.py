"""A task from a MuJoCo model: subclass `MujocoTask`, and it trains in fleets, is verified and mirrored.

    @dataclass(frozen=True)
    class Stand(MujocoTask):
        name: str = "stand"
        horizon: int = 200
        substeps: int = 5

        def spec(self):
            return mujoco.MjSpec.from_file("robot.xml")

        def outcome(self, before, action, after):
            height = after.qpos[:, 2]
            return Outcome(reward=height, terminated=height < 0.2, extras={})

Moments hold arrays with a row for each environment. What is observed is every position and velocity, unless
the task says otherwise; so its observation determines its state, and nobody writes an index by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from augury.envs.base import HostEnvironment
from augury.envs.mujoco import drawing, terms
from augury.envs.mujoco.physics import Physics, Rollout, Rows
from augury.envs.mujoco.terms import Quantity
from augury.envs.mujoco.vector import Moment, Outcome, Start, VectorEnvironment
from augury.errors import UserError
from augury.transition import Transition

COVERED_SPEED = 10.0
"""Coverage is measured for velocities within ±10."""

Vector = npt.NDArray[np.float32]


class MujocoTask(HostEnvironment):
    """To subclass, as a frozen dataclass: a model, where it starts, what it is rewarded for.

    Yours has `name`, `horizon`, `spec()` and `outcome(before, action, after)`.
    """

    name: Any
    horizon: Any
    substeps: Any = 1
    """Simulator steps in a step of the environment, under constant controls."""
    hidden_positions: Any = 0
    """Number of leading positions that are not observed: a robot's x and y, say."""
    start_noise: Any = 0.0
    """Positions and velocities start uniformly within it, around the model's own."""
    mirror_normal: Any = "y"
    """Normal of the plane in which `augury.reflect` mirrors the robot."""
    view: Any = None
    """From where pictures show the robot, a `drawing.View`; by default from where all of it is in sight."""

    def spec(self) -> mujoco.MjSpec:
        """The model."""
        raise UserError(f"{self.name} has no model: give it a method spec() that returns an MjSpec")

    def outcome(self, before: Moment, action: Rows, after: Moment) -> Outcome:
        """Reward, termination and extras of a step."""
        raise UserError(f"{self.name} has no reward: give it a method outcome(before, action, after)")

    def control(self, moment: Moment, action: Rows) -> Rows:
        """The actuators' inputs: by default the action itself."""
        return action

    def start(self, generator: np.random.Generator) -> Start:
        noise, model = self.start_noise, self.model
        qpos = model.qpos0 + generator.uniform(-noise, noise, model.nq)
        return Start(qpos, generator.uniform(-noise, noise, model.nv), goal=np.empty(0))

    def observe(self, moment: Moment) -> Rows:
        return np.concatenate([moment.qpos[:, self.hidden_positions :], moment.qvel], 1)

    def restored(self, observation: Rows, extras: Mapping[str, Rows]) -> Start:
        """The start that looks like this; hidden positions are where the model has them."""
        del extras
        qpos = np.tile(self.model.qpos0, (len(observation), 1))
        positions = self.model.nq - self.hidden_positions
        qpos[:, self.hidden_positions :] = observation[:, :positions]
        qvel = observation[:, positions : positions + self.model.nv]
        return Start(qpos, qvel, goal=np.empty((len(qpos), 0)))

    def vector(self, count: int, *, autoreset: bool = True, threads: int | None = None) -> VectorEnvironment:
        """Many of them, simulated together."""
        return VectorEnvironment(self, count, autoreset=autoreset, threads=threads)

    def physics(self, threads: int | None = None) -> Physics:
        """A simulator of the model."""
        return Rollout(self.spec(), self.substeps, threads)

    @cached_property
    def model(self) -> mujoco.MjModel:
        """The compiled model, to be read."""
        return self.spec().compile()

    @cached_property
    def seconds(self) -> float:
        """Simulated time of one step."""
        return float(self.substeps * self.model.opt.timestep)

    @cached_property
    def table(self) -> tuple[Quantity, ...]:
        """What each number of the observation is."""
        return (*terms.positions(self.model)[self.hidden_positions :], *terms.velocities(self.model))

    def draw(self, axes: Any, transitions: Transition) -> None:
        """The pose in which a transition begins, for `augury show`."""
        drawing.draw_pose(axes, self.model, self._poses(transitions)[0], self.view)
        axes.set_xlabel(drawing.caption(transitions), fontsize=9)

    def worth_drawing(self, transitions: Transition) -> Rows:
        """Most where the robot is far from its first pose, but has not fallen."""
        far: Rows = np.abs(self._poses(transitions) - self.model.qpos0).sum(1)
        return np.where(transitions.terminated, -np.inf, far)

    def _poses(self, transitions: Any) -> Rows:
        return self.restored(transitions.observation, transitions.extras).qpos

    @property
    def observation_space(self) -> Box:
        return Box(-np.inf, np.inf, (len(self.table),), np.float64)

    @property
    def action_space(self) -> Box:
        return Box(self.action_low, self.action_high)

    @property
    def action_low(self) -> Vector:
        return self.model.actuator_ctrlrange[:, 0].astype(np.float32)

    @property
    def action_high(self) -> Vector:
        return self.model.actuator_ctrlrange[:, 1].astype(np.float32)

    @property
    def observation_low(self) -> Vector:
        """Lower bound for measuring coverage; observations may go beyond it."""
        return self._covered_ranges[:, 0]

    @property
    def observation_high(self) -> Vector:
        return self._covered_ranges[:, 1]

    @cached_property
    def _covered_ranges(self) -> Vector:
        return np.array([self._covered_range(quantity) for quantity in self.table], np.float32)

    def _covered_range(self, quantity: Quantity) -> tuple[float, float]:
        if quantity.kind != "qpos":
            return -COVERED_SPEED, COVERED_SPEED
        joint = self.model.joint(quantity.joint)
        if self.model.jnt_limited[joint.id]:
            low, high = joint.range
            return float(low), float(high)
        return (-np.pi, np.pi) if quantity.unit == "rad" else (-1.0, 1.0)
