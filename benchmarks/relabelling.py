"""Is a relabelled goal rewarded as the simulator would? Collect, relabel, restore, step again, and compare.

    python benchmarks/relabelling.py [ENVIRONMENT …] [--samples 10000]

Every other transition gets a goal around what it achieved, so that both outcomes occur often; the others get
one from the task's distribution. Actions are uniform for half of the time, and else lead to the object.
The simulator is asked through `restore(observation, extras)`, so any goal environment's engine will do.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from augury.envs import ENVIRONMENTS
from augury.envs.panda.goals import GOAL_TASKS, GoalTask, task_of
from augury.envs.panda.reference.panda_gym import REFERENCES

ROWS = 16
KNOWN: dict[str, Any] = {**ENVIRONMENTS, **{reference.name: reference for reference in REFERENCES}}


def towards(observation: Any, actions: int) -> Any:
    """Actions that lead the hand to the object."""
    numbers = observation["observation"]
    first = 6 + (actions == 4)  # behind the fingers
    wanted = np.zeros((len(numbers), actions), np.float32)
    wanted[:, :3] = np.clip(10 * (numbers[:, first : first + 3] - numbers[:, :3]), -1, 1)
    return wanted


def relabelled(goals: GoalTask, achieved: Any, rng: np.random.Generator) -> Any:
    """Goals of which about half are reached."""
    anywhere: Any = goals.goal(rng.random((len(achieved), goals.draws)))
    near: Any = goals.near(rng.random((len(achieved), 3)), achieved.astype(np.float64))
    chosen: Any = np.where(rng.random((len(achieved), 1)) < 0.5, near, anywhere)
    return chosen.astype(np.float32)


def compare(name: str, samples: int) -> dict[str, float]:
    """Transitions whose relabelled reward, or end, is not the simulator's; and how well it repeats them."""
    environment, goals, rng = KNOWN[name], task_of(name), np.random.default_rng(0)
    assert goals is not None, f"{name} has no goals"
    engine, asked = environment.vector(ROWS), environment.vector(ROWS, autoreset=False)
    size = len(environment.action_low)
    observation, _ = engine.reset(seed=list(range(ROWS)))
    found = dict.fromkeys(("transitions", "reached", "wrong rewards", "wrong ends", "repeated exactly"), 0)
    furthest = 0.0
    for _ in range(-(-samples // ROWS)):
        action = rng.uniform(-1, 1, (ROWS, size)).astype(np.float32)
        action = np.where(rng.random((ROWS, 1)) < 0.5, action, towards(observation, size))
        shown, _, _, _, infos = engine.step(action)
        following = infos.get("final_obs", shown)
        goal = relabelled(goals, following["achieved_goal"], rng)
        extras = {extra: infos[extra] for extra in environment.extras}
        asked.restore({**observation, "desired_goal": goal}, extras)
        answer, reward, end, _, _ = asked.step(action)
        achieved = following["achieved_goal"]
        found["transitions"] += ROWS
        found["reached"] += int(end.sum())
        found["wrong rewards"] += int((reward != goals.reward(achieved, goal)).sum())
        found["wrong ends"] += int((end != goals.succeeded(achieved, goal)).sum())
        off = np.abs(answer["observation"] - following["observation"]).max(1)
        found["repeated exactly"] += int((off == 0).sum())
        furthest = max(furthest, float(off.max()))
        observation = shown
    engine.close()
    asked.close()
    return {**found, "largest error": furthest}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("environments", nargs="*", default=[f"panda-gym-{task}" for task in GOAL_TASKS])
    parser.add_argument("--samples", type=int, default=10_000)
    options = parser.parse_args()
    table = Table("environment", box=None)
    for name in options.environments:
        counts = compare(name, options.samples)
        if not table.row_count:
            for column in counts:
                table.add_column(column, justify="right")
        table.add_row(name, *(f"{count:,.6g}" for count in counts.values()))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
