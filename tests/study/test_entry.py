"""Studies from Python: the same folders, records and refusals as from the command line."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from augury.cli import main
from augury.errors import UserError
from augury.report import verdicts_of
from augury.runs import results
from augury.study import Claim, Event, Record, Study, run_study

SETTINGS = {
    "random_steps": 256,
    "updates": 4,
    "batch_size": 8,
    "hidden": [8],
    "evaluate_every": 512,
    "evaluation_episodes": 4,
}
STUDY = Study(
    title="Does it help?",
    task="goal2d",
    agents=4,
    steps=1024,
    settings=SETTINGS,
    arms=[{}, {"augmentation": "goal2d/translate"}],
    claims=[Claim(says="translation beats none", better="translate", than="none")],
)
FILE = """
title = "Does it help?"
task = "goal2d"
agents = 4
steps = 1024
[settings]
random_steps = 256
updates = 4
batch_size = 8
hidden = [8]
evaluate_every = 512
evaluation_episodes = 4
[[arms]]
[[arms]]
augmentation = "goal2d/translate"
[[claims]]
says = "translation beats none"
better = "translate"
than = "none"
"""


def scores(record: Record) -> dict[str, list[list[float]]]:
    return {one.name: one.result.curves().tolist() for one in record.finished}


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def record(out) -> Record:
    return run_study(STUDY, out=out)


def test_a_study_made_in_python_leaves_a_folder_called_after_its_title(record, out):
    assert record.name == "does-it-help"
    assert (out / "does-it-help" / "arms" / "goal2d" / "none" / results.EVALUATIONS).exists()
    assert [one.name for one in record.finished] == ["none", "translate"]
    assert not record.missing
    assert record.result("none").curves().shape == (4, 2)
    assert record.result("none", "goal2d").evaluations["seeds"].tolist() == [0, 1, 2, 3]
    (verdict,) = verdicts_of(record)
    assert verdict.claim == STUDY.claims[0]
    assert verdict.difference is not None


@pytest.mark.slow
def test_a_file_and_the_command_line_give_the_same_record(record, tmp_path):
    file = tmp_path / "from-file.toml"
    file.write_text(FILE)
    found = run_study(file, out=tmp_path / "python")
    assert scores(found) == scores(record)
    assert (tmp_path / "python" / "from-file" / "study.toml").read_text() == FILE
    main(["study", "run", str(file), "--out", str(tmp_path / "python")])  # nothing is left to train
    assert (tmp_path / "python" / "from-file" / "report.html").exists()


def test_what_is_finished_is_not_trained_again(record, out):
    events: list[Event] = []
    again = run_study(STUDY, out=out, watch=events.append)
    assert events == []
    assert scores(again) == scores(record)


@pytest.mark.slow
def test_other_seeds_are_other_agents(record, tmp_path):
    events: list[Event] = []
    other = run_study(STUDY, out=tmp_path, name="other", seed=2, agents=2, watch=events.append)
    assert other.name == "other"
    assert other.result("none").evaluations["seeds"].tolist() == [2, 3]
    np.testing.assert_array_equal(other.result("none").curves(), record.result("none").curves()[2:])
    assert {event.kind for event in events} == {"started", "progress", "finished"}


@pytest.mark.slow
def test_the_seed_of_the_command_line_is_noted_in_its_command(tmp_path, capsys):
    file = tmp_path / "seeded.toml"
    file.write_text(FILE)
    words = ["study", "run", str(file), "--out", str(tmp_path), "--agents", "1", "--seed", "7"]
    main(words)
    told = json.loads((tmp_path / "seeded" / "study.json").read_text())
    assert told["command"] == f"augury study run {file} --agents 1 --seed 7"
    with pytest.raises(SystemExit) as leaving:
        main([*words[:-1], "-1"])
    assert leaving.value.code == 2
    assert "seed must be 0 or more, not -1" in capsys.readouterr().err


@pytest.mark.slow
def test_environments_and_augmentations_may_be_objects_of_a_module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "our_shift.py").write_text("def stay(key, transition):\n    return transition\n")
    from our_shift import stay  # type: ignore[import-not-found]

    found = run_study(
        Study(
            title="Own", task="goal2d", agents=1, steps=512, settings=SETTINGS, arms=[{"augmentation": stay}]
        )
    )
    assert found.finished[0].result.asked["augmentation"] == "our_shift:stay"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"agents": 0}, "study 'Does it help?': 'agents' must be a whole number of at least 1"),
        ({"agents": "many"}, "study 'Does it help?': 'agents' must be a whole number, not a string"),
        ({"task": "goal3d"}, "unknown task 'goal3d': did you mean 'goal2d'?"),
        ({"arms": []}, "study 'Does it help?': a study needs [[arms]]"),
        ({"arms": [{"ratio": 2}]}, "in [[arms]] 1, 'ratio' needs an 'augmentation'"),
        ({"arms": [{"augmentation": lambda key, seen: seen}]}, "other processes cannot import <function"),
        ({"title": "?", "claims": []}, "its title cannot name a folder: give run_study a 'name'"),
    ],
)
def test_a_study_made_in_python_is_checked_like_a_file(change, message, tmp_path):
    asked = {name: getattr(STUDY, name) for name in STUDY.__struct_fields__} | change
    with pytest.raises(UserError, match=re.escape(message)):
        run_study(Study(**asked), out=tmp_path)
    assert not any(tmp_path.iterdir())


def test_a_record_tells_which_results_it_has(record):
    with pytest.raises(UserError, match="unknown arm 'translat': did you mean 'translate'"):
        record.result("translat")
    with pytest.raises(UserError, match="unknown task 'goal'"):
        record.result("none", "goal")
