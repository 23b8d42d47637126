"""Names: for what the package itself has, what users register, and what installed packages provide.

A package provides by entry points. Its module is imported when one of its names is first asked for, so a
package that fails hinders nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple, TypeVar

from augury.errors import UserError, unknown_name
from augury.references import describe, load

T = TypeVar("T")

OURS = "augury"


class Listed(NamedTuple):
    """A name in a listing."""

    name: str
    origin: str
    """`augury`, the package that provides it, or the module that registered it."""
    problem: str = ""
    """Why it cannot be used, where that is so."""


class Registry(Mapping[str, T]):
    """What can be had by name: a mapping whose missing names are told with the nearest one that is there."""

    def __init__(
        self,
        kind: str,
        group: str,
        built_in: Callable[[], Mapping[str, T]],
        accept: Callable[[str, Any], T],
    ) -> None:
        self.kind, self.group = kind, group
        self._load_built_in, self._accept = built_in, accept
        self._registered: dict[str, tuple[T, str]] = {}
        self._loaded: dict[str, T] = {}

    def register(self, name: str, value: T, origin: str) -> None:
        """Make a value known by a name that nobody else has; again, if it is the same value."""
        if name in self._registered and self._registered[name][0] == value:
            return
        if (taken := self._origin(name)) is not None:
            raise UserError(
                f"{_an(self.kind)} called '{name}' is there already (from {taken}): choose another name"
            )
        self._registered[name] = value, origin

    def __getitem__(self, name: str) -> T:
        if name in self._registered:
            return self._registered[name][0]
        if name in self._built_in:
            return self._built_in[name]
        if name in self._provided:
            return self._from_package(name)
        raise unknown_name(self.kind, name, self)

    def listed(self) -> list[Listed]:
        """Every name with its origin. Packages are asked too, so this may import a lot."""
        found = [Listed(name, OURS) for name in self._built_in]
        found += [Listed(name, origin) for name, (_, origin) in self._registered.items()]
        for name, points in self._provided.items():
            origin = ", ".join(map(_package, points))
            problem = f"the name is taken by {OURS}" if name in self._built_in else ""
            if not problem:
                try:
                    self._from_package(name)
                except UserError as error:
                    problem = str(error)
            found.append(Listed(name, origin, problem))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._built_in, *self._registered, *self._provided]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._registered or name in self._built_in or name in self._provided

    @cached_property
    def _built_in(self) -> Mapping[str, T]:
        return self._load_built_in()

    @cached_property
    def _provided(self) -> dict[str, list[EntryPoint]]:
        """The entry points of installed packages, by name; nothing is imported."""
        found: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=self.group):
            found.setdefault(point.name, []).append(point)
        return found

    def _from_package(self, name: str) -> T:
        points = self._provided[name]
        if len({point.value for point in points}) > 1:
            packages = " and ".join(map(_package, points))
            raise UserError(f"{self.kind} '{name}' is provided by {packages}: uninstall one of them")
        if name not in self._loaded:
            try:
                self._loaded[name] = self._accept(name, load(points[0].value, self.kind))
            except UserError as error:
                raise UserError(f"{_package(points[0])} provides a broken '{name}': {error}") from error
        return self._loaded[name]

    def _origin(self, name: str) -> str | None:
        if name in self._registered:
            return self._registered[name][1]
        if name in self._built_in:
            return OURS
        return ", ".join(map(_package, self._provided[name])) if name in self._provided else None


def origin_of(value: Any) -> str:
    """The module that made something: where to look for it."""
    return describe(value).partition(":")[0] if hasattr(value, "__qualname__") else type(value).__module__


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


def _an(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
