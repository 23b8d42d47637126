"""The verifier: what is right passes, what is wrong is caught, and the right dimension is named."""

import math

import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from gymnasium.spaces import Box

from augury import Transition, augmentations
from augury.augmentations import CATALOGUE, from_numpy
from augury.augmentations.goal2d import _started_at
from augury.augmentations.symmetry import reflect, rotate
from augury.envs.goal2d import Goal2D
from augury.envs.mujoco.locomotion import ANT, HUMANOID, TASKS, WALKER2D
from augury.errors import UserError
from augury.symmetry import Heading, SymmetryError
from augury.verify import assert_dynamics_invariant, simulators, verify
from augury.verify.played import pool_size
from tests.marks import slowly

SAMPLES = 600
PARAMETERS = {"goal2d/translate-proximal": "(0.3)"}


OWN_TASK = [name for name, entry in CATALOGUE.items() if not (entry.takes_task or entry.takes_environment)]
LARGE = [name for name in OWN_TASK if name.startswith(("ant/", "humanoid/"))]


@pytest.mark.parametrize("name", [*sorted(set(OWN_TASK) - set(LARGE)), *slowly(*LARGE)])
def test_every_augmentation_of_the_catalogue_is_valid(name):
    """Ten thousand transitions, none of them wrong by more than 1e-8."""
    report = verify(name + PARAMETERS.get(name, ""))
    assert (report.samples, report.set_aside) == (10_000, 0)
    assert report.valid, str(report)
    assert report.largest_error < 1e-8
    assert report.interval[0] == 0
    assert 0 < report.interval[1] < 0.25  # by episodes
    assert report.cause is None
    assert CATALOGUE[name].needs == getattr(augmentations.make(name + PARAMETERS.get(name, "")), "needs", ())


def edited(augmentation, **edits):
    """The augmentation, with a mistake: each field is what its function of the result and the input gives."""

    def wrong(key, transition):
        result = augmentation(key, transition)
        return result._replace(**{field: edit(result, transition) for field, edit in edits.items()})

    wrong.needs = augmentation.needs
    return wrong


def in_observations(change):
    """The same mistake in observation and next observation."""
    return {
        "observation": lambda result, seen: change(result.observation, seen.observation),
        "next_observation": lambda result, seen: change(result.next_observation, seen.next_observation),
    }


def flip(*places):
    return lambda said, seen: said.at[np.array(places)].multiply(-1)


def keep(*places):
    return lambda said, seen: said.at[np.array(places)].set(seen[np.array(places)])


def move(to, source):
    return lambda said, seen: said.at[np.array(to)].set(said[np.array(source)])


def place_of(task, name):
    return [quantity.name for quantity in task.table].index(name)


def actions(change):
    return {"action": lambda result, seen: change(result.action, seen.action)}


def turned_in_world(said, seen):
    """Rotate the body's angular velocity too, as if it were in the world's frame."""
    x, y = place_of(ANT, "root velocity x"), place_of(ANT, "root velocity y")
    angle = jnp.arctan2(said[y], said[x]) - jnp.arctan2(seen[y], seen[x])
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    first = place_of(ANT, "root angular velocity x (body frame)")
    wx, wy = said[first], said[first + 1]
    return said.at[first].set(cosine * wx - sine * wy).at[first + 1].set(sine * wx + cosine * wy)


HUMANOID_Y = place_of(HUMANOID, "root velocity y")
QUATERNION = [place_of(HUMANOID, f"root quaternion {part}") for part in "wxyz"]
KNEES = [place_of(HUMANOID, f"{side}_knee angle") for side in ("right", "left")]
KNEE_SPEEDS = [place_of(HUMANOID, f"{side}_knee angular velocity") for side in ("right", "left")]


def swap(pair):
    return move(pair, pair[::-1])


reflections = {robot: reflect(task) for robot, task in TASKS.items()}
turns = {robot: rotate(TASKS[robot]) for robot in ("ant", "humanoid")}


def goal2d_shift(terminated=None, reward=None, ends=None, action=None):
    """Goal2D's translation, done by hand, with a mistake."""

    def shifted(key, transition):
        near = transition.observation[2:] + jax.random.uniform(
            key, (2,), transition.observation.dtype, -0.06, 0.06
        )
        right = _started_at(jnp.clip(near, -1, 1), transition)
        changed = {"terminated": terminated, "reward": reward, "next_observation": ends, "action": action}
        return right._replace(**{name: edit(right, transition) for name, edit in changed.items() if edit})

    return shifted


WRONG = {
    # name: (augmentation, environment, what the report must say)
    "swimmer: a missing sign": (
        edited(reflections["swimmer"], **in_observations(flip(1))),
        "swimmer",
        "the sign of 'motor1_rot angle' (observation 1) is wrong",
    ),
    "swimmer: a sign too many": (
        edited(reflections["swimmer"], **in_observations(flip(3))),
        "swimmer",
        "the sign of 'slider1 velocity' (observation 3) is wrong",
    ),
    "swimmer: an action's sign": (
        edited(reflections["swimmer"], **actions(flip(1))),
        "swimmer",
        "the sign of action 1 is wrong",
    ),
    "swimmer: the next observation's sign": (
        edited(
            reflections["swimmer"],
            next_observation=lambda result, seen: result.next_observation.at[5].multiply(-1),
        ),
        "swimmer",
        "(observation 5) is wrong in the next observation",
    ),
    "walker2d: a pair not exchanged": (
        edited(reflections["walker2d"], **in_observations(swap([2, 5]))),
        "walker2d",
        "'thigh_joint angle' (observation 2) and 'thigh_left_joint angle' (observation 5) must be exchanged",
    ),
    "walker2d: velocities of a pair not exchanged": (
        edited(reflections["walker2d"], **in_observations(swap([13, 16]))),
        "walker2d",
        "(observation 13) and 'foot_left_joint angular velocity' (observation 16) must be exchanged",
    ),
    "walker2d: the wrong pair exchanged": (
        edited(reflections["walker2d"], **in_observations(move([5, 6], [6, 5]))),
        "walker2d",
        "(observation 5) and 'leg_left_joint angle' (observation 6) must be exchanged",
    ),
    "walker2d: actions of a pair not exchanged": (
        edited(reflections["walker2d"], **actions(swap([1, 4]))),
        "walker2d",
        "actions 1 and 4 must be exchanged",
    ),
    "walker2d: actions forgotten": (
        edited(reflections["walker2d"], action=lambda result, seen: seen.action),
        "walker2d",
        "the action is that of the observed transition",
    ),
    "walker2d: next observation forgotten": (
        edited(reflections["walker2d"], next_observation=lambda result, seen: seen.next_observation),
        "walker2d",
        "the next observation is that of the observed transition",
    ),
    "walker2d: a torso angle flipped": (
        edited(reflections["walker2d"], **in_observations(flip(1))),
        "walker2d",
        "the sign of 'rooty angle' (observation 1) is wrong",
    ),
    "humanoid: a velocity's sign": (
        edited(reflections["humanoid"], **in_observations(flip(HUMANOID_Y))),
        "humanoid",
        f"the sign of 'root velocity y' (observation {HUMANOID_Y}) is wrong",
    ),
    "humanoid: a whole joint's sign": (
        edited(
            reflections["humanoid"],
            **in_observations(
                flip(place_of(HUMANOID, "abdomen_z angle"), place_of(HUMANOID, "abdomen_z angular velocity"))
            ),
        ),
        "humanoid",
        "the sign of joint 'abdomen_z' is wrong",
    ),
    "humanoid: a whole joint not exchanged": (
        edited(
            reflections["humanoid"],
            **in_observations(move(KNEES + KNEE_SPEEDS, KNEES[::-1] + KNEE_SPEEDS[::-1])),
        ),
        "humanoid",
        "joints 'left_knee' and 'right_knee' must be exchanged",
    ),
    "humanoid: quaternion in the order x, y, z, w": (
        edited(reflections["humanoid"], **in_observations(move(QUATERNION, np.roll(QUATERNION, -1)))),
        "humanoid",
        "the quaternion of 'root' (observations 1 to 4) is in the order x, y, z, w",
    ),
    "humanoid: quaternion inverted": (
        edited(reflections["humanoid"], **in_observations(flip(*QUATERNION[1:]))),
        "humanoid",
        "the quaternion of 'root' (observations 1 to 4) is inverted",
    ),
    "humanoid: angular velocity as if it were polar": (
        edited(
            reflections["humanoid"], **in_observations(flip(*(HUMANOID_Y + shift for shift in (2, 3, 4))))
        ),
        "humanoid",
        "the sign of the angular velocity of 'root'",
    ),
    "humanoid: an actuator's sign": (
        edited(reflections["humanoid"], **actions(flip(1))),
        "humanoid",
        "the sign of action 1 is wrong",
    ),
    "ant: body and world frame confused": (
        edited(turns["ant"], **in_observations(turned_in_world)),
        "ant",
        "the angular velocity of 'root' (observations 16 to 18) is in the body's own frame",
    ),
    "ant: velocity not turned": (
        edited(turns["ant"], **in_observations(keep(13, 14, 15))),
        "ant",
        "the velocity of 'root' (observations 13 to 15) is in the world's frame: "
        "it must rotate with the robot",
    ),
    "ant: stale reward of a turn": (
        edited(turns["ant"], reward=lambda result, seen: seen.reward),
        "ant",
        "the reward is that of the observed transition",
    ),
    "ant: stale reward of a reflection": (
        edited(reflections["ant"], reward=lambda result, seen: seen.reward),
        "ant",
        "the reward is that of the observed transition",
    ),
    "ant: legs exchanged the wrong way": (
        edited(reflections["ant"], **in_observations(swap([5, 7]))),
        "ant",
        "'hip_1 angle' (observation 5) and 'hip_2 angle' (observation 7) must be exchanged",
    ),
    "humanoid: termination inverted": (
        edited(reflections["humanoid"], terminated=lambda result, seen: ~seen.terminated),
        "humanoid",
        None,
    ),
    "goal2d: stale reward": (
        goal2d_shift(reward=lambda right, seen: seen.reward),
        "goal2d",
        "the reward is that of the observed transition",
    ),
    "goal2d: stale termination": (
        goal2d_shift(terminated=lambda right, seen: seen.terminated),
        "goal2d",
        "the termination is that of the observed transition",
    ),
    "goal2d: the next position is not where the step leads": (
        goal2d_shift(ends=lambda right, seen: right.observation),
        "goal2d",
        None,
    ),
}
DIMENSIONS = {
    "ant: stale reward of a turn": {"reward"},
    "ant: stale reward of a reflection": {"reward"},
    "goal2d: stale reward": {"reward"},
    "goal2d: stale termination": {"termination"},
    "humanoid: termination inverted": {"termination"},
    "goal2d: the next position is not where the step leads": {"observation 0", "observation 1"},
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_caught_and_its_cause_named(name):
    augmentation, environment, cause = WRONG[name]
    report = verify(augmentation, environment, samples=SAMPLES)
    assert not report.valid
    assert report.interval[0] <= report.share <= report.interval[1]
    assert report.worst[0].error == report.largest_error > 1e-8
    assert cause is None or cause in report.cause
    if name in DIMENSIONS:
        assert {dimension.name for dimension in report.dimensions} == DIMENSIONS[name]


def test_there_are_at_least_twenty_of_them():
    assert len(WRONG) >= 20


@pytest.mark.slow
def test_the_papers_humanoid_does_not_turn_while_it_touches_the_ground():
    report = verify("humanoid/rotate", "humanoid-paper", samples=3_000)
    assert 0.1 < report.share < 0.6
    assert report.contact.invalid_touching > 0.95 * report.invalid
    assert "in contact" in report.cause
    assert verify("humanoid/reflect", "humanoid-paper", samples=3_000).valid


def test_gymnasiums_walker_is_not_symmetric_on_its_feet():
    report = verify("walker2d/reflect", WALKER2D.variant("stock"), samples=2_000)
    assert report.share > 0.1
    assert "in contact" in report.cause


def test_a_policys_transitions_are_verified_too():
    seen = []

    def policy(observation):
        seen.append(len(observation))
        return np.tile([0.3, -0.2], (len(observation), 1))

    report = verify("swimmer/reflect", policy=policy, samples=400)
    assert report.valid
    assert report.samples == 400
    assert sum(seen) == 800  # half of what is played


def test_reports_are_reproducible_and_told_apart_by_their_seed():
    first, again, other = (verify("ant/rotate", "ant-paper", samples=500, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.largest_error != other.largest_error


class Spring(gymnasium.Env):
    """A mass on a spring, which joins by its method `restore`."""

    observation_space, action_space = Box(-np.inf, np.inf, (2,), np.float64), Box(-1, 1, (1,), np.float64)
    drift = 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, 2)
        return self.state.copy(), {}

    def step(self, action):
        position, velocity = self.state
        velocity += 0.1 * (action[0] - position)
        self.drift += 0.01 * self.remembers
        self.state = np.array([position + 0.1 * velocity + self.drift, velocity])
        return self.state.copy(), -float(position**2), False, False, {}

    remembers = False

    def restore(self, observation, extras):
        self.state = np.array(observation)


class Bare(gymnasium.Env):
    """Nobody can put it anywhere."""

    observation_space, action_space = Spring.observation_space, Spring.action_space


class ForgetfulSpring(Spring):
    """Its `restore` does not bring back everything."""

    remembers = True


class HiddenSpring(Spring):
    """How stiff it is stands in the info alone."""

    stiffness = 1.0

    def reset(self, *, seed=None, options=None):
        start = super().reset(seed=seed)
        self.stiffness = self.np_random.uniform(0.5, 2)
        return start

    def step(self, action):
        position, velocity = self.state
        velocity += 0.1 * (action[0] - self.stiffness * position)
        self.state = np.array([position + 0.1 * velocity, velocity])
        return self.state, -float(position**2), False, bool(velocity > 0.3), {"stiffness": self.stiffness}

    def restore(self, observation, extras):
        self.state, self.stiffness = np.array(observation), extras["stiffness"]


class ClippedSpring(Spring):
    """Fast ones cannot be told apart."""

    def step(self, action):
        observation, *rest = super().step(action)
        if abs(observation[1]) > 0.9:
            observation[1] = np.sign(observation[1]) * 0.9
        return observation, *rest


class Rounded(Spring):
    """With 32 bits."""

    observation_space = Box(-np.inf, np.inf, (2,))

    def step(self, action):
        self.state = self.state.astype(np.float32)
        observation, *rest = super().step(action)
        return observation.astype(np.float32), *rest

    def restore(self, observation, extras):
        self.state = np.array(observation, np.float32)


class Shifted(gymnasium.ObservationWrapper):
    """Another origin: what mirrors the spring does not mirror this."""

    def observation(self, observation):
        return observation + 5

    def restore(self, observation, extras):
        self.env.unwrapped.restore(np.asarray(observation) - 5, extras)


class Tapping(Spring):
    """Two actions."""

    action_space = gymnasium.spaces.Discrete(2)

    def step(self, action):
        return super().step([2.0 * action - 1])


def mirrored(generator, transition):
    return transition._replace(
        observation=-transition.observation,
        action=-transition.action,
        next_observation=-transition.next_observation,
    )


MIRRORED = from_numpy(mirrored)


class Dictionary(Spring):
    """Observes a dict of something else than vectors."""

    observation_space = gymnasium.spaces.Dict(position=Box(-1, 1, (2, 2)))


def test_a_users_environment_and_function_are_verified():
    assert_dynamics_invariant(MIRRORED, Spring(), samples=100)

    def half(generator, transition):
        return mirrored(generator, transition)._replace(action=transition.action)

    with pytest.raises(AssertionError, match=r"100 of 100 .* the sign of action 0 is wrong"):
        assert_dynamics_invariant(from_numpy(half), Spring(), samples=100)


def test_extras_restore_what_is_not_observed():
    """Also where the environment returns the very array that it goes on writing to."""
    assert verify(MIRRORED, HiddenSpring(), samples=100).valid


def test_what_cannot_be_repeated_is_set_aside_and_said():
    def wrong_when_fast(generator, transition):
        fast = transition.observation[1] > 0.5
        return mirrored(generator, transition)._replace(action=transition.action * (1 if fast else -1))

    environment = ClippedSpring()
    report = verify(from_numpy(wrong_when_fast), environment, samples=300)
    assert 0 < report.set_aside < 300
    assert "more set aside" in str(report)
    played = simulators.GymSimulator(environment).play(pool_size(300), None, 0).transition
    assert (played.observation[[one.index for one in report.worst], 1] > 0.5).all()
    assert verify(MIRRORED, environment, samples=300).verdict == "unknown"
    with pytest.raises(AssertionError, match="too little evidence"):
        assert_dynamics_invariant(MIRRORED, environment, samples=300)


def test_single_precision_is_told_from_a_mistake():
    report = verify(MIRRORED, Rounded(), samples=50, tolerance=0)
    assert report.valid  # signs cost nothing
    turned = from_numpy(
        lambda generator, seen: mirrored(generator, seen)._replace(reward=seen.reward * (1 + 1e-7))
    )
    assert verify(turned, Rounded(), samples=50).valid  # the tolerance follows
    assert "computes with 32 bits" in verify(turned, Rounded(), samples=50, tolerance=1e-8).cause


def test_a_wrapper_is_verified_as_its_user_sees_it():
    assert not verify(MIRRORED, Shifted(Spring()), samples=50).valid
    assert verify(MIRRORED, gymnasium.wrappers.TimeLimit(Spring(), 20), samples=50).valid


def test_discrete_actions_are_verified():
    def mirror(generator, transition):
        return mirrored(generator, transition)._replace(action=1 - transition.action)

    assert verify(from_numpy(mirror), Tapping(), samples=60).valid
    stale = from_numpy(lambda generator, seen: mirror(generator, seen)._replace(action=seen.action))
    assert "the action is that of the observed" in verify(stale, Tapping(), samples=60).cause


def test_a_broken_quaternion_is_reported_and_does_not_break_the_verifier():
    zeroed = edited(reflections["humanoid"], **in_observations(lambda said, seen: said.at[1:5].set(0)))
    assert not verify(zeroed, "humanoid", samples=50).valid


FREE = """<mujoco><worldbody><geom type="plane" size="9 9 1"/><body pos="0 0 1"><freejoint {name}/>
<geom size=".1 .2 .3" type="box"/>{site}</body>{world}</worldbody>{more}</mujoco>"""


def free_body(name="", site="", world="", more=""):
    text = FREE.format(name=name, site=site, world=world, more=more)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    return model


def test_a_joint_without_a_name_turns_too():
    unnamed, named = rotate(free_body()), rotate(free_body('name="root"'))
    assert unnamed.observation == named.observation == Heading(((0, 1), (7, 8)), ((3, 4, 5, 6),))


@pytest.mark.parametrize(
    "tie",
    [
        {
            "site": '<site name="a"/>',
            "world": '<site name="b"/>',
            "more": '<tendon><spatial stiffness="9"><site site="a"/><site site="b"/></spatial></tendon>',
        },
        {"name": 'name="root"', "more": '<actuator><motor joint="root" gear="1 0 0 0 0 0"/></actuator>'},
        {
            "site": '<site name="a"/>',
            "world": '<site name="b"/>',
            "more": '<actuator><motor site="a" refsite="b" gear="1 0 0 0 0 0"/></actuator>',
        },
    ],
    ids=["tendon", "motor", "site"],
)
def test_what_is_tied_to_the_world_does_not_turn(tie):
    with pytest.raises(SymmetryError, match="does not rotate with the robot"):
        rotate(free_body(**tie))


def test_a_mirror_that_changes_nothing_is_refused():
    with pytest.raises(SymmetryError, match="changes nothing that HopperEnv sees or does: try x"):
        reflect(gymnasium.make("Hopper-v5"), normal="y")


def test_probing_leaves_an_environment_as_it_was():
    environment = gymnasium.make("InvertedPendulum-v5").unwrapped
    environment.reset(seed=1)
    before = environment.data.qpos.copy(), environment.np_random.bit_generator.state
    reflect(environment, normal="x", tolerance=math.inf)
    np.testing.assert_array_equal(environment.data.qpos, before[0])
    assert environment.np_random.bit_generator.state == before[1]


def test_gymnasiums_own_environment_is_verified_by_probing():
    environment = gymnasium.make("InvertedPendulum-v5")
    mirror = reflect(environment, normal="x", tolerance=math.inf)
    report = verify(mirror, environment, samples=50)
    assert not report.valid  # its pole leans
    assert report.largest_error < 0.1
    with pytest.raises(SymmetryError, match="not symmetric"):
        reflect(environment, normal="x", tolerance=0)
    environment.close()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: verify("ant/rotat"), "did you mean 'ant/rotate'"),
        (lambda: verify("ant/rotate", samples=0), "samples must be at least 1, not 0"),
        (lambda: verify(MIRRORED), "say which environment mirrored is for"),
        (lambda: verify("ant/rotate", "goal2d"), "'ant/rotate' is for ant, not for goal2d"),
        (lambda: verify(rotate(ANT), "goal2d"), "goal2d does not provide the extras x_velocity, y_velocity"),
        (lambda: verify("ant/rotate", tolerance=np.nan), "tolerance must be 0 or more, not nan"),
        (lambda: verify("ant/rotate", seed=-1), "seed must be 0 or more, not -1"),
        (lambda: verify(3, "ant"), "3 is no augmentation"),
        (
            lambda: verify(MIRRORED, gymnasium.wrappers.RescaleAction(Spring(), -2, 2)),
            "RescaleAction changes what is seen or done",
        ),
        (
            lambda: verify(MIRRORED, Dictionary()),
            "Dictionary must observe a vector or a dict of vectors, not Dict",
        ),
        (lambda: reflect("humanoid", normal="w"), "must be 'x', 'y', 'z' or 'auto', not 'w'"),
        (
            lambda: rotate("ant")(jax.random.key(0), Transition(*[jnp.zeros(27)] * 6, {})),
            r"rotate\(ant, .*\) needs the extras x_velocity, y_velocity",
        ),
        (lambda: verify(MIRRORED, Bare()), "Bare cannot be verified: give it a method restore"),
        (lambda: verify(MIRRORED, gymnasium.make("CartPole-v1")), r"gives action -1, but .* Discrete\(2\)"),
        (lambda: verify(MIRRORED, ForgetfulSpring(), samples=50), "does not repeat its own transitions"),
        (
            lambda: verify(lambda key, seen: seen._replace(action=seen.action[:3]), "ant", samples=10),
            r"action must keep its shape \(8,\), not \(3,\)",
        ),
        (lambda: reflect(Goal2D()), "goal2d has no MuJoCo model"),
    ],
)
def test_mistakes_are_named(ask, message):
    with pytest.raises(UserError, match=message):
        ask()


@pytest.mark.usefixtures("strict_dtypes")
@pytest.mark.parametrize("function", [*reflections.values(), *turns.values()], ids=repr)
def test_single_precision_stays_single(function):
    """As fleets and SB3 use them."""
    task = TASKS[function.robot]
    observation, action = np.ones(len(task.table), np.float32), np.ones(task.model.nu, np.float32)
    extras = dict.fromkeys(task.extras, np.float32(1))
    seen = Transition(
        observation, action, np.float32(1), observation, np.bool_(False), np.bool_(False), extras
    )
    result = jax.jit(function)(jax.random.key(0), seen)
    assert jax.tree.map(lambda leaf: leaf.dtype, result) == jax.tree.map(lambda leaf: leaf.dtype, seen)


def test_reflections_are_involutions_and_turns_can_be_undone():
    for robot, mirror in reflections.items():
        width, actions = len(TASKS[robot].table), TASKS[robot].model.nu
        generator = np.random.default_rng(0)
        observation, action = generator.normal(size=width), generator.normal(size=actions)
        assert mirror.observation(mirror.observation(jnp.array(observation))) == pytest.approx(observation)
        assert mirror.action(mirror.action(jnp.array(action))) == pytest.approx(action)
