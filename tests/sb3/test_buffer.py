"""The drop-in buffer under real algorithms of SB3, SB3-contrib and SBX: what their batches hold."""

import os
import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import jax
import numpy as np
import pytest
import sb3_contrib
import sbx
import stable_baselines3 as sb3
from gymnasium import spaces
from scipy.stats import chisquare
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from augury import Transition
from augury.augmentations import augmentation, compose, from_numpy, hindsight, make
from augury.errors import UserError
from augury.sb3 import AugmentedReplayBuffer


def small():
    """Settings of a quick run; new dicts every time, because SB3 writes into them."""
    return {"policy_kwargs": {"net_arch": [8]}, "seed": 0, "buffer_size": 200, "device": "cpu"}


class Numbered(gymnasium.Env):
    """Every step has a number, which observations carry; every fourth episode is cut instead of ending.

    Observation: number / 1000, place, side. Side is 1 here and -1 in the mirrored world, where place and the
    action (about its middle, 0.5) change sign: an augmented row can be told from an observed one.
    """

    def __init__(self, discrete=False, length=10, start=0):
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,))
        self.action_space = spaces.Discrete(2) if discrete else spaces.Box(-2.0, 3.0, (1,))
        self.discrete, self.length = discrete, length
        self.number, self.episode = start, 0
        self.steps = {}

    def observation(self):
        return np.array([self.number / 1000, self.place, 1], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.left = float(self.np_random.uniform(0.1, 1)), self.length
        return self.observation(), {}

    def step(self, action):
        start = self.observation()
        action = np.asarray(action, np.float32).reshape(-1)[0]
        self.place += 0.1 * float(2 * action - 1 if self.discrete else action - 0.5)
        self.number += 1
        self.left -= 1
        reward = -abs(self.place)
        ended = self.left == 0
        self.episode += ended
        cut = bool(ended and self.episode % 4 == 0)
        terminated = bool(ended and not cut)
        self.steps[self.number - 1] = (start, action, reward, self.observation(), terminated, cut)
        return self.observation(), reward, terminated, cut, {"tag": np.array([0, 100.0 + self.number])}


def mirror(key, transition):
    """Place and side change sign; the action is reflected about its middle."""
    flip = np.array([1, -1, -1], np.float32)
    return transition._replace(
        observation=flip * transition.observation,
        action=1 - transition.action,
        next_observation=flip * transition.next_observation,
    )


class Recording(AugmentedReplayBuffer):
    """Keeps every batch it hands out."""

    def sample(self, batch_size, env=None):
        drawn = super().sample(batch_size, env)
        self.batches = [*getattr(self, "batches", []), drawn]
        return drawn


def rows_of(batch):
    return [np.asarray(part) for part in batch[:5]]


def check_rows(env, batch):
    """Trace each row to the step it came from; return which rows are augmented."""
    observations, actions, following, dones, rewards = rows_of(batch)
    side = observations[:, 2]
    assert (following[:, 2] == side).all()
    for row, sign in enumerate(side):
        start, action, reward, end, terminated, _ = env.steps[round(float(observations[row, 0]) * 1000)]
        flip = np.array([1, sign, sign], np.float32)
        np.testing.assert_allclose(observations[row], flip * start, rtol=1e-6)
        np.testing.assert_allclose(following[row], flip * end, rtol=1e-6)
        taken = action if sign > 0 else 1 - action
        stored = taken if env.discrete else (taken - 0.5) / 2.5
        np.testing.assert_allclose(actions[row], [stored], atol=1e-6)
        np.testing.assert_allclose(rewards[row], [reward], rtol=1e-6)
        assert dones[row] == terminated  # a cut episode goes on bootstrapping
    return side < 0


ALGORITHMS = [
    pytest.param(kind, None, id=f"{kind.__module__.split('.')[0]}-{kind.__name__}", marks=marks)
    for kinds, marks in (
        ((sb3.TD3, sb3.DQN), ()),
        ((sb3.DDPG, sb3.SAC, sb3_contrib.TQC, sb3_contrib.QRDQN), pytest.mark.slow),
        ((sbx.SAC, sbx.TD3, sbx.TQC, sbx.CrossQ, sbx.DQN), pytest.mark.slow),
    )
    for kind in kinds
]


EXPLICIT = [
    pytest.param(sb3.TD3, "all", marks=pytest.mark.slow),
    pytest.param(sb3_contrib.TQC, "observed", marks=pytest.mark.slow),
    pytest.param(sbx.SAC, "observed", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("kind", "counts"), [*ALGORITHMS, *EXPLICIT])
def test_every_row_of_every_algorithms_batches_is_traced_to_its_step(kind, counts):
    env = Numbered(discrete=kind in (sb3.DQN, sb3_contrib.QRDQN, sbx.DQN))
    kwargs = {"augmentation": mirror, "ratio": 1.5, "update_ratio": 0.3}
    model = kind(
        "MlpPolicy",
        env,
        batch_size=16,
        learning_starts=40,
        train_freq=8,
        gradient_steps=8,
        gamma=0.9,
        replay_buffer_class=Recording,
        replay_buffer_kwargs=kwargs | ({"batch_size_counts": counts} if counts else {}),
        **small(),
    )
    model.learn(400)
    assert model._n_updates >= 300
    package = kind.__module__.split(".")[0]
    observed_count = counts == "observed" or (counts is None and package == "stable_baselines3")
    shares = []
    for drawn in model.replay_buffer.batches:
        augmented = check_rows(env, drawn)
        for part in augmented.reshape(8 if package == "sbx" else 1, -1):  # as SBX cuts it
            assert ((~part).sum() if observed_count else len(part)) == 16
            shares.append(part.sum())
    expected = 16 * 0.3 if observed_count else 16 * 0.3 / 1.3  # 4.8 and 3.7
    assert set(shares) == {int(expected), int(expected) + 1}
    draws = len(model.replay_buffer.batches)
    assert np.mean(shares) == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(draws))
    assert (type(model) is kind) == (counts != "observed")


@pytest.fixture(autouse=True)
def _seeded():
    np.random.seed(0)  # SB3 draws from NumPy's own generator


def filled(steps=60, environments=1, buffer_size=1000, start=0, **kwargs):
    """A buffer with steps of numbered environments, and those environments; each has its own numbers."""
    envs = [Numbered(start=start + 10_000 * index) for index in range(environments)]
    vector = DummyVecEnv([lambda env=env: env for env in envs])
    vector.seed(0)
    vector.action_space.seed(0)
    buffer = AugmentedReplayBuffer(
        buffer_size * environments,
        vector.observation_space,
        vector.action_space,
        device="cpu",
        n_envs=environments,
        **kwargs,
    )
    add_steps(buffer, vector, steps)
    return buffer, vector


def add_steps(buffer, vector, steps):
    """Let random actions fill a buffer, as SB3 would: scaled actions, true final observations."""
    obs = vector.reset()
    for _ in range(steps):
        action = np.stack([vector.action_space.sample() for _ in range(vector.num_envs)])
        following, reward, done, infos = vector.step(action)
        true = following.copy()
        for index in np.flatnonzero(done):
            true[index] = infos[index]["terminal_observation"]
        buffer.add(obs, true, (action - 0.5) / 2.5, reward, done, infos)
        obs = following


def numbers_of(batch):
    return np.rint(np.asarray(batch.observations)[:, 0] * 1000).astype(int)


def shifted(key, transition):
    """Another reward for every copy."""
    return transition._replace(reward=jax.random.uniform(key, minval=0.1))


def rewards_by_step(buffer, draws=40):
    """The different augmented rewards of each step; observed ones are negative."""
    found = {}
    for batch in (buffer.sample(100) for _ in range(draws)):
        for number, reward in zip(numbers_of(batch), np.asarray(batch.rewards)[:, 0], strict=True):
            if reward > 0:
                found.setdefault(number, set()).add(float(reward))
    return found


def test_with_no_copies_or_none_drawn_a_run_is_the_plain_buffers():
    def trained(buffer, **kwargs):
        model = sb3.TD3(
            "MlpPolicy",
            Numbered(),
            learning_starts=20,
            batch_size=8,
            replay_buffer_class=buffer,
            replay_buffer_kwargs=kwargs,
            **small(),
        )
        return [parameter.detach().numpy() for parameter in model.learn(120).policy.parameters()]

    plain = trained(ReplayBuffer)
    for kwargs in (
        {},
        {"augmentation": mirror, "ratio": 0},
        {"augmentation": mirror, "ratio": 4, "update_ratio": 0},
        {"augmentation": from_numpy(mirror), "ratio": 2, "update_ratio": 0},
    ):
        for ours, theirs in zip(trained(AugmentedReplayBuffer, **kwargs), plain, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    different = trained(AugmentedReplayBuffer, augmentation=mirror)
    assert any((ours != theirs).any() for ours, theirs in zip(different, plain, strict=True))


def test_the_observed_half_is_what_a_plain_buffer_would_draw():
    buffer, _ = filled(augmentation=mirror)
    np.random.seed(1)
    both = rows_of(buffer.sample(32))
    np.random.seed(1)
    observed = rows_of(ReplayBuffer.sample(buffer, 32))
    for ours, theirs in zip(both, observed, strict=True):
        np.testing.assert_array_equal(ours[:32], theirs)


def shifted_in_numpy(generator, transition):
    """The same, in NumPy."""
    return transition._replace(reward=0.1 + generator.random())


@pytest.mark.parametrize("function", [shifted, shifted_in_numpy], ids=["recomputed", "stored"])
def test_every_transition_has_as_many_copies_as_asked_for_and_they_stay(function):
    buffer, _ = filled(steps=30, augmentation=function, ratio=3)
    found = rewards_by_step(buffer)
    assert set(found) == set(range(30))
    assert {len(rewards) for rewards in found.values()} == {3}
    assert rewards_by_step(buffer) == found
    everything = buffer.augmented_transitions(1000)
    assert set(everything.reward.tolist()) == set().union(*found.values())


def test_a_fraction_is_the_share_of_transitions_with_one_copy_more():
    buffer, _ = filled(steps=1000, augmentation=shifted, ratio=1.3)
    counts = np.unique(numbers_of_copies(buffer), return_counts=True)[1]
    assert set(counts) == {1, 2}
    assert counts.mean() == pytest.approx(1.3, abs=4 * np.sqrt(0.3 * 0.7 / 1000))
    assert buffer.augmented_size == buffer.generated == counts.sum()
    drawn = np.concatenate([numbers_of(buffer.sample(500))[500:] for _ in range(200)])
    expected = counts * len(drawn) / counts.sum()  # R̃ is sampled uniformly
    frequency = np.bincount(drawn, minlength=1000)
    assert chisquare(frequency, expected).pvalue > 1e-3


def numbers_of_copies(buffer):
    return np.rint(buffer.augmented_transitions(10**6).observation[:, 0] * 1000).astype(int)


def test_a_small_fraction_is_drawn_from_too():
    buffer, _ = filled(steps=400, augmentation=shifted, ratio=0.05)
    copied = set(numbers_of_copies(buffer))
    assert 5 < len(copied) < 50
    assert set(numbers_of(buffer.sample(1000))[1000:]) == copied
    first, _ = filled(steps=1, augmentation=shifted, ratio=0.001)
    assert first.augmented_size == 1  # there is something to learn from at once


def test_an_infinite_ratio_makes_a_new_copy_at_every_draw():
    buffer, _ = filled(steps=5, augmentation=shifted, ratio=np.inf)
    rewards = np.concatenate([np.asarray(buffer.sample(200).rewards)[200:, 0] for _ in range(5)])
    assert len(np.unique(rewards)) == 1000
    assert buffer.generated == np.inf


@pytest.mark.parametrize("environments", [1, 3])
@pytest.mark.parametrize("function", [mirror, from_numpy(mirror)], ids=["recomputed", "stored"])
def test_rows_are_right_in_a_ring_that_has_turned_over_several_environments(environments, function):
    buffer, vector = filled(
        steps=40, environments=environments, buffer_size=40, augmentation=function, ratio=2
    )
    buffer.sample(400)  # what is kept of these must not be taken for copies of the next
    add_steps(buffer, vector, 30)
    drawn = buffer.sample(1200)
    steps = {number: step for env in vector.envs for number, step in env.steps.items()}
    everyone = Numbered()
    everyone.steps = steps
    augmented = check_rows(everyone, drawn)
    assert augmented.sum() == 1200
    kept = {10_000 * index + number for index in range(environments) for number in range(30, 70)}
    assert set(numbers_of(drawn)) == kept  # so many draws leave none out
    assert buffer.augmented_size == 80 * environments


def test_a_copy_does_not_change_when_the_ring_turns():
    buffer, vector = filled(steps=40, buffer_size=40, augmentation=shifted)
    before = rewards_by_step(buffer)
    add_steps(buffer, vector, 15)
    after = rewards_by_step(buffer)
    assert set(after) == set(range(15, 55))
    assert all(after[number] == before[number] for number in range(15, 40))
    old, new = (
        set().union(*(found[n] for n in ns)) for found, ns in ((before, range(15)), (after, range(40, 55)))
    )
    assert not old & new  # a transition has other copies than the one whose place it took


def test_rows_drawn_for_a_burst_of_updates_are_not_kept_beyond_it():
    buffer, vector = filled(steps=20, buffer_size=20, augmentation=mirror)
    for updates in (5, 2, 1):  # the next burst is drawn at once, as if it were as long as the last
        for _ in range(updates):
            buffer.sample(10)
        add_steps(buffer, vector, 20)
        newest = vector.envs[0].number
        assert set(numbers_of(buffer.sample(10))) <= set(range(newest - 20, newest))


def test_buffers_share_a_program_until_what_it_reads_is_changed():
    calls, reward = [], 0.25

    def giving(key, transition):
        calls.append(key)
        return transition._replace(reward=jax.numpy.float32(reward))

    def given():
        calls.clear()
        buffer, _ = filled(steps=20, augmentation=giving)
        return set(buffer.augmented_transitions(99).reward.tolist()), len(calls)

    assert given() == ({0.25}, 3)  # looked at twice, compiled once
    assert given() == ({0.25}, 2)
    reward = 0.5
    assert given() == ({0.5}, 3)


@augmentation
class Scaled:
    """The reward times an array."""

    factor: np.ndarray

    def __call__(self, key, transition):
        return transition._replace(reward=transition.reward * self.factor)


def test_an_augmentation_whose_parameters_are_arrays_can_be_compiled():
    for factor in (2, 3):
        buffer, _ = filled(steps=20, augmentation=Scaled(np.float32(factor) * np.ones((), np.float32)))
        copies, observed = buffer.augmented_transitions(99), buffer.observed_transitions(99)
        np.testing.assert_array_equal(copies.reward, np.float32(factor) * observed.reward)


def test_a_numpy_function_gives_the_same_rows_as_its_jax_twin():
    def mirror_in_place(generator, transition):
        transition.observation[1:] *= -1
        transition.next_observation[1:] *= -1
        return transition._replace(action=1 - transition.action)

    compiled, _ = filled(steps=20, augmentation=mirror)
    stored, _ = filled(steps=20, augmentation=mirror_in_place)
    ours, theirs = compiled.augmented_transitions(99), stored.augmented_transitions(99)
    assert len(ours.reward) == 20
    for field in Transition._fields[:6]:
        np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))


def test_a_function_that_draws_from_numpy_itself_is_not_compiled_with_what_it_drew():
    def careless(generator, transition):
        return transition._replace(reward=0.1 + np.random.uniform())

    def deciding(generator, transition):  # both sides of the coin may trace alike twice
        return transition._replace(reward=0.5) if np.random.uniform() < 0.5 else transition

    found = rewards_by_step(filled(steps=30, augmentation=careless)[0])
    assert len(set().union(*found.values())) == 30
    for seed in range(6):
        np.random.seed(seed)
        rewards = filled(steps=30, augmentation=deciding)[0].augmented_transitions(99).reward
        assert 3 < (rewards == 0.5).sum() < 27


class NeedsTag:
    """The reward is what the infos say."""

    needs = "tag"

    def __call__(self, key, transition):
        return transition._replace(reward=transition.extras["tag"][1])


def test_extras_are_read_from_the_infos():
    buffer, _ = filled(steps=70, buffer_size=50, environments=2, augmentation=NeedsTag())
    drawn = buffer.sample(200)
    np.testing.assert_allclose(drawn.rewards[200:, 0], 101 + numbers_of(drawn)[200:])


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ([None], "NeedsTag.*: 'tag' in the info must hold numbers, not None"),
        (["missing"], "NeedsTag.*: needs 'tag' in the info of every step, which gives TimeLimit.truncated"),
        ([np.arange(2), np.ones(2)], "'tag' in the info was int64 of shape .2,. and is now float64"),
        (
            [np.arange(2), np.arange(3)],
            "'tag' .* was int64 of shape .2,. and is now int64 of shape .3,.; keep",
        ),
    ],
)
def test_extras_that_are_missing_or_change_are_named_before_anything_is_stored(tags, message):
    env = Numbered()
    buffer = AugmentedReplayBuffer(50, env.observation_space, env.action_space, augmentation=NeedsTag())
    obs, zero = np.zeros((1, 3)), np.zeros(1)

    def add(tag):
        info = {"TimeLimit.truncated": False} | ({} if isinstance(tag, str) else {"tag": tag})
        buffer.add(obs, obs, np.zeros((1, 1)), zero, zero, [info])

    for tag in tags[:-1]:
        add(tag)
    with pytest.raises(UserError, match=message):
        add(tags[-1])
    assert buffer.size() == len(tags) - 1


def test_both_halves_are_normalised_by_vecnormalize():
    vector = VecNormalize(DummyVecEnv([Numbered]))
    model = sb3.TD3(
        "MlpPolicy",
        vector,
        learning_starts=1000,
        replay_buffer_class=AugmentedReplayBuffer,
        replay_buffer_kwargs={"augmentation": mirror},
        **small(),
    )
    model.learn(60)
    env, buffer = vector.venv.envs[0], model.replay_buffer
    np.testing.assert_array_equal(buffer.observations[5, 0], env.steps[5][0])  # stored raw
    np.random.seed(0)
    raw = buffer.sample(50)
    np.random.seed(0)
    normalised = buffer.sample(50, vector)
    check_rows(env, raw)
    assert (np.asarray(normalised.observations)[50:] != np.asarray(raw.observations)[50:]).any()
    known = {tuple(row) for row in vector.normalize_obs(buffer.augmented_transitions(99).observation)}
    assert {tuple(row) for row in np.asarray(normalised.observations)[50:]} <= known
    rewards = set(vector.normalize_reward(buffer.rewards[:60, 0]).astype(np.float32))
    assert set(np.asarray(normalised.rewards)[:, 0]) <= rewards


SPACES = {
    "discrete observations": (spaces.Discrete(5), spaces.Discrete(3)),
    "images": (spaces.Box(0, 255, (3, 8, 8), np.uint8), spaces.Discrete(3)),
    "large integers": (spaces.Box(0, 2**62, (2,), np.int64), spaces.Discrete(3)),
    "double precision": (spaces.Box(-1, 1, (2,), np.float64), spaces.Box(-1, 1, (2,), np.float64)),
    "dicts": (
        spaces.Dict({"count": spaces.Discrete(5), "place": spaces.Box(-1, 1, (2, 2))}),
        spaces.Box(-1, 1, (2, 3)),
    ),
}


@pytest.mark.parametrize("kind", SPACES)
def test_shapes_and_dtypes_are_those_of_the_plain_buffer(kind):
    observation_space, action_space = SPACES[kind]
    several = isinstance(observation_space, spaces.Dict)
    arguments = (20, observation_space, action_space, "cpu")
    plain = (DictReplayBuffer if several else ReplayBuffer)(*arguments)
    ours = AugmentedReplayBuffer(*arguments, augmentation=lambda key, transition: transition)
    for _ in range(6):
        obs, following = ([observation_space.sample()] for _ in range(2))
        obs, following = (
            {key: np.array([one[0][key]]) for key in one[0]} if several else np.array(one)
            for one in (obs, following)
        )
        step = obs, following, np.array([action_space.sample()]), np.ones(1), np.zeros(1), [{}]
        plain.add(*step)
        ours.add(*step)
    for theirs, both in zip(jax.tree.leaves(rows(plain)), jax.tree.leaves(rows(ours)), strict=True):
        assert (both.shape[0], both.shape[1:], both.dtype) == (60, theirs.shape[1:], theirs.dtype)
        copied, observed = ({row.tobytes() for row in part} for part in (both[30:], both[:30]))
        assert copied == observed  # this augmentation changes nothing


def rows(buffer):
    return jax.tree.map(np.asarray, tuple(buffer.sample(30)[:5]))


SAVED = {
    "compiled": mirror,
    "lambda": lambda key, transition: mirror(key, transition),
    "stored": shifted_in_numpy,
    "with extras": NeedsTag(),
    "in the catalogue": compose(make("goal2d/rotate")),
}


@pytest.mark.parametrize("kind", SAVED)
def test_a_saved_buffer_goes_on_as_if_nothing_had_happened(tmp_path, kind):
    function = SAVED[kind]
    env = gymnasium.make("augury:augury/Goal2D-v0") if "catalogue" in kind else Numbered()
    model = sb3.TD3(
        "MlpPolicy",
        env,
        learning_starts=30,
        batch_size=8,
        replay_buffer_class=AugmentedReplayBuffer,
        replay_buffer_kwargs={"augmentation": function, "ratio": 1.5, "update_ratio": 0.7},
        **small(),
    )
    model.learn(50)
    model.save_replay_buffer(tmp_path / "buffer")
    model.save(tmp_path / "model")
    other = sb3.TD3.load(tmp_path / "model", env=env)
    assert isinstance(other.replay_buffer, AugmentedReplayBuffer)
    other.load_replay_buffer(tmp_path / "buffer")
    assert other.replay_buffer.augmented_size == model.replay_buffer.augmented_size > 50
    for field in Transition._fields[:6]:
        ours, theirs = (
            getattr(each.replay_buffer.augmented_transitions(999), field) for each in (model, other)
        )
        np.testing.assert_array_equal(ours, theirs)
    for _ in range(5):
        drawn = []
        for buffer in (model.replay_buffer, other.replay_buffer):
            np.random.seed(3)
            drawn.append(rows_of(buffer.sample(10)))
        for ours, theirs in zip(*drawn, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    other.learn(20, reset_num_timesteps=False)


@pytest.mark.slow
def test_a_buffer_saved_under_sb3_goes_on_under_sbx(tmp_path):
    env = Numbered()
    kwargs = {"augmentation": mirror, "update_ratio": 0.5}
    model = sb3.SAC("MlpPolicy", env, replay_buffer_class=Recording, replay_buffer_kwargs=kwargs, **small())
    model.learn(40)
    model.save_replay_buffer(tmp_path / "buffer")
    other = sbx.SAC("MlpPolicy", env, learning_starts=0, batch_size=8, gradient_steps=2, **small())
    other.load_replay_buffer(tmp_path / "buffer")
    other.replay_buffer.batches = []
    other.learn(6)
    for drawn in other.replay_buffer.batches:
        assert set(check_rows(env, drawn).reshape(2, 8).sum(1)) <= {2, 3}  # a third of 8


def test_an_emptied_buffer_starts_again():
    buffer, vector = filled(augmentation=mirror)
    buffer.sample(4)
    buffer.reset()
    assert (buffer.size(), buffer.augmented_size) == (0, 0)
    with pytest.raises(UserError, match="mirror: update_ratio 1 before anything was augmented: nothing was"):
        buffer.sample(4)
    add_steps(buffer, vector, 10)
    assert set(numbers_of(buffer.sample(100))) == set(range(60, 70))


GOAL2D = {"observation_space": spaces.Box(-1, 1, (4,)), "action_space": spaces.Box(-1, 1, (2,))}


def wrong_shape(key, transition):
    return transition._replace(action=transition.action[:1])


def wrong_shape_in_numpy(generator, transition):
    return transition._replace(action=np.array(transition.action.tolist()[:1]))


def not_a_number(key, transition):
    return transition._replace(next_observation=transition.next_observation / 0)


def not_a_number_in_numpy(generator, transition):
    return transition._replace(next_observation=np.full(4, float("nan")))


def too_far(key, transition):
    return transition._replace(action=transition.action + 3)


def forgetful(key, transition):
    return transition.observation


def brightened(key, transition):
    return transition._replace(observation=transition.observation / 255)


def in_numpy(generator, transition):
    return transition._replace(action=np.sort(transition.action))


def failing(generator, transition):
    raise KeyError("left_leg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"augmentation": "goal2d/translat"}, "did you mean 'goal2d/translate'"),
        (
            {"augmentation": "goal2d/translate", "ratio": -1},
            "goal2d/translate: ratio must be 0 or more, not -1",
        ),
        ({"augmentation": mirror, "update_ratio": -0.5}, "mirror: update_ratio must be 0 or more, not -0.5"),
        ({"augmentation": mirror, "update_ratio": np.inf}, "mirror: update_ratio must be finite"),
        ({"augmentation": mirror, "ratio": np.nan}, "mirror: ratio must be 0 or more, not nan"),
        ({"ratio": 2}, "ratio 2 needs an augmentation"),
        ({"update_ratio": 1}, "update_ratio 1 needs an augmentation"),
        (
            {"augmentation": mirror, "batch_size_counts": "augmented"},
            "batch_size_counts must be 'observed' or 'all', not 'augmented'",
        ),
        ({"augmentation": mirror, "rato": 2}, "unknown argument .* 'rato': did you mean 'ratio'"),
        ({"augmentation": mirror, "n_steps": 0}, "n_steps must be 1 or more, not 0"),
        ({"augmentation": mirror, "n_steps": 2, "gamma": 99}, r"gamma must lie in \[0, 1\], not 99"),
        (
            {"n_steps": 2, "observation_space": spaces.Dict({"place": spaces.Box(-1, 1)})},
            "SB3 has no n-step returns for Dict observations; use n_steps=1",
        ),
        ({"augmentation": mirror, "goal_selection_strategy": "future"}, r"use augmentation=hindsight"),
        (
            {"augmentation": mirror, "optimize_memory_usage": True, "handle_timeout_termination": False},
            "mirror: optimize_memory_usage=True keeps no next observation",
        ),
        (
            {"augmentation": mirror, "optimize_memory_usage": True},
            "mirror: optimize_memory_usage=True keeps no next observation",
        ),
        ({"augmentation": mirror, "handle_timeout_termination": False}, "mirror: handle_timeout_termination"),
        (
            {"augmentation": "goal2d/rotate", "observation_space": spaces.Box(-1, 1, (6,))},
            r"goal2d/rotate: observation must be goal2d's, a Box of shape \(4,\), not Box",
        ),
        (
            {"augmentation": "goal2d/rotate", "action_space": spaces.Discrete(4)},
            r"goal2d/rotate: action must be goal2d's, a Box of shape \(2,\), not Discrete\(4\)",
        ),
        (
            {"augmentation": make("goal2d/rotate"), "action_space": spaces.Discrete(4)},
            r"Rotate\(\): does not fit these spaces \(observation \(4,\), action \(\) int64\)",
        ),
        ({"augmentation": type(make("goal2d/rotate"))}, r"give an instance, Rotate\(…\), not the class"),
        ({"augmentation": [mirror, mirror]}, "put several together with compose or choose"),
        ({"augmentation": 5}, "augmentation must be a name, an augmentation or a function, not 5"),
        (
            {"augmentation": lambda transition: transition},
            "must take a key .or a generator. and a transition",
        ),
        ({"augmentation": compose(in_numpy)}, "does not fit these spaces .*; wrap NumPy functions in from_n"),
        ({"augmentation": mirror, "ratio": "4"}, "mirror: ratio must be a number, not '4'"),
        ({"augmentation": mirror, "update_ratio": True}, "mirror: update_ratio must be a number, not True"),
        (
            {"augmentation": brightened, "observation_space": spaces.Box(0, 255, (3, 8, 8), np.uint8)},
            "brightened: observation must keep its kind of numbers, uint8, not float32",
        ),
        (
            {"augmentation": mirror, "action_space": spaces.MultiBinary(3)},
            "mirror: actions must be Box or Disc",
        ),
        (
            {"augmentation": mirror, "action_space": spaces.Box(-np.inf, np.inf, (2,))},
            "mirror: actions need finite bounds",
        ),
        ({"augmentation": wrong_shape}, r"wrong_shape: action must keep its shape \(2,\), not \(1,\)"),
        ({"augmentation": forgetful}, "forgetful must return a Transition, not"),
        (
            {"augmentation": hindsight(lambda achieved, desired, info: 0.0)},
            "hindsight.*: the observation has no achieved_goal, desired_goal",
        ),
    ],
)
def test_what_cannot_work_is_refused_at_construction(arguments, message):
    with pytest.raises(UserError, match=message):
        AugmentedReplayBuffer(10, **(GOAL2D | arguments))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (wrong_shape_in_numpy, r"wrong_shape_in_numpy: action must keep its shape \(2,\), not \(1,\)"),
        (not_a_number, "not_a_number: next_observation is not finite, but (inf|nan)"),
        (not_a_number_in_numpy, "not_a_number_in_numpy: next_observation is not finite, but nan"),
        (too_far, r"too_far: action 3 lies outside Box"),
        (failing, "failing: failed on a transition: KeyError: 'left_leg'"),
    ],
)
def test_an_augmentation_that_goes_wrong_is_named_with_the_field(function, message):
    buffer = AugmentedReplayBuffer(10, **GOAL2D, augmentation=function)

    def add_and_sample():
        obs = np.ones((1, 4), np.float32)
        buffer.add(obs, obs, np.zeros((1, 2)), np.zeros(1), np.zeros(1), [{}])
        buffer.sample(4)

    with pytest.raises(UserError, match=message):
        add_and_sample()


CATEGORIES = {
    "action": spaces.Box(-1, 1, (2,)),
    "observation": spaces.Discrete(5),
    "next_observation": spaces.MultiDiscrete([5, 5]),
    "observation['kind']": spaces.Dict({"kind": spaces.MultiDiscrete([5, 5]), "place": spaces.Box(-1, 1)}),
}


@pytest.mark.parametrize("wrap", [lambda function: function, from_numpy], ids=["compiled", "on the host"])
@pytest.mark.parametrize("where", CATEGORIES)
def test_categories_that_do_not_exist_are_named_before_torch_looks_them_up(where, wrap):
    observation_space, action_space = CATEGORIES[where], spaces.Discrete(5)
    field, _, entry = where.partition("[")

    def next_category(key, transition):
        before = getattr(transition, field)
        return transition._replace(**{field: before | {"kind": before["kind"] + 1} if entry else before + 1})

    def copied(category):
        kwargs = {"device": "cpu", "augmentation": wrap(next_category)}
        buffer = AugmentedReplayBuffer(10, observation_space, action_space, **kwargs)
        obs = jax.tree.map(lambda value: np.full_like(value, category)[None], observation_space.sample())
        buffer.add(obs, obs, np.array([category]), np.zeros(1), np.zeros(1), [{}])
        return buffer.augmented_transitions(1)

    copied(3)
    with pytest.raises(UserError, match=rf"next_category: {re.escape(where)} 5 lies outside .*Discrete"):
        copied(4)


@pytest.mark.parametrize("space", [spaces.Discrete(2, start=1), spaces.MultiDiscrete([2, 2], start=[0, 1])])
def test_categories_that_sb3_cannot_look_up_are_refused(space):
    class Shifted(Numbered):
        def __init__(self):
            super().__init__(discrete=True)
            setattr(self, "action_space" if space.shape == () else "observation_space", space)

    kwargs = {"replay_buffer_class": AugmentedReplayBuffer, "replay_buffer_kwargs": {"augmentation": mirror}}
    with pytest.raises(UserError, match=r"mirror: SB3 counts from 0, not as .*: wrap the environment"):
        sb3.DQN("MlpPolicy", Shifted(), **kwargs, **small())


def test_augmented_rows_are_not_to_be_had_before_there_are_any():
    buffer = AugmentedReplayBuffer(10, **GOAL2D, augmentation="goal2d/translate")
    message = "goal2d/translate: update_ratio 1 before anything was augmented: nothing was added"
    with pytest.raises(UserError, match=message):
        buffer.sample(4)


def test_without_sb3_the_drop_in_says_what_to_install():
    code = "import sys; sys.modules['stable_baselines3'] = None; import augury.sb3"
    missing = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert missing.stderr.strip().endswith("needs Stable-Baselines3: pip install 'augury[sb3]'")


@pytest.mark.slow
def test_sb3s_own_tests_pass_with_this_buffer_in_place_of_sb3s():
    theirs = Path(sys.prefix) / "sb3" / "tests"
    assert theirs.exists(), "`make test` downloads SB3's tests"
    chosen = (
        "test_buffers.py",
        "test_n_step_replay.py",
        "test_save_load.py::test_save_load_replay_buffer",
        "test_vec_normalize.py::test_offpolicy_normalization",
        "test_dict_env.py::test_dict_spaces",
        "test_dict_env.py::test_vec_normalize",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "sb3_substituted", "-p", "no:cacheprovider", *chosen],
        cwd=theirs,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 100
