"""R̃ has one definition: the fleet's ring, the drop-in for SB3 and the verifier hold the same copies.

The same steps go through all three. A transition carries its own number, a copy what its key drew.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from augury import Transition
from augury.augmentations import augmentation, from_numpy
from augury.pytrees import static
from augury.replay import Layout, Replay
from augury.replay.ring import LISTS, RINGS
from augury.sb3 import AugmentedReplayBuffer
from augury.sb3.algorithm import seed_of_the_run
from augury.transition import Key
from augury.verify.episodes import with_later_goals
from augury.verify.validity import augment
from tests.marks import slowly

ENVIRONMENTS, CAPACITY, STEPS, LENGTH = 3, 24, 40, 8  # the ring turns; writes of a fleet are of this length
EPISODES = np.array([7, 3, 5])  # steps, in each environment


@augmentation
class Drawn:
    """The reward is what the key draws, of 24 bits: as exact in single precision as in double."""

    needs: tuple[str, ...] = static(default=())

    def __call__(self, key: Key, transition: Transition) -> Transition:
        drawn = jax.random.bits(key, (), jnp.uint32) >> 8
        goals = [transition.extras[name] for name in self.needs]
        observation = {**transition.observation, **dict(zip(["desired_goal"], goals, strict=False))}
        return transition._replace(observation=observation, reward=drawn.astype(transition.reward.dtype))


def in_numpy(generator, transition):
    return transition._replace(reward=np.float32(generator.integers(2**24)))


def steps(dtype=np.float32) -> list[Transition]:
    """What the environments show, step by step: achieved goals say which environment and which step."""
    environment = np.arange(ENVIRONMENTS)
    rounds = []
    for number in range(STEPS):
        code = (1000 * environment + number).astype(dtype)[:, None]
        last = (number + 1) % EPISODES == 0
        cut = number % 2 == 1
        rounds.append(
            Transition(
                observation={"observation": code, "achieved_goal": code - 1, "desired_goal": 0 * code - 1},
                action=np.zeros((ENVIRONMENTS, 1), dtype),
                reward=np.zeros(ENVIRONMENTS, dtype),
                next_observation={
                    "observation": code + 1,
                    "achieved_goal": code,
                    "desired_goal": 0 * code - 1,
                },
                terminated=last & (not cut),
                truncated=last & cut,
                extras={},
            )
        )
    return rounds


def told(copies: Transition) -> list[tuple[int, int, int]]:
    """Of every copy: of which transition it is, which goal it was given, and what it drew."""
    columns = (copies.observation["observation"], copies.observation["desired_goal"], copies.reward)
    return sorted(zip(*(np.asarray(column).ravel().astype(int).tolist() for column in columns), strict=True))


def in_the_fleet(function, ratio: float, seed: int) -> list[tuple[int, int, int]]:
    rounds = steps()
    replay = Replay(
        Layout.of(jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), rounds[0])),
        ENVIRONMENTS,
        CAPACITY,
        batch_size=1,
        update_ratio=1.0,
        fractional=ratio % 1 > 0,
        later=function.needs,
    )
    buffers, ratio = replay.init(jax.random.key(seed)), jnp.float32(ratio)
    for start in range(0, STEPS, LENGTH):
        new = jax.tree.map(lambda *leaves: np.stack(leaves, 1), *rounds[start : start + LENGTH])
        buffers = add(replay, buffers, replay.layout.pack(new), jnp.int32(start), ratio, function)
    added = jnp.int32(STEPS)
    size = int(replay.augmented_size(buffers, added, ratio))
    index = jnp.arange(3 * ENVIRONMENTS * CAPACITY, dtype=jnp.uint32)  # more than there are: one program
    copies = copies_at(replay, jax.random.key(0), buffers, added, ratio, function, index)
    return told(jax.tree.map(lambda leaf: leaf[:size], copies))


add, copies_at = (jax.jit(method, static_argnums=0) for method in (Replay.add, Replay.augmented_at))


def in_the_drop_in(function, ratio: float) -> list[tuple[int, int, int]]:
    goal = spaces.Box(-np.inf, np.inf, (1,))
    names = ("observation", "achieved_goal", "desired_goal")
    buffer = AugmentedReplayBuffer(
        CAPACITY * ENVIRONMENTS,
        spaces.Dict(dict.fromkeys(names, goal)),
        spaces.Box(-1.0, 1.0, (1,)),
        device="cpu",
        n_envs=ENVIRONMENTS,
        augmentation=function,
        ratio=ratio,
    )
    for one in steps():
        infos = [{"TimeLimit.truncated": bool(cut)} for cut in one.truncated]
        done = one.terminated | one.truncated
        buffer.add(one.observation, one.next_observation, one.action, one.reward, done, infos)
    return told(buffer.augmented_transitions(10**6))


def in_the_verifier(function, seed: int) -> list[tuple[int, int, int]]:
    """Of every transition, those that the rings have forgotten too; in double precision."""
    rounds = with_later_goals(steps(np.float64), seed)
    observed = jax.tree.map(lambda *leaves: np.concatenate(leaves), *rounds)
    extras = {name: observed.extras[name] for name in function.needs}
    return told(augment(function, observed._replace(extras=extras), seed))


def held(transition: int, looking_ahead: bool) -> bool:
    """Whether R̃ has copies of a transition at the end."""
    environment, number = divmod(transition, 1000)
    finished = STEPS // EPISODES[environment] * EPISODES[environment]
    return STEPS - CAPACITY <= number < (finished if looking_ahead else STEPS)


@pytest.fixture
def seed() -> int:
    """What the drop-in will take for its own."""
    np.random.seed(0)
    return seed_of_the_run()


LATER = {"nothing": (), "future": ("future_achieved_goal",), "final": ("final_achieved_goal",)}


@pytest.mark.parametrize("ratio", [2.6, *slowly(2, 0.4)])
@pytest.mark.parametrize("later", LATER)
def test_fleet_drop_in_and_verifier_hold_the_same_copies(later, ratio, seed):
    function = Drawn(LATER[later])
    fleet = in_the_fleet(function, ratio, seed)
    assert in_the_drop_in(function, ratio) == fleet
    counts = np.unique([code for code, *_ in fleet], return_counts=True)[1]
    assert set(counts) == {math.floor(ratio), math.ceil(ratio)} - {0}
    assert all(held(code, looking_ahead=later != "nothing") for code, *_ in fleet)
    # The verifier's copy is the first of those that R̃ holds; where m < 1, of those that it may hold.
    first = [one for one in in_the_verifier(function, seed) if held(one[0], later != "nothing")]
    if ratio >= 1:
        assert set(first) <= set(fleet)
        assert {code for code, *_ in first} == {code for code, *_ in fleet}
    else:
        assert set(fleet) < set(first)


def test_goals_are_of_the_same_episode_and_not_earlier(seed):
    for code, goal, _ in in_the_fleet(Drawn(LATER["future"]), 2, seed):
        length = EPISODES[code // 1000]
        assert code <= goal < code - code % 1000 % length + length


def test_a_function_in_numpy_draws_the_same_everywhere(seed):
    function = from_numpy(in_numpy)
    fleet = in_the_fleet(function, 2.6, seed)
    assert in_the_drop_in(function, 2.6) == fleet
    assert set(fleet) > {one for one in in_the_verifier(function, seed) if held(one[0], looking_ahead=False)}


def test_what_grows_with_the_rings_is_declared():
    """By whom agents' buffers are read in place, and checkpoints cut to what is filled."""
    example = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), steps()[0])
    for later in LATER.values():
        stored = 0 if later else 2
        replay = Replay(Layout.of(example), 5, 77, batch_size=1, copies=stored, fractional=True, later=later)
        leaves = jax.tree_util.tree_leaves_with_path(replay.init(jax.random.key(0)))
        shapes = {jax.tree_util.keystr(path, simple=True, separator="."): leaf.shape for path, leaf in leaves}
        large = {name for name, shape in shapes.items() if math.prod(shape) >= 77}
        assert large == {name for name in RINGS | LISTS if name in shapes and math.prod(shapes[name])}
        assert {shapes[name][:2] for name in large & RINGS} == {(5, 77)}
