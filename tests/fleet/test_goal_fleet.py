"""Fleets on environments with goals: dict observations, halves, several environments, hindsight, policies.

Agents are small and share few programs, since to compile is what takes time.
"""

import json
from dataclasses import dataclass, field, replace
from functools import cache
from threading import Barrier
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from augury.augmentations import hindsight
from augury.cli import main
from augury.envs import HostEnvironment, register
from augury.errors import UserError
from augury.fleet import Arm, load_policies, resolved, train_fleet, trainers, training
from augury.fleet.building import program_of
from augury.fleet.halves import cut
from augury.fleet.host_trainer import HostTrainer
from augury.fleet.trainers import trainer_for
from augury.runs import checkpoints, results
from augury.transition import seen as seen_by_policies
from tests.fleet.comparing import assert_same, train_until_killed
from tests.marks import slowly

EPISODE, STEP = 2.0**-12, 2.0**-4  # units in which an observation counts them: small, and exact
NEAR = 0.2


class Engine:
    """Reaching for many points at once. A point's row is its seed, episode, step, place and goal."""

    def __init__(self, task, count, autoreset):
        self.task, self.num_envs, self.autoreset = task, count, autoreset
        self.seeds, self.episodes, self.steps = (np.zeros(count, np.int64) for _ in range(3))
        self.places, self.goals, self.over = np.zeros((count, 2)), np.zeros((count, 2)), np.zeros(count, bool)

    def reset(self, *, seed):
        self.seeds[:], self.episodes[:] = seed, -1
        self._restart(np.ones(self.num_envs, bool))
        return self._observe(), {}

    def step(self, actions):
        assert actions.shape == (self.num_envs, 2)
        moves = ~self.over
        self.places = self.places + np.where(moves[:, None], 0.3 * np.asarray(actions, np.float64), 0)
        self.steps = self.steps + moves
        terminated = reached(self.places, self.goals, self.task.near)
        truncated = ~terminated & (self.steps >= self.task.horizon)
        reward = np.where(moves, terminated - 1.0, 0)
        self.over, observation, infos = terminated | truncated, self._observe(), {}
        if self.autoreset and self.over.any():
            infos = {"final_obs": observation, "_final_obs": self.over}
            self._restart(self.over)
            observation = self._observe()
        return observation, reward, terminated, truncated, infos

    def state(self):
        return {name: values.copy() for name, values in vars(self).items() if isinstance(values, np.ndarray)}

    def load_state(self, state):
        for name, values in state.items():
            assert values.shape == getattr(self, name).shape
            setattr(self, name, values.copy())

    def close(self):
        pass

    def _observe(self):
        where = [self.places, EPISODE * self.episodes[:, None], STEP * self.steps[:, None]]
        shown = {"observation": np.concatenate(where, 1), "achieved_goal": self.places.copy()}
        return shown | {"desired_goal": self.goals.copy()}

    def _restart(self, rows):
        self.episodes, self.steps = self.episodes + rows, np.where(rows, 0, self.steps)
        self.over = self.over & ~rows
        for row in np.flatnonzero(rows):
            generator = np.random.default_rng([self.seeds[row], self.episodes[row]])
            self.places[row], self.goals[row] = generator.uniform(-1, 1, (2, 2))


def reached(achieved, desired, near=NEAR):
    return ((achieved - desired) ** 2).sum(-1) < near**2


def reached_with(achieved, desired, info):
    return reached(achieved, desired)


def reward(achieved, desired, info):
    return reached(achieved, desired) - 1.0


@dataclass(frozen=True)
class Reaching(HostEnvironment):
    """A point is to come near a goal. Its observation says which transition it belongs to."""

    name: str = "reaching"
    shown: int = 4
    near: float = NEAR
    training: dict = field(default_factory=dict, compare=False)
    horizon = 8
    extras = ()
    measure = "success"
    action_low, action_high = -np.ones(2, np.float32), np.ones(2, np.float32)

    @property
    def observation_high(self):
        numbers = {"observation": self.shown, "achieved_goal": 2, "desired_goal": 2}
        return {name: np.full(count, 4, np.float32) for name, count in numbers.items()}

    @property
    def observation_low(self):
        return {name: -high for name, high in self.observation_high.items()}

    def vector(self, count, *, autoreset=True):
        return Engine(self, count, autoreset)

    def succeeded(self, transition):
        return transition.terminated


EASY = Reaching("reaching-easily", near=3.0)
for _environment in (Reaching(), Reaching("reaching-more", shown=5), EASY):
    register(_environment)


REACHING = Arm(
    environment="reaching",
    algorithm="ddpg",
    augmentation=hindsight(reward, compute_terminated=reached_with),
    ratio=1.5,
    environments=2,
    policy_data=2,
    agents=3,  # for two devices, so that there is a surplus agent
    steps=192,
    random_steps=12,  # as few as hindsight can do with
    collect=2,
    updates=1,
    batch_size=16,
    buffer_size=32,  # likewise
    hidden=(16,),
    evaluate_every=64,
    evaluation_episodes=3,
)


@cache
def trained(arm=REACHING, parts=1):
    """A fleet and its agents after training."""
    arm = resolved(arm)
    fleet = trainer_for([arm], parts)
    return fleet, fleet.advance(fleet.init(), 0, arm.rounds)


@cache
def results_of(arm=REACHING):
    return train_fleet([arm])[0]


def learners(fleet, agents):
    """Of all parts, without those that fill up the devices."""
    halves = getattr(fleet, "halves", [fleet])
    own = [
        jax.tree.map(lambda leaf, n=half.agents: np.asarray(leaf)[:n], each.learner)
        for half, each in zip(halves, agents if len(halves) > 1 else [agents], strict=True)
    ]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *own)


def stored(fleet, agents, rounds):
    """The transitions in the buffers, in order: (agents, environments, steps)."""
    replay = fleet.program.replay
    rows = np.roll(
        agents.buffers.observed[: fleet.agents], -rounds * fleet.program.collect % replay.capacity, 2
    )
    return jax.tree.map(np.asarray, replay.layout.unpack(rows))


def episode_and_step(observation):
    return np.moveaxis(np.asarray(observation["observation"])[..., 2:] / [EPISODE, STEP], -1, 0)


def assert_same_results(first, second):
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


@pytest.mark.slow
def test_observations_of_several_parts_are_stored_whole_and_with_their_true_ends():
    seen = stored(*trained(), resolved(REACHING).rounds)
    assert {name: part.shape for name, part in seen.observation.items()} == {
        "observation": (3, 4, 16, 4),
        "achieved_goal": (3, 4, 16, 2),
        "desired_goal": (3, 4, 16, 2),
    }
    for observation in (seen.observation, seen.next_observation):
        np.testing.assert_array_equal(observation["achieved_goal"], observation["observation"][..., :2])
    assert_same(seen.observation["desired_goal"], seen.next_observation["desired_goal"])
    (episode, step), (next_episode, next_step) = map(
        episode_and_step, (seen.observation, seen.next_observation)
    )
    np.testing.assert_array_equal(next_episode, episode)
    np.testing.assert_array_equal(next_step, step + 1)
    over = seen.terminated | seen.truncated
    assert over.any()
    np.testing.assert_array_equal(episode[..., 1:], (episode + over)[..., :-1])
    np.testing.assert_array_equal(seen.truncated, ~seen.terminated & (next_step == Reaching.horizon))
    near = reached(seen.next_observation["achieved_goal"], seen.next_observation["desired_goal"])
    np.testing.assert_array_equal(seen.terminated, near)
    moved = seen.observation["achieved_goal"] + 0.3 * seen.action
    np.testing.assert_allclose(seen.next_observation["achieved_goal"], moved, atol=1e-6)


def test_networks_and_coverage_see_the_observation_then_the_desired_goal():
    parts = {"achieved_goal": [7, 7], "desired_goal": [1, 2], "observation": [3, 4, 5]}
    rows = {name: np.array([values] * 2) for name, values in parts.items()}
    np.testing.assert_array_equal(seen_by_policies(rows), [[3, 4, 5, 1, 2]] * 2)
    fleet, agents = trained()
    weights = agents.learner.actor["params"]["Perceptron_0"]["weights_0"]
    assert weights.shape[-1] == 4 + 2
    assert len(fleet.program.grid.low) == 4 + 2 + 2


def test_an_agent_alone_is_the_same_agent_inside_a_fleet():
    crowd, alone = learners(*trained()), learners(*trained(replace(REACHING, agents=1, seed=2)))
    assert_same(alone, jax.tree.map(lambda leaf: leaf[2:], crowd))
    assert any((leaf[0] != leaf[2]).any() for leaf in jax.tree.leaves(crowd))


@pytest.mark.slow
def test_two_halves_of_a_fleet_are_the_whole():
    (fleet, whole), (halves, parts) = trained(), trained(parts=2)
    assert [half.agents for half in halves.halves] == [2, 1]
    assert_same(learners(halves, parts), learners(fleet, whole))
    assert_same(halves.evaluate(parts, 9), fleet.evaluate(whole, 9))
    assert_same(halves.play(fleet.actors(whole), 5), fleet.play(halves.actors(parts), 5))


def test_a_fleet_is_cut_in_the_middle_of_its_agents_wherever_that_is():
    arms = [replace(REACHING, agents=2, seed=5), replace(REACHING, agents=5, seed=30)]
    seeds = [[seed for arm in half for seed in arm.seeds] for half in cut(arms, 4)]
    assert seeds == [[5, 6, 30, 31], [32, 33, 34]]


def test_cores_keep_a_fleet_whole_and_accelerators_halve_it(monkeypatch):
    arm = resolved(REACHING)
    assert isinstance(trainer_for([arm]), HostTrainer)
    monkeypatch.setattr(trainers.jax, "local_devices", lambda: [SimpleNamespace(platform="gpu")] * 2)
    monkeypatch.setattr(trainers, "Halves", lambda arms: "halves")
    monkeypatch.setattr(trainers, "HostTrainer", lambda arms: "whole")
    assert trainer_for([replace(arm, agents=4)]) == "halves"
    assert trainer_for([arm]) == "whole", "a device would stand idle"


def test_halves_do_not_wait_for_each_other(monkeypatch):
    fleet, step, meeting = trainer_for([resolved(REACHING)], parts=2), Engine.step, Barrier(2, timeout=120)
    agents = fleet.init()

    def step_together(engine, actions):
        meeting.wait()  # for ever, if one half went after the other
        return step(engine, actions)

    monkeypatch.setattr(Engine, "step", step_together)
    fleet.advance(agents, 0, 3)


@pytest.mark.parametrize("parts", slowly(1, 2))
def test_a_killed_run_resumes_bit_for_bit(parts, tmp_path, monkeypatch):
    path = tmp_path / checkpoints.NAME
    with monkeypatch.context() as patch:
        patch.setattr(training, "trainer_for", lambda arms, _=None: trainer_for(arms, parts))
        train_until_killed([REACHING], path, monkeypatch, rounds=30)
    assert checkpoints.load(path, [resolved(REACHING).described()]).parts == parts
    resumed, whole = train_fleet([REACHING], checkpoint=path)[0], results_of()
    assert resumed.evaluations.keys() == whole.evaluations.keys()
    assert_same(resumed.evaluations, whole.evaluations)
    assert_same(resumed.actors, whole.actors)


def test_several_environments_share_an_agents_steps_and_multiply_its_updates():
    replay = program_of(resolved(REACHING)).replay
    assert (replay.environments, replay.capacity, replay.batch_size) == (4, 16, 32)
    evaluations = results_of().evaluations
    np.testing.assert_array_equal(evaluations["steps"], [64, 128, 192])
    np.testing.assert_array_equal(evaluations["transitions"], 2 * evaluations["steps"])
    updates = (evaluations["steps"] - 12) // 2  # one for two steps, as with one environment
    np.testing.assert_array_equal(evaluations["updates"], updates)
    np.testing.assert_allclose(evaluations["replay_ratio"][:, 1:], 1 / 2 / 2)
    beta = evaluations["augmented_replay_ratio"][:, 1:]
    np.testing.assert_allclose(beta, 1 / 2 / 2 / 1.5, rtol=0.2)  # of what has finished


def test_several_environments_begin_apart_and_with_random_actions():
    fleet = HostTrainer([resolved(replace(REACHING, exploration_noise=0.0))])
    agents = fleet.init()
    actor = jax.tree.map(lambda leaf: np.asarray(leaf)[0], agents.learner.actor)
    seen = stored(fleet, fleet.advance(agents, 0, 8), 8)
    starts = seen.observation["achieved_goal"][:, :, 0]
    assert len(np.unique(starts)) == starts.size
    rows = jax.tree.map(lambda part: part[0].reshape(-1, part.shape[-1]), seen.observation)
    policy = np.asarray(fleet.program.act(actor, rows)).reshape(seen.action[0].shape)
    by_policy = (np.abs(seen.action[0] - policy) < 1e-6).all(-1)
    # 12 random steps are 6 in each environment; then the policy of the start, until the first update.
    np.testing.assert_array_equal(by_policy[:, :8], [[False] * 6 + [True] * 2] * 4)
    assert not by_policy[:, 8:].all()
    assert len(np.unique(seen.action[:, :, :6])) == seen.action[:, :, :6].size


def test_goals_of_hindsight_were_achieved_later_in_the_same_episode():
    fleet, agents = trained()
    replay, added, ratio = fleet.program.replay, jnp.int32(96), jnp.float32(REACHING.ratio)
    seen = jax.tree.map(lambda leaf: leaf[0], stored(fleet, agents, resolved(REACHING).rounds))
    one = jax.tree.map(lambda leaf: leaf[0], agents.buffers)
    count = int(replay.augmented_size(one, added, ratio))
    finished = sum(int(np.flatnonzero(over)[-1]) + 1 for over in seen.terminated | seen.truncated)
    assert count == pytest.approx(1.5 * finished, rel=0.2)

    index = jnp.arange(count, dtype=jnp.uint32)
    made = jax.jit(replay.augmented_at)(jax.random.key(0), one, added, ratio, REACHING.augmentation, index)
    made = jax.tree.map(np.asarray, made)
    goals, achieved = made.observation["desired_goal"], seen.next_observation["achieved_goal"]
    assert_same(goals, made.next_observation["desired_goal"])
    np.testing.assert_array_equal(made.terminated, reached(made.next_observation["achieved_goal"], goals))
    np.testing.assert_array_equal(made.reward, made.terminated - 1.0)
    (episode, step), (own_episode, own_step) = map(
        episode_and_step, (seen.next_observation, made.next_observation)
    )
    for row, action in enumerate(made.action):
        environment = np.flatnonzero((seen.action == action).all(-1).any(1))[0]
        later = (episode[environment] == own_episode[row]) & (step[environment] >= own_step[row])
        assert (achieved[environment][later] == goals[row]).all(-1).any()


@pytest.fixture
def run(tmp_path):
    """The folder of a finished run."""
    results.write(tmp_path, results_of())
    return tmp_path


def test_policies_outlast_their_run(run):
    policies, (fleet, agents) = load_policies(run), trained()
    assert policies.seeds == [0, 1, 2]
    assert_same(policies.actors, fleet.actors(agents))
    seen = stored(fleet, agents, resolved(REACHING).rounds).observation
    rows = jax.tree.map(lambda part: part[1, 0].astype(np.float64), seen)  # as an engine shows them
    actor = jax.tree.map(lambda leaf: leaf[1], policies.actors)
    expected = fleet.program.algorithm.act(actor, jax.tree.map(np.float32, rows))
    np.testing.assert_allclose(policies.act(1, rows), expected, atol=1e-6)
    first = jax.tree.map(lambda part: part[0], rows)
    np.testing.assert_allclose(policies.act(1, first), expected[0], atol=1e-6)
    assert np.abs(policies.act(0, rows) - expected).max() > 1e-3
    with pytest.raises(UserError, match="observations of reaching have shape"):
        policies.act(0, rows["observation"])


def test_policies_play_where_they_were_trained_and_elsewhere(run, capsys):
    fleet, agents = trained()
    played = load_policies(run).play(episodes=3, seed=8)
    assert_same(tuple(played), fleet.play(fleet.actors(agents), 8))
    assert (played.returns != fleet.play(fleet.actors(agents), 9)[1]).any()

    main(["evaluate", str(run), "--episodes", "3", "--seed", "8", "--json"])
    said = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose([agent["returns"] for agent in said["agents"]], played.returns, atol=1e-4)
    main(["evaluate", str(run), "--environment", "reaching-easily", "--episodes", "3"])
    out = capsys.readouterr().out
    elsewhere = load_policies(run).play("reaching-easily", episodes=3)
    assert (elsewhere.success > load_policies(run).play(episodes=3).success).all()
    assert f"{elsewhere.returns[2]:.2f}" in out
    assert "3 episodes of each agent on reaching-easily, trained on reaching" in out


def test_policies_that_cannot_play_are_refused_with_one_line(run, capsys):
    def refused(*arguments):
        with pytest.raises(SystemExit) as leaving:
            main(["evaluate", *map(str, arguments)])
        assert leaving.value.code == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        return said

    assert "reaching cannot be evaluated on reaching-more" in refused(run, "--environment", "reaching-more")
    assert "reaching cannot be evaluated on goal2d" in refused(run, "--environment", "goal2d")
    assert "did you mean 'reaching'" in refused(run, "--environment", "reachin")
    assert "episodes must be at least 1" in refused(run, "--episodes", 0)
    assert "cannot read" in refused(run / "nowhere")
    path = run / results.POLICIES
    content = path.read_bytes()
    for spoiled in (content[:-8], content[:-8] + bytes(8), b"", b"{}"):
        path.write_bytes(spoiled)
        assert f"{path} is damaged" in refused(run)
    path.write_bytes(content)
    results.write_run(run, results_of().asked | {"hidden": [8]})
    assert f"{path} is damaged" in refused(run)
    path.unlink()
    assert "holds no policies: policies.safetensors is missing" in refused(run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"storage": "eager"}, "storage 'eager' cannot hold copies that look ahead"),
        ({"random_steps": 11}, "random_steps must be at least 12, not 11"),
        ({"buffer_size": 31}, "buffer_size and steps must be at least 32"),
        ({"environment": "goal2d"}, "hindsight needs observations with achieved goals, unlike goal2d's"),
        ({"environments": 0}, "environments must be at least 1, not 0"),
        ({"evaluation_environment": "reaching-more"}, "on reaching cannot be evaluated on reaching-more"),
    ],
)
def test_arms_that_could_not_work_are_refused(change, message):
    with pytest.raises(UserError, match=message):
        resolved(replace(REACHING, **change))


def test_every_setting_of_the_papers_manipulation_can_be_an_environments_own(monkeypatch):
    own = {
        "algorithm": "ddpg",
        "steps": 600_000,
        "random_steps": 1_000,
        "collect": 2,
        "updates": 1,
        "batch_size": 512,
        "hidden": (256, 256, 256),
        "learning_rate": 1e-3,
        "discount": 0.95,
        "target_rate": 0.05,
        "exploration_noise": 0.2,
        "random_action_probability": 0.3,
        "environments": 8,
        "evaluate_every": 10_000,
        "evaluation_episodes": 80,
    }
    environment = Reaching("reaching-paper", training=own)
    arm = resolved(Arm(environment=environment))
    assert {name: getattr(arm, name) for name in own} == own
    assert resolved(Arm(environment=environment, environments=1)).environments == 1
