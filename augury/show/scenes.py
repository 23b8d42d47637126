"""A picture of a relabelling: observed scenes above augmented ones, in which only the goal is another."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jax
import mujoco
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from augury.augmentations.base import Augmentation
from augury.envs.mujoco.rendering import Camera
from augury.envs.panda import settings as panda_settings
from augury.envs.panda.goals import RotationTask
from augury.envs.panda.robot import NEUTRAL
from augury.envs.panda.scenery import camera
from augury.envs.panda.tasks import PandaTask
from augury.runs.files import replacing
from augury.transition import Observation, Transition
from augury.verify.simulators import source_of
from augury.verify.validity import augment

WIDTH, HEIGHT = 720, 600
RING = 34
"""Pixels around a goal: the thing's shadow alone is easily overlooked."""
EPISODES = 16
"""Among which each of the transitions that are drawn is looked for."""
NEAR = 0.05
"""Metres from the thing at which the hand has reached it."""
NOISE = 0.4
"""Of its actions, so that scenes differ."""
OBSERVED, AUGMENTED = "#0072B2", "#D55E00"

_BESIDE = np.array([-0.05, -0.05, 0.0])
"""To the left, for that camera."""

Point = npt.NDArray[Any]


def draw_scenes(
    title: str, task: PandaTask, augmentation: Augmentation, path: Path, *, transitions: int, seed: int
) -> None:
    """Draw a few observed scenes and what an augmentation makes of them into a PNG."""
    observed = _chosen(task, transitions, seed)
    augmented = augment(augmentation, observed, seed)
    poses = np.asarray(observed.extras["state"])[:, : task.model.nq]
    figure = Figure(figsize=(3.5 * transitions, 7.3), layout="constrained")
    grid = figure.subplots(2, transitions, squeeze=False)
    with Camera(task.scene, WIDTH, HEIGHT) as lens:
        for pose, (above, below), before, after in zip(
            poses, grid.T, *(rows.observation["desired_goal"] for rows in (observed, augmented)), strict=True
        ):
            _draw(above, lens, task, pose, before, OBSERVED)
            _draw(below, lens, task, pose, after, AUGMENTED)
            _ring(below, task, before, OBSERVED, "dashed")
    for axes_row, rows, kind in zip(grid, (observed, augmented), ("observed", "augmented"), strict=True):
        for number, axes in enumerate(axes_row):
            axes.set_title(f"{kind} transition {number + 1}", fontsize=10)
            axes.set_xlabel(_caption(rows, number), fontsize=9)
            axes.set(xticks=(), yticks=())
    figure.suptitle(title, fontsize=10)
    figure.supxlabel(_legend(task), fontsize=9)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=160)


def _chosen(task: PandaTask, count: int, seed: int) -> Transition:
    """Transitions of different episodes, each where the hand is nearest to the thing."""
    names = [number.name for number in panda_settings.table(task.goals)]
    hand, thing = ([names.index(f"{of} {axis}") for axis in "xyz"] for of in ("hand", "object"))
    generator = np.random.default_rng(seed)

    def reach(observation: Observation) -> Any:
        numbers = observation["observation"]
        wanted = generator.normal(0, NOISE, (len(numbers), len(task.action_low)))
        way = numbers[:, thing] - numbers[:, hand]
        # Once there it only jostles: to press on would mostly push the thing off the table.
        wanted[:, :3] += np.where(np.linalg.norm(way, axis=1, keepdims=True) > NEAR, 10 * way, 0)
        return np.clip(wanted, task.action_low, task.action_high)

    # So many are one episode in each of `EPISODES * count` environments, side by side.
    collected = source_of(task).collect(EPISODES * count * task.horizon, reach, seed)
    numbers = collected.observation["observation"]
    away = np.linalg.norm(numbers[:, hand] - numbers[:, thing], axis=1)
    if not isinstance(task.goals, RotationTask):
        # Rather of a thing that stays on the table: else goals of hindsight would be out of the picture.
        away += np.asarray(collected.extras["final_achieved_goal"])[:, 2] < 0
    best = [number + count * away[number::count].argmin() for number in range(count)]
    chosen: Transition = jax.tree.map(lambda leaf: leaf[np.array(best)], collected)
    return chosen


def _draw(axes: Axes, lens: Camera, task: PandaTask, pose: Point, goal: Point, colour: str) -> None:
    target = task.target(goal)
    axes.imshow(lens.picture(pose, _view(), target))
    if not isinstance(task.goals, RotationTask):
        _ring(axes, task, goal, colour)
        return
    # Turns are too small to be seen from there: the thing as it is beside its goal, and the arm out of sight.
    beside = np.concatenate([NEUTRAL, (0, 0), target[0] + _BESIDE, pose[-4:]])
    near = lens.picture(beside, _close_up(target[0] + _BESIDE / 2), target)
    inset = axes.inset_axes((0.58, 0.0, 0.42, 0.42 * WIDTH / HEIGHT / 1.5))
    cut = (HEIGHT - round(WIDTH / 1.5)) // 2
    inset.imshow(near[cut:-cut])
    inset.set(xticks=(), yticks=())
    for spine in inset.spines.values():
        spine.set(edgecolor=colour, linewidth=1.6)


def _ring(axes: Axes, task: PandaTask, goal: Point, colour: str, line: str = "solid") -> None:
    """Around a goal that is a place."""
    if not isinstance(task.goals, RotationTask):
        centre = _pixel(_view(), task.scene, goal)
        ring = Circle(centre, RING, fill=False, linewidth=1.6, edgecolor=colour, linestyle=line)
        axes.add_patch(ring)


def _caption(rows: Transition, number: int) -> str:
    reached = "reached" if rows.terminated[number] else "not reached"
    return f"reward {rows.reward[number]:.0f}, goal {reached}"


def _legend(task: PandaTask) -> str:
    if isinstance(task.goals, RotationTask):
        return "small: the cube as it is, and as a shadow as it shall be turned"
    return "ring: the goal, a shadow of the thing; dashed: where it was observed"


def _view() -> mujoco.MjvCamera:
    """As panda-gym looks, but with room for the whole arm, and for goals out of its reach."""
    view = camera()
    view.distance, view.azimuth, view.elevation = 1.65, 140.0, -36.0
    view.lookat[:] = -0.06, 0.0, 0.14
    return view


def _close_up(place: Point) -> mujoco.MjvCamera:
    view = camera()
    view.distance = 0.26
    view.lookat[:] = place
    return view


def _pixel(view: mujoco.MjvCamera, model: mujoco.MjModel, place: Point) -> tuple[float, float]:
    """Where a picture shows a place."""
    azimuth, elevation = math.radians(view.azimuth), math.radians(view.elevation)
    level = np.array([math.cos(azimuth), math.sin(azimuth), 0.0])
    vertical = np.array([0.0, 0.0, 1.0])
    ahead = math.cos(elevation) * level + math.sin(elevation) * vertical
    up = math.cos(elevation) * vertical - math.sin(elevation) * level
    away = place - view.lookat + view.distance * ahead
    scale = HEIGHT / 2 / math.tan(math.radians(model.vis.global_.fovy) / 2) / (away @ ahead)
    return WIDTH / 2 + scale * (away @ np.cross(ahead, up)), HEIGHT / 2 - scale * (away @ up)
