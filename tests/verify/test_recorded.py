"""Augmented copies of recorded data are verified too."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from stable_baselines3.common.buffers import ReplayBuffer

from augury.errors import UserError
from augury.verify import assert_dynamics_invariant, verify
from augury.verify.played import numbered
from tests.verify.test_verify import MIRRORED, Spring, mirrored


def played(environment, steps, episode=7):
    """Arrays as they are recorded, with 32 bits."""
    environment.action_space.seed(0)
    observation, _ = environment.reset(seed=0)
    found = []
    for step in range(steps):
        action = environment.action_space.sample()
        following, reward, terminated, _, _ = environment.step(action)
        over = (step + 1) % episode == 0
        found.append((observation, action, reward, following, terminated, over))
        observation = environment.reset()[0] if over else following
    names = ("observations", "actions", "rewards", "next_observations", "terminations", "truncations")
    arrays = (np.array(values) for values in zip(*found, strict=True))
    return dict(zip(names, arrays, strict=True))


def filled(data, size, **options):
    """SB3's buffer of it, which keeps actions between -1 and 1."""
    box = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    buffer = ReplayBuffer(size, box, gymnasium.spaces.Box(-1, 1, (1,)), device="cpu", **options)
    for row in zip(*(data[name] for name in list(data)), strict=True):
        before, action, reward, after, terminated, truncated = row
        infos = [{"TimeLimit.truncated": bool(truncated)}]
        done = np.array([terminated or truncated])
        buffer.add(before[None], after[None], action[None] / 2, np.array([reward]), done, infos)
    return buffer


class Strong(Spring):
    """Its actions have other bounds than -1 and 1."""

    action_space = gymnasium.spaces.Box(-2, 2, (1,), np.float64)


def half(key, transition):
    return mirrored(key, transition)._replace(action=transition.action)


@pytest.mark.parametrize(
    "options",
    [{}, {"optimize_memory_usage": True, "handle_timeout_termination": False}],
    ids=["plain", "observations stored once"],
)
@pytest.mark.parametrize("size", [80, 40], ids=["half full", "run over"])
def test_a_buffer_of_sb3_is_verified(size, options):
    data = played(Strong(), 60, episode=1_000 if options else 7)
    buffer = filled(data, size, **options)
    report = verify(MIRRORED, Strong(), samples=30, data=buffer)
    assert (report.verdict, report.set_aside, report.tolerance) == ("valid", 0, 1e-5)
    wrong = verify(half, Strong(), samples=30, data=buffer)
    assert wrong.cause == "the sign of action 0 is wrong"


def test_a_file_is_verified(tmp_path):
    data = played(Spring(), 50)
    np.savez(tmp_path / "data.npz", **data)
    report = verify(MIRRORED, Spring(), data=tmp_path / "data.npz")
    assert (report.valid, report.samples, report.episodes) == (True, 50, 8)
    with pytest.raises(AssertionError, match="the sign of action 0 is wrong"):
        assert_dynamics_invariant(half, Spring(), data=str(tmp_path / "data.npz"))


def test_episodes_of_minari_are_verified():
    """By what its episodes have: one observation more than there are actions."""
    data = played(Spring(), 14)
    episodes = [
        SimpleNamespace(
            observations=np.vstack([data["observations"][part], data["next_observations"][part][-1:]]),
            **{name: data[name][part] for name in ("actions", "rewards", "terminations", "truncations")},
        )
        for part in (slice(7), slice(7, 14))
    ]
    report = verify(MIRRORED, Spring(), data=SimpleNamespace(iterate_episodes=lambda: episodes))
    assert (report.valid, report.samples, report.episodes) == (True, 14, 2)


def test_data_of_another_environment_cannot_be_repeated():
    class Heavy(Spring):
        def step(self, action):
            return super().step(action / 5)

    with pytest.raises(UserError, match="does not repeat its own transitions"):
        verify(MIRRORED, Heavy(), data=played(Spring(), 30))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("nowhere.npz", "nowhere.npz cannot be read"),
        (3, "int holds no transitions"),
        (
            {"rewards": np.zeros(3)},
            "fields differ in their number of rows: observation 8, action 8, reward 3",
        ),
        ({"observations": np.zeros((8, 3))}, r"observation has shape \(3,\), but Spring's \(2,\)"),
        ({"observations": np.zeros(8)}, r"observation has shape \(\), but Spring's \(2,\)"),
        ({"actions": np.zeros((8, 2))}, r"action has shape \(2,\), but Spring's \(1,\)"),
        ({"rewards": np.array(["much"] * 8)}, "something else than numbers: could not convert string"),
    ],
)
def test_what_is_no_data_is_one_line(data, message):
    if isinstance(data, dict):
        data = played(Spring(), 8) | data
    with pytest.raises(UserError, match=message):
        verify(MIRRORED, Spring(), data=data)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"plain text"])
def test_a_damaged_file_is_one_line(content, tmp_path):
    (tmp_path / "data.npz").write_bytes(content)
    with pytest.raises(UserError, match=r"data.npz cannot be read: give the path of an \.npz file"):
        verify(MIRRORED, Spring(), data=tmp_path / "data.npz")


def test_what_the_data_lacks_is_named():
    with pytest.raises(UserError, match="the data has no actions, rewards, next_observations"):
        verify(MIRRORED, Spring(), data={"observations": np.zeros((3, 2))})
    none = {name: values[:0] for name, values in played(Spring(), 8).items()}
    with pytest.raises(UserError, match="the data holds no transitions"):
        verify(MIRRORED, Spring(), data=none)


@pytest.mark.parametrize("name", ["CartPole-v1", "CliffWalking-v1"])
def test_whole_numbers_in_a_buffer_of_sb3_are_verified(name):
    """SB3 keeps an action, and a whole number that is observed, as vectors of one."""
    environment = gymnasium.make(name)
    environment.action_space.seed(0)
    buffer = ReplayBuffer(40, environment.observation_space, environment.action_space, device="cpu")
    observation, _ = environment.reset(seed=0)
    for _ in range(40):
        action = environment.action_space.sample()
        following, reward, over, _, _ = environment.step(action)
        step = (np.array(part)[None] for part in (observation, following, action, reward, over))
        buffer.add(*step, [{}])
        observation = environment.reset()[0] if over else following
    report = verify(lambda key, transition: transition, environment, data=buffer)
    assert (report.verdict, report.samples) == ("valid", 40)


def test_episodes_are_numbered_and_what_remains_is_counted():
    over = np.array([[False, True], [True, False], [False, False]])
    episode, remaining = numbered(over)
    assert episode.tolist() == [0, 1, 0, 3, 2, 3]
    assert remaining.tolist() == [1, 0, 0, 1, 0, 0]
