"""An augmentation sees images as the environment shows them, wherever SB3 puts their channels."""

import gymnasium
import numpy as np
import pytest
import stable_baselines3 as sb3
from gymnasium import spaces

from augury.sb3 import AugmentedReplayBuffer

CAMERA = spaces.Box(0, 255, (36, 40, 3), np.uint8)
FRONT = spaces.Box(0, 255, (3, 36, 40), np.uint8)


class Camera(gymnasium.Env):
    """Random images, alone or in a dict; `space` says where their channels are."""

    action_space = spaces.Discrete(2)

    def __init__(self, space, several):
        speed = spaces.Box(-1, 1, (2, 3, 4))  # no image, though it has as many axes
        self.observation_space = spaces.Dict({"camera": space, "speed": speed}) if several else space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


@pytest.mark.parametrize("several", [False, True], ids=["alone", "in a dict"])
@pytest.mark.parametrize("space", [CAMERA, FRONT], ids=["last", "first"])
@pytest.mark.parametrize("later", [False, True], ids=["built", "loaded before its environment"])
def test_a_flip_of_what_the_environment_shows_flips_what_the_learner_gets(tmp_path, space, several, later):
    width = 1 if space is CAMERA else 2

    def flip_images(images):
        assert images.shape == space.shape
        return images[:, ::-1] if width == 1 else images[:, :, ::-1]

    def flip(key, transition):
        def of(seen):
            return seen | {"camera": flip_images(seen["camera"])} if several else flip_images(seen)

        return transition._replace(
            observation=of(transition.observation), next_observation=of(transition.next_observation)
        )

    env = Camera(space, several)
    model = sb3.DQN(
        "MultiInputPolicy" if several else "MlpPolicy",
        env,
        buffer_size=20,
        learning_starts=100,
        policy_kwargs={"net_arch": [4]},
        replay_buffer_class=AugmentedReplayBuffer,
        replay_buffer_kwargs={"augmentation": flip},
        seed=0,
        device="cpu",
    )
    if later:
        model.save(tmp_path / "model")
        model = sb3.DQN.load(tmp_path / "model")
        model.set_env(env)
    model.learn(20)
    if later:
        model.save_replay_buffer(tmp_path / "buffer")
        model = sb3.DQN.load(tmp_path / "model")
        model.load_replay_buffer(tmp_path / "buffer")
    drawn = model.replay_buffer.sample(200)
    for seen in (drawn.observations, drawn.next_observations):
        if several:
            observed, augmented = np.split(np.asarray(seen["speed"]), 2)
            assert {row.tobytes() for row in augmented} == {row.tobytes() for row in observed}
        observed, augmented = np.split(np.asarray(seen["camera"] if several else seen), 2)
        assert observed.shape[1:] == FRONT.shape
        images = {row.tobytes() for row in observed}
        assert {row[:, :, ::-1].tobytes() for row in augmented} == images
