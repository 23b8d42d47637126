"""The algorithm that is calling a buffer."""

from __future__ import annotations

import inspect

import numpy as np
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm


def asking_algorithm() -> OffPolicyAlgorithm | None:
    """The algorithm whose method is asking; none where a user's script calls the buffer.

    SB3 tells a buffer nothing about its owner, but two things are the owner's to say. SBX draws the batches
    of several updates in one call and cuts the answer into equal parts; and it discounts as many rows as it
    asked for, unless the answer brings discounts of its own, as that of an n-step buffer does.
    """
    frame = inspect.currentframe()
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, OffPolicyAlgorithm):
            return owner
        frame = frame.f_back
    return None


def updates_in_a_row(algorithm: OffPolicyAlgorithm, added: int) -> int:
    """How many updates an algorithm makes at once, after `added` transitions."""
    return algorithm.gradient_steps if algorithm.gradient_steps > 0 else max(added, 1)


def seed_of_the_run() -> int:
    """What NumPy would draw next, which follows from the algorithm's seed; its generator is left as it is."""
    look_alike = np.random.RandomState()
    look_alike.set_state(np.random.get_state())
    return int(look_alike.randint(2**31))
