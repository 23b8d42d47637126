"""How a buffer finds the algorithm that owns it, and whether that one takes more rows than it asks for."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from augury.errors import UserError

EXACT = ("sbx", "sb3_contrib")
"""Packages whose algorithms count on as many rows as they ask for, and whose `train` we know how to wrap.

SBX's draw the batches of several updates in one call and cut the answer into equal parts; SB3-contrib's TQC
shapes its quantiles by the batch size.
"""


def calling_algorithm(*methods: str) -> OffPolicyAlgorithm | None:
    """The algorithm one of whose methods is calling: SB3 does not tell a buffer who owns it."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name in methods:  # asked first: looking at a frame's variables copies them
            owner = frame.f_locals.get("self")
            if isinstance(owner, OffPolicyAlgorithm):
                return owner
        frame = frame.f_back
    return None


def takes_more_rows(algorithm: OffPolicyAlgorithm) -> bool:
    """Whether `train` takes a batch as it comes. SB3's own does; of any other we cannot know."""
    return _trains_as_sb3(type(algorithm))


@cache
def _trains_as_sb3(kind: type[OffPolicyAlgorithm]) -> bool:
    definer = next(base for base in kind.__mro__ if "train" in vars(base))
    return definer.__module__.split(".")[0] == "stable_baselines3"


def wants_exact_rows(algorithm: OffPolicyAlgorithm) -> bool:
    """Whether an algorithm is known to count on as many rows as it asks for, and does not ask for all yet."""
    return _is_exact(type(algorithm))


@cache
def _is_exact(kind: type[OffPolicyAlgorithm]) -> bool:
    packages = {base.__module__.split(".")[0] for base in kind.__mro__}
    return not hasattr(kind, "_plain_kind") and not packages.isdisjoint(EXACT)


def ask_for_every_row(algorithm: OffPolicyAlgorithm) -> None:
    """Let an algorithm's `train` ask for all the rows that it will be given, augmented ones too."""
    if wants_exact_rows(algorithm):
        algorithm.__class__ = _asking_for_every_row(type(algorithm))


@cache
def _asking_for_every_row(kind: type[OffPolicyAlgorithm]) -> type[OffPolicyAlgorithm]:
    signature = inspect.signature(kind.train)

    def train(self: Any, *args: Any, **kwargs: Any) -> None:
        asked = signature.bind(self, *args, **kwargs)
        asked.apply_defaults()
        if "batch_size" not in asked.arguments:
            raise UserError(
                f"{kind.__name__}.train{signature} has no batch_size that could count the observed rows; "
                "use batch_size_counts='all'"
            )
        # A plain buffer may have been loaded since.
        every_row = getattr(self.replay_buffer, "every_row", nullcontext)
        with every_row(asked.arguments["batch_size"]) as rows:
            asked.arguments["batch_size"] = rows
            kind.train(*asked.args, **asked.kwargs)

    def reduce(self: Any, protocol: Any) -> Any:
        return _rebuilt, (kind,), self.__dict__

    body = {"train": train, "__reduce_ex__": reduce, "_plain_kind": kind, "__doc__": kind.__doc__}
    return type(kind.__name__, (kind,), body | {"__module__": kind.__module__})


def _rebuilt(kind: type[OffPolicyAlgorithm]) -> OffPolicyAlgorithm:
    rebuilt = _asking_for_every_row(kind)
    return rebuilt.__new__(rebuilt)


def seed_of_the_run() -> int:
    """What NumPy would draw next, which follows from the algorithm's seed; its generator is left as it is."""
    look_alike = np.random.RandomState()
    look_alike.set_state(np.random.get_state())
    return int(look_alike.randint(2**31))
