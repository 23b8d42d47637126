"""How fast is the vector engine? Steps per second of Ants and Humanoids under random actions.

    pip install envpool        optional: it is left out where it is not installed
    python benchmarks/vector.py [--counts 1 16 64 1024] [--turns 3]

All engines take turns in one process tree, because a machine's speed drifts; the median of the turns counts.
Everyone simulates Gymnasium's own model and observes positions and velocities only, but for EnvPool's
Humanoid, which observes 376 numbers. `bare` is what the simulation alone costs: `mj_step` from states that
our engine went through, in one call for all of them on all threads.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from rich.console import Console
from rich.table import Table
from stable_baselines3.common.vec_env import SubprocVecEnv

from augury.envs.mujoco.locomotion import TASKS, Locomotion

envpool: Any = importlib.import_module("envpool") if importlib.util.find_spec("envpool") else None

BARE = 2_048
PROCESSES = 64
"""More environments than this are not given a process each."""
TURN = 1.0
"""Seconds."""

Step = Callable[[], Any]
WITHOUT = {
    "ant": {"include_cfrc_ext_in_observation": False},
    "humanoid": {
        f"include_{name}_in_observation": False for name in ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")
    },
}


def single(robot: str) -> gymnasium.Env[Any, Any]:
    """Gymnasium's environment, which observes positions and velocities only."""
    return gymnasium.make(f"{robot.capitalize()}-v5", **WITHOUT[robot])


def ours(task: Locomotion, count: int) -> tuple[Step, Callable[[], None]]:
    engine = task.vector(count)
    return _stepper(engine, engine.action_space.sample), engine.close


def gymnasiums(kind: Any, robot: str, count: int, **options: Any) -> tuple[Step, Callable[[], None]]:
    engine = kind([lambda: single(robot)] * count, **options)
    return _stepper(engine, engine.action_space.sample), engine.close


def sb3s(robot: str, count: int) -> tuple[Step, Callable[[], None]]:
    engine = SubprocVecEnv([lambda: single(robot)] * count, start_method="fork")
    return _stepper(
        engine, lambda: np.stack([engine.action_space.sample() for _ in range(count)])
    ), engine.close


def envpools(robot: str, count: int) -> tuple[Step, Callable[[], None]]:
    engine = envpool.make_gymnasium(f"{robot.capitalize()}-v4", num_envs=count)
    space = engine.action_space
    return _stepper(engine, lambda: np.stack([space.sample() for _ in range(count)])), engine.close


def _stepper(engine: Any, sample: Callable[[], Any]) -> Step:
    engine.reset()
    actions = [sample() for _ in range(16)]
    turn = iter(range(1 << 62))
    return lambda: engine.step(actions[next(turn) % 16])


def rate(step: Step, count: int) -> float:
    """Environment steps per second."""
    began, calls = time.perf_counter(), 0
    while time.perf_counter() - began < TURN or calls < 2:
        step()
        calls += 1
    return count * calls / (time.perf_counter() - began)


def bare(task: Locomotion) -> float:
    """Steps per second of the simulation alone, from states that random actions lead to."""
    engine = task.vector(64)
    engine.reset(seed=0)
    generator = np.random.default_rng(0)
    space: Any = engine.single_action_space
    rows, controls = [], []
    for _ in range(BARE // 64):
        control = generator.uniform(space.low, space.high, (64, *space.shape))
        rows.append(engine.state()["rows"])
        controls.append(control)
        engine.step(control)
    physics: Any = task.physics()
    states, actions = np.concatenate(rows), np.concatenate(controls)
    step = lambda: physics.simulate(states, actions)  # noqa: E731
    step()
    return rate(step, BARE)


def contenders(robot: str, count: int) -> dict[str, Callable[[], tuple[Step, Callable[[], None]]]]:
    found: dict[str, Callable[[], tuple[Step, Callable[[], None]]]] = {
        "augury": lambda: ours(TASKS[robot].variant("stock"), count),
        "augury, corrected": lambda: ours(TASKS[robot], count),
        "Gymnasium Sync": lambda: gymnasiums(SyncVectorEnv, robot, count),
    }
    if count <= PROCESSES:
        found["Gymnasium Async"] = lambda: gymnasiums(AsyncVectorEnv, robot, count, context="fork")
        found["SB3 Subproc"] = lambda: sb3s(robot, count)
    if envpool is not None:
        found["EnvPool"] = lambda: envpools(robot, count)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 16, 64, 1024])
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for robot in ("ant", "humanoid"):
        table = Table(title=f"{robot}: steps per second (times the engine's own)", box=None)
        table.add_column("environments")
        columns = list(contenders(robot, 1))
        for name in [*columns, "share of bare mj_step"]:
            table.add_column(name, justify="right")
        for count in options.counts:
            rates: dict[str, list[float]] = {}
            floors = []
            for _ in range(options.turns):
                floors.append(bare(TASKS[robot].variant("stock")))
                for name, make in contenders(robot, count).items():
                    step, close = make()
                    step()
                    rates.setdefault(name, []).append(rate(step, count))
                    with suppress(Exception):
                        close()
            middle = {name: statistics.median(found) for name, found in rates.items()}
            share = middle["augury"] / statistics.median(floors)
            cells = [
                f"{middle[name]:,.0f} ({middle['augury'] / middle[name]:.2f}×)" if name in middle else "–"
                for name in columns
            ]
            table.add_row(f"{count:,}", *cells, f"{share:.0%}")
            Console(width=180).print(f"{robot} {count}: {middle} bare {statistics.median(floors):,.0f}")
        Console(width=180).print(table)


if __name__ == "__main__":
    main()
