"""What a buffer has to do with the algorithm that owns it."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm


def calling_algorithm() -> OffPolicyAlgorithm | None:
    """The algorithm that is building or loading its buffer: SB3 does not tell a buffer who owns it."""
    frame = inspect.currentframe()
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, OffPolicyAlgorithm):
            return owner
        frame = frame.f_back
    return None


def expect_every_row(algorithm: OffPolicyAlgorithm) -> None:
    """Let an algorithm that counts on as many rows as it asks for ask for as many as it will be given.

    SB3's own take a batch as it comes. SBX's draw the batches of several updates in one call and cut the
    answer into equal parts, and SB3-contrib's TQC shapes its quantiles by the batch size.
    """
    kind = type(algorithm)
    if kind.train.__module__.split(".")[0] not in ("stable_baselines3", "augury"):
        algorithm.__class__ = _expecting_every_row(kind)


@cache
def _expecting_every_row(kind: type[OffPolicyAlgorithm]) -> type[OffPolicyAlgorithm]:
    def train(self: Any, gradient_steps: int, batch_size: int) -> None:
        told = getattr(self.replay_buffer, "told", nullcontext)  # a plain buffer may have been loaded since
        with told(batch_size) as rows:
            kind.train(self, gradient_steps=gradient_steps, batch_size=rows)

    return type(
        kind.__name__, (kind,), {"train": train, "__module__": kind.__module__, "__doc__": kind.__doc__}
    )


def seed_of_the_run() -> int:
    """What NumPy would draw next, which follows from the algorithm's seed; its generator is left as it is."""
    look_alike = np.random.RandomState()
    look_alike.set_state(np.random.get_state())
    return int(look_alike.randint(2**31))
