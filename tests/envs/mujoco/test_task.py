"""A task of a user, from a model file and a few lines: examples/quadruped.py."""

import shlex
from dataclasses import dataclass, replace

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import augury
from augury import envs
from augury.cli import main
from augury.envs.mujoco import terms
from augury.errors import UserError
from augury.verify import verify
from tests.killing import assert_resumes_after_a_kill
from tests.marks import slowly
from tests.quadruped import EXAMPLES, quadruped

__all__ = ["quadruped"]

SAMPLES = 300
SMALL = shlex.split(
    "--augmentation quadruped:mirror --agents 2 --steps 600 --random-steps 64 --batch-size 16 --hidden 16 "
    "--collect 1 --updates 1 --evaluate-every 200 --evaluation-episodes 2 --checkpoint-every 0"
)


def test_it_takes_at_most_25_lines_and_none_has_an_index(quadruped):
    lines = [line for line in (EXAMPLES / "quadruped.py").read_text().splitlines() if line.strip()]
    assert len(lines) <= 25
    assert not any("[" in line for line in lines)
    assert len(quadruped.walk.table) == 48


def test_its_derived_mirror_is_valid(quadruped):
    report = verify("quadruped:mirror", "quadruped:walk", samples=SAMPLES)
    assert report.valid, str(report)
    assert (report.set_aside, report.repeating_error) == (0, 0)


@pytest.mark.parametrize("forgotten", ["previous action", *slowly("command turning", "projected gravity y")])
def test_a_mirror_that_forgets_a_term_is_not(quadruped, forgotten):
    names = [quantity.name for quantity in quadruped.walk.table]
    place = next(number for number, name in enumerate(names) if forgotten in name)
    rows = list(quadruped.mirror.observation.rows)
    rows[place] = ((place, 1.0),)
    wrong = replace(quadruped.mirror, observation=quadruped.mirror.observation._replace(rows=tuple(rows)))
    report = verify(wrong, quadruped.walk, samples=SAMPLES)
    assert report.invalid > SAMPLES / 2
    assert {one.name for one in report.dimensions} <= {names[place], f"{names[place]}, before the step"}


def test_a_mirror_that_forgets_the_state_is_not(quadruped):
    report = verify(replace(quadruped.mirror, state=None), quadruped.walk, samples=SAMPLES)
    assert report.invalid > SAMPLES / 2


def test_it_goes_on_from_a_saved_state_with_its_command_and_last_action(quadruped):
    generator, engines = np.random.default_rng(0), [quadruped.walk.vector(3) for _ in range(2)]
    engines[0].reset(seed=1)
    engines[1].reset(seed=2)
    actions = generator.uniform(-1, 1, (4, 3, 12))
    for action in actions[:2]:
        engines[0].step(action)
    engines[1].load_state(engines[0].state())
    for action in actions[2:]:
        one, other = (engine.step(action) for engine in engines)
        for mine, yours in zip(one[:4], other[:4], strict=True):
            np.testing.assert_array_equal(mine, yours)


def test_the_previous_action_is_observed_and_forgotten_at_a_start(quadruped):
    engine, place = quadruped.walk.vector(2), [q.kind == "action" for q in quadruped.walk.table]
    start, _ = engine.reset(seed=0)
    assert not start[:, place].any()
    action = np.full((2, 12), 0.3)
    np.testing.assert_array_equal(engine.step(action)[0][:, place], action)
    fallen = engine.moment.qpos.copy()
    fallen[0, 3:7] = (0, 1, 0, 0)
    engine.put(fallen, engine.moment.qvel, None, action)
    observation, _, terminated, _, infos = engine.step(action)
    np.testing.assert_array_equal(terminated, [True, False])
    np.testing.assert_array_equal(observation[:, place], [np.zeros(12), action[1]])
    np.testing.assert_array_equal(infos["final_obs"][:, place], action)


def test_every_episode_draws_its_command(quadruped):
    low, high = np.transpose(quadruped.walk.commands)
    drawn = np.stack([quadruped.walk.start(np.random.default_rng(seed)).goal for seed in range(50)])
    assert ((low <= drawn) & (drawn <= high)).all()
    assert len(np.unique(drawn[:, 0])) == 50
    engine = quadruped.walk.vector(2)
    engine.reset(seed=0)
    before = engine.moment.goal
    engine.step(np.zeros((2, 12)))
    np.testing.assert_array_equal(engine.moment.goal, before)


@pytest.fixture
def _registered_here(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(envs.ENVIRONMENTS, "_registered", {})
    known = dict(gymnasium.registry)
    yield
    gymnasium.registry.clear()
    gymnasium.registry.update(known)


@pytest.mark.usefixtures("_registered_here")
def test_gymnasium_makes_it_by_module_and_name_and_once_registered_by_an_id(quadruped):
    made = gymnasium.make("augury/MujocoTask-v0", task="quadruped:walk")
    with pytest.warns(UserWarning, match="infinity"):
        check_env(made.unwrapped, skip_render_check=True)
    made.reset(seed=0)
    ends = [made.step(np.zeros(12))[3] for _ in range(quadruped.walk.horizon)]
    assert ends.index(True) == quadruped.walk.horizon - 1
    assert repr(augury.reflect(made)) == "reflect(quadruped-walk)"
    augury.register(quadruped.walk)
    named = gymnasium.make("augury/QuadrupedWalk-v0")
    assert named.spec.max_episode_steps == quadruped.walk.horizon
    np.testing.assert_array_equal(named.reset(seed=3)[0], quadruped.walk.vector(1).reset(seed=3)[0][0])
    assert envs.make("quadruped-walk") is quadruped.walk
    with pytest.raises(UserError, match="goal2d is no MuJoCo task"):
        gymnasium.make("augury/MujocoTask-v0", task="goal2d")


def test_instances_of_a_class_without_settings_are_equal(quadruped):
    assert quadruped.Walk() == quadruped.walk
    assert envs.reference(quadruped.walk) == "quadruped:walk"


POLE = """<mujoco model="pole"><worldbody>
<body><joint name="hinge" axis="0 1 0"/><geom size=".1" pos="0 0 .5"/></body>
</worldbody><actuator><motor name="push" joint="hinge" {}/></actuator>
<keyframe><key name="up" qpos="0.1"/><key name="down" qpos="3"/></keyframe></mujoco>"""


@dataclass(frozen=True)
class Pole(augury.MujocoTask):
    """Stay up."""

    keyframe: str | None = None
    limits: str = 'ctrlrange="-1 1"'
    action_scale: float | None = None
    name, horizon = "pole", 10

    def spec(self):
        return mujoco.MjSpec.from_string(POLE.format(self.limits))

    def reward(self, before, action, after):
        return np.cos(after.qpos)

    def terminated(self, before, action, after):
        return np.abs(terms.positions(after)).sum(1) > 1


def test_episodes_start_at_a_keyframe():
    for keyframe, angle in ((None, 0.1), ("down", 3), ("qpos0", 0)):
        assert Pole(keyframe).vector(1).reset(seed=0)[0][0, 0] == angle
    with pytest.raises(UserError, match="unknown keyframe of pole 'dwn': did you mean 'down'"):
        _ = Pole("dwn").model


def test_an_action_scale_bounds_the_actions():
    scaled = Pole(limits="", action_scale=2.0)
    np.testing.assert_array_equal([scaled.action_low, scaled.action_high], [[-1], [1]])
    engine = scaled.vector(1)
    np.testing.assert_array_equal(scaled.control(engine.moment, np.array([[0.5]])), [[1.0]])


class Lost(augury.MujocoTask):
    """Its model is not there."""

    name, horizon, model_file = "lost", 10, "nowhere.xml"


UNNAMED = """<mujoco><worldbody>
<body><freejoint/><geom size="0.1"/><site name="top"/>
<body><joint type="hinge" axis="1 0 0" limited="true" range="-30 30"/><geom size="0.1" pos="0 0 0.3"/>
<body><joint type="ball" limited="true" range="0 40"/><geom size="0.1" pos="0 0 0.6"/></body></body></body>
</worldbody><actuator><general site="top" gear="1 0 0 0 0 0" ctrlrange="-1 1"/></actuator></mujoco>"""


class Plain(augury.MujocoTask):
    """A model whose joints have no names."""

    name, horizon, text = "plain", 20, UNNAMED

    def spec(self):
        return mujoco.MjSpec.from_string(self.text)

    def reward(self, before, action, after):
        return -(after.qpos[:, 0] ** 2)


def test_joints_need_no_names():
    task = Plain()
    covered = dict(zip((one.name for one in task.table), task.observation_high, strict=True))
    assert covered["joint 1 angle"] == pytest.approx(np.deg2rad(30))
    assert covered["joint 2 quaternion w"] == 1  # a ball's range is an angle, and none of these numbers
    mirror = augury.reflect(task)
    assert verify(mirror, task, samples=100).valid


@terms.term(terms.scalars("a", "b"))
def too_few(moment):
    """One number, where two are announced."""
    return moment.qpos[:, :1]


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("reward", lambda self, before, action, after: np.log(after.qpos[:, 0] - 9), "reward gave nan"),
        ("reward", lambda self, before, action, after: 1 if after.qpos[:, 0] > 0 else 0, "raised ValueError"),
        ("reward", lambda self, before, action, after: after.qpos[:, 0] * 1j, "real numbers, not complex128"),
        ("terminated", lambda self, before, action, after: after.qpos[:, 0], "truth values, not float64"),
        ("observed", (too_few,), r"the term 'too few' must give 2 numbers .* not shape \(2, 1\)"),
        ("observed", (terms.command,), r"the term 'command' must give 3 numbers"),
        ("observed", ("positions",), "observed lists terms, and 'positions' is none"),
        ("observed", (), "observes nothing"),
        ("spec", lambda self: mujoco.MjSpc(), "spec raised AttributeError: module 'mujoco'"),
        ("spec", lambda self: mujoco.MjModel.from_xml_string(UNNAMED), "give an MjSpec, not MjModel"),
        ("text", UNNAMED.replace("size", "sise"), "spec raised ValueError: XML Error"),
        (
            "text",
            UNNAMED.replace('size="0.1"', 'size="0.1" mass="0"'),
            "compiling the model raised ValueError",
        ),
        ("text", UNNAMED[: UNNAMED.index("<actuator>")] + "</mujoco>", "has no actuators"),
        ("substeps", 0, "substeps must be a whole number from 1 on, not 0"),
        ("horizon", 10.5, "horizon must be a whole number from 1 on, not 10.5"),
        ("start_noise", "much", "start_noise raised ValueError"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in log")
def test_what_a_task_gets_wrong_is_one_line(name, value, complaint):
    task = type("Wrong", (Plain,), {name: value, "name": "wrong"})()

    def used():
        engine = envs.make(task).vector(2)
        engine.reset(seed=[0, 1])
        engine.step(np.zeros((2, 1)))

    with pytest.raises(UserError, match=rf"^wrong.*{complaint}"):
        used()


def test_mistakes_are_named():
    with pytest.raises(UserError, match="pole: actuator 'push' has no control range"):
        _ = Pole(limits="").action_low
    with pytest.raises(
        UserError, match=r"pole: reward must give a number for each of 2 .*, not shape \(2, 1\)"
    ):
        Pole().vector(2).step(np.zeros((2, 1)))
    with pytest.raises(UserError, match=r"lost: cannot read the model .*nowhere\.xml"):
        _ = Lost().model


@pytest.mark.slow
def test_a_fleet_trains_it_is_killed_and_resumes_to_the_same_bits(quadruped, tmp_path):
    assert_resumes_after_a_kill(["quadruped:walk", *SMALL], tmp_path)


@pytest.mark.slow
def test_it_is_shown_and_audited(quadruped, tmp_path, capsys):
    main(
        ["show", "quadruped:mirror", "--environment", "quadruped:walk", "--out", str(tmp_path / "mirror.png")]
    )
    assert (tmp_path / "mirror.png").stat().st_size > 10_000
    main(["symmetry", "quadruped:walk"])
    assert "nothing breaks the reflection" in capsys.readouterr().out


def test_a_class_stands_for_its_instance():
    assert envs.make(Plain).name == "plain"
