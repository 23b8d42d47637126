"""Hindsight through the drop-in, beside SB3's own HerReplayBuffer on the same steps."""

import pickle

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sbx
import stable_baselines3 as sb3
from gymnasium import spaces
from scipy.stats import chi2_contingency
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from augury.augmentations import choose, compose, from_numpy, hindsight
from augury.errors import UserError
from augury.fleet import Arm, resolved
from augury.sb3 import AugmentedReplayBuffer


def vectorised(achieved, desired, info):
    return -(np.linalg.norm(achieved - desired, axis=-1) > 0.5).astype(np.float32)


def for_one_row(achieved, desired, info):
    return 0.0 if float(np.abs(achieved - desired).max()) <= 0.5 else -1.0


def in_jax(achieved, desired, info):
    return -(jnp.abs(achieved - desired).max() > 0.5).astype(jnp.float32)


def at_goal(achieved, desired, info):
    return vectorised(achieved, desired, info) == 0


REWARDS = {"vectorised": vectorised, "for one row": for_one_row, "in JAX": in_jax}


class Counter(gymnasium.Env):
    """Each step achieves its own number as goal; episodes last 2, 3, 4, 5, 2, … steps and end by turns."""

    def __init__(self, start=0, lengths=(2, 3, 4, 5)):
        self.lengths = lengths
        goal = spaces.Box(-np.inf, np.inf, (1,))
        names = ("observation", "achieved_goal", "desired_goal", "episode")
        self.observation_space = spaces.Dict(dict.fromkeys(names, goal))
        self.action_space = spaces.Box(-1.0, 1.0, (1,))
        self.number, self.episode = start, 0
        self.episodes = {}

    def observation(self):
        now, desired, episode = np.array([[self.number], [-7], [self.episode]], np.float32)
        return {"observation": now, "achieved_goal": now, "desired_goal": desired, "episode": episode}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode += 1
        self.left = self.lengths[self.episode % len(self.lengths)]
        return self.observation(), {}

    def step(self, action):
        self.number += 1
        self.episodes[self.number] = self.episode
        self.left -= 1
        over = self.left == 0
        return self.observation(), -1.0, over and self.episode % 2 == 0, over and self.episode % 2 == 1, {}

    def compute_reward(self, achieved, desired, info):
        return vectorised(achieved, desired, info)


def filled(steps=60, environments=1, buffer_size=1000, her=None, vector=None, **kwargs):
    """A buffer with the steps of some counters."""
    vector = vector or DummyVecEnv([lambda i=i: Counter(1000 * i) for i in range(environments)])
    sizes = (buffer_size * environments, vector.observation_space, vector.action_space)
    if her is None:
        buffer = AugmentedReplayBuffer(*sizes, device="cpu", n_envs=environments, **kwargs)
    else:
        buffer = HerReplayBuffer(*sizes, vector, "cpu", environments, goal_selection_strategy=her, **kwargs)
    add_steps(buffer, vector, steps)
    return buffer, vector


def add_steps(buffer, vector, steps):
    obs = vector.reset()
    for _ in range(steps):
        action = np.zeros((vector.num_envs, 1), np.float32)
        following, reward, done, infos = vector.step(action)
        true = {key: rows.copy() for key, rows in following.items()}
        for index in np.flatnonzero(done):
            for key in true:
                true[key][index] = infos[index]["terminal_observation"][key]
        buffer.add(obs, true, action, reward, done, infos)
        obs = following


@pytest.fixture(autouse=True)
def _seeded():
    np.random.seed(0)


def relabelled(buffer, draws):
    """Number of the step, number of its new goal, reward and done of many relabelled rows."""
    parts = [buffer.sample(1000) for _ in range(draws)]
    columns = [
        np.concatenate([np.asarray(column).reshape(len(column)) for column in columns])
        for columns in zip(
            *(
                (p.next_observations["achieved_goal"], p.observations["desired_goal"], p.rewards, p.dones)
                for p in parts
            ),
            strict=True,
        )
    ]
    for part in parts:
        np.testing.assert_array_equal(
            part.observations["desired_goal"], part.next_observations["desired_goal"]
        )
    changed = columns[1] >= 0
    return [column[changed].astype(int) for column in columns]


@pytest.mark.parametrize("ratio", [np.inf, 50])
@pytest.mark.parametrize("environments", [1, 3])
@pytest.mark.parametrize("strategy", ["future", "final"])
def test_goals_are_distributed_as_in_sb3s_own_buffer(strategy, environments, ratio):
    ours, vector = filled(
        environments=environments, augmentation=hindsight(vectorised, strategy), ratio=ratio, update_ratio=4
    )
    theirs, _ = filled(environments=environments, her=strategy, n_sampled_goal=4)
    our_rows, their_rows = relabelled(ours, 30), relabelled(theirs, 30 if ratio == np.inf else 60)
    kinds = [{tuple(row) for row in zip(*rows, strict=True)} for rows in (our_rows, their_rows)]
    assert kinds[0] == kinds[1]  # the same steps with the same goals, rewards and dones
    episodes = {number: episode for env in vector.envs for number, episode in env.episodes.items()}
    for number, goal, reward, _ in kinds[0]:
        assert goal >= number
        assert goal // 1000 == number // 1000
        assert episodes[goal] == episodes[number]
        assert reward == (0 if goal == number else -1)
    order = {kind: index for index, kind in enumerate(sorted(kinds[0]))}
    table = np.array(
        [
            np.bincount([order[kind] for kind in zip(*rows, strict=True)], minlength=len(order))
            for rows in (our_rows, their_rows)
        ]
    )
    if ratio == np.inf:
        assert chi2_contingency(table).pvalue > 1e-3
    else:  # 50 copies of each step were drawn once and for all: each has its own frequency
        np.testing.assert_allclose(*(row / row.sum() * len(order) for row in table), atol=1.0)


@pytest.mark.parametrize("kind", REWARDS)
def test_rewards_may_be_written_in_any_way(kind):
    buffer, _ = filled(augmentation=hindsight(REWARDS[kind]), ratio=4)
    copies = buffer.augmented_transitions(10**6)
    achieved, desired = (copies.next_observation[key] for key in ("achieved_goal", "desired_goal"))
    np.testing.assert_array_equal(copies.reward, vectorised(achieved, desired, None))
    assert 0.1 < (copies.reward == 0).mean() < 0.9


def test_termination_stays_unless_a_function_recomputes_it():
    kept, _ = filled(augmentation=hindsight(vectorised))
    changed, _ = filled(augmentation=hindsight(vectorised, compute_terminated=at_goal))
    observed, copies = kept.observed_transitions(10**6), kept.augmented_transitions(10**6)
    assert set(copies.observation["observation"][copies.terminated, 0]) == set(
        observed.observation["observation"][observed.terminated, 0]
    )
    copies = changed.augmented_transitions(10**6)
    np.testing.assert_array_equal(copies.terminated, copies.reward == 0)


def test_an_unfinished_episode_has_no_copies_yet():
    buffer, _ = filled(steps=2, augmentation=hindsight(vectorised))  # the first episode takes 3 steps
    message = r"hindsight.*: update_ratio 1 before anything was augmented: no episode that it holds has ended"
    with pytest.raises(UserError, match=message):
        buffer.sample(4)
    assert (buffer.size(), buffer.augmented_size) == (2, 0)


def test_copies_stay_the_same_in_a_ring_that_turns():
    buffer, vector = filled(steps=23, buffer_size=24, augmentation=hindsight(vectorised), ratio=2)

    def goals():
        copies = buffer.augmented_transitions(10**6)
        starts, desired = (copies.observation[key][:, 0] for key in ("observation", "desired_goal"))
        return {start: tuple(desired[starts == start]) for start in starts}

    before = goals()
    add_steps(buffer, vector, 12)
    after = goals()
    kept = before.keys() & after.keys()
    assert len(kept) >= 8
    assert all(before[key] == after[key] for key in kept)
    assert before.keys() - after.keys()  # the oldest were overwritten
    episodes = vector.envs[0].episodes
    for start, desired in after.items():
        assert all(goal > start and episodes[goal] == episodes[start + 1] for goal in desired)


def test_an_episode_that_is_left_in_the_middle_ends_there(tmp_path):
    """SB3 resets the environment at every call of learn, and after loading a buffer."""
    vector = DummyVecEnv([Counter])
    model = sb3.SAC(
        "MultiInputPolicy",
        vector,
        buffer_size=100,
        learning_starts=1000,
        replay_buffer_class=AugmentedReplayBuffer,
        replay_buffer_kwargs={"augmentation": hindsight(vectorised, "final"), "ratio": 1},
    )
    model.learn(4)  # three steps are an episode, the fourth begins one of four
    assert model.replay_buffer.augmented_size == 3
    model.save_replay_buffer(tmp_path / "buffer")
    model.load_replay_buffer(tmp_path / "buffer")
    model.learn(6)  # one of five steps and the first of another
    copies = model.replay_buffer.augmented_transitions(99)
    numbers, goals = (copies.next_observation[key][:, 0] for key in ("achieved_goal", "desired_goal"))
    assert dict(zip(numbers, goals, strict=True)) == {1: 3, 2: 3, 3: 3, 4: 4, 5: 9, 6: 9, 7: 9, 8: 9, 9: 9}


def test_hindsight_may_be_a_part_of_others():
    def nudged(generator, transition):
        return transition._replace(action=np.array([generator.uniform(0.5, 1)]))

    both = choose(hindsight(vectorised, "future"), hindsight(vectorised, "final"))
    buffer, _ = filled(augmentation=compose(both, from_numpy(nudged)), ratio=3)
    copies = buffer.augmented_transitions(10**6)
    assert (copies.action > 0.4).all()
    assert (copies.next_observation["desired_goal"] >= copies.next_observation["achieved_goal"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [sb3.DDPG, sbx.SAC])
def test_algorithms_train_with_it_under_vecnormalize(kind):
    model = kind(
        "MultiInputPolicy",
        VecNormalize(DummyVecEnv([Counter, Counter])),
        buffer_size=200,
        batch_size=10,
        learning_starts=30,
        gradient_steps=2,
        policy_kwargs={"net_arch": [8]},
        replay_buffer_class=AugmentedReplayBuffer,
        replay_buffer_kwargs={"augmentation": hindsight(vectorised), "ratio": 4, "update_ratio": 4},
    )
    model.learn(80)
    assert model.replay_buffer.drawn_augmented == 4 * model.replay_buffer.drawn_observed > 0


def test_what_another_part_draws_does_not_depend_on_the_goal():
    """Their keys must not be the same, whatever way a combination splits them."""

    def marked(key, transition):
        return transition._replace(action=jax.random.randint(key, (1,), 0, 8) / 8)

    def alone(key, transition):
        transition = hindsight(vectorised)(key, transition)
        return transition._replace(action=jax.random.randint(key, (), 0, 8)[None] / 8)

    alone.needs = ("future_achieved_goal",)
    for together in (compose(hindsight(vectorised), marked), alone):
        counter = DummyVecEnv([lambda: Counter(lengths=[8])])
        buffer, _ = filled(steps=400, vector=counter, augmentation=together, ratio=20)
        copies = buffer.augmented_transitions(10**6)
        achieved, desired = (copies.next_observation[key][:, 0] for key in ("achieved_goal", "desired_goal"))
        first = achieved % 8 == 1
        assert abs(np.corrcoef((desired - achieved)[first], copies.action[first, 0])[0, 1]) < 0.15


@pytest.mark.parametrize(
    ("compute_reward", "message"),
    [
        (lambda achieved, desired: 0.0, "compute_reward must take achieved goal, desired goal and info"),
        (5, "compute_reward must take achieved goal, desired goal and info"),
    ],
)
def test_a_reward_function_that_cannot_be_called_is_refused(compute_reward, message):
    with pytest.raises(UserError, match=message):
        hindsight(compute_reward)


@pytest.mark.parametrize(
    ("compute_reward", "message"),
    [
        (lambda achieved, desired, info: float(info["x"]), r"hindsight.*: failed .*KeyError: 'x'"),
        (lambda achieved, desired, info: np.sum(achieved) / None, r"hindsight.*: failed .*TypeError: unsupp"),
    ],
)
def test_a_reward_function_that_goes_wrong_is_named_in_one_line(compute_reward, message):
    buffer, _ = filled(augmentation=hindsight(compute_reward))
    with pytest.raises(UserError, match=message) as raised:
        buffer.sample(4)
    assert "\n" not in str(raised.value)


def test_an_episode_that_does_not_fit_the_buffer_says_so():
    counter = DummyVecEnv([lambda: Counter(lengths=[100])])
    buffer, _ = filled(steps=20, buffer_size=10, vector=counter, augmentation=hindsight(vectorised))
    with pytest.raises(UserError, match="no episode that it holds has ended; raise buffer_size"):
        buffer.sample(4)
    counter = DummyVecEnv([lambda: Counter(lengths=[100, 2])])  # a short one first, which is overwritten
    buffer, _ = filled(steps=5, buffer_size=10, vector=counter, augmentation=hindsight(vectorised))
    buffer.sample(4)
    add_steps(buffer, counter, 12)
    with pytest.raises(UserError, match="no episode that it holds has ended; raise buffer_size"):
        buffer.sample(4)


def test_wrong_strategies_and_places_are_explained():
    with pytest.raises(UserError, match="unknown strategy 'futur': did you mean 'future'"):
        hindsight(vectorised, "futur")
    with pytest.raises(UserError, match="hindsight needs observations with achieved goals"):
        resolved(Arm(augmentation=hindsight(vectorised)))


def test_what_cannot_be_saved_says_so(tmp_path):
    env = Counter()
    with (tmp_path / "window").open("w") as env.window:
        buffer, _ = filled(augmentation=hindsight(env.compute_reward))
        message = r"hindsight.*: cannot be saved with the buffer .*not from methods"
        with pytest.raises(UserError, match=message):
            pickle.dumps(buffer)
