"""What an augmentation is, and how to make one from others or from a NumPy function.

An augmentation is a pure function of a random key and ONE transition. Parametrised ones are frozen
dataclasses; their numbers are pytree leaves, so agents of one fleet may each have their own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from augury.errors import UserError
from augury.pytrees import frozen_pytree, static
from augury.transition import Array, Key, Transition

T = TypeVar("T")


class Augmentation(Protocol):
    """A stochastic function from a transition to a transition."""

    def __call__(self, key: Key, transition: Transition) -> Transition: ...


@dataclass_transform(frozen_default=True, field_specifiers=(static,))
def augmentation(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass whose fields are leaves of a pytree, but for `static()` ones."""
    return frozen_pytree(cls)


def needs_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The extras an augmentation reads; most read none."""
    needs = getattr(function, "needs", ())
    return (needs,) if isinstance(needs, str) else tuple(needs)


@augmentation
class Plain:
    """A function without parameters of its own, as a pytree without leaves."""

    function: Augmentation = static()

    @property
    def needs(self) -> tuple[str, ...]:
        return needs_of(self.function)

    def __repr__(self) -> str:
        return _name(self.function)

    def __call__(self, key: Key, transition: Transition) -> Transition:
        return self.function(key, transition)


def as_pytree(function: Augmentation) -> Augmentation:
    """The augmentation itself, or wrapped where JAX would take it for a number."""
    if jax.tree.leaves(function) != [function]:
        return function
    if inspect.isfunction(function):
        try:
            inspect.signature(function).bind("key", "transition")
        except TypeError as error:
            name = describe(function)
            raise UserError(f"{name}: an augmentation takes a key and a transition: {error}") from error
    return Plain(function)


@augmentation
class Compose:
    """Apply several augmentations one after the other."""

    parts: tuple[Augmentation, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return _all_needs(self.parts)

    def __call__(self, key: Key, transition: Transition) -> Transition:
        for part, part_key in zip(self.parts, jax.random.split(key, len(self.parts)), strict=True):
            transition = part(part_key, transition)
        return transition


@augmentation
class Sometimes:
    """Augment with probability p; otherwise return the transition as it is."""

    p: float | Array
    part: Augmentation

    @property
    def needs(self) -> tuple[str, ...]:
        return needs_of(self.part)

    def __call__(self, key: Key, transition: Transition) -> Transition:
        coin_key, part_key = jax.random.split(key)
        augment = jax.random.bernoulli(coin_key, self.p)
        return _select(augment, self.part(part_key, transition), transition)


@augmentation
class Choose:
    """Apply one of several augmentations, each equally likely."""

    parts: tuple[Augmentation, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return _all_needs(self.parts)

    def __call__(self, key: Key, transition: Transition) -> Transition:
        choice_key, part_key = jax.random.split(key)
        choice = jax.random.randint(choice_key, (), 0, len(self.parts))
        chosen = self.parts[0](part_key, transition)
        for index, part in enumerate(self.parts[1:], start=1):
            chosen = _select(choice == index, part(part_key, transition), chosen)
        return chosen


def compose(*parts: Augmentation) -> Compose:
    """Apply the augmentations one after the other."""
    return Compose(_at_least_one("compose", parts))


def sometimes(p: float, part: Augmentation) -> Sometimes:
    """Augment with probability p, else leave the transition alone."""
    if not 0 <= p <= 1:
        raise UserError(f"sometimes: p must lie in [0, 1], not {p}")
    return Sometimes(p, as_pytree(part))


def choose(*parts: Augmentation) -> Choose:
    """Apply one of the augmentations, each equally likely."""
    return Choose(_at_least_one("choose", parts))


NumpyFunction = Callable[[np.random.Generator, Transition], Transition]


@augmentation
class FromNumpy:
    """A plain NumPy function of a generator and one transition, as an augmentation.

    The generator is seeded by the key, so the same key gives the same transition: what is recomputed
    agrees with what was stored. It runs on the host, one transition at a time.
    """

    function: NumpyFunction = static()
    needs: tuple[str, ...] = static(default=())

    def __repr__(self) -> str:
        return f"from_numpy({_name(self.function)})"

    def __call__(self, key: Key, transition: Transition) -> Transition:
        shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), transition)
        return jax.pure_callback(
            self._on_host, shapes, jax.random.key_data(key), transition, vmap_method="sequential"
        )

    def _on_host(self, key_data: Any, transition: Transition) -> Transition:
        return self.apply(generator_of(key_data), jax.tree.map(np.asarray, transition))

    def apply(self, generator: np.random.Generator, transition: Transition) -> Transition:
        """Call the function with arrays of its own, should it write in place, and check what it returns."""
        result = self.function(generator, jax.tree.map(np.array, transition))
        return conform(describe(self), result, transition)


def generator_of(key_data: Any) -> np.random.Generator:
    """What a NumPy function draws from where one in JAX would be given the key with these numbers."""
    return np.random.default_rng(np.asarray(key_data))


def from_numpy(function: NumpyFunction, needs: tuple[str, ...] = ()) -> FromNumpy:
    """Wrap `function(generator, transition) -> transition`, written with NumPy alone."""
    return FromNumpy(function, needs)


def describe(augmentation: Any) -> str:
    """What to call an augmentation in a message."""
    if isinstance(augmentation, str):
        return augmentation
    if isinstance(augmentation, FromNumpy):
        return describe(augmentation.function)
    return getattr(augmentation, "__name__", None) or repr(augmentation)


def _name(function: Callable[..., Any]) -> str:
    """A name that is the same in every process."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def conform(name: str, result: Any, expected: Transition) -> Transition:
    """What an augmentation returned, with the dtypes of `expected` after a check of structure and shapes."""
    if not isinstance(result, Transition):
        raise UserError(f"{name} must return a Transition, not {type(result).__name__}")
    return Transition(
        *(
            _like(f"{name}: {field_name}", value, expected_value)
            for field_name, value, expected_value in zip(Transition._fields, result, expected, strict=True)
        )
    )


def conforming(name: str, augmentation: Augmentation) -> Augmentation:
    """An augmentation whose results are checked, and have the dtypes of what it was given."""
    return lambda key, transition: conform(name, augmentation(key, transition), transition)


def _like(what: str, value: Any, expected: Any) -> Any:
    if isinstance(expected, dict):
        if not isinstance(value, dict) or value.keys() != expected.keys():
            raise UserError(f"{what} must keep its keys {sorted(expected)}")
        return {key: _like(f"{what}[{key!r}]", value[key], expected[key]) for key in expected}
    array = value if isinstance(value, jax.Array) else np.asarray(value)
    if array.shape != expected.shape:
        raise UserError(f"{what} must keep its shape {expected.shape}, not {array.shape}")
    if not np.can_cast(array.dtype, expected.dtype, "same_kind"):
        raise UserError(f"{what} must keep its kind of numbers, {expected.dtype}, not {array.dtype}")
    return array.astype(expected.dtype)


def _select(condition: Array, yes: Transition, no: Transition) -> Transition:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def _at_least_one(what: str, parts: tuple[Augmentation, ...]) -> tuple[Augmentation, ...]:
    if not parts:
        raise UserError(f"{what} needs at least one augmentation")
    return tuple(as_pytree(part) for part in parts)


def _all_needs(parts: tuple[Augmentation, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in needs_of(part)))
