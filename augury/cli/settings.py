"""An arm's settings as options of a command: those that are given, and help that tells the defaults."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Annotated, Any, TypedDict, get_type_hints

import tyro

from augury.fleet import Arm
from augury.fleet.defaults import DEFAULTS


def _documented(kind: type) -> dict[str, str]:
    """The text under each field of a class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(field.target, ast.Name)
            assert isinstance(text.value, ast.Constant)
            found[field.target.id] = " ".join(str(text.value.value).split())
    return found


def _default(name: str, value: Any) -> str:
    if name in DEFAULTS:
        words = " ".join(map(str, DEFAULTS[name])) if name == "hidden" else DEFAULTS[name]
        return f"(default: the environment's own; goal2d: {words})"
    return "" if value is None else f"(default: {value})"


def _option(name: str, kind: Any, text: str) -> Any:
    plain = str if name in _BY_REFERENCE else kind
    hint = _default(name, getattr(Arm, name))
    return Annotated[plain, tyro.conf.arg(help=text, help_behavior_hint=hint)]


_BY_REFERENCE = ("evaluation_environment", "augmentation")
"""Those that may be objects in Python are names on the command line."""

_HINTS = get_type_hints(Arm)

Settings = TypedDict(  # type: ignore[misc]
    "Settings",
    {
        name: _option(name, _HINTS[name], text)
        for name, text in _documented(Arm).items()
        if name != "environment"
    },
    total=False,
)
"""The settings of `Arm` that were given."""
