"""How agents train on other libraries' environments, unless an arm says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

TRAINING: Mapping[str, Any] = MappingProxyType(
    {
        "hidden": (256, 256),
        "batch_size": 256,
        "collect": 1,
        "updates": 1,
        "steps": 100_000,
        "random_steps": 1_000,
        "evaluate_every": 5_000,
        "evaluation_episodes": 10,
    }
)
"""TD3's settings in its authors' code where they differ from Goal2D's, for fewer steps."""
