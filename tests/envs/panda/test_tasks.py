"""The Panda tasks on MuJoCo: they move, show and reward as panda-gym does, and can be repeated and saved."""

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from augury.envs.mujoco.vector import Start
from augury.envs.panda.goals import GOAL_TASKS
from augury.envs.panda.kinematics import hand_position, joint_targets
from augury.envs.panda.observations import Snapshot, asked, observed
from augury.envs.panda.robot import LINKS, NEUTRAL
from augury.envs.panda.rotations import euler_angles, rotated
from augury.envs.panda.settings import action_size
from augury.envs.panda.tasks import PANDA_TASKS
from augury.errors import UserError

FOUR = ("panda-push", "panda-slide", "panda-pick-and-place", "panda-flip")


def random_steps(engine, count, seed=0):
    """What an engine shows under uniform actions."""
    generator = np.random.default_rng(seed)
    return [engine.step(generator.uniform(-1, 1, engine.action_space.shape)) for _ in range(count)]


def equal(one, other):
    return all(np.array_equal(one[name], other[name]) for name in one)


def first(shown, count):
    """What the first rows show."""
    return {part: rows[:count] for part, rows in shown.items()}


@pytest.fixture(scope="module")
def reference():
    """Steps of panda-gym under uniform actions: states, actions, what was seen before and after."""
    pytest.importorskip("panda_gym")
    from augury.envs.panda.reference.panda_gym import PandaGymEnv

    def steps(task, count, seed=0):
        env = PandaGymEnv(task)
        generator = np.random.default_rng(seed)
        shown, _ = env.reset(seed=seed)
        rows = []
        for _ in range(count):
            action = generator.uniform(-1, 1, env.action_space.shape)
            following, _, terminated, truncated, info = env.step(action)
            rows.append((info["state"], action, shown["observation"], following["observation"]))
            shown = env.reset()[0] if terminated or truncated else following
        env.close()
        return [np.array(part) for part in zip(*rows, strict=True)]

    return steps


def put_like(engine, state):
    """Put MuJoCo where PyBullet was: its quaternions end with w, its angular velocities are the world's."""
    joints, speeds, position, orientation, velocity, spin = np.split(state, [9, 18, 21, 25, 28], 1)
    body_spin = np.stack(rotated((orientation * (-1, -1, -1, 1)).T, spin.T), -1)
    qpos = np.concatenate([joints, position, orientation[:, [3, 0, 1, 2]]], 1)
    qvel = np.concatenate([speeds, velocity, body_spin], 1)
    engine.put(*Start(qpos, qvel, engine.moment.goal))


def test_forward_kinematics_is_pybullets():
    pytest.importorskip("panda_gym")
    import pybullet
    import pybullet_data

    client = pybullet.connect(pybullet.DIRECT)
    robot = pybullet.loadURDF(
        f"{pybullet_data.getDataPath()}/franka_panda/panda.urdf", (-0.6, 0, 0), useFixedBase=True
    )
    low, high = np.transpose([link.limits for link in LINKS])
    angles = np.random.default_rng(0).uniform(low, high, (200, 7))
    model = PANDA_TASKS["panda-push"].model
    data = mujoco.MjData(model)
    ours, theirs = [], []
    for row in angles:
        for joint, angle in enumerate(row):
            pybullet.resetJointState(robot, joint, angle)
        theirs.append(pybullet.getLinkState(robot, 11, computeForwardKinematics=1)[0])
        data.qpos[:7] = row
        mujoco.mj_kinematics(model, data)
        ours.append(data.site("grasp").xpos.copy())
    pybullet.disconnect(client)
    assert np.abs(np.array(ours) - theirs).max() < 1e-3
    assert np.abs(hand_position(angles) - theirs).max() < 1e-3


def test_joint_targets_fall_short_as_pybullets_do():
    """Twenty damped steps do not arrive: along x about a quarter of the way is missing."""
    pytest.importorskip("panda_gym")
    import pybullet
    import pybullet_data

    client = pybullet.connect(pybullet.DIRECT)
    robot = pybullet.loadURDF(
        f"{pybullet_data.getDataPath()}/franka_panda/panda.urdf", (-0.6, 0, 0), useFixedBase=True
    )
    generator = np.random.default_rng(0)
    angles = np.array(NEUTRAL) + generator.normal(0, 0.04, (100, 7))
    positions = hand_position(angles) + generator.uniform(-0.05, 0.05, (100, 3))
    theirs = []
    for row, place in zip(angles, positions, strict=True):
        for joint, angle in enumerate(row):
            pybullet.resetJointState(robot, joint, angle)
        theirs.append(pybullet.calculateInverseKinematics(robot, 11, place, (1, 0, 0, 0))[:7])
    pybullet.disconnect(client)
    apart = np.linalg.norm(
        hand_position(joint_targets(angles, positions)[0]) - hand_position(np.array(theirs)), axis=1
    )
    short = np.linalg.norm(hand_position(np.array(theirs)) - positions, axis=1)
    assert np.median(apart) < 0.5e-3
    assert np.median(short) > 4 * np.median(apart)


@pytest.mark.parametrize("count", [1, 4, 5, 15, 17])
def test_targets_and_torques_do_not_depend_on_the_rows_beside(count):
    """To the bit, though few rows are computed by another program than many."""
    generator = np.random.default_rng(0)
    angles = np.array(NEUTRAL) + generator.normal(0, 0.5, (2_000, 7))
    positions = hand_position(angles) + generator.uniform(-0.05, 0.05, (2_000, 3))
    together = joint_targets(angles, positions)
    for first in range(0, len(angles), count):
        rows = slice(first, first + count)
        for few, many in zip(joint_targets(angles[rows], positions[rows]), together, strict=True):
            assert np.array_equal(few, many[rows])


def test_torques_carry_the_arm():
    low, high = np.transpose([link.limits for link in LINKS])
    angles = np.random.default_rng(0).uniform(low, high, (50, 7))
    _, torques = joint_targets(angles, hand_position(angles))
    model = PANDA_TASKS["panda-push"].model
    data = mujoco.MjData(model)
    for row, torque in zip(angles, torques, strict=True):
        data.qpos[:7] = row
        mujoco.mj_forward(model, data)
        assert torque == pytest.approx(data.qfrc_bias[:7], abs=5e-5)


def test_a_hand_that_is_told_to_stay_hardly_sinks():
    """In panda-gym it does not at all; without the torques above it sinks by 5 mm."""
    engine = PANDA_TASKS["panda-pick-and-place"].vector(40, autoreset=False)
    engine.reset(seed=0)
    random_steps(engine, 20)
    still = np.zeros(engine.action_space.shape)
    seen = [engine.step(still)[0]["observation"][:, :3] for _ in range(30)]
    drift = np.linalg.norm(seen[-1] - seen[-11], axis=1)
    assert np.median(drift) < 2e-3


@pytest.mark.parametrize("task", ["push", "pick-and-place"])
def test_a_step_moves_the_hand_as_panda_gym_does(reference, task):
    state, action, before, after = reference(task, 500)
    engine = PANDA_TASKS[f"panda-{task}"].vector(len(state), autoreset=False)
    put_like(engine, state)
    shown, *_ = engine.step(action)
    error = np.linalg.norm(shown["observation"][:, :3] - after[:, :3], axis=1)
    moved = np.linalg.norm(after[:, :3] - before[:, :3], axis=1)
    assert np.median(error) < 3e-3
    assert np.percentile(error, 99) < 10e-3
    assert np.median(moved) > 20e-3, "the hand does move"


@pytest.mark.parametrize("task", GOAL_TASKS)
def test_the_same_state_looks_the_same(reference, task):
    state, _, before, _ = reference(task, 120)
    engine = PANDA_TASKS[f"panda-{task}"].vector(len(state))
    put_like(engine, state)
    seen = engine.task.observe(engine.moment)["observation"]
    assert seen.shape == before.shape
    assert np.abs(seen - before).max(0)[:3] == pytest.approx(0, abs=1e-4)
    velocity = slice(3, 6)
    assert np.abs(seen[:, velocity] - before[:, velocity]).max() < 0.03
    rest = np.delete(np.arange(seen.shape[1]), velocity)
    assert np.abs(seen[:, rest] - before[:, rest]).max() < 1e-3


@pytest.mark.parametrize("task", GOAL_TASKS)
def test_spaces_are_panda_gyms(task):
    pytest.importorskip("panda_gym")
    from augury.envs.panda.reference.simulation import Simulation

    ours, simulation = PANDA_TASKS[f"panda-{task}"], Simulation(task)
    assert ours.observation_space == simulation.env.observation_space
    assert ours.action_space == simulation.env.action_space
    simulation.close()


def test_euler_angles_are_pybullets():
    pybullet = pytest.importorskip("pybullet")
    quaternions = np.random.default_rng(0).normal(size=(200, 4))
    quaternions[:3] = [(0, 0.5**0.5, 0, 0.5**0.5), (0, -(0.5**0.5), 0, 0.5**0.5), (0, 0, 0, 1)]
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    theirs = np.array([pybullet.getEulerFromQuaternion(one) for one in quaternions])
    around = (np.stack(euler_angles(quaternions.T), -1) - theirs + np.pi) % (2 * np.pi) - np.pi
    assert np.abs(around).max() < 1e-6


@pytest.mark.parametrize("name", ["panda-pick-and-place", "panda-pick-and-place-coarse"])
def test_the_hand_grips_the_cube_and_lifts_it(name):
    engine = PANDA_TASKS[name].vector(8, autoreset=False)
    shown, _ = engine.reset(seed=0)
    for step in range(45):
        hand, cube = shown["observation"][:, :3], shown["observation"][:, 7:10]
        if step < 12:
            way, grip = cube - hand + np.array([0, 0, 0.12]), 1
        elif step < 22:
            way, grip = cube - hand, 1
        elif step < 28:
            way, grip = np.zeros_like(hand), -1
        else:
            way, grip = np.tile((0, 0, 0.03), (8, 1)), -1
        shown, *_ = engine.step(np.concatenate([way / 0.05, np.full((8, 1), grip)], 1))
    assert (shown["observation"][:, 9] > 0.15).all(), "the cube slips"


@pytest.mark.parametrize("name", ["panda-push", "panda-slide"])
def test_fingers_stay_closed_where_panda_gym_blocks_them(name):
    engine = PANDA_TASKS[name].vector(20)
    engine.reset(seed=0)
    random_steps(engine, 20)
    assert np.abs(engine.moment.qpos[:, 7:9]).max() < 4e-3


def test_actions_are_clipped_and_targets_stay_above_the_table():
    task = PANDA_TASKS["panda-push"]
    engine = task.vector(1)
    engine.reset(seed=0)
    down = np.array([[0.0, 0.0, -1.0]])
    for _ in range(15):
        engine.step(down)
    assert engine.task.observe(engine.moment)["observation"][0, 2] > -0.005
    assert np.array_equal(task.control(engine.moment, 7 * down), task.control(engine.moment, down))


def test_a_goal_that_is_reached_ends_the_episode_without_penalty():
    task = PANDA_TASKS["panda-push"]
    engine = task.vector(2, autoreset=False)
    engine.reset(seed=0)
    now = engine.moment
    here = now.qpos[:, 9:12]
    engine.put(*Start(now.qpos, now.qvel, np.stack([here[0], here[1] + (0.2, 0, 0)])))
    shown, reward, terminated, truncated, infos = engine.step(np.zeros((2, 3)))
    assert reward.tolist() == [0, -1]
    assert terminated.tolist() == [True, False] == infos["is_success"].tolist()
    for _ in range(49):
        again, reward, terminated, truncated, _ = engine.step(np.ones((2, 3)))
        assert reward[0] == 0
        assert np.array_equal(again["observation"][0], shown["observation"][0]), "it stands still"
    assert truncated.tolist() == [False, True]


@pytest.mark.parametrize("name", FOUR)
def test_rows_are_reproducible_and_independent(name):
    task = PANDA_TASKS[name]
    many, few = task.vector(20, threads=2), [task.vector(count, threads=1) for count in (1, 3)]
    all_shown, _ = many.reset(seed=0)
    generator = np.random.default_rng(1)
    for engine in few:
        assert equal(engine.reset(seed=0)[0], first(all_shown, engine.num_envs))
    for _ in range(60):
        actions = generator.uniform(-1, 1, many.action_space.shape)
        all_shown, all_reward, *_ = many.step(actions)
        for engine in few:
            shown, reward, *_ = engine.step(actions[: engine.num_envs])
            assert equal(shown, first(all_shown, engine.num_envs))
            assert np.array_equal(reward, all_reward[: engine.num_envs])


@pytest.mark.parametrize("name", FOUR)
def test_one_environment_observes_and_asks_what_each_of_many_does(name):
    """At any orientation of the object, also where roll and yaw are one."""
    goals, generator = PANDA_TASKS[name].goals, np.random.default_rng(0)
    qpos, qvel = generator.normal(size=(300, 16)), generator.normal(size=(300, 15))
    qpos[:3, -4:] = [(1, 0, 1, 0), (1, 0, -1, 0), (0, -1, 1, 0)]
    qpos[:, -4:] /= np.linalg.norm(qpos[:, -4:], axis=1, keepdims=True)
    hand, speed, goal = generator.normal(size=(3, 300, goals.goal_size))
    many = Snapshot(qpos, qvel, hand[:, :3], speed[:, :3], goal)
    actions = generator.normal(size=(300, action_size(goals)))
    shown, wanted = observed(goals, many), asked(goals, many, actions)
    for row in range(300):
        one = Snapshot(*(part[row] for part in many))
        assert equal(observed(goals, one), {part: rows[row] for part, rows in shown.items()})
        for alone, together in zip(asked(goals, one, actions[row]), wanted, strict=True):
            assert np.array_equal(alone, together[row])


def test_the_single_environment_is_a_row_of_the_engine():
    single, engine = gymnasium.make("augury/PandaPush-v0"), PANDA_TASKS["panda-push"].vector(2)
    shown, info = single.reset(seed=5)
    assert equal(shown, {part: rows[0] for part, rows in engine.reset(seed=5)[0].items()})
    for action in np.random.default_rng(0).uniform(-1, 1, (20, 3)).astype(np.float32):
        shown, reward, terminated, _, info = single.step(action)
        rows, rewards, ends, _, infos = engine.step(np.stack([action] * 2))
        assert equal(shown, {part: values[0] for part, values in rows.items()})
        assert (reward, terminated, info) == (rewards[0], ends[0], {"is_success": infos["is_success"][0]})


def test_a_struck_puck_spins_no_faster_than_friction_allows():
    task = PANDA_TASKS["panda-slide"]
    engine = task.vector(24)
    shown, _ = engine.reset(seed=0)
    generator, spins = np.random.default_rng(1), []
    for _ in range(40):
        shown, *_ = engine.step(task.explore(shown, generator))
        flat = np.abs(shown["observation"][:, 9:11]).max(1) < 0.1
        spins.append(np.abs(shown["observation"][flat, -1]))
    # A blow of one newton second at the rim, 0.04 of it along the rim, makes it spin by 2.7 rad/s.
    assert 0.5 < np.quantile(np.concatenate(spins), 0.98) < 2 * 2.7


def test_a_saved_engine_goes_on_in_the_middle_of_an_episode():
    task = PANDA_TASKS["panda-flip"]
    engine, other = task.vector(6), task.vector(6)
    engine.reset(seed=3)
    random_steps(engine, 30)
    other.load_state(engine.state())
    for first, second in zip(random_steps(engine, 30, 5), random_steps(other, 30, 5), strict=True):
        assert equal(first[0], second[0])
        assert np.array_equal(first[2], second[2])


def test_the_true_end_of_an_episode_is_kept():
    engine = PANDA_TASKS["panda-slide"].vector(4)
    engine.reset(seed=0)
    *_, last, (shown, _, terminated, truncated, infos) = random_steps(engine, 50)
    assert truncated.all()
    assert not terminated.any()
    moved = np.abs(infos["final_obs"]["observation"][:, :3] - last[0]["observation"][:, :3])
    assert moved.max() < 0.2, "one step further"
    assert shown["observation"][:, :3] == pytest.approx(np.tile((0.0384, 0, 0.1974), (4, 1)), abs=1e-3)
    assert not np.array_equal(shown["desired_goal"], infos["final_obs"]["desired_goal"])


def test_restoring_needs_the_joints():
    engine = PANDA_TASKS["panda-push"].vector(3)
    engine.reset(seed=0)
    random_steps(engine, 5)
    state, before = engine.task.state(engine.moment), engine.task.observe(engine.moment)
    action = np.full((3, 3), 0.5)
    expected = engine.step(action)[0]
    engine.reset(seed=9)
    engine.restore(before, {"state": state})
    assert equal(engine.step(action)[0], expected)
    with pytest.raises(UserError, match="state"):
        engine.restore(before)


@pytest.mark.slow
def test_random_actions_explore_as_in_panda_gym():
    """SPEC's figures of panda-gym: the hand sinks to the table, and moves the cube in one step of twenty."""
    engine = PANDA_TASKS["panda-push"].vector(150)
    before, _ = engine.reset(seed=0)
    heights, moved = [], []
    for shown, _, terminated, truncated, _ in random_steps(engine, 100):
        goes_on = ~(terminated | truncated)
        heights.append(shown["observation"][goes_on, 2])
        way = shown["observation"][:, 6:9] - before["observation"][:, 6:9]
        moved.append(np.linalg.norm(way, axis=1)[goes_on] > 1e-3)
        before = shown
    quantiles = np.quantile(np.concatenate(heights), (0.05, 0.25, 0.5, 0.75, 0.95))
    assert quantiles == pytest.approx((0.005, 0.012, 0.032, 0.088, 0.199), rel=0.25)
    assert 0.035 < np.concatenate(moved).mean() < 0.08


@pytest.mark.parametrize("name", FOUR)
def test_gymnasium_knows_them(name):
    env = gymnasium.make(f"augury/{name.title().replace('-', '')}-v0")
    check_env(env.unwrapped, skip_render_check=True)
    shown, info = env.reset(seed=4)
    again, _ = env.reset(seed=4)
    assert equal(shown, again)
    assert isinstance(info["is_success"], bool)
    goals = np.stack([shown["desired_goal"]] * 3)
    assert env.unwrapped.compute_reward(goals, goals, [{}] * 3).tolist() == [0, 0, 0]
    steps, over = 0, False
    while not over:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        steps, over = steps + 1, terminated or truncated
    assert terminated or steps == 50
    env.close()


def test_a_picture_shows_the_goal():
    env = gymnasium.make("augury/PandaPush-v0", render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    try:
        first = env.render()
    except UserError as error:
        pytest.skip(str(error))
    now = env.engine.moment
    env.engine.put(*Start(now.qpos, now.qvel, now.goal + np.array([0.1, 0.1, 0])))
    changed = (env.render() != first).any(-1)
    assert 20 < changed.sum() < 0.05 * changed.size, "only the goal has moved"
    env.close()
