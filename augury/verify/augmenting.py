"""Copies of observed transitions, in double precision: compiled where JAX can trace the augmentation.

NumPy functions are called one row after the other, and so are plain functions that cannot be traced: one
that assigns in place, for example. SB3's buffer treats them alike.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import jax
import numpy as np

from augury.augmentations.base import (
    Augmentation,
    FromNumpy,
    Plain,
    conforming,
    describe,
    from_numpy,
    generator_of,
    needs_of,
)
from augury.errors import UserError
from augury.precision import double_precision
from augury.replay import copies
from augury.transition import Transition


def augment(augmentation: Augmentation, observed: Transition, seed: int) -> Transition:
    """Copy 0 of every row; rows are numbered from 0 on, and the seed gives the root."""
    with double_precision():
        rows = np.arange(len(observed.reward), dtype=np.uint32)
        keys = copies.keys(jax.random.key(seed), rows, np.uint32(0))
        if isinstance(augmentation, FromNumpy):
            return _on_host(augmentation, keys, observed)
        try:
            return _compiled(augmentation, keys, observed)
        except (UserError, jax.errors.JaxRuntimeError) as error:
            raise _failure(augmentation, error) from error
        except Exception as error:
            if not isinstance(augmentation, Plain):
                raise _failure(augmentation, error) from error
            function: Any = augmentation.function  # takes a generator, if it is NumPy's
            return _on_host(from_numpy(function, needs_of(function)), keys, observed)


def _compiled(augmentation: Augmentation, keys: Any, observed: Transition) -> Transition:
    """All rows at once."""
    function = partial(copies.copy_of, conforming(describe(augmentation), augmentation), shown={})
    augmented = jax.jit(jax.vmap(function))(keys, observed)
    # Here, since NumPy functions may be called only when their results are waited for.
    result: Transition = jax.tree.map(np.asarray, augmented)
    return result


def _on_host(function: FromNumpy, keys: Any, observed: Transition) -> Transition:
    """One row after the other."""
    made = []
    for index, key in enumerate(np.asarray(jax.random.key_data(keys))):
        row = jax.tree.map(operator.itemgetter(index), observed)
        try:
            made.append(function.apply(generator_of(key), row))
        except Exception as error:
            raise _failure(function, error) from error
    result: Transition = jax.tree.map(lambda *leaves: np.stack(leaves), *made)
    return result


def _failure(augmentation: Augmentation, error: Exception) -> UserError:
    """What went wrong, in one line."""
    if isinstance(error, UserError):
        return error
    lines = str(error).strip().splitlines() or [""]
    # What JAX calls on the host fails with a traceback, which ends with the reason.
    reason = lines[-1] if isinstance(error, jax.errors.JaxRuntimeError) else lines[0]
    named = describe(augmentation)
    return UserError(f"{named}: failed on a transition: {type(error).__name__}: {reason}")
