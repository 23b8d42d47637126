"""How often are equal arms told apart? A 95% interval should do it to one pair in twenty.

    python benchmarks/calibration.py [--trials 2000]

Both arms' agents are drawn from the same: a normal distribution, or the areas of the 50 agents of an arm of
results/goal2d, any of them. Few agents make intervals too narrow: claims about fewer than four are undecided.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import tyro

from augury.runs import results
from augury.runs.scores import Scores
from augury.runs.statistics import Bootstrap, area, difference

AGENTS = (2, 3, 4, 5, 8, 10, 20, 50)


def main(trials: int = 2_000, seed: int = 0) -> None:
    """Compare many pairs of equal arms.

    Args:
        trials: Pairs.
        seed: Of all that is drawn.
    """
    generator = np.random.default_rng(seed)
    arms = [results.read(path.parent) for path in sorted(Path("results/goal2d").glob("*/arms/*/*/run.json"))]
    areas = np.array([area(arm.evaluations["steps"], arm.curves()) for arm in arms])
    kinds: dict[str, Callable[[int], Scores]] = {
        "normal": generator.standard_normal,
        "Goal2D": lambda agents: generator.choice(generator.choice(areas), agents),
    }
    print("agents an arm", *(f"{kind:>8}" for kind in kinds))
    for agents in AGENTS:
        apart = [told_apart(draw, agents, trials) for draw in kinds.values()]
        print(f"{agents:13}", *(f"{share:8.1%}" for share in apart))


def told_apart(draw: Callable[[int], Scores], agents: int, trials: int) -> float:
    """The share of pairs whose difference has an interval without 0."""
    found = 0
    for trial in range(trials):
        first, second = np.split(draw(2 * agents), 2)
        told = difference(first, second, bootstrap=Bootstrap(seed=trial))
        found += not told.low <= 0 <= told.high
    return found / trials


if __name__ == "__main__":
    tyro.cli(main)
