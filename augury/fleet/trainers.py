"""Choose a fleet's trainer, by where its environments run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from augury.fleet.arm import Arm
from augury.fleet.building import program_of
from augury.fleet.halves import Halves
from augury.fleet.host_trainer import HostTrainer
from augury.fleet.jax_trainer import JaxTrainer
from augury.fleet.shared_trainer import SharedTrainer
from augury.fleet.trainer import Trainer


def trainer_for(arms: Sequence[Arm], parts: int | None = None) -> Trainer[Any]:
    """The trainer of arms that train together; by default in as many parts as are fastest here."""
    place = program_of(arms[0]).environment.runs_in
    if place == "program":
        return JaxTrainer(arms)
    if place == "device":
        return SharedTrainer(arms)
    return Halves(arms) if (parts or _fastest(arms)) == 2 else HostTrainer(arms)


def _fastest(arms: Sequence[Arm]) -> int:
    """Two halves where an accelerator could learn while the host simulates, if no device stands idle then."""
    devices = jax.local_devices()
    enough = sum(arm.agents for arm in arms) >= 2 * len(devices)
    return 2 if devices[0].platform != "cpu" and enough else 1
