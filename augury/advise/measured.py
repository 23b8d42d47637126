"""Signals by augmentation, m and α, kept in a file; one that is not there is measured, with a pilot.

Where the files in which environment and augmentation stand have been edited since, they are measured again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from augury import augmentations, envs
from augury.advise.features import Signals
from augury.advise.pilot import PARTS, Pilot, gather
from augury.advise.signals.measuring import Signals as Measurement
from augury.advise.signals.measuring import measuring
from augury.advise.spread import Spread, spread
from augury.advise.written import written
from augury.errors import UserError
from augury.files import replacing
from augury.fleet import Arm

MEASURED = "signals.json"

Watcher = Callable[[str, float], None]
"""Is told what is being done, and which share of everything is done already."""


class Measured:
    """What is measured for an arm, whose augmentation is asked for with each."""

    def __init__(
        self, arm: Arm, *, pilot_steps: int, folder: Path | None, parts: int, watch: Watcher
    ) -> None:
        """`parts` are how many signals and spreads will be asked for, to tell how far it is."""
        self._arm, self._steps, self._seed = arm, pilot_steps, arm.seed
        self._doing = _Doing(watch, PARTS + parts)
        self._file = None if folder is None else folder / MEASURED
        self._asked = {
            "environment": envs.reference(arm.environment),
            "algorithm": arm.algorithm,
            "pilot_steps": pilot_steps,
            "seed": arm.seed,
            "written": written(arm.environment),
        }
        self._kept: dict[str, Any] = self._read()
        self._seen: set[str] = set()
        self._pilot: Pilot | None = None
        self._last: tuple[Any, Callable[[float], Measurement]] | None = None

    def of(
        self, name: str, augmentation: Any, ratio: float, update_ratio: float
    ) -> tuple[Signals, tuple[str, ...]]:
        """Signals and notes."""
        asked = f"{name}, m = {ratio:g}, α = {update_ratio:g}"
        key = f"{asked} {written(augmentation)}".rstrip()
        if key not in self._kept:
            pilot = self._gathered()
            self._doing.begin(f"measuring {asked}")
            found = self._measuring(pilot, name, augmentation, ratio)(update_ratio)
            self._kept[key] = {"signals": found.values(), "notes": found.notes}
            self._write()
        if key not in self._seen:
            self._seen.add(key)
            self._doing.done()
        kept = self._kept[key]
        return dict(kept["signals"]), tuple(kept["notes"])

    def _measuring(
        self, pilot: Pilot, name: str, augmentation: Any, ratio: float
    ) -> Callable[[float], Measurement]:
        """Signals as a function of α; those of one m are asked for one after the other."""
        if self._last is None or self._last[0] != (name, ratio):
            self._last = (name, ratio), measuring(pilot, augmentation, ratio=ratio, seed=self._seed)
        return self._last[1]

    def spread(self, augmentation: Any) -> Spread | None:
        """Where the data of an augmentation lies; None if it cannot be made of the pilot's."""
        made = augmentations.make(augmentation, self._arm.environment)
        pilot = self._gathered()
        self._doing.begin(f"looking where data of {augmentations.reference(augmentation)} lies")
        try:
            return spread(pilot, made, self._seed)
        except UserError:  # the card tells why
            return None
        finally:
            self._doing.done()

    def _gathered(self) -> Pilot:
        if self._pilot is None:
            self._doing.begin(f"a pilot of {self._steps:,} steps on {self._asked['environment']}")
            self._pilot = gather(
                self._arm.environment,
                steps=self._steps,
                seed=self._seed,
                algorithm=self._arm.algorithm,
                watch=self._doing.done,
            )
        return self._pilot

    def _read(self) -> dict[str, Any]:
        if self._file is None or not self._file.exists():
            return {}
        try:
            held = json.loads(self._file.read_text(encoding="utf-8"))
            asked, measured = dict(held["asked"]), dict(held["measured"])
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{self._file} is damaged: remove it to measure again") from error
        for what, value in self._asked.items():
            if what != "written" and asked.get(what) != value:
                raise UserError(
                    f"{self._file} was made with {what} = {asked.get(what)}, not {value}: "
                    "give another --out, or remove it"
                )
        return measured if asked.get("written") == self._asked["written"] else {}

    def _write(self) -> None:
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self._file) as temporary:
            temporary.write_text(
                json.dumps({"asked": self._asked, "measured": self._kept}, indent=1), encoding="utf-8"
            )


class _Doing:
    """How much is done, in parts that take about as long as each other."""

    def __init__(self, watch: Watcher, parts: int) -> None:
        self._watch, self._parts, self._done, self._what = watch, parts, 0, ""

    def begin(self, what: str) -> None:
        """Another kind of work begins."""
        self._what = what
        self._tell()

    def done(self) -> None:
        """A part is done."""
        self._done += 1
        self._tell()

    def _tell(self) -> None:
        self._watch(self._what, min(self._done / self._parts, 1.0))
