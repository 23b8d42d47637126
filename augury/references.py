"""`module:name`: how commands, study files and `run.json` refer to what users write.

load("my_module:mirror", "augmentation")      the object, with one clear line where that fails
describe(mirror)                              the text that finds it again: "my_module:mirror"
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import traceback
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from augury.errors import UserError, nearest


def is_reference(text: str) -> bool:
    """Whether a text has the form `module:name`."""
    return re.fullmatch(r"[\w.]+:[\w.]+", text) is not None


def load(reference: str, what: str) -> Any:
    """The object that `module:name` refers to; modules are looked for in the current folder too.

    `what` it should be ("environment", "augmentation") is for the error message.
    """
    module, _, name = reference.partition(":")
    found = import_module(module, f"{what} '{reference}'")
    for part in name.split("."):
        if not hasattr(found, part):
            if module == "__main__":
                raise UserError(f"{what} '{reference}' was defined in a script: put it into a module")
            public = [known for known in vars(found) if not known.startswith("_")]
            hint = nearest(part, public) if public else ""
            raise UserError(f"{what} '{reference}': {module} has no '{part}'{hint}")
        found = getattr(found, part)
    return found


def describe(value: Any) -> str:
    """A text for `value` that is the same in every process; `load` takes it where `value` can be imported."""
    if isinstance(value, str):
        return value
    if reference := reference_to(value):
        return reference
    kind = type(value)
    if is_dataclass(value) and not isinstance(value, type) and _shows_its_fields(kind):
        parts = (f"{field.name}={describe(getattr(value, field.name))}" for field in fields(value))
        return f"{kind.__name__}({', '.join(parts)})"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(describe, value))})"
    if hasattr(value, "__qualname__"):  # a lambda, or a function made by a function
        return f"{value.__module__}:{value.__qualname__}"
    says_nothing: bool = kind.__repr__ is object.__repr__  # type: ignore[comparison-overlap]
    return f"{kind.__module__}:{kind.__qualname__}" if says_nothing else repr(value)


def takes_argument(function: Any) -> bool:
    """Whether a function cannot be called without an argument."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # one that Python cannot look into
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(one.kind in positional and one.default is one.empty for one in parameters)


def reference_to(value: Any) -> str | None:
    """The `module:name` under which an object can be imported, if there is one."""
    if hasattr(value, "__qualname__"):
        module, name = value.__module__, value.__qualname__
        return f"{module}:{name}" if _is_at(module, name, value) else None
    module = type(value).__module__
    if module == "builtins":
        return None
    for name, other in vars(sys.modules.get(module, object)).items():
        if other is value:
            return f"{module}:{name}"
    return None


def _is_at(module: str, name: str, value: Any) -> bool:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def _shows_its_fields(kind: type) -> bool:
    """Whether a dataclass has the repr that `dataclass` made, and not one of its own."""
    return hasattr(kind.__repr__, "__wrapped__")


def import_module(module: str, what: str) -> Any:
    """A user's module; where it cannot be imported, one line that begins with what it was wanted for."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's module may raise anything, and even exit
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{module}.".startswith(f"{missing}."):
            raise UserError(
                f"{what}: there is no module '{missing}', neither in {folder} nor installed"
            ) from error
        reason = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
        raise UserError(f"{what}: importing {module} failed: {reason}{_where(error)}") from error


def _where(error: BaseException) -> str:
    """File and line that raised, if there was one."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
    return f" ({Path(ours[-1].filename).name}, line {ours[-1].lineno})" if ours else ""
