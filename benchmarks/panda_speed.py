"""Environment steps a second on Push: ours against panda-gym's and against MuJoCo alone, in one run.

python benchmarks/panda_speed.py [--counts 1 16 64] [--rows 64 512]

- *A core*: few environments, single and in Gymnasium's vectors, each in one thread. A second is one of
  processor time, of all threads and of AsyncVectorEnv's workers too: so what else runs on a machine matters
  little, and waiting costs nobody anything. Needs Linux, for the workers' clocks.
- *All cores*: many environments, by the clock on the wall, so the machine should be idle. `mujoco.rollout`
  alone repeats steps that our engine made, without control, observations, rewards and new episodes: no engine
  on it can be faster. panda-gym runs in a process a core.

All take turns under uniform actions, and the best turn counts. Without panda-gym it takes no part.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt
import tyro
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from augury.envs.mujoco.physics import Rollout, available_cores
from augury.envs.panda.goals import GOAL_TASKS
from augury.envs.panda.reference.panda_gym import PandaGym
from augury.envs.panda.tasks import PANDA_TASKS, PandaTask

SECONDS = 2.0
"""That a turn takes."""
SAME_STEP = AutoresetMode.SAME_STEP
REPEATED = 20
"""Steps that turns repeat."""
WITH_PANDA_GYM = importlib.util.find_spec("panda_gym") is not None


class Contestant(NamedTuple):
    """One that steps."""

    engine: Any
    step: Callable[[Any], Any]
    environments: int = 1
    workers: tuple[int, ...] = ()
    """Processes beside this one that work for it."""

    def clock(self) -> float:
        """Seconds that processors worked for it."""
        return time.process_time() + sum(time.clock_gettime((~pid << 3) | 2) for pid in self.workers)


def main(counts: tuple[int, ...] = (1, 16, 64), rows: tuple[int, ...] = (64, 512), turns: int = 3) -> None:
    """Print two tables of steps a second.

    Args:
        counts: Environments, in the table of a core.
        rows: Environments, in the table of all cores.
        turns: That each takes.
    """
    if WITH_PANDA_GYM:
        multiprocessing.set_forkserver_preload(["panda_gym"])
        hush_pybullet()
    else:
        print("panda-gym is not installed and takes no part: pip install 'augury[panda-gym]'")
    a_core(counts, turns)
    all_cores(rows, turns)


def hush_pybullet() -> None:
    """It prints a line for every environment, in worker processes too: only Python's prints are shown."""
    sys.stdout = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def a_core(counts: tuple[int, ...], turns: int) -> None:
    print("Environment steps per second of processor time (ours are so many times as fast)")
    print(f"{'environments':>12}" + "".join(f"{name:>18}" for name in on_a_core(0)))
    for count in counts:
        speeds = best({name: make() for name, make in on_a_core(count).items()}, turns, Contestant.clock)
        cells = (f"{speed:,.0f} ({speeds['ours'] / speed:.1f}×)" for speed in speeds.values())
        print(f"{count:12d}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


def all_cores(rows: tuple[int, ...], turns: int) -> None:
    print(
        f"Environment steps per second, {available_cores()} cores (share of what mujoco.rollout does alone)"
    )
    print(f"{'environments':>12}{'substeps':>10}{'rollout':>10}{'ours':>16}{'panda-gym':>12}{'Async':>12}")
    for count in rows:
        for name in ("panda-push", "panda-push-coarse"):
            speeds = best(on_all_cores(PANDA_TASKS[name], count), turns, lambda _: time.monotonic())
            alone, ours, *theirs = speeds.values()
            print(
                f"{count:12d}{PANDA_TASKS[name].pace.substeps:10d}{alone:10,.0f}"
                f"{f'{ours:,.0f} ({ours / alone:.0%})':>16}" + "".join(f"{speed:12,.0f}" for speed in theirs),
                flush=True,
            )


def on_a_core(count: int) -> dict[str, Callable[[], Contestant]]:
    """Who takes part, and how each is made."""
    ours = {
        "ours, single": lambda: single(our_own),
        "ours": lambda: vector(PANDA_TASKS["panda-push"].vector(count, threads=1)),
        "ours, coarse": lambda: vector(PANDA_TASKS["panda-push-coarse"].vector(count, threads=1)),
    }
    theirs = {
        "panda-gym": lambda: single(panda_gym),
        "Sync": lambda: vector(SyncVectorEnv([panda_gym] * count, autoreset_mode=SAME_STEP)),
        "Async": lambda: vector(asynchronous(count)),
    }
    return {**ours, **theirs} if WITH_PANDA_GYM else ours


def on_all_cores(task: PandaTask, count: int) -> dict[str, Contestant]:
    """The ceiling, ours, and panda-gym in a process a core: by our reference engine, and by Gymnasium's."""
    ours = {"rollout": rollout_alone(task, count), "ours": vector(task.vector(count))}
    if not WITH_PANDA_GYM:
        return ours
    cores = available_cores()
    return {
        **ours,
        "panda-gym": vector(PandaGym(GOAL_TASKS["push"]).vector(cores)),
        "Async": vector(asynchronous(cores)),
    }


def rollout_alone(task: PandaTask, count: int) -> Contestant:
    """The simulator on steps that our engine made, and nothing besides."""
    engine = task.vector(count)
    engine.reset(seed=0)
    made = []
    for action in uniform(count):
        made.append((engine.state()["rows"], task.control(engine.moment, action)))
        engine.step(action)
    engine.close()
    physics, steps = task.physics(), itertools.cycle(made)
    assert isinstance(physics, Rollout)
    return Contestant(physics, lambda _: physics.simulate(*next(steps)), count)


def asynchronous(count: int) -> AsyncVectorEnv:
    return AsyncVectorEnv([panda_gym] * count, context="forkserver", autoreset_mode=SAME_STEP)


def vector(engine: Any) -> Contestant:
    """Many environments, that start again by themselves."""
    engine.reset(seed=0)
    workers = tuple(process.pid for process in getattr(engine, "processes", ()))
    return Contestant(engine, engine.step, engine.num_envs, workers)


def single(make: Callable[[], gymnasium.Env[Any, Any]]) -> Contestant:
    """One alone, as an SB3 script has it, started again when an episode is over."""
    env = make()
    env.reset(seed=0)

    def step(actions: Any) -> None:
        _, _, terminated, truncated, _ = env.step(actions[0])
        if terminated or truncated:
            env.reset()

    return Contestant(env, step)


def our_own() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("augury:augury/PandaPush-v0")


def panda_gym() -> gymnasium.Env[Any, Any]:
    """panda-gym's own environment, made where it runs."""
    importlib.import_module("panda_gym")
    return gymnasium.make("PandaPush-v3")


def best(asked: dict[str, Contestant], turns: int, clock: Callable[[Contestant], float]) -> dict[str, float]:
    """Steps a second of each, the best of its turns."""
    for contestant in asked.values():
        speed(contestant, SECONDS / 10, clock)
    taken = [
        {name: speed(contestant, SECONDS, clock) for name, contestant in asked.items()} for _ in range(turns)
    ]
    for contestant in asked.values():
        contestant.engine.close()
    return {name: max(turn[name] for turn in taken) for name in asked}


def speed(contestant: Contestant, seconds: float, clock: Callable[[Contestant], float]) -> float:
    """Of one of them."""
    actions = uniform(contestant.environments)
    began, done = clock(contestant), 0
    while clock(contestant) - began < seconds:
        contestant.step(actions[done % REPEATED])
        done += 1
    return float(done * contestant.environments / (clock(contestant) - began))


def uniform(count: int) -> npt.NDArray[np.float32]:
    """Actions of some steps."""
    return np.random.default_rng(0).uniform(-1, 1, (REPEATED, count, 3)).astype(np.float32)


if __name__ == "__main__":
    tyro.cli(main)
