"""Advice: will this augmentation help here, and how much of it.

    gather a pilot                                   a short run without augmentation
    for every augmentation, for every m and α that the model knows:
        measure signals, predict the worth
    recommend the m and α with the largest worth; say why, in sentences made of the signals

What has been measured is kept in a folder, if one is given: advice that was interrupted goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from augury import augmentations, envs
from augury.advise import coefficients
from augury.advise.features import Settings, Signals
from augury.advise.measured import Measured, Watcher
from augury.advise.pilot import pilot_steps_for
from augury.advise.prediction import SURE, Model, Prediction
from augury.advise.reasons import HARDLY_VALID, measured, reasons
from augury.advise.spread import Spread
from augury.errors import UserError
from augury.fleet import Arm, resolved

Verdict = Literal["helps", "does not help", "undecided", "wrong", "not known"]

WRONG_OF_RARE = 0.5
"""Of rewards that are not the most common one: if as many are wrong, nobody is told that it helps."""
HARDLY_ALIKE = 1.5
"""An augmentation is called wrong, whatever is predicted, if half of its transitions are invalid by as many
times what a step changes (from there on most of the table's arms lose), or end wrongly, or if its rewards are
wrong by half of their range."""


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
    """The α to begin with; both are 1 where nothing is predicted."""
    signals: Signals
    """At these m and α."""
    notes: tuple[str, ...]
    """Why signals are unknown."""
    prediction: Prediction
    spread: Spread | None = None
    """Where its data lies, if that was asked for."""

    @property
    def verdict(self) -> Verdict:
        """What the prediction comes to."""
        known = {name: value or 0.0 for name, value in self.signals.items()}
        invalid, error = known.get("invalid", 0), known.get("relative_error", 0)
        wrong = max(known.get("reward_error", 0), known.get("wrong_end", 0))
        if (invalid >= HARDLY_VALID and error >= HARDLY_ALIKE) or wrong >= HARDLY_VALID:
            return "wrong"
        helps = self.prediction.helps
        if helps is None:
            return "not known"
        if helps >= SURE:  # who cannot tell whether it is right cannot promise anything
            is_told = self.signals.get("invalid") is not None
            return "undecided" if self._rewards_that_count_are_wrong or not is_told else "helps"
        return "does not help" if helps <= 1 - SURE else "undecided"

    @property
    def _rewards_that_count_are_wrong(self) -> bool:
        """Where reward is sparse, few wrong ones may be all that tell anything."""
        common, error = self.signals.get("common_reward"), self.signals.get("reward_error")
        return common is not None and error is not None and error > WRONG_OF_RARE * (1 - common)

    @property
    def may_help(self) -> bool:
        """Whether it is worth training with."""
        return measured(self.signals) and self.verdict not in ("wrong", "does not help")

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
            "batch_worth": self.prediction.batch,
            "helps": self.prediction.helps,
            "unknown": list(self.prediction.unknown),
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
    pilot_steps: int | None = None,
    seed: int = 0,
    folder: Path | None = None,
    pictures: bool = False,
    model: Model | None = None,
    watch: Watcher = lambda doing, share: None,
) -> list[Advice]:
    """Advice on every candidate, the most promising first.

    Environment and augmentations are names, `module:name`, or objects. `steps` is the budget of an agent, by
    default the environment's own; a pilot has a quarter of it, and at most 4,000. With a `folder`, what has
    been measured is kept there; with `pictures`, advice tells where the data lies.
    """
    given = {"algorithm": algorithm, "steps": steps}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    arm = resolved(Arm(environment=environment, agents=1, seed=seed, **settings))
    named = _named(candidates, arm)
    model = coefficients.read() if model is None else model
    pilot = Measured(
        arm,
        pilot_steps=pilot_steps_for(arm.steps) if pilot_steps is None else pilot_steps,
        folder=folder,
        parts=len(named) * (len(model.grid) + pictures),
        watch=watch,
    )
    found = [_advice(name, one, arm, model, pilot) for name, one in named.items()]
    if pictures:
        found = [replace(one, spread=pilot.spread(named[one.augmentation])) for one in found]
    return sorted(found, key=_promise)


def _named(candidates: Iterable[Any], arm: Arm) -> dict[str, Any]:
    """Candidates by name; what cannot be made is refused before the pilot."""
    named: dict[str, Any] = {}
    for one in candidates:
        augmentations.make(one, arm.environment)
        if (name := augmentations.reference(one)) in named:
            raise UserError(f"two augmentations are called {name}: give each once")
        named[name] = one
    if not named:
        raise UserError("there is nothing to advise on: name an augmentation")
    return named


def _advice(name: str, augmentation: Any, arm: Arm, model: Model, pilot: Measured) -> Advice:
    def signals(ratio: float, update_ratio: float) -> Signals:
        return pilot.of(name, augmentation, ratio, update_ratio)[0]

    works = measured(signals(1.0, 1.0))
    best = model.best(signals) if works else None
    ratio, update_ratio = (best.ratio, best.update_ratio) if best is not None else (1.0, 1.0)
    known, notes = pilot.of(name, augmentation, ratio, update_ratio)
    asked = Settings(ratio, update_ratio)
    prediction = model.predict(known, asked) if best is None else best.prediction
    if prediction.worth is not None and arm.steps > (most := model.provenance.steps):
        notes += (
            f"arms of the table trained {most:,} steps at most: what holds at {arm.steps:,} is not known",
        )
    return Advice(
        augmentation=name,
        environment=envs.reference(arm.environment),
        steps=arm.steps,
        ratio=ratio,
        update_ratio=update_ratio,
        signals=known,
        notes=notes,
        prediction=prediction if works else Prediction.none("the pilot's transitions cannot be augmented"),
    )


def _promise(advice: Advice) -> tuple[bool, float]:
    """To sort by: wrong ones last, then by the worth."""
    worth = advice.prediction.worth
    return advice.verdict == "wrong", -(worth.middle if worth is not None else 0.0)
