"""From studies of families to the table: which arms are compared, and what is known about each augmentation.

The studies are `studies/advice/` and those of Goal2D: tasks are members of families, arms are none, more
policy data, and augmentations. `described` reads off a trained arm what the table says of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from augury import augmentations, envs
from augury.advise.features import Signals
from augury.advise.table import Described, Row, Setting, Truth, rows_from
from augury.advise.worth import Curves, curves
from augury.augmentations.families import ERRORS
from augury.errors import UserError
from augury.runs.results import Result
from augury.study.record import Record

SLIGHT = 0.05
"""Errors and knobs up to which an augmentation is slightly wrong: a fortieth of what is observed."""

Measure = Callable[[Described], Signals]
"""Signals of an arm with augmentation."""


def table_of(
    records: Iterable[Record], measure: Measure, watch: Callable[[list[Result]], Iterable[Result]] = iter
) -> list[Row]:
    """The rows of all arms with augmentation that were trained, each once; `watch` may show how far it is."""
    trained = {str(one.result.asked): one.result for record in records for one in record.finished}
    policy: dict[Setting, dict[float, Curves]] = defaultdict(dict)
    augmented = []
    for result in sorted(trained.values(), key=lambda one: _order(one.asked)):
        asked = result.asked
        if asked["augmentation"] is None:
            policy[setting_of(asked)][asked["policy_data"]] = scores_of(result)
        elif asked["policy_data"] == 1:  # else it is worth what both are
            augmented.append(result)
    arms = []
    for one in watch(augmented):
        arm = described(one.asked)
        arms.append((replace(arm, signals=measure(arm)), scores_of(one)))
    return rows_from(arms, policy)


def setting_of(asked: Mapping[str, Any]) -> Setting:
    """What an arm shares with those that it is compared with."""
    task = asked["environment"]
    replay_ratio = asked["updates"] / asked["collect"]
    return Setting(_family(task), task, asked["algorithm"], replay_ratio, asked["steps"])


def _order(asked: Mapping[str, Any]) -> tuple[Any, ...]:
    """Arms that share a pilot follow each other, and among these arms that share copies."""
    return *setting_of(asked), asked["augmentation"] or "", float(asked["ratio"]), asked["update_ratio"]


def described(asked: Mapping[str, Any]) -> Described:
    """What the table says of an arm with augmentation, but for signals and for what came of it."""
    task, name = asked["environment"], asked["augmentation"]
    environment: Any = envs.make(task)
    made: Any = augmentations.make(name, environment)
    return Described(
        **setting_of(asked)._asdict(),
        augmentation=name,
        truth=truth_of(environment, made),
        error=float(max(abs(getattr(made, one, 0.0)) for one in ERRORS)),
        ratio=float(asked["ratio"]),
        update_ratio=asked["update_ratio"],
    )


def truth_of(environment: Any, made: Any) -> Truth:
    """What is known of an augmentation on a member of a family, because both were made so."""
    if not hasattr(environment, "menu"):
        return "exact"  # those of Goal2D
    name = list(environment.menu)[int(made.choice)]
    change = environment.menu[name]
    wrong = [
        *(getattr(made, one) for one in ERRORS),
        *(getattr(environment, one) for one in change.broken_by),
    ]
    if not change.exact:  # by so much; without a number of its own, by what it is
        wrong.append(made.amount if change.amount else 1.0)
    worst = max(map(abs, wrong))
    if worst > 0:
        return "slightly-wrong" if worst <= SLIGHT else "badly-wrong"
    kinds: dict[str, Truth] = {
        "identity": "useless",
        "move-agent": "coverage-only",
        "relabel-near": "reward-only",
    }
    return kinds.get(name, "exact")


def scores_of(result: Result) -> Curves:
    """Learning curves between 0 and 1: success, or returns as a share of perfect ones."""
    environment: Any = envs.make(result.asked["environment"])
    ceiling = 1.0 if result.measure == "success" else float(environment.perfect_return)
    return curves(result.evaluations["steps"], result.curves(), ceiling=ceiling)


def _family(task: str) -> str:
    name = str(envs.make(task).name)
    if not name.startswith("family/") and name != "goal2d":
        raise UserError(f"{task} belongs to no family: the table is made of family/… and goal2d")
    return name.removeprefix("family/")
