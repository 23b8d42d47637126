"""Tasks of gymnax, Brax and MuJoCo Playground, with the real packages: one environment, and fleets."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from augury.cli import main
from augury.envs import adapters, make, reference
from augury.envs.adapters.brax import BraxEnvironment
from augury.envs.adapters.gymnasium.spaces import UNKNOWN_BOUND
from augury.errors import UserError
from augury.fleet import Arm, resolved, train_fleet, training
from augury.fleet.trainers import trainer_for
from augury.runs import arrays, checkpoints
from tests.fleet.comparing import assert_same
from tests.marks import slowly

PENDULUM, CARTPOLE = "gymnax:Pendulum-v1", "gymnax:CartPole-v1"
BRAX = BraxEnvironment("inverted_pendulum", backend="spring", horizon=12)
PLAYGROUND = "playground:CartpoleBalance"


def small(environment):
    return Arm(
        environment=environment,
        agents=2,
        environments=2,
        steps=128,
        random_steps=32,
        collect=4,
        updates=1,
        batch_size=8,
        hidden=(8,),
        evaluate_every=64,
        evaluation_episodes=1,
    )


def stepped(environment, steps, action, seed=0):
    """The states that follow a reset, with the same action in every step."""
    key, step = jax.random.key(seed), jax.jit(environment.step)
    state = jax.jit(environment.reset)(key)
    for _ in range(steps):
        before = state
        state, reward, terminated = step(key, state, action)
        yield before, state, reward, terminated


def test_bounds_that_gymnax_makes_with_jax_are_known_inside_a_program():
    environment = make("gymnax:PointRobot-misc")
    half_width = jax.jit(lambda: jnp.asarray(environment.action_high - environment.action_low) / 2)()
    np.testing.assert_allclose(half_width, (environment.action_high - environment.action_low) / 2)


def test_a_time_limit_of_gymnax_is_the_horizon_and_no_termination():
    environment = make(PENDULUM)
    assert environment.horizon == 200
    ended = [bool(terminated) for *_, terminated in stepped(environment, 201, jnp.zeros(1))]
    assert not any(ended)


def test_a_pole_that_falls_in_the_last_step_of_gymnax_has_terminated():
    environment = adapters.make(CARTPOLE)
    assert environment.action_count == 2
    assert environment.observation_high[1] == UNKNOWN_BOUND
    *_, (before, after, reward, terminated) = fall(environment)
    last = before._replace(inner=before.inner.replace(time=jnp.int32(environment.horizon - 1)))
    same, _, still = environment.step(jax.random.key(1), last, jnp.int32(1))
    assert terminated
    assert still
    assert reward == 1
    assert abs(environment.observe(after)[2]) > 12 * np.pi / 180, "the final observation, not a new start's"
    np.testing.assert_allclose(environment.observe(same), environment.observe(after), rtol=1e-6)


def fall(environment):
    """The steps of CartPole under one action, up to the fall."""
    for moment in stepped(environment, 100, jnp.int32(1)):
        yield moment
        if moment[-1]:
            return


@pytest.mark.slow
@pytest.mark.parametrize(("name", "falls"), [("brax:inverted_pendulum/spring", True), (PLAYGROUND, False)])
def test_observation_reward_and_termination_are_the_packages_own(name, falls):
    environment = make(name)
    action = environment.action_high
    theirs, step = environment.made.reset(jax.random.key(3)), jax.jit(environment.made.step)
    ended = []
    for _, state, reward, terminated in stepped(environment, 30, action, seed=3):
        theirs = step(theirs, action)
        np.testing.assert_allclose(environment.observe(state), theirs.obs, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(reward, theirs.reward, rtol=1e-4)
        assert terminated == bool(theirs.done)
        ended.append(bool(terminated))
    assert any(ended) == falls
    assert not ended[0]


@pytest.mark.slow
def test_a_step_leaves_the_state_that_it_was_given():
    environment = make("brax:reacher/positional")
    state = environment.reset(jax.random.key(0))
    before = jax.tree.map(jnp.copy, state)
    _, reward, _ = environment.step(jax.random.key(0), state, np.ones(2, np.float32))
    assert reward.dtype == jnp.float32
    assert_same(state, before)


def test_states_have_definite_dtypes():
    state = make(PENDULUM).reset(jax.random.key(0))
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(state))


@pytest.mark.slow
@pytest.mark.parametrize("environment", [PENDULUM, BRAX, PLAYGROUND])
def test_a_fleet_restored_from_arrays_goes_on_bit_for_bit(environment, tmp_path):
    arm = resolved(small(environment))
    trainer = trainer_for([arm])
    arrays.save(tmp_path / "agents", trainer.save(trainer.advance(trainer.init(), 0, 7), 7), {})
    whole = trainer.advance(trainer.init(), 0, 12)
    again = trainer_for([arm])
    restored = again.advance(again.load(arrays.load(tmp_path / "agents")[0]), 7, 5)
    assert jax.tree.structure(restored) == jax.tree.structure(whole)
    assert_same(again.save(restored, 12), trainer.save(whole, 12))
    assert again.compiled.traces == 1, "a restored state was traced anew"


def train_and_die(folder):
    """What the processes below do: leave a checkpoint, and get killed."""
    save = checkpoints.save

    def save_and_die(path, checkpoint, *about):
        save(path, checkpoint, *about)
        if checkpoint.rounds >= 8:  # it has learned, and has been evaluated once
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints.save = save_and_die
    training.CHECKPOINT_SHARE = np.inf
    train_fleet([small(PENDULUM)], checkpoint=Path(folder) / checkpoints.NAME, checkpoint_every=0)


@pytest.mark.slow
def test_a_killed_run_ends_as_if_it_had_not_been_killed(tmp_path):
    code = f"from {__name__} import train_and_die; train_and_die({str(tmp_path)!r})"
    root = Path(__file__).parents[3]
    two = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "JAX_NUM_CPU_DEVICES": "2"}
    killed = subprocess.run([sys.executable, "-c", code], cwd=root, env=os.environ | two, check=False)
    assert killed.returncode == -signal.SIGKILL
    (resumed,) = train_fleet([small(PENDULUM)], checkpoint=tmp_path / checkpoints.NAME)
    (whole,) = train_fleet([small(PENDULUM)])
    assert_same((resumed.evaluations, resumed.actors), (whole.evaluations, whole.actors))


@pytest.mark.parametrize("name", [PENDULUM, *slowly("brax:hopper", "brax:hopper/spring", PLAYGROUND)])
def test_a_name_finds_its_environment_again(name):
    environment = adapters.make(name)
    assert environment.name == name
    assert reference(environment) == name


WRONG = {
    "gymnax:Pendulum-v2": r"gymnax has no task 'Pendulum-v2': did you mean 'Pendulum-v1'\?",
    "brax:hoper": r"Brax has no task 'hoper': did you mean 'hopper'\?",
    "brax:hopper/springs": r"Brax has no backend 'springs': did you mean 'spring'\?",
    "playground:CartpoleBalanced": r"Playground has no task .* did you mean 'CartpoleBalance'\?",
}


@pytest.mark.parametrize("name", [*list(WRONG)[:1], *slowly(*list(WRONG)[1:])])
def test_a_wrong_name_gets_one_line_with_the_nearest(name, capsys):
    with pytest.raises(UserError, match=WRONG[name]):
        make(name)
    with pytest.raises(SystemExit) as leaving:
        main(["train", name])
    assert leaving.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(("module", "extra"), [("gymnax", "gymnax"), ("brax.envs", "brax")])
def test_without_the_package_one_line_says_what_to_install(module, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=rf"pip install 'augury\[{extra}\]'"):
        make(f"{extra}:anything")


@pytest.mark.slow
def test_importing_the_adapters_imports_none_of_the_packages():
    code = "import sys; from augury.envs.adapters import brax, gymnax, playground; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert {"gymnax", "brax", "mujoco_playground", "mujoco"}.isdisjoint(loaded.split())
