"""Gymnasium's environments as a fleet's: how they step, how a run goes on, and what is said of bad ones."""

import json
import os
import signal
from dataclasses import replace

import jax
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict

from augury import Arm, envs, from_gymnasium, verify
from augury.cli import main
from augury.envs.adapters.gymnasium import spaces
from augury.envs.adapters.gymnasium.share import episode_seed
from augury.errors import UserError
from augury.fleet import train, train_fleet
from augury.report.page import origin
from augury.runs import results
from augury.study.record import Finished
from tests.envs.adapters import troubled
from tests.fleet.comparing import assert_same, train_until_killed
from tests.marks import slowly

HERE = "tests.envs.adapters.troubled"
SMALL = {
    "agents": 2,
    "steps": 40,
    "random_steps": 10,
    "batch_size": 16,
    "hidden": (8,),
    "evaluate_every": 40,
    "algorithm": "ddpg",  # compiles fastest
    "evaluation_episodes": 2,
}


def actions(steps, rows, seed=0, size=2):
    return np.random.default_rng(seed).uniform(-1, 1, (steps, rows, size)).astype(np.float32)


def played(engine, steps, seed=0):
    """What an engine's rows gave in so many steps."""
    outcomes = [engine.step(action) for action in actions(steps, engine.num_envs, seed)]
    for *_, infos in outcomes:
        if "final_obs" in infos:  # says nothing of other rows
            for part in jax.tree.leaves(infos["final_obs"]):
                part[~infos["_final_obs"]] = 0
    return outcomes


def test_rows_are_gymnasiums_episodes_with_their_true_ends():
    engine = envs.make(f"{HERE}:walk").vector(2)
    engine.reset(seed=[11, 12])
    outcomes = played(engine, 30)
    assert {name for *_, infos in outcomes for name in infos} >= {"x_velocity", "final_obs"}
    for row, seed in enumerate((11, 12)):
        env, episode = troubled.walk(), 0
        env.reset(seed=episode_seed(seed, episode))
        for action, (shown, reward, terminated, truncated, infos) in zip(
            actions(30, 2), outcomes, strict=True
        ):
            observation, earned, *over, info = env.step(action[row])
            assert (earned, *over) == (reward[row], terminated[row], truncated[row])
            assert infos["x_velocity"][row] == np.float32(info["x_velocity"])
            if any(over):
                assert infos["_final_obs"][row]
                np.testing.assert_array_equal(infos["final_obs"][row], observation)
                episode += 1
                observation, _ = env.reset(seed=episode_seed(seed, episode))
            np.testing.assert_array_equal(shown[row], observation)
        assert episode >= 4  # seven steps are the most


def test_without_autoreset_rows_stand_still_after_their_end():
    engine = envs.make(f"{HERE}:walk").vector(3, autoreset=False)
    engine.reset(seed=[0, 1, 2])
    outcomes = played(engine, troubled.HORIZON + 2)
    over = np.array([terminated | truncated for _, _, terminated, truncated, _ in outcomes])
    assert over[-1].all()
    for row in range(3):
        end = over[:, row].argmax()
        assert all(reward[row] == 0 for _, reward, *_ in outcomes[end + 1 :])
        for shown, *_ in outcomes[end:]:
            np.testing.assert_array_equal(shown[row], outcomes[end][0][row])


def test_processes_change_nothing_and_the_death_of_one_is_told():
    here = envs.make(f"{HERE}:goals")
    assert isinstance(here.observation_low, dict)
    engines = [replace(here, processes=processes).vector(3) for processes in (1, 2)]
    assert_same(*(engine.reset(seed=[5, 6, 7])[0] for engine in engines))
    for one, other in zip(*(played(engine, 20) for engine in engines), strict=True):
        assert_same(one, other)
    state = engines[0].state()
    fresh = here.vector(3)
    assert all(engine.load_state(state) is None for engine in (fresh, engines[1]))
    assert_same(*(played(engine, 9, seed=1) for engine in (fresh, engines[1])))
    elsewhere = engines[1]
    os.kill(elsewhere._rows._vector.processes[0].pid, signal.SIGKILL)
    with pytest.raises(UserError, match=rf"a process of {HERE}:goals died \(exit code -9\) in step 30"):
        played(elsewhere, 5)
    for engine in (*engines, fresh):
        engine.close()


def test_an_environment_that_cannot_be_repeated_begins_anew():
    made = envs.make(f"{HERE}:unrepeatable")
    engine = made.vector(2)
    engine.reset(seed=[1, 2])
    for action in actions(3, 2, size=1):
        engine.step(action)
    state = engine.state()
    assert engine.load_state(state) is None  # it is there already
    fresh = made.vector(2)
    starts = fresh.load_state(state)
    assert (starts != state["observation"]).any(1).all()
    assert (fresh.state()["steps"] == 0).all()
    with pytest.raises(UserError, match="not a state of 3 such environments"):
        made.vector(3).load_state(state)


@pytest.mark.parametrize("processes", [1, *slowly(2)])
def test_an_environment_that_gives_and_takes_its_state_goes_on_exactly(processes):
    engine = from_gymnasium(troubled.saved, processes=processes).vector(3)
    engine.reset(seed=[1, 2, 3])
    for action in actions(4, 3, size=1):
        engine.step(action)
    fresh = from_gymnasium(troubled.saved).vector(3)
    assert fresh.load_state(engine.state()) is None
    for step, action in enumerate(actions(9, 3, size=1), start=5):
        outcome = engine.step(action)
        assert_same(outcome[:4], fresh.step(action)[:4])
        assert outcome[3].all() == (step == troubled.HORIZON)  # the time limit counted on
    engine.close()
    engine = from_gymnasium(troubled.reticent, processes=processes).vector(3)
    engine.reset(seed=[1, 2, 3])
    with pytest.raises(UserError, match=r"reticent, in step 0 of .*: get_state raised KeyError: 'secret'"):
        engine.state()
    engine.close()


@pytest.mark.parametrize("factory", [troubled.synchronous, troubled.masked])
def test_vector_environments_of_any_kind_step_as_the_trainer_wants(factory):
    """Reset by themselves in the same step, or by a mask: the same as Gymnasium's own rows."""
    made = from_gymnasium(factory, horizon=troubled.HORIZON)
    engine = made.vector(2)
    engine.reset(seed=[3, 4])
    outcomes = played(engine, 25)
    for row, seed in enumerate((3, 4)):
        env = troubled.walk()
        env.reset(seed=episode_seed(seed, 0))
        for action, (shown, reward, terminated, truncated, infos) in zip(
            actions(25, 2), outcomes, strict=True
        ):
            observation, earned, *over, _ = env.step(action[row])
            assert (earned, *over) == (reward[row], terminated[row], truncated[row])
            if any(over):
                np.testing.assert_array_equal(infos["final_obs"][row], observation)
                observation, _ = env.reset()
            np.testing.assert_array_equal(shown[row], observation)
    state = engine.state()
    assert engine.load_state(state) is None
    assert np.abs(made.vector(2).load_state(state)).max() <= 0.1  # it cannot be brought back
    still = made.vector(2, autoreset=False)
    still.reset(seed=[3, 4])
    shown, reward, *_ = played(still, troubled.HORIZON + 1)[-1]
    assert not reward.any()


def test_a_vector_environment_that_cannot_reset_single_rows_is_refused():
    engine = from_gymnasium(troubled.Rows, horizon=50).vector(2)
    engine.reset(seed=[0, 1])
    with pytest.raises(UserError, match=r"Rows cannot reset only the rows that ended: .*SAME_STEP"):
        played(engine, 6)
    engine = from_gymnasium(troubled.Rows, horizon=3).vector(2)
    engine.reset(seed=[0, 1])
    with pytest.raises(UserError, match="in step 4: an episode goes on after its time limit, 3 steps"):
        played(engine, 6)


def test_discrete_actions_arrive_as_the_environment_counts_them():
    made = from_gymnasium(troubled.pushes)
    assert made.action_count == 3
    engine = made.vector(2)
    engine.reset(seed=[0, 0])
    shown, *_ = engine.step(np.array([0, 2], np.int32))
    assert shown[0, 0] < shown[1, 0]


@pytest.mark.parametrize(
    ("trouble", "complaint"),
    [
        ("observation is NaN", r"observation\[1\] is nan, which is not a finite number"),
        ("reward is NaN", "reward is nan, which is not a finite number"),
        ("shape changes", r"observation has shape \(3,\), not \(2,\)"),
        ("dtype changes", "observation has dtype <U1, not float32"),
        ("ragged", "observation is no array"),
        ("beyond 32 bits", r"reward is 1e\+300, which is beyond 32 bits"),
        ("reward is text", "reward is '1.5', which is no number"),
        ("reward is complex", "reward is 1j, which is no number"),
        ("two ends", r"terminated has shape \(2,\), and is not one number"),
        ("raises", "step raised ZeroDivisionError: the wheel came off"),
        ("four values", r"step raised ValueError: not enough values to unpack \(expected 5, got 4\)"),
    ],
)
@pytest.mark.parametrize("processes", [1, *slowly(2)])
def test_what_is_wrong_is_told_with_environment_step_and_field(trouble, complaint, processes):
    engine = from_gymnasium(troubled.troubled(trouble), name="bad", processes=processes).vector(2)
    engine.reset(seed=[7, 8])
    seed = episode_seed(7, 0)
    with pytest.raises(UserError, match=f"^bad, in step 3 of the episode with seed {seed}: {complaint}$"):
        played(engine, 3)
    engine.close()


def test_saturated_actions_lie_within_the_space_and_closing_may_fail():
    """0.1 with 32 bits is more than 0.1."""
    made = from_gymnasium(troubled.strict)
    engine = made.vector(2)
    engine.reset(seed=[0, 1])
    engine.step(np.stack([made.action_low, made.action_high]))
    engine.close()


@pytest.mark.parametrize("steps", [troubled.HORIZON, 2 * troubled.HORIZON, 2 * troubled.HORIZON + 2])
@pytest.mark.parametrize("factory", [troubled.pendulum, troubled.normalised])
def test_what_earlier_episodes_decide_does_not_go_on_in_silence(factory, steps):
    """Neither in an episode nor where one has just begun. A single episode is played again as a whole."""
    goes_on = factory is troubled.pendulum or steps == troubled.HORIZON
    made = from_gymnasium(factory)
    engine = made.vector(2)
    engine.reset(seed=[1, 2])
    for action in actions(steps, 2, size=1):
        engine.step(action)
    fresh = made.vector(2)
    assert (fresh.load_state(engine.state()) is None) == goes_on
    if goes_on:
        following = actions(1, 2, seed=1, size=1)[0]
        np.testing.assert_array_equal(fresh.step(following)[1], engine.step(following)[1])


def test_a_value_outside_of_its_space_is_remarked_once(capsys):
    engine = from_gymnasium(troubled.troubled("outside"), name="bad").vector(1)
    engine.reset(seed=[7])
    played(engine, 20)
    assert capsys.readouterr().err == "warning: bad: observation[1] is 5, outside of its space, [-2, 2]\n"


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("gymnasium:Pendulm-v1", "did you mean 'Pendulum-v1'"),
        ("gymnasium:no_such_module:Pendulum-v1", "there is no module 'no_such_module'"),
        (
            f"{HERE}:buttons",
            r"has the action space MultiBinary\(3\), which is not supported: it must be a Box",
        ),
        (f"{HERE}:endless", "has no time limit: wrap it in gymnasium.wrappers.TimeLimit"),
        ("gymnasium:FrozenLake-v1", r"observes Discrete\(16\), but agents see vectors"),
        (troubled.Walk(), "Walk is one environment, but fleets need many: give the function that makes it"),
        (lambda: 3, "made int, which is no gymnasium Env"),
        (lambda: 1 / 0, "making it raised ZeroDivisionError"),
    ],
)
def test_what_cannot_be_trained_on_is_refused_in_a_line(source, complaint):
    with pytest.raises(UserError, match=complaint):
        envs.make(source)


def test_infinite_bounds_become_finite_ones_for_coverage():
    low, high = np.array([-np.inf, 20, -1e30, 0]), np.array([np.inf, np.inf, -30, 0])
    found = spaces.bounds(Dict({"a": Box(low, high, dtype=np.float64)}))
    np.testing.assert_array_equal([end["a"] for end in found], [[-10, 20, -31, 0], [10, 21, -30, 1]])


def test_a_name_finds_its_environment_again():
    made = envs.make("gymnasium:Pendulum-v1")
    assert envs.reference(made) == "gymnasium:Pendulum-v1"
    assert (made.horizon, made.extras, made.action_high) == (200, (), 2)
    assert envs.make(troubled.walk) == from_gymnasium(troubled.walk)
    assert Arm(environment=troubled.walk, **SMALL, ratio=0.0).described()["environment"] == f"{HERE}:walk"


def mirror(key, transition):
    """Pendulum's: the angle changes its sign, and so does the torque."""
    signs = np.array([1.0, -1.0, -1.0])
    return transition._replace(
        observation=signs * transition.observation,
        action=-transition.action,
        next_observation=signs * transition.next_observation,
    )


def cart_mirror(key, transition):
    """CartPole's: left becomes right."""
    return transition._replace(
        observation=-transition.observation,
        action=1 - transition.action,
        next_observation=-transition.next_observation,
    )


def test_augmentations_are_verified_by_name_where_gymnasium_can_be_asked():
    report = verify(mirror, "gymnasium:Pendulum-v1", samples=100)
    assert (report.valid, report.samples) == (True, 100)
    report = verify(
        lambda key, step: step._replace(action=-step.action), "gymnasium:Pendulum-v1", samples=100
    )
    assert not report.valid
    turned = verify(cart_mirror, "gymnasium:CartPole-v1", samples=100)
    assert (turned.valid, turned.largest_error) == (True, 0)
    with pytest.raises(UserError, match=r"Walk cannot be verified: give it a method restore"):
        verify(mirror, f"{HERE}:walk")


def killed_and_resumed(arm, path, monkeypatch):
    """The result of a run that was killed twice, each time with its first checkpoint."""
    for _ in range(2):
        train_until_killed([arm], path, monkeypatch)
    [result] = train_fleet([arm], checkpoint=path)
    return result


@pytest.mark.parametrize("name", ["Pendulum-v1", *slowly("HalfCheetah-v5")])
def test_gymnasiums_own_train_in_fleets_and_go_on_exactly_when_killed(name, tmp_path, monkeypatch):
    arm = Arm(environment=from_gymnasium(name, horizon=25), **SMALL)
    [whole] = train([arm])
    lowest = {"Pendulum-v1": -2000, "HalfCheetah-v5": -3000}[name]
    assert whole.measure == "returns"
    assert whole.curves().shape == (2, 1)
    assert (whole.curves() > lowest / 4).all()
    result = killed_and_resumed(arm, tmp_path / "checkpoint", monkeypatch)
    assert_same((result.evaluations, result.actors), (whole.evaluations, whole.actors))
    assert result.restarts == ""


def test_elsewhere_episodes_begin_anew_and_the_record_and_the_page_say_so(tmp_path, monkeypatch):
    arm = Arm(environment=troubled.unrepeatable, **SMALL)
    result = killed_and_resumed(arm, tmp_path / "checkpoint", monkeypatch)
    first, second = result.about["restarts"]
    assert 0 < first < second < 40
    said = f"resumed at step {first} and {second}: episodes began anew"
    results.write(tmp_path, result)
    assert json.loads((tmp_path / results.RUN).read_text())["restarts"] == [first, second]
    assert results.read(tmp_path).restarts == said
    assert origin.restarts([Finished("task", "arm", result)]) == said


def test_a_bad_environment_ends_a_command_with_one_line_and_keeps_its_traceback(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    sizes = [
        word for name, value in SMALL.items() for word in (f"--{name}".replace("_", "-"), *_words(value))
    ]
    with pytest.raises(SystemExit) as stop:
        main(["train", f"{HERE}:raising", *sizes, "--out", "raising"])
    assert stop.value.code == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert "raising, in step 3 of the episode" in said[0]
    assert said[0].endswith("(traceback in raising/traceback.txt)")
    trace = (tmp_path / "raising" / "traceback.txt").read_text()
    assert trace.startswith("Traceback")
    assert "the\nwheel came off" in trace
    assert (tmp_path / "raising" / results.RUN).exists()  # a corrected environment can take its place


def _words(value):
    return [str(one) for one in value] if isinstance(value, tuple) else [str(value)]
