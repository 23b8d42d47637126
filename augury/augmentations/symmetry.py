"""Reflections and rotations of a robot, derived from its model: nobody writes an index or a sign.

    reflect("walker2d")                 a task of ours
    reflect(gymnasium.make("Ant-v4"))   any MuJoCo environment that observes positions and velocities
    reflect(model)                      any model; the observation is then qpos and qvel, or what `table` says

A model that is not symmetric is refused, and what breaks the symmetry is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import numpy.typing as npt

from augury import envs
from augury.augmentations.base import augmentation
from augury.envs.mujoco.anatomy import Anatomy
from augury.envs.mujoco.probe import is_mujoco, observation_table, unwrapped
from augury.envs.mujoco.quantities import Quantity, positions, velocities
from augury.errors import UserError
from augury.pytrees import static
from augury.symmetry import (
    AffineMap,
    Heading,
    SymmetryError,
    accept,
    around,
    audit_rotation,
    heading,
    observation_map,
    reflection,
)
from augury.transition import Array, Key, Transition

VELOCITY = ("x_velocity", "y_velocity")
"""Extras: the velocity that a locomotion reward counts, and the one across it."""
STATE = "state"
"""The extra from which the verifier restores a state that is not observed; only there a transition has it."""


class Mapped(NamedTuple):
    """A map of a vector, as data that can be compared: rows of (source, factor) pairs, and an offset."""

    rows: tuple[tuple[tuple[int, float], ...], ...]
    offset: tuple[float, ...]

    @classmethod
    def of(cls, given: AffineMap) -> Mapped:
        rows = tuple(
            tuple((int(source), float(row[source])) for source in np.flatnonzero(row)) for row in given.matrix
        )
        return cls(rows, tuple(map(float, given.offset)))

    def __call__(self, values: Array) -> Array:
        if all(len(row) == 1 for row in self.rows) and not any(self.offset):
            source = np.array([row[0][0] for row in self.rows])
            return values[source] * jnp.array([row[0][1] for row in self.rows], values.dtype)
        matrix = np.zeros((len(self.rows), len(self.rows)))
        for place, row in enumerate(self.rows):
            for column, factor in row:
                matrix[place, column] = factor
        return jnp.array(matrix, values.dtype) @ values + jnp.array(self.offset, values.dtype)


@augmentation
class Reflect:
    """Mirror a robot: its left becomes its right."""

    robot: str = static()
    observation: Mapped = static()
    action: Mapped = static()
    velocity_signs: tuple[float, float] = static()
    """Of the velocity along x and along y."""
    forward_weight: float = static()
    """Of the velocity along x in the reward."""
    state: Mapped | None = static(default=None)
    """Of the state, where the task's observation does not determine it."""

    @property
    def needs(self) -> tuple[str, ...]:
        return VELOCITY[:1] if self._turns_back else ()

    @property
    def _turns_back(self) -> bool:
        return self.velocity_signs[0] < 0 and self.forward_weight != 0

    def __repr__(self) -> str:
        return f"reflect({self.robot})"

    def __call__(self, key: Key, transition: Transition) -> Transition:
        del key  # there is only one mirror image
        _require(self, transition)
        extras = dict(transition.extras)
        for name, sign in zip(VELOCITY, self.velocity_signs, strict=True):
            if name in extras:
                extras[name] = sign * extras[name]
        if self.state is not None and STATE in extras:
            extras[STATE] = self.state(extras[STATE])
        reward = transition.reward
        if self._turns_back:
            reward += self.forward_weight * (extras[VELOCITY[0]] - transition.extras[VELOCITY[0]])
        return transition._replace(
            observation=self.observation(transition.observation),
            action=self.action(transition.action),
            reward=reward,
            next_observation=self.observation(transition.next_observation),
            extras=extras,
        )


@augmentation
class RotateHeading:
    """Rotate a robot's heading by a random angle."""

    robot: str = static()
    largest: float | Array
    """The angle is uniform within ±largest."""
    observation: Heading = static()
    """Where the observation holds what rotates."""
    forward_weight: float = static()
    state: Heading = static(default=Heading())
    """The same of the state, where the task's observation does not determine it."""

    @property
    def needs(self) -> tuple[str, ...]:
        return VELOCITY if self.forward_weight != 0 else ()

    def __repr__(self) -> str:
        return f"rotate({self.robot}, largest={self.largest})"

    def __call__(self, key: Key, transition: Transition) -> Transition:
        _require(self, transition)
        dtype = transition.observation.dtype
        largest = jnp.asarray(self.largest, dtype)
        angle = jax.random.uniform(key, (), dtype, -largest, largest)
        extras, reward = dict(transition.extras), transition.reward
        if all(name in extras for name in VELOCITY):
            extras |= dict(
                zip(VELOCITY, _rotate_pair(angle, *(extras[name] for name in VELOCITY)), strict=True)
            )
            reward += self.forward_weight * (extras[VELOCITY[0]] - transition.extras[VELOCITY[0]])
        if STATE in extras:
            extras[STATE] = _rotated(angle, self.state, extras[STATE])
        return transition._replace(
            observation=_rotated(angle, self.observation, transition.observation),
            reward=reward,
            next_observation=_rotated(angle, self.observation, transition.next_observation),
            extras=extras,
        )


class Robot(NamedTuple):
    """What a symmetry needs to know of an environment."""

    name: str
    model: mujoco.MjModel
    table: Sequence[Quantity]
    normal: str = "auto"
    largest_turn: float = np.pi
    forward_weight: float = 0.0
    state_table: Sequence[Quantity] = ()
    """What its state holds, where the observation does not determine it."""
    acts_around_default: bool = False
    """Whether its actions are added to the controls of the default pose."""

    @classmethod
    def of(cls, source: Any) -> Robot:
        """That of a task of ours by name, of a task, of a MuJoCo environment, or of a model."""
        if isinstance(source, str):
            source = envs.make(source)
        if isinstance(source, gymnasium.Env):
            source = unwrapped(source)
        name = str(getattr(source, "name", type(source).__name__))
        if isinstance(getattr(source, "model", None), mujoco.MjModel) and _lists_quantities(source):
            normal, weight = getattr(source, "mirror_normal", "auto"), getattr(source, "forward_weight", 0.0)
            turn = getattr(source, "largest_turn", 0.0) or np.pi
            whole = getattr(source, "state_table", ()) if hasattr(source, STATE) else ()
            around = getattr(source, "action_scale", None) is not None
            return cls(name, source.model, source.table, normal, turn, weight, whole, around)
        if is_mujoco(source):
            return cls(type(source).__name__, source.model, observation_table(source))
        if isinstance(source, mujoco.MjModel):
            called = source.names.split(b"\0", 1)[0].decode() or "model"
            return cls(called, source, positions(source) + velocities(source))
        if isinstance(getattr(source, "model", None), mujoco.MjModel):
            raise UserError(
                f"{name} has a MuJoCo model, but does not say what it observes of it: give it a `table`, a "
                "sequence of augury.envs.mujoco.quantities.Quantity"
            )
        raise UserError(f"{name} has no MuJoCo model to take a symmetry from")


def reflect(
    robot: Any,
    *,
    normal: str | None = None,
    table: Sequence[Quantity] | None = None,
    pairs: Mapping[str, str] | None = None,
    distance: float | None = None,
    reference: str | npt.ArrayLike | None = None,
    only: str | None = None,
    forward_weight: float | None = None,
    tolerance: float | None = None,
) -> Reflect:
    """Mirror the robot, its left and right exchanged; the map is derived from its model.

    `normal`, `pairs`, `distance`, `reference` and `only` say where the mirror stands and what it exchanges:
    see `augury.symmetry.reflection`.

    A model that is not symmetric is refused. `tolerance` is the relative size of differences that are taken
    for what CAD leaves; one that is only approximately symmetric gives a warning, unless a tolerance is said.
    """
    if normal not in (None, "auto", "x", "y", "z"):
        raise UserError(f"the mirror's normal must be 'x', 'y', 'z' or 'auto', not {normal!r}")
    own = _given(Robot.of(robot), normal=normal, table=table, forward_weight=forward_weight)
    found = reflection(own.model, own.normal, pairs, distance=distance, reference=reference, only=only)
    accept(own.model, own.name, found, tolerance)
    if own.acts_around_default:
        found = around(found, Anatomy(own.model).ctrl, own.name)
    observation = observation_map(found, own.table)
    if all(np.array_equal(each.matrix, np.eye(len(each.matrix))) for each in (observation, found.ctrl)):
        own_normal = found.normal_name
        other = "x" if own_normal == "y" else "y"
        raise SymmetryError(
            f"the mirror with normal {own_normal} changes nothing that {own.name} sees or does: try {other}"
        )
    return Reflect(
        robot=own.name,
        observation=Mapped.of(observation),
        action=Mapped.of(found.ctrl),
        velocity_signs=(-1.0 if found.normal_name == "x" else 1.0, -1.0 if found.normal_name == "y" else 1.0),
        forward_weight=own.forward_weight,
        state=Mapped.of(observation_map(found, own.state_table)) if own.state_table else None,
    )


def rotate(
    robot: Any,
    *,
    largest: float | None = None,
    table: Sequence[Quantity] | None = None,
    forward_weight: float | None = None,
    tolerance: float = 0.0,
) -> RotateHeading:
    """Rotate the robot's heading by a random angle; what rotates with it is read off its model."""
    own = _given(Robot.of(robot), largest_turn=largest, table=table, forward_weight=forward_weight)
    if outside := [one for one in audit_rotation(own.model) if not one.within(tolerance)]:
        more = f" and {len(outside) - 1} more" if len(outside) > 1 else ""
        raise SymmetryError(
            f"the model is not symmetric ({outside[0]}{more}): correct it, or say tolerance=math.inf"
        )
    observation = heading(own.model, own.table)
    if observation == Heading():
        raise SymmetryError(f"nothing that {own.name} observes changes with its heading")
    return RotateHeading(
        robot=own.name,
        largest=own.largest_turn,
        observation=observation,
        forward_weight=own.forward_weight,
        state=heading(own.model, own.state_table),
    )


def _lists_quantities(source: Any) -> bool:
    """Whether its `table` is that of a vector; of a dict observation it is a dict."""
    return isinstance(getattr(source, "table", None), Sequence)


def _rotated(angle: Array, where: Heading, values: Array) -> Array:
    for x, y in where.vectors:
        rotated = _rotate_pair(angle, values[x], values[y])
        values = values.at[jnp.array([x, y])].set(jnp.stack(rotated))
    for w, x, y, z in where.quaternions:
        # A rotation about the vertical, from the left, mixes w with z and x with y by half the angle.
        for one, other in ((w, z), (x, y)):
            rotated = _rotate_pair(angle / 2, values[one], values[other])
            values = values.at[jnp.array([one, other])].set(jnp.stack(rotated))
    return values


def _rotate_pair(angle: Array, x: Array, y: Array) -> tuple[Array, Array]:
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    return cosine * x - sine * y, sine * x + cosine * y


def _given(robot: Robot, **settings: Any) -> Robot:
    return robot._replace(**{name: value for name, value in settings.items() if value is not None})


def _require(function: Reflect | RotateHeading, transition: Transition) -> None:
    missing = [name for name in function.needs if name not in transition.extras]
    if missing:
        raise UserError(f"{function!r} needs the extras {', '.join(missing)} to recompute the reward")
