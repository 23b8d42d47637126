"""SB3 with the Panda tasks' augmentations, on a user's own task and on panda-gym itself."""

import gymnasium
import jax
import numpy as np
import pytest
import stable_baselines3 as sb3
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from augury.augmentations import make
from augury.envs.panda.goals import PUSH, START_DRAWS
from augury.errors import UserError
from augury.sb3 import AugmentedReplayBuffer
from augury.sb3.environment import name_of

pytestmark = pytest.mark.usefixtures("strict_dtypes")


class Pushed(gymnasium.Env):
    """A cube that goes where it is told, with Push's goals: what a user's own task may look like."""

    def __init__(self):
        box = spaces.Box(-1.0, 1.0, (3,))
        names = ("observation", "achieved_goal", "desired_goal")
        self.observation_space, self.action_space = (
            spaces.Dict(dict.fromkeys(names, box)),
            spaces.Box(-1, 1, (3,)),
        )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.goal = PUSH.goal(self.np_random.random(PUSH.draws)).astype(np.float32)
        self.cube = PUSH.start(self.np_random.random(START_DRAWS)).astype(np.float32)
        self.left = 10
        return self.observation(), {}

    def observation(self):
        return {"observation": self.cube, "achieved_goal": self.cube, "desired_goal": self.goal}

    def step(self, action):
        self.cube = np.clip(self.cube + np.float32(0.05) * action, -1, 1).astype(np.float32)
        self.left -= 1
        reached = bool(PUSH.succeeded(self.cube, self.goal))
        return self.observation(), float(PUSH.reward(self.cube, self.goal)), reached, self.left == 0, {}


def trained(kind, environment, augmentation, **settings):
    model = kind(
        "MultiInputPolicy",
        environment,
        buffer_size=500,
        batch_size=16,
        learning_starts=30,
        policy_kwargs={"net_arch": [16]},
        seed=0,
        replay_buffer_class=AugmentedReplayBuffer,
        replay_buffer_kwargs={"augmentation": augmentation, "ratio": 4, "update_ratio": 2},
        **settings,
    )
    return model.learn(120)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["panda/translate-goal-proximal(0.5)", "panda/hindsight"])
def test_sb3_trains_with_them(name, tmp_path):
    model = trained(sb3.TD3, Pushed(), make(name, "panda-push"))
    buffer = model.replay_buffer
    assert buffer.drawn_augmented == 2 * buffer.drawn_observed > 0
    model.save_replay_buffer(tmp_path / "buffer")
    model.load_replay_buffer(tmp_path / "buffer")
    copies = buffer.augmented_transitions(10**6)
    again = model.replay_buffer.augmented_transitions(10**6)
    jax.tree.map(np.testing.assert_array_equal, again, copies)
    achieved, goals = (copies.next_observation[key] for key in ("achieved_goal", "desired_goal"))
    np.testing.assert_array_equal(copies.terminated, PUSH.succeeded(achieved, goals))
    assert 0 < copies.terminated.mean() < 1


def test_sb3_trains_on_panda_gym_itself():
    pytest.importorskip("panda_gym")
    environment = gymnasium.make("PandaPush-v3")
    model = trained(sb3.DDPG, environment, "panda/translate-goal")  # the environment says which task
    copies = model.replay_buffer.augmented_transitions(10**6)
    assert len(copies.reward) == 4 * 120
    rewards = environment.unwrapped.compute_reward(
        copies.next_observation["achieved_goal"], copies.next_observation["desired_goal"], {}
    )
    np.testing.assert_array_equal(copies.reward, rewards)
    np.testing.assert_array_equal(copies.terminated, rewards == 0)
    assert 0.02 < copies.terminated.mean() < 0.2
    environment.close()


@pytest.mark.parametrize(
    ("id_", "name"),
    [
        ("augury/PandaPickAndPlace-v0", "panda-pick-and-place"),
        ("augury/PandaPushQuadrant-v0", "panda-push-quadrant"),
        ("CartPole-v1", None),
        (None, None),
    ],
)
def test_an_environment_is_known_by_its_id(id_, name):
    environment = Pushed()
    environment.spec = None if id_ is None else gymnasium.spec(id_)
    assert name_of(DummyVecEnv([lambda: environment])) == name


def test_the_task_of_an_environment_need_not_be_told_again():
    environment = Pushed()
    environment.spec = gymnasium.spec("augury/PandaPush-v0")
    kwargs = {"augmentation": "panda/translate-goal"}
    settings = {"replay_buffer_class": AugmentedReplayBuffer, "replay_buffer_kwargs": kwargs, "seed": 0}
    model = sb3.TD3("MultiInputPolicy", environment, learning_starts=99, buffer_size=50, **settings)
    model.learn(20)
    copies = model.replay_buffer.augmented_transitions(99)
    goals = copies.next_observation["desired_goal"]
    assert len(np.unique(goals, axis=0)) == 20
    np.testing.assert_array_equal(
        copies.terminated, PUSH.succeeded(copies.next_observation["achieved_goal"], goals)
    )


def test_the_drop_in_says_what_to_pass_instead_of_a_bare_name():
    spaces_of = {"observation_space": Pushed().observation_space, "action_space": Pushed().action_space}
    message = r"^panda/translate-goal needs to know its task: make\('panda/translate-goal', 'panda-push'\)$"
    with pytest.raises(UserError, match=message):
        AugmentedReplayBuffer(10, **spaces_of, augmentation="panda/translate-goal")
    with pytest.raises(UserError, match=r"goals of flip have shape \(4,\), not \(3,\)"):
        AugmentedReplayBuffer(10, **spaces_of, augmentation=make("panda/translate-goal", "panda-flip"))
