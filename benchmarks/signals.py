"""What do signals cost? Processor seconds of a pilot and of each signal, against the training they advise on.

    python benchmarks/signals.py [--environment goal2d] [--augmentation goal2d/translate] [--agents 10]

Everything is done twice, and the second time is counted: compiled programs are kept between runs, so they are
compiled once for an environment. What the first time took is shown beside. The training is measured on a
fraction of its length: so many rounds with updates, after one that compiles.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import tyro

from augury import augmentations
from augury.advise.pilot import Pilot, gather
from augury.advise.signals.evidence import SIGNALS, Evidence, gathered
from augury.errors import UserError
from augury.fleet import Arm, keep_compiled, resolved
from augury.fleet.trainers import trainer_for

MOST = 0.02
"""Share of the training that signals may cost."""


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


def main(
    environment: str = "goal2d",
    augmentation: str = "goal2d/translate",
    ratio: float = 4,
    agents: int = 10,
    rounds: int = 300,
) -> None:
    """Print a table."""
    keep_compiled()
    function = augmentations.make(augmentation, environment)

    def evidence(pilot: Pilot, seed: int) -> Evidence:
        return gathered(pilot, function, ratio=ratio, update_ratio=1, seed=seed)

    print(f"{'processor seconds':24s} {'first':>7s} {'again':>7s}")
    first, pilot = timed(lambda: gather(environment))
    again, _ = timed(lambda: gather(environment, seed=1))
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
