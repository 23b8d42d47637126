"""Are the families learned, how soon and how fast? Each with its default knobs and settings.

    python benchmarks/families.py [--agents 10] [--only pendulum maze]

Prints the IQM of evaluation episodes at the start and at the end, the steps at which it first is half of the
final one, and agent-steps per second of one core, evaluations included and compilation not.
"""

from __future__ import annotations

import argparse
import time

import jax
import numpy as np

from augury import envs
from augury.envs.families import FAMILIES
from augury.fleet import Arm, resolved, train_fleet
from augury.fleet.training import Progress
from augury.report import interquartile_mean

VARIANTS = ("family/point(discrete=True)", "family/point(reward='dense')")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agents", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=[], help="families whose name contains one of these")
    options = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    print("task                          measure   first  last  half at  agent-steps/s of a core", flush=True)
    for name in (*FAMILIES, *VARIANTS):
        if not options.only or any(one in name for one in options.only):
            print(_line(name, options.agents), flush=True)


def _line(name: str, agents: int) -> str:
    arm = resolved(Arm(environment=name, agents=agents))
    stood: list[tuple[int, float]] = []

    def watch(standing: Progress) -> None:
        if standing.evaluated is not None:
            stood.append((standing.steps, time.process_time()))

    (result,) = train_fleet([arm], watch=watch)
    measure = envs.make(name).measure
    curve = np.array([float(interquartile_mean(scores)) for scores in result.curves(measure).T])
    half = result.evaluations["steps"][np.argmax(curve >= curve[-1] / 2)]
    # From the second evaluation on: before it the program was compiled, and actions were random.
    (first, began), (last, ended) = stood[1], stood[-1]
    speed = agents * (last - first) / (ended - began)
    return f"{name:29} {measure:8} {curve[0]:6.2f} {curve[-1]:6.2f} {half:7,} {speed:10,.0f}"


if __name__ == "__main__":
    main()
