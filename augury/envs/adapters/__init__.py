"""Environments of other libraries, each by a prefix: `gymnasium:Pendulum-v1`.

A prefix stands for a module here with a function `make(text)`, which gives the environment that the text
after the prefix names. The module is imported when its prefix is first used, and the other library with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

ADAPTERS: Mapping[str, str] = MappingProxyType(
    {
        "brax": "augury.envs.adapters.brax",
        "gymnasium": "augury.envs.adapters.gymnasium",
        "gymnax": "augury.envs.adapters.gymnax",
        "playground": "augury.envs.adapters.playground",
    }
)
"""The module of each prefix."""


def is_adapted(text: str) -> bool:
    """Whether a text names an environment of another library."""
    return text.partition(":")[0] in ADAPTERS and ":" in text


@lru_cache(maxsize=64)
def make(text: str) -> Any:
    """The environment that `prefix:text` names: made once, so that it is the same wherever it is named."""
    prefix, _, name = text.partition(":")
    return import_module(ADAPTERS[prefix]).make(name)
