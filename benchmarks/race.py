"""Races replayed: how often the best is lost, how often another wins, and what is saved.

    python benchmarks/race.py [--replays 200]

Recorded: the arms of each study on Goal2D in `results/`, 50 agents of which 10 race, the same seeds of every
arm. Simulated: logistic learning curves, 1,000 agents of which 10 race. The truth is the mean area of all
agents. An arm within 0.01 of the best counts as the best.

    lost              no arm that counts as the best is left
    sure and wrong    one arm is left, and does not
    leader wrong      the arm with the largest mean area of those that are left does not
    full study wrong  the same, had all arms been trained to the end
    sure              one arm is left
    saved             steps that nobody trained
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from augury.advise.race import replay
from augury.advise.worth import ALIKE, areas, curves
from augury.runs.scores import Scores
from augury.runs.statistics import Steps

RESULTS = Path(__file__).parents[1] / "results" / "goal2d"
AGENTS = 10
SIMULATED = 1_000
STEPS = np.arange(1, 21) * 10_000

Arms = dict[str, Scores]


def recorded() -> Iterator[tuple[str, Steps, Arms]]:
    """The arms of every study, all of which share a task."""
    for study in sorted(path for path in RESULTS.iterdir() if path.is_dir()):
        arms: Arms = {}
        for path in sorted(study.rglob("evaluations.npz")):
            with np.load(path) as file:
                steps, arms[str(path.parent.relative_to(study))] = (
                    file["steps"],
                    file["success"].astype(float),
                )
        yield study.name, steps, arms


def simulated(generator: np.random.Generator) -> Iterator[tuple[str, Steps, Arms]]:
    """Groups of arms that are hard in different ways."""
    groups: dict[str, list[dict[str, float]]] = {
        "wide apart": [{"half": half} for half in (0.15, 0.25, 0.3, 0.4, 0.6)],
        "one of eight is good": [{"half": 0.2}, *[{"half": 0.4}] * 7],
        "one of eight is hardly better": [{"half": 0.25}, *[{"half": 0.263}] * 7],
        "two, one hardly better": [{"half": 0.25}, {"half": 0.263}],
        "the best is overtaking": [
            {"half": 0.35},
            {"half": 0.2, "plateau": 0.7},
            {"half": 0.25, "plateau": 0.75},
            {"half": 0.5, "plateau": 0.9},
        ],
        "some agents fail": [{"half": 0.2, "fail": fail} for fail in (0.1, 0.15, 0.3, 0.5)],
        "hardly anything is learnt": [{"half": half} for half in (0.8, 0.9, 1.2)],
        "against the assumption: a leader forgets": [
            {"half": 0.3},
            {"half": 0.15, "forget": 1.5},
            {"half": 0.5},
        ],
    }
    for name, group in groups.items():
        yield name, STEPS, {str(place): learners(generator, **arm) for place, arm in enumerate(group)}


def learners(
    generator: np.random.Generator,
    half: float,
    plateau: float = 1.0,
    fail: float = 0.0,
    forget: float = 0.0,
) -> Scores:
    """Agents that reach half of a plateau at some share of the training, or fail, or forget later on."""
    time = STEPS / STEPS[-1]
    halves = half * np.exp(generator.normal(0, 0.25, (SIMULATED, 1)))
    scores = plateau / (1 + (halves / time) ** 5) * (generator.random((SIMULATED, 1)) >= fail)
    scores = scores - forget * np.maximum(0, time - 0.5)
    return np.clip(scores + generator.normal(0, 0.03, scores.shape), 0, 1)


def replayed(steps: Steps, arms: Arms, replays: int, generator: np.random.Generator) -> Scores:
    """The six shares of a line of the table."""
    names = np.array([*arms])
    each = np.stack([areas(curves(steps, arms[name])) for name in names])
    best = each.mean(axis=1) >= each.mean(axis=1).max() - ALIKE
    found = []
    for _ in range(replays):
        agents = generator.choice(each.shape[1], AGENTS, replace=False)
        standing = replay({name: arms[name][agents] for name in names}, steps)
        left = np.isin(names, standing.racing)
        mean = each[:, agents].mean(axis=1)
        leader = np.where(left, mean, -1).argmax()
        sure = left.sum() == 1
        lost = not best[left].any()
        found.append(
            (lost, sure and lost, not best[leader], not best[mean.argmax()], sure, 1 - standing.cost)
        )
    return np.mean(found, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--replays", type=int, default=200)
    replays = parser.parse_args().replays
    generator = np.random.default_rng(0)
    for kind, groups in (("recorded", recorded()), ("simulated", simulated(generator))):
        print(f"| {kind} | arms | lost | sure and wrong | leader wrong | full study wrong | sure | saved |")
        print("|---|---|---|---|---|---|---|---|")
        lines = []
        for name, steps, arms in groups:
            lines.append(replayed(steps, arms, replays, generator))
            print(f"| {name} | {len(arms)} | " + " | ".join(f"{share:.1%}" for share in lines[-1]) + " |")
        print("| all | | " + " | ".join(f"{share:.1%}" for share in np.mean(lines, axis=0)) + " |\n")


if __name__ == "__main__":
    main()
