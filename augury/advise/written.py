"""Which version an environment or augmentation is, so that an edited one counts as another.

That is its file's. A function that stands under no name in a file, as one that is made by another function or
typed into a notebook, is known to this process alone.
"""

from __future__ import annotations

import hashlib
import secrets
import sys
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from augury.references import reference_to

_UNNAMED: dict[int, tuple[Any, str]] = {}
"""Functions that cannot be found again, by their identity, which is theirs as long as they are held here."""


def written(source: Any) -> str:
    """A digest of the file that a `module:name` or an object stands in; of what has none, nothing."""
    file = getattr(sys.modules.get(_module(source)), "__file__", None)
    is_function = isinstance(source, partial | FunctionType | MethodType)
    if is_function and (file is None or reference_to(source) is None):
        _, token = _UNNAMED.setdefault(id(source), (source, secrets.token_hex(6)))
        return token
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:12] if file else ""


def _module(source: Any) -> str:
    if isinstance(source, partial):
        return _module(source.func)
    if isinstance(source, str):  # module:name, or gymnasium:module:ID
        return source.removeprefix("gymnasium:").partition(":")[0]
    return str(getattr(source, "__module__", ""))
