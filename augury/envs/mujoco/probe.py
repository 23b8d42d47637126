"""What a MuJoCo environment observes, found out by trying."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import mujoco
import numpy as np
import numpy.typing as npt

from augury.envs.mujoco.quantities import Quantity, positions, velocities
from augury.errors import UserError

Array = npt.NDArray[Any]

PROBES = 4
"""States that an environment is put into."""
STEPS = 16
"""Steps that one takes which cannot be asked what it observes."""

# These change neither what is observed nor what is done.
_TRANSPARENT = (
    gymnasium.wrappers.TimeLimit,
    gymnasium.wrappers.OrderEnforcing,
    gymnasium.wrappers.PassiveEnvChecker,
)


def unwrapped(env: Any) -> Any:
    """An environment without the wrappers that `gymnasium.make` puts around it; a task, where it has one.

    Other wrappers are kept: what they show and take is what their user sees.
    """
    while isinstance(env, _TRANSPARENT) and not hasattr(type(env), "restore"):
        env = env.env
    if isinstance(env, gymnasium.Wrapper) and not hasattr(env, "restore"):
        raise UserError(
            f"{type(env).__name__} changes what is seen or done: leave it out, or give it a method "
            "restore(observation, extras)"
        )
    task = getattr(env, "task", None)
    return task if hasattr(task, "runs_in") else env  # an environment that the trainer knows


def is_mujoco(env: Any) -> bool:
    """Whether an environment has a MuJoCo model, and a state that can be set: a method for it, or `data`."""
    has_state = hasattr(env, "set_state") or isinstance(getattr(env, "data", None), mujoco.MjData)
    return isinstance(getattr(env, "model", None), mujoco.MjModel) and has_state


def set_state(env: Any, qpos: Array, qvel: Array) -> None:
    """Bring such an environment to these positions and velocities."""
    if hasattr(env, "set_state"):
        env.set_state(qpos, qvel)
    else:
        env.data.qpos[:], env.data.qvel[:] = qpos, qvel
        mujoco.mj_forward(env.model, env.data)


def observation_table(env: Any) -> tuple[Quantity, ...]:
    """What each number of such an environment's observation is: some position, or some velocity.

    Every observed number is looked for among positions and velocities, in several states. Where the
    environment has no `_get_obs`, it takes a few steps for that, and is reset.
    """
    known = positions(env.model) + velocities(env.model)
    states, seen = zip(*(_placed if hasattr(env, "_get_obs") else _stepped)(env), strict=True)
    observed = np.array(seen)
    if observed.ndim != 2:
        raise UserError(f"{type(env).__name__} must observe a vector: flatten it")
    # What is observed may have been rounded to 32 bits.
    among = np.array(states).astype(observed.dtype)
    same = (observed[:, :, None] == among[:, None]).all(0)
    if not same.any(1).all():
        place = int(np.argmin(same.any(1)))
        raise UserError(
            f"observation {place} of {type(env).__name__} is neither a position nor a velocity: "
            "give the environment a method restore(observation, extras)"
        )
    return tuple(known[place] for place in same.argmax(1))


def _placed(env: Any) -> Iterator[tuple[Array, Array]]:
    """States and what is observed in them: random ones, which the environment is put into."""
    model, generator = env.model, np.random.default_rng(0)
    before = env.data.qpos.copy(), env.data.qvel.copy()
    for _ in range(PROBES):
        qpos, qvel = generator.uniform(-0.5, 0.5, model.nq), generator.uniform(-0.5, 0.5, model.nv)
        set_state(env, qpos, qvel)
        yield np.concatenate([qpos, qvel]), np.array(env._get_obs())
    set_state(env, *before)


def _stepped(env: Any) -> Iterator[tuple[Array, Array]]:
    """The same of states that it comes to under random actions."""
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    for _ in range(STEPS):
        yield np.concatenate([env.data.qpos, env.data.qvel]), np.array(observation)
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            observation, _ = env.reset()
    env.reset()
