"""MuJoCo Warp as a function in JAX: from a world's positions, velocities and controls to what follows.

`jax.vmap` makes it a function of many worlds, which are simulated together: any axes that a caller maps over
become one axis of worlds. On a GPU the substeps are one CUDA graph.

As in the engine on the host, a step depends on positions and velocities alone: the solver starts from zero.
"""

# No `from __future__ import annotations` here: Warp reads a function's annotations as types.

from functools import cached_property, lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import mujoco_warp
import warp

from augury.transition import Array

MOST_WORLDS = 8192
"""More are simulated one group after the other: beyond that memory grows, but speed does not."""

MOST_ITERATIONS = 10
"""Of the solver. All worlds wait for the slowest, and beyond ten nothing changes but the last digits."""

warp.config.log_level = warp.LOG_WARNING
_Rows: Any = warp.array2d(dtype=float)


class Worlds:
    """A model, and room on the device for the worlds that were asked for so far."""

    def __init__(self, model: mujoco.MjModel, substeps: int, contacts: int) -> None:
        self._host = model
        self._substeps = substeps
        self._contacts = contacts
        self._on_gpu = jax.default_backend() == "gpu"
        self._device = "cuda:0" if self._on_gpu else "cpu"
        self._simulate = lru_cache(maxsize=None)(self._made)
        self.advance = jax.custom_batching.custom_vmap(self._advance)
        """(qpos, qvel, control) -> (qpos, qvel), of one world."""
        self.advance.def_vmap(self._advance_many)

    def _advance(self, qpos: Array, qvel: Array, control: Array) -> tuple[Array, Array]:
        """The same with any leading axes."""
        axes = qpos.shape[:-1]
        worlds = [leaf.reshape(-1, leaf.shape[-1]) for leaf in (qpos, qvel, control)]
        count = len(worlds[0])
        if count <= MOST_WORLDS:
            after = self._simulate(count)(*worlds)
        else:
            groups = -(-count // MOST_WORLDS)
            size = -(-count // groups)
            padded = [jnp.pad(leaf, ((0, groups * size - count), (0, 0)), mode="edge") for leaf in worlds]
            grouped = tuple(leaf.reshape(groups, size, -1) for leaf in padded)
            after = jax.lax.map(lambda group: tuple(self._simulate(size)(*group)), grouped)
            after = [leaf.reshape(groups * size, -1)[:count] for leaf in after]
        positions, velocities = after
        return positions.reshape(*axes, -1), velocities.reshape(*axes, -1)

    def _advance_many(self, size: int, mapped: Any, *worlds: Array) -> Any:
        every = [
            leaf if is_mapped else jnp.broadcast_to(leaf, (size, *leaf.shape))
            for leaf, is_mapped in zip(worlds, mapped, strict=True)
        ]
        return self.advance(*every), (True, True)

    @cached_property
    def _model(self) -> mujoco_warp.Model:
        with warp.ScopedDevice(self._device):
            model = mujoco_warp.put_model(self._host)
        model.opt.iterations = min(model.opt.iterations, MOST_ITERATIONS)
        model.opt.warn_overflow = 0  # it would print a line for each world that needs more
        return model

    def _made(self, worlds: int) -> Any:
        """What simulates so many worlds, callable from JAX."""
        model, host = self._model, self._host
        rows = self._contacts * 4 + host.njnt  # an elliptic contact takes four at most, a limit one
        with warp.ScopedDevice(self._device):
            data = mujoco_warp.make_data(host, nworld=worlds, nconmax=self._contacts, njmax=rows)
            # Compiles the kernels, which cannot be done while a graph is recorded.
            mujoco_warp.step(model, data)

        def simulate(qpos: _Rows, qvel: _Rows, control: _Rows, new_qpos: _Rows, new_qvel: _Rows) -> None:
            warp.copy(data.qpos, qpos)
            warp.copy(data.qvel, qvel)
            warp.copy(data.ctrl, control)
            data.qacc_warmstart.zero_()
            for _ in range(self._substeps):
                mujoco_warp.step(model, data)
            warp.copy(new_qpos, data.qpos)
            warp.copy(new_qvel, data.qvel)

        mode = warp.JaxCallableGraphMode.WARP_STAGED if self._on_gpu else warp.JaxCallableGraphMode.NONE
        called = warp.jax_callable(simulate, num_outputs=2, graph_mode=mode)
        shapes = {"new_qpos": (worlds, host.nq), "new_qvel": (worlds, host.nv)}
        return partial(called, output_dims=shapes)
