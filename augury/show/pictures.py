"""A picture of an augmentation: observed transitions beside augmented ones, as in the paper's Figure 1.

What a transition looks like is the environment's affair, its method `draw`. Here transitions are chosen,
augmented and laid out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure

from augury.envs import Panel
from augury.errors import UserError
from augury.files import replacing
from augury.transition import Transition
from augury.verify.base import Policy
from augury.verify.simulators import source_of
from augury.verify.subjects import Subject
from augury.verify.validity import augment


def draw_augmentation(
    augmentation: Any,
    path: Path,
    environment: Any = None,
    *,
    transitions: int = 3,
    seed: int = 0,
) -> None:
    """Draw a few observed transitions and what an augmentation makes of them into a PNG.

    The augmentation and the environment are names, `module:name`, or objects.
    """
    subject = Subject.of(augmentation, environment)
    where, called = subject.environment, source_of(subject.environment).name
    if not hasattr(where, "draw"):
        raise UserError(f"there are no pictures of {called}: give it a method draw(axes, transitions)")
    panel = getattr(where, "panel", Panel())
    observed = _chosen(where, transitions, panel.candidates, seed)
    augmented = augment(subject.augmentation, _repeated(observed, panel.copies), seed)

    figure = Figure(figsize=(panel.width * transitions, 2 * panel.height), layout="constrained")
    grid = figure.subplots(2, transitions, sharex=True, sharey=True, squeeze=False)
    for number, (above, below) in enumerate(grid.T):
        origin = _rows(observed, slice(number, number + 1))
        made = _rows(augmented, slice(number * panel.copies, (number + 1) * panel.copies))
        where.draw(above, origin)
        if hasattr(where, "draw_augmented"):
            where.draw_augmented(below, origin, made)
        else:
            where.draw(below, made)
        above.set_title(f"observed transition {number + 1}", fontsize=10)
        several = f"{panel.copies} augmented from it"
        below.set_title(several if panel.copies > 1 else f"augmented transition {number + 1}", fontsize=10)
    place = "" if called == subject.home else f" on {called}"
    figure.suptitle(f"{subject.name}{place}\n{subject.summary}", fontsize=10)
    if panel.legend:
        figure.supxlabel(panel.legend, fontsize=9)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=160)


def _chosen(environment: Any, count: int, candidates: int, seed: int) -> Transition:
    """Observed transitions, each the one of its share of the candidates that is most worth drawing."""
    collected = source_of(environment).collect(candidates * count, _policy(environment, seed), seed)
    if hasattr(environment, "worth_drawing"):
        scores = np.asarray(environment.worth_drawing(collected))
    else:
        scores = np.random.default_rng(seed).random(len(collected.reward))
    best = [number + count * int(scores[number::count].argmax()) for number in range(count)]
    return _rows(collected, np.array(best))


def _policy(environment: Any, seed: int) -> Policy | None:
    """Random actions, unless the environment knows better ones."""
    if not hasattr(environment, "explore"):
        return None
    generator = np.random.default_rng(seed)
    return lambda observation: environment.explore(observation, generator)


def _repeated(transitions: Transition, times: int) -> Transition:
    repeated: Transition = jax.tree.map(lambda leaf: np.repeat(leaf, times, 0), transitions)
    return repeated


def _rows(transitions: Transition, chosen: Any) -> Transition:
    rows: Transition = jax.tree.map(lambda leaf: leaf[chosen], transitions)
    return rows
