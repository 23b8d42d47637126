"""Runs an augmentation over rows: compiled where JAX can trace it, one row after the other where it cannot.

Copy k of observed transition i is defined by (i, k) and a seed in both cases.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from gymnasium import Space

from augury.augmentations.base import FromNumpy, as_pytree, conform, from_numpy
from augury.errors import UserError
from augury.sb3.checks import action_limits, check_made
from augury.transition import Array, Key, Transition

Numbers = npt.NDArray[np.uint32]
Promise = Callable[[], Transition]

MOST_ROWS = 1_024
"""Rows in one compiled call."""


class Augmenter(Protocol):
    """Makes copies of transitions, given as arrays with one row each."""

    slow: bool
    """Whether copies are worth keeping."""

    def __call__(self, identity: Numbers, copy: Numbers, transitions: Transition) -> Promise:
        """Start making copies; calling what is returned waits for them, checks them and hands them over."""


class Compiled:
    """Every row at once, in one compiled call on the CPU."""

    slow = False

    def __init__(
        self, augmentation: Callable[..., Transition], name: str, seed: int, action_space: Space[Any]
    ) -> None:
        low, high = action_limits(action_space)

        def one(key: Key, identity: Array, copy: Array, transition: Transition) -> tuple[Array, Transition]:
            result = augmentation(copy_key(key, identity, copy), transition)
            made = conform(name, result, transition)._replace(extras={})  # which nobody reads
            finite = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(made)]
            inside = (made.action >= low).all() & (made.action <= high).all()
            return jnp.stack([*finite, inside]).all(), made

        self._name, self._action_space = name, action_space
        self._all = jax.jit(jax.vmap(one, in_axes=(None, 0, 0, 0)))
        with on_cpu():
            self._key = jax.random.key(seed)

    def __call__(self, identity: Numbers, copy: Numbers, transitions: Transition) -> Promise:
        count = len(identity)
        with on_cpu(), self._failures_named():
            parts = [self._all(self._key, *part) for part in _parts((identity, copy, transitions), count)]

        def made() -> Transition:
            with self._failures_named():
                fine, result = jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *parts)
            if not fine.all():
                check_made(self._name, result, self._action_space)
            return result

        return made

    @contextmanager
    def _failures_named(self) -> Iterator[None]:
        """Something that the program calls on the host may go wrong, such as a reward in NumPy."""
        try:
            yield
        except jax.errors.JaxRuntimeError as error:
            last = str(error).strip().rpartition("\n")[2]
            raise UserError(f"{self._name}: failed on a transition: {last}") from error


class OnHost:
    """One row after the other, in Python."""

    slow = True

    def __init__(
        self,
        function: FromNumpy,
        name: str,
        seed: int,
        action_space: Space[Any],
        not_traced: Exception | None = None,
    ) -> None:
        self._function, self._name, self._seed = function, name, seed
        self._action_space, self._not_traced = action_space, not_traced

    def __call__(self, identity: Numbers, copy: Numbers, transitions: Transition) -> Promise:
        made: Transition = jax.tree.map(np.empty_like, transitions._replace(extras={}))
        places = jax.tree.leaves(made)
        for index, number in enumerate(zip(identity.tolist(), copy.tolist(), strict=True)):
            generator = np.random.default_rng((self._seed, *number))
            row = self._one(generator, jax.tree.map(operator.itemgetter(index), transitions))
            for place, value in zip(places, jax.tree.leaves(row), strict=True):
                place[index] = value
        check_made(self._name, made, self._action_space)
        return lambda: made

    def _one(self, generator: np.random.Generator, transition: Transition) -> Transition:
        try:
            return self._function.apply(generator, transition)._replace(extras={})
        except UserError:
            raise
        except Exception as error:
            reason = _first_line(error)
            if self._not_traced is not None and _first_line(self._not_traced) != reason:
                reason += f" (and JAX cannot trace it: {_first_line(self._not_traced)})"
            raise UserError(f"{self._name}: failed on a transition: {reason}") from error


def augmenter_for(
    augmentation: Callable[..., Transition],
    name: str,
    seed: int,
    example: Transition,
    action_space: Space[Any],
) -> Augmenter:
    """The quickest way to run an augmentation on transitions that look like `example`.

    A plain function is taken for JAX if it can be traced, and traces alike twice without drawing from NumPy's
    or Python's generators: it would otherwise be compiled with what it happened to draw. Else it is NumPy.
    """

    def on_host(not_traced: Exception | None = None) -> OnHost:
        function = augmentation if isinstance(augmentation, FromNumpy) else from_numpy(augmentation)
        return OnHost(function, name, seed, action_space, not_traced)

    if isinstance(augmentation, FromNumpy):
        return on_host()
    plain = as_pytree(augmentation) is not augmentation
    before = _generators()
    try:
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
    return Compiled(augmentation, name, seed, action_space)


def copy_key(key: Key, identity: Array, copy: Array) -> Key:
    """The key that defines one copy of one transition."""
    return jax.random.fold_in(jax.random.fold_in(key, identity), copy)


def steps_ahead(seed: int, identity: Numbers, copy: Numbers, remaining: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Which of the `remaining` steps of its episode each copy looks at, itself included: uniform."""
    count, rows = len(identity), (identity, copy, remaining.astype(np.int32))
    with on_cpu():
        # Another root than the copies' own: what an augmentation draws must not depend on what it was shown.
        key = jax.random.fold_in(jax.random.key(seed), np.uint32(2**32 - 1))
        return np.concatenate([_steps_ahead(key, *part) for part in _parts(rows, count)])[:count]


@jax.jit
@partial(jax.vmap, in_axes=(None, 0, 0, 0))
def _steps_ahead(key: Key, identity: Array, copy: Array, remaining: Array) -> Array:
    return jax.random.randint(copy_key(key, identity, copy), (), 0, remaining)


def _parts(rows: Any, count: int) -> list[Any]:
    """Rows in parts of few different sizes, so that few programs are compiled: powers of two, up to a limit.

    The last part is filled up with rows that are already there.
    """
    size = min(1 << (count - 1).bit_length(), MOST_ROWS)
    room = size * math.ceil(count / size)
    if room != count:
        rows = jax.tree.map(lambda leaf: np.resize(leaf, (room, *leaf.shape[1:])), rows)
    cuts = (slice(start, start + size) for start in range(0, room, size))
    return [jax.tree.map(operator.itemgetter(cut), rows) for cut in cuts]


def on_cpu() -> Any:
    """Compute here: a batch is too small for a trip to an accelerator, which the learner may be using."""
    try:
        return jax.default_device(jax.local_devices(backend="cpu")[0])
    except RuntimeError:  # JAX was told to use nothing else
        return nullcontext()


def _generators() -> tuple[Any, ...]:
    """The state of the generators that a careless function may draw from."""
    numpy_state: Any = np.random.get_state()
    return numpy_state[1].tobytes(), *numpy_state[2:], random.getstate()


def _traced(augmentation: Callable[..., Transition], name: str, example: Transition) -> str:
    """The program that the augmentation traces to, constants included, as text."""

    def checked(key: Key, transition: Transition) -> Transition:
        return conform(name, augmentation(key, transition), transition)

    program = jax.make_jaxpr(checked)(jax.random.key(0), example)
    return f"{program} {[np.asarray(constant).tolist() for constant in program.consts]}"


def _first_line(error: Exception) -> str:
    first, _, _ = str(error).strip().partition("\n")
    return f"{type(error).__name__}: {first}"


def _shapes(example: Transition) -> str:
    observation = jax.tree.map(lambda leaf: leaf.shape, example.observation)
    return f"observation {observation}, action {example.action.shape} {example.action.dtype}"
