"""panda-gym as the reference: its own motions, from seeds alone, and many at once."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from augury.envs.panda.goals import GOAL_TASKS, task_of
from augury.envs.panda.reference.panda_gym import REFERENCES, PandaGym, PandaGymEnv
from augury.envs.panda.reference.simulation import NEUTRAL, quiet
from augury.errors import UserError
from augury.transition import Transition

pytestmark = pytest.mark.slow

pytest.importorskip("panda_gym")

TASKS = {reference.name: reference for reference in REFERENCES}
PUSH = TASKS["panda-gym-push"]

tasks = pytest.mark.parametrize("task", GOAL_TASKS)


@pytest.fixture
def made():
    """Environments and engines that are closed after the test."""
    living = []

    def keep(environment):
        living.append(environment)
        return environment

    yield keep
    for environment in living:
        environment.close()


def chase(observation, rng):
    """An action towards the object, mostly: what random actions rarely do is touch it."""
    numbers = observation["observation"]
    fingers = int(len(numbers) > 18)
    towards = 10 * (numbers[6 + fingers : 9 + fingers] - numbers[:3])
    action = np.concatenate([towards, rng.uniform(-1, 1, fingers)]) + rng.normal(0, 0.3, 3 + fingers)
    return np.clip(action, -1, 1).astype(np.float32)


def played(env, seed, steps=50):
    """Everything observed in an episode."""
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    observed = [np.concatenate([observation[key] for key in sorted(observation)])]
    for _ in range(steps):
        observation, reward, terminated, truncated, info = env.step(chase(observation, rng))
        seen = [observation[key] for key in sorted(observation)]
        observed.append(np.concatenate([*seen, [reward, terminated, truncated], info["state"]]))
        if terminated or truncated:
            break
    return observed


def disturb(env, rng):
    """Long and violent pasts, left in the middle of a touch or with the object off the table."""
    for _ in range(2):
        observation, _ = env.reset()
        for _ in range(rng.integers(5, 50)):
            observation, _, terminated, truncated, _ = env.step(chase(observation, rng))
            if terminated or truncated:
                break


@tasks
def test_an_episode_follows_from_its_seed_whatever_was_before(task, made):
    fresh = made(PandaGymEnv(task))
    expected = [played(fresh, seed) for seed in range(3)]
    used, rng = made(PandaGymEnv(task)), np.random.default_rng(1)
    for seed in (2, 0, 1):
        disturb(used, rng)
        again = played(used, seed)
        assert len(again) == len(expected[seed])
        for one, other in zip(again, expected[seed], strict=True):
            np.testing.assert_array_equal(one, other)


@tasks
def test_later_episodes_follow_from_the_seed_and_their_number(task, made):
    def starts(steps):
        env = made(PandaGymEnv(task))
        env.reset(seed=5)
        observed = []
        for _ in range(3):
            for _ in range(steps):
                env.step(np.ones(env.action_space.shape))
            observation, _ = env.reset()
            observed.append(np.concatenate(list(observation.values())))
        return np.array(observed)

    one, other = starts(0), starts(3)
    np.testing.assert_array_equal(one, other)
    assert len(np.unique(one, axis=0)) == 3


@tasks
def test_it_is_panda_gym_step_for_step(task, made, monkeypatch):
    """From the same seed, until the end of the episode.

    panda-gym is made anew, since it does not forget, and is told to solve contacts in a fixed order.
    """
    import gymnasium

    with quiet():
        import panda_gym.pybullet as simulators

    theirs_draws = simulators.PyBullet.create_box
    monkeypatch.setattr(  # so that Flip starts
        simulators.PyBullet,
        "create_box",
        lambda self, *args, texture=None, **options: theirs_draws(self, *args, **options),
    )
    name = {"push": "Push", "slide": "Slide", "pick-and-place": "PickAndPlace", "flip": "Flip"}[task]
    with quiet():
        theirs = made(gymnasium.make(f"Panda{name}-v3"))
    ours, goals, rng = made(PandaGymEnv(task)), GOAL_TASKS[task], np.random.default_rng(0)
    inner = theirs.unwrapped.task
    inner.sim.physics_client.setPhysicsEngineParameter(deterministicOverlappingPairs=1)
    if task == "flip":  # whose goals ignore the seed
        inner._sample_goal = lambda: goals.goal(inner.np_random.random(goals.draws))
    disturb(ours, rng)
    observation, _ = ours.reset(seed=11)
    expected, _ = theirs.reset(seed=11)
    moved = False
    for _ in range(50):
        for key in expected:
            np.testing.assert_array_equal(observation[key], expected[key])
        before = observation["achieved_goal"]
        action = chase(observation, rng)
        observation, reward, terminated, truncated, info = ours.step(action)
        expected, their_reward, their_end, their_limit, their_info = theirs.step(action)
        assert (reward, terminated) == (their_reward, their_end)
        assert info["is_success"] == their_info["is_success"]
        assert truncated == (their_limit and not their_end)
        moved |= np.abs(observation["achieved_goal"] - before).max() > 1e-3
        if terminated:
            break
    assert moved
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    np.testing.assert_array_equal(theirs.unwrapped.robot.neutral_joint_values, NEUTRAL)


@tasks
def test_rewards_of_many_are_panda_gyms_rewards_of_each(task, made):
    env = made(PandaGymEnv(task))
    theirs, goals, rng = env._simulation._simulation.env, env.goals, np.random.default_rng(0)
    desired = goals.goal(rng.random((400, goals.draws))).astype(np.float32)
    achieved = goals.near(rng.random((400, 3)), desired)
    achieved[::2] = goals.goal(rng.random((200, goals.draws)))
    achieved = achieved.astype(np.float32)
    single = [theirs.compute_reward(*pair, {}) for pair in zip(achieved, desired, strict=True)]
    reached = [theirs.task.is_success(*pair) for pair in zip(achieved, desired, strict=True)]
    assert 150 < sum(reached) < 350
    np.testing.assert_array_equal(env.compute_reward(achieved, desired), single)
    np.testing.assert_array_equal(env.compute_terminated(achieved, desired), reached)
    following = {"achieved_goal": jnp.asarray(achieved), "desired_goal": jnp.asarray(desired)}
    transition = Transition({}, None, None, following, None, None, {})
    np.testing.assert_array_equal(PandaGym(goals).succeeded(transition), reached)


def test_a_part_of_the_goals_can_be_set(made):
    """Flip's are turned about x alone; the others' lie in the upper half of x and y, on the table."""
    for task, goals in GOAL_TASKS.items():
        env = made(PandaGymEnv(task, goals="quadrant"))
        desired = np.array([env.reset(seed=seed)[0]["desired_goal"] for seed in range(20)])
        assert len(np.unique(desired, axis=0)) == 20
        if task == "flip":
            assert not desired[:, 1:3].any()
            np.testing.assert_allclose(np.linalg.norm(desired, axis=1), 1, atol=1e-6)
        else:
            middle = (np.array(goals.low) + goals.high) / 2
            assert (desired[:, :2] >= middle[:2]).all()
            assert (desired[:, 2] == np.float32(goals.low[2])).all()


@tasks
def test_relabelled_rewards_and_ends_are_the_simulators(task, made):
    """The same action from the same state, with another goal: it moves the same, and reward and end agree."""
    env, again = made(PandaGymEnv(task)), made(PandaGymEnv(task))
    goals, rng = env.goals, np.random.default_rng(3)
    observation, _ = env.reset(seed=0)
    successes = 0
    for number in range(100):
        action = chase(observation, rng)
        following, _, terminated, truncated, info = env.step(action)
        achieved = following["achieved_goal"]
        goal = goals.near(rng.random(3), achieved) if number % 2 else goals.goal(rng.random(goals.draws))
        goal = goal.astype(np.float32)
        again.restore({**observation, "desired_goal": goal}, info)
        answer, reward, end, _, same = again.step(action)
        for key in ("observation", "achieved_goal"):
            np.testing.assert_array_equal(answer[key], following[key])
        np.testing.assert_array_equal(answer["desired_goal"], goal)
        np.testing.assert_array_equal(same["state"], info["state"])
        np.testing.assert_array_equal(same["history"], info["history"])
        assert reward == goals.reward(achieved, goal)
        assert end == goals.succeeded(achieved, goal)
        successes += end
        observation = env.reset()[0] if terminated or truncated else following
    assert 50 <= successes < 90


def test_what_is_restored_out_of_order_is_played_again(made):
    env, rng = made(PandaGymEnv()), np.random.default_rng(0)
    observation, _ = env.reset(seed=2)
    taken = []
    for _ in range(20):
        action = chase(observation, rng)
        following, _, _, _, info = env.step(action)
        taken.append((observation, action, following, info))
        observation = following
    for index in (19, 3, 12, 0):
        observation, action, following, info = taken[index]
        env.restore(observation, info)
        np.testing.assert_array_equal(env.step(action)[0]["observation"], following["observation"])


@tasks
def test_a_state_alone_restores_nearly(task, made):
    """The arm moves exactly as it did where it touches nothing; steps with contacts differ."""
    env, again, rng = made(PandaGymEnv(task)), made(PandaGymEnv(task)), np.random.default_rng(0)
    observation, _ = env.reset(seed=0)
    off = []
    for number in range(50):
        action = chase(observation, rng) if number % 2 else rng.uniform(-1, 1, env.action_space.shape)
        following, _, terminated, truncated, info = env.step(action)
        again.restore(observation, {"state": info["state"]})
        answer, _, _, _, same = again.step(action)
        np.testing.assert_allclose(same["state"], info["state"], rtol=0, atol=1e-12)
        off.append(np.abs(answer["observation"][:3] - following["observation"][:3]).max())
        observation = env.reset()[0] if terminated or truncated else following
    assert np.median(off) == 0
    assert max(off) < 0.02
    with pytest.raises(UserError, match="'history'"):
        env.restore(observation, {})


def test_gymnasium_finds_no_fault(made):
    check_env(made(PandaGymEnv("flip")), skip_render_check=True, skip_close_check=True)


def test_flip_can_be_seen_and_leaves_no_file(made, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    env = made(PandaGymEnv("flip", render_mode="rgb_array"))
    env.reset(seed=0)
    picture = env.render()
    assert picture.shape == (480, 720, 3)
    assert picture.std() > 10
    assert not list(tmp_path.iterdir())


def random_actions(engine, rng):
    return rng.uniform(-1, 1, engine.action_space.shape).astype(np.float32)


@tasks
def test_rows_are_single_environments(task, made):
    """Whatever is beside them, on however many cores, and through the ends of episodes."""
    reference = TASKS[f"panda-gym-{task}"]
    engine, rng = made(reference.vector(3, cores=2)), np.random.default_rng(0)
    singles = [made(PandaGymEnv(task)) for _ in range(3)]
    seeds = [7, 2**40, 9]
    observation, _ = engine.reset(seed=seeds)
    alone = [env.reset(seed=seed)[0] for env, seed in zip(singles, seeds, strict=True)]
    ends = 0
    for _ in range(53):
        for key in observation:
            assert observation[key].dtype == np.float32
            np.testing.assert_array_equal(observation[key], [own[key] for own in alone])
        action = random_actions(engine, rng)
        observation, reward, terminated, truncated, infos = engine.step(action)
        over = terminated | truncated
        assert over.any() == ("final_obs" in infos)
        for row, env in enumerate(singles):
            alone[row], *outcome, info = env.step(action[row])
            assert outcome == [reward[row], terminated[row], truncated[row]]
            assert info["is_success"] == infos["is_success"][row] == terminated[row]
            np.testing.assert_array_equal(info["state"], infos["state"][row])
            if over[row]:
                ends += 1
                for key, values in alone[row].items():
                    np.testing.assert_array_equal(infos["final_obs"][key][row], values)
                assert infos["_final_obs"][row]
                alone[row], _ = env.reset()
    assert ends >= 3


def test_without_autoreset_rows_that_ended_stand_still(made):
    engine, rng = made(PUSH.vector(6, autoreset=False)), np.random.default_rng(0)
    observation, _ = engine.reset(seed=list(range(6)))
    over, returns = np.zeros(6, bool), np.zeros(6)
    for number in range(52):
        before = observation
        observation, reward, terminated, truncated, infos = engine.step(random_actions(engine, rng))
        for key in observation:
            np.testing.assert_array_equal(observation[key][over], before[key][over])
        assert not reward[over].any()
        assert (terminated | truncated)[over].all()
        assert not (terminated & truncated).any()
        returns += reward
        over |= terminated | truncated
        assert "final_obs" not in infos
        assert over.all() == (number >= 49)
    assert (returns >= -50).all()
    assert truncated.any()
    engine.reset(options={"reset_mask": np.arange(6) == 2})
    _, reward, *_ = engine.step(random_actions(engine, rng))
    assert reward[2] == -1
    assert not np.delete(reward, 2).any()


@pytest.mark.parametrize("autoreset", [True, False])
def test_a_saved_engine_goes_on_in_the_middle_of_an_episode(autoreset, made):
    """In another engine with another past, and in the same one; while one runs, and after its end."""
    reference = TASKS["panda-gym-pick-and-place"]
    engine, rng = made(reference.vector(2, autoreset=autoreset)), np.random.default_rng(0)
    observation, _ = engine.reset(seed=[3, 4])
    for _ in range(20):
        actions = np.stack([chase({k: v[row] for k, v in observation.items()}, rng) for row in range(2)])
        observation, *_ = engine.step(actions)
    state = {name: values.copy() for name, values in engine.state().items()}
    following = [random_actions(engine, rng) for _ in range(35)]
    expected = [engine.step(action) for action in following]
    other = made(reference.vector(2, autoreset=autoreset))
    other.step(following[0])
    for who in (other, engine):
        who.load_state(state)
        for action, (observed, *outcome, infos) in zip(following, expected, strict=True):
            again, *answer, info = who.step(action)
            for key in observed:
                np.testing.assert_array_equal(again[key], observed[key])
            np.testing.assert_array_equal(answer, outcome)
            assert info.keys() == infos.keys()
            for key in ("state", "history"):
                if key in infos:
                    np.testing.assert_array_equal(info[key], infos[key])


def test_a_state_that_does_not_fit_is_refused(made):
    engine = made(PUSH.vector(2))
    state = engine.state()
    with pytest.raises(UserError, match="'goals'"):
        engine.load_state({**state, "goals": np.zeros((3, 3))})


def test_bad_requests_are_refused_in_one_line(made):
    engine = made(PUSH.vector(2))
    with pytest.raises(UserError, match=r"shape \(2, 3\)"):
        engine.step(np.zeros((2, 4)))
    with pytest.raises(UserError, match="finite"):
        engine.step(np.full((2, 3), np.nan))
    with pytest.raises(UserError, match="reset_mask"):
        engine.reset(options={"reset_mask": [1, 0]})
    with pytest.raises(UserError, match="at least 1"):
        PUSH.vector(0)
    with pytest.raises(UserError, match="push"):
        PandaGymEnv("pusg")


def processes_of(engine):
    """The server and the rows."""
    server = engine._simulations._server.pid
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return [server, *map(int, children)]


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


@linux
def test_processes_end_with_their_engine(made):
    engine = PUSH.vector(3)
    processes = processes_of(engine)
    assert len(processes) == 4
    for process in processes:
        os.kill(process, signal.SIGINT)  # a terminal sends Ctrl-C to all of them
    engine.step(np.zeros((3, 3)))
    engine.close()
    assert not any(is_alive(process) for process in processes)
    with pytest.raises(UserError, match="closed"):
        engine.step(np.zeros((3, 3)))


@linux
def test_an_interrupted_engine_leaves_nothing_behind(monkeypatch):
    engine = PUSH.vector(2)
    processes = processes_of(engine)

    class Interrupted:
        def read(self, size):
            raise KeyboardInterrupt

        def close(self):
            answers.close()

    answers = engine._simulations._server.stdout
    monkeypatch.setattr(engine._simulations._server, "stdout", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        engine.step(np.zeros((2, 3)))
    assert not any(is_alive(process) for process in processes)


@linux
def test_a_simulation_that_dies_is_an_error_and_no_wait(made):
    engine = PUSH.vector(2)
    processes = processes_of(engine)
    os.kill(processes[1], signal.SIGKILL)
    with pytest.raises(RuntimeError, match="ended"):
        engine.step(np.zeros((2, 3)))
    assert not any(is_alive(process) for process in processes)


def test_missing_packages_are_one_clear_line(monkeypatch):
    for name in ("panda_gym", "pybullet"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, None)
            for make in (PandaGymEnv, lambda: PUSH.vector(2)):
                with pytest.raises(UserError, match=r"pip install 'augury\[panda-gym\]'.* Python 3.11"):
                    make()


def test_names_are_known_without_pybullet_and_nothing_is_said():
    program = """
import sys
from augury.envs.panda.reference.panda_gym import REFERENCES, PandaGymEnv
assert not {"pybullet", "panda_gym"} & set(sys.modules)
print("before")
PandaGymEnv().close()
REFERENCES[0].vector(2).close()
print("after")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "before\nafter\n"
    assert done.stderr == ""


def test_what_others_write_meanwhile_is_not_lost(capfd):
    with quiet():
        print("from Python")
        os.write(1, b"argv[0]=--background_color_red=0.8\nfrom C\n")
        os.write(2, b"pybullet build time: Jan 29 2025\nan error\n")
    out, err = capfd.readouterr()
    assert sorted(out.splitlines()) == ["from C", "from Python"]
    assert err == "an error\n"


@pytest.mark.parametrize("reference", REFERENCES, ids=TASKS)
def test_what_is_said_of_a_task_fits_what_it_shows(reference):
    low, high = reference.observation_low, reference.observation_high
    sizes = {"push": (18, 3, 3), "slide": (18, 3, 3), "pick-and-place": (19, 3, 4), "flip": (20, 4, 4)}
    observation, goal, action = sizes[task_of(reference.name).name]
    for bound in (low, high):
        assert {key: len(values) for key, values in bound.items()} == {
            "observation": observation,
            "achieved_goal": goal,
            "desired_goal": goal,
        }
    assert all((low[key] < high[key]).all() for key in low)
    assert len(reference.action_low) == len(reference.action_high) == action
    assert reference.training["algorithm"] == "ddpg"
    assert reference.measure == "success"
    assert reference.horizon == 50
