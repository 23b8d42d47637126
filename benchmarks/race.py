"""Races replayed: how often the best is lost, how often another wins, and what is saved.

    python benchmarks/race.py [--replays 200] [--curves results/advice/curves.npz]

Recorded: the arms of each study on Goal2D in `results/`, 50 agents of which 10 race, the same seeds of every
arm. Simulated: logistic learning curves, 1,000 agents of which 10 race. The truth is the mean area of all
agents. An arm within 0.01 of the best counts as the best.

Families, with --curves: none and the augmentations with m = α = 1 of every task of the table of advice. All
of its ten agents race, in an order drawn anew for every replay, so the full study is the truth there.

    lost              no arm that counts as the best is left
    sure and wrong    one arm is left, and does not
    leader wrong      the arm with the largest mean area of those that are left does not
    full study wrong  the same, had all arms been trained to the end
    sure              one arm is left
    saved             steps that nobody trained
"""

from __future__ import annotations

import argparse
from collections import defaultdict
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


def families(path: Path) -> Iterator[tuple[str, list[tuple[Steps, Arms]]]]:
    """The tasks of each family in the table's curves, and the arms that race on each."""
    with np.load(path) as file:
        columns = {name: file[name] for name in file.files}
    tasks: dict[tuple[str, ...], Arms] = defaultdict(dict)
    steps: dict[tuple[str, ...], Steps] = {}
    for row, augmentation in enumerate(columns["augmentation"]):
        plain = not augmentation or float(columns["ratio"][row]) == float(columns["update_ratio"][row]) == 1
        if plain and float(columns["policy_data"][row]) == 1:
            asked = (str(columns[name][row]) for name in ("environment", "algorithm", "updates"))
            key = (*asked, str(columns["steps"][row, -1]))
            tasks[key][str(augmentation) or "none"] = columns["scores"][row].astype(float)
            steps[key] = columns["steps"][row]
    found: dict[str, list[tuple[Steps, Arms]]] = defaultdict(list)
    for key, arms in sorted(tasks.items()):
        if "none" in arms and len(arms) > 2:
            found[key[0].partition("(")[0]].append((steps[key], arms))
    yield from sorted(found.items())


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


def _cells(lines: list[Scores]) -> str:
    """Means over tasks, without the full study, which is the truth here."""
    means = np.delete(np.mean(lines, axis=0), 3)
    return " | ".join(f"{share:.1%}" for share in means)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--replays", type=int, default=200)
    parser.add_argument("--curves", type=Path, help="of families, beside the table of advice")
    asked = parser.parse_args()
    replays = asked.replays
    generator = np.random.default_rng(0)
    if asked.curves:
        print("| family | tasks | lost | sure and wrong | leader wrong | sure | saved |")
        print("|---|---|---|---|---|---|---|")
        every = []
        for name, tasks in families(asked.curves):
            lines = [replayed(steps, arms, replays, generator) for steps, arms in tasks]
            every += lines
            print(f"| {name} | {len(tasks)} | {_cells(lines)} |", flush=True)
        print(f"| all | {len(every)} | {_cells(every)} |")
        return
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
