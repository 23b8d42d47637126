"""One of panda-gym's tasks in PyBullet, repaired so that an episode depends on its start and actions alone.

What is repaired in panda-gym 3.0.7:

- Flip starts. Its texture is missing from the package (its issue #71), so it is drawn here, or left out.
- Nothing is kept from one episode to the next (#94). PyBullet remembers where bodies touched, and panda-gym
  begins a new episode with that memory; PyBullet's own `restoreState` does not help. Here the object is first
  moved far away and collisions are detected, which empties the memory.
- Contacts are solved in a fixed order. PyBullet's own order depends on memory addresses, so that two
  simulations differ as soon as both fingers touch the table.
- So motion depends, to the last bit, only on the state that is set and on the actions since.
- PyBullet prints no greeting on the terminal.
- Without pictures the arm has no visible shapes. That saves half of the memory, and changes no motion.

PyBullet is not imported before a simulation is made. Nothing here imports JAX, because processes with JAX
must not fork (see `server`).
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import sys
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from augury.envs.panda import robot, settings
from augury.envs.panda.goals import GoalTask

Rows = npt.NDArray[np.float64]

JOINTS = (0, 1, 2, 3, 4, 5, 6, 9, 10)
"""PyBullet's indices of the arm's seven joints and of the two fingers."""
NEUTRAL = (*robot.NEUTRAL, 0.0, 0.0)
"""Positions of these joints at the start of an episode."""
STATE_SIZE = 2 * len(JOINTS) + 13
"""Joints: positions and velocities; object: position, quaternion, velocity and angular velocity."""
_AWAY = (10.0, 10.0, 10.0)
_UPRIGHT = (0.0, 0.0, 0.0, 1.0)
_GREETINGS = re.compile(rb"(argv\[\d+\]=|pybullet build time:).*\n?")


def start_state(position: Rows) -> Rows:
    """States at the start of an episode, with the object at these positions."""
    states = np.zeros((*position.shape[:-1], STATE_SIZE))
    states[..., : len(JOINTS)] = NEUTRAL
    states[..., 2 * len(JOINTS) : 2 * len(JOINTS) + 3] = position
    states[..., 2 * len(JOINTS) + 6] = 1.0
    return states


def row_type(goals: GoalTask) -> np.dtype[Any]:
    """The fields of a row: a request to a simulation, and its answer."""
    observation, goal = len(settings.table(goals)), goals.goal_size
    fields = [
        ("begin", np.bool_, ()),
        ("start", np.float64, (STATE_SIZE,)),
        ("action", np.float32, (settings.action_size(goals),)),
        ("desired_goal", np.float32, (goal,)),
        ("state", np.float64, (STATE_SIZE,)),
        ("observation", np.float32, (observation,)),
        ("achieved_goal", np.float32, (goal,)),
        ("reward", np.float64, ()),
        ("success", np.bool_, ()),
    ]
    return np.dtype(fields, align=True)


class Simulation:
    """One of the tasks, by name. Episodes begin at a given state, and step as panda-gym does."""

    def __init__(self, task: str, *, pictures: bool = False) -> None:
        with quiet():
            core, robots, simulators = (
                importlib.import_module(f"panda_gym.{name}")
                for name in ("envs.core", "envs.robots.panda", "pybullet")
            )
            module = importlib.import_module(f"panda_gym.envs.tasks.{task.replace('-', '_')}")
            simulator = _repaired(simulators.PyBullet, pictures)()
            closed = task not in settings.WITH_GRIPPER
            arm = _lagging(robots.Panda)(simulator, block_gripper=closed, base_position=np.array(robot.BASE))
            own = getattr(module, task.title().replace("-", ""))(simulator)
            self.env = core.RobotTaskEnv(arm, own)
        self.close = weakref.finalize(self, simulator.close)
        self._client = simulator.physics_client
        self._client.setPhysicsEngineParameter(deterministicOverlappingPairs=1)
        self._arm, self._object = (self.env.sim._bodies_idx[name] for name in ("panda", "object"))

    def carry_out(self, row: Any) -> None:
        """Begin an episode or make a step, as the row requests, and write the results into the row."""
        self.env.task.goal = row["desired_goal"].astype(np.float64)
        if row["begin"]:
            self._begin(row["start"])
            observed = self.env._get_obs()
        else:
            observed, row["reward"], row["success"], _, _ = self.env.step(row["action"])
        row["observation"], row["achieved_goal"] = observed["observation"], observed["achieved_goal"]
        row["state"] = self._state()

    def picture(self) -> npt.NDArray[np.uint8]:
        """A picture by a camera beside the table, with the goal."""
        task = self.env.task
        if len(task.goal) == 4:
            above = (0.0, 0.0, 1.5 * task.object_size)
            self.env.sim.set_base_pose("target", np.array(above), task.goal)
        else:
            self.env.sim.set_base_pose("target", task.goal, np.array(_UPRIGHT))
        image: npt.NDArray[np.uint8] = self.env.render()
        return image

    def _begin(self, state: Rows) -> None:
        self.env.robot.set_joint_neutral()
        self.env.robot.reported_position = None
        self._client.resetBasePositionAndOrientation(self._object, _AWAY, _UPRIGHT)
        self._client.performCollisionDetection()
        joints = len(JOINTS)
        angles, speeds, position, quaternion, velocity, angular = np.split(
            state, np.cumsum([joints, joints, 3, 4, 3])
        )
        if speeds.any():
            self._put_joints(angles - speeds * self.env.sim.timestep, speeds)
            self.env.robot.reported_position = self.env.robot.get_ee_position()
        self._put_joints(angles, speeds)
        self._client.resetBasePositionAndOrientation(self._object, position, quaternion)
        self._client.resetBaseVelocity(self._object, velocity, angular)

    def _put_joints(self, angles: Rows, speeds: Rows) -> None:
        for joint, angle, speed in zip(JOINTS, angles, speeds, strict=True):
            self._client.resetJointState(self._arm, joint, angle, speed)

    def _state(self) -> Rows:
        joints = self._client.getJointStates(self._arm, JOINTS)
        pose = self._client.getBasePositionAndOrientation(self._object)
        motion = self._client.getBaseVelocity(self._object)
        return np.concatenate([*zip(*(joint[:2] for joint in joints), strict=True), *pose, *motion])


def _lagging(base: Any) -> Any:
    """panda-gym's arm, whose hand's position is one simulator step old, also after joints were set.

    Displacements start from the position that PyBullet reports, which is usually one step old. Right after
    joints are set it would be the present one.
    """

    class Lagging(base):  # type: ignore[misc]
        reported_position: Rows | None = None

        def get_ee_position(self) -> Rows:
            position: Rows = (
                super().get_ee_position() if self.reported_position is None else self.reported_position
            )
            return position

        def set_action(self, action: Any) -> None:
            super().set_action(action)
            self.reported_position = None

    return Lagging


def _repaired(base: Any, pictures: bool) -> Any:
    """panda-gym's simulator with our texture, and with visible shapes only where pictures are taken."""

    class Repaired(base):  # type: ignore[misc]
        def create_box(self, body_name: str, *args: Any, texture: str | None = None, **options: Any) -> None:
            super().create_box(body_name, *args, **options)
            if texture is not None and pictures:
                with tempfile.TemporaryDirectory() as folder:
                    drawn = self.physics_client.loadTexture(_faces(Path(folder) / texture))
                colour = options.get("rgba_color", np.ones(4))
                body = self._bodies_idx[body_name]
                self.physics_client.changeVisualShape(body, -1, textureUniqueId=drawn, rgbaColor=colour)

        def loadURDF(self, body_name: str, **options: Any) -> None:  # noqa: N802
            ignored = 0 if pictures else self.physics_client.URDF_IGNORE_VISUAL_SHAPES
            super().loadURDF(body_name, flags=ignored, **options)

    return Repaired


def _faces(path: Path) -> str:
    """Draw a texture that gives each side of PyBullet's box, a square of a 4 x 4 grid, another colour."""
    images: Any = importlib.import_module("matplotlib.image")
    column, row = np.meshgrid(np.repeat(np.arange(4), 16), np.repeat(np.arange(4), 16))
    colours = np.stack(
        [np.choose(column, (1.0, 0.1, 0.6, 0.0)), row % 2, np.choose(column, (0, 1, 0, 1))], -1
    )
    images.imsave(path, 0.2 + 0.7 * colours)
    return str(path)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep PyBullet's greetings off the terminal. Whatever else is written meanwhile is written afterwards.

    C code prints them, so they are caught at the process's file descriptors, not at Python's streams.
    """
    ends = (1, 2)
    try:
        kept = [os.dup(end) for end in ends]
    except OSError:  # there is no output at all
        yield
        return
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        caught: tuple[IO[bytes], ...] = (out, err)
        _flush()
        for end, file in zip(ends, caught, strict=True):
            os.dup2(file.fileno(), end)
        try:
            yield
        finally:
            _flush()
            for end, own, file in zip(ends, kept, caught, strict=True):
                os.dup2(own, end)
                os.close(own)
                file.seek(0)
                if written := _GREETINGS.sub(b"", file.read()):
                    os.write(end, written)


def _flush() -> None:
    """Write out what Python and C have buffered."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # None, detached or closed
            stream.flush()
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).fflush(None)
