"""A cause explains nearly all that is wrong and spoils nothing that is right; else errors are described."""

import gymnasium
import numpy as np

from augury.augmentations import from_numpy
from augury.verify import verify
from tests.verify.test_verify import MIRRORED, Spring, mirrored

SAMPLES = 200


class Tilted(Spring):
    """Its reward is where the mass is, so that a mirror must recompute it."""

    def step(self, action):
        observation, _, *others = super().step(action)
        return observation, float(observation[0]), *others


class Walled(Spring):
    """The mass stops at walls."""

    def step(self, action):
        _, reward, *others = super().step(action)
        self.state[0] = np.clip(self.state[0], -0.9, 0.9)
        return self.state.copy(), reward, *others


def test_a_mistake_made_now_and_then_has_its_cause_named():
    """What was not augmented says nothing about a repair."""

    def sometimes(generator, transition):
        if generator.random() < 0.5:
            return transition
        return mirrored(generator, transition)._replace(action=transition.action)

    report = verify(from_numpy(sometimes), Spring(), samples=SAMPLES)
    assert 0 < report.invalid < SAMPLES
    assert report.cause == "the sign of action 0 is wrong"


def test_two_wrong_signs_are_found_though_neither_repair_helps_alone():
    signs = np.array([1, -1, 1, 1, -1, 1])  # of Acrobot's mirror, but for the second angle's sine and speed

    def mirror(generator, transition):
        return transition._replace(
            observation=signs * transition.observation,
            action=2 - transition.action,
            next_observation=signs * transition.next_observation,
        )

    report = verify(from_numpy(mirror), gymnasium.make("Acrobot-v1"), samples=100)
    assert report.cause == "the sign of observation 3 is wrong, and then the sign of observation 5 is wrong"


def test_what_explains_few_of_the_errors_stands_beside_their_description():
    stale = verify(MIRRORED, Tilted(), samples=SAMPLES)
    assert stale.cause == "the reward is that of the observed transition: recompute it"

    def noisy_too(generator, transition):
        noise = generator.normal(size=2) * (generator.random() < 0.5)
        result = mirrored(generator, transition)
        return result._replace(next_observation=result.next_observation + noise)

    report = verify(from_numpy(noisy_too), Tilted(), samples=SAMPLES)
    assert report.cause is None
    assert report.description.endswith("besides, the reward is that of the observed transition: recompute it")


def test_walls_are_recognised_by_the_many_who_stop_there():
    def shifted(generator, transition):
        """Velocities agree, since the action makes up for the spring."""
        shift = np.array([0.05, 0])
        return transition._replace(
            observation=transition.observation + shift,
            action=transition.action + 0.05,
            reward=-float((transition.observation[0] + 0.05) ** 2),
            next_observation=transition.next_observation + shift,
        )

    report = verify(from_numpy(shifted), Walled(), samples=SAMPLES)
    assert 0 < report.invalid < SAMPLES
    assert "nearly all of them where a number is at the end of its range, as at a wall" in report.description


def test_errors_at_a_joints_limit_and_of_a_crooked_model_are_told_apart():
    """The pole of Gymnasium's inverted pendulum leans by a millimetre, so that no mirror is exact."""
    environment = gymnasium.make("InvertedPendulum-v5")

    def along_the_rail(generator, transition):
        shift = np.array([generator.uniform(-0.5, 0.5), 0, 0, 0])
        return transition._replace(
            observation=transition.observation + shift, next_observation=transition.next_observation + shift
        )

    report = verify(from_numpy(along_the_rail), environment, samples=400)
    assert "nearly all of them at a joint's limit" in report.description

    def mirror(generator, transition):
        return transition._replace(
            observation=-transition.observation,
            action=-transition.action,
            next_observation=-transition.next_observation,
        )

    report = verify(from_numpy(mirror), environment, samples=100)
    assert (report.invalid, report.cause) == (100, None)
    assert "ask `augury symmetry` whether the model has that symmetry" in report.description


def test_a_repair_that_spoils_what_is_right_is_no_cause():
    """Two changes of sign and the like fit one wrong transition by chance. What is rare is counted."""
    environment = gymnasium.make("MountainCar-v0")

    def mirror(generator, transition):
        """The valley is symmetric; the wall at its left end is not."""

        def across(observation):
            return np.array([-np.pi / 3 - observation[0], -observation[1]])

        return transition._replace(
            observation=across(transition.observation),
            action=2 - transition.action,
            next_observation=across(transition.next_observation),
        )

    report = verify(from_numpy(mirror), environment, samples=1_000)
    assert 0 < report.invalid < 10
    assert report.cause is None
    assert f"in {report.invalid} of 1,000 transitions" in report.description


def test_what_a_cause_of_motion_leaves_wrong_is_said():
    def half(generator, transition):
        return mirrored(generator, transition)._replace(action=transition.action)

    def doubled(generator, transition):
        return half(generator, transition)._replace(reward=2 * transition.reward + 1)

    def ended(generator, transition):
        return half(generator, transition)._replace(terminated=~transition.terminated)

    sign = "the sign of action 0 is wrong"
    stale = "the reward is that of the observed transition, too"
    assert verify(from_numpy(half), Tilted(), samples=SAMPLES).cause == f"{sign}; {stale}"
    wrong = verify(from_numpy(doubled), Tilted(), samples=SAMPLES)
    assert wrong.cause == f"{sign}; the reward is wrong, too"
    assert (
        verify(from_numpy(ended), Spring(), samples=SAMPLES).cause == f"{sign}; the termination is wrong, too"
    )


class Room(gymnasium.Env):
    """A point that stops at the wall x = 0.5, and a goal that it observes."""

    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float64)
    action_space = gymnasium.spaces.Box(-0.3, 0.3, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform((-1, -1, -1), (0.5, 1, 1))
        return self.state.copy(), {}

    def step(self, action):
        self.state[0] = np.clip(self.state[0] + action[0], -1, 0.5)
        return self.state.copy(), 0.0, False, False, {}

    def restore(self, observation, extras):
        self.state = np.array(observation)


def test_undoing_all_that_moves_explains_nothing_though_a_goal_stays_augmented():
    def mirror(generator, transition):
        signs = np.array([-1, 1, -1])
        return transition._replace(
            observation=signs * transition.observation,
            next_observation=signs * transition.next_observation,
            action=-transition.action,
        )

    report = verify(from_numpy(mirror), Room(), samples=SAMPLES)
    assert report.invalid > 10
    assert report.cause is None


class Turning(gymnasium.Env):
    """An angle from -π to π."""

    observation_space = gymnasium.spaces.Box(-np.pi, np.pi, (1,), np.float64)
    action_space = gymnasium.spaces.Box(-0.3, 0.3, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.angle = self.np_random.uniform(-np.pi, np.pi, 1)
        return self.angle.copy(), {}

    def step(self, action):
        self.angle = (self.angle + action + np.pi) % (2 * np.pi) - np.pi
        return self.angle.copy(), 0.0, False, False, {}

    def restore(self, observation, extras):
        self.angle = np.array(observation)


def test_whole_turns_are_described_and_no_repair_stays_outside_the_space():
    def turned(generator, transition):
        return transition._replace(
            observation=transition.observation + 2 * np.pi,
            next_observation=transition.next_observation + 2 * np.pi,
        )

    report = verify(from_numpy(turned), Turning(), samples=SAMPLES)
    assert report.invalid == SAMPLES
    assert report.cause is None
    assert "by whole turns" in report.description
