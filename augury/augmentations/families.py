"""The augmentations of families: all of a family's in one function, and a number that chooses among them.

So arms with different augmentations of a family share a compiled program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
from jax import lax

from augury.augmentations.base import augmentation, conform
from augury.envs.families import FAMILIES, Change
from augury.errors import UserError
from augury.transition import Array, Key, Transition

PREFIX = "family/"
ERRORS = ("error", "reward_error")
"""Numbers that make any of them wrong by a known amount."""


@augmentation
class Menu:
    """One of a family's augmentations."""

    task: Any
    """The environment, with its numbers."""
    choice: int | Array
    """Which one, in the order of the task's menu."""
    amount: float | Array = 0.0
    """Its own number, where it has one."""
    error: float | Array = 0.0
    """Added to the first number of the next observation, so that an exact augmentation is wrong by this."""
    reward_error: float | Array = 0.0
    """Added to the reward."""

    def __call__(self, key: Key, transition: Transition) -> Transition:
        def branch(name: str, change: Change) -> Any:
            def changed(task: Any, key: Key, transition: Transition, amount: Any) -> Transition:
                # Branches must agree in their dtypes, and so must arms.
                return conform(name, change.apply(task, key, transition, amount), transition)

            return changed

        branches = [branch(PREFIX + name, change) for name, change in self.task.menu.items()]
        made = lax.switch(self.choice, branches, self.task, key, transition, self.amount)
        return made._replace(
            next_observation=made.next_observation.at[0].add(self.error),
            reward=made.reward + self.reward_error,
        )

    @property
    def reference(self) -> str:
        """The name by which the catalogue makes it again for the same task."""
        name, change = list(self.task.menu.items())[int(self.choice)]
        given = options_of(change) | {one: float(getattr(self, one)) for one in ERRORS}
        if change.amount is not None:
            given[change.amount[0]] = float(self.amount)
        written = [f"{one}={value!r}" for one, value in given.items() if value != options_of(change)[one]]
        return f"{PREFIX}{name}({', '.join(written)})" if written else f"{PREFIX}{name}"


def menu(name: str, environment: Any, **numbers: float) -> Menu:
    """The augmentation of a family's menu that has this name (`reflect`), with its numbers."""
    change = offered(name, environment)
    given = options_of(change) | numbers
    if change.amount is None:
        amount = 0.0
    else:
        amount = given[own := change.amount[0]]
        if own == "p" and not 0 <= amount <= 1:
            raise UserError(f"{PREFIX}{name}: p must lie in [0, 1], not {amount}")
    return Menu(
        jax.tree.map(float, environment),
        list(environment.menu).index(name),
        amount,
        *(given[one] for one in ERRORS),
    )


def offered(name: str, environment: Any) -> Change:
    """What an environment's menu has under this name."""
    offers: Mapping[str, Change] | None = getattr(environment, "menu", None)
    if offers is None:
        raise UserError(f"augmentation '{PREFIX}{name}' is for {PREFIX}*, not for {environment.name}")
    if name not in offers:
        choices = ", ".join(PREFIX + one for one in offers)
        raise UserError(f"{environment.name} has no augmentation '{PREFIX}{name}': choose from {choices}")
    return offers[name]


def options_of(change: Change) -> dict[str, float]:
    """The numbers that an augmentation takes, with their defaults."""
    own = {} if change.amount is None else dict([change.amount])
    return {**own, **dict.fromkeys(ERRORS, 0.0)}


def every_change() -> dict[str, Change]:
    """The augmentations of all families, by name; where families share a name it means the same."""
    found: dict[str, Change] = {}
    for family in FAMILIES.values():
        for name, change in family.changes.items():
            found.setdefault(name, change)
    return found
