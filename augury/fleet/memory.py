"""Whether a fleet fits into the devices' memory: said before it trains, with how many agents would fit."""

from __future__ import annotations

from typing import Any

import jax

from augury.errors import UserError
from augury.fleet.trainer import Trainer

FILLED = 0.9
"""Share of JAX's memory that agents may fill: the rest is for batches and activations."""
_GIB = 2**30


def check_memory(trainer: Trainer[Any]) -> None:
    """Raise where a trainer's agents do not fit into their devices."""
    limits = [_limit(device) for device in trainer.devices]
    if None in limits:
        return  # cores, whose memory is not divided up in advance
    limit = len(limits) * min(limits)  # every device has as many agents
    needed = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(trainer.shapes()))
    if needed <= FILLED * limit:
        return
    fitting = int(FILLED * limit / (needed / trainer.agents))
    raise UserError(
        f"{trainer.agents} agents need {needed / _GIB:.3g} GiB for replay buffers and networks, and there "
        f"are {limit / _GIB:.3g}: about {fitting} would fit; train fewer at a time, or set a smaller "
        "buffer_size"
    )


def _limit(device: Any) -> Any:
    """Bytes that JAX may use on a device, if it knows."""
    return (device.memory_stats() or {}).get("bytes_limit")
