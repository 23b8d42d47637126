"""Where transitions come from."""

from augury.envs.base import AnyEnvironment, Environment, HostEngine, HostEnvironment, JaxEnvironment, Panel
from augury.envs.registry import ENVIRONMENTS, load, make, reference, register

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
