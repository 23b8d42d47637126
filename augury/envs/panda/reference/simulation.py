"""One of panda-gym's tasks in PyBullet, repaired: it starts, says nothing, and forgets.

What is repaired in panda-gym 3.0.7:

- Flip starts: its texture is missing from the package (its issue #71), so it is drawn here, or left out.
- Nothing is kept from one episode to the next (#94). PyBullet remembers where bodies touched, and panda-gym
  lets a new episode begin with that; PyBullet's own `restoreState` does not help. Here the object is first
  taken far away and PyBullet asked what touches, which forgets.
- Contacts are solved in a fixed order. PyBullet's own depends on where in memory things lie, so that two
  simulations part as soon as both fingers touch the table.
- So what follows depends, to the last bit, on the state that is put in and on the actions since alone.
- PyBullet greets on the terminal; it no longer does.
- Without pictures the arm has no visible shapes. That saves half of the memory, and changes no motion.

PyBullet is not imported before a simulation is made; and nothing of `augury` is that needs JAX, which must
not be where processes fork (see `panda_gym_server`).
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

from augury.envs.panda import settings as panda_settings
from augury.envs.panda.goals import GoalTask

Rows = npt.NDArray[np.float64]

JOINTS = (0, 1, 2, 3, 4, 5, 6, 9, 10)
"""PyBullet's numbers of the arm's seven joints and the two fingers'."""
NEUTRAL = (0.0, 0.41, 0.0, -1.85, 0.0, 2.26, 0.79, 0.0, 0.0)
"""Where panda-gym's arm begins."""
STATE_SIZE = 2 * len(JOINTS) + 13
"""Positions and velocities of the joints; place, quaternion, velocity and angular velocity of the object."""
_BASE = (-0.6, 0.0, 0.0)
_AWAY = (10.0, 10.0, 10.0)
_UPRIGHT = (0.0, 0.0, 0.0, 1.0)
_GREETINGS = re.compile(rb"(argv\[\d+\]=|pybullet build time:).*\n?")


def start_state(place: Rows) -> Rows:
    """States at the start of an episode, with the object at these places."""
    states = np.zeros((*place.shape[:-1], STATE_SIZE))
    states[..., : len(JOINTS)] = NEUTRAL
    states[..., 2 * len(JOINTS) : 2 * len(JOINTS) + 3] = place
    states[..., 2 * len(JOINTS) + 6] = 1.0
    return states


def row_type(goals: GoalTask) -> np.dtype[Any]:
    """What a simulation is asked, and what it answers."""
    observation, goal = len(panda_settings.table(goals)), goals.goal_size
    fields = [
        ("begins", np.bool_, ()),
        ("start", np.float64, (STATE_SIZE,)),
        ("action", np.float32, (panda_settings.action_size(goals),)),
        ("desired_goal", np.float32, (goal,)),
        ("state", np.float64, (STATE_SIZE,)),
        ("observation", np.float32, (observation,)),
        ("achieved_goal", np.float32, (goal,)),
        ("reward", np.float64, ()),
        ("success", np.bool_, ()),
    ]
    return np.dtype(fields, align=True)


class Simulation:
    """One of the tasks, by name. It is told where an episode begins, and steps as panda-gym does."""

    def __init__(self, task: str, *, pictures: bool = False) -> None:
        with quiet():
            core, robots, simulators = (
                importlib.import_module(f"panda_gym.{name}")
                for name in ("envs.core", "envs.robots.panda", "pybullet")
            )
            module = importlib.import_module(f"panda_gym.envs.tasks.{task.replace('-', '_')}")
            simulator = _repaired(simulators.PyBullet, pictures)()
            closed = task not in panda_settings.WITH_GRIPPER
            arm = _lagging(robots.Panda)(simulator, block_gripper=closed, base_position=np.array(_BASE))
            own = getattr(module, task.title().replace("-", ""))(simulator)
            self.env = core.RobotTaskEnv(arm, own)
        self.close = weakref.finalize(self, simulator.close)
        self._client = simulator.physics_client
        self._client.setPhysicsEngineParameter(deterministicOverlappingPairs=1)
        self._arm, self._object = (self.env.sim._bodies_idx[name] for name in ("panda", "object"))

    def carry_out(self, row: Any) -> None:
        """Begin or step, as the row says, and write down in it what came of that."""
        self.env.task.goal = row["desired_goal"].astype(np.float64)
        if row["begins"]:
            self._begin(row["start"])
            shown = self.env._get_obs()
        else:
            shown, row["reward"], row["success"], _, _ = self.env.step(row["action"])
        row["observation"], row["achieved_goal"] = shown["observation"], shown["achieved_goal"]
        row["state"] = self._state()

    def picture(self) -> npt.NDArray[np.uint8]:
        """What a camera beside the table sees, and the goal."""
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
        self.env.robot.seen_at = None
        self._client.resetBasePositionAndOrientation(self._object, _AWAY, _UPRIGHT)
        self._client.performCollisionDetection()
        joints = len(JOINTS)
        angles, speeds, place, quaternion, velocity, angular = np.split(
            state, np.cumsum([joints, joints, 3, 4, 3])
        )
        if speeds.any():
            self._put_joints(angles - speeds * self.env.sim.timestep, speeds)
            self.env.robot.seen_at = self.env.robot.get_ee_position()
        self._put_joints(angles, speeds)
        self._client.resetBasePositionAndOrientation(self._object, place, quaternion)
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
    """panda-gym's arm, which after it was moved by hand looks a moment back, as it does at other times.

    Actions count from where the hand is, and PyBullet says where it was one simulator step before.
    """

    class Lagging(base):  # type: ignore[misc]
        seen_at: Rows | None = None

        def get_ee_position(self) -> Rows:
            position: Rows = super().get_ee_position() if self.seen_at is None else self.seen_at
            return position

        def set_action(self, action: Any) -> None:
            super().set_action(action)
            self.seen_at = None

    return Lagging


def _repaired(base: Any, pictures: bool) -> Any:
    """panda-gym's simulator, with a texture of our own and with visible shapes only where they are seen."""

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
    """Keep PyBullet's greetings off the terminal; what else is written meanwhile, by anyone, comes after.

    C writes them, so they are caught where Python's streams end, at the process's own.
    """
    ends = (1, 2)
    try:
        kept = [os.dup(end) for end in ends]
    except OSError:  # there is no terminal, nor anything in its place
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
    """Let go of what Python and C hold back."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # None, gone or closed
            stream.flush()
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).fflush(None)
