"""The verifier where observations are dicts with goals: the Panda tasks, panda-gym, and anyone's own."""

import importlib.util

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict

from augury import Transition, augmentations
from augury.augmentations import CATALOGUE, from_numpy, hindsight
from augury.augmentations.base import needs_of
from augury.envs.panda.goals import GOAL_TASKS
from augury.envs.panda.reference.panda_gym import PandaGymEnv
from augury.envs.panda.tasks import PANDA_TASKS
from augury.errors import UserError
from augury.verify import assert_dynamics_invariant, verify
from augury.verify.episodes import with_later_goals
from augury.verify.simulators import simulator_of
from tests.marks import slowly

SAMPLES = 200
PARAMETERS = {"panda/translate-goal-proximal": "(0.5)"}
RELABELLINGS = [name + PARAMETERS.get(name, "") for name, entry in CATALOGUE.items() if entry.takes_task]
WITH_PANDA_GYM = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("panda_gym", "pybullet")),
    reason="panda-gym is not installed",
)


def towards(observation):
    """Actions that lead the hand to the thing, which random ones rarely touch."""
    numbers = observation["observation"]
    fingers = int(numbers.shape[1] > 18)
    action = np.zeros((len(numbers), 3 + fingers))
    action[:, :3] = np.clip(10 * (numbers[:, 6 + fingers : 9 + fingers] - numbers[:, :3]), -1, 1)
    return action


@pytest.mark.parametrize(
    "environment", ["panda-flip", *slowly("panda-push", "panda-slide", "panda-pick-and-place")]
)
@pytest.mark.parametrize("name", RELABELLINGS)
def test_every_relabelling_of_the_catalogue_is_valid_on_every_task(name, environment):
    """To the last bit: the numbers are those of 32 bits that are shown, on either side."""
    report = verify(name, environment, samples=SAMPLES, policy=towards)
    assert report.valid, str(report)
    assert (report.environment, report.samples, report.set_aside) == (environment, SAMPLES, 0)
    assert (report.largest_error, report.repeating_error, report.cause) == (0, 0, None)
    entry, made = augmentations.parse(name)[0], augmentations.make(name, environment)
    assert entry.needs == needs_of(made)


@pytest.mark.parametrize("environment", [name for name in PANDA_TASKS if name.endswith("quadrant")])
def test_they_are_valid_where_a_part_of_the_goals_is_set(environment):
    assert_dynamics_invariant(
        "panda/translate-goal-proximal(0.5)", environment, samples=SAMPLES, policy=towards
    )


@pytest.mark.slow
@WITH_PANDA_GYM
@pytest.mark.parametrize(
    ("name", "task"), list(zip(RELABELLINGS, [*GOAL_TASKS, "pick-and-place-quadrant"], strict=True))
)
def test_they_are_valid_on_panda_gym(name, task):
    report = verify(name, f"panda-gym-{task}", samples=SAMPLES, policy=towards)
    assert report.valid, str(report)
    assert (report.samples, report.set_aside, report.largest_error) == (SAMPLES, 0, 0)


def edited(augmentation, **edits):
    """The augmentation, with a mistake: each field is what its function of the result and the input gives."""

    def wrong(key, transition):
        result = augmentation(key, transition)
        return result._replace(**{field: edit(result, transition) for field, edit in edits.items()})

    wrong.needs = needs_of(augmentation)
    return wrong


def in_both(change):
    """The same mistake in observation and next observation."""
    return {
        "observation": lambda result, seen: change(result.observation),
        "next_observation": lambda result, seen: change(result.next_observation),
    }


def pulled(observation):
    """As if the thing had been at the goal."""
    return {**observation, "achieved_goal": observation["desired_goal"]}


def shifted(observation):
    """The thing, as seen, a centimetre further along x."""
    return {**observation, "observation": observation["observation"].at[6].add(0.01)}


def reordered(observation):
    """A quaternion w, x, y, z."""
    return {**observation, "desired_goal": jnp.roll(observation["desired_goal"], 1)}


relabelled = augmentations.make("panda/translate-goal", "panda-push")
in_hindsight = augmentations.make("panda/hindsight", "panda-push")
turned = augmentations.make("panda/translate-goal-proximal(0.5)", "panda-flip")
GOAL = {f"desired_goal {place}" for place in range(2)}  # its height is always the same
ACHIEVED = {f"achieved_goal {place}" for place in range(3)}
WRONG = {
    # name: (augmentation, environment, what the report must say, the numbers that are wrong)
    "the reward is forgotten": (
        edited(in_hindsight, reward=lambda result, seen: seen.reward),
        "panda-push",
        "the reward is that of the observed transition: recompute it",
        {"reward"},
    ),
    "the end is forgotten": (
        edited(in_hindsight, terminated=lambda result, seen: seen.terminated),
        "panda-push",
        "the termination is that of the observed transition: recompute it",
        {"termination"},
    ),
    "the next observation's goal is forgotten": (
        edited(relabelled, next_observation=lambda result, seen: seen.next_observation),
        "panda-push",
        "desired_goal must be the same in observation and next observation",
        GOAL,
    ),
    "the observation's goal is forgotten": (
        edited(relabelled, observation=lambda result, seen: seen.observation),
        "panda-push",
        "the observation is that of the observed transition: augment it too",
        {*GOAL, "reward", "termination"},
    ),
    "the achieved goal is moved instead of the thing": (
        edited(relabelled, **in_both(pulled)),
        "panda-push",
        "achieved_goal must stay as observed",
        {*ACHIEVED, *(f"{name}, before the step" for name in ACHIEVED)},
    ),
    "the achieved goal is moved where the step begins": (
        edited(relabelled, observation=lambda result, seen: pulled(result.observation)),
        "panda-push",
        "achieved_goal must stay as observed",
        {f"{name}, before the step" for name in ACHIEVED},
    ),
    "the thing is moved where it is seen, and nowhere else": (
        edited(relabelled, **in_both(shifted)),
        "panda-push",
        "'observation: object x' must stay as observed",
        {"observation: object x", "observation: object x, before the step"},
    ),
    "an action is mirrored, and nothing else": (
        edited(relabelled, action=lambda result, seen: result.action.at[0].multiply(-1)),
        "panda-push",
        "the sign of action 0 is wrong",
        None,
    ),
    "a goal's quaternion is in another order": (
        edited(turned, **in_both(reordered)),
        "panda-flip",
        None,
        {"reward", "termination"},
    ),
}


@pytest.mark.parametrize("name", [*list(WRONG)[:2], *slowly(*list(WRONG)[2:])])
def test_what_is_wrong_is_caught_and_its_cause_named(name):
    augmentation, environment, cause, dimensions = WRONG[name]
    report = verify(augmentation, environment, samples=SAMPLES)
    assert report.share > 0.01
    assert cause is None or report.cause == cause
    assert dimensions is None or {one.name for one in report.dimensions} == dimensions


@WITH_PANDA_GYM
def test_a_mistake_is_caught_on_panda_gym():
    """Its cause too, and without asking the same hundreds of times."""
    augmentation, _, cause, dimensions = WRONG["the achieved goal is moved instead of the thing"]
    report = verify(augmentation, "panda-gym-push", samples=SAMPLES)
    assert report.invalid == SAMPLES
    assert report.cause == cause
    assert {one.name for one in report.dimensions} == dimensions


def test_every_number_has_a_name():
    names = [quantity.name for quantity in simulator_of("panda-pick-and-place").table]
    assert names[:6] == [f"{kind}_goal {place}" for kind in ("achieved", "desired") for place in range(3)]
    assert names[6] == "observation: hand x"
    assert names[12:14] == ["observation: fingers' width", "observation: object x"]


def test_environments_of_gymnasium_are_told_by_what_they_are():
    made = gymnasium.make("augury/PandaPush-v0")
    assert verify("panda/translate-goal", made, samples=SAMPLES).environment == "panda-push"
    made.close()


@WITH_PANDA_GYM
def test_so_are_panda_gyms():
    made = PandaGymEnv("push", "quadrant")
    assert simulator_of(made).name == "panda-gym-push-quadrant"
    made.close()


def test_later_goals_are_of_the_same_episode_and_not_earlier():
    """Goals that name their environment and round; one episode ends in round 2, the others are cut."""
    rounds = [
        Transition(
            observation={},
            action=np.zeros((2, 1)),
            reward=np.zeros(2),
            next_observation={"achieved_goal": np.array([[0, number], [1, number]])},
            terminated=np.array([number == 2, False]),
            truncated=np.zeros(2, bool),
            extras={"own": np.arange(2)},
        )
        for number in range(6)
    ]
    drawn = [with_later_goals(rounds, seed) for seed in range(60)]
    final = np.array([one.extras["final_achieved_goal"] for one in drawn[0]])
    assert final[:, 0].tolist() == [[0, 2]] * 3 + [[0, 5]] * 3
    assert final[:, 1].tolist() == [[1, 5]] * 6
    future = np.array([[one.extras["future_achieved_goal"] for one in each] for each in drawn])
    assert (future[..., 0] == np.arange(2)).all()
    found = [[set(future[:, number, row, 1].tolist()) for number in range(6)] for row in range(2)]
    assert found[0] == [{0, 1, 2}, {1, 2}, {2}, {3, 4, 5}, {4, 5}, {5}]
    assert found[1] == [set(range(number, 6)) for number in range(6)]
    assert drawn[0][3].extras["own"].tolist() == [0, 1]


class Cart(gymnasium.Env):
    """A cart that shall stop at a goal; what it weighs is not observed."""

    observation_space = Dict(
        {
            name: Box(-9, 9, (size,))
            for name, size in (("observation", 2), ("achieved_goal", 1), ("desired_goal", 1))
        }
    )
    action_space = Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        self.goal = self.np_random.uniform(-1, 1, 1).astype(np.float32)
        self.mass = self.np_random.uniform(1, 2)
        self.steps = 0
        return self.seen(), {}

    def seen(self):
        return {"observation": self.state, "achieved_goal": self.state[:1], "desired_goal": self.goal}

    def step(self, action):
        info = {"mass": self.mass, "note": "not a number"}
        self.steps += 1
        self.state[1] += 0.1 * action[0] / self.mass  # in place: what was returned before changes too
        self.state[0] += 0.1 * self.state[1]
        reached = bool(abs(self.state[0] - self.goal[0]) < 0.1)
        return self.seen(), float(reached), reached, self.steps == 20, info

    def restore(self, observation, extras):
        self.state, self.goal = observation["observation"].copy(), observation["desired_goal"]
        self.mass = extras["mass"]


class Telling(Cart):
    """Its `restore` says what is then seen."""

    def restore(self, observation, extras):
        super().restore(observation, extras)
        return self.seen()


def near(achieved, desired, info):
    return jnp.abs(achieved - desired)[0] < 0.1


cart_in_hindsight = hindsight(lambda *goals: jnp.float32(near(*goals)), compute_terminated=near)


def test_anyones_goal_environment_is_verified():
    assert_dynamics_invariant(cart_in_hindsight, Cart(), samples=200)
    report = verify(edited(cart_in_hindsight, reward=lambda result, seen: seen.reward), Cart(), samples=200)
    assert report.cause == "the reward is that of the observed transition: recompute it"
    assert [one.name for one in report.dimensions] == ["reward"]


def test_a_policy_sees_rows_of_the_dict():
    seen = []

    def policy(observation):
        seen.append({name: values.shape for name, values in observation.items()})
        return -observation["observation"][:, :1]

    assert verify(cart_in_hindsight, Cart(), samples=40, policy=policy).valid
    assert seen == [{"observation": (1, 2), "achieved_goal": (1, 1), "desired_goal": (1, 1)}] * 20


def mirrored(generator, transition):
    def flipped(observation):
        return {name: -values for name, values in observation.items()}

    return transition._replace(
        observation=flipped(transition.observation),
        action=-transition.action,
        next_observation=flipped(transition.next_observation),
    )


def test_numbers_of_a_dict_are_repaired_one_by_one():
    assert verify(from_numpy(mirrored), Cart(), samples=60).valid

    def wrong(generator, transition):
        result = mirrored(generator, transition)
        for seen in (result.observation, result.next_observation):
            seen["observation"][1] *= -1
        return result

    report = verify(from_numpy(wrong), Cart(), samples=60)
    assert report.cause == "the sign of 'observation 1' is wrong"


def test_a_restore_that_tells_what_is_seen_is_compared_with():
    """An achieved goal says nothing that `restore` would need: only looking finds it wrong."""
    moved = edited(cart_in_hindsight, observation=lambda result, seen: pulled(result.observation))
    assert verify(moved, Cart(), samples=60).valid
    report = verify(moved, Telling(), samples=60)
    assert [one.name for one in report.dimensions] == ["achieved_goal 0, before the step"]
    assert report.cause == "'achieved_goal 0' must stay as observed"


class Nested(Cart):
    """Dicts in a dict."""

    observation_space = Dict({"observation": Cart.observation_space})


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda: verify(cart_in_hindsight, Nested()),
            "Nested must observe a vector or a dict of vectors, not Dict",
        ),
        (
            lambda: verify("panda/translate-goal", Cart()),
            r"needs to know its task: make\('panda/translate-goal'",
        ),
        (
            lambda: verify("panda/translate-goal"),
            "choose one of panda-push, panda-slide, panda-pick-and-place",
        ),
        (lambda: verify("ant/rotate", "panda-push"), "'ant/rotate' is for ant, not for panda-push"),
        (
            lambda: verify(augmentations.make("panda/translate-goal", "panda-push"), "panda-flip", samples=5),
            r"goals of push have shape \(3,\), not \(4,\)",
        ),
    ],
)
def test_mistakes_are_named(ask, message):
    with pytest.raises(UserError, match=message):
        ask()
