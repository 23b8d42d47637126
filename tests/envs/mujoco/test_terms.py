"""Terms give what MuJoCo says, and map as their tables say."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from augury.augmentations.symmetry import reflect, rotate
from augury.envs.mujoco import terms
from augury.envs.mujoco.commands import Commands
from augury.envs.mujoco.task import MujocoTask
from augury.errors import UserError
from augury.precision import double_precision
from augury.symmetry import SymmetryError, observation_map, reflection, rotation
from augury.transition import Transition
from tests.quadruped import EXAMPLES

ROWS = 6
WORLD = ("position", "velocity", "axis", "orientation")
"""Sensors in the world's frame."""


@dataclass(frozen=True)
class Observer(MujocoTask):
    """The quadruped of the examples, with sensors of all sorts."""

    observed: tuple[terms.Term, ...]
    name, horizon, action_scale = "observer", 10, 0.4
    commands = Commands((-1, 1), (-1, 1), (-1, 1))

    def spec(self):
        spec = mujoco.MjSpec.from_file(str(EXAMPLES / "quadruped.xml"))
        kinds = ("FRAMEPOS", "FRAMELINVEL", "FRAMEXAXIS", "FRAMEQUAT")
        for name, kind in zip(WORLD, kinds, strict=True):
            spec.add_sensor(
                name=name,
                type=getattr(mujoco.mjtSensor, f"mjSENS_{kind}"),
                objtype=mujoco.mjtObj.mjOBJ_XBODY,
                objname="trunk",
            )
        for side in ("left", "right"):
            spec.add_sensor(
                name=f"{side} knee",
                type=mujoco.mjtSensor.mjSENS_JOINTPOS,
                objtype=mujoco.mjtObj.mjOBJ_JOINT,
                objname=f"front_{side}_shin",
            )
        return spec


def observer(*observed):
    return Observer(observed)


@terms.term(terms.scalars("swing", unit="rad/s"))
def swing(moment):
    """A term of a user: how fast all joints move together."""
    return np.abs(terms.joint_velocities(moment)).sum(1, keepdims=True)


EVERY = (
    terms.positions.skip(2),  # so that the observation does not determine the state
    terms.velocities,
    terms.joint_positions,
    terms.joint_offsets,
    terms.joint_velocities,
    terms.base_linear_velocity,
    terms.base_angular_velocity,
    terms.projected_gravity,
    terms.base_height,
    terms.previous_action,
    terms.command,
    swing,
    *map(terms.sensor, ("gyro", "velocimeter", "left knee", "right knee", *WORLD)),
)


def random_state(task):
    """States of the task, anywhere and in any orientation, as its `state` has them."""
    generator, model = np.random.default_rng(0), task.model
    qpos = task.anatomy.qpos + generator.normal(size=(ROWS, model.nq))
    qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    parts = [generator.normal(size=(ROWS, size)) for size in (model.nv, 3, model.nu)]
    return np.concatenate([qpos, *parts], 1)


def observed(task, state):
    engine = task.vector(len(state))
    engine.put(*task.restored(np.empty((len(state), 0)), {"state": state}))
    return task.observe(engine.moment)


def each(function, rows):
    return np.stack([np.asarray(function(row)) for row in rows])


@pytest.fixture(autouse=True)
def _double_precision():
    with double_precision():
        yield


def assert_same(task, claimed, simulated):
    """Number by number; of a quaternion and its negative, which are the same orientation, either."""
    orientation = [quantity.term == "sensor orientation" for quantity in task.table]
    signs = np.sign((claimed * simulated)[:, orientation].sum(1, keepdims=True))
    simulated = np.where(orientation, signs * simulated, simulated)
    wrong = np.abs(claimed - simulated).max(0) > 1e-12
    assert not wrong.any(), [own.name for own, amiss in zip(task.table, wrong, strict=True) if amiss]


def test_the_mirrored_observation_is_that_of_the_mirrored_state():
    task = observer(*EVERY)
    mirror, state = reflect(task), random_state(task)
    seen, mirrored = observed(task, state), observed(task, each(mirror.state, state))
    assert_same(task, each(mirror.observation, seen), mirrored)
    assert seen.shape == (ROWS, len(task.table))


def test_the_rotated_observation_is_that_of_the_rotated_state():
    task, key = observer(*EVERY), jax.random.key(0)
    state, end = random_state(task), task.model.nq + task.model.nv
    turn = rotation(task.model, float(jax.random.uniform(key, (), float, -1.0, 1.0)))
    image = state.copy()
    image[:, : task.model.nq] = turn.qpos(state[:, : task.model.nq])
    image[:, task.model.nq : end] = turn.qvel(state[:, task.model.nq : end])
    function, seen = rotate(task, largest=1.0), observed(task, state)

    def claim(row, own):
        no = jnp.zeros((), bool)
        made = function(key, Transition(row, jnp.zeros(12), jnp.zeros(()), row, no, no, {"state": own}))
        return made.observation, made.extras["state"]

    claimed, mapped = (np.asarray(part) for part in jax.vmap(claim)(jnp.asarray(seen), jnp.asarray(state)))
    np.testing.assert_allclose(mapped, image, atol=1e-12)
    assert_same(task, claimed, observed(task, image))


def test_every_term_maps_by_itself():
    every = observer(*EVERY)
    found = reflection(every.model)
    for term in EVERY:
        if "knee" not in term.name:  # each is the mirror image of the other
            table = term.table(every.anatomy)
            assert observation_map(found, table).is_involution, term.name
            assert len({own.name for own in table}) == len(table), "every number has its own name"


def test_terms_of_the_base_are_what_mujocos_own_sensors_read():
    task = observer(terms.base_linear_velocity, terms.base_angular_velocity, terms.projected_gravity)
    sensors = observer(terms.sensor("velocimeter"), terms.sensor("gyro"))
    state = random_state(task)
    state[:, 3:7] *= 1.7  # as at the start of an episode, quaternions need not have length 1
    seen, read = observed(task, state), observed(sensors, state)
    np.testing.assert_allclose(seen[:, :6], read, atol=1e-12)
    data = mujoco.MjData(task.model)
    for row, down in zip(state, seen[:, 6:], strict=True):
        data.qpos[:] = row[: task.model.nq]
        mujoco.mj_kinematics(task.model, data)
        np.testing.assert_allclose(data.body("trunk").xmat.reshape(3, 3).T @ [0, 0, -1], down, atol=1e-12)


def test_offsets_are_from_the_keyframe():
    task = observer(terms.joint_offsets, terms.joint_positions, terms.base_height)
    engine = task.vector(1)
    seen = engine.reset(seed=0)[0][0]
    np.testing.assert_array_equal(seen[:12], 0)
    np.testing.assert_array_equal(seen[12:24], np.tile([0, 0.8, -1.6], 4))
    assert seen[24] == 0.27


def test_equal_terms_are_equal_and_others_are_not():
    assert terms.sensor("gyro") == terms.sensor("gyro") != terms.sensor("velocimeter")
    assert terms.positions.skip(2) == terms.positions.skip(2) != terms.positions
    assert hash(terms.velocities.clip(10)) == hash(terms.velocities.clip(10))


def test_numbers_can_be_left_out_and_limited():
    task = observer(terms.positions.skip(2), terms.velocities.clip(0.5))
    state = random_state(task)
    seen, positions = observed(task, state), task.model.nq
    np.testing.assert_array_equal(seen[:, : positions - 2], state[:, 2:positions])
    assert np.abs(seen[:, positions - 2 :]).max() == 0.5
    assert [quantity.quantity for quantity in task.table[:2]] == ["z", "quaternion w"]


def test_what_does_not_change_with_the_heading_needs_no_rotation():
    with pytest.raises(SymmetryError, match="nothing that observer observes changes with its heading"):
        rotate(observer(terms.joint_offsets, terms.projected_gravity, terms.command))


class Pendulum(MujocoTask):
    """A model without a free joint."""

    name, horizon = "pendulum", 10
    observed = (terms.base_height,)

    def spec(self):
        return mujoco.MjSpec.from_string(
            """<mujoco model="pole"><worldbody><body><joint name="hinge"/><geom size=".1"/></body></worldbody>
            <actuator><motor joint="hinge"/></actuator></mujoco>"""
        )


def test_mistakes_are_named():
    with pytest.raises(UserError, match="velocities in quadruped 'gyros': did you mean 'gyro'"):
        _ = observer(terms.sensor("gyros")).table
    with pytest.raises(UserError, match="'accelerometer'"):
        _ = observer(terms.sensor("accelerometer")).table
    with pytest.raises(UserError, match="pole has no free joint"):
        _ = Pendulum().table
    with pytest.raises(SymmetryError, match=r"left knee.* needs reading .*, which is not observed"):
        reflect(observer(terms.sensor("left knee")))
