"""What do signals cost? Processor seconds of a pilot and of each signal, against the training they advise on.

    python benchmarks/signals.py [--environment goal2d] [--augmentation goal2d/translate] [--agents 10]
    python benchmarks/signals.py --known          # what is known about Goal2D, as signals show it: six pilots

Everything is done twice, and the second time is counted: compiled programs are kept between runs, so they are
compiled once for an environment. What the first time took is shown beside. The training is measured on a
fraction of its length: so many rounds with updates, after one that compiles.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import tyro

from augury import augmentations
from augury.advise.pilot import Pilot, gather
from augury.advise.signals.evidence import SIGNALS, Evidence, gathered
from augury.advise.signals.measuring import measure
from augury.errors import UserError
from augury.fleet import Arm, keep_compiled, resolved
from augury.fleet.trainers import trainer_for
from augury.transition import Transition

MOST = 0.02
"""Share of the training that signals may cost."""
SHOWN = (
    "invalid",
    "relative_error",
    "added_coverage",
    "evaluation_coverage",
    "evaluation_approach",
    "evaluation_departure",
    "reward_density_ratio",
    "data_multiplier",
    "variance_ratio",
    "value_error_ratio",
    "asymmetry",
)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, of all threads, and what it gave."""
    began = time.process_time()
    result = function()
    return time.process_time() - began, result


def asked(signal: Callable[[Evidence], Any], evidence: Evidence) -> Any:
    try:
        return signal(evidence)
    except UserError as error:
        return error


def training(environment: str, rounds: int) -> float:
    """Processor seconds of one agent's whole training, without compilation."""
    arm = resolved(Arm(environment=environment, agents=1))
    with closing(trainer_for([arm])) as trainer:
        first = trainer.first_update_round
        agents = trainer.advance(trainer.init(), 0, 1)
        random, agents = timed(lambda: trainer.advance(agents, 1, first))
        learning, _ = timed(lambda: trainer.advance(agents, first + 1, rounds))
    return random + learning / rounds * (arm.rounds - first)


def identity(key: Any, transition: Transition) -> Transition:
    del key
    return transition


def off(key: Any, transition: Transition) -> Transition:
    """Every step ends 0.01 too far to the right."""
    del key
    return transition._replace(next_observation=transition.next_observation.at[0].add(0.01))


def show_known(pilots: int, ratio: float) -> None:
    """A table of medians over pilots of Goal2D; in brackets, how many pilots know."""
    kinds: list[Any] = ["goal2d/translate", "goal2d/rotate", identity, off]
    found: list[list[dict[str, Any]]] = [
        [measure(pilot, kind, ratio=ratio, seed=seed).values() for kind in kinds]
        for seed, pilot in ((seed, gather("goal2d", seed=seed)) for seed in range(pilots))
    ]
    print("| signal |", " | ".join(augmentations.reference(kind).split(":")[-1] for kind in kinds), "|")
    print("|---" * (1 + len(kinds)) + "|")
    for name in SHOWN:
        cells = []
        for number in range(len(kinds)):
            values = [own[number][name] for own in found if own[number][name] is not None]
            few = f" ({len(values)} of {pilots})" if len(values) < pilots else ""
            cells.append(f"{np.median(values):.2f}{few}" if values else "unknown")
        print(f"| `{name}` |", " | ".join(cells), "|")
    for name in ("evaluation_coverage", "data_multiplier"):
        more = sum(own[0][name] > own[1][name] for own in found)
        print(f"{name}: {kinds[0]} above {kinds[1]} in {more} of {pilots} pilots")


def main(
    environment: str = "goal2d",
    augmentation: str = "goal2d/translate",
    ratio: float = 4,
    agents: int = 10,
    rounds: int = 300,
    known: bool = False,
    pilots: int = 6,
) -> None:
    """Print a table."""
    keep_compiled()
    if known:
        show_known(pilots, ratio)
        return
    function = augmentations.make(augmentation, environment)

    def evidence(pilot: Pilot, seed: int) -> Evidence:
        return gathered(pilot, function, ratio=ratio, seed=seed)

    print(f"{'processor seconds':24s} {'first':>7s} {'again':>7s}")
    first, _ = timed(lambda: gather(environment))
    again, pilot = timed(lambda: gather(environment, seed=1))  # one that succeeds on Goal2D: it knows values
    total = again
    print(f"{'pilot':24s} {first:7.2f} {again:7.2f}")
    first, found = timed(lambda: evidence(pilot, 0))
    again, found = timed(lambda: evidence(pilot, 1))
    total += again
    print(f"{'augmenting, whitening':24s} {first:7.2f} {again:7.2f}")
    for name, signal in SIGNALS.items():
        first, _ = timed(lambda: asked(signal, found))  # noqa: B023
        again, _ = timed(lambda: asked(signal, found))  # noqa: B023
        total += again
        print(f"{name:24s} {first:7.2f} {again:7.2f}")
    one = training(environment, rounds)
    print(f"{'all':24s} {'':7s} {total:7.2f}")
    print(
        f"training of {agents} agents: {agents * one:.0f} ({one:.1f} each, of {rounds} rounds with updates)"
    )
    share, verdict = total / (agents * one), "below" if total < MOST * agents * one else "not below"
    print(f"share: {share:.2%}, {verdict} {MOST:.0%}; of one agent's {total / one:.1%}")


if __name__ == "__main__":
    tyro.cli(main)
