"""Where transitions come from."""

from augury.envs.base import AnyEnvironment, Environment, HostEngine, HostEnvironment, JaxEnvironment
from augury.envs.registry import ENVIRONMENTS, make, reference, register

__all__ = [
    "ENVIRONMENTS",
    "AnyEnvironment",
    "Environment",
    "HostEngine",
    "HostEnvironment",
    "JaxEnvironment",
    "make",
    "reference",
    "register",
]
