"""Which devices a fleet runs on, and how its agents share them."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from augury import __version__
from augury.envs.mujoco.physics import available_cores

AGENTS = "agents"


def use_all_cores() -> None:
    """Make every CPU core a device of its own, running its own single-threaded program.

    A fleet splits evenly over devices and its agents never talk, so this beats one program whose small
    products are shared out to threads. Call it before JAX does anything; accelerators are not affected.
    """
    flag = "--xla_cpu_multi_thread_eigen=false"
    if flag not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()
    if (cores := available_cores()) > 1:
        jax.config.update("jax_num_cpu_devices", cores)


def mesh_for(agents: int) -> Mesh:
    """The devices to use: no more than there are agents."""
    devices = jax.local_devices()[:agents]
    return Mesh(devices, (AGENTS,))


def split_over(mesh: Mesh) -> NamedSharding:
    """Agents, the leading axis, dealt out to the devices."""
    return NamedSharding(mesh, PartitionSpec(AGENTS))


def record() -> dict[str, Any]:
    """Time, versions and hardware, for the record."""
    versions = {name: version(name) for name in ("jax", "jaxlib", "flax", "optax", "numpy", "mujoco")}
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"augury": __version__, "python": platform.python_version(), **versions},
        "hardware": _hardware(),
    }


def _hardware() -> dict[str, Any]:
    """What the fleet runs on."""
    devices = jax.local_devices()
    return {"platform": devices[0].platform, "device": devices[0].device_kind, "devices": len(devices)}
