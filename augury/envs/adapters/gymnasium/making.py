"""How a single environment is made: by Gymnasium from its id, or by a function of the user's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
from gymnasium.wrappers import TimeLimit

from augury.errors import unknown_name
from augury.references import import_module

Maker = Callable[[], Any]


def maker_of(source: str | Maker) -> Maker:
    """What makes an environment. Processes that know nothing of the id can call it, too."""
    if not isinstance(source, str):
        return source
    module, _, name = source.rpartition(":")  # as gymnasium.make takes it: the module registers the id
    if module:
        import_module(module, f"environment 'gymnasium:{source}'")
    try:
        spec = gymnasium.spec(name)
    except gymnasium.error.Error as error:
        raise unknown_name("environment of Gymnasium", name, gymnasium.registry) from error
    # What its checker would say is checked in every step here.
    return partial(gymnasium.make, spec, disable_env_checker=True)


def limited(make: Maker, horizon: int) -> Any:
    """An environment whose episodes end after so many steps."""
    env = make()
    limit = time_limit(env)
    return env if limit is not None and limit <= horizon else TimeLimit(env, horizon)


def time_limit(env: Any) -> int | None:
    """The steps that Gymnasium's TimeLimit allows; None where nothing limits them."""
    limits = []
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, TimeLimit):
            limits.append(int(env._max_episode_steps))
        env = env.env
    return min(limits, default=None)
