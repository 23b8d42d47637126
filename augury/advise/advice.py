"""Advice: will this augmentation help here, and how much of it.

    gather a pilot                                   a short run without augmentation
    for every augmentation, for every m and α that the model knows:
        measure signals, predict the worth
    recommend the m and α with the largest worth; say why, in sentences made of the signals

What has been measured is kept in a folder, if one is given: advice that was interrupted goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from augury import augmentations, envs
from augury.advise import coefficients
from augury.advise.features import Settings, Signals
from augury.advise.pilot import PARTS, Pilot, gather
from augury.advise.prediction import Best, Model, Prediction
from augury.advise.reasons import reasons
from augury.advise.signals.measuring import measure
from augury.advise.spread import Spread, spread
from augury.errors import UserError
from augury.files import replacing
from augury.fleet import Arm, resolved

Verdict = Literal["helps", "does not help", "undecided", "wrong", "not known"]

SURE = 0.9
"""Probability from which on a prediction is a verdict."""
HARDLY_VALID, HARDLY_ALIKE = 0.5, 1.0
"""An augmentation is called wrong, whatever is predicted, if that share of its transitions is invalid, by as
much as a step changes: from there on the table's arms begin to lose."""
PILOT_STEPS = 4_000
MEASURED = "signals.json"

Watcher = Callable[[str, float], None]
"""Is told what is being done, and which share of everything is done already."""


@dataclass(frozen=True)
class Advice:
    """What to expect of an augmentation."""

    augmentation: str
    environment: str
    steps: int
    """The budget of an agent."""
    ratio: float
    """The m to begin with."""
    update_ratio: float
    """The α to begin with."""
    signals: Signals
    """At these m and α."""
    notes: tuple[str, ...]
    """Why signals are unknown."""
    prediction: Prediction
    best: Best | None
    """None where nothing is predicted: then m = α = 1."""
    spread: Spread | None = None
    """Where its data lies, if that was asked for."""

    @property
    def verdict(self) -> Verdict:
        """What the prediction comes to."""
        invalid, error = (self.signals.get(name) or 0.0 for name in ("invalid", "relative_error"))
        if invalid >= HARDLY_VALID and error >= HARDLY_ALIKE:
            return "wrong"
        helps = self.prediction.helps
        if helps is None:
            return "not known"
        return "helps" if helps >= SURE else "does not help" if helps <= 1 - SURE else "undecided"

    @property
    def reasons(self) -> tuple[str, ...]:
        """What was measured that speaks for it and against it."""
        return reasons(self.signals)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        worth = self.prediction.worth
        return {
            "augmentation": self.augmentation,
            "environment": self.environment,
            "steps": self.steps,
            "verdict": self.verdict,
            "worth": None if worth is None else worth._asdict(),
            "helps": self.prediction.helps,
            "outside": self.prediction.outside,
            "ratio": self.ratio,
            "update_ratio": self.update_ratio,
            "reasons": list(self.reasons),
            "signals": dict(self.signals),
            "notes": list(self.notes),
        }


def advise(
    environment: Any,
    candidates: Iterable[Any],
    *,
    steps: int | None = None,
    algorithm: str | None = None,
    pilot_steps: int = PILOT_STEPS,
    seed: int = 0,
    folder: Path | None = None,
    pictures: bool = False,
    model: Model | None = None,
    watch: Watcher = lambda doing, share: None,
) -> list[Advice]:
    """Advice on every candidate, the most promising first.

    Environment and augmentations are names, `module:name`, or objects. `steps` is the budget of an agent, by
    default the environment's own. With a `folder`, what has been measured is kept there; with `pictures`,
    advice tells where the data lies.
    """
    given = {"algorithm": algorithm, "steps": steps}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    arm = resolved(Arm(environment=environment, agents=1, seed=seed, **settings))
    named = {augmentations.reference(one): one for one in candidates}
    if not named:
        raise UserError("there is nothing to advise on: name an augmentation")
    for one in named.values():
        augmentations.make(one, arm.environment)  # what cannot be made is refused before the pilot
    model = coefficients.read() if model is None else model
    parts = PARTS + len(named) * (len(model.grid) + pictures)
    measuring = _Measuring(arm, min(pilot_steps, arm.steps), seed, folder, _Doing(watch, parts))
    found = [_advice(name, one, arm, model, measuring) for name, one in named.items()]
    if pictures:
        found = [replace(one, spread=measuring.spread(named[one.augmentation])) for one in found]
    return sorted(found, key=_promise)


def _advice(name: str, augmentation: Any, arm: Arm, model: Model, measuring: _Measuring) -> Advice:
    def signals(ratio: float, update_ratio: float) -> Signals:
        return measuring.of(name, augmentation, ratio, update_ratio)[0]

    best = model.best(signals, arm.steps, arm.algorithm)
    ratio, update_ratio = (best.ratio, best.update_ratio) if best is not None else (1.0, 1.0)
    measured, notes = measuring.of(name, augmentation, ratio, update_ratio)
    asked = Settings(ratio, update_ratio, arm.steps, arm.algorithm)
    predicted = best.prediction if best is not None else model.predict(measured, asked)
    return Advice(
        augmentation=name,
        environment=envs.reference(arm.environment),
        steps=arm.steps,
        ratio=ratio,
        update_ratio=update_ratio,
        signals=measured,
        notes=notes,
        prediction=predicted,
        best=best,
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


class _Measuring:
    """Signals by augmentation, m and α; the pilot is gathered when one is asked for that is not kept."""

    def __init__(self, arm: Arm, steps: int, seed: int, folder: Path | None, doing: _Doing) -> None:
        self._arm, self._steps, self._seed, self._doing = arm, steps, seed, doing
        self._file = None if folder is None else folder / MEASURED
        self._asked = {"environment": envs.reference(arm.environment), "pilot_steps": steps, "seed": seed}
        self._asked |= {"algorithm": arm.algorithm}
        self._kept: dict[str, Any] = self._read()
        self._seen: set[str] = set()
        self._pilot: Pilot | None = None

    def of(
        self, name: str, augmentation: Any, ratio: float, update_ratio: float
    ) -> tuple[Signals, tuple[str, ...]]:
        """Signals and notes."""
        key = f"{name}, m = {ratio:g}, α = {update_ratio:g}"
        if key not in self._kept:
            pilot = self._gathered()
            self._doing.begin(f"measuring {key}")
            found = measure(pilot, augmentation, ratio=ratio, update_ratio=update_ratio, seed=self._seed)
            self._kept[key] = found.as_dict()
            self._write()
        if key not in self._seen:
            self._seen.add(key)
            self._doing.done()
        signals = dict(self._kept[key])
        notes = tuple(signals.pop("notes"))
        return {one: None if value is None else float(value) for one, value in signals.items()}, notes

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
            if asked.get(what) != value:
                raise UserError(f"{self._file} was made with {what} = {asked.get(what)}, not {value}")
        return measured

    def _write(self) -> None:
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self._file) as temporary:
            temporary.write_text(
                json.dumps({"asked": self._asked, "measured": self._kept}, indent=1), encoding="utf-8"
            )


def _promise(advice: Advice) -> tuple[bool, float]:
    """To sort by: wrong ones last, then by the worth."""
    worth = advice.prediction.worth
    return advice.verdict == "wrong", -(worth.middle if worth is not None else 0.0)
