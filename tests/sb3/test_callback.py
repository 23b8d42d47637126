"""What the callback logs about both buffers."""

import json

import gymnasium
import jax
import numpy as np
import pytest
import sb3_contrib
import sbx
import stable_baselines3 as sb3
import torch
from stable_baselines3.common.logger import configure

from augury.errors import UserError
from augury.sb3 import AugmentationCallback, AugmentedReplayBuffer
from augury.sb3.teaching import teaching


def logged(
    tmp_path,
    callback,
    steps=600,
    environment="augury:augury/Goal2D-v0",
    kind=sb3.TD3,
    policy="MlpPolicy",
    **kwargs,
):
    """Train, and return the model and what its logger wrote under `augmentation/`."""
    model = kind(
        policy,
        gymnasium.make(environment) if isinstance(environment, str) else environment,
        learning_starts=100,
        batch_size=16,
        train_freq=8,
        gradient_steps=4,
        buffer_size=1000,
        policy_kwargs={"net_arch": [8]},
        replay_buffer_class=AugmentedReplayBuffer,
        replay_buffer_kwargs=kwargs,
        seed=0,
    )
    model.set_logger(configure(str(tmp_path), ["json"]))
    try:
        model.learn(steps, callback=callback, log_interval=1)
    finally:
        model.logger.close()
    lines = [json.loads(line) for line in (tmp_path / "progress.json").read_text().splitlines()]
    return model, [
        {name.removeprefix("augmentation/"): value for name, value in line.items() if "augmentation/" in name}
        for line in lines
        if any(name.startswith("augmentation/") for name in line)
    ]


def test_ratios_and_contents_of_both_buffers_are_logged(tmp_path):
    near = 0.3

    def succeeded(transitions):
        """Close to the goal: common enough to be counted in few steps."""
        offset = transitions.next_observation[:, :2] - transitions.next_observation[:, 2:]
        return np.linalg.norm(offset, axis=1) < near

    looks = AugmentationCallback(every=200, succeeded=succeeded)
    _, lines = logged(tmp_path, looks, augmentation="goal2d/translate", ratio=4, update_ratio=0.5)
    assert len(lines) == 3  # after 200, 400 and 600 steps
    last = lines[-1]
    assert last["update_ratio"] == pytest.approx(0.5)
    assert last["replay_ratio"] == pytest.approx(0.5)
    assert last["augmented_replay_ratio"] == pytest.approx(0.5 / 4)
    # Translate puts the agent anywhere in the square: the chance to be near the goal is about π 0.3² / 4.
    assert last["augmented_reward_density"] == pytest.approx(np.pi * near**2 / 4, abs=0.03)
    assert 0 < last["observed_coverage"] < last["augmented_coverage"] < last["coverage"] < 1


def test_what_is_logged_follows_from_what_the_buffers_hold(tmp_path):
    bounds = [-10] * 6, [10] * 6
    looks = AugmentationCallback(every=300, bounds=bounds)
    model, lines = logged(tmp_path, looks, augmentation="goal2d/rotate", ratio=2)
    observed = model.replay_buffer.observed_transitions(10**6)
    first = {name: values[:300] for name, values in observed._asdict().items() if name != "extras"}
    points = np.concatenate([first["observation"], first["action"]], 1)
    cells = {tuple(cell) for cell in np.floor((points + 10) / 20 * 6).astype(int)}
    assert lines[0]["observed_coverage"] == pytest.approx(len(cells) / 6**6)
    # A sparse reward: more than the smallest is success, before the first one too.
    assert lines[0]["observed_reward_density"] == pytest.approx((first["reward"] > -0.1).mean())


class Reach(gymnasium.Env):
    """Walk along a line to a goal."""

    observation_space = gymnasium.spaces.Dict(
        {
            name: gymnasium.spaces.Box(low, 1.0, (1,))
            for name, low in (("observation", -1.0), ("achieved_goal", -5.0), ("desired_goal", 0.0))
        }
    )
    action_space = gymnasium.spaces.Box(-2.0, 2.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.left = 0.0, 20
        self.goal = self.np_random.uniform(0, 1, 1).astype(np.float32)
        return self.seen(), {}

    def seen(self):
        place = np.array([self.place], np.float32)
        return {"observation": place, "achieved_goal": place - 4, "desired_goal": self.goal}

    def step(self, action):
        self.place = float(np.clip(self.place + 0.17 * action[0], -1, 1))
        self.left -= 1
        return self.seen(), 0.0, False, self.left == 0, {}


def test_coverage_is_of_what_a_policy_sees_of_a_goal_observation(tmp_path):
    """As in a fleet: of the achieved goal, which the observation tells already, it is not."""
    looked_at = []

    def succeeded(transitions):
        looked_at.append(transitions)
        return transitions.reward > 0

    looks = AugmentationCallback(every=300, succeeded=succeeded)
    _, lines = logged(tmp_path, looks, 300, Reach(), policy="MultiInputPolicy")
    [held] = looked_at
    points = np.concatenate(
        [held.observation["observation"], held.observation["desired_goal"], held.action], 1
    )
    low, high, bins = np.array([-1, 0, -2]), np.array([1, 1, 2]), 40  # 40³ < 65,536 < 41³
    cells = {tuple(cell) for cell in np.minimum((points - low) / (high - low) * bins, bins - 1).astype(int)}
    # A point on the border of two cells may be rounded into either.
    assert lines[0]["observed_coverage"] * bins**3 == pytest.approx(len(cells), abs=2)
    assert len(cells) > 100


def test_spaces_without_bounds_and_discrete_actions_are_covered_too(tmp_path):
    def mirror(key, transition):
        return transition._replace(
            observation=-transition.observation,
            action=1 - transition.action,
            next_observation=-transition.next_observation,
        )

    looks = AugmentationCallback(every=100)
    _, lines = logged(tmp_path, looks, environment="CartPole-v1", kind=sb3.DQN, augmentation=mirror)
    assert lines
    assert all(0 < line["observed_coverage"] < line["coverage"] < 1 for line in lines)


def same(key, transition):
    return transition


def mirror(key, transition):
    """Left and right exchanged: right for CartPole."""
    return transition._replace(
        observation=-transition.observation,
        action=1 - transition.action,
        next_observation=-transition.next_observation,
    )


def rewarded(key, transition):
    """Reward that is not there, in states that occur: no critic can explain it."""
    return transition._replace(reward=transition.reward + 5 * jax.random.bernoulli(key))


@pytest.mark.parametrize(
    ("kind", "environment"),
    [
        (sb3.TD3, "augury:augury/Goal2D-v0"),
        (sb3.SAC, "augury:augury/Goal2D-v0"),
        (sb3.DQN, "CartPole-v1"),
        pytest.param(sb3_contrib.TQC, "augury:augury/Goal2D-v0", marks=pytest.mark.slow),
        pytest.param(sb3_contrib.QRDQN, "CartPole-v1", marks=pytest.mark.slow),
        pytest.param(sb3_contrib.CrossQ, "augury:augury/Goal2D-v0", marks=pytest.mark.slow),
    ],
)
def test_copies_that_teach_nothing_are_told_from_copies_that_the_critic_cannot_explain(
    tmp_path, kind, environment
):
    errors = {}
    for augmentation in (same, rewarded):
        looks = AugmentationCallback(every=300)
        place = tmp_path / augmentation.__name__
        _, lines = logged(place, looks, 500, environment, kind, augmentation=augmentation)
        errors[augmentation] = lines[0]
    nothing = errors[same]
    assert nothing["asymmetry"] == pytest.approx(0, abs=1e-6)
    assert nothing["augmented_value_error"] == pytest.approx(nothing["observed_value_error"], rel=1e-4)
    assert "asymmetry" not in errors[rewarded]
    assert errors[rewarded]["augmented_value_error"] > 1.5 * errors[rewarded]["observed_value_error"]


class Critic(torch.nn.Module):
    """Values of pushing left and right that are mirror images of each other, or opposites."""

    def __init__(self, sign):
        super().__init__()
        self.sign = sign

    def forward(self, observations):
        tilt = observations[:, 2]
        return torch.stack([tilt, -self.sign * tilt], dim=1)


@pytest.mark.parametrize(("sign", "change"), [(1, 0), (-1, 2)])
def test_the_asymmetry_of_a_critic_is_told_from_its_values(sign, change):
    model = sb3.DQN(
        "MlpPolicy",
        gymnasium.make("CartPole-v1"),
        learning_starts=1_000,
        replay_buffer_class=AugmentedReplayBuffer,
        replay_buffer_kwargs={"augmentation": mirror},
        seed=0,
    )
    model.learn(200)
    model.q_net = model.q_net_target = Critic(sign)
    found = teaching(model, model.replay_buffer)["asymmetry"]
    tilt = model.replay_buffer.observations[:200, 0, 2]  # Q is ± the tilt, and of copies ∓
    assert found == pytest.approx(change**2 * (tilt**2).mean() / tilt.var(), rel=0.2, abs=1e-9)


def test_what_other_critics_have_left_to_learn_is_not_known(tmp_path):
    _, lines = logged(tmp_path, AugmentationCallback(every=100), 100, kind=sbx.TD3, augmentation=same)
    assert lines
    assert not [line for line in lines if "augmented_value_error" in line or "asymmetry" in line]


@pytest.mark.parametrize("arguments", [{}, {"augmentation": "goal2d/rotate", "ratio": 0}])
def test_without_augmentation_only_the_observed_half_has_figures(tmp_path, arguments):
    _, lines = logged(tmp_path, AugmentationCallback(every=200), **arguments)
    assert lines[-1]["observed_coverage"] == lines[-1]["coverage"] > 0
    assert lines[-1]["augmented_coverage"] == lines[-1]["augmented_reward_density"] == 0
    assert "augmented_replay_ratio" not in lines[-1]


@pytest.mark.slow
def test_an_infinite_ratio_has_an_augmented_replay_ratio_of_zero(tmp_path):
    _, lines = logged(tmp_path, AugmentationCallback(every=200), augmentation="goal2d/rotate", ratio=np.inf)
    assert [line["augmented_replay_ratio"] for line in lines] == [0, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [1.5, np.inf])
def test_looking_does_not_change_a_run(tmp_path, ratio):
    runs, looks = zip(
        *(
            logged(
                tmp_path / str(every),
                AugmentationCallback(every=every),
                steps=300,
                augmentation="goal2d/translate",
                ratio=ratio,
            )
            for every in (50, 10_000)
        ),
        strict=True,
    )
    assert [bool(lines) for lines in looks] == [True, False]
    for often, never in zip(*(run.policy.parameters() for run in runs), strict=True):
        np.testing.assert_array_equal(often.detach(), never.detach())


def test_a_run_in_pieces_is_looked_at_as_often(tmp_path):
    callback = AugmentationCallback(every=100)
    model, lines = logged(tmp_path, callback, steps=60, augmentation="goal2d/rotate")
    assert not lines
    model.set_logger(configure(str(tmp_path), ["json"]))
    for _ in range(4):
        model.learn(60, callback=callback, log_interval=1, reset_num_timesteps=False)
    model.logger.close()
    assert (tmp_path / "progress.json").read_text().count("augmentation/coverage") == 3


def test_large_observations_are_looked_at_in_little_memory():
    space = gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    model = sb3.DQN(
        "CnnPolicy",
        Images(space),
        buffer_size=20,
        replay_buffer_class=AugmentedReplayBuffer,
        replay_buffer_kwargs={"augmentation": lambda key, transition: transition},
    )
    looks = AugmentationCallback(every=5)
    model.learn(12, callback=looks)
    assert looks._grid.bins == 8


class Images(gymnasium.Env):
    """Noise."""

    def __init__(self, space):
        self.observation_space, self.action_space = space, gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


def test_misuse_is_explained():
    with pytest.raises(UserError, match="every must be 1 step or more, not 0"):
        AugmentationCallback(every=0)
    model = sb3.TD3("MlpPolicy", gymnasium.make("augury:augury/Goal2D-v0"), buffer_size=10)
    with pytest.raises(UserError, match="needs replay_buffer_class=AugmentedReplayBuffer, not ReplayBuffer"):
        model.learn(1, callback=AugmentationCallback())


def test_bounds_of_the_wrong_length_are_explained(tmp_path):
    with pytest.raises(UserError, match="bounds for 4 numbers, but there are 6"):
        logged(tmp_path, AugmentationCallback(every=10, bounds=([0] * 4, [1] * 4)), steps=20)
