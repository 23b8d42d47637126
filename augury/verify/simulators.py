"""Simulators that can be asked what comes after an observation and an action: one for each way to step.

| steps | what an environment must have |
|---|---|
| in JAX | `restore(observation, extras) -> state` |
| on the host, as a task of the vector engine | `restored(observation, extras) -> Start` |
| on the host, by any other engine | its engine has `restore(observation, extras)`, or `ask` |
| in Gymnasium | `restore(observation, extras)`, or MuJoCo's positions and velocities are all it observes |

One whose observations do not determine its state may have a `restorable`: itself, with observations that do.
"""

from __future__ import annotations

from typing import Any

import gymnasium

from augury.verify.base import Simulator, Source
from augury.verify.in_jax import JaxSimulator, JaxSource
from augury.verify.on_host import SIMULATED, EngineSimulator, HostSource, TaskSimulator
from augury.verify.subjects import environment_of
from augury.verify.with_gymnasium import GymSimulator, GymSource

__all__ = ["GymSimulator", "simulator_of", "source_of"]


def simulator_of(environment: Any) -> Simulator:
    """The simulator of an environment: its name, itself, or one of Gymnasium's. What it lacks is an error."""
    found = _restorable(environment)
    if isinstance(found, gymnasium.Env):
        return GymSimulator(found)
    if found.runs_in != "host":
        return JaxSimulator(found)
    is_task = all(hasattr(found, name) for name in SIMULATED)
    return TaskSimulator(found) if is_task else EngineSimulator(found)


def source_of(environment: Any) -> Source:
    """Observed transitions of an environment, which need not be one that can be asked."""
    found = _restorable(environment)
    if isinstance(found, gymnasium.Env):
        return GymSource(found)
    return HostSource(found) if found.runs_in == "host" else JaxSource(found)


def _restorable(environment: Any) -> Any:
    found = environment_of(environment)
    return getattr(found, "restorable", found)
