"""Environments that give and take their state, by a pair of methods: `get_state()` and `set_state(state)`.

The state is a dict of arrays, which always have the same shapes. Besides it, what Gymnasium itself keeps is
saved: the generator of random numbers, and how many steps the time limit has counted.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.wrappers import TimeLimit

State = dict[str, npt.NDArray[Any]]
RANDOM = "np_random"
"""The name under which the generator is saved beside the environment's own."""
_WORD = 2**64


def has_state(env: Any) -> bool:
    """Whether an environment has the pair; Gymnasium's MuJoCo ones have only a `set_state`."""
    return all(callable(getattr(env.unwrapped, name, None)) for name in ("get_state", "set_state"))


def state_of(env: Any) -> State:
    """All that the next step depends on."""
    own = {name: np.array(values) for name, values in env.unwrapped.get_state().items()}
    return own | {RANDOM: _numbers(env.unwrapped.np_random)}


def put(env: Any, state: State, steps: Any) -> None:
    """Bring an environment whose episode has just begun to a state, which it had after so many steps."""
    _seed(env.unwrapped.np_random, state[RANDOM])
    env.unwrapped.set_state({name: values for name, values in state.items() if name != RANDOM})
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, TimeLimit):
            env._elapsed_steps = steps
        env = env.env


def _numbers(generator: np.random.Generator) -> npt.NDArray[np.uint64]:
    """Where a generator of Gymnasium's kind stands."""
    state = generator.bit_generator.state
    words = [word for name in ("state", "inc") for word in divmod(state["state"][name], _WORD)]
    return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


def _seed(generator: np.random.Generator, numbers: npt.NDArray[np.uint64]) -> None:
    high, low, inc_high, inc_low, has_uint32, uinteger = map(int, numbers)
    place = {"state": high * _WORD + low, "inc": inc_high * _WORD + inc_low}
    generator.bit_generator.state = {
        "bit_generator": type(generator.bit_generator).__name__,
        "state": place,
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
