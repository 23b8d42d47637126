"""Environments by name with knobs: read, written the same in every process, refused in one line."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from augury import augmentations, envs
from augury.cli import main
from augury.envs import JaxEnvironment
from augury.envs.base import with_numbers
from augury.envs.families.point import Point
from augury.envs.knobs import written
from augury.errors import UserError
from augury.fleet import Arm, resolved
from augury.pytrees import static
from augury.study import Study
from augury.study.arms import Size, arms_of
from augury.study.sharing import identity


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("family/point", "family/point"),
        ("family/point()", "family/point"),
        ("family/point(wind=0)", "family/point"),
        ("family/point(reward='dense', wind=1)", "family/point(wind=1.0, reward='dense')"),
        ("family/point(distractors=2,drag=.25)", "family/point(drag=0.25, distractors=2)"),
        ("family/point(discrete=True)", "family/point(discrete=True)"),
        ("augury.envs.families.point:Point(wind=0.1)", "augury.envs.families.point:Point(wind=0.1)"),
    ],
)
def test_a_text_with_knobs_is_read_and_written_in_one_form(text, canonical):
    assert envs.reference(text) == canonical
    assert envs.make(canonical) == envs.make(text)
    if "augury." not in text:
        assert envs.reference(envs.make(text)) == canonical


def test_words_are_numbers_in_which_agents_may_differ():
    assert Point(reward="dense") == Point(reward=1.0)
    assert envs.reference(Point(reward="shaped")) == "family/point(reward='shaped')"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("family/point(wnd=0.1)", "family/point has no knob 'wnd': did you mean 'wind'?"),
        ("family/pont(wind=0.1)", "unknown environment 'family/pont': did you mean 'family/point'?"),
        ("family/point(reward='spars')", "reward cannot be 'spars': did you mean 'sparse'?"),
        ("family/point(wind='much')", "wind is a number, not 'much'"),
        ("family/point(wind=3)", r"wind must lie in \[-1, 1\], not 3"),
        ("family/point(wind=1e999)", "wind must be a number, not inf"),
        ("family/point(dimensions=1.5)", "dimensions must be a whole number, not 1.5"),
        ("family/point(discrete=1)", "discrete must be True or False, not 1"),
        ("family/point(0.1)", r"write knobs as in 'family/point\(wind=0.0\)'"),
        ("family/point(wind=0.1, wind=0.2)", "cannot read .*: write knobs as in"),
        ("family/point(wind=0.1", "the bracket after family/point is not closed"),
        ("goal2d(wind=0.1)", r"goal2d has no knobs: leave out \(wind=0.1\)"),
    ],
)
def test_a_wrong_knob_is_refused_in_one_line(text, says):
    with pytest.raises(UserError, match=says) as refused:
        envs.make(text)
    assert "\n" not in str(refused.value)


def test_an_environment_that_differs_in_what_is_no_number_has_no_text():
    @with_numbers
    class Shaped(JaxEnvironment):
        name = "shaped"
        width: float = 1.0
        bonus: Callable[[float], float] | None = static(default=None)

    assert written(Shaped(width=2), Shaped(), "shaped") == "shaped(width=2)"
    assert written(Shaped(bonus=abs), Shaped(), "shaped") is None


def test_knobs_of_an_object_are_checked_too():
    with pytest.raises(UserError, match=r"radius must lie in \[0.001, 1\], not 7"):
        envs.make(Point(radius=7.0))


def test_an_arm_is_found_again_by_its_description():
    arm = resolved(Arm(environment=Point(wind=0.25), augmentation="family/reflect(error=0.1)"))
    described = json.loads(json.dumps(arm.described()))
    assert described["environment"] == "family/point(wind=0.25)"
    again = resolved(Arm.from_description(described))
    assert again.described() == described
    assert envs.make(again.environment) == Point(wind=0.25)


def test_an_augmentation_of_a_menu_has_a_text():
    for text in (
        "family/reflect",
        "family/relabel-near(p=0.25, error=0.5)",
        "family/noise(reward_error=1.0)",
    ):
        assert augmentations.reference(augmentations.make(text, "family/point")) == text


@pytest.mark.parametrize(
    ("augmentation", "environment", "says"),
    [
        ("family/rotate", "family/point(dimensions=1)", "has no augmentation 'family/rotate': choose from"),
        ("family/rotate", "goal2d", r"'family/rotate' is for family/\*, not for goal2d"),
        ("family/relabel-near(2)", "family/point", r"p must lie in \[0, 1\], not 2"),
        ("family/reflect(eror=1)", "family/point", "takes no eror"),
        ("family/reflect", None, "needs to know its task"),
    ],
)
def test_an_augmentation_that_a_family_lacks_is_refused(augmentation, environment, says):
    with pytest.raises(UserError, match=says):
        augmentations.make(augmentation, environment)


def test_a_study_may_name_its_task_with_knobs():
    task = "family/point(wind=0.1, goal_spread=0.5)"
    study = Study(
        title="wind", agents=2, task=task, arms=[{}, {"augmentation": "family/reflect", "ratio": [1, 4]}]
    )
    found = arms_of(study, "here", Size())
    assert [one.task for one in found] == [task] * 3
    assert all(envs.make(one.arm.environment).wind == 0.1 for one in found)
    with pytest.raises(UserError, match="here: unknown task 'family/pint': did you mean 'family/point'"):
        arms_of(replace_task(study, "family/pint(wind=0.1)"), "here", Size())
    assert identity(found[0].arm.described()) is not None
    own = resolved(Arm(environment="augury.envs.families.point:Point(wind=0.1)"))
    assert identity(own.described()) is None, "a file may have been edited since"


def replace_task(study, task):
    return Study(title=study.title, task=task, arms=study.arms, agents=2)


def test_families_are_listed_once_and_without_knobs(capsys):
    main(["list", "--json"])
    listed = json.loads(capsys.readouterr().out)
    assert [name for name in listed["environments"] if name.startswith("family/point")] == ["family/point"]
    rows = {row["augmentation"]: row["environment"] for row in listed["augmentations"]}
    assert rows["family/reflect"] == rows["family/relabel-near(p=0.5)"] == "family/*"


@pytest.mark.slow
def test_a_run_with_knobs_is_trained_resumed_and_evaluated_in_other_processes(tmp_path):
    small = ["--agents", "2", "--steps", "512", "--random-steps", "64", "--evaluation-episodes", "4"]
    train = ["train", "family/point(wind=0.1)", "--augmentation", "family/rotate", *small]
    for more in ([], ["--resume"]):
        command = [sys.executable, "-m", "augury", *train, *more]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("family-point-wind-0.1-td3-rotate")
    main(["evaluate", str(folder), "--episodes", "2"])
    assert replace(Point(), wind=0.1) == envs.make(
        json.loads((folder / "run.json").read_text())["asked"]["environment"]
    )
