"""How far a step on MuJoCo Warp ends from the same step on MuJoCo.

python benchmarks/warp_fidelity.py [--tasks panda-push …] [--worlds 64] [--steps 40]

Harder than `panda_fidelity`, and without panda-gym: hands explore on the host, every other step towards the
object. Each state that they visit is given to both engines with the same action. Without a GPU Warp runs on
the CPU: slowly, with the same kernels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from augury.envs import make
from augury.envs.warp.manipulation import World

TASKS = ("panda-push", "panda-slide", "panda-pick-and-place", "panda-flip")
SHARES = (0.5, 0.9, 0.99, 1.0)


def main(tasks: tuple[str, ...] = TASKS, worlds: int = 64, steps: int = 40) -> None:
    """Print quantiles of the distances, in millimetres."""
    print(f"{worlds} worlds, {steps} steps; distance between the engines' ends, mm, at {SHARES}")
    for name in tasks:
        hands, objects, moved = compared(name, worlds, steps)
        print(
            f"{name:22s} hand {_row(hands)}   object {_row(objects)}   "
            f"where it moves ({moved.mean():.0%}) {_row(objects[moved])}",
            flush=True,
        )


def compared(name: str, worlds: int, steps: int) -> Any:
    """Distances of hands and objects after each step, and whether the object moved in it."""
    twin: Any = make(name)
    task: Any = replace(make(f"{name}-warp"), needs_gpu=False)  # type: ignore[type-var]
    step, observe = jax.jit(jax.vmap(task.step)), jax.jit(jax.vmap(task.observe))
    keys = jax.random.split(jax.random.key(0), worlds)
    engine = twin.vector(worlds, autoreset=False)
    observation, _ = engine.reset(seed=list(range(worlds)))
    generator = np.random.default_rng(0)
    rows, running = [], np.ones(worlds, bool)
    for number in range(steps):
        before = engine.moment
        uniform = generator.uniform(-1, 1, engine.action_space.shape).astype(np.float32)
        action = twin.explore(observation, generator) if number % 2 else uniform
        world = World(*(jnp.float32(part) for part in (before.qpos, before.qvel, before.goal)))
        after, *_ = step(keys, world, jnp.float32(action))
        observation, _, terminated, truncated, _ = engine.step(action)
        theirs = engine.moment.qpos[:, -7:-4]
        hand = np.asarray(observe(after)["observation"])[:, :3] - observation["observation"][:, :3]
        travelled = np.linalg.norm(theirs - before.qpos[:, -7:-4], axis=1)
        apart = np.linalg.norm(np.asarray(after.qpos)[:, -7:-4] - theirs, axis=1)
        parts = (np.linalg.norm(hand, axis=1), apart, travelled > 1e-3)
        rows.append([part[running] for part in parts])
        running &= ~(terminated | truncated)  # the host's stand still then
    return [np.concatenate(part) for part in zip(*rows, strict=True)]


def _row(distances: Any) -> str:
    if not len(distances):
        return "-"
    return " / ".join(f"{1e3 * value:.4f}" for value in np.quantile(distances, SHARES))


if __name__ == "__main__":
    tyro.cli(main)
