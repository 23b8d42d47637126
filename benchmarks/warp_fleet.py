"""How fast a fleet learns with physics on the GPU, and where its time goes.

python benchmarks/warp_fleet.py [panda-push-warp] [--agents 64 400 800] [--processes 1]

DDPG with translate-goal, m = 1, the paper's settings, 8 environments an agent. Beside the fleet's speed stand
its simulation alone, its updates alone (what is left), and an evaluation. Several processes share the agents,
and with MPS on the GPU: one simulates while another learns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Annotated, Any

import tyro

SECONDS = 8.0
STEPS = 600_000
COLUMNS = ("fleet", "simulation", "learning", "evaluation, s", "starting, s", "memory, GiB")


def main(
    environment: Annotated[str, tyro.conf.Positional] = "panda-push-warp",
    agents: tuple[int, ...] = (64, 400, 800),
    environments: int = 8,
    collect: int = 2,
    update_ratio: float = 1.0,
    processes: int = 1,
    steps: int = STEPS,
    alone: bool = False,
) -> None:
    """Print a table of agent-steps a second."""
    if alone:
        measured = measure(environment, agents[0], environments, collect, update_ratio, steps)
        print("MEASURED", json.dumps(measured), flush=True)
        return
    print(f"agent-steps/s of {environment}, {processes} processes")
    print(f"{'agents':>8}" + "".join(f"{column:>15}" for column in COLUMNS))
    for count in agents:
        settings = (
            f"--agents {-(-count // processes)} --environments {environments} --collect {collect} "
            f"--update-ratio {update_ratio} --steps {steps} --alone"
        )
        command = [sys.executable, __file__, environment, *settings.split()]
        share = {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{0.85 / processes:.2f}"}
        running = [
            subprocess.Popen(command, env={**os.environ, **share}, stdout=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        told = [process.communicate()[0] for process in running]
        rows = [
            json.loads(line.removeprefix("MEASURED"))
            for output in told
            for line in output.splitlines()
            if line.startswith("MEASURED")
        ]
        if len(rows) < processes:
            print(f"{count:8d}  {processes - len(rows)} processes failed", flush=True)
            continue
        totals = [sum(row[column] for row in rows) for column in COLUMNS]
        totals[3] = max(row[COLUMNS[3]] for row in rows)
        totals[4] = max(row[COLUMNS[4]] for row in rows)
        print(f"{count:8d}" + "".join(f"{value:15,.1f}" for value in totals), flush=True)


def measure(
    environment: str, agents: int, environments: int, collect: int, update_ratio: float, steps: int
) -> dict[str, float]:
    """Measure one fleet, while others of its size may run."""
    import jax

    from augury.envs import make
    from augury.fleet import Arm, resolved
    from augury.fleet.trainers import trainer_for

    arm = resolved(
        Arm(
            environment=environment,
            augmentation="panda/translate-goal",
            agents=agents,
            environments=environments,
            update_ratio=update_ratio,
            collect=collect,
            steps=steps,
        )
    )
    began = time.monotonic()
    trainer: Any = trainer_for([arm])
    fleet = trainer.init()
    first = trainer.first_update_round
    fleet = trainer.advance(fleet, 0, first + 5)
    trainer.evaluate(fleet, first + 5)
    starting = time.monotonic() - began
    simulated = simulation_speed(make(environment), agents * environments)
    done, began = 0, time.monotonic()
    while (taken := time.monotonic() - began) < SECONDS:
        fleet = trainer.advance(fleet, first + 5 + done, 10)
        done += 10
    per_round = arm.round_steps * agents
    speed = per_round * done / taken
    began = time.monotonic()
    trainer.evaluate(fleet, first + 5 + done)
    evaluation = time.monotonic() - began
    learned = 1 / (1 / speed - 1 / simulated) if speed < simulated else float("inf")
    memory = (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0) / 2**30
    return dict(zip(COLUMNS, (speed, simulated, learned, evaluation, starting, memory), strict=True))


def simulation_speed(environment: Any, worlds: int) -> float:
    """Environment steps a second with random actions, and nothing else."""
    import jax
    import jax.numpy as jnp

    low, high = jnp.asarray(environment.action_low), jnp.asarray(environment.action_high)

    @jax.jit
    def steps(states: Any, key: Any) -> Any:
        def step(states: Any, key: Any) -> Any:
            action = jax.random.uniform(key, (worlds, len(low)), minval=low, maxval=high)
            states, reward, _ = jax.vmap(environment.step)(jax.random.split(key, worlds), states, action)
            return states, reward.sum()

        return jax.lax.scan(step, states, jax.random.split(key, 10))

    states = jax.vmap(environment.reset)(jax.random.split(jax.random.key(0), worlds))
    states, _ = jax.block_until_ready(steps(states, jax.random.key(1)))
    began, done = time.monotonic(), 0
    while (taken := time.monotonic() - began) < SECONDS / 4:
        states, _ = jax.block_until_ready(steps(states, jax.random.key(2 + done)))
        done += 10
    return worlds * done / taken


if __name__ == "__main__":
    tyro.cli(main)
