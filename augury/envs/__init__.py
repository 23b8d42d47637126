"""Where transitions come from.

Names are loaded when first used: processes that only step environments import no JAX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from augury.lazy import loading

if TYPE_CHECKING:
    from augury.envs.base import (
        AnyEnvironment,
        Environment,
        HostEngine,
        HostEnvironment,
        JaxEnvironment,
        Panel,
    )
    from augury.envs.registry import ENVIRONMENTS, load, make, reference, register

_HOMES = {
    "ENVIRONMENTS": "augury.envs.registry",
    "AnyEnvironment": "augury.envs.base",
    "Environment": "augury.envs.base",
    "HostEngine": "augury.envs.base",
    "HostEnvironment": "augury.envs.base",
    "JaxEnvironment": "augury.envs.base",
    "Panel": "augury.envs.base",
    "load": "augury.envs.registry",
    "make": "augury.envs.registry",
    "reference": "augury.envs.registry",
    "register": "augury.envs.registry",
}
"""Which module each name is loaded from."""

__all__ = [
    "ENVIRONMENTS",
    "AnyEnvironment",
    "Environment",
    "HostEngine",
    "HostEnvironment",
    "JaxEnvironment",
    "Panel",
    "load",
    "make",
    "reference",
    "register",
]

__getattr__ = loading(__name__, _HOMES)
