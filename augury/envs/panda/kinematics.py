"""Where the Panda's hand is, and what its joints must do to bring it elsewhere, as PyBullet answers that.

PyBullet's inverse kinematics takes twenty steps of damped least squares from where the arm is,

    q ← q + Jᵀ (J Jᵀ + λI)⁻¹ (where the hand should be - where it is),      λ = 0.5,

which do not suffice: the targets that panda-gym's motors are given fall short of the asked place, most of all
along x. So the same twenty steps are taken here, but for J, which is renewed once on the way: that moves the
target by 0.2 mm (median).

PyBullet's motors do not give way to the arm's weight. So the torques that carry it are computed here too.

Rows are worked on in blocks of fixed size. So a row's numbers do not depend on how many others there are.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from augury.envs.panda.model import BASE, GRASP, GRAVITY, LINKS, LOAD
from augury.transition import Array

DAMPING = 0.5
RENEWALS, STEPS_EACH = 2, 10
BLOCK = 16
_HAND_COSINE = 2**-0.5
"""The hand is turned by -45° against the last link."""

Rows = npt.NDArray[Any]
Frame = tuple[Array, Array, Array]
"""The axes x, y and z of a body, each (3, rows)."""


def joint_targets(angles: Rows, places: Rows) -> tuple[Rows, Rows]:
    """Joint angles, (rows, 7), that lead from these to the hand upright at these places, (rows, 3).

    And the torques that carry the arm where it is.
    """
    rows = len(angles)
    # Two blocks at least: a loop of one turn is compiled to something else, and rounds otherwise.
    asked = np.zeros((max(rows + -rows % BLOCK, 2 * BLOCK), len(LINKS) + 3), np.float32)
    asked[:rows, : len(LINKS)], asked[:rows, len(LINKS) :] = angles, places
    # Small matrices are a matter for the processor, also where agents learn on an accelerator.
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        targets, torques = np.asarray(_solved(asked))
    return targets[:rows], torques[:rows]


def hand_place(angles: Rows) -> Rows:
    """Where the hand is at these joint angles: (rows, 7) to (rows, 3)."""
    place, *_ = _forward(jnp.asarray(angles).T)
    return np.asarray(place.T)


@jax.jit
def _solved(asked: Array) -> Array:
    def each(block: Array) -> Array:
        angles, target = block[: len(LINKS)], block[len(LINKS) :]
        return jnp.stack([_solve(angles, target), _carried(angles)])

    blocks = asked.reshape(-1, BLOCK, asked.shape[-1]).swapaxes(1, 2)
    return jax.lax.map(each, blocks).transpose(1, 0, 3, 2).reshape(2, -1, len(LINKS))


def _solve(angles: Array, target: Array) -> Array:
    """One block, rows last: (7, rows) and (3, rows)."""

    def renew(_: Array, angles: Array) -> Array:
        place, frame, axes, origins, _ = _forward(angles)
        missing = jnp.concatenate([target - place, _turn_to_upright(frame)])
        jacobian = jnp.concatenate([jnp.cross(axes, place[:, None] - origins, axis=0), axes])
        squared = (jacobian[:, None] * jacobian[None]).sum(2)
        inverse = _inverted(squared + DAMPING * jnp.eye(6)[..., None])
        total = jnp.zeros_like(missing)
        for _step in range(STEPS_EACH):
            effort = (inverse * missing[None]).sum(1)
            total, missing = total + effort, DAMPING * effort  # what is missing after the step
        return angles + (jacobian * total[:, None]).sum(0)

    return jax.lax.fori_loop(0, RENEWALS, renew, angles)


def _carried(angles: Array) -> Array:
    """What each joint must give against the weight of all that is behind it, (7, rows)."""
    return GRAVITY * jax.grad(lambda angles: _forward(angles)[-1].sum())(angles)


def _forward(angles: Array) -> tuple[Array, Frame, Array, Array, Array]:
    """The hand's place and frame, every joint's axis and origin, (3, joints, rows), and mass times height."""
    one, zero = jnp.ones_like(angles[0]), jnp.zeros_like(angles[0])
    x, y, z = jnp.stack([one, zero, zero]), jnp.stack([zero, one, zero]), jnp.stack([zero, zero, one])
    place = jnp.stack([coordinate * one for coordinate in BASE])
    axes, origins, lifted = [], [], zero
    cosines, sines = jnp.cos(angles), jnp.sin(angles)
    for link, cosine, sine in zip(LINKS, cosines, sines, strict=True):
        along_x, along_y, along_z = link.place
        place = place + along_x * x + along_y * y + along_z * z
        if link.turn:
            y, z = link.turn * z, -link.turn * y
        axes.append(z)
        origins.append(place)
        x, y = cosine * x + sine * y, cosine * y - sine * x
        centre = sum(number * axis for number, axis in zip(link.centre, (x, y, z), strict=True))
        lifted = lifted + link.mass * (place + centre)[2]
    load, away = LOAD
    lifted = lifted + load * (place + away * z)[2]
    x, y = _HAND_COSINE * (x - y), _HAND_COSINE * (x + y)
    return place + GRASP * z, (x, y, z), jnp.stack(axes, 1), jnp.stack(origins, 1), lifted


def _turn_to_upright(frame: Frame) -> Array:
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
