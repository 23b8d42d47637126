"""Fleets on environments with discrete actions, in JAX and on the host: DQN, and augmentations of actions."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from augury.envs import HostEnvironment, JaxEnvironment
from augury.errors import UserError
from augury.fleet import Arm, load_policies, resolved, train, train_fleet
from augury.fleet.building import program_of
from augury.fleet.defaults import DEFAULTS
from augury.fleet.host_trainer import HostTrainer
from augury.fleet.jax_trainer import JaxTrainer
from augury.report import interquartile_mean
from augury.runs import checkpoints, results
from augury.verify import verify
from tests.fleet.comparing import assert_same, train_until_killed
from tests.marks import slowly


class Stick:
    """A stick on a fingertip falls ever faster. Actions are a push to the left, none, a push to the right."""

    horizon = 30
    action_count = 3
    observation_low, observation_high = np.float32([-1]), np.float32([1])


@dataclass(frozen=True)
class JaxStick(Stick, JaxEnvironment):
    """One stick, in JAX."""

    name: str = "stick"

    def reset(self, key):
        return jax.random.uniform(key, (1,), minval=-0.5, maxval=0.5)

    def observe(self, state):
        return state

    def step(self, key, state, action):
        assert (action.shape, action.dtype) == ((), jnp.int32)
        state = 1.25 * state + 0.25 * (action - 1).astype(state.dtype)
        return state, jnp.ones((), state.dtype), jnp.abs(state[0]) > 1

    def restore(self, observation, extras):
        return observation


class Engine:
    """Many sticks, in NumPy."""

    def __init__(self, count, autoreset):
        self.num_envs, self.autoreset = count, autoreset
        self.places, self.steps, self.over = np.zeros(count), np.zeros(count, int), np.zeros(count, bool)
        self.seeds = np.zeros(count, np.int64)

    def reset(self, *, seed):
        self.seeds[:] = seed
        self._start(np.ones(self.num_envs, bool))
        return self.places[:, None].copy(), {}

    def step(self, actions):
        assert (actions.shape, actions.dtype) == ((self.num_envs,), np.int32)
        assert ((actions >= 0) & (actions < 3)).all()
        reward = np.where(self.over, 0.0, 1.0)
        self.places = np.where(self.over, self.places, 1.25 * self.places + 0.25 * (actions - 1))
        self.steps += 1
        terminated = np.abs(self.places) > 1
        truncated = ~terminated & (self.steps >= Stick.horizon)
        self.over |= terminated | truncated
        infos = {"final_obs": self.places[:, None].copy(), "_final_obs": self.over.copy()}
        if self.autoreset:
            self._start(self.over)
        return self.places[:, None].copy(), reward, terminated, truncated, infos

    def restore(self, observation, extras):
        self.places, self.over = np.array(observation[:, 0]), np.zeros(self.num_envs, bool)

    def state(self):
        names = ("seeds", "places", "steps", "over")
        return {name: getattr(self, name).copy() for name in names}

    def load_state(self, state):
        for name, values in state.items():
            setattr(self, name, values.copy())

    def close(self):
        pass

    def _start(self, rows):
        for row in np.flatnonzero(rows):
            self.seeds[row] += 1
            self.places[row] = np.random.default_rng(self.seeds[row]).uniform(-0.5, 0.5)
        self.steps, self.over = np.where(rows, 0, self.steps), self.over & ~rows


@dataclass(frozen=True)
class HostStick(Stick, HostEnvironment):
    """Many sticks, on the host."""

    name: str = "stick-on-host"

    def vector(self, count, *, autoreset=True):
        return Engine(count, autoreset)


def mirror(key, transition):
    """Exchange left and right."""
    return transition._replace(
        observation=-transition.observation,
        action=2 - transition.action,
        next_observation=-transition.next_observation,
    )


ENVIRONMENTS = {"jax": JaxStick(), "host": HostStick()}
SMALL = Arm(
    environment=JaxStick(),
    augmentation=mirror,
    agents=3,
    steps=256,
    random_steps=64,
    collect=16,
    updates=4,
    batch_size=16,
    hidden=(16,),
    evaluate_every=128,
    evaluation_episodes=4,
)


def learned(arm):
    """The learners of an arm's agents after training."""
    arm = resolved(arm)
    fleet = (HostTrainer if arm.environment.runs_in == "host" else JaxTrainer)([arm])
    agents = fleet.advance(fleet.init(), 0, arm.rounds)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[: arm.agents], agents.learner)


def test_the_algorithm_follows_the_environment():
    for environment in ENVIRONMENTS.values():
        arm = resolved(Arm(environment=environment))
        assert arm.algorithm == "dqn"
        assert arm.random_action_probability > 0  # greedy alone would not explore
    assert resolved(Arm()).algorithm == DEFAULTS["algorithm"] == "td3"


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        (Arm(environment=JaxStick(), algorithm="td3"), "stick, whose actions are discrete: use dqn$"),
        (Arm(algorithm="dqn"), "goal2d, whose actions are continuous: use ddpg or td3 or sac$"),
        (replace(SMALL, evaluation_environment="goal2d"), "stick cannot be evaluated on goal2d"),
        (
            replace(SMALL, augmentation=lambda key, seen: mirror(key, seen._replace(action=seen.action / 2))),
            "action must keep its kind of numbers, int32, not float32",
        ),
        (
            replace(SMALL, augmentation=lambda key, seen: seen._replace(action=seen.action + 1)),
            "gives action 3, but stick has the actions 0 to 2$",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused_with_one_line(arm, message):
    with pytest.raises(UserError, match=message):
        resolved(arm)


def test_an_environment_must_say_how_many_actions_it_has():
    class Endless(JaxStick):
        action_count = 2.5

    with pytest.raises(UserError, match=r"action_count must be a whole number from 1 to 2\^24, not 2\.5"):
        resolved(Arm(environment=Endless()))


@pytest.mark.parametrize("storage", ["lazy", *slowly("eager")])
def test_batches_hold_whole_numbers_and_their_mirror_images(storage):
    program = program_of(resolved(replace(SMALL, storage=storage)))
    replay, count = program.replay, 32
    action = jnp.arange(count, dtype=jnp.int32) % 3
    place = action.astype(jnp.float32) / 4 - 0.25  # so that the observation tells the action
    new = program.packed(
        jax.tree.map(
            lambda leaf: leaf[:, None],
            replay.layout.unpack(jnp.zeros((count, replay.layout.width)))._replace(
                observation=place[:, None], action=action
            ),
        )
    )
    function = resolved(SMALL).augmentation
    buffers = replay.add(replay.init(jax.random.key(0)), new, jnp.int32(0), jnp.float32(1), function)
    drawn = replay.sample(jax.random.key(1), buffers, jnp.int32(count), jnp.float32(1), function, 8)
    assert drawn.action.dtype == jnp.int32
    np.testing.assert_array_equal(drawn.observation[..., 0] * 4 + 1, drawn.action)
    assert set(np.unique(drawn.action)) == {0, 1, 2}


@pytest.mark.slow
@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_stored_and_recomputed_mirror_images_train_the_same_agents(environment):
    lazy = replace(SMALL, environment=environment, ratio=1.5)
    assert_same(learned(lazy), learned(replace(lazy, storage="eager")))


@pytest.mark.slow
@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_a_killed_run_resumes_bit_for_bit(environment, tmp_path, monkeypatch):
    arm = resolved(replace(SMALL, environment=environment))
    whole = train_fleet([arm])[0].evaluations
    path = tmp_path / checkpoints.NAME
    train_until_killed([arm], path, monkeypatch, rounds=7)
    resumed = train_fleet([arm], checkpoint=path)[0].evaluations
    assert whole.keys() == resumed.keys()
    for name in whole:
        np.testing.assert_array_equal(resumed[name], whole[name])


@pytest.mark.slow
@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_agents_learn_to_balance_and_keep_their_policies(environment, tmp_path):
    arm = replace(
        SMALL, environment=environment, steps=4_096, random_steps=256, updates=16, evaluate_every=4_096
    )
    [result] = train([arm])
    assert interquartile_mean(result.curves())[-1] > 29  # of 30; random actions stand for about 5 steps
    results.write(tmp_path, result)
    policies = load_policies(tmp_path)
    np.testing.assert_array_equal(policies.act(0, np.float32([[-0.6], [0.6]])), [2, 0])
    assert (policies.play(episodes=5, seed=1).returns > 28).all()


def opposite(key, transition):
    """Exchange left and right on CartPole, which has two actions."""
    return mirror(key, transition)._replace(action=1 - transition.action)


@pytest.mark.slow
def test_cartpole_of_gymnasium_trains_with_a_mirror():
    small = replace(SMALL, steps=1_024, random_steps=256, updates=16, evaluate_every=512)
    cartpole = replace(small, environment="gymnasium:CartPole-v1", augmentation=opposite)
    assert resolved(Arm(environment=cartpole.environment)).steps == 50_000  # the settings for DQN, not TD3's
    evaluations = train([cartpole])[0].evaluations
    assert ((evaluations["returns"] >= 8) & (evaluations["returns"] <= 500)).all()
    # Mirror images lie elsewhere as long as little was observed.
    assert (evaluations["coverage"] > evaluations["observed_coverage"]).any()


@pytest.mark.parametrize("environment", [ENVIRONMENTS["host"], *slowly(ENVIRONMENTS["jax"])])
def test_a_mirror_is_verified_and_a_half_of_it_is_not(environment):
    assert verify(mirror, environment, samples=60).valid
    stale = verify(lambda key, seen: mirror(key, seen)._replace(action=seen.action), environment, samples=60)
    assert 0 < stale.invalid < 60  # no push is its own mirror image
