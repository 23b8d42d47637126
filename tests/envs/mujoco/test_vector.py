"""The vector engine: Gymnasium's numbers, whatever the threads, and again after a restart."""

from dataclasses import replace

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.envs.mujoco.ant_v4 import AntEnv
from gymnasium.envs.mujoco.humanoid_v4 import HumanoidEnv
from gymnasium.envs.mujoco.swimmer_v4 import SwimmerEnv
from gymnasium.envs.mujoco.walker2d_v4 import Walker2dEnv
from gymnasium.utils.env_checker import check_env

from augury import envs
from augury.envs.mujoco.locomotion import ANT, HUMANOID, TASKS, WALKER2D
from augury.envs.mujoco.robots import CORRECTIONS, corrections_of, load
from augury.errors import UserError

STEPS = 1_000
GYMNASIUM = {"swimmer": SwimmerEnv, "walker2d": Walker2dEnv, "ant": AntEnv, "humanoid": HumanoidEnv}

tasks = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


@pytest.fixture(params=TASKS.values(), ids=TASKS)
def pair(request):
    """A task without corrections, and Gymnasium's environment."""
    environment = GYMNASIUM[request.param.robot]()
    yield request.param.variant("stock"), environment
    environment.close()


def actions_of(environment, count, seed=0):
    space = environment.action_space
    return np.random.default_rng(seed).uniform(space.low, space.high, (count, *space.shape))


def test_it_is_gymnasium_step_for_step(pair):
    task, theirs = pair
    ours = replace(task, as_gymnasium=True).vector(1, autoreset=False)
    over = True
    for number, action in enumerate(actions_of(theirs, STEPS)):
        if over:
            observation, _ = theirs.reset(seed=number)
            ours.put(theirs.data.qpos[None].copy(), theirs.data.qvel[None].copy())
        expected, reward, over, _, info = theirs.step(action)
        observation, rewards, terminated, _, infos = ours.step(action[None])
        np.testing.assert_allclose(observation[0], expected, rtol=0, atol=1e-10)
        assert rewards[0] == pytest.approx(reward, abs=1e-10)
        assert terminated[0] == over
        assert infos["x_velocity"][0] == pytest.approx(info["x_velocity"], abs=1e-10)


@pytest.mark.slow
def test_threads_of_rollout_reach_the_states_that_gymnasium_reaches(pair):
    """From the same state, solver started afresh. The forward velocity is that of the states themselves."""
    task, theirs = pair

    def forward_position(qpos):
        data = mujoco.MjData(theirs.model)
        data.qpos[:] = qpos
        mujoco.mj_forward(theirs.model, data)
        return {"qpos": qpos, "root body": data.xpos[1], "centre of mass": data.subtree_com[1]}[
            task.rewarded_for
        ][0]

    ours = task.vector(1, autoreset=False)
    theirs.reset(seed=0)
    ours.reset(seed=0)
    for action in actions_of(theirs, STEPS):
        theirs.data.qpos[:], theirs.data.qvel[:] = ours.moment.qpos[0], ours.moment.qvel[0]
        theirs.data.qacc_warmstart[:] = 0
        theirs.do_simulation(action, theirs.frame_skip)
        before = ours.moment
        _, _, terminated, _, infos = ours.step(action[None])
        after = ours.moment
        np.testing.assert_allclose(after.qpos[0], theirs.data.qpos, rtol=0, atol=1e-10)
        np.testing.assert_allclose(after.qvel[0], theirs.data.qvel, rtol=0, atol=1e-10)
        way = forward_position(after.qpos[0]) - forward_position(before.qpos[0])
        assert infos["x_velocity"][0] == pytest.approx(way / theirs.dt, abs=1e-10)
        if terminated[0]:
            ours.reset()


def test_swimmer_and_walker_are_rewarded_as_in_gymnasium_on_rollouts_too():
    for robot in ("swimmer", "walker2d"):
        theirs, ours = GYMNASIUM[robot](), TASKS[robot].variant("stock").vector(1, autoreset=False)
        theirs.reset(seed=0)
        ours.put(theirs.data.qpos[None].copy(), theirs.data.qvel[None].copy())
        for action in actions_of(theirs, 10):
            expected, reward, _, _, _ = theirs.step(action)
            observation, rewards, _, _, _ = ours.step(action[None])
            np.testing.assert_allclose(observation[0], expected, rtol=0, atol=1e-10)
            assert rewards[0] == pytest.approx(reward, abs=1e-10)


@tasks
def test_observations_have_the_stated_numbers(task):
    assert len(task.table) == {"swimmer": 8, "walker2d": 17, "ant": 27, "humanoid": 45}[task.robot]
    assert len({quantity.name for quantity in task.table}) == len(task.table)


def played(engine, steps, seed=7):
    """Observations, rewards and ends of a run under random actions."""
    rng = np.random.default_rng(seed)
    shown = []
    for _ in range(steps):
        space = engine.single_action_space
        action = rng.uniform(space.low, space.high, (64, *space.shape))
        shown.append(engine.step(action[: engine.num_envs])[:4])
    return [np.array(part) for part in zip(*shown, strict=True)]


@tasks
def test_a_row_depends_on_its_seed_alone(task):
    """Neither on the number of threads, nor on the rows beside it."""
    many, few, alone = task.vector(16, threads=4), task.vector(16, threads=1), task.vector(2)
    for engine in (many, few, alone):
        engine.reset(seed=3)
    runs = [played(engine, 60) for engine in (many, few, alone)]
    for ours, theirs, own in zip(*runs, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(ours[:, :2], own)


@tasks
@pytest.mark.parametrize("as_gymnasium", [False, True])
def test_a_saved_engine_goes_on_as_if_nothing_had_happened(task, as_gymnasium):
    task = replace(task, as_gymnasium=as_gymnasium)
    first, second = task.vector(3), task.vector(3)
    first.reset(seed=1)
    played(first, 15)
    second.load_state(first.state())
    for ours, theirs in zip(played(first, 40), played(second, 40), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_saved_state_is_not_changed_by_going_on():
    engine = WALKER2D.vector(2)
    engine.reset(seed=0)
    state = engine.state()
    rows = state["rows"].copy()
    played(engine, 5)
    np.testing.assert_array_equal(state["rows"], rows)


def test_the_true_final_observation_is_kept():
    auto, manual = WALKER2D.vector(4), WALKER2D.vector(4, autoreset=False)
    auto.reset(seed=0)
    manual.reset(seed=0)
    seen = np.zeros(4, bool)
    for action in actions_of(auto, 60)[:, :1].repeat(4, 1).reshape(60, 4, -1):
        observation, _, terminated, _, infos = auto.step(action)
        final, _, stopped, _, _ = manual.step(action)
        ended = terminated & ~seen
        np.testing.assert_array_equal(stopped, seen | terminated)
        if ended.any():
            np.testing.assert_array_equal(infos["_final_obs"], terminated)
            np.testing.assert_array_equal(infos["final_obs"][ended], final[ended])
            # A new episode has begun: upright, and hardly moving.
            assert (abs(observation[ended][:, 0] - 1.25) < 0.01).all()
            assert not np.allclose(infos["final_obs"][ended], observation[ended])
        seen |= terminated
    assert seen.all()


def test_without_autoreset_what_is_over_stands_still():
    engine = WALKER2D.vector(2, autoreset=False)
    engine.reset(seed=0)
    start = np.tile(WALKER2D.model.qpos0, (2, 1))
    start[0, 1] = 0.5  # too low: falls at once
    engine.put(start, np.zeros((2, WALKER2D.model.nv)))
    fallen, _, terminated, _, _ = engine.step(np.zeros((2, 6)))
    np.testing.assert_array_equal(terminated, [True, False])
    observation, reward, terminated, _, infos = engine.step(np.ones((2, 6)))
    np.testing.assert_array_equal(observation[0], fallen[0])
    assert reward[0] == 0
    assert reward[1] != 0
    assert terminated[0]
    np.testing.assert_array_equal(infos["_x_velocity"], [False, True])
    engine.reset(options={"reset_mask": np.array([True, False])})
    assert engine.step(np.ones((2, 6)))[1][0] != 0


def test_an_episode_is_truncated_at_its_horizon_and_not_terminated():
    engine = TASKS["swimmer"].vector(2)
    engine.reset(seed=0)
    for step in range(1, 1_001):
        _, _, terminated, truncated, infos = engine.step(np.zeros((2, 2)))
        assert not terminated.any()
        assert truncated.all() == (step == 1_000)
    assert "final_obs" in infos


@tasks
def test_restoring_an_observation_brings_it_back(task):
    engine = task.restorable.vector(5, autoreset=False)
    engine.reset(seed=0)
    observation = played(engine, 6)[0][-1]
    other = task.restorable.vector(5)
    other.restore(observation)
    np.testing.assert_array_equal(other.task.observe(other.moment), observation)
    still = np.zeros(other.action_space.shape)
    np.testing.assert_allclose(other.step(still)[0], engine.step(still)[0], atol=1e-9)


@tasks
def test_gymnasium_accepts_the_single_environment(task):
    environment = gymnasium.make(f"augury/{task.robot.capitalize()}-v0")
    with pytest.warns(UserWarning, match="infinity"):
        check_env(environment.unwrapped, skip_render_check=True)
    environment.close()


def test_single_and_vector_view_agree():
    single, engine = gymnasium.make("augury/Ant-v0"), ANT.vector(1)
    start, _ = single.reset(seed=5)
    np.testing.assert_array_equal(start, engine.reset(seed=5)[0][0])
    action = np.full(8, 0.3, np.float32)
    observation, reward, terminated, _, info = single.step(action)
    rows, rewards, ends, _, infos = engine.step(action[None])
    np.testing.assert_array_equal(observation, rows[0])
    assert (reward, terminated) == (rewards[0], ends[0])
    assert info == {name: infos[name][0] for name in ("x_velocity", "y_velocity")}


def test_what_blows_up_ends_where_it_was():
    engine = WALKER2D.vector(2, autoreset=False)
    velocity = np.zeros((2, WALKER2D.model.nv))
    velocity[0] = 1e9
    start = np.tile(WALKER2D.model.qpos0, (2, 1))
    engine.put(start, velocity)
    _, reward, terminated, _, _ = engine.step(np.zeros((2, 6)))
    np.testing.assert_array_equal(terminated, [True, False])
    assert np.isfinite(reward).all()
    np.testing.assert_array_equal(engine.moment.qpos[0], start[0])


def test_gymnasiums_own_wrappers_fit():
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(WALKER2D.vector(3))
    wrapped.reset(seed=np.int64(3))
    lengths = []
    while len(lengths) < 3:
        _, _, terminated, _, infos = wrapped.step(np.zeros((3, 6)))
        lengths += infos["episode"]["l"][terminated].tolist() if "episode" in infos else []
        if terminated.any():
            np.testing.assert_array_equal(infos["_final_info"], terminated)
            np.testing.assert_array_equal(infos["final_info"]["x_velocity"], infos["x_velocity"])
    assert min(lengths) > 10


def test_the_single_environment_leaves_the_time_limit_to_gymnasium():
    environment = gymnasium.make("augury/Swimmer-v0", max_episode_steps=1_003)
    environment.reset(seed=0)
    ends = [environment.step(np.zeros(2))[3] for _ in range(1_003)]
    assert ends.index(True) == 1_002


def test_every_correction_can_be_switched_off():
    for robot, corrections in CORRECTIONS.items():
        everything = load(robot, corrections_of(robot, "corrected")).compile()
        for left_out in corrections:
            kept = [correction.name for correction in corrections if correction is not left_out]
            some = load(robot, kept).compile()
            if (robot, left_out.name) != ("inverted_double_pendulum", "pole"):  # upright already
                assert not same_physics(everything, some), f"{robot}: {left_out.name} does nothing"
    assert HUMANOID.variant("paper").model.opt.cone == 0
    assert HUMANOID.variant("paper").model.opt.solver == 2
    assert {"ant-paper", "humanoid-paper"} < envs.ENVIRONMENTS.keys()


def same_physics(one, other):
    parameters = ("geom_friction", "geom_quat", "dof_armature", "jnt_stiffness", "body_inertia")
    options = ("solver", "cone", "gravity")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in parameters) and all(
        np.array_equal(getattr(one.opt, name), getattr(other.opt, name)) for name in options
    )


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: ANT.vector(0), "at least 1 environment, not 0"),
        (lambda: ANT.vector(2).reset(seed=[1]), "1 seeds for 2 environments"),
        (lambda: ANT.vector(2).reset(seed=[1, -1]), "at least 0 and below 2\\^64, not -1"),
        (lambda: ANT.vector(2).reset(options={"reset_mask": np.ones(3, bool)}), "must be 2 booleans"),
        (lambda: ANT.vector(1).step(np.full((1, 8), np.nan)), "actions must be finite"),
        (lambda: gymnasium.make("augury/Ant-v0", variant="papers"), "did you mean 'paper'"),
        (lambda: ANT.vector(2).step(np.zeros((2, 3))), r"actions must have shape \(2, 8\), not \(2, 3\)"),
        (lambda: ANT.vector(2).restore(np.zeros((2, 3))), r"must have shape \(2, 27\), not \(2, 3\)"),
        (lambda: ANT.vector(2).load_state(ANT.vector(3).state()), "not a state of 2 such environments"),
        (lambda: load("humanoid", ["knee-stifness"]), "did you mean 'knee-stiffness'"),
    ],
)
def test_mistakes_are_named(mistake, message):
    with pytest.raises(UserError, match=message):
        mistake()
