"""Pictures of augmentations: of every environment that can draw its transitions."""

import os
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.image import imread

from augury.envs import Panel
from augury.envs.mujoco.locomotion import TASKS
from augury.envs.mujoco.rendering import Camera
from augury.envs.panda import scenes
from augury.envs.panda.tasks import PANDA_TASKS
from augury.errors import UserError
from augury.show import draw_augmentation
from tests.marks import slowly
from tests.sledges import sledges

__all__ = ["sledges"]


def colours_of(path) -> set[tuple[int, ...]]:
    pixels = (imread(path)[..., :3] * 255).round().astype(int)
    return {tuple(colour) for colour in np.unique(pixels.reshape(-1, 3), axis=0)}


@pytest.mark.parametrize(
    "name", ["goal2d/translate-proximal(1)", *slowly("goal2d/translate", "goal2d/rotate")]
)
def test_a_picture_shows_goals_agents_and_successes(tmp_path, name):
    path = tmp_path / "picture.png"
    draw_augmentation(name, path)
    goal, agent, star = (0x00, 0x9E, 0x73), (0x00, 0x72, 0xB2), (0xE6, 0x9F, 0x00)
    assert {goal, agent} <= colours_of(path)
    assert (star in colours_of(path)) == ("proximal" in name)


def test_a_picture_of_an_unknown_augmentation_is_refused(tmp_path):
    with pytest.raises(UserError, match="did you mean 'goal2d/rotate'"):
        draw_augmentation("goal2d/rotat", tmp_path / "picture.png")
    assert not list(tmp_path.iterdir())


def has_gl():
    try:
        Camera(TASKS["ant"].model).close()
    except UserError:
        return False
    return True


@pytest.mark.skipif(not has_gl(), reason="no OpenGL on this machine")
@pytest.mark.parametrize("name", ["walker2d/reflect", *slowly("ant/rotate")])
def test_poses_are_drawn(name, tmp_path):
    path = tmp_path / "poses.png"
    draw_augmentation(name, path)
    picture = imread(path)
    above, below = picture[: len(picture) // 2], picture[len(picture) // 2 :]
    assert above.std() > 0.1
    assert abs(above[: len(below)] - below[: len(above)]).mean() > 0.01  # not the same poses twice


@pytest.mark.skipif(not has_gl(), reason="no OpenGL on this machine")
@pytest.mark.slow
@pytest.mark.parametrize("environment", ["panda-slide", "panda-flip-quadrant"])
def test_scenes_are_drawn(environment, tmp_path):
    path = tmp_path / "scenes.png"
    draw_augmentation("panda/hindsight", path, environment)
    picture = imread(path)
    assert picture.shape[0] > 1000
    above, below = picture[: len(picture) // 2], picture[len(picture) // 2 :]
    assert abs(above[: len(below)] - below[: len(above)]).mean() > 0.01  # not the same scenes twice


@pytest.mark.skipif(not has_gl(), reason="no OpenGL on this machine")
@pytest.mark.parametrize("goal", [(0.1, -0.1, 0.02), (0.55, 0.15, 0.03), (0.55, -0.15, 0.03)])
def test_a_ring_is_around_the_goals_shadow(goal):
    task = PANDA_TASKS["panda-push"]
    pose = task.start(np.random.default_rng(0)).qpos
    with Camera(task.scene, scenes.WIDTH, scenes.HEIGHT) as camera:
        seen, unseen = (
            camera.picture(pose, scenes._view(), task.target(np.array(place))).astype(int)
            for place in (goal, (0, 0, -1))
        )
    rows, columns = np.nonzero(np.abs(seen - unseen).sum(-1) > 40)
    middle = (columns.min() + columns.max()) / 2, (rows.min() + rows.max()) / 2
    assert middle == pytest.approx(scenes._pixel(scenes._view(), task.scene, np.array(goal)), abs=15)
    assert scenes.RING < middle[1] < scenes.HEIGHT - scenes.RING


@pytest.mark.slow
@pytest.mark.parametrize("missing", [{"MUJOCO_GL": "glfw"}, {"PYOPENGL_PLATFORM": "osmesa"}])
def test_without_opengl_it_says_how_to_get_it(missing, tmp_path):
    """A window needs a display; and a library that is asked for something else is as good as none."""
    environment = {name: value for name, value in os.environ.items() if "DISPLAY" not in name}
    environment.pop("MUJOCO_GL", None)
    shown = subprocess.run(
        [sys.executable, "-m", "augury", "show", "ant/rotate", "--out", str(tmp_path / "poses.png")],
        env=environment | missing,
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 2
    assert "set MUJOCO_GL=egl" in shown.stderr.strip().splitlines()[-1]
    assert not (tmp_path / "poses.png").exists()


OBSERVED, NEXT = (255, 0, 255), (0, 255, 0)  # the colours of a sledge


def test_an_environment_of_ones_own_is_drawn_by_its_method(sledges, tmp_path):
    path = tmp_path / "own.png"
    for augmentation, environment in (
        ("sledges:mirror", "sledges:sledge"),
        (sledges.mirror, sledges.sledge),
    ):
        draw_augmentation(augmentation, path, environment)
        assert {OBSERVED, NEXT} <= colours_of(path)
        path.unlink()


def test_each_panel_is_given_what_the_environment_asks_for(sledges, tmp_path):
    """Those most worth drawing, under its own actions, and what was made of each."""
    drawn, made = [], []

    class Choosy(sledges.Sledge):
        panel = Panel(copies=2, candidates=30, legend="a legend")

        def explore(self, observation, generator):
            return np.full((len(observation), 1), 0.25)

        def worth_drawing(self, transitions):
            return transitions.observation[:, 0]

        def draw(self, axes, transitions):
            drawn.append(transitions)

        def draw_augmented(self, axes, observed, augmented):
            made.append((observed, augmented))

    draw_augmentation(sledges.mirror, tmp_path / "own.png", Choosy(), transitions=2)
    assert [len(one.reward) for one in drawn] == [1, 1]
    for one, (observed, augmented) in zip(drawn, made, strict=True):
        assert one.action.tolist() == [[0.25]]
        assert one.observation[0, 0] > 0.8  # the most of thirty, where most are less
        np.testing.assert_array_equal(one.observation, observed.observation)
        np.testing.assert_array_equal(augmented.observation, -np.repeat(observed.observation, 2, 0))


def test_an_environment_that_cannot_be_drawn_is_refused(sledges, tmp_path):
    message = r"^there are no pictures of plain: give it a method draw\(axes, transitions\)$"
    with pytest.raises(UserError, match=message):
        draw_augmentation(sledges.mirror, tmp_path / "own.png", sledges.plain)
    assert not (tmp_path / "own.png").exists()


@pytest.mark.skipif(not has_gl(), reason="no OpenGL on this machine")
def test_a_users_robot_is_drawn_without_a_line_of_their_own(sledges, tmp_path):
    path = tmp_path / "cart.png"
    draw_augmentation("sledges:mirror", path, "sledges:cart", transitions=1)
    assert imread(path).std() > 0.1
