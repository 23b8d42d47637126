"""Pictures of Goal2D: agents, their steps and their goals. Matplotlib is imported by those who draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from augury.envs.base import Panel
from augury.transition import Transition

STRETCH = 6
"""Steps are drawn this many times as long as they are: a real one is hardly longer than a dot."""
PANEL = Panel(
    height=3.45,
    copies=4,
    legend=f"dot: agent, dotted to its goal; arrow: its step, {STRETCH} times as long; ★: the step succeeds",
)
_AGENT, _GOAL, _WALL, _SUCCESS = "#0072B2", "#009E73", "0.8", "#E69F00"


def draw(axes: Any, transitions: Transition, *, radius: float, limit: float) -> None:
    """Each transition with its goal of this radius, in a plane with this limit."""
    from matplotlib.patches import Circle

    start, goal = transitions.observation[:, :2], transitions.observation[:, 2:]
    end = transitions.next_observation[:, :2]
    for line in zip(start, goal, strict=True):
        axes.plot(*np.transpose(line), linestyle=":", linewidth=1, color="0.6", zorder=1)
    for centre in goal:
        axes.add_patch(Circle(centre, radius, color=_GOAL, zorder=2))
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
    won = end[transitions.terminated]
    axes.scatter(
        won[:, 0], won[:, 1], s=90, marker="*", color=_SUCCESS, edgecolor="black", linewidth=0.5, zorder=5
    )
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    for spine in axes.spines.values():
        spine.set_color(_WALL)
