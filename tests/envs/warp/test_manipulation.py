"""The Panda tasks on MuJoCo Warp: they move, observe and reward as they do on MuJoCo, and train in fleets."""

import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from augury.cli import main
from augury.envs import make
from augury.envs.panda.kinematics import joint_targets, reaching
from augury.envs.warp.manipulation import World
from augury.errors import UserError
from augury.fleet import Arm, train_fleet

FOUR = ("panda-push", "panda-slide", "panda-pick-and-place", "panda-flip")
WORLDS = 6


def on_cpu(name):
    """A task that simulates here too. It is slow, and the same."""
    return replace(make(f"{name}-warp"), needs_gpu=False)


def explored(name, steps=8, seed=0):
    """An engine on the host whose hands were led to the objects, and what was done last."""
    twin = make(name)
    engine = twin.vector(WORLDS, autoreset=False)
    observation, _ = engine.reset(seed=list(range(seed, seed + WORLDS)))
    generator = np.random.default_rng(seed)
    for _ in range(steps):
        observation, *_ = engine.step(twin.explore(observation, generator))
    return engine, twin.explore(observation, generator)


def worlds_of(moment):
    return World(*(jnp.asarray(part, jnp.float32) for part in (moment.qpos, moment.qvel, moment.goal)))


@pytest.mark.parametrize("name", FOUR)
def test_observations_are_those_of_the_host(name):
    engine, _ = explored(name)
    shown = jax.vmap(on_cpu(name).observe)(worlds_of(engine.moment))
    expected = make(name).observe(engine.moment)
    for part in expected:
        np.testing.assert_allclose(shown[part], expected[part], atol=2e-5)


@pytest.mark.parametrize("name", FOUR)
def test_episodes_start_as_on_the_host(name):
    task, twin = on_cpu(name), make(name)
    starts = jax.vmap(task.reset)(jax.random.split(jax.random.key(0), 2_000))
    expected = [twin.start(np.random.default_rng(seed)) for seed in range(2_000)]
    for part in ("qpos", "qvel", "goal"):
        ours, theirs = np.asarray(getattr(starts, part)), np.stack([getattr(one, part) for one in expected])
        np.testing.assert_allclose(ours.mean(0), theirs.mean(0), atol=0.15 * theirs.std(0).max() + 1e-6)
        np.testing.assert_allclose(ours.std(0), theirs.std(0), atol=0.15 * theirs.std(0).max() + 1e-6)


def test_one_arm_reaches_as_rows_of_arms_do():
    engine, _ = explored("panda-push")
    angles = engine.moment.qpos[:, :7]
    targets = np.random.default_rng(0).uniform(-0.2, 0.2, (WORLDS, 3))
    for ours, theirs in zip(
        jax.vmap(reaching)(jnp.float32(angles), jnp.float32(targets)),
        joint_targets(angles, targets),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_without_a_gpu_one_line_names_the_task_on_the_host(capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        main(["train", "panda-push-warp", "--agents", "1", "--steps", "2000", "--out", str(tmp_path / "run")])
    assert ended.value.code == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert "NVIDIA GPU" in told[0]
    assert told[0].endswith("choose panda-push")


def test_without_warp_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco_warp", None)
    monkeypatch.delitem(sys.modules, "augury.envs.warp.worlds", raising=False)
    task = on_cpu("panda-push-coarse")
    state = task.reset(jax.random.key(0))
    with pytest.raises(UserError, match=r"panda-push-coarse-warp needs MuJoCo Warp: pip install 'augury\[w"):
        task.step(jax.random.key(1), state, jnp.zeros(3))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["panda-push", "panda-pick-and-place"])
def test_a_step_ends_where_mujoco_ends_it(name):
    pytest.importorskip("mujoco_warp")
    task = on_cpu(name)
    step = jax.jit(jax.vmap(task.step))
    keys = jax.random.split(jax.random.key(0), WORLDS)
    hands, objects, moved = [], [], []
    for seed in range(3):
        engine, action = explored(name, seed=10 * seed)
        before = engine.moment
        after, reward, terminated = step(keys, worlds_of(before), jnp.float32(action))
        _, their_reward, their_end, _, _ = engine.step(action)
        theirs = engine.moment
        hands.append(abs(np.asarray(after.qpos[:, :7]) - theirs.qpos[:, :7]).max(1))
        objects.append(np.linalg.norm(np.asarray(after.qpos[:, -7:-4]) - theirs.qpos[:, -7:-4], axis=1))
        moved.append(np.linalg.norm(theirs.qpos[:, -7:-4] - before.qpos[:, -7:-4], axis=1))
        np.testing.assert_array_equal(reward, their_reward)
        np.testing.assert_array_equal(terminated, their_end)
    assert np.median(np.concatenate(moved)) > 1e-3  # the hand strikes most of them
    # A blow that falls a substep earlier parts the trajectories: most agree, not all.
    assert (np.quantile(np.concatenate(hands), (0.5, 0.75)) < (1e-5, 1e-3)).all()
    assert (np.quantile(np.concatenate(objects), (0.5, 0.75)) < (2e-4, 1e-3)).all()


@pytest.mark.slow
def test_worlds_do_not_depend_on_how_they_are_batched(monkeypatch):
    module = pytest.importorskip("augury.envs.warp.worlds")
    engine, action = explored("panda-push")
    moment = engine.moment
    worlds = (moment.qpos, moment.qvel, make("panda-push").control(moment, action))
    worlds = tuple(jnp.asarray(part, jnp.float32) for part in worlds)
    advance = on_cpu("panda-push").worlds.advance
    together = jax.vmap(advance)(*worlds)
    in_two_axes = jax.vmap(jax.vmap(advance))(*(part.reshape(2, -1, part.shape[1]) for part in worlds))
    monkeypatch.setattr(module, "MOST_WORLDS", 4)
    in_groups = jax.jit(jax.vmap(advance))(*worlds)
    for expected, *others in zip(together, in_two_axes, in_groups, strict=True):
        for other in others:
            np.testing.assert_array_equal(other.reshape(expected.shape), expected)


@pytest.mark.slow
def test_a_fleet_learns_in_it():
    pytest.importorskip("mujoco_warp")
    arm = Arm(
        environment=on_cpu("panda-push-coarse"),
        augmentation="panda/translate-goal",
        agents=2,
        environments=2,
        steps=24,
        random_steps=8,
        batch_size=8,
        hidden=(8, 8),
        evaluate_every=24,
        evaluation_episodes=1,
    )
    (result,) = train_fleet([arm])
    assert result.evaluations["returns"].tolist() == [[-50.0], [-50.0]]
    assert result.evaluations["updates"].tolist() == [8]
    assert not result.evaluations["diverged"].any()
    assert (result.evaluations["observed_coverage"] > 0).all()
