"""Laws over the catalogue, combinations, and how augmentations are named."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from augury import Transition
from augury.augmentations import CATALOGUE, choose, compose, from_numpy, make, sometimes
from augury.augmentations.goal2d import Translate, rotate
from augury.envs import goal2d
from augury.envs.goal2d import Goal2D
from augury.errors import UserError

pytestmark = pytest.mark.usefixtures("strict_dtypes")

COUNT = 100_000
EXAMPLES = {"goal2d/translate-proximal": "goal2d/translate-proximal(0.3)"}
# The robots' are given to their simulators in test_verify.py.
NAMES = [EXAMPLES.get(name, name) for name in CATALOGUE if name.startswith("goal2d/")]


def transitions(count: int, seed: int = 0) -> Transition:
    """Valid transitions of Goal2D from anywhere inside the walls, also from beside them and from the goal."""
    keys = jax.random.split(jax.random.key(seed), 3)
    position = jax.random.uniform(keys[0], (count, 2), minval=-1.05, maxval=1.05)
    goal = jax.random.uniform(keys[1], (count, 2), minval=-1, maxval=1)
    action = jax.random.uniform(keys[2], (count, 2), minval=goal2d.ACTION_LOW, maxval=goal2d.ACTION_HIGH)
    observation = jnp.concatenate([position, goal], -1)
    following, reward, terminated = goal2d.step(observation, action)
    truncated = jnp.arange(count) % 7 == 0
    return Transition(observation, action, reward, following, terminated, truncated, {})


def augment(function, observed: Transition, seed: int = 1) -> Transition:
    keys = jax.random.split(jax.random.key(seed), observed.reward.shape[0])
    return jax.jit(jax.vmap(function))(keys, observed)


@pytest.mark.parametrize("name", NAMES)
def test_valid_transitions_stay_valid(name):
    observed = transitions(COUNT)
    result = augment(make(name), observed)
    assert (np.abs(result.observation[:, :2]) <= goal2d.POSITION_LIMIT).all()
    assert (np.abs(result.observation[:, 2:]) <= goal2d.START_LIMIT).all()
    assert (result.action >= goal2d.ACTION_LOW).all()
    assert (result.action <= goal2d.ACTION_HIGH).all()
    # The environment's own step, in double precision: it is not the augmentation's arithmetic.
    exact = [np.asarray(array, np.float64) for array in (result.observation, result.action)]
    following, _, _ = goal2d.step(*exact)
    np.testing.assert_allclose(result.next_observation, following, atol=1e-6, rtol=0)
    distance = np.linalg.norm(following[:, :2] - following[:, 2:], axis=1)
    clear = abs(distance - goal2d.GOAL_RADIUS) > 1e-6  # elsewhere rounding decides
    assert clear.mean() > 0.999
    success = (distance < goal2d.GOAL_RADIUS)[clear]
    np.testing.assert_array_equal(result.terminated[clear], success)
    np.testing.assert_array_equal(result.reward[clear], np.where(success, np.float32(1), np.float32(-0.1)))
    np.testing.assert_array_equal(result.truncated, observed.truncated)


@pytest.mark.parametrize("name", NAMES)
def test_the_key_decides_the_copy(name):
    observed = transitions(64)
    first, again, other = (augment(make(name), observed, seed) for seed in (1, 1, 2))
    assert (first.observation == again.observation).all()
    assert (first.observation != other.observation).any()


@pytest.mark.parametrize("p", [0.0, 0.01, 0.25, 1.0])
def test_translate_proximal_succeeds_with_probability_p(p):
    rate = float(augment(make("goal2d/translate-proximal", p=p), transitions(COUNT)).terminated.mean())
    spread = (p * (1 - p) / COUNT) ** 0.5
    assert abs(rate - p) <= 4 * spread  # exactly p where p is 0 or 1


@pytest.mark.slow
def test_a_random_relabel_succeeds_with_the_probability_of_its_area():
    # π 0.05² / 4 = 0.00196, a little less at the edges; the paper prints 0.019, a misprint.
    count = 1_000_000
    keys = jax.random.split(jax.random.key(0), count)
    starts = jax.vmap(Goal2D().reset)(keys)
    action = jnp.tile(jnp.array([0.5, 1.0]), (count, 1))
    following, reward, terminated = goal2d.step(starts, action)
    observed = Transition(starts, action, reward, following, terminated, jnp.zeros(count, bool), {})
    assert float(augment(Translate(), observed).terminated.mean()) == pytest.approx(0.0019, abs=0.00015)


def test_translated_positions_are_uniform():
    positions = np.asarray(augment(Translate(), transitions(COUNT)).observation[:, :2])
    shares, _, _ = np.histogram2d(*positions.T, bins=4, range=[[-1, 1], [-1, 1]])
    np.testing.assert_allclose(shares / COUNT, 1 / 16, atol=0.004)


def test_four_quarter_turns_are_the_identity():
    observed = transitions(1_000)
    turned = observed
    for _ in range(4):
        turned = jax.vmap(rotate, in_axes=(None, 0))(jnp.int32(1), turned)
    np.testing.assert_array_equal(turned.observation, observed.observation)
    np.testing.assert_array_equal(turned.next_observation, observed.next_observation)
    np.testing.assert_allclose(turned.action, observed.action, atol=2e-6)


@settings(deadline=None)  # the first example compiles
@given(quarters=st.integers(1, 3), seed=st.integers(0, 2**31 - 1))
def test_a_turn_by_quarters_is_that_many_quarter_turns(quarters, seed):
    observed = jax.tree.map(lambda leaf: leaf[0], transitions(1, seed))
    turned = observed
    for _ in range(quarters):
        turned = rotate(jnp.int32(1), turned)
    at_once = rotate(jnp.int32(quarters), observed)
    np.testing.assert_array_equal(at_once.observation, turned.observation)
    off = float(at_once.action[1] - turned.action[1])
    assert abs(np.sin(off)) < 1e-5
    assert np.cos(off) > 0


def test_rotate_draws_each_turn_equally_often_and_never_none():
    observed = transitions(30_000)
    turned = augment(make("goal2d/rotate"), observed)
    turns = np.asarray((turned.action[:, 1] - observed.action[:, 1]) / (np.pi / 2)).round() % 4
    np.testing.assert_allclose(
        np.bincount(turns.astype(int), minlength=4) / 30_000, [0, *[1 / 3] * 3], atol=0.01
    )


def test_sometimes_leaves_the_other_transitions_alone():
    observed = transitions(20_000)
    result = augment(sometimes(0.25, make("goal2d/translate")), observed)
    changed = (result.observation != observed.observation).any(-1)
    assert float(changed.mean()) == pytest.approx(0.25, abs=0.01)
    assert (result.reward[~changed] == observed.reward[~changed]).all()


def test_choose_takes_each_part_equally_often():
    observed = transitions(20_000)
    result = augment(choose(make("goal2d/translate"), make("goal2d/rotate")), observed)
    translated = (result.action == observed.action).all(-1)
    assert float(translated.mean()) == pytest.approx(0.5, abs=0.012)


def test_compose_applies_every_part():
    observed = transitions(5_000)
    result = augment(compose(make("goal2d/rotate"), make("goal2d/translate-proximal(1)")), observed)
    assert result.terminated.all()
    assert not (result.action == observed.action).all(-1).any()


def test_combinations_need_what_their_parts_need():
    class Shift:
        needs = ("x_velocity",)

        def __call__(self, key, transition):
            return transition

    assert compose(make("goal2d/rotate"), sometimes(0.5, Shift())).needs == ("x_velocity",)
    assert choose(Shift(), Shift()).needs == ("x_velocity",)


def test_a_numpy_function_takes_part():
    def mirror(generator, transition):
        shift = np.float64(generator.normal())  # a dtype that does not fit is cast
        return transition._replace(observation=-transition.observation, reward=transition.reward + shift)

    observed = transitions(16)
    function = from_numpy(mirror)
    first, again = augment(function, observed), augment(function, observed)
    np.testing.assert_array_equal(first.observation, -observed.observation)
    assert first.reward.dtype == jnp.float32
    assert len(np.unique(first.reward)) == 16  # every key has its own randomness …
    np.testing.assert_array_equal(first.reward, again.reward)  # … and only that


def test_a_numpy_function_that_breaks_a_shape_is_named():
    def stretch(generator, transition):
        return transition._replace(action=np.zeros(3))

    with pytest.raises(Exception, match=r"stretch: action must keep its shape \(2,\), not \(3,\)"):
        augment(from_numpy(stretch), transitions(2))


def test_a_numpy_function_that_returns_something_else_is_named():
    def forget(generator, transition):
        return None

    with pytest.raises(Exception, match="forget must return a Transition, not NoneType"):
        augment(from_numpy(forget), transitions(2))


@pytest.mark.parametrize("text", ["goal2d/translate-proximal(0.2)", "goal2d/translate-proximal(p=0.2)"])
def test_parameters_are_written_in_brackets(text):
    assert make(text) == make("goal2d/translate-proximal", p=0.2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("goal2d/translat", "unknown augmentation 'goal2d/translat': did you mean 'goal2d/translate'?"),
        ("zzz", "unknown augmentation 'zzz': choose from ant/reflect, "),
        ("goal2d/translate-proximal", r"needs p: write 'goal2d/translate-proximal\(p\)'"),
        ("goal2d/translate-proximal(q=1)", "needs p"),
        ("goal2d/translate-proximal(2)", r"p must lie in \[0, 1\], not 2"),
        ("goal2d/translate-proximal(0.1, 0.2)", "too many parameters"),
        ("goal2d/translate-proximal(a)", "cannot read"),
        ("goal2d/translate-proximal(0.1", "cannot read"),
        ("goal2d/translate(1)", "too many parameters"),
        ("goal2d/translate(p=1)", "takes no p"),
    ],
)
def test_wrong_names_and_parameters_are_explained(text, message):
    with pytest.raises(UserError, match=message):
        make(text)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda: None, "too many positional arguments"),
        (lambda key, transition, more: None, "missing a required argument: 'more'"),
    ],
)
def test_a_function_of_something_else_is_refused_in_a_line(function, reason):
    with pytest.raises(
        UserError, match=rf"<lambda>: an augmentation takes a key and a transition: {reason}$"
    ):
        make(function)
