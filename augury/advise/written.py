"""Which version of its file an environment or augmentation is, so that an edited one counts as another."""

from __future__ import annotations

import hashlib
import sys
from functools import partial
from pathlib import Path
from typing import Any


def written(source: Any) -> str:
    """A digest of the file that a `module:name` or an object stands in; of what has none, nothing."""
    file = getattr(sys.modules.get(_module(source)), "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:12] if file else ""


def _module(source: Any) -> str:
    if isinstance(source, partial):
        return _module(source.func)
    if isinstance(source, str):  # module:name, or gymnasium:module:ID
        return source.removeprefix("gymnasium:").partition(":")[0]
    return str(getattr(source, "__module__", ""))
