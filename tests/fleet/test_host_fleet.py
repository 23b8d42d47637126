"""Fleets on environments that run on the host: as for those written in JAX, and what their engines add.

To compile is what takes time here, so that tests share a few programs and the runs of `trained`.
"""

import pickle
import signal
from dataclasses import dataclass, field, replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from augury.augmentations import augmentation
from augury.cli import main
from augury.envs import HostEnvironment, register
from augury.errors import UserError
from augury.fleet import Arm, Interrupted, host_trainer, resolved, train, train_fleet
from augury.fleet.building import fleets_of
from augury.fleet.defaults import DEFAULTS, UNSET
from augury.fleet.host_trainer import HostTrainer
from augury.fleet.progress import Display
from augury.runs import checkpoints, results
from tests.fleet.comparing import assert_different, assert_same, member, train_until_killed

EPISODE, STEP = 2.0**-10, 2.0**-4  # units in which an observation counts them: small, and exact


class Engine:
    """Homing for many points at once. A point's row is its seed, episode, step and place."""

    def __init__(self, horizon, count, autoreset):
        self.horizon, self.num_envs, self.autoreset, self.closed = horizon, count, autoreset, False
        self.seeds, self.episodes, self.steps = (np.zeros(count, np.int64) for _ in range(3))
        self.places, self.over = np.zeros((count, 2)), np.zeros((2, count), bool)

    def reset(self, *, seed):
        self.seeds[:], self.episodes[:], self.over[:] = seed, -1, False
        self._restart(np.ones(self.num_envs, bool))
        return self._observe(), {}

    def step(self, actions):
        assert actions.shape == (self.num_envs, 2)
        assert np.abs(actions).max() <= 1  # and no NaN
        moves = ~self.over.any(0)
        velocity = np.where(moves[:, None], 0.2 * np.asarray(actions, np.float64), 0)
        self.places, self.steps = self.places + velocity, self.steps + moves
        reward = np.where(moves, -np.linalg.norm(self.places, axis=1), 0)
        terminated = (self.episodes % 2 == 1) & (self.steps >= 3)
        self.over = np.stack([terminated, ~terminated & (self.steps >= self.horizon)])
        over, observation = self.over.any(0), self._observe()
        terminated, truncated = self.over
        infos = {"x_velocity": velocity[:, 0], "y_velocity": velocity[:, 1]}
        if self.autoreset and over.any():
            infos |= {"final_obs": observation, "_final_obs": over}
            self._restart(over)
            observation = self._observe()
        return observation, reward, terminated, truncated, infos

    def state(self):
        names = ("seeds", "episodes", "steps", "places", "over")
        return {name: getattr(self, name).copy() for name in names}

    def load_state(self, state):
        for name, values in state.items():
            assert values.shape == getattr(self, name).shape
            setattr(self, name, values.copy())

    def close(self):
        self.closed = True

    def _observe(self):
        return np.concatenate([self.places, EPISODE * self.episodes[:, None], STEP * self.steps[:, None]], 1)

    def _restart(self, rows):
        self.episodes, self.steps = self.episodes + rows, np.where(rows, 0, self.steps)
        self.over = self.over & ~rows
        for row in np.flatnonzero(rows):
            generator = np.random.default_rng([self.seeds[row], self.episodes[row]])
            self.places[row] = generator.uniform(-1, 1, 2)


@dataclass(frozen=True)
class Homing(HostEnvironment):
    """A point is rewarded for being near the origin. Every second episode terminates in step 3.

    An observation is the place, the episode and the step: it says which transition it belongs to.
    """

    name: str = "homing"
    training: dict = field(default_factory=dict, compare=False)
    horizon = 8
    extras = ("x_velocity", "y_velocity")
    measure = "returns"
    observation_low, observation_high = -2 * np.ones(4, np.float32), 2 * np.ones(4, np.float32)
    action_low, action_high = -np.ones(2, np.float32), np.ones(2, np.float32)

    def vector(self, count, *, autoreset=True):
        return Engine(self.horizon, count, autoreset)

    def succeeded(self, transition):
        return transition.terminated


@augmentation
class Shaken:
    """Every copy is another, made with arithmetic that rounds; what it needs changes sign."""

    needs = ("x_velocity",)

    def __call__(self, key, transition):
        noise = 0.1 * jnp.sin(jax.random.normal(key, (4,)))
        return transition._replace(
            observation=transition.observation + noise,
            next_observation=transition.next_observation + noise,
            reward=-jnp.sqrt(jnp.square(transition.next_observation + noise).sum()),
            extras={"x_velocity": -transition.extras["x_velocity"]},
        )


OWN = {"steps": 48, "collect": 1, "updates": 1, "hidden": (8,), "random_steps": 8}


for _environment in (Homing(), Homing("homing-with-defaults", OWN)):
    register(_environment)


SMALL = Arm(
    environment="homing",
    agents=3,  # for two devices, so that there is a surplus agent
    steps=96,
    random_steps=20,
    collect=1,
    updates=1,
    batch_size=16,
    buffer_size=64,
    hidden=(16,),
    evaluate_every=32,
    evaluation_episodes=3,
)
SHAKEN = replace(SMALL, augmentation=Shaken(), ratio=1.5, policy_data=2)
PAGED = replace(SHAKEN, collect=8, updates=3, random_steps=24, buffer_size=40)


def advanced(arms, *splits):
    """A fleet and its agents after training, in calls of so many rounds."""
    arms = [resolved(arm) for arm in arms]
    fleet = HostTrainer(arms)
    agents, first = fleet.init(), 0
    for rounds in splits or (arms[0].rounds,):
        agents = fleet.advance(agents, first, rounds)
        first += rounds
    assert first == arms[0].rounds
    return fleet, agents


@cache
def trained(*arms):
    return advanced(arms)


def learners(agents):
    """Without those that fill up the devices."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[: SMALL.agents], agents.learner)


def stored(arm):
    """The transitions in the buffers after training, in order: (agents, environments, steps)."""
    fleet, agents = trained(arm)
    rows = np.roll(agents.buffers.observed[: arm.agents], -arm.steps % arm.buffer_size, 2)
    return jax.tree.map(np.asarray, fleet.program.replay.layout.unpack(rows))


def test_arms_can_be_sent_to_other_processes():
    arm = pickle.loads(pickle.dumps(Arm(environment="walker2d", agents=7)))
    assert arm == Arm(environment="walker2d", agents=7)
    assert resolved(arm).hidden == (256, 256)


@pytest.mark.slow
def test_agents_learn_to_come_home():
    arm = replace(SMALL, steps=1_500, discount=0.8, learning_rate=3e-3, evaluate_every=300)
    returns = train([arm])[0].evaluations["returns"]
    assert (returns[:, -1] > returns[:, 0] + 1).all()
    assert (returns[:, -1] > -3).all()
    assert (returns < 0).all()


@pytest.mark.slow
def test_an_agent_alone_is_the_same_agent_inside_a_fleet():
    _, crowd = trained(SHAKEN)
    _, alone = trained(replace(SHAKEN, agents=1, seed=1))
    assert_same(learners(alone), member(learners(crowd), 1))
    assert_different(member(learners(crowd), 0), member(learners(crowd), 1))
    together, apart = (train([replace(SHAKEN, **asked)])[0] for asked in ({}, {"agents": 1, "seed": 1}))
    for name in ("success", "returns", "coverage", "augmented_coverage"):
        np.testing.assert_array_equal(apart.evaluations[name], together.evaluations[name][1:2])


def test_arms_of_one_fleet_train_as_they_would_apart():
    arms = [
        replace(SHAKEN, agents=1, seed=7),
        replace(SHAKEN, agents=1, seed=7, ratio=2.5),
        replace(SHAKEN, agents=1, seed=7, ratio=0.5, learning_rate=1e-4),
    ]
    assert fleets_of([resolved(arm) for arm in arms]) == [[0, 1, 2]]
    _, together = trained(*arms)
    for index, arm in enumerate(arms):
        _, alone = trained(arm)
        assert_same(learners(alone), member(learners(together), index))
    assert_different(member(learners(together), 0), member(learners(together), 1))


@pytest.mark.parametrize("arm", [SHAKEN, PAGED], ids=["steps", "pages"])
def test_however_the_rounds_are_split_the_program_is_traced_once_and_ends_alike(arm):
    fleet, split = advanced([arm], 1, 5, 2, resolved(arm).rounds - 8)
    _, whole = trained(arm)
    assert_same(learners(split), learners(whole))
    assert fleet.compiled.traces == 1


@pytest.mark.slow
def test_stored_and_recomputed_augmentation_train_the_same_agents():
    (_, lazy), (_, eager) = trained(PAGED), trained(replace(PAGED, storage="eager"))
    assert_same(learners(lazy), learners(eager))


def test_no_augmented_transitions_is_no_augmentation():
    (_, none), (_, nothing) = trained(SMALL), trained(replace(SMALL, augmentation=Shaken(), ratio=0))
    assert_same(learners(none), learners(nothing))


def test_transitions_are_stored_with_their_true_ends():
    seen = stored(PAGED)
    assert seen.reward.shape == (3, 2, 40)
    (episode, step), (next_episode, next_step) = (
        np.moveaxis(observation[..., 2:] / [EPISODE, STEP], -1, 0)
        for observation in (seen.observation, seen.next_observation)
    )
    np.testing.assert_array_equal(next_episode, episode)
    np.testing.assert_array_equal(next_step, step + 1)
    np.testing.assert_array_equal(seen.terminated, (episode % 2 == 1) & (step == 2))
    np.testing.assert_array_equal(seen.truncated, (episode % 2 == 0) & (step == 7))
    over = seen.terminated | seen.truncated
    np.testing.assert_array_equal(episode[..., 1:], (episode + over)[..., :-1])
    np.testing.assert_array_equal(step[..., 1:], np.where(over, 0, step + 1)[..., :-1])
    assert seen.terminated.any()
    assert seen.truncated.any()


def test_transitions_follow_from_their_actions():
    seen = stored(PAGED)
    moved = seen.observation[..., :2] + 0.2 * seen.action
    np.testing.assert_allclose(seen.next_observation[..., :2], moved, atol=1e-6)
    np.testing.assert_allclose(
        seen.reward, -np.linalg.norm(seen.next_observation[..., :2], axis=-1), rtol=1e-5
    )
    starts = seen.observation[..., :2][seen.observation[..., 3] == 0]
    assert len(np.unique(starts)) == starts.size, "some episodes start alike"


def test_no_random_action_is_taken_twice():
    fleet = HostTrainer([resolved(PAGED)])
    agents = fleet.advance(fleet.init(), 0, 3)
    seen = fleet.program.replay.layout.unpack(agents.buffers.observed[:3, :, :24])
    assert len(np.unique(seen.action)) == seen.action.size
    assert np.abs(seen.action).max() > 0.95


@pytest.mark.slow
def test_extras_reach_the_augmentation_and_only_those_it_needs():
    seen = stored(PAGED)
    assert seen.extras.keys() == {"x_velocity"}
    np.testing.assert_allclose(seen.extras["x_velocity"], 0.2 * seen.action[..., 0], rtol=1e-6)
    assert stored(SMALL).extras == {}

    fleet, agents = trained(PAGED)
    one = jax.tree.map(lambda leaf: leaf[0], agents.buffers)
    replay, added, ratio, index = fleet.program.replay, jnp.int32(96), jnp.float32(1), jnp.arange(2 * 40)
    copies = jax.jit(replay.augmented_at)(jax.random.key(0), one, added, ratio, Shaken(), index)
    observed = replay.observed_at(one, added, index)
    np.testing.assert_array_equal(copies.extras["x_velocity"], -observed.extras["x_velocity"])


def test_a_missing_extra_is_refused():
    @augmentation
    class Needy:
        needs = ("x_velocity", "height", "mood")

        def __call__(self, key, transition):
            return transition

    with pytest.raises(UserError, match=r"^homing does not provide the extras height, mood$"):
        train([replace(SMALL, augmentation=Needy())])


def test_evaluating_more_often_does_not_change_training():
    often, seldom = (
        train_fleet([replace(SHAKEN, evaluate_every=every)])[0].evaluations for every in (16, 48)
    )
    rows = np.searchsorted(often["steps"], seldom["steps"])
    for name in ("returns", "coverage", "augmented_coverage"):
        np.testing.assert_array_equal(often[name][:, rows], seldom[name])


def test_evaluation_plays_whole_episodes_without_exploration():
    fleet, agents = trained(SMALL)
    measured = fleet.evaluate(agents, 96)
    by_hand = []
    for seed in range(3):
        engine = Homing().vector(3, autoreset=False)
        rows = [np.random.SeedSequence(seed, spawn_key=(1, 96, row)) for row in range(3)]
        observation, _ = engine.reset(seed=[int(row.generate_state(1, np.uint64)[0] >> 1) for row in rows])
        actor = jax.tree.map(lambda leaf, i=seed: leaf[i], agents.learner.actor)
        total = 0
        for _ in range(Homing.horizon):
            action = fleet.program.algorithm.act(actor, observation.astype(np.float32))
            observation, reward, *_ = engine.step(np.asarray(action))
            total += reward.mean()
        by_hand.append(total)
    np.testing.assert_allclose(measured.returns, by_hand, rtol=1e-5)
    np.testing.assert_array_equal(measured.success, 0)  # a first episode never terminates
    assert (measured.observed_reward_density > 0).all()  # but others do


def test_a_killed_run_resumes_bit_for_bit(tmp_path, monkeypatch):
    arm = PAGED
    whole = train_fleet([arm])[0].evaluations
    path = tmp_path / checkpoints.NAME
    train_until_killed([arm], path, monkeypatch, rounds=40 // arm.collect)
    resumed = train_fleet([arm], checkpoint=path)[0].evaluations
    assert whole.keys() == resumed.keys()
    for name in whole:
        np.testing.assert_array_equal(resumed[name], whole[name])


def test_a_checkpoint_restores_every_array_also_of_the_engine(tmp_path):
    arm = resolved(SHAKEN)
    fleet, agents = trained(SHAKEN)
    path = tmp_path / checkpoints.NAME
    saved = fleet.save(agents, arm.rounds)
    checkpoints.save(path, checkpoints.Checkpoint(saved, 1, arm.rounds, {}, 0.0), [arm.described()])
    restored = fleet.load(checkpoints.load(path, [arm.described()]).agents)
    assert {"observation", "action", "engine.places", "engine.over"} <= restored.environment.keys()
    assert_same(restored.environment, agents.environment)
    assert_same(restored.learner, agents.learner)
    assert_same(restored.buffers.observed, agents.buffers.observed)


def test_an_interrupt_is_noticed_and_progress_is_reported_seldom(tmp_path, monkeypatch):
    seen, path = [], tmp_path / checkpoints.NAME
    whole = train_fleet([SMALL], watch=seen.append)[0]
    assert [progress.steps for progress in seen if progress.evaluated is not None] == [32, 64, 96]
    assert len(seen) <= 5, "only evaluations, and what took seconds"

    advance = HostTrainer.advance

    def interrupted_at_40(fleet, agents, first, rounds):
        if first == 40:
            signal.raise_signal(signal.SIGINT)
        return advance(fleet, agents, first, rounds)

    monkeypatch.setattr(host_trainer, "HOST_CALL_SECONDS", 0.0)
    monkeypatch.setattr(HostTrainer, "advance", interrupted_at_40)
    with pytest.raises(Interrupted) as stop:
        train_fleet([SMALL], checkpoint=path)
    assert stop.value.steps == 41
    resumed = train_fleet([SMALL], checkpoint=path)[0]
    np.testing.assert_array_equal(whole.evaluations["returns"], resumed.evaluations["returns"])


def test_engines_are_closed_when_training_ends(monkeypatch):
    made, vector = [], Homing.vector
    monkeypatch.setattr(Homing, "vector", lambda *a, **k: made.append(vector(*a, **k)) or made[-1])
    train([SMALL])
    assert [(engine.num_envs, engine.autoreset, engine.closed) for engine in made] == [
        (3, True, True),
        (9, False, True),
    ]


def test_a_diverged_agent_is_reported_and_its_engine_still_gets_numbers():
    arms = [replace(SMALL, agents=2), replace(SMALL, agents=1, seed=5, learning_rate=1e30)]
    healthy, lost = train(arms)
    assert healthy.diverged == {}
    assert lost.diverged == {5: 32}


def test_what_is_not_given_comes_from_the_environment():
    arm = resolved(Arm(environment="homing-with-defaults", batch_size=128, collect=64, steps=100))
    assert (arm.updates, arm.hidden, arm.random_steps) == (1, (8,), 8)
    assert (arm.collect, arm.steps) == (64, 100), "given, though the first is Goal2D's default"
    assert arm.evaluation_episodes == 80
    assert Arm().evaluation_episodes is UNSET
    assert {type(value) for value in arm.described().values()} <= {int, float, str, list, type(None)}
    assert resolved(arm) == arm
    filled = {**DEFAULTS, "evaluation_environment": "goal2d", "ratio": 0.0, "update_ratio": 0.0}
    assert resolved(Arm()) == replace(Arm(), **filled)


def test_environments_that_do_not_fit_are_refused():
    with pytest.raises(UserError, match="trained on homing cannot be evaluated on goal2d"):
        train([replace(SMALL, evaluation_environment="goal2d")])


def test_returns_are_shown_as_such(tmp_path, capsys):
    with Display(resolved(SMALL)) as display:
        result = train_fleet([SMALL], watch=display.show)[0]
    last = result.evaluations["returns"][:, -1].mean()  # of three agents none is trimmed
    assert f"return {last:,.0f}" in capsys.readouterr().out

    results.write(_made(tmp_path / "homing"), result)
    main(["report", str(tmp_path)])
    _, heading, row, _ = capsys.readouterr().out.splitlines()
    assert "return" in heading
    assert "success" not in heading
    assert f" {last:,.0f} " in row
    main(["report", str(tmp_path), "--json"])
    assert f'"returns": {round(float(last), 3)}' in capsys.readouterr().out

    asked, about = result.asked | {"environment": "goal2d"}, result.about | {"measure": "success"}
    goal2d = replace(result, asked=asked, about=about)
    results.write(_made(tmp_path / "goal2d"), goal2d)
    main(["report", str(tmp_path)])
    _, success, _, _, returns, _, _ = capsys.readouterr().out.splitlines()
    assert "success" in success
    assert "return" in returns


def _made(folder):
    folder.mkdir()
    return folder
