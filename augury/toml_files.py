"""TOML files that people write: reading them, and saying what is wrong in their own words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec

from augury.errors import UserError, nearest

_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
_GOT = {**_EXPECTED, "float": "a fraction"}


def read_toml(path: Path) -> dict[str, Any]:
    """What a file says, or one line that says why it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}") from error


def converted(written: Any, kind: Any, where: str, table: str = "") -> Any:
    """A table as what it should be, or an error that names file, table and key."""
    try:
        return msgspec.convert(written, kind)
    except msgspec.ValidationError as error:
        raise UserError(f"{where}: {_in_words(str(error), kind, table)}") from None


def _in_words(message: str, kind: Any, table: str) -> str:
    """The message of msgspec in words, with the table and key as in the file, and the key that was meant."""
    said, _, path = message.partition(" - at ")
    steps = re.findall(r"\.(\w+)((?:\[[\d.]+\])*)", path)
    unknown = re.search(r"unknown field `(.+)`", said)
    missing = re.search(r"missing required field `(.+)`", said)
    for name, places in steps if unknown or missing else steps[:-1]:
        table = f"[[{name}]] {int(places[1:-1]) + 1}" if places[1:-1].isdigit() else f"[{name}]"
        kind = next(part for part in _parts(_kinds(kind)[name]) if hasattr(part, "__struct_fields__"))
    where = f"in {table}, " if table else ""
    if unknown:
        return f"{where}unknown key '{unknown[1]}'{nearest(unknown[1], _kinds(kind))}"
    if missing:
        return f"{where}'{missing[1]}' is missing"
    name, places = steps[-1]
    key = where + _placed(name, places)
    if wrong := re.search(r"[Ii]nvalid enum value '(.+)'", said):
        choices = [part for part in _parts(_kinds(kind)[name]) if isinstance(part, str)]
        return f"{key} cannot be '{wrong[1]}'{nearest(wrong[1], choices)}"
    expected, _, got = said.removeprefix("Expected ").partition(", got ")
    return f"{key} must be {_named(expected, _EXPECTED)}" + (f", not {_named(got, _GOT)}" if got else "")


def _placed(name: str, places: str) -> str:
    """A key, or a part of its value: msgspec counts items of a list, and writes [...] for a table's value."""
    words = f"'{name}'"
    for place in re.findall(r"\[([\d.]+)\]", places):
        words = f"item {int(place) + 1} of {words}" if place.isdigit() else f"a value of {words}"
    return words


def _named(kinds: str, names: dict[str, str]) -> str:
    """Kinds of values in words: `str | array` is a string or a list."""

    def either(found: re.Match[str]) -> str:
        known = [names.get(kind, kind) for kind in found[1].split(" | ") if kind != "null"]
        return " or ".join(known)

    words = re.sub(r"`(.+?)`", either, kinds).removesuffix(".0")
    return words.replace(">=", "of at least").replace("<=", "of at most").replace(">", "above")


def _kinds(kind: Any) -> dict[str, Any]:
    """The keys that a table may have, and the kind of value of each."""
    return {field.name: field.type for field in msgspec.structs.fields(kind)}


def _parts(kind: Any) -> Iterator[Any]:
    """A type and all that it is made of, values of literals too."""
    yield kind
    for part in get_args(kind):
        yield from _parts(part)
