"""Forward and inverse kinematics of the Panda, as PyBullet computes them; and the torques that carry the arm.

PyBullet's inverse kinematics takes twenty steps of damped least squares from the arm's present angles,

    q ← q + Jᵀ (J Jᵀ + λI)⁻¹ (desired pose of the hand - present pose),      λ = 0.5.

Twenty steps do not converge: the joint targets fall short of the desired position, most of all along x. The
same twenty steps are taken here, except that J is computed twice instead of twenty times. That moves the
target by 0.2 mm (median).

PyBullet's motors do not give way to the arm's weight. The torques that carry it are computed here too.

Rows are computed in blocks, so that a row's numbers do not depend on how many others there are.
"""

from __future__ import annotations

import itertools
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from augury.envs.panda.robot import BASE, GRASP, GRAVITY, LINKS, LOAD
from augury.transition import Array

DAMPING = 0.5
RENEWALS, STEPS_EACH = 2, 10
BLOCK, SMALL_BLOCK = 16, 2
"""Rows computed together. With two, all arrays are so small that XLA computes on one thread: a few rows are
then finished in a third of the time."""
_CARRIED = np.cumsum([LOAD[0], *(link.mass for link in reversed(LINKS))])[:0:-1]
"""The mass behind each joint: of its link, of those that follow, and of the load."""
_HAND_COSINE = 2**-0.5
"""The hand is rotated by -45° against the last link."""

Rows = npt.NDArray[Any]
Frame = tuple[Array, Array, Array]
"""The axes x, y and z of a body, each (3, rows)."""


def joint_targets(angles: Rows, positions: Rows) -> tuple[Rows, Rows]:
    """Joint targets that bring the hand, upright, from these angles, (rows, 7), to positions, (rows, 3).

    Returns the targets, and the torques that carry the arm at the present angles; both (rows, 7).
    """
    rows = len(angles)
    block = SMALL_BLOCK if rows <= 2 * SMALL_BLOCK else BLOCK
    inputs = np.zeros((rows + -rows % block, len(LINKS) + 3), np.float32)
    inputs[:rows, : len(LINKS)], inputs[:rows, len(LINKS) :] = angles, positions
    with jax.default_device(_processor()):
        targets, torques = np.asarray(_solved(inputs, block))
    return targets[:rows], torques[:rows]


def reaching(angles: Array, position: Array) -> tuple[Array, Array]:
    """The same for one arm, in JAX: from (7,) and (3,) to targets and torques, (7,) each."""
    angles, position = angles[:, None], position[:, None]
    return _solve(angles, position)[:, 0], _carrying_torques(angles)[:, 0]


def hand_motion(angles: Array, velocities: Array) -> tuple[Array, Array]:
    """Position and velocity of one arm's hand, in JAX, from its joints' angles and velocities, (7,) each."""
    return jax.jvp(lambda angles: _forward(angles)[0], (angles,), (velocities,))


def hand_position(angles: Rows) -> Rows:
    """The hand's position at these joint angles: (rows, 7) to (rows, 3)."""
    position, *_ = _forward(jnp.asarray(angles).T)
    return np.asarray(position.T)


@cache
def _processor() -> jax.Device:
    """A processor of our own, since small matrices belong there even where agents learn on an accelerator.

    It computes in the thread that asks. JAX's own hands everything to other threads, which then look out for
    more: for one arm that takes longer than the computation.
    """
    try:
        from jaxlib.xla_client import make_cpu_client

        client: Any = make_cpu_client(asynchronous=False)
        device: jax.Device = client.local_devices()[0]
        return device
    except (ImportError, TypeError):  # what JAX is built on may change; the numbers are the same
        return jax.local_devices(backend="cpu")[0]


@partial(jax.jit, static_argnames="block")
def _solved(inputs: Array, block: int) -> Array:
    def each(rows: Array) -> Array:
        angles, target = rows[: len(LINKS)], rows[len(LINKS) :]
        return jnp.stack([_solve(angles, target), _carrying_torques(angles)])

    blocks = inputs.reshape(-1, block, inputs.shape[-1]).swapaxes(1, 2)
    return jax.lax.map(each, blocks).transpose(1, 0, 3, 2).reshape(2, -1, len(LINKS))


def _solve(angles: Array, target: Array) -> Array:
    """Joint targets of one block, rows last: from (7, rows) and (3, rows)."""

    def renew(_: Array, angles: Array) -> Array:
        position, frame, axes, origins, _ = _forward(angles)
        error = jnp.concatenate([target - position, _rotation_to_upright(frame)])
        jacobian = jnp.concatenate([jnp.cross(axes, position[:, None] - origins, axis=0), axes])
        squared = (jacobian[:, None] * jacobian[None]).sum(2)
        inverse = _inverted(squared + DAMPING * jnp.eye(6)[..., None])
        total = jnp.zeros_like(error)
        for _step in range(STEPS_EACH):
            effort = (inverse * error[None]).sum(1)
            total, error = total + effort, DAMPING * effort  # the error that the step leaves
        return angles + (jacobian * total[:, None]).sum(0)

    return jax.lax.fori_loop(0, RENEWALS, renew, angles)


def _carrying_torques(angles: Array) -> Array:
    """The torque with which each joint carries the links behind it, (7, rows)."""
    *_, axes, origins, moments = _forward(angles)
    behind = jnp.stack([*itertools.accumulate(jnp.unstack(moments, axis=1)[::-1])][::-1], 1)
    x, y, _ = behind - _CARRIED[:, None].astype(behind.dtype) * origins  # Σ m (r - origin) of each joint
    return GRAVITY * (axes[0] * y - axes[1] * x)  # of axis × Σ m (r - origin) gravity works along z alone


def _forward(angles: Array) -> tuple[Array, Frame, Array, Array, Array]:
    """The hand's position and frame; every joint's axis and origin, and its link's mass times position.

    Those of joints are (3, joints, rows).
    """
    one, zero = jnp.ones_like(angles[0]), jnp.zeros_like(angles[0])
    x, y, z = jnp.stack([one, zero, zero]), jnp.stack([zero, one, zero]), jnp.stack([zero, zero, one])
    position = jnp.stack([coordinate * one for coordinate in BASE])
    axes, origins, moments = [], [], []
    cosines, sines = jnp.cos(angles), jnp.sin(angles)
    for link, cosine, sine in zip(LINKS, cosines, sines, strict=True):
        along_x, along_y, along_z = link.position
        position = position + along_x * x + along_y * y + along_z * z
        if link.quarter_turns:
            y, z = link.quarter_turns * z, -link.quarter_turns * y
        axes.append(z)
        origins.append(position)
        x, y = cosine * x + sine * y, cosine * y - sine * x
        centre = sum(number * axis for number, axis in zip(link.centre, (x, y, z), strict=True) if number)
        moments.append(link.mass * (position + centre))
    load, distance = LOAD
    moments[-1] = moments[-1] + load * (position + distance * z)
    x, y = _HAND_COSINE * (x - y), _HAND_COSINE * (x + y)
    return position + GRASP * z, (x, y, z), jnp.stack(axes, 1), jnp.stack(origins, 1), jnp.stack(moments, 1)


def _rotation_to_upright(frame: Frame) -> Array:
    """The rotation vector from a frame to the hand's, whose y and z axes point backwards and down."""
    x, y, z = frame
    axis = jnp.stack([y[2] - z[1], x[2] + z[0], -x[1] - y[0]])
    sine, cosine = jnp.sqrt((axis**2).sum(0)) / 2, (x[0] - y[1] - z[2] - 1) / 2
    small = sine < 1e-6
    return axis * jnp.where(small, 0.5, jnp.arctan2(sine, cosine) / (2 * jnp.where(small, 1, sine)))


def _inverted(matrix: Array) -> Array:
    """The inverse of positive definite matrices (6, 6, rows), by elimination in place."""
    for k in range(len(matrix)):
        pivot = 1 / matrix[k, k]
        row, column = matrix[k] * pivot, matrix[:, k]
        matrix = matrix - column[:, None] * row[None]
        matrix = matrix.at[k].set(row).at[:, k].set(-column * pivot).at[k, k].set(pivot)
    return matrix
