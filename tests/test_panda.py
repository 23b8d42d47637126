"""The Panda tasks on MuJoCo: panda-gym's numbers and motions, whatever the threads, and again after a restart."""

from functools import cache

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.spatial.transform import Rotation
from scipy.stats import kstest

from augury.envs.goals import GOAL_TASKS, START_DRAWS
from augury.envs.panda import JOINTS, PANDA_TASKS, REACH, _euler_angles
from augury.envs.panda_gym import REFERENCES
from augury.envs.panda_gym_simulation import NEUTRAL, Simulation, quiet, row_type, start_state
from augury.envs.panda_kinematics import hand_place, joint_targets
from augury.envs.panda_model import LINKS
from augury.envs.panda_settings import HORIZON, WITH_GRIPPER, action_size, table
from augury.envs.rendering import Camera
from augury.envs.vector import Start
from augury.errors import UserError

FULL = {name: PANDA_TASKS[f"panda-{name}"] for name in GOAL_TASKS}
PUSH, SLIDE, PICK = FULL["push"], FULL["slide"], FULL["pick-and-place"]
HAND_LINK = 11
AWAY = 9.0
"""A coordinate of goals that nothing reaches."""

each_task = pytest.mark.parametrize("task", PANDA_TASKS.values(), ids=PANDA_TASKS)
each_full_task = pytest.mark.parametrize("name", FULL)


# Beside panda-gym


@cache
def simulation(name):
    """panda-gym in this process, which forgets between episodes."""
    pytest.importorskip("panda_gym")
    return Simulation(name)


@pytest.fixture
def arm():
    """PyBullet's client, and its number of the arm."""
    sim = simulation("push").env.sim
    return sim.physics_client, sim._bodies_idx["panda"]


class Reference:
    """One of panda-gym's tasks: put anywhere, step by step. Its row holds what came of that."""

    def __init__(self, name):
        self.simulation, self.row = simulation(name), np.zeros(1, row_type(GOAL_TASKS[name]))[0]
        self.row["desired_goal"] = AWAY

    def begin(self, state):
        self.row["begins"], self.row["start"] = True, state
        self.simulation.carry_out(self.row)
        return self.row["observation"].copy()

    def step(self, action):
        self.row["begins"], self.row["action"] = False, action
        self.simulation.carry_out(self.row)
        return self.row["observation"].copy()


@cache
def recorded(name, count=500):
    """Steps under uniform random actions: the state before each, the action, the motors' targets, what is seen."""
    reference, generator, goals = Reference(name), np.random.default_rng(0), GOAL_TASKS[name]
    robot, steps = reference.simulation.env.robot, []
    told, control = [], robot.control_joints
    robot.control_joints = lambda target_angles: (told.append(target_angles), control(target_angles))
    for number in range(count):
        if number % HORIZON == 0:
            seen = reference.begin(start_state(goals.start(generator.random(START_DRAWS))))
        state, action = reference.row["state"].copy(), generator.uniform(-1, 1, action_size(goals))
        after = reference.step(action)
        steps.append((state, seen, action, told[-1], after))
        seen = after
    robot.control_joints = control
    return [np.array(part, np.float64) for part in zip(*steps, strict=True)]


def start_of(states, goal_size=3):
    """PyBullet's states for MuJoCo, where a quaternion begins with w and a body turns in its own frame."""
    joints = len(NEUTRAL)
    angles, speeds, place, turn, velocity, spin = np.split(states, np.cumsum([joints, joints, 3, 4, 3]), 1)
    own_spin = Rotation.from_quat(turn).inv().apply(spin)
    qpos = np.concatenate([angles, place, turn[:, [3, 0, 1, 2]]], 1)
    return Start(
        qpos, np.concatenate([speeds, velocity, own_spin], 1), np.full((len(states), goal_size), AWAY)
    )


def put(task, states, autoreset=False):
    engine = task.vector(len(states), autoreset=autoreset)
    engine.put(start_of(states, task.goals.goal_size))
    return engine


def random_angles(count):
    low, high = np.array([link.limits for link in LINKS]).T
    return np.random.default_rng(0).uniform(low, high, (count, JOINTS))


def thing(task):
    """Where an observation has the object's place."""
    first = [number.name for number in table(task.goals)].index("object x")
    return slice(first, first + 3)


def distance(one, other):
    return np.linalg.norm(one - other, axis=-1)


def test_the_hand_is_where_pybullet_has_it(arm):
    client, panda = arm
    angles, theirs = random_angles(300), []
    for row in angles:
        for joint, angle in enumerate(row):
            client.resetJointState(panda, joint, angle)
        theirs.append(client.getLinkState(panda, HAND_LINK, computeForwardKinematics=1)[0])
    assert distance(hand_place(angles), np.array(theirs)).max() < 1e-3


def test_kinematics_and_simulation_agree_on_the_hand():
    angles = random_angles(300)
    states = np.tile(start_state(np.zeros(3)), (300, 1))
    states[:, :JOINTS] = angles
    assert distance(put(PUSH, states).moment.readings[:, :3], hand_place(angles)).max() < 1e-5


@each_full_task
def test_motors_are_told_what_panda_gym_tells_them(name):
    states, seen, actions, targets, _ = recorded(name)
    engine = put(FULL[name], states)
    ours = FULL[name].control(engine.moment, actions)
    error = distance(hand_place(ours[:, :JOINTS]), hand_place(targets[:, :JOINTS]))
    assert np.median(error) < 0.4e-3
    assert np.percentile(error, 99) < 1.5e-3
    # Fingers are told more than they can do: motors stop at their joints' limits.
    np.testing.assert_allclose(ours[:, JOINTS:], targets[:, JOINTS:], atol=1e-6)
    asked = seen[:, :3] + REACH * actions[:, :3]
    asked[:, 2] = np.maximum(asked[:, 2], 0)
    np.testing.assert_allclose(joint_targets(states[:, :JOINTS], asked), ours[:, :JOINTS], atol=2e-3)


@each_full_task
def test_a_step_moves_the_hand_as_panda_gym_does(name):
    """From the same state by the same action, whatever is touched. The hand moves by about 30 mm."""
    states, before, actions, _, after = recorded(name)
    observation = put(FULL[name], states).step(actions)[0]["observation"]
    error = 1e3 * distance(observation[:, :3], after[:, :3])
    assert np.median(error) < 2
    assert np.percentile(error, 99) < 10
    bias = 1e3 * (observation[:, :3] - after[:, :3]).mean(0)
    assert abs(bias).max() < 0.5
    assert abs(observation[:, 3:6] - after[:, 3:6]).mean() < 0.1  # of 0.4 m/s
    assert np.median(distance(before[:, :3], after[:, :3])) > 0.02


@pytest.mark.parametrize("name", ["push", "slide"])
def test_a_push_moves_the_object_as_far_as_in_panda_gym(name):
    """Not in each step, since contacts are chaotic, but on the whole."""
    task, generator = FULL[name], np.random.default_rng(1)
    states, _, _, _, _ = recorded(name)
    count = 120
    hands = hand_place(states[:count, :JOINTS])
    # The object is put where the hand will strike it.
    heading = generator.uniform(-np.pi, np.pi, count)
    towards = np.stack([np.cos(heading), np.sin(heading)], 1)
    struck = states[:count].copy()
    struck[:, 18:20], struck[:, 20] = hands[:, :2] + 0.055 * towards, 0.02 if name == "push" else 0.015
    struck[:, 21:] = [0, 0, 0, 1, *np.zeros(6)]
    struck, towards = struck[hands[:, 2] < 0.03], towards[hands[:, 2] < 0.03]
    actions = np.concatenate([towards, np.zeros((len(towards), 1))], 1)
    engine, reference = put(task, struck), Reference(name)
    ours, theirs = [], []
    for _ in range(3):
        ours.append(engine.step(actions)[0]["achieved_goal"])
    for state, action in zip(struck, actions, strict=True):
        reference.begin(state)
        theirs.append([reference.step(action)[thing(task)] for _ in range(3)])
    ways = [distance(place, struck[:, 18:21]) for place in (ours[-1], np.array(theirs)[:, -1])]
    assert (ways[1] > 0.005).sum() > 20
    assert ways[0].mean() == pytest.approx(ways[1].mean(), rel=0.15)
    assert np.median(abs(ways[0] - ways[1])) < 0.01


@each_full_task
def test_the_same_state_is_observed_as_panda_gym_does(name):
    """All numbers, of any pose and motion; and each is what the table says."""
    task, generator, count = FULL[name], np.random.default_rng(2), 30
    states = np.tile(start_state(np.zeros(3)), (count, 1))
    states[:, :JOINTS] += generator.normal(0, 0.1, (count, JOINTS))
    states[:, JOINTS:9] = generator.uniform(0, 0.04, (count, 2))
    states[:, 9:18] = generator.normal(0, 0.3, (count, 9)) * ([1] * JOINTS + [0, 0])
    states[:, 18:21] = generator.uniform([-0.15, -0.15, 0.1], [0.15, 0.15, 0.3], (count, 3))
    states[:, 21:25] = Rotation.random(count, rng=generator).as_quat()
    states[:, 25:] = generator.normal(0, 1, (count, 6))
    reference = Reference(name)
    theirs = np.array([reference.begin(state) for state in states])
    shown = task.observe(put(task, states).moment)
    assert shown["observation"].dtype == np.float32
    np.testing.assert_allclose(shown["observation"], theirs, atol=2e-5)
    if name == "flip":
        np.testing.assert_allclose(shown["achieved_goal"], states[:, 21:25], atol=1e-6)
    else:
        np.testing.assert_allclose(shown["achieved_goal"], states[:, 18:21], atol=1e-6)
    named = {number.name: place for place, number in enumerate(table(task.goals))}
    velocity = [named[f"object angular velocity {axis}"] for axis in "xyz"]
    np.testing.assert_allclose(shown["observation"][:, thing(task)], states[:, 18:21], atol=1e-6)
    np.testing.assert_allclose(shown["observation"][:, velocity], states[:, 28:], atol=1e-5)
    if name in WITH_GRIPPER:
        np.testing.assert_allclose(
            shown["observation"][:, named["fingers' width"]], states[:, 7:9].sum(1), atol=1e-6
        )


@each_full_task
def test_spaces_are_panda_gyms(name):
    theirs, task = simulation(name).env, FULL[name]
    assert task.observation_space == theirs.observation_space
    assert task.action_space == theirs.action_space
    assert task.action_space.dtype == theirs.action_space.dtype


@each_full_task
def test_episodes_start_as_panda_gyms_do(name):
    """From the same seeds, and again in the episodes that follow."""
    pytest.importorskip("panda_gym")
    reference = next(task for task in REFERENCES if task.name == f"panda-gym-{name}")
    theirs, ours = reference.vector(4), FULL[name].vector(4)
    try:
        for seed in (7, None):
            shown, expected = ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0]
            assert shown.keys() == expected.keys()
            for key, values in expected.items():
                np.testing.assert_allclose(shown[key], values, atol=1e-6)
    finally:
        theirs.close()


def test_angles_are_pybullets():
    """Also where the pitch is a right angle and nearly so."""
    pytest.importorskip("pybullet")
    with quiet():
        import pybullet
    generator = np.random.default_rng(0)
    anywhere = Rotation.random(300, rng=generator).as_quat()
    angles = generator.uniform(-np.pi, np.pi, (100, 3))
    angles[:, 1] = np.pi / 2 * generator.choice([-1, 1], 100) + generator.choice([0, 1e-4, 0.003, 0.01], 100)
    upright = Rotation.from_euler("xyz", angles).as_quat()
    still = np.array([[0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, -1]], np.float64)
    turns = np.concatenate([anywhere, upright, still])
    theirs = np.array([pybullet.getEulerFromQuaternion(turn) for turn in turns])
    np.testing.assert_allclose(np.exp(1j * _euler_angles(turns)), np.exp(1j * theirs), atol=1e-6)
    assert (abs(_euler_angles(turns) - theirs) < 1e-6).mean() > 0.99  # but for π and -π, which are the same


# How they move


@pytest.fixture
def lifted():
    """The heights to which a script lifts the cube, after each of its steps."""
    engine = PICK.vector(16, autoreset=False)
    shown, _ = engine.reset(seed=0)
    engine.put(Start(engine.moment.qpos, engine.moment.qvel, np.full((16, 3), AWAY)))
    seen = [shown["observation"]]
    for step in range(HORIZON):
        hand, cube = seen[-1][:, :3], seen[-1][:, 7:10]
        if step < 12:  # go above it
            towards, fingers = cube + [0, 0, 0.08] - hand, 1
        elif step < 24:  # go down
            towards, fingers = cube * [1, 1, 0] + [0, 0, 0.015] - hand, 1
        else:  # close, and go up
            towards, fingers = np.tile([0, 0, 0.0 if step < 30 else 0.015], (16, 1)), -1
        action = np.concatenate([towards / REACH, np.full((16, 1), fingers)], 1)
        seen.append(engine.step(action)[0]["observation"])
    return np.array(seen, np.float64)


def test_the_hand_grips_the_cube_and_lifts_it(lifted):
    open_wide, closed, end = lifted[24], lifted[30], lifted[-1]
    assert (open_wide[:, 6] > 0.075).all()
    assert (abs(closed[:, 6] - 0.04) < 0.01).all()  # as wide as the cube
    assert (closed[:, 9] < 0.03).all()  # still on the table
    assert (end[:, 9] > 0.2).all()
    assert (end[:, 2] > 0.2).all()


def test_what_is_gripped_does_not_slip(lifted):
    held = (lifted[:, :, 7:10] - lifted[:, :, :3])[32:]
    assert np.median(distance(held[-1], held[0])) < 0.003
    assert distance(held[-1], held[0]).max() < 0.01
    turned = abs(lifted[-1][:, 10:13])
    assert (np.minimum(turned, abs(turned - np.pi)) < 0.1).all()


@pytest.mark.parametrize(("task", "friction", "height"), [(PUSH, 0.25, 0.02), (SLIDE, 0.02, 0.015)])
def test_what_slides_is_stopped_by_friction_and_air(task, friction, height):
    """As Coulomb's law says, and a little air; to half a millimetre, below which panda-gym's bodies bounce."""
    speeds = np.array([0.1, 0.3, 0.6, 1.0])
    states = np.tile(start_state(np.array([-0.45, 0.2, height])), (4, 1))
    states[:, 25] = speeds
    engine = put(task, states)
    for _ in range(25):
        observation = engine.step(np.zeros((4, 3)))[0]["observation"]
    seconds, way, speed = 1e-4, np.zeros(4), speeds.copy()
    for _ in range(10_000):
        speed = np.maximum(speed - seconds * (friction * 9.81 + 0.04 * speed * (1 + speed)), 0)
        way += seconds * speed
    np.testing.assert_allclose(observation[:, 6] + 0.45, way, rtol=0.02, atol=0.0015)
    np.testing.assert_allclose(observation[:, 7], 0.2, atol=0.001)
    np.testing.assert_allclose(observation[:, 8], height, atol=0.0003)
    assert abs(observation[:, 9:11]).max() < 0.01  # it lies flat


def test_a_hand_that_is_told_to_stay_stays():
    engine = PUSH.vector(32, autoreset=False)
    engine.reset(seed=0)
    played(engine, 15)
    for _ in range(10):
        observation = engine.step(np.zeros((32, 3)))[0]["observation"]
    for _ in range(10):
        later = engine.step(np.zeros((32, 3)))[0]["observation"]
    assert np.median(distance(later[:, :3], observation[:, :3])) < 0.002


def test_random_actions_sink_the_hand_and_touch_the_object_as_often_as_in_panda_gym():
    """There, of 1,280 episodes: these heights, and the object moves by more than 1 mm in 4.8% of steps."""
    engine = PUSH.vector(256, autoreset=False)
    engine.reset(seed=0)
    observation, _, terminated, _ = played(engine, HORIZON)
    heights = observation["observation"][..., 2][~terminated]
    expected = [0.0047, 0.0119, 0.0327, 0.0900, 0.2030]
    np.testing.assert_allclose(np.percentile(heights, [5, 25, 50, 75, 95]), expected, rtol=0.2)
    places = observation["achieved_goal"]
    moved = (distance(places[1:], places[:-1]) > 0.001)[~terminated[1:]]
    assert 0.033 < moved.mean() < 0.07


def test_blocked_fingers_stay_closed_and_others_do_not():
    for name, task in FULL.items():
        engine = task.vector(32)
        engine.reset(seed=0)
        assert engine.single_action_space.shape == (4 if name in WITH_GRIPPER else 3,)
        widths = []
        for _ in range(20):
            played(engine, 1)
            widths.append(engine.moment.qpos[:, JOINTS : JOINTS + 2].sum(1))
        if name in WITH_GRIPPER:
            assert np.max(widths) > 0.07
            assert np.std(widths) > 0.015
        else:
            assert np.percentile(np.abs(widths), 95) < 0.003


def test_actions_beyond_their_bounds_count_as_the_bounds():
    one, other = PICK.vector(3), PICK.vector(3)
    action = np.array([[3, -0.4, 1, -7], [0.2, -1.5, -20, 0.5], [-1.1, 1.1, 0, 1.1]])
    for engine in (one, other):
        engine.reset(seed=0)
    for _ in range(3):
        shown, expected = one.step(action)[0], other.step(np.clip(action, -1, 1))[0]
        np.testing.assert_array_equal(shown["observation"], expected["observation"])


def test_the_hand_is_never_sent_below_the_table():
    engine = PUSH.vector(1)
    engine.reset(seed=0)
    while engine.step(np.array([[0, 0, -1.0]]))[0]["observation"][0, 2] > 0.03:
        pass
    height = PUSH.observe(engine.moment)["observation"][0, 2]
    told = [
        PUSH.control(engine.moment, np.array([[0.3, 0, z]]))
        for z in (-1.0, -1.2 * height / REACH, -height / REACH)
    ]
    np.testing.assert_array_equal(told[0], told[1])
    np.testing.assert_allclose(told[0], told[2], atol=1e-5)
    assert abs(told[0] - PUSH.control(engine.moment, np.array([[0.3, 0, 0]]))).max() > 0.01


# Episodes


def played(engine, steps, seed=7):
    """What a run under random actions shows: observations, rewards and ends."""
    generator, shown = np.random.default_rng(seed), []
    for _ in range(steps):
        action = generator.uniform(-1, 1, (max(64, engine.num_envs), *engine.single_action_space.shape))
        shown.append(engine.step(action[: engine.num_envs])[:4])
    observation, *others = zip(*shown, strict=True)
    keyed = {key: np.array([row[key] for row in observation]) for key in observation[0]}
    return [keyed, *(np.array(part) for part in others)]


def assert_same(one, other, rows=slice(None)):
    for key, values in one[0].items():
        np.testing.assert_array_equal(values[:, rows], other[0][key], err_msg=key)
    for ours, theirs in zip(one[1:], other[1:], strict=True):
        np.testing.assert_array_equal(ours[:, rows], theirs)


@each_task
def test_a_row_depends_on_its_seed_alone(task):
    """Neither on the number of threads, nor on the rows beside it; through the ends of episodes."""
    many, few, alone = task.vector(21, threads=4), task.vector(21, threads=1), task.vector(2)
    for engine in (many, few, alone):
        engine.reset(seed=3)
    runs = [played(engine, 55) for engine in (many, few, alone)]
    assert_same(runs[0], runs[1])
    assert_same(runs[0], runs[2], slice(2))
    assert runs[0][3].any()


def test_other_seeds_are_other_episodes():
    engine = PUSH.vector(2)
    first, _ = engine.reset(seed=[5, 6])
    again, _ = engine.reset(seed=[6, 5])
    for key in ("achieved_goal", "desired_goal"):
        np.testing.assert_array_equal(first[key], again[key][::-1])
        assert (first[key][0] != first[key][1]).any()


@each_task
def test_a_saved_engine_goes_on_in_the_middle_of_an_episode(task):
    first, second = task.vector(3), task.vector(3)
    first.reset(seed=1)
    played(first, 20)
    state = first.state()
    second.load_state(state)
    assert_same(played(first, 40, seed=8), played(second, 40, seed=8))
    first.load_state(state)  # which going on did not change
    second.load_state(state)
    assert_same(played(first, 5), played(second, 5))


def test_what_is_restored_moves_as_it_did():
    """With the joints, which are not observed; and with another goal, if that is asked."""
    engine, other = PICK.vector(4, autoreset=False), PICK.vector(4, autoreset=False)
    engine.reset(seed=0)
    played(engine, 10)
    moment = engine.moment
    shown = PICK.observe(moment)
    other.restore(shown | {"desired_goal": np.full((4, 3), AWAY)}, {"state": PICK.state(moment)})
    action = np.random.default_rng(0).uniform(-1, 1, (4, 4))
    following, expected = other.step(action)[0], engine.step(action)[0]
    np.testing.assert_array_equal(following["observation"], expected["observation"])
    assert (following["desired_goal"] == AWAY).all()
    assert (expected["desired_goal"] != AWAY).all()
    with pytest.raises(UserError, match="state"):
        other.restore(shown)


@each_task
def test_success_ends_an_episode_and_costs_nothing(task):
    engine = task.vector(3, autoreset=False)
    shown, _ = engine.reset(seed=0)
    goal = shown["achieved_goal"].astype(np.float64)
    away = np.array([1.0, 0, 0, 0]) if len(goal[0]) == 4 else np.full(3, AWAY)
    goal[1] = away
    engine.put(Start(engine.moment.qpos, engine.moment.qvel, goal))
    still = np.zeros(engine.action_space.shape)
    shown, reward, terminated, truncated, infos = engine.step(still)
    np.testing.assert_array_equal(terminated, [True, False, True])
    np.testing.assert_array_equal(infos["is_success"], terminated)
    np.testing.assert_array_equal(reward, [0, -1, 0])
    assert not truncated.any()
    np.testing.assert_array_equal(shown["desired_goal"], goal.astype(np.float32))
    for _ in range(2, HORIZON):
        again, reward, terminated, truncated, _ = engine.step(still + 1)
        np.testing.assert_array_equal(reward, [0, -1, 0])
        assert not truncated.any()
    again, reward, terminated, truncated, _ = engine.step(still + 1)
    np.testing.assert_array_equal(terminated, [True, False, True])
    np.testing.assert_array_equal(truncated, [False, True, False])
    for key, values in shown.items():  # what is over stands still
        np.testing.assert_array_equal(again[key][[0, 2]], values[[0, 2]])
    assert (again["observation"][1] != shown["observation"][1]).any()
    np.testing.assert_array_equal(engine.step(still)[1], 0)


def test_the_true_final_observation_is_kept():
    auto, manual = PUSH.vector(40), PUSH.vector(40, autoreset=False)
    for engine in (auto, manual):
        engine.reset(seed=0)
    over, successes, generator = np.zeros(40, bool), 0, np.random.default_rng(0)
    for step in range(HORIZON):
        action = generator.uniform(-1, 1, (40, 3))
        shown, _, terminated, truncated, infos = auto.step(action)
        final, _, ended, stopped, _ = manual.step(action)
        now = (ended | stopped) & ~over
        np.testing.assert_array_equal((terminated | truncated)[~over], now[~over])
        if now.any():
            assert infos["_final_obs"][now].all()
            for key, values in final.items():
                np.testing.assert_array_equal(infos["final_obs"][key][now], values[now])
            # A new episode has begun, with the hand where all begin.
            np.testing.assert_allclose(
                shown["observation"][now][:, :3],
                hand_place(np.array([NEUTRAL[:7]]))[[0] * now.sum()],
                atol=1e-5,
            )
            assert (shown["desired_goal"][now] != final["desired_goal"][now]).any(1).all()
        successes += (ended & now).sum()
        over |= now
        assert over.all() == (step == HORIZON - 1)
    assert 0 < successes < 40


@each_full_task
def test_starts_and_goals_are_spread_as_the_task_says(name):
    task, goals = FULL[name], GOAL_TASKS[name]
    starts = [task.start(np.random.default_rng(seed)) for seed in range(600)]
    places, wanted = (
        np.array([start.qpos[9:12] for start in starts]),
        np.array([start.goal for start in starts]),
    )
    for values in (places[:, 0], places[:, 1]):
        assert kstest(values, "uniform", (-0.15, 0.3)).pvalue > 1e-3
    assert (places[:, 2] == goals.start_height).all()
    assert all((start.qvel == 0).all() for start in starts)
    if name == "flip":
        np.testing.assert_allclose(np.linalg.norm(wanted, axis=1), 1)
        for values in wanted.T:  # each coordinate of a uniform quaternion
            assert (
                kstest(values, lambda x: 0.5 + (np.arcsin(x) + x * np.sqrt(1 - x**2)) / np.pi).pvalue > 1e-3
            )
    else:
        for axis in range(2):
            assert kstest(wanted[:, axis], "uniform", (goals.low[axis], 0.3)).pvalue > 1e-3
        on_table = wanted[:, 2] == goals.low[2]
        assert on_table.mean() == pytest.approx(0.3 if name == "pick-and-place" else 1, abs=0.06)
        assert wanted[:, 2].max() <= goals.high[2]


# As others see them


IDS = [spec for spec in gymnasium.registry if spec.startswith("augury/Panda") and "Gym" not in spec]


def test_every_task_is_registered():
    assert {"augury/PandaPush-v0", "augury/PandaPickAndPlace-v0", "augury/PandaFlipQuadrant-v0"} < set(IDS)
    assert len(IDS) == len(PANDA_TASKS)


@pytest.mark.parametrize("identifier", IDS)
def test_gymnasium_finds_no_fault(identifier):
    environment = gymnasium.make(identifier)
    check_env(environment.unwrapped, skip_render_check=True)
    environment.close()


def test_single_and_vector_view_agree_and_gymnasium_has_the_time_limit():
    single, engine = gymnasium.make("augury/PandaPush-v0"), PUSH.vector(1, autoreset=False)
    observation, info = single.reset(seed=5)
    rows, _ = engine.reset(seed=5)
    assert info == {"is_success": False}
    generator = np.random.default_rng(0)
    for step in range(1, HORIZON + 1):
        for key, values in rows.items():
            np.testing.assert_array_equal(observation[key], values[0])
        action = generator.uniform(-1, 1, 3).astype(np.float32)
        observation, reward, terminated, truncated, info = single.step(action)
        rows, rewards, ends, _, infos = engine.step(action[None])
        assert (reward, terminated, info["is_success"]) == (rewards[0], ends[0], infos["is_success"][0])
        assert truncated == (step == HORIZON)
        assert not terminated
    single.close()


@each_full_task
def test_rewards_of_many_are_the_rewards_of_each(name):
    environment = gymnasium.make(FULL[name].name.title().replace("-", "").join(["augury/", "-v0"])).unwrapped
    engine = FULL[name].vector(64)
    engine.reset(seed=0)
    shown, reward, terminated, _ = played(engine, 20)
    pairs = shown["achieved_goal"][~terminated], shown["desired_goal"][~terminated]  # others show a new start
    np.testing.assert_array_equal(environment.compute_reward(*pairs, {}), reward[~terminated])
    np.testing.assert_array_equal(environment.compute_terminated(*pairs, {}), terminated[~terminated])
    reached = environment.compute_reward(pairs[0], pairs[0].copy(), [{}] * len(pairs[0]))
    assert reached.shape == (len(pairs[0]),)
    assert (reached == 0).all()
    for achieved, desired in zip(*(part[:5] for part in pairs), strict=True):
        assert environment.compute_reward(achieved, desired, {}) == -1
        assert environment.compute_reward(achieved, achieved, {}) == 0
        assert environment.compute_terminated(achieved, achieved)
    environment.close()


def test_sb3_learns_from_it_with_hindsight():
    sb3 = pytest.importorskip("stable_baselines3")
    environment = gymnasium.make("augury/PandaPush-v0")
    model = sb3.DDPG(
        "MultiInputPolicy",
        environment,
        replay_buffer_class=sb3.HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4, "goal_selection_strategy": "future"},
        policy_kwargs={"net_arch": [8]},
        learning_starts=60,
        buffer_size=200,
        batch_size=64,
        seed=0,
        device="cpu",
    )
    model.learn(120)
    batch = model.replay_buffer.sample(200)
    reward, desired = batch.rewards.numpy()[:, 0], batch.next_observations["desired_goal"].numpy()
    np.testing.assert_array_equal(
        reward, PUSH.goals.reward(batch.next_observations["achieved_goal"].numpy(), desired)
    )
    assert len(np.unique(desired, axis=0)) > 3  # goals of later steps too
    assert set(reward) == {0, -1}
    environment.close()


def has_gl():
    try:
        Camera(PUSH.scene).close()
    except UserError:
        return False
    return True


@pytest.mark.skipif(not has_gl(), reason="no OpenGL on this machine")
@each_full_task
def test_a_picture_shows_arm_object_and_goal(name):
    identifier = f"augury/{FULL[name].name.title().replace('-', '')}-v0"
    environment = gymnasium.make(identifier, render_mode="rgb_array")
    environment.reset(seed=0)
    engine = environment.unwrapped.engine
    now = engine.moment
    goals = [[0, 0, 0, 1], [0.5, 0.5, 0.5, 0.5]] if name == "flip" else [[-0.1, -0.1, 0.02], [0.1, 0.1, 0.02]]
    pictures = []
    for goal in goals:
        engine.put(Start(now.qpos, now.qvel, np.array([goal])))
        pictures.append(environment.render().astype(float))
    assert pictures[0].shape == (360, 480, 3)
    assert pictures[0].std() > 10
    differs = abs(pictures[0] - pictures[1]).max(-1) > 10
    assert 30 < differs.sum() < 0.05 * differs.size
    environment.close()
