"""The Panda tasks in three simulators, for benchmarks: panda-gym, MuJoCo and, where it is installed, Warp.

All three are stepped through Gymnasium's vector interface, and start from the same seeds in the same states.
"""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from augury.envs.mujoco.physics import Rows
from augury.envs.mujoco.vector import Start
from augury.envs.panda.goals import GoalTask
from augury.envs.panda.reference.panda_gym import REFERENCES
from augury.envs.panda.reference.simulation import NEUTRAL, STATE_SIZE, Simulation, row_type
from augury.envs.panda.settings import HORIZON, table
from augury.envs.panda.tasks import PANDA_TASKS
from augury.envs.warp.manipulation import WARP_PANDA_TASKS, WarpPandaTask, World

OURS = ("MuJoCo", "Warp") if importlib.util.find_spec("mujoco_warp") else ("MuJoCo",)
"""Simulators of ours that are installed."""
ALL = ("panda-gym", *OURS)
HAND_LINK = 11
"""PyBullet's number of the link whose position is the hand's."""

Engine = Any
"""Many environments of a task: a Gymnasium vector environment, in any of the three."""


def engine(simulator: str, name: str, count: int) -> Engine:
    """So many environments of a task, which stand still when an episode is over."""
    if simulator == "panda-gym":
        reference = next(task for task in REFERENCES if task.name == f"panda-gym-{name}")
        return reference.vector(count, autoreset=False)
    if simulator == "Warp":
        return WarpVector(replace(WARP_PANDA_TASKS[f"panda-{name}-warp"], needs_gpu=False), count)
    return PANDA_TASKS[f"panda-{name}"].vector(count, autoreset=False)


class WarpVector:
    """A task on MuJoCo Warp with the interface of the engine on the host."""

    def __init__(self, task: WarpPandaTask, count: int) -> None:
        self.num_envs = count
        self._host = task.twin.vector(count, autoreset=False)  # draws the starts
        self.action_space = self._host.action_space
        self._step = jax.jit(jax.vmap(task.step, (None, 0, 0)))
        self._observe = jax.jit(jax.vmap(task.observe))
        self.put(*self._start())

    def reset(self, *, seed: int) -> tuple[Any, dict[str, Any]]:
        self._host.reset(seed=seed)
        self.put(*self._start())
        return self._observed(), {}

    def put(self, qpos: Rows, qvel: Rows, goal: Rows, action: Rows | None = None) -> None:
        """Set every environment's positions, velocities and goal, as if an episode began there."""
        del action  # these tasks do not observe it
        self._qpos, self._qvel, self._goals = (np.array(part, np.float32) for part in (qpos, qvel, goal))
        self._steps = 0
        self._terminated = np.zeros(self.num_envs, bool)

    def step(self, actions: Rows) -> tuple[Any, ...]:
        moves = ~(self._terminated | (self._steps >= HORIZON))
        after, reward, reached = self._step(jax.random.key(0), self._world, np.float32(actions))
        self._qpos[moves], self._qvel[moves] = np.asarray(after.qpos)[moves], np.asarray(after.qvel)[moves]
        self._terminated[moves] = np.asarray(reached)[moves]
        self._steps += 1
        truncated = ~self._terminated & (self._steps >= HORIZON)
        return self._observed(), np.where(moves, reward, 0), self._terminated.copy(), truncated, {}

    def close(self) -> None:
        self._host.close()

    def _start(self) -> Start:
        now = self._host.moment
        return Start(now.qpos, now.qvel, now.goal)

    @property
    def _world(self) -> World:
        return World(*(jnp.asarray(part) for part in (self._qpos, self._qvel, self._goals)))

    def _observed(self) -> dict[str, npt.NDArray[Any]]:
        return {name: np.asarray(values) for name, values in self._observe(self._world).items()}


class Reference:
    """panda-gym in this process, where its inner workings can be seen."""

    def __init__(self, goals: GoalTask) -> None:
        self.goals = goals
        self.simulation = Simulation(goals.name)
        self.client = self.simulation.env.sim.physics_client
        self.bodies = self.simulation.env.sim._bodies_idx
        self.row = np.zeros(1, row_type(goals))[0]
        self.targets = np.zeros(len(NEUTRAL))
        robot = self.simulation.env.robot
        control = robot.control_joints

        def overheard(target_angles: Rows) -> None:
            self.targets = np.array(target_angles)
            control(target_angles)

        robot.control_joints = overheard

    def begin(self, state: Rows, goal: Rows) -> None:
        self.row["begin"], self.row["start"], self.row["desired_goal"] = True, state, goal
        self.simulation.carry_out(self.row)

    def step(self, action: npt.ArrayLike) -> None:
        self.row["begin"], self.row["action"] = False, action
        self.simulation.carry_out(self.row)

    def touches(self) -> bool:
        return len(self.client.getContactPoints(self.bodies["panda"])) > 0

    def hand_at(self, angles: Rows) -> Rows:
        """Where the hand is at these joint angles."""
        for joint, angle in enumerate(angles):
            self.client.resetJointState(self.bodies["panda"], joint, angle)
        return np.array(
            self.client.getLinkState(self.bodies["panda"], HAND_LINK, computeForwardKinematics=1)[0]
        )


def start_of(states: Rows, goal_size: int) -> Start:
    """PyBullet's states for MuJoCo: quaternions begin with w, and bodies turn in their own frame.

    Goals are out of reach.
    """
    assert states.shape[1] == STATE_SIZE
    joints = len(NEUTRAL)
    angles, speeds, position, turn, velocity, spin = np.split(
        states, np.cumsum([joints, joints, 3, 4, 3]), axis=1
    )
    axis, scalar = -turn[:, :3], turn[:, 3:]
    twice = 2 * np.cross(axis, spin)
    own_spin = spin + scalar * twice + np.cross(axis, twice)
    qpos = np.concatenate([angles, position, turn[:, [3, 0, 1, 2]]], 1)
    return Start(
        qpos, np.concatenate([speeds, velocity, own_spin], 1), np.full((len(states), goal_size), 9.0)
    )


def object_columns(goals: GoalTask) -> slice:
    """Where `observation` has the object's position."""
    first = [number.name for number in table(goals)].index("object x")
    return slice(first, first + 3)
