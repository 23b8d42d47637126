"""An environment in JAX as SB3 wants it: a vector environment, whose every step is one compiled call."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box
from stable_baselines3.common.vec_env import VecEnv

from augury.envs import make


class InJax(VecEnv):
    """So many copies of an environment, which start again by themselves."""

    def __init__(self, name: str, count: int) -> None:
        self.environment: Any = make(name)
        seen = np.full(self.environment.observation_low.shape, np.inf, np.float32)
        actions = Box(self.environment.action_low, self.environment.action_high)
        super().__init__(count, Box(-seen, seen), actions)
        self._reset, self._step = jax.jit(self._start), jax.jit(self._advance)
        self._key = jax.random.key(0)

    def reset(self) -> Any:
        self._key, key = jax.random.split(self._key)
        self._states = self._reset(key)
        self._steps = jnp.zeros(self.num_envs, jnp.int32)
        return np.asarray(jax.vmap(self.environment.observe)(self._states))

    def step_async(self, actions: Any) -> None:
        self._actions = actions

    def step_wait(self) -> Any:
        self._key, key = jax.random.split(self._key)
        self._states, self._steps, outcome = self._step(key, self._states, self._steps, self._actions)
        seen, final, reward, over, truncated = jax.device_get(outcome)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for row in np.flatnonzero(over):
            infos[row] = {"terminal_observation": final[row], "TimeLimit.truncated": bool(truncated[row])}
        return seen, reward, over, infos

    def _start(self, key: Any) -> Any:
        return jax.vmap(self.environment.reset)(jax.random.split(key, self.num_envs))

    def _advance(self, key: Any, states: Any, steps: Any, actions: Any) -> Any:
        step_key, reset_key = jax.random.split(key)
        keys = jax.random.split(step_key, self.num_envs)
        states, reward, terminated = jax.vmap(self.environment.step)(keys, states, actions)
        final = jax.vmap(self.environment.observe)(states)
        truncated = ~terminated & (steps + 1 >= self.environment.horizon)
        over = terminated | truncated
        states = jax.tree.map(
            lambda start, state: jnp.where(over.reshape(-1, *[1] * (state.ndim - 1)), start, state),
            self._start(reset_key),
            states,
        )
        seen = jax.vmap(self.environment.observe)(states)
        return states, jnp.where(over, 0, steps + 1), (seen, final, reward, over, truncated)

    def close(self) -> None:
        """Nothing is open."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs
