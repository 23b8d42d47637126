"""How fast a fleet learns on environments that run on the host, and where its time goes.

python benchmarks/host_fleet.py [panda-push] [--agents 16 64 128] [--environments 1 8]

DDPG Push with translate-goal, m = α = 1 and the paper's settings. Beside the fleet's speed stand what its
simulation alone would allow, and its updates alone: where they overlap, the slower decides.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import jax
import numpy as np
import tyro

from augury.fleet import Arm, resolved, use_all_cores
from augury.fleet.trainers import trainer_for

SECONDS = 8.0


def main(
    environment: Annotated[str, tyro.conf.Positional] = "panda-push",
    agents: tuple[int, ...] = (16, 64, 128),
    environments: tuple[int, ...] = (1, 8),
) -> None:
    """Print a table of agent-steps a second."""
    use_all_cores()
    device = jax.local_devices()[0].device_kind
    print(f"{device}; agent-steps/s of {environment}")
    print(f"{'agents':>8}{'envs each':>10}{'fleet':>10}{'simulation':>12}{'learning':>10}")
    for count in agents:
        for each in environments:
            row = measure(environment, count, each)
            print(
                f"{count:8d}{each:10d}" + "".join(f"{value:{width},.0f}" for value, width in row), flush=True
            )


def measure(environment: str, agents: int, environments: int) -> list[tuple[float, int]]:
    """Speeds of the fleet, of its simulation alone and of its updates alone."""
    arm = resolved(
        Arm(
            environment=environment,
            augmentation="panda/translate-goal",
            agents=agents,
            environments=environments,
            steps=200_000,
            random_steps=1_000,
        )
    )
    fleet: Any = trainer_for([arm])
    halves = getattr(fleet, "halves", [fleet])
    program = halves[0].program
    learner = fleet.init()
    first = fleet.first_update_round
    learner = fleet.advance(learner, 0, first + 20)
    rounds, done, began = max(1, 400 // environments), 0, time.monotonic()
    while time.monotonic() - began < SECONDS:
        learner = fleet.advance(learner, first + 20 + done, rounds)
        done += rounds
    jax.block_until_ready(jax.tree.leaves(learner))
    steps = program.collect * environments * agents
    speed = steps * done / (time.monotonic() - began)
    simulated = simulation_speed(halves, agents * environments)
    learned = learning_speed(halves, learner, steps)
    fleet.close()
    return [(speed, 10), (simulated, 12), (learned, 10)]


def simulation_speed(halves: Any, rows: int) -> float:
    """Environment steps a second, in the engines as the fleet has them."""
    engines = [half._training for half in halves]
    shape = engines[0].action_space.shape
    actions = np.random.default_rng(0).uniform(-1, 1, (20, *shape))
    began, done = time.monotonic(), 0
    while time.monotonic() - began < SECONDS / 4:
        for engine in engines:
            engine.step(actions[done % 20][: engine.num_envs])
        done += 1
    return rows * done / (time.monotonic() - began)


def learning_speed(halves: Any, agents: Any, steps: int) -> float:
    """Steps a second whose updates the devices can make, with nothing else to do."""
    owned = [own._replace(environment=None) for own in (agents if len(halves) > 1 else [agents])]
    program = halves[0].program
    width = program.collect * program.replay.layout.width + program.observations.width
    pages = [half._sheet(width) for half in halves]
    for page in pages:
        page.rows[:] = 0
    began, done = time.monotonic(), 0
    while time.monotonic() - began < SECONDS / 4:
        for place, half in enumerate(halves):
            owned[place], _ = half.compiled.round(
                owned[place], half.settings, pages[place].ready(), np.int32(2_000 + done)
            )
        jax.block_until_ready(owned)
        done += 1
    return steps * done / (time.monotonic() - began)


if __name__ == "__main__":
    tyro.cli(main)
