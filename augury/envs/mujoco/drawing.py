"""Pictures of robots: the pose in which a transition begins. Matplotlib is imported by those who draw."""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy.typing as npt

from augury.envs.mujoco.rendering import Camera
from augury.transition import Transition

PIXELS = 480


class View(NamedTuple):
    """From where a robot is seen."""

    azimuth: float
    elevation: float
    distance: float
    height: float

    @classmethod
    def of(cls, model: mujoco.MjModel) -> View:
        """One that has all of a model in sight."""
        return cls(120, -20, 1.5 * model.stat.extent, model.stat.center[2])

    @property
    def camera(self) -> mujoco.MjvCamera:
        camera = mujoco.MjvCamera()
        camera.azimuth, camera.elevation, camera.distance = self.azimuth, self.elevation, self.distance
        camera.lookat[:] = (0, 0, self.height)
        return camera


def draw_pose(axes: Any, model: mujoco.MjModel, qpos: npt.ArrayLike, view: View | None = None) -> None:
    """A model in a pose."""
    with Camera(model, PIXELS, PIXELS) as camera:
        axes.imshow(camera.picture(qpos, (view or View.of(model)).camera))
    axes.set(xticks=(), yticks=())


def caption(transitions: Transition, number: int = 0) -> str:
    """Reward and velocities of a transition."""
    speeds = [
        f"{name[0]} {values[number]:+.2f} m/s"
        for name, values in transitions.extras.items()
        if name.endswith("velocity")
    ]
    return "   ".join([f"reward {transitions.reward[number]:.2f}", *speeds])
