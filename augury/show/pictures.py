"""A picture of an augmentation: observed transitions beside augmented ones, as in the paper's Figure 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from augury import augmentations, envs
from augury.envs import goal2d
from augury.envs.goal2d import Goal2D
from augury.envs.mujoco.locomotion import Locomotion
from augury.envs.panda.reference.panda_gym import PandaGym
from augury.envs.panda.tasks import PandaTask
from augury.errors import UserError
from augury.runs.files import replacing
from augury.show.poses import draw_poses
from augury.show.scenes import draw_scenes
from augury.transition import Transition

STRETCH = 6
"""Steps are drawn this many times as long as they are: a real one is hardly longer than a dot."""
_AGENT, _GOAL, _WALL, _SUCCESS = "#0072B2", "#009E73", "0.8", "#E69F00"


def draw_augmentation(
    name: str,
    path: Path,
    environment: str | None = None,
    *,
    transitions: int = 3,
    copies: int = 4,
    seed: int = 0,
) -> None:
    """Draw a few observed transitions and what an augmentation makes of them into a PNG."""
    entry, _ = augmentations.parse(name)
    environment = entry.home if environment is None else environment
    where = envs.make(environment)
    entry.require(where.name)
    function = augmentations.make(name, environment if entry.takes_task else None)
    place = "" if environment == entry.environment else f" on {environment}"
    title = f"{name}{place}\n{entry.summary}"
    if isinstance(where, Locomotion):
        draw_poses(title, where, function, path, transitions=transitions, seed=seed)
        return
    if isinstance(where, PandaTask):
        draw_scenes(title, where, function, path, transitions=transitions, seed=seed)
        return
    if isinstance(where, PandaGym):
        raise UserError(f"there are no pictures of {environment}: choose {PandaTask(where.goals).name}")
    assert isinstance(where, Goal2D)
    observe_key, copy_key = jax.random.split(jax.random.key(seed))
    observed = _random_transitions(where, observe_key, transitions)
    keys = jax.random.split(copy_key, (transitions, copies))
    repeated = jax.tree.map(lambda leaf: jnp.repeat(leaf[:, None], copies, 1), observed)
    augmented = jax.vmap(jax.vmap(function))(keys, repeated)

    figure = Figure(figsize=(3.1 * transitions, 6.9), layout="constrained")
    grid = figure.subplots(2, transitions, sharex=True, sharey=True, squeeze=False)
    for column, (above, below) in enumerate(grid.T):
        _draw(above, _rows(observed, column, column + 1))
        _draw(below, jax.tree.map(lambda leaf: leaf[0], _rows(augmented, column, column + 1)))
        above.set_title(f"observed transition {column + 1}", fontsize=10)
        below.set_title(f"{copies} augmented from it", fontsize=10)
    figure.suptitle(title, fontsize=10)
    figure.supxlabel(
        f"dot: agent, dotted to its goal; arrow: its step, {STRETCH} times as long; ★: the step succeeds",
        fontsize=9,
    )
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=160)


def _random_transitions(environment: Goal2D, key: Any, count: int) -> Transition:
    """Transitions of Goal2D in random directions."""
    reset_key, action_key = jax.random.split(key)
    observation = jax.vmap(environment.reset)(jax.random.split(reset_key, count))
    # Long steps, whose direction can be seen.
    low = jnp.array([0.6, 0.0])
    action = jax.random.uniform(action_key, (count, 2), minval=low, maxval=goal2d.ACTION_HIGH)
    next_observation, reward, terminated = goal2d.step(observation, action)
    truncated = jnp.zeros(count, bool)
    return Transition(observation, action, reward, next_observation, terminated, truncated, {})


def _rows(transitions: Transition, first: int, last: int) -> Transition:
    rows: Transition = jax.tree.map(lambda leaf: np.asarray(leaf[first:last]), transitions)
    return rows


def _draw(axes: Axes, shown: Transition) -> None:
    start, goal, end = shown.observation[:, :2], shown.observation[:, 2:], shown.next_observation[:, :2]
    for line in zip(start, goal, strict=True):
        axes.plot(*np.transpose(line), linestyle=":", linewidth=1, color="0.6", zorder=1)
    for centre in goal:
        axes.add_patch(Circle(centre, goal2d.GOAL_RADIUS, color=_GOAL, zorder=2))
    arrow = STRETCH * (end - start)
    arrows = axes.quiver(
        *start.T,
        *arrow.T,
        angles="xy",
        scale_units="xy",
        scale=1,
        color=_AGENT,
        width=0.012,
        zorder=3,
        clip_on=False,
    )
    arrows.set_in_layout(False)
    axes.scatter(start[:, 0], start[:, 1], s=16, color=_AGENT, zorder=4)
    won = end[shown.terminated]
    axes.scatter(
        won[:, 0], won[:, 1], s=90, marker="*", color=_SUCCESS, edgecolor="black", linewidth=0.5, zorder=5
    )
    limit = goal2d.POSITION_LIMIT
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    for spine in axes.spines.values():
        spine.set_color(_WALL)
