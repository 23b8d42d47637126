"""Swimmer, Walker2d, Ant and Humanoid: Gymnasium's robots, rewarded for moving along x (v4 rewards).

    observation = positions, without x (and y), then velocities      see `Locomotion.table`
    reward      = w · forward velocity + healthy - c · |action|²
    terminated  = the robot fell

They differ from Gymnasium in two ways, which `as_gymnasium` undoes:

- Gymnasium computes Ant's and Humanoid's forward velocity from body positions that are a little older than
  the state, so that a step's reward depends on the step before it. Here it is computed from the state.
- Gymnasium's Humanoid also observes centre-of-mass quantities and contact forces, after the velocities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import mujoco
import numpy as np
import numpy.typing as npt

from augury.envs.mujoco import quantities, robots, terms
from augury.envs.mujoco.anatomy import Anatomy
from augury.envs.mujoco.drawing import View
from augury.envs.mujoco.physics import Physics, Rollout, Rows, Stepped
from augury.envs.mujoco.quantities import Quantity
from augury.envs.mujoco.task import MujocoTask
from augury.envs.mujoco.terms import Term
from augury.envs.mujoco.vector import Flags, Moment, Outcome, Start

HORIZON = 1_000

VIEWS = {
    "swimmer": View(90, -89, 6.0, 0.0),
    "walker2d": View(90, -8, 2.6, 0.8),
    "ant": View(90, -60, 3.4, 0.4),
    "humanoid": View(160, -15, 2.6, 1.0),
}
"""From where each robot's symmetry is seen best."""

Vector = npt.NDArray[np.float32]

TRAINING: Mapping[str, Any] = {
    "hidden": (256, 256),
    "batch_size": 256,
    "collect": 1,
    "updates": 1,
    "random_steps": 10_000,
    "steps": 1_000_000,
    "evaluation_episodes": 10,
}
"""TD3's settings where they differ from Goal2D's (the authors' hyperparameter files)."""


@dataclass(frozen=True, kw_only=True)
class Locomotion(MujocoTask):
    """One robot's task, as pure functions of arrays with a row for each environment."""

    robot: str
    corrections: tuple[str, ...]
    """The corrections of its model (see `robots`)."""
    substeps: int
    hidden_positions: int
    """Number of leading positions that are not observed: the robot's x, and y where it has one."""
    forward_weight: float
    control_weight: float
    healthy_reward: float = 0.0
    healthy_height: tuple[float, float] = (-np.inf, np.inf)
    healthy_angle: tuple[float, float] = (-np.inf, np.inf)
    """Of Walker2d's torso."""
    start_noise: float = 0.1
    start_velocity: Literal["uniform", "normal"] = "uniform"
    velocity_limit: float = np.inf
    """Observed velocities are clipped to it."""
    rewarded_for: Literal["qpos", "root body", "centre of mass"] = "qpos"
    """Whose velocity along x is rewarded. Gymnasium's root body is older than qpos; ours is not."""
    largest_turn: float = 0.0
    """The largest angle by which the paper rotates the heading, either way."""
    as_gymnasium: bool = False
    """Observe and reward what Gymnasium's v4 does, older body positions included."""
    training: Mapping[str, Any] = field(default_factory=lambda: TRAINING, compare=False)

    @property
    def horizon(self) -> int:
        return HORIZON

    @property
    def name(self) -> str:
        for variant in robots.VARIANTS:
            if self.corrections == robots.corrections_of(self.robot, variant):
                return self.robot if variant == "corrected" else f"{self.robot}-{variant}"
        return f"{self.robot}-with-{'-'.join(self.corrections)}"

    def variant(self, variant: robots.Variant) -> Locomotion:
        """The same task with all corrections of the model, the paper's, or none ("stock")."""
        return replace(self, corrections=robots.corrections_of(self.robot, variant))

    @property
    def restorable(self) -> Locomotion:
        """The same task with observations that determine the state: velocities are not clipped."""
        return replace(self, velocity_limit=np.inf)

    def spec(self) -> mujoco.MjSpec:
        return robots.load(self.robot, self.corrections)

    def physics(self, threads: int | None = None) -> Physics:
        spec = self.spec()
        if self.as_gymnasium:
            return Stepped(spec, self.substeps, self._read_as_gymnasium, threads)
        if self.rewarded_for == "centre of mass":
            root = spec.worldbody.first_body().name
            spec.add_sensor(
                type=mujoco.mjtSensor.mjSENS_SUBTREECOM, objtype=mujoco.mjtObj.mjOBJ_BODY, objname=root
            )
        return Rollout(spec, self.substeps, threads)

    def start(self, generator: np.random.Generator) -> Start:
        model, noise = self.model, self.start_noise
        qpos = model.qpos0 + generator.uniform(-noise, noise, model.nq)
        if self.start_velocity == "normal":
            qvel = noise * generator.standard_normal(model.nv)
        else:
            qvel = generator.uniform(-noise, noise, model.nv)
        return Start(qpos, qvel, goal=np.empty(0))

    @property
    def observed(self) -> tuple[Term, ...]:
        seen = (terms.positions.skip(self.hidden_positions), terms.velocities.clip(self.velocity_limit))
        return (*seen, _mass_quantities) if self._reads_masses else seen

    def outcome(self, before: Moment, action: Rows, after: Moment) -> Outcome:
        velocity = (self._rewarded_position(after) - self._rewarded_position(before)) / self.seconds
        reward = self.forward_weight * velocity[:, 0] + self.healthy_reward
        reward -= self.control_weight * np.einsum("ij,ij->i", action, action)
        return Outcome(reward, ~self._is_healthy(after.qpos), dict(zip(self.extras, velocity.T, strict=True)))

    @property
    def view(self) -> View:
        return VIEWS[self.robot]

    @property
    def mirror_normal(self) -> Literal["x", "y"]:
        return robots.MIRROR_NORMAL[self.robot]

    @property
    def extras(self) -> tuple[str, ...]:
        """The velocity that is rewarded, and the one across it."""
        return ("x_velocity", "y_velocity")[: self.hidden_positions]

    def _covered_range(self, quantity: Quantity) -> tuple[float, float]:
        is_height = quantity.kind == "qpos" and quantity.address == self.hidden_positions
        if is_height and np.isfinite(self.healthy_height).all():
            return self.healthy_height
        return super()._covered_range(quantity)

    def _rewarded_position(self, moment: Moment) -> Rows:
        """The position whose velocity is rewarded: x, and y where the robot has one."""
        return (moment.readings if moment.readings.size else moment.qpos)[:, : self.hidden_positions]

    def _is_healthy(self, qpos: Rows) -> Flags:
        (low, high), (least, most) = self.healthy_height, self.healthy_angle
        height, angle = qpos[:, self.hidden_positions], qpos[:, self.hidden_positions + 1]
        return (low < height) & (height < high) & (least < angle) & (angle < most)

    def _read_as_gymnasium(self, model: mujoco.MjModel, data: mujoco.MjData) -> Rows:
        """What Gymnasium reads after a step, besides the state."""
        if self.rewarded_for == "qpos":
            return np.empty(0)
        if self.rewarded_for == "root body":
            return data.xpos[1].copy()
        centre = model.body_mass @ data.xipos / model.body_mass.sum()
        return np.concatenate([centre, *(getattr(data, name).ravel() for name in _MASS_QUANTITIES)])

    @property
    def _reads_masses(self) -> bool:
        return self.as_gymnasium and self.rewarded_for == "centre of mass"


_MASS_QUANTITIES = ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")
"""What Gymnasium's Humanoid observes beyond positions and velocities."""


def _named_mass_quantities(anatomy: Anatomy) -> list[Quantity]:
    data = mujoco.MjData(anatomy.model)
    return quantities.readings(
        [f"{name} {index}" for name in _MASS_QUANTITIES for index in range(getattr(data, name).size)]
    )


@terms.term(_named_mass_quantities)
def _mass_quantities(moment: Moment) -> Rows:
    return moment.readings[:, 3:]  # after the position, which only the reward uses


def _corrected(robot: str, **settings: Any) -> Locomotion:
    return Locomotion(robot=robot, corrections=robots.corrections_of(robot, "corrected"), **settings)


SWIMMER = _corrected(
    "swimmer",
    substeps=4,
    hidden_positions=2,
    forward_weight=1.0,
    control_weight=1e-4,
    training={**TRAINING, "learning_rate": 1e-4, "discount": 0.9999},
)
WALKER2D = _corrected(
    "walker2d",
    substeps=4,
    hidden_positions=1,
    forward_weight=1.0,
    control_weight=1e-3,
    healthy_reward=1.0,
    healthy_height=(0.8, 2.0),
    healthy_angle=(-1.0, 1.0),
    start_noise=5e-3,
    velocity_limit=10.0,
)
ANT = _corrected(
    "ant",
    substeps=5,
    hidden_positions=2,
    forward_weight=1.0,
    control_weight=0.5,
    healthy_reward=1.0,
    healthy_height=(0.2, 1.0),
    start_velocity="normal",
    rewarded_for="root body",
    largest_turn=np.pi / 6,
)
HUMANOID = _corrected(
    "humanoid",
    substeps=5,
    hidden_positions=2,
    forward_weight=1.25,
    control_weight=0.1,
    healthy_reward=5.0,
    healthy_height=(1.0, 2.0),
    start_noise=1e-2,
    rewarded_for="centre of mass",
    largest_turn=np.pi / 3,
    training={**TRAINING, "learning_rate": 3e-4},
)
TASKS = {task.robot: task for task in (SWIMMER, WALKER2D, ANT, HUMANOID)}
