"""Files of named arrays and remarks. Nothing is unpickled; a checksum of everything shows damage."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from augury.files import replacing

Arrays = dict[str, np.ndarray[Any, Any]]
_CHECKSUMS = "checksums"


class DamagedError(Exception):
    """A file that does not hold what was written."""


def save(path: Path, arrays: Arrays, about: dict[str, str]) -> None:
    """Write a file, replacing an older one only when it is complete."""
    checksums = json.dumps(_checksums(arrays, about))
    with replacing(path) as temporary:
        try:
            save_file(arrays, temporary, {**about, _CHECKSUMS: checksums})
        except SafetensorError as error:  # how safetensors reports a full disk
            raise OSError(str(error)) from error


def load(path: Path) -> tuple[Arrays, dict[str, str]]:
    """Read a file back, arrays and remarks."""
    try:
        with safe_open(path, framework="numpy") as file:
            about = file.metadata() or {}
            arrays: Arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        intact = json.loads(about.pop(_CHECKSUMS)) == _checksums(arrays, about)
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise DamagedError(str(error)) from error
    if not intact:
        raise DamagedError("checksums differ")
    return arrays, about


def remarks(path: Path) -> dict[str, str]:
    """The remarks alone, of a file however large; unchecked."""
    try:
        with safe_open(path, framework="numpy") as file:
            return file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise DamagedError(str(error)) from error


def named(tree: Any) -> dict[str, Any]:
    """The leaves of a tree by their paths in it."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def under(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays whose names begin so, without that beginning."""
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}


def _checksums(arrays: Arrays, about: dict[str, str]) -> dict[str, int]:
    """A number for every array and every remark that changes when they do."""
    remarks = {name: zlib.crc32(text.encode()) for name, text in about.items()}
    return remarks | {name: zlib.crc32(np.ascontiguousarray(values).data) for name, values in arrays.items()}
