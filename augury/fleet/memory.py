"""Whether a fleet fits into the devices' memory: said before it trains, with how many agents would fit."""

from __future__ import annotations

from typing import Any

import jax

from augury.errors import UserError

SPARE = 0.9
"""Share of the memory that agents may fill: the rest is for batches, activations and simulation."""
_GIB = 2**30


def check_memory(agents: int, state: Any) -> None:
    """Raise where the state of so many agents, given by its shapes, does not fit into the devices."""
    limit = available_memory()
    if limit is None:
        return
    needed = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    if needed <= SPARE * limit:
        return
    fitting = int(SPARE * limit / (needed / agents))
    raise UserError(
        f"{agents} agents need {needed / _GIB:.3g} GiB for replay buffers and networks, and there are "
        f"{limit / _GIB:.3g}: about {fitting} would fit; train fewer, or set a smaller buffer_size"
    )


def available_memory() -> int | None:
    """Bytes on all accelerators together; None on CPUs, whose memory is not asked for in advance."""
    stats = [device.memory_stats() for device in jax.local_devices() if device.platform != "cpu"]
    limits = [found["bytes_limit"] for found in stats if found and "bytes_limit" in found]
    return sum(limits) if limits else None
