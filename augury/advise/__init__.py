"""Will an augmentation help here, and how much of it? `advise`, and what it is made of.

for advice in advise("goal2d", ["goal2d/translate", "goal2d/rotate"]):
    print(advice.augmentation, advice.verdict, advice.prediction.worth, advice.reasons)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from augury.lazy import loading

if TYPE_CHECKING:
    from augury.advise.advice import Advice, advise
    from augury.advise.pilot import Pilot, gather
    from augury.advise.signals.measuring import Signals, measure

__all__ = ["Advice", "Pilot", "Signals", "advise", "gather", "measure"]

_HOMES = {
    "Advice": "augury.advise.advice",
    "Pilot": "augury.advise.pilot",
    "Signals": "augury.advise.signals.measuring",
    "advise": "augury.advise.advice",
    "gather": "augury.advise.pilot",
    "measure": "augury.advise.signals.measuring",
}
"""Where each name is, so that it is imported when first used: JAX is needed to measure only."""

__getattr__ = loading(__name__, _HOMES)
