"""Will an augmentation help here, and how much of it? What is measured before anybody trains with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from augury.lazy import loading

if TYPE_CHECKING:
    from augury.advise.pilot import Pilot, gather
    from augury.advise.signals.measuring import Signals, measure

__all__ = ["Pilot", "Signals", "gather", "measure"]

_HOMES = {
    "Pilot": "augury.advise.pilot",
    "Signals": "augury.advise.signals.measuring",
    "gather": "augury.advise.pilot",
    "measure": "augury.advise.signals.measuring",
}
"""Where each name is, so that it is imported when first used: JAX is needed to measure only."""

__getattr__ = loading(__name__, _HOMES)
