"""What an algorithm's environment tells: which one it is, and where SB3 put the channels of its images."""

from __future__ import annotations

import re
from typing import Any

from gymnasium.envs.registration import EnvSpec
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecTransposeImage

from augury import envs


def moved_channels(env: VecEnv) -> frozenset[str]:
    """The images whose channels SB3 has moved to the front, by their entry of a dict or as ""."""
    outer: Any = env
    while isinstance(outer, VecEnvWrapper):
        if isinstance(outer, VecTransposeImage) and not outer.skip:
            return frozenset(getattr(outer, "image_space_keys", ("",)))
        outer = outer.venv
    return frozenset()


def name_of(env: VecEnv) -> str | None:
    """The name that we have for an environment of Gymnasium, ours or panda-gym's: PandaPush-v3 is panda-push.

    Other variants, such as panda-gym's with dense rewards, have no name here.
    """
    try:
        specs = env.get_attr("spec")
    except AttributeError:
        return None
    names = {_name(spec) for spec in specs}
    return names.pop() if len(names) == 1 else None


def _name(spec: EnvSpec | None) -> str | None:
    if spec is None:
        return None
    name = re.sub(r"(?<!^)(?=[A-Z])", "-", spec.name).lower()
    return name if name in envs.ENVIRONMENTS else None
