"""Runs an augmentation over rows: compiled where JAX can trace it, one row after the other where it cannot.

Either way a copy is what `replay.copies` says it is.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache, partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from augury.augmentations import make, parse
from augury.augmentations.base import FromNumpy, Plain, as_pytree, conforming, from_numpy, generator_of
from augury.errors import UserError
from augury.precision import double_precision
from augury.replay import copies
from augury.sb3.checks import Limits, check_made
from augury.sb3.cpu import in_parts
from augury.sb3.keys import Numbers, key_data, root_of
from augury.transition import Array, Key, Transition

Promise = Callable[[], Transition]


def named(name: str, environment: str | None) -> Callable[..., Transition]:
    """The augmentation that a name or a `module:name` stands for, where it depends on the task in this one.

    A plain function stays one: whether it is written in JAX or in NumPy shows when it is run.
    """
    entry, _ = parse(name)
    found = make(name, environment if entry.takes_task or entry.takes_environment else None)
    return found.function if isinstance(found, Plain) else found


class Augmenter(Protocol):
    """Makes copies of transitions, given as arrays with one row each."""

    slow: bool
    """Whether copies are worth keeping."""

    def __call__(
        self, identity: Numbers, copy: Numbers, transitions: Transition, shown: dict[str, Any]
    ) -> Promise:
        """Start making copies; calling what is returned waits for them, checks them and hands them over.

        The augmentation also reads the extras in `shown`, which copies do not keep.
        """


class Compiled:
    """Every row at once, in one compiled call on the CPU."""

    slow = False

    def __init__(
        self,
        augmentation: Callable[..., Transition],
        name: str,
        seed: int,
        limits: list[Limits],
        double: bool,
        traced: str,
    ) -> None:
        fields = tuple((limit.field, limit.entry) for limit in limits)
        program = _program if _is_hashable(augmentation) else _program.__wrapped__
        bounds = [(limit.low, limit.high) for limit in limits]
        self._name, self._limits, self._double = name, limits, double
        self._all = partial(program(augmentation, name, fields, traced), root_of(seed), bounds)

    def __call__(
        self, identity: Numbers, copy: Numbers, transitions: Transition, shown: dict[str, Any]
    ) -> Promise:
        rows = identity, copy, transitions, shown
        with self._failures_named():
            finished = self._in_double(*rows) if self._double else in_parts(self._all, *rows)

        def made() -> Transition:
            with self._failures_named():
                fine, result = finished()
            if not fine.all():
                check_made(self._name, result, self._limits)
            return result

        return made

    def _in_double(self, *rows: Any) -> Callable[[], Any]:
        """The same in double precision, which must last until the last call to the host."""
        with double_precision():
            finished = in_parts(self._all, *rows)()
        return lambda: finished

    @contextmanager
    def _failures_named(self) -> Iterator[None]:
        """Something that the program calls on the host may go wrong, such as a reward in NumPy."""
        try:
            yield
        except jax.errors.JaxRuntimeError as error:
            last = str(error).strip().rpartition("\n")[2]
            raise UserError(f"{self._name}: failed on a transition: {last}") from error


@lru_cache(maxsize=64)
def _program(
    augmentation: Callable[..., Transition],
    name: str,
    fields: tuple[tuple[str, str | None], ...],
    traced: str,
) -> Callable[..., tuple[Array, Transition]]:
    """Compiled once for all buffers with this augmentation that trace it to the same program.

    It may trace to another one where a function reads something that was changed since.
    """

    def every(
        root: Key, bounds: list[tuple[Any, Any]], identity: Array, copy: Array, *rows: Any
    ) -> tuple[Array, Transition]:
        limits = [Limits(*field, low, high) for field, (low, high) in zip(fields, bounds, strict=True)]

        def one(key: Key, transition: Transition, shown: dict[str, Array]) -> tuple[Array, Transition]:
            made = copies.copy_of(conforming(name, augmentation), key, transition, shown)
            finite = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(made)]
            inside = [limit.respected(made).all() for limit in limits]
            return jnp.stack([*finite, *inside]).all(), made

        made: tuple[Array, Transition] = jax.vmap(one)(copies.keys(root, identity, copy), *rows)
        return made

    return jax.jit(every)


def _is_hashable(augmentation: Callable[..., Transition]) -> bool:
    """One with arrays for parameters is not."""
    try:
        hash(augmentation)
    except TypeError:
        return False
    return True


class OnHost:
    """One row after the other, in Python."""

    slow = True

    def __init__(
        self,
        function: FromNumpy,
        name: str,
        seed: int,
        limits: list[Limits],
        not_traced: Exception | None = None,
    ) -> None:
        self._function, self._name, self._seed = function, name, seed
        self._limits, self._not_traced = limits, not_traced

    def __call__(
        self, identity: Numbers, copy: Numbers, transitions: Transition, shown: dict[str, Any]
    ) -> Promise:
        made: Transition = jax.tree.map(np.empty_like, transitions)
        places = jax.tree.leaves(made)
        for index, key in enumerate(key_data(self._seed, identity, copy)):
            row = self._one(key, *jax.tree.map(operator.itemgetter(index), (transitions, shown)))
            for place, value in zip(places, jax.tree.leaves(row), strict=True):
                place[index] = value
        check_made(self._name, made, self._limits)
        return lambda: made

    def _one(self, key: Any, transition: Transition, shown: dict[str, Any]) -> Transition:
        try:
            return copies.copy_of(self._apply, key, transition, shown)
        except UserError:
            raise
        except Exception as error:
            reason = _first_line(error)
            if self._not_traced is not None and _first_line(self._not_traced) != reason:
                reason += f" (and JAX cannot trace it: {_first_line(self._not_traced)})"
            raise UserError(f"{self._name}: failed on a transition: {reason}") from error

    def _apply(self, key: Any, transition: Transition) -> Transition:
        return self._function.apply(generator_of(key), transition)


def augmenter_for(
    augmentation: Callable[..., Transition],
    name: str,
    seed: int,
    example: Transition,
    limits: list[Limits],
    double: bool,
) -> Augmenter:
    """The quickest way to run an augmentation on transitions that look like `example`, in this precision.

    A plain function is taken for JAX if it can be traced, and traces alike twice without drawing from NumPy's
    or Python's generators: it would otherwise be compiled with what it happened to draw. Else it is NumPy.
    """

    def on_host(not_traced: Exception | None = None) -> OnHost:
        function = augmentation if isinstance(augmentation, FromNumpy) else from_numpy(augmentation)
        return OnHost(function, name, seed, limits, not_traced)

    if isinstance(augmentation, FromNumpy):
        return on_host()
    plain = as_pytree(augmentation) is not augmentation
    before = _generators()
    try:
        with double_precision() if double else nullcontext():
            first, second = (_traced(augmentation, name, example) for _ in range(2))
    except UserError:
        raise
    except Exception as error:
        if plain:
            return on_host(error)
        hint = ""
        if isinstance(error, jax.errors.TracerArrayConversionError):
            hint = "; wrap NumPy functions in from_numpy"
        reason = f"{_first_line(error)}{hint}"
        raise UserError(f"{name}: does not fit these spaces ({_shapes(example)}): {reason}") from error
    if plain and not (first == second and before == _generators()):
        return on_host()
    return Compiled(augmentation, name, seed, limits, double, first)


def _generators() -> tuple[Any, ...]:
    """The state of the generators that a careless function may draw from."""
    numpy_state: Any = np.random.get_state()
    return numpy_state[1].tobytes(), *numpy_state[2:], random.getstate()


def _traced(augmentation: Callable[..., Transition], name: str, example: Transition) -> str:
    """The program that the augmentation traces to, constants included, as text."""
    program = jax.make_jaxpr(conforming(name, augmentation))(jax.random.key(0), example)
    return f"{program} {[np.asarray(constant).tolist() for constant in program.consts]}"


def _first_line(error: Exception) -> str:
    first, _, _ = str(error).strip().partition("\n")
    return f"{type(error).__name__}: {first}"


def _shapes(example: Transition) -> str:
    observation = jax.tree.map(lambda leaf: leaf.shape, example.observation)
    return f"observation {observation}, action {example.action.shape} {example.action.dtype}"
