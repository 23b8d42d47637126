"""Gymnasium's environments, and any other with its interface: `gymnasium:Pendulum-v1`.

adapter       what a fleet trains on: an id, a factory, or a factory of vector environments
making        how a single environment is made
spaces        what their spaces mean here, and whether what an environment gave lies in them
states        saving and restoring one that gives and takes its state
share         some copies of an environment, side by side in one process
workers       all copies, a share in each process
seeded        all copies as the trainer steps them: they can be saved and go on
vectors       the same for a vector environment of any kind

Names are loaded when first used: the processes that step environments import no JAX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from augury.lazy import loading

if TYPE_CHECKING:
    from augury.envs.adapters.gymnasium.adapter import GymnasiumEnvironment, from_gymnasium, make

_HOME = "augury.envs.adapters.gymnasium.adapter"

__all__ = ["GymnasiumEnvironment", "from_gymnasium", "make"]

__getattr__ = loading(__name__, dict.fromkeys(__all__, _HOME))
