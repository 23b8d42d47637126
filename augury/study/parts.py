"""A part of a study: the arms and tasks that its user names."""

from __future__ import annotations

from collections.abc import Sequence

from augury.errors import UserError, unknown_name
from augury.study.arms import StudyArm


def part_of(arms: Sequence[StudyArm], only: Sequence[str] | str, where: str) -> list[StudyArm]:
    """The arms that `only` names, in their order; all of them if it names none. Errors begin with `where`.

    Each text names an arm, a task, or one arm on one task ("task: arm"). Of arms and tasks together, the
    part has these arms on these tasks; what "task: arm" names comes in addition.
    """
    texts = {only} if isinstance(only, str) else {*only}
    if not texts:
        return list(arms)
    names, tasks = {one.name for one in arms}, {one.task for one in arms}
    pairs = {_pair(one) for one in arms}
    for text in sorted(texts - names - tasks - pairs):
        choices = names | tasks | (pairs if ":" in text else set())
        raise UserError(f"{where}: {unknown_name('arm or task', text, choices)}")
    named, on = texts & names or names, texts & tasks or tasks
    crossed = bool(texts & (names | tasks))  # else all are pairs
    found = [one for one in arms if _pair(one) in texts or (crossed and one.name in named and one.task in on)]
    if not found:
        quoted = (" or ".join(f"'{text}'" for text in sorted(each)) for each in (named, on))
        raise UserError(f"{where}: there is no arm {' on '.join(quoted)}")
    return found


def _pair(one: StudyArm) -> str:
    """As progress is printed."""
    return f"{one.task}: {one.name}"
