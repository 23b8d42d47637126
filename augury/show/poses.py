"""A picture of a robot's augmentation: observed poses beside augmented ones."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import jax
import mujoco
import numpy as np
from matplotlib.figure import Figure

from augury.augmentations.base import Augmentation
from augury.envs.mujoco.locomotion import Locomotion
from augury.envs.mujoco.rendering import Camera
from augury.runs.files import replacing
from augury.transition import Transition
from augury.verify.simulators import source_of
from augury.verify.validity import augment

PIXELS = 480
POSES = 200
"""Transitions among which each of those that are drawn is looked for."""


class View(NamedTuple):
    """From where a robot's symmetry is seen best."""

    azimuth: float
    elevation: float
    distance: float
    height: float


VIEWS = {
    "swimmer": View(90, -89, 6.0, 0.0),
    "walker2d": View(90, -8, 2.6, 0.8),
    "ant": View(90, -60, 3.4, 0.4),
    "humanoid": View(160, -15, 2.6, 1.0),
}


def draw_poses(
    title: str, task: Locomotion, augmentation: Augmentation, path: Path, *, transitions: int, seed: int
) -> None:
    """Draw a few observed poses and what an augmentation makes of them into a PNG."""
    observed = _chosen(task, transitions, seed)
    augmented = augment(augmentation, observed, seed)
    figure = Figure(figsize=(3.1 * transitions, 6.6), layout="constrained")
    grid = figure.subplots(2, transitions, squeeze=False)
    with Camera(task.model, PIXELS, PIXELS) as camera:
        for axes_row, rows, kind in zip(grid, (observed, augmented), ("observed", "augmented"), strict=True):
            poses = task.restored(np.asarray(rows.observation), {}).qpos
            for number, axes in enumerate(axes_row):
                axes.imshow(camera.picture(poses[number], _camera(task.robot)))
                axes.set_title(f"{kind} pose {number + 1}", fontsize=10)
                axes.set_xlabel(_caption(rows, number), fontsize=9)
                axes.set(xticks=(), yticks=())
    figure.suptitle(title, fontsize=10)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=160)


def _chosen(task: Locomotion, count: int, seed: int) -> Transition:
    """Transitions of a robot that has moved far from its first pose, but has not fallen."""
    collected = source_of(task).collect(POSES * count, None, seed)
    poses = task.restored(np.asarray(collected.observation), {}).qpos
    far = np.where(collected.terminated, -np.inf, np.abs(poses - task.model.qpos0).sum(1))
    best = [number + count * far[number::count].argmax() for number in range(count)]
    chosen: Transition = jax.tree.map(lambda leaf: leaf[np.array(best)], collected)
    return chosen


def _caption(rows: Transition, number: int) -> str:
    speeds = [f"{name[0]} {values[number]:+.2f} m/s" for name, values in rows.extras.items()]
    return "   ".join([f"reward {rows.reward[number]:.2f}", *speeds])


def _camera(robot: str) -> mujoco.MjvCamera:
    camera, view = mujoco.MjvCamera(), VIEWS[robot]
    camera.azimuth, camera.elevation, camera.distance = view.azimuth, view.elevation, view.distance
    camera.lookat[:] = (0, 0, view.height)
    return camera
