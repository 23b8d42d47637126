"""What a MuJoCo environment observes, found out by trying."""

from __future__ import annotations

from typing import Any

import gymnasium
import mujoco
import numpy as np

from augury.envs.mujoco.quantities import Quantity, positions, velocities
from augury.errors import UserError

PROBES = 4


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
    """Whether this is an environment as Gymnasium's MuJoCo ones are."""
    return isinstance(getattr(env, "model", None), mujoco.MjModel) and hasattr(env, "set_state")


def observation_table(env: Any) -> tuple[Quantity, ...]:
    """What each number of such an environment's observation is: some position, or some velocity.

    Random positions and velocities are set, and every observed number is looked for among them.
    """
    model = env.model
    known = positions(model) + velocities(model)
    generator = np.random.default_rng(0)
    before = env.data.qpos.copy(), env.data.qvel.copy()
    states, seen = [], []
    for _ in range(PROBES):
        qpos, qvel = generator.uniform(-0.5, 0.5, model.nq), generator.uniform(-0.5, 0.5, model.nv)
        env.set_state(qpos, qvel)
        states.append(np.concatenate([qpos, qvel]))
        seen.append(env._get_obs())
    env.set_state(*before)
    same = (np.array(seen)[:, :, None] == np.array(states)[:, None]).all(0)
    if not same.any(1).all():
        place = int(np.argmin(same.any(1)))
        raise UserError(
            f"observation {place} of {type(env).__name__} is neither a position nor a velocity: "
            "give the environment a method restore(observation, extras)"
        )
    return tuple(known[place] for place in same.argmax(1))
