"""Augury tells when data augmentation will help reinforcement learning, and gives it when it does.

What people need most is here, and loaded when first used: importing `augury` loads no JAX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from augury import gymnasium_ids as _gymnasium_ids
from augury.lazy import loading

if TYPE_CHECKING:
    from augury.augmentations import augmentation, choose, compose, from_numpy, hindsight, sometimes
    from augury.augmentations.symmetry import reflect, rotate
    from augury.envs import HostEnvironment, JaxEnvironment, register
    from augury.envs.adapters.gymnasium import from_gymnasium
    from augury.envs.mujoco.commands import Commands
    from augury.envs.mujoco.task import MujocoTask
    from augury.fleet import Arm, Result, load_policies, train, use_all_cores
    from augury.study import Study, run_study
    from augury.transition import Transition
    from augury.verify import assert_dynamics_invariant, verify

__version__ = "0.1.0"

_HOMES = {
    "Arm": "augury.fleet",
    "Commands": "augury.envs.mujoco.commands",
    "HostEnvironment": "augury.envs",
    "JaxEnvironment": "augury.envs",
    "MujocoTask": "augury.envs.mujoco.task",
    "Result": "augury.fleet",
    "Study": "augury.study",
    "Transition": "augury.transition",
    "assert_dynamics_invariant": "augury.verify",
    "augmentation": "augury.augmentations",
    "choose": "augury.augmentations",
    "compose": "augury.augmentations",
    "from_gymnasium": "augury.envs.adapters.gymnasium",
    "from_numpy": "augury.augmentations",
    "hindsight": "augury.augmentations",
    "load_policies": "augury.fleet",
    "reflect": "augury.augmentations.symmetry",
    "register": "augury.envs",
    "rotate": "augury.augmentations.symmetry",
    "run_study": "augury.study",
    "sometimes": "augury.augmentations",
    "train": "augury.fleet",
    "use_all_cores": "augury.fleet",
    "verify": "augury.verify",
}
"""Which module each name is loaded from."""

__all__ = [
    "Arm",
    "Commands",
    "HostEnvironment",
    "JaxEnvironment",
    "MujocoTask",
    "Result",
    "Study",
    "Transition",
    "__version__",
    "assert_dynamics_invariant",
    "augmentation",
    "choose",
    "compose",
    "from_gymnasium",
    "from_numpy",
    "hindsight",
    "load_policies",
    "reflect",
    "register",
    "rotate",
    "run_study",
    "sometimes",
    "train",
    "use_all_cores",
    "verify",
]

_gymnasium_ids.register()
__getattr__ = loading(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
