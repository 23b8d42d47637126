"""Pictures of the Panda tasks: the scene in which a transition begins, and its goal.

Matplotlib is imported by those who draw.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import numpy.typing as npt

from augury.envs.base import Panel
from augury.envs.mujoco.rendering import Camera
from augury.envs.panda import settings
from augury.envs.panda.goals import GoalTask, RotationTask
from augury.envs.panda.robot import NEUTRAL
from augury.envs.panda.scenery import camera
from augury.transition import Observation, Transition

if TYPE_CHECKING:
    from augury.envs.panda.tasks import PandaTask

WIDTH, HEIGHT = 720, 600
RING = 34
"""Pixels around a goal: the object's shadow alone is easily overlooked."""
EPISODES = 16
"""Among which each of the transitions that are drawn is looked for."""
NEAR = 0.05
"""Metres from the object at which the hand has reached it."""
NOISE = 0.4
"""Of actions that lead to the object, so that scenes differ."""
OBSERVED, AUGMENTED = "#0072B2", "#D55E00"

_BESIDE = np.array([-0.05, -0.05, 0.0])
"""To the left, for that camera."""

Point = npt.NDArray[Any]


def panel(goals: GoalTask) -> Panel:
    """Scenes are wide. Orientations are shown beside them, positions within."""
    legend = "ring: the goal, a shadow of the object; dashed: where it was observed"
    if isinstance(goals, RotationTask):
        legend = "small: the cube as it is, and as a shadow its desired orientation"
    return Panel(width=3.5, height=3.65, candidates=EPISODES * settings.HORIZON, legend=legend)


def draw(axes: Any, task: PandaTask, transitions: Transition, observed: Transition | None = None) -> None:
    """The first transition; beside its own goal that of the observed one which it was made from."""
    pose = np.asarray(transitions.extras["state"])[0, : task.model.nq]
    goal, colour = transitions.observation["desired_goal"][0], AUGMENTED if observed else OBSERVED
    with Camera(task.scene, WIDTH, HEIGHT) as lens:
        _draw_scene(axes, lens, task, pose, goal, colour)
    if observed:
        _ring(axes, task, observed.observation["desired_goal"][0], OBSERVED, "dashed")
    reached = "reached" if transitions.terminated[0] else "not reached"
    axes.set_xlabel(f"reward {transitions.reward[0]:.0f}, goal {reached}", fontsize=9)
    axes.set(xticks=(), yticks=())


def reach(goals: GoalTask, observation: Observation, generator: np.random.Generator) -> Point:
    """Actions that lead the hand to the object, which random ones rarely touch."""
    numbers = observation["observation"]
    wanted = generator.normal(0, NOISE, (len(numbers), settings.action_size(goals)))
    way = numbers[:, _position(goals, "object")] - numbers[:, _position(goals, "hand")]
    # Once there it only jostles: to press on would mostly push the object off the table.
    wanted[:, :3] += np.where(np.linalg.norm(way, axis=1, keepdims=True) > NEAR, 10 * way, 0)
    return np.clip(wanted, -1, 1)


def worth_drawing(goals: GoalTask, transitions: Transition) -> Point:
    """Most where the hand is near the object."""
    numbers = transitions.observation["observation"]
    way = numbers[:, _position(goals, "hand")] - numbers[:, _position(goals, "object")]
    away = np.linalg.norm(way, axis=1)
    if not isinstance(goals, RotationTask):
        # Rather an object that stays on the table: else goals of hindsight would be out of the picture.
        away += np.asarray(transitions.extras["final_achieved_goal"])[:, 2] < 0
    return -away


def _position(goals: GoalTask, of: str) -> list[int]:
    """Where the observation holds the position of hand or object."""
    names = [number.name for number in settings.table(goals)]
    return [names.index(f"{of} {axis}") for axis in "xyz"]


def _draw_scene(axes: Any, lens: Camera, task: PandaTask, pose: Point, goal: Point, colour: str) -> None:
    target = task.target(goal)
    axes.imshow(lens.picture(pose, _view(), target))
    if not isinstance(task.goals, RotationTask):
        _ring(axes, task, goal, colour)
        return
    # Orientations are too small to be seen from there: so the object as it is beside its goal, without arm.
    beside = np.concatenate([NEUTRAL, (0, 0), target[0] + _BESIDE, pose[-4:]])
    near = lens.picture(beside, _close_up(target[0] + _BESIDE / 2), target)
    inset = axes.inset_axes((0.58, 0.0, 0.42, 0.42 * WIDTH / HEIGHT / 1.5))
    cut = (HEIGHT - round(WIDTH / 1.5)) // 2
    inset.imshow(near[cut:-cut])
    inset.set(xticks=(), yticks=())
    for spine in inset.spines.values():
        spine.set(edgecolor=colour, linewidth=1.6)


def _ring(axes: Any, task: PandaTask, goal: Point, colour: str, line: str = "solid") -> None:
    """Around a goal that is a position."""
    from matplotlib.patches import Circle

    if not isinstance(task.goals, RotationTask):
        centre = _pixel(_view(), task.scene, goal)
        ring = Circle(centre, RING, fill=False, linewidth=1.6, edgecolor=colour, linestyle=line)
        axes.add_patch(ring)


def _view() -> mujoco.MjvCamera:
    """As panda-gym looks, but with room for the whole arm, and for goals out of its reach."""
    view = camera()
    view.distance, view.azimuth, view.elevation = 1.65, 140.0, -36.0
    view.lookat[:] = -0.06, 0.0, 0.14
    return view


def _close_up(position: Point) -> mujoco.MjvCamera:
    view = camera()
    view.distance = 0.26
    view.lookat[:] = position
    return view


def _pixel(view: mujoco.MjvCamera, model: mujoco.MjModel, position: Point) -> tuple[float, float]:
    """Where a picture shows a position."""
    azimuth, elevation = math.radians(view.azimuth), math.radians(view.elevation)
    level = np.array([math.cos(azimuth), math.sin(azimuth), 0.0])
    vertical = np.array([0.0, 0.0, 1.0])
    ahead = math.cos(elevation) * level + math.sin(elevation) * vertical
    up = math.cos(elevation) * vertical - math.sin(elevation) * level
    away = position - view.lookat + view.distance * ahead
    scale = HEIGHT / 2 / math.tan(math.radians(model.vis.global_.fovy) / 2) / (away @ ahead)
    return WIDTH / 2 + scale * (away @ np.cross(ahead, up)), HEIGHT / 2 - scale * (away @ up)
