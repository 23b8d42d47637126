"""Advice as its users meet it: on their own environment, killed and given again, where little is known."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from augury.advise import advise, coefficients
from augury.advise.advice import Advice
from augury.advise.measured import MEASURED
from augury.advise.prediction import Prediction, fit
from augury.advise.racing import run_race
from augury.advise.reasons import reasons
from augury.advise.table import digest, read
from augury.advise.written import written
from augury.cli import main
from augury.errors import UserError
from augury.fleet import Arm
from augury.report.advice import facts_of
from augury.runs.statistics import Estimate
from tests.advise.test_prediction import table

RESULTS = Path(__file__).parents[2] / "results"
LINE = '''
import jax
import jax.numpy as jnp
import numpy as np
from augury.envs import JaxEnvironment


class Line(JaxEnvironment):
    """A point on a line that must stop in the middle."""

    name = "line"
    horizon = 20
    observation_low = np.array([-1.0], np.float32)
    observation_high = np.array([1.0], np.float32)
    action_low = np.array([-1.0], np.float32)
    action_high = np.array([1.0], np.float32)
    training = {"random_steps": 200, "hidden": (16, 16), "evaluate_every": 500, "evaluation_episodes": 4}

    def reset(self, key):
        return jax.random.uniform(key, (1,), minval=0.2, maxval=1.0)

    def observe(self, state):
        return state

    def restore(self, observation, extras):
        return observation

    def step(self, key, state, action):
        state = jnp.clip(state + 0.2 * action, -1.0, 1.0)
        return state, {reward}, jnp.zeros((), bool)


line = Line()


def mirror(key, transition):
    """Left becomes right."""
    return transition._replace(
        observation=-transition.observation,
        action=-transition.action,
        next_observation=-transition.next_observation,
    )


def half_a_mirror(key, transition):
    """The action was forgotten."""
    return mirror(key, transition)._replace(action=transition.action)
'''


@pytest.fixture
def line(tmp_path, monkeypatch):
    """Somebody's own module, in their own folder."""
    (tmp_path / "line.py").write_text(LINE.replace("{reward}", "-jnp.abs(state[0])"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "line", raising=False)
    return tmp_path


def run(*arguments):
    """The exit code of a command."""
    try:
        main(list(arguments))
    except SystemExit as leaving:
        return leaving.code
    return 0


ASKED = ("advise", "line:line", "--augmentation", "line:mirror", "--augmentation", "line:half_a_mirror")
SMALL = ("--steps", "20000", "--pilot-steps", "1000")


@pytest.mark.slow
def test_a_right_and_a_wrong_augmentation_of_ones_own_are_told_apart(line, capsys):
    assert run(*ASKED, *SMALL, "--out", "advice", "--json") == 0
    right, wrong = json.loads(capsys.readouterr().out)["advice"]
    assert (right["augmentation"], right["signals"]["invalid"]) == ("line:mirror", 0)
    assert right["signals"]["added_coverage"] > 0.3, "starts are on one side only"
    assert (wrong["augmentation"], wrong["verdict"]) == ("line:half_a_mirror", "wrong")
    assert wrong["signals"]["invalid"] > 0.9
    assert any("the simulator disagrees" in reason for reason in wrong["reasons"])
    page = Path("advice/advice.html").read_text()
    assert "line:mirror" in page
    assert page.count("data:image/png") == 2


@pytest.mark.slow
def test_advice_that_was_killed_goes_on_with_what_it_had_measured(line, capsys):
    command = [sys.executable, "-m", "augury", *ASKED, *SMALL, "--out", "killed"]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    asked = subprocess.Popen(command, env=paths, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    kept = Path("killed") / MEASURED
    while not kept.exists():
        assert asked.poll() is None, "it ended before it could be killed"
    asked.send_signal(signal.SIGKILL)
    asked.wait()
    before = json.loads(kept.read_text())["measured"]
    assert run(*ASKED, *SMALL, "--out", "killed", "--json") == 0
    resumed = json.loads(capsys.readouterr().out)
    after = json.loads(kept.read_text())["measured"]
    assert {name: after[name] for name in before} == before
    assert len(after) > len(before)
    assert run(*ASKED, *SMALL, "--out", "whole", "--json") == 0
    assert json.loads(capsys.readouterr().out) == resumed


@pytest.mark.slow
def test_where_all_rewards_are_equal_it_says_so(line, capsys):
    (line / "level.py").write_text(LINE.replace("{reward}", "0.0 * state[0]"))
    assert run("advise", "level:line", "--augmentation", "level:mirror", *SMALL, "--out", "flat") == 0
    assert "rewards are all equal" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_a_race_that_is_given_again_trains_nothing_twice(line, capsys):
    race = ("--race", "--agents", "6", "--returns", "-20", "0", "--algorithm", "td3")
    asked = (*ASKED[:4], "--steps", "2000", "--pilot-steps", "500", *race, "--out", "raced", "--json")
    assert run(*asked) == 0
    first = json.loads(capsys.readouterr().out)["race"]
    assert set(first["racing"]) | set(first["out"]) == {"without", "line:mirror"}
    assert 0 < first["cost"] <= 1
    written = {file: file.stat().st_mtime_ns for file in Path("raced/race").iterdir()}
    assert written
    assert run(*asked) == 0
    assert json.loads(capsys.readouterr().out)["race"] == first
    assert {file: file.stat().st_mtime_ns for file in Path("raced/race").iterdir()} == written


@pytest.mark.slow
def test_who_cannot_learn_drops_out_and_an_interrupted_race_ends_as_a_whole_one(line):
    arms = {
        name: Arm(environment="line:line", agents=6, steps=3_000, learning_rate=rate)
        for name, rate in {"learns": 1e-3, "stuck": 1e-9}.items()
    }
    turns = []

    def interrupted(standing, name):
        turns.append(name)
        if len(turns) == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_race(arms, Path("cut"), returns=(-10, 0), watch=interrupted)
    resumed = run_race(arms, Path("cut"), returns=(-10, 0))
    assert resumed.winner == "learns"
    assert resumed.out["stuck"][0] == 3, "half of the agents sufficed"
    assert resumed.cost < 0.5
    assert resumed == run_race(arms, Path("whole"), returns=(-10, 0))
    with pytest.raises(
        UserError, match=r"all returns were below 100 to 200, namely -.*: give other --returns"
    ):
        run_race(arms, Path("whole"), returns=(100, 200))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("goal2d",), "needs --augmentation"),
        (("goal2d", "--augmentation", "goal2d/translat"), "did you mean 'goal2d/translate'"),
        (("goal2", "--augmentation", "goal2d/translate"), "did you mean 'goal2d'"),
        (("goal2d", "--augmentation", "ant/reflect"), "ant"),
        (("goal2d", "--augmentation", "goal2d/rotate", "--pilot-steps", "10"), "at least 200"),
        (("walker2d", "--augmentation", "walker2d/reflect", "--race"), "as in --returns -1500 0"),
        (
            ("walker2d", "--augmentation", "walker2d/reflect", "--race", "--returns", "0", "inf"),
            "as in --returns -1500 0",
        ),
        (("goal2d", "--augmentation", "goal2d/rotate", "--race", "--agents", "2"), "needs 3 agents"),
        (("goal2d", "--augmentation", "goal2d/rotate", "--returns", "0", "1"), "give --race too"),
        (("goal2d", *2 * ("--augmentation", "goal2d/rotate")), "two augmentations are called goal2d/rotate"),
    ],
)
def test_bad_input_is_one_line(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("advise", *arguments) == 2
    line = capsys.readouterr().err
    assert said in line
    assert line.count("\n") == 1


def test_measurements_of_another_pilot_are_refused(tmp_path, capsys):
    (tmp_path / MEASURED).write_text(json.dumps({"asked": {"environment": "walker2d"}, "measured": {}}))
    assert run("advise", "goal2d", "--augmentation", "goal2d/rotate", "--out", str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert "was made with environment = walker2d, not goal2d: give another --out, or remove it" in said


@pytest.mark.slow
def test_an_augmentation_that_was_edited_is_measured_again(line, capsys, monkeypatch):
    asked = ("advise", "line:line", "--augmentation", "mine:mine", *SMALL, "--out", "edited", "--json")
    (line / "mine.py").write_text("from line import half_a_mirror as mine")
    assert run(*asked) == 0
    [wrong] = json.loads(capsys.readouterr().out)["advice"]
    (line / "mine.py").write_text("from line import mirror as mine")
    monkeypatch.delitem(sys.modules, "mine")
    assert run(*asked) == 0
    [right] = json.loads(capsys.readouterr().out)["advice"]
    assert (wrong["signals"]["invalid"] > 0.9, right["signals"]["invalid"]) == (True, 0)


@pytest.mark.slow
def test_budgets_beyond_the_table_are_noted(line):
    longest = coefficients.read().provenance.steps
    for steps, noted in ((longest, False), (5 * longest, True)):
        [said] = advise("line:line", ["line:mirror"], pilot_steps=1000, steps=steps)
        assert any("steps at most" in note for note in said.notes) == noted


@pytest.mark.slow
def test_one_is_told_how_far_it_is(line):
    told = []
    advise(
        "line:line", ["line:mirror"], pilot_steps=1000, watch=lambda doing, share: told.append((doing, share))
    )
    doings, shares = zip(*told, strict=True)
    assert list(shares) == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)
    assert {doing.split()[0] for doing in doings} == {"a", "measuring"}
    assert len([doing for doing in doings if doing.startswith("a pilot")]) > 2, "a pilot tells how far it is"


def test_the_shipped_coefficients_are_of_the_committed_table():
    model = coefficients.read()
    assert model.provenance.digest == digest(read(RESULTS / "advice" / "table.csv"))
    assert np.isfinite(model.coefficients).all()


def test_a_model_is_what_it_was_after_it_was_written(tmp_path):
    model = fit(table())
    coefficients.write(tmp_path / "model.json", model)
    again = coefficients.read(tmp_path / "model.json")
    np.testing.assert_allclose(again.coefficients, model.coefficients, atol=1e-4)


@pytest.mark.parametrize(
    ("signals", "verdict"),
    [
        ({"invalid": 1.0, "relative_error": 0.1}, "helps"),  # as the table's small errors do
        ({"invalid": 1.0, "relative_error": 1.2}, "helps"),
        ({"invalid": 1.0, "relative_error": 2.0}, "wrong"),
        ({"invalid": 0.1, "relative_error": 2.0}, "helps"),
        ({"invalid": 0.0, "reward_error": 0.6}, "wrong"),
        ({"invalid": 1.0, "relative_error": 0.0, "wrong_end": 0.7}, "wrong"),
        ({"invalid": None, "relative_error": None}, "undecided"),
        ({"invalid": 0.01, "reward_error": 0.01, "common_reward": 1.0}, "undecided"),  # all that is rewarded
        ({"invalid": 0.01, "reward_error": 0.01, "common_reward": 0.9}, "helps"),
    ],
)
def test_only_what_is_wrong_by_more_than_a_step_changes_is_called_wrong(signals, verdict):
    predicted = Prediction(Estimate(2.0, 1.5, 3.0), 1.0, 0.95, "", ())
    advice = Advice("mirror", "line", 1_000, 1.0, 1.0, signals, (), predicted)
    assert advice.verdict == verdict


def test_a_worth_at_the_end_of_what_was_measured_may_be_more():
    predicted = Prediction(Estimate(8.0, 2.5, 8.0), 1.0, 0.95, "", ())
    facts = dict(facts_of(Advice("mirror", "line", 1_000, 1.0, 1.0, {"invalid": 0.0}, (), predicted)))
    assert facts["worth"].startswith("8+ [2.5, 8+] times")


def test_what_could_not_be_applied_is_not_trained_either():
    nothing = {"invalid": None, "evaluation_coverage": None}
    advice = Advice("mirror", "line", 1_000, 1.0, 1.0, nothing, ("it raises",), Prediction.none("it raises"))
    assert (advice.verdict, advice.may_help) == ("not known", False)


@pytest.mark.parametrize(
    ("signals", "said"),
    [
        ({"invalid": None, "evaluation_coverage": 0.4}, "whether it is right is not known"),
        ({"invalid": None}, "nothing about it could be measured"),
        (
            {"invalid": 0.6, "relative_error": 0.2},
            "disagrees with 60% of its transitions, typically by 20.0%",
        ),
        ({"invalid": 0.004, "relative_error": 0.0, "wrong_end": 0.004}, "0.4% of its transitions end"),
        ({"invalid": 1.0, "relative_error": 0.0, "reward_error": 0.3}, "by 30.0% of their range"),
        ({"invalid": 0.0, "evaluation_coverage": 0.4, "data_multiplier": 3.0}, "40% of the states"),
        ({"invalid": 0.0, "evaluation_coverage": 0.0, "data_multiplier": 1.0}, "hardly any new state"),
        ({"invalid": 0.0, "added_coverage": 0.9, "evaluation_coverage": 0.0}, "evaluation does not visit"),
        ({"invalid": 0.0, "evaluation_coverage": 0.4, "evaluation_departure": 0.7}, "2.0 times as far from"),
        ({"invalid": 0.0, "reward_density_ratio": 4.0}, "rewarded 4.0 times more often"),
        ({"invalid": 0.0, "reward_density_ratio": 0.25}, "rewarded 4.0 times less often"),
        ({"invalid": 0.0, "observed_reward_density": 0.0, "augmented_reward_density": 0.02}, "none was"),
        ({"invalid": 0.0, "asymmetry": 0.01}, "the same values already"),
        ({"invalid": 0.0}, "could not be measured"),
    ],
)
def test_reasons_are_made_of_signals(signals, said):
    assert said in "; ".join(reasons(signals))


def test_functions_that_cannot_be_found_again_are_told_apart():
    """By the same name another function may stand: what was measured of one is not the other's."""

    def shifted(size):
        return lambda key, transition: transition._replace(reward=transition.reward + size)

    one, other = shifted(1), shifted(2)
    assert written(one) == written(one)
    assert written(one) != written(other)
    assert written(partial(one, 1)) != written(partial(one, 2))
    assert written(digest) == written(read)  # two of a file
