"""What an observation is, asked of the simulator at a state and at its mirror image.

The exporter asks before it writes a map. Its generated tests hold a copy of this module, so that they need
MuJoCo and NumPy alone. Nothing here knows the map of observations: every term is measured from the physics,
joints and bodies by their names. The mirror image of a state is believed only where every body's centre of
mass, and its velocity, is where the plane puts it: see `Simulator.state_error`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np

Array = Any
Rows = Sequence[Mapping[int, float]]
"""A map: for each number of the image the factors of the original's numbers."""
SPACING = 0.1
"""Between the points of a scan of the ground, in metres."""


class Scene(NamedTuple):
    """A state of the model, and what there is besides: the ground, and the time of the gait's clock."""

    model: Any
    data: Any
    ground: Callable[[Array], float]
    """Its height at a point."""
    clock: float


class Simulator:
    """The model at random states, and at their mirror images."""

    def __init__(
        self,
        model: Any,
        plane: tuple[Array, Array],
        qpos: tuple[Rows, Mapping[int, float]],
        qvel: Rows,
        bodies: Sequence[int | None],
        default: Sequence[float],
        still: Sequence[str] = (),
    ) -> None:
        self.model = model
        # Poses are random, and so parts may overlap: what they observe does not depend on it.
        self.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        self.matrix, self.offset = np.array(plane[0], float), np.array(plane[1], float)
        self.qpos, self.qvel, self.bodies = qpos, qvel, list(bodies)
        self.default = np.array(default, float)
        self.still = [model.joint(name) for name in still]
        self.moving = np.setdiff1d(np.arange(model.nv), [joint.dofadr[0] for joint in self.still])
        self._drawn: dict[int, tuple[Scene, Scene]] = {}

    def scenes(self, seed: int) -> tuple[Scene, Scene]:
        """A random state, and its mirror image."""
        if seed not in self._drawn:
            self._drawn[seed] = self._both(seed)
        return self._drawn[seed]

    def _both(self, seed: int) -> tuple[Scene, Scene]:
        generator = np.random.default_rng(seed)
        data, image = mujoco.MjData(self.model), mujoco.MjData(self.model)
        self._draw(data, generator)
        image.qpos[:] = mapped(self.qpos[0], data.qpos, self.qpos[1])
        image.qvel[:] = mapped(self.qvel, data.qvel)
        for each in (data, image):
            mujoco.mj_forward(self.model, each)
        waves, phases = generator.normal(size=(4, 2)), generator.uniform(0, 6, 4)

        def ground(point: Array) -> float:
            return float(np.sin(waves @ point[:2] + phases).sum())

        def mirrored_ground(point: Array) -> float:
            return ground(self.matrix @ point + self.offset)

        clock = generator.uniform(0, 2 * np.pi)
        # The left foot of the mirror image does what the right one did, half a period away.
        return Scene(self.model, data, ground, clock), Scene(
            self.model, image, mirrored_ground, clock + np.pi
        )

    def state_error(self, seed: int) -> tuple[float, str]:
        """How far the mirror image of a state is from the plane's, and the body of which that holds most."""
        one, other = (_motions(scene) for scene in self.scenes(seed))
        worst, whose = 0.0, ""
        for body, image in enumerate(self.bodies[1:], 1):
            if image is None:
                continue
            place, velocity, turning = one[:, body]
            expected = np.array(
                [self.matrix @ place + self.offset, self.matrix @ velocity, -self.matrix @ turning]
            )
            error = relative_error(expected, other[:, image])
            if error > worst:
                worst, whose = error, self.model.body(image).name or f"body {image}"
        return worst, whose

    def effect(self, scene: Scene, action: Array, term: Mapping[str, Any]) -> Array:
        """The accelerations that an action adds."""
        data = mujoco.MjData(self.model)
        data.qpos[:], data.qvel[:] = scene.data.qpos, scene.data.qvel
        mujoco.mj_forward(self.model, data)
        before = data.qacc.copy()
        if term["kind"] == "controls":
            data.ctrl[:] += action
            for number in np.flatnonzero(self.model.actuator_actnum):
                last = self.model.actuator_actadr[number] + self.model.actuator_actnum[number] - 1
                data.act[last] += action[number]
        else:  # a joint's target pulls at that joint
            for joint, value in zip(term["joints"], action, strict=True):
                data.qfrc_applied[self.model.joint(joint).dofadr[0]] += value
        mujoco.mj_forward(self.model, data)
        return data.qacc - before

    def effect_error(self, seed: int, term: Mapping[str, Any], action: Array, image: Array) -> float:
        """How far what the mirrored action does is from the mirror image of what the action does."""
        one, other = self.scenes(seed)
        expected = mapped(self.qvel, self.effect(one, action, term))[self.moving]
        found = self.effect(other, image, term)[self.moving]
        size = max(float(np.abs(expected).max(initial=0)), float(np.abs(found).max(initial=0)))
        return float(np.abs(expected - found).max(initial=0)) / size if size > 0 else 0.0

    def observed(
        self, vector: Mapping[str, Any], seed: int, custom: Mapping[str, Callable[[Any, Any], Array]]
    ) -> tuple[Array, Array, dict[str, list[int]]]:
        """An observation at a state and at its mirror image, and where the numbers of each term are.

        The frames of a history are states of their own. Terms that only their author can measure are so by
        his function of model and data in `custom`, and zero without it.
        """
        here: list[Array] = []
        there: list[Array] = []
        where: dict[str, list[int]] = {}
        place = 0
        for outer in range(vector["history"]):
            for name, term in vector["terms"].items():
                for inner in range(term["history"]):
                    for side, scene in zip(
                        (here, there), self.scenes(seed + 1000 * outer + 100 * inner), strict=True
                    ):
                        side.append(self._measured(scene, name, term, custom))
                    size = len(here[-1])
                    where.setdefault(name, []).extend(range(place, place + size))
                    place += size
        return np.concatenate(here), np.concatenate(there), where

    def _measured(
        self,
        scene: Scene,
        name: str,
        term: Mapping[str, Any],
        custom: Mapping[str, Callable[[Any, Any], Array]],
    ) -> Array:
        if term["kind"] != "custom":
            return np.asarray(_MEASURES[term["kind"]](self, scene, term), float)
        found = custom[name](scene.model, scene.data) if name in custom else np.zeros(term["size"])
        return np.asarray(found, float)

    def _draw(self, data: Any, generator: np.random.Generator) -> None:
        model = self.model
        away = generator.normal(size=model.nv)
        mujoco.mj_integratePos(model, data.qpos, away, 1.0)
        single = (int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE))
        for joint in np.flatnonzero(model.jnt_limited):
            if model.jnt_type[joint] in single:
                data.qpos[model.jnt_qposadr[joint]] = generator.uniform(*model.jnt_range[joint])
        data.qvel[:] = generator.normal(size=model.nv)
        for joint in self.still:
            data.qpos[joint.qposadr[0]], data.qvel[joint.dofadr[0]] = self.default[joint.qposadr[0]], 0

    def _base(self, scene: Scene) -> tuple[Array, Array, Array]:
        """The base's position, its axes, and where qvel begins to hold its velocity."""
        joint = int(np.flatnonzero(self.model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)[0])
        body = self.model.jnt_bodyid[joint]
        axes = scene.data.xmat[body].reshape(3, 3)
        return scene.data.xpos[body], axes, int(self.model.jnt_dofadr[joint])

    def _joint(self, scene: Scene, term: Mapping[str, Any], velocity: bool) -> Array:
        joints = [self.model.joint(name) for name in term["joints"]]
        if velocity:
            return np.array([scene.data.qvel[joint.dofadr[0]] for joint in joints])
        return np.array([scene.data.qpos[joint.qposadr[0]] for joint in joints])

    def _offsets(self, scene: Scene, term: Mapping[str, Any]) -> Array:
        default = [self.default[self.model.joint(name).qposadr[0]] for name in term["joints"]]
        return self._joint(scene, term, velocity=False) - np.array(default)

    def _velocity(self, scene: Scene) -> Array:
        _, axes, start = self._base(scene)
        return axes.T @ scene.data.qvel[start : start + 3]

    def _turning(self, scene: Scene) -> Array:
        start = self._base(scene)[2] + 3
        return scene.data.qvel[start : start + 3]  # MuJoCo has it in the body's own frame

    def _of_feet(self, scene: Scene, term: Mapping[str, Any]) -> Array:
        """A number that belongs to a foot goes where the foot goes: the foot's height stands for it."""
        bodies = term["bodies"]
        again = [bodies[:place].count(body) for place, body in enumerate(bodies)]  # sines, then cosines
        return scene.data.xipos[bodies, 2] + np.array(again)

    def _scan(self, scene: Scene, term: Mapping[str, Any]) -> Array:
        place, axes, _ = self._base(scene)
        ahead = np.array([axes[0, 0], axes[1, 0], 0]) / np.hypot(axes[0, 0], axes[1, 0])
        aside = np.array([-ahead[1], ahead[0], 0])
        points = [place + SPACING * (x * ahead + y * aside) for x, y in term["points"]]
        return np.array([scene.ground(point) for point in points])


_MEASURES: dict[str, Callable[[Simulator, Scene, Mapping[str, Any]], Array]] = {
    "positions": lambda own, scene, term: scene.data.qpos[term["skip"] :],
    "velocities": lambda own, scene, term: scene.data.qvel[term["skip"] :],
    "joint_positions": lambda own, scene, term: own._joint(scene, term, velocity=False),
    "joint_offsets": lambda own, scene, term: own._offsets(scene, term),
    "joint_velocities": lambda own, scene, term: own._joint(scene, term, velocity=True),
    "base_linear_velocity": lambda own, scene, term: own._velocity(scene),
    "base_angular_velocity": lambda own, scene, term: own._turning(scene),
    "projected_gravity": lambda own, scene, term: own._base(scene)[1].T @ np.array([0, 0, -1.0]),
    "base_height": lambda own, scene, term: own._base(scene)[0][2:],
    # The command that the robot follows at this moment: its own velocity.
    "command": lambda own, scene, term: [*own._velocity(scene)[:2], own._turning(scene)[2]],
    # A control works where its actuator does: the velocity of its transmission stands for it.
    "controls": lambda own, scene, term: scene.data.actuator_velocity,
    "sensor": lambda own, scene, term: scene.data.sensor(term["sensor"]).data,
    "gait_phase": lambda own, scene, term: own._of_feet(scene, term),
    "contacts": lambda own, scene, term: own._of_feet(scene, term),
    "gait_clock": lambda own, scene, term: [np.sin(scene.clock), np.cos(scene.clock)],
    "height_scan": lambda own, scene, term: own._scan(scene, term),
}


def mapped(rows: Rows, values: Array, offsets: Mapping[int, float] | None = None) -> Array:
    """The image of a vector."""
    image = np.array([sum(factor * values[source] for source, factor in row.items()) for row in rows], float)
    for place, offset in (offsets or {}).items():
        image[place] += offset
    return image


def relative_error(expected: Array, found: Array) -> float:
    """The largest difference, relative to the largest number where that is above 1."""
    difference = np.abs(np.asarray(expected) - np.asarray(found)).max(initial=0)
    return float(difference / max(1.0, float(np.abs(np.asarray(found)).max(initial=0))))


def _motions(scene: Scene) -> Array:
    """Of every body its centre of mass, the velocity of that, and the angular velocity."""
    bodies = scene.model.nbody
    found = np.zeros((3, bodies, 3))
    found[0] = scene.data.xipos
    motion = np.zeros(6)
    for body in range(1, bodies):
        # Of mjOBJ_BODY the frame is at the centre of mass; it is asked for in the world's axes.
        mujoco.mj_objectVelocity(scene.model, scene.data, mujoco.mjtObj.mjOBJ_BODY, body, motion, 0)
        found[1, body], found[2, body] = motion[3:], motion[:3]
    return found
