"""Goal2D: the compiled environment, Gymnasium's, and that they are one."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_for_sb3

from augury.envs import goal2d
from augury.envs.goal2d import Goal2D
from augury.envs.gym import Goal2DEnv

pytestmark = pytest.mark.usefixtures("strict_dtypes")

IDS = ("augury/Goal2D-v0", "augury/Goal2DQuadrant-v0")


def random_actions(count: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.uniform(goal2d.ACTION_LOW, goal2d.ACTION_HIGH, (count, 2)).astype(np.float32)


def test_a_step_moves_by_the_action_and_keeps_the_goal():
    observation = np.array([0.2, -0.3, 0.9, 0.9], np.float32)
    following, reward, terminated = goal2d.step(observation, np.array([0.5, np.pi / 2], np.float32))
    np.testing.assert_allclose(following, [0.2, -0.3 + 0.025, 0.9, 0.9], atol=1e-7)
    assert reward == np.float32(-0.1)
    assert not terminated


def test_reaching_the_goal_pays_one_and_terminates():
    observation = np.array([0.0, 0.0, 0.09, 0.0], np.float32)
    _, reward, terminated = goal2d.step(observation, np.array([1.0, 0.0], np.float32))
    assert reward == 1
    assert terminated


def test_walls_stop_the_agent():
    observation = np.array([1.04, -1.05, 0.0, 0.0], np.float32)
    following, _, _ = goal2d.step(observation, np.array([1.0, 0.0], np.float32))
    assert following[0] == np.float32(1.05)


@pytest.mark.parametrize("goals", ["all", "quadrant"])
def test_starts_and_goals_are_uniform_and_apart(goals):
    observations = np.asarray(jax.vmap(Goal2D(goals).reset)(jax.random.split(jax.random.key(0), 200_000)))
    start, goal = observations[:, :2], observations[:, 2:]
    assert np.linalg.norm(start - goal, axis=1).min() >= goal2d.GOAL_RADIUS
    for points, low in ((start, -1.0), (goal, goal2d.GOAL_LOW[goals])):
        assert points.min() >= low
        assert points.max() <= 1
        shares, _, _ = np.histogram2d(*points.T, bins=4, range=[[low, 1], [low, 1]])
        np.testing.assert_allclose(shares / len(points), 1 / 16, atol=0.003)


def test_far_from_goal_takes_the_first_candidate_outside_and_never_one_inside():
    goal = jnp.array([0.5, 0.5])
    inside, outside = jnp.array([0.51, 0.5]), jnp.array([-0.2, 0.3])
    chosen = goal2d.far_from_goal(jnp.stack([inside, outside, goal]), goal)
    assert (chosen == outside).all()
    assert not goal2d.reached(goal2d.far_from_goal(jnp.stack([inside, goal, inside]), goal), goal)


@pytest.mark.parametrize("name", IDS)
@pytest.mark.filterwarnings("ignore:.*symmetric and normalized space")  # the paper's actions are not
def test_gymnasium_and_sb3_accept_the_environment(name):
    check_env(gymnasium.make(name, render_mode="rgb_array").unwrapped)
    check_env_for_sb3(gymnasium.make(name), warn=False)


@pytest.mark.parametrize("name", IDS)
def test_the_seed_decides_the_episode(name):
    def starts(seed: int) -> np.ndarray:
        environment = gymnasium.make(name)
        first, _ = environment.reset(seed=seed)
        return np.stack([first, *(environment.reset()[0] for _ in range(3))])

    assert (starts(3) == starts(3)).all()
    assert (starts(3) != starts(4)).any()


def test_gymnasium_and_compiled_environment_agree_on_the_same_actions():
    environment = gymnasium.make(IDS[0])
    compiled, step = Goal2D(), jax.jit(Goal2D().step)
    state, _ = environment.reset(seed=0)
    ended = 0
    for action in random_actions(5_000):
        following, reward, terminated, truncated, _ = environment.step(action)
        expected, expected_reward, expected_terminated = step(jax.random.key(0), jnp.asarray(state), action)
        # NumPy's and XLA's cosine differ in the last bit, and nothing else does.
        np.testing.assert_allclose(following, expected, atol=2.5e-7, rtol=0)
        assert reward == expected_reward
        assert terminated == expected_terminated
        state = following
        if terminated or truncated:
            ended += 1
            state, _ = environment.reset()
    assert ended >= 5_000 // compiled.horizon


def test_gymnasium_truncates_after_a_hundred_steps():
    environment = gymnasium.make(IDS[0])
    environment.reset(seed=0, options={"observation": [-1, -1, 1, 1]})
    truncations = [environment.step(np.zeros(2, np.float32))[3] for _ in range(100)]
    assert truncations == [False] * 99 + [True]


def test_the_picture_shows_agent_and_goal_where_they_are():
    environment = gymnasium.make(IDS[0], render_mode="rgb_array")
    environment.reset(options={"observation": [-0.5, 0.5, 0.5, -0.5]})
    image = environment.render()
    half = image.shape[0] // 2
    blue, green = (31, 119, 180), (44, 160, 44)
    assert (image[:half, :half] == blue).all(-1).any()  # agent: top left
    assert (image[half:, half:] == green).all(-1).any()  # goal: bottom right
    assert not (image[half:, :half] == blue).all(-1).any()


def test_an_unknown_render_mode_is_refused():
    with pytest.raises(ValueError, match="render_mode must be"):
        Goal2DEnv(render_mode="human")
