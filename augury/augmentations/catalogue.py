"""Augmentations by name, with what each takes and needs; by `module:name`; or as they are."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from inspect import signature
from types import MappingProxyType
from typing import Any, NamedTuple

from augury import envs
from augury.augmentations import families, goal2d, panda, symmetry
from augury.augmentations.base import Augmentation, as_pytree, needs_of
from augury.augmentations.goals import LATER_GOALS
from augury.envs.families import FAMILIES, Change
from augury.envs.mujoco.locomotion import TASKS
from augury.envs.panda.goals import GOAL_TASKS, GoalTask
from augury.errors import UserError
from augury.references import describe, is_reference, load, reference_to
from augury.registry import Registry, origin_of


class Entry(NamedTuple):
    """One line of the catalogue."""

    name: str
    make: Callable[..., Augmentation]
    environment: str = ""
    """The one it is for, or a family of them: panda-*. Empty where it may be for any."""
    summary: str = ""
    needs: tuple[str, ...] = ()
    """The extras it reads from a transition."""
    options: Mapping[str, float] = MappingProxyType({})
    """Parameters that may be left out, with their defaults: those of families, which have no others."""

    @property
    def parameters(self) -> tuple[str, ...]:
        if self.takes_environment:
            return tuple(self.options)
        return tuple(name for name in signature(self.make).parameters if name != "task")

    @property
    def takes_task(self) -> bool:
        """Whether it is another function for every task of its family."""
        return "task" in signature(self.make).parameters

    @property
    def takes_environment(self) -> bool:
        """Whether it is one of a family's menu, chosen for an environment with its knobs."""
        return "environment" in signature(self.make).parameters

    @property
    def home(self) -> str:
        """Where it belongs, for those that ask without naming an environment."""
        if self.takes_task or self.takes_environment:
            choices = ", ".join(
                FAMILIES if self.takes_environment else [f"panda-{name}" for name in GOAL_TASKS]
            )
            raise UserError(f"{self.name} is for several environments: choose one of {choices}")
        if not self.environment:
            raise UserError(f"{self.name} may be for any environment: say which with --environment")
        return self.environment

    def require(self, environment: Any) -> None:
        """Refuse an environment that is neither its own nor a variant, named after what it varies."""
        where = envs.make(environment)
        if self.takes_environment:
            families.offered(self.name.removeprefix(families.PREFIX), where)
            return
        fits = hasattr(where, "all_goals") if self.takes_task else self._is_variant(where.name)
        if not fits:
            raise UserError(f"augmentation '{self.name}' is for {self.environment}, not for {where.name}")

    @property
    def signature(self) -> str:
        """How to write it."""
        return self._written(self.parameters)

    @property
    def listed(self) -> str:
        """The same without what any of a family's takes."""
        return self._written(name for name in self.parameters if name not in families.ERRORS)

    def _written(self, parameters: Iterable[str]) -> str:
        known = [f"{name}={self.options[name]:g}" if name in self.options else name for name in parameters]
        return f"{self.name}({', '.join(known)})" if known else self.name

    def _is_variant(self, environment: str) -> bool:
        return not self.environment or f"{environment}-".startswith(f"{self.environment}-")


def _goal2d(name: str, make: type[Augmentation]) -> Entry:
    return Entry(f"goal2d/{name}", make, "goal2d", (make.__doc__ or "").split("\n")[0])


def _panda(name: str, make: Callable[..., Augmentation], needs: tuple[str, ...] = ()) -> Entry:
    return Entry(f"panda/{name}", make, "panda-*", (make.__doc__ or "").split("\n")[0], needs)


def of_family(name: str, change: Change) -> Entry:
    """The line for an augmentation that families have on their menus: `family/NAME`."""
    make = partial(families.menu, name)
    return Entry(
        families.PREFIX + name, make, f"{families.PREFIX}*", change.does, (), families.options_of(change)
    )


def _from_the_quadrant(task: GoalTask) -> Augmentation:
    """Put the goal where the task's quadrant might have put it."""
    return panda.TranslateGoal(task.quadrant)


def _hindsight(task: GoalTask) -> Augmentation:
    """Pretend that a goal achieved by this step or a later one was desired (HER)."""
    return panda.hindsight(task, "future")


def _hindsight_final(task: GoalTask) -> Augmentation:
    """Pretend that the goal achieved at the episode's end was desired (HER)."""
    return panda.hindsight(task, "final")


def _reflect(robot: str, does: str, needs: tuple[str, ...] = ()) -> Entry:
    def make() -> Augmentation:
        return symmetry.reflect(TASKS[robot])

    return Entry(f"{robot}/reflect", make, robot, does, needs)


def _rotate(robot: str) -> Entry:
    def make() -> Augmentation:
        return symmetry.rotate(TASKS[robot])

    degrees = round(math.degrees(TASKS[robot].largest_turn))
    does = f"Rotate its heading by up to {degrees} degrees either way."
    return Entry(f"{robot}/rotate", make, robot, does, symmetry.VELOCITY)


def _built_in() -> Mapping[str, Entry]:
    entries = (
        _goal2d("translate", goal2d.Translate),
        _goal2d("rotate", goal2d.Rotate),
        _goal2d("translate-proximal", goal2d.TranslateProximal),
        _panda("translate-goal", panda.TranslateGoal),
        _panda("translate-goal-quadrant", _from_the_quadrant),
        _panda("translate-goal-proximal", panda.TranslateGoalProximal),
        _panda("hindsight", _hindsight, LATER_GOALS[:1]),
        _panda("hindsight-final", _hindsight_final, LATER_GOALS[1:]),
        _reflect("swimmer", "Mirror left and right."),
        _reflect("walker2d", "Mirror left and right: exchange the legs."),
        _reflect("ant", "Mirror front and back: forward becomes backward.", symmetry.VELOCITY[:1]),
        _rotate("ant"),
        _reflect("humanoid", "Mirror left and right."),
        _rotate("humanoid"),
        *(of_family(name, change) for name, change in families.every_change().items()),
    )
    return {entry.name: entry for entry in entries}


def _entry(name: str, found: Any) -> Entry:
    """What an entry point or a user gave: an augmentation, a class of them, or a line of the catalogue."""
    if isinstance(found, Entry):
        return found._replace(name=name)
    if not callable(found):
        raise UserError(f"{name} is no augmentation: it cannot be called")
    summary = (found.__doc__ or "").split("\n")[0]
    if isinstance(found, type):
        needs = getattr(found, "needs", ())
        return Entry(name, found, "", summary, needs if isinstance(needs, tuple) else ())
    return Entry(name, lambda: found, "", summary, needs_of(found))


CATALOGUE: Registry[Entry] = Registry("augmentation", "augury.augmentations", _built_in, _entry)
"""All that have a name."""


def register(name: str, augmentation: Any, *, environment: str = "") -> None:
    """Make an augmentation, or a class of them with parameters, known by a name.

    Packages do without: an entry point of the group `augury.augmentations` is found by every command.
    """
    entry = _entry(name, augmentation)
    CATALOGUE.register(name, entry._replace(environment=environment), origin_of(augmentation))


def make(source: Any, environment: Any = None, **parameters: Any) -> Augmentation:
    """The augmentation that a name, a `module:name` or a function stands for.

    Parameters stand behind the name: `goal2d/translate-proximal(0.1)`, `…(p=0.1)`. One for several tasks
    needs the environment too: `make("panda/translate-goal", "panda-push")`.
    """
    if not isinstance(source, str):
        return as_pytree(source)
    entry, written = parse(source)
    if environment is not None:
        entry.require(environment)
    given = written | parameters
    missing = [name for name in entry.parameters if name not in given and name not in entry.options]
    if missing:
        raise UserError(f"{entry.name} needs {', '.join(missing)}: write '{entry.signature}'")
    surplus = [name for name in given if name not in entry.parameters]
    if surplus:
        raise UserError(f"{entry.name} takes no {', '.join(surplus)}: write '{entry.signature}'")
    if not (entry.takes_task or entry.takes_environment):
        return as_pytree(entry.make(**given))
    if environment is None:
        example = "family/point" if entry.takes_environment else "panda-push"
        raise UserError(f"{entry.name} needs to know its task: make('{source}', '{example}')")
    if entry.takes_environment:
        return entry.make(environment=envs.make(environment), **given)
    return entry.make(task=envs.make(environment).all_goals, **given)  # type: ignore[union-attr]


def reference(source: Any) -> str:
    """A text that is the same in every process; `make` takes it if the augmentation can be imported."""
    if isinstance(source, families.Menu):
        return source.reference
    home = reference_to(type(source))
    if not is_dataclass(source) or home is None or reference_to(source) is not None:
        return describe(source)
    values = {one.name: getattr(source, one.name) for one in fields(source)}
    if not all(isinstance(value, float | int) for value in values.values()):
        return describe(source)
    written = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return f"{home}({written})" if written else home


def parse(text: str) -> tuple[Entry, dict[str, Any]]:
    """The catalogue entry that `text` names and the parameters written behind it."""
    name, bracket, arguments = text.partition("(")
    entry = _entry(name, load(name, "augmentation")) if is_reference(name) else CATALOGUE[name]
    if not bracket:
        return entry, {}
    try:
        call: Any = ast.parse(f"f({arguments}", mode="eval").body
        values = [float(ast.literal_eval(node)) for node in call.args]
        named = {str(word.arg): float(ast.literal_eval(word.value)) for word in call.keywords}
    except (SyntaxError, AttributeError, TypeError, ValueError):
        raise UserError(f"cannot read '{text}': write '{entry.signature}' with numbers") from None
    if len(values) > len(entry.parameters):
        raise UserError(f"too many parameters in '{text}': write '{entry.signature}'")
    return entry, dict(zip(entry.parameters, values, strict=False)) | named
