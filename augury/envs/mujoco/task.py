"""A task from a MuJoCo model: subclass `MujocoTask`, and it trains in fleets, is verified and mirrored.

    class Stand(MujocoTask):
        name = "stand"
        model_file = "robot.xml"
        horizon = 200
        substeps = 5
        observed = (joint_offsets, joint_velocities, projected_gravity)

        def reward(self, before, action, after):
            return -(joint_velocities(after) ** 2).sum(1)

        def terminated(self, before, action, after):
            (height,) = base_height(after).T
            return height < 0.2

Moments hold arrays with a row for each environment. What is observed is listed as terms (see `terms`); by
default it is every position and velocity. Nobody writes an index by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from augury.envs.base import HostEnvironment
from augury.envs.mujoco import drawing, terms
from augury.envs.mujoco.anatomy import Anatomy
from augury.envs.mujoco.physics import Physics, Rollout, Rows
from augury.envs.mujoco.quantities import Quantity
from augury.envs.mujoco.vector import Flags, Moment, Outcome, Start, VectorEnvironment
from augury.errors import UserError, unknown_name
from augury.transition import Transition

COVERED_SPEED = 10.0
"""Coverage is measured for velocities within ±10."""

Vector = npt.NDArray[np.float32]


class MujocoTask(HostEnvironment):
    """To subclass: a model, what is observed of it, where it starts, what it is rewarded for.

    Yours has `name`, `horizon`, `model_file` or `spec()`, and `reward(before, action, after)`. Settings are
    plain attributes of the class; make it a frozen dataclass where its instances differ in them.
    """

    name: Any
    horizon: Any
    model_file: Any = None
    """An MJCF or URDF file; a relative path is looked for beside the module that defines the task."""
    observed: Any = None
    """The terms of the observation; by default every position, but for hidden ones, and every velocity."""
    substeps: Any = 1
    """Simulator steps in a step of the environment, under constant controls."""
    keyframe: Any = None
    """Name of the keyframe that is the default pose; by default the first. "qpos0" stands for the model's own
    reference, which is the default pose of a model without keyframes too."""
    start_noise: Any = 0.0
    """Positions and velocities start uniformly within it, around the default pose."""
    action_scale: Any = None
    """With it, actions lie within ±1, and the actuators get the default pose's controls plus this times the
    action. By default actions are the controls."""
    commands: Any = None
    """`Commands` from which each episode's `command` is drawn."""
    hidden_positions: Any = 0
    """Number of leading positions that are not observed by default: a robot's x and y, say."""
    mirror_normal: Any = "y"
    """Normal of the plane in which `augury.reflect` mirrors the robot."""
    view: Any = None
    """From where pictures show the robot, a `drawing.View`; by default from where all of it is in sight."""

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and type(self).__init__ is object.__init__)

    def __hash__(self) -> int:
        return hash(type(self))

    def spec(self) -> mujoco.MjSpec:
        """The model."""
        if self.model_file is None:
            raise UserError(
                f"{self.name} has no model: give it a model_file, or a method spec() that returns an MjSpec"
            )
        home = getattr(sys.modules.get(type(self).__module__), "__file__", None) or "."
        path = Path(home).parent / self.model_file
        try:
            return mujoco.MjSpec.from_file(str(path))
        except (OSError, ValueError) as error:
            raise UserError(
                f"{self.name}: cannot read the model {path}: {' '.join(str(error).split())}"
            ) from error

    def reward(self, before: Moment, action: Rows, after: Moment) -> Rows:
        """The reward of a step."""
        raise UserError(f"{self.name} has no reward: give it a method reward(before, action, after)")

    def terminated(self, before: Moment, action: Rows, after: Moment) -> Flags:
        """Whether a step ended the task: by default never."""
        return np.zeros(len(action), bool)

    def outcome(self, before: Moment, action: Rows, after: Moment) -> Outcome:
        """Reward, termination and extras of a step."""
        reward, terminated = (
            self._of_rows(function, kinds, before, action, after)
            for function, kinds in ((self.reward, "biuf"), (self.terminated, "b"))
        )
        if not np.isfinite(reward).all():
            raise UserError(f"{self.name}: reward gave {reward[~np.isfinite(reward)][0]}, no finite number")
        return Outcome(reward, terminated, {})

    def control(self, moment: Moment, action: Rows) -> Rows:
        """The actuators' inputs."""
        if self.action_scale is None:
            return action
        return self.anatomy.ctrl + self.action_scale * action

    def start(self, generator: np.random.Generator) -> Start:
        noise, pose = self._tried("start_noise", np.asarray, self.start_noise, float), self.anatomy
        qpos = pose.qpos + generator.uniform(-noise, noise, len(pose.qpos))
        qvel = pose.qvel + generator.uniform(-noise, noise, len(pose.qvel))
        return Start(qpos, qvel, goal=np.empty(0) if self.commands is None else self.commands.draw(generator))

    def observe(self, moment: Moment) -> Rows:
        rows = len(moment.qpos)
        columns = [
            self._of_term(term, width, rows, moment)
            for term, width in zip(self.observed_terms, self._widths, strict=True)
        ]
        return np.concatenate(columns, 1)

    def restored(self, observation: Rows, extras: Mapping[str, Rows]) -> Start:
        """The start that looks like this; what is not told is as in the default pose."""
        if self._shows_its_state:
            return self._start_of(self.table, observation)
        if "state" not in extras:
            raise UserError(
                f"{self.name} is restored from extras['state']: it does not observe all of its state"
            )
        return self._start_of(self.state_table, extras["state"])

    @property
    def state(self) -> Callable[[Moment], Rows]:
        """The whole state of a moment, for `restored`; only where the observation does not determine it."""
        if self._shows_its_state:
            raise AttributeError(f"{self.name} is restored from what it observes")
        return lambda moment: np.concatenate([term(moment) for term in self._whole], 1)

    def vector(self, count: int, *, autoreset: bool = True, threads: int | None = None) -> VectorEnvironment:
        """Many of them, simulated together."""
        return VectorEnvironment(self, count, autoreset=autoreset, threads=threads)

    def physics(self, threads: int | None = None) -> Physics:
        """A simulator of the model."""
        if not isinstance(self.substeps, int | np.integer) or self.substeps < 1:
            raise UserError(f"{self.name}: substeps must be a whole number from 1 on, not {self.substeps!r}")
        return Rollout(self._prepared(), int(self.substeps), threads)

    @cached_property
    def model(self) -> mujoco.MjModel:
        """The compiled model, to be read."""
        return self._compiled(self._prepared())

    @cached_property
    def anatomy(self) -> Anatomy:
        """The model's base, joints and default pose."""
        return Anatomy(self.model)

    @cached_property
    def seconds(self) -> float:
        """Simulated time of one step."""
        return float(self.substeps * self.model.opt.timestep)

    @cached_property
    def observed_terms(self) -> tuple[terms.Term, ...]:
        """The terms of the observation."""
        if self.observed is not None:
            listed = tuple(self.observed) if isinstance(self.observed, Sequence) else (self.observed,)
            if strange := [one for one in listed if not isinstance(one, terms.Term)]:
                raise UserError(f"{self.name}: observed lists terms, and {strange[0]!r} is none")
            if not listed:
                raise UserError(f"{self.name} observes nothing: observed lists no terms")
            return listed
        return (terms.positions.skip(self.hidden_positions), terms.velocities)

    @cached_property
    def table(self) -> tuple[Quantity, ...]:
        """What each number of the observation is."""
        return self._table_of(self.observed_terms)

    @cached_property
    def state_table(self) -> tuple[Quantity, ...]:
        """What each number of the whole state is."""
        return self._table_of(self._whole)

    def draw(self, axes: Any, transitions: Transition) -> None:
        """The pose in which a transition begins, for `augury show`."""
        drawing.draw_pose(axes, self.model, self._poses(transitions)[0], self.view)
        axes.set_xlabel(drawing.caption(transitions), fontsize=9)

    def worth_drawing(self, transitions: Transition) -> Rows:
        """Most where the robot is far from its first pose, but has not fallen."""
        far: Rows = np.abs(self._poses(transitions) - self.anatomy.qpos).sum(1)
        return np.where(transitions.terminated, -np.inf, far)

    @property
    def observation_space(self) -> Box:
        return Box(-np.inf, np.inf, (len(self.table),), np.float64)

    @property
    def action_space(self) -> Box:
        return Box(self.action_low, self.action_high)

    @property
    def action_low(self) -> Vector:
        return self._action_range[:, 0]

    @property
    def action_high(self) -> Vector:
        return self._action_range[:, 1]

    @property
    def observation_low(self) -> Vector:
        """Lower bound for measuring coverage; observations may go beyond it."""
        return self._covered_ranges[:, 0]

    @property
    def observation_high(self) -> Vector:
        return self._covered_ranges[:, 1]

    @property
    def _action_range(self) -> Vector:
        if self.action_scale is not None:
            return np.tile(np.array([-1, 1], np.float32), (self.model.nu, 1))
        unlimited = np.flatnonzero(~self.model.actuator_ctrllimited.astype(bool))
        if unlimited.size:
            called = self.model.actuator(unlimited[0]).name or unlimited[0]
            raise UserError(
                f"{self.name}: actuator '{called}' has no control range: give it a ctrlrange, or the task an "
                "action_scale"
            )
        return self.model.actuator_ctrlrange.astype(np.float32)

    @cached_property
    def _covered_ranges(self) -> Vector:
        return np.array([self._covered_range(quantity) for quantity in self.table], np.float32)

    def _covered_range(self, quantity: Quantity) -> tuple[float, float]:
        if quantity.kind in ("qpos", "offset"):
            return self._range_of_position(quantity)
        if quantity.kind == "action":
            low, high = self._action_range[quantity.address]
            return float(low), float(high)
        return (-1.0, 1.0) if quantity.unit == "1" else (-COVERED_SPEED, COVERED_SPEED)

    @cached_property
    def _widths(self) -> list[int]:
        """Numbers of each term of the observation."""
        return [len(term.table(self.anatomy)) for term in self.observed_terms]

    def _range_of_position(self, quantity: Quantity) -> tuple[float, float]:
        joint = np.searchsorted(self.model.jnt_qposadr, quantity.address, side="right") - 1
        kind = mujoco.mjtJoint(self.model.jnt_type[joint])
        is_a_length = kind in (mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE)
        if is_a_length and self.model.jnt_limited[joint]:
            low, high = self.model.jnt_range[joint] - (
                self.anatomy.qpos[quantity.address] if quantity.kind == "offset" else 0
            )
            return float(low), float(high)
        return (-np.pi, np.pi) if quantity.unit == "rad" else (-1.0, 1.0)

    @cached_property
    def _whole(self) -> tuple[terms.Term, ...]:
        """Terms that determine every state."""
        told = () if self.commands is None else (terms.command,)
        return (terms.positions, terms.velocities, *told, terms.previous_action)

    @cached_property
    def _shows_its_state(self) -> bool:
        """Whether the observation determines the state, but for the hidden positions."""
        wanted = {(own.kind, own.address, own.term == terms.command.name) for own in self.state_table}
        wanted -= {("qpos", address, False) for address in range(self.hidden_positions)}
        wanted -= {
            ("action", address, False) for address in range(self.model.nu)
        }  # matters where it is observed
        return wanted <= {(own.kind, own.address, own.term == terms.command.name) for own in self.table}

    def _start_of(self, table: Sequence[Quantity], values: Rows) -> Start:
        """The start that rows of these quantities tell; the rest is as in the default pose."""
        count, pose = len(values), self.anatomy
        parts = {
            "qpos": np.tile(pose.qpos, (count, 1)),
            "qvel": np.tile(pose.qvel, (count, 1)),
            "action": np.zeros((count, self.model.nu)),
        }
        for kind, part in parts.items():
            columns = [place for place, own in enumerate(table) if own.kind == kind]
            part[:, [table[column].address for column in columns]] = values[:, columns]
        told = [place for place, own in enumerate(table) if own.term == terms.command.name]
        return Start(parts["qpos"], parts["qvel"], values[:, told], parts["action"])

    def _table_of(self, listed: Sequence[terms.Term]) -> tuple[Quantity, ...]:
        return tuple(quantity for term in listed for quantity in term.table(self.anatomy))

    def _poses(self, transitions: Any) -> Rows:
        return self.restored(transitions.observation, transitions.extras).qpos

    def _of_rows(self, function: Callable[..., Any], kinds: str, *step: Any) -> Any:
        """What a function of a step gives, which must be a number for each environment."""
        values, count = np.asarray(self._tried(function.__name__, function, *step)), len(step[1])
        if values.shape != (count,):
            raise UserError(
                f"{self.name}: {function.__name__} must give a number for each of {count} environments, "
                f"not shape {values.shape}"
            )
        if values.dtype.kind not in kinds:
            wanted = "truth values" if kinds == "b" else "real numbers"
            raise UserError(f"{self.name}: {function.__name__} must give {wanted}, not {values.dtype}")
        return values

    def _of_term(self, term: terms.Term, width: int, rows: int, moment: Moment) -> Rows:
        """What a term gives, which must be as many numbers for each environment as its table has."""
        values = np.asarray(self._tried(f"the term '{term.name}'", term, moment))
        if values.shape != (rows, width):
            raise UserError(
                f"{self.name}: the term '{term.name}' must give {width} numbers for each of {rows} "
                f"environments, not shape {values.shape}"
            )
        return values

    def _tried(self, what: str, function: Callable[..., Any], *given: Any) -> Any:
        """What a user's function gives; its error becomes a line."""
        try:
            return function(*given)
        except UserError:
            raise
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise UserError(f"{self.name}: {what} raised {reason}") from error

    def _compiled(self, spec: mujoco.MjSpec) -> mujoco.MjModel:
        return self._tried("compiling the model", spec.compile)

    def _prepared(self) -> mujoco.MjSpec:
        """The model with the chosen keyframe alone, and without sensors that cannot be read off a state."""
        spec = self._tried("spec", self.spec)
        if not isinstance(spec, mujoco.MjSpec):
            raise UserError(f"{self.name}: spec must give an MjSpec, not {type(spec).__name__}")
        if not len(spec.actuators):
            raise UserError(f"{self.name} has no actuators: add them to the model, or in spec()")
        spec = spec.copy()
        names = [key.name for key in spec.keys]
        if self.keyframe not in (None, "qpos0", *names):
            raise unknown_name(f"keyframe of {self.name}", self.keyframe, names)
        for number, key in enumerate(spec.keys):
            chosen = number == 0 if self.keyframe is None else key.name == self.keyframe
            if not chosen:
                spec.delete(key)
        if len(spec.sensors):
            late = self._compiled(spec).sensor_needstage == mujoco.mjtStage.mjSTAGE_ACC
            for sensor, unreadable in zip(list(spec.sensors), late, strict=True):
                if unreadable:
                    spec.delete(sensor)
        return spec
