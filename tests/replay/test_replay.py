"""The buffers of Algorithm 1. Every field of a stored transition encodes which transition it is."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from augury import Transition
from augury.augmentations import augmentation
from augury.augmentations.goals import LATER_GOALS
from augury.pytrees import static
from augury.replay import Layout, Replay, survey
from augury.replay.coverage import Grid
from augury.transition import Array, Key

pytestmark = pytest.mark.usefixtures("strict_dtypes")

LENGTH = 8  # transitions per write and environment


@augmentation
class Stamp:
    """Leaves the transition's number in place and stamps it with what its key draws."""

    offset: float | Array = 0.0

    def __call__(self, key: Key, transition: Transition) -> Transition:
        stamp = jax.random.uniform(key)
        # Arithmetic that a compiler might round differently in another place.
        wave = jnp.sin(stamp * 3) * transition.reward + jnp.cos(transition.observation["a"][0]) * self.offset
        return transition._replace(action=jnp.stack([stamp, wave]))


def numbered(environment: Array, number: Array) -> Transition:
    """The transition with that number of that environment."""
    code = (1000 * environment + number).astype(jnp.float32)
    observation = {"a": jnp.stack([code, -code], -1), "b": code[..., None] + 0.25}
    return Transition(
        observation=observation,
        action=jnp.stack([code, code + 0.5], -1),
        reward=code,
        next_observation=jax.tree.map(lambda leaf: leaf + 1, observation),
        terminated=number % 2 == 0,
        truncated=number % 3 == 0,
        extras={"x": code * 2},
    )


def code_of(transition: Transition) -> np.ndarray:
    """Which transition each row is, after a check that all its fields agree."""
    code = np.asarray(transition.reward)
    number = code % 1000
    np.testing.assert_array_equal(transition.observation["a"][..., 0], code)
    np.testing.assert_array_equal(transition.observation["a"][..., 1], -code)
    np.testing.assert_array_equal(transition.observation["b"][..., 0], code + 0.25)
    np.testing.assert_array_equal(transition.next_observation["b"][..., 0], code + 1.25)
    np.testing.assert_array_equal(transition.terminated, number % 2 == 0)
    np.testing.assert_array_equal(transition.truncated, number % 3 == 0)
    np.testing.assert_array_equal(transition.extras["x"], code * 2)
    return code.astype(int)


def replay(environments=2, capacity=32, batch_size=16, **options) -> Replay:
    layout = Layout.of(numbered(jnp.int32(0), jnp.int32(0)))
    return Replay(layout, environments, capacity, batch_size, **options)


def filled(replay: Replay, writes: int, ratio: float = 1.0, function=None, make=numbered):
    """Buffers after some writes, and how many transitions each environment has added."""
    add = jax.jit(replay.add)
    buffers, added = replay.init(jax.random.key(7)), 0
    for _ in range(writes):
        environment = jnp.arange(replay.environments)[:, None]
        new = jax.vmap(jax.vmap(make))(
            jnp.broadcast_to(environment, (replay.environments, LENGTH)),
            jnp.broadcast_to(added + jnp.arange(LENGTH), (replay.environments, LENGTH)),
        )
        buffers = add(buffers, replay.layout.pack(new), jnp.int32(added), jnp.float32(ratio), function)
        added += LENGTH
    return buffers, jnp.int32(added)


def sample(replay: Replay, buffers, added, ratio=1.0, function=None, batches=200, seed=0) -> Transition:
    key = jax.random.key(seed)
    return jax.jit(replay.sample, static_argnums=5)(
        key, buffers, added, jnp.float32(ratio), function, batches
    )


def halves(replay: Replay, drawn: Transition) -> tuple[Transition, Transition]:
    observed = jax.tree.map(lambda leaf: leaf[:, : replay.batch_size], drawn)
    return observed, jax.tree.map(lambda leaf: leaf[:, replay.batch_size :], drawn)


def test_a_row_holds_every_field():
    layout = Layout.of(numbered(jnp.int32(0), jnp.int32(0)))
    before = jax.vmap(numbered)(jnp.zeros(5, jnp.int32), jnp.arange(5))
    after = layout.unpack(layout.pack(before))
    assert jax.tree.structure(before) == jax.tree.structure(after)
    jax.tree.map(np.testing.assert_array_equal, before, after)
    assert [leaf.dtype for leaf in jax.tree.leaves(before)] == [leaf.dtype for leaf in jax.tree.leaves(after)]


@pytest.mark.parametrize("writes", [1, 3, 4, 6, 9])  # 4 fill the ring
def test_what_is_sampled_is_what_the_ring_holds_each_equally_often(writes):
    buffers, added = filled(replay(), writes)
    codes = code_of(sample(replay(), buffers, added, batches=2_000))
    newest = np.arange(max(0, writes * LENGTH - 32), writes * LENGTH)
    held = np.concatenate([newest, 1000 + newest])
    values, counts = np.unique(codes, return_counts=True)
    np.testing.assert_array_equal(values, held)
    expected = codes.size / len(held)
    assert (abs(counts - expected) < 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize("ratio", [0.25, 0.7, 1, 3, 2.5])
@pytest.mark.parametrize("writes", [2, 4, 7])
def test_lazy_and_eager_draw_the_same_batches_bit_for_bit(ratio, writes):
    lazy = replay(update_ratio=1.0, fractional=ratio % 1 > 0)
    eager = replay(update_ratio=1.0, fractional=ratio % 1 > 0, copies=math.ceil(ratio))
    function = Stamp(jnp.float32(0.3))
    batches = [
        sample(kind, *filled(kind, writes, ratio, function), ratio, function) for kind in (lazy, eager)
    ]
    jax.tree.map(np.testing.assert_array_equal, *batches)
    _, augmented = halves(lazy, batches[0])
    assert (augmented.action[..., 0] < 1).all()  # stamped: really augmented


@pytest.mark.parametrize("ratio", [1, 4])
def test_every_copy_is_the_same_each_time_and_differs_from_the_others(ratio):
    kind = replay(update_ratio=2.0)
    buffers, added = filled(kind, 5)
    _, augmented = halves(kind, sample(kind, buffers, added, ratio, Stamp(), batches=500))
    stamps: dict[int, set[float]] = {}
    for code, stamp in zip(
        code_of(augmented).ravel(), np.asarray(augmented.action[..., 0]).ravel(), strict=True
    ):
        stamps.setdefault(int(code), set()).add(float(stamp))
    assert len(stamps) == 64  # all that the ring holds
    assert {len(copies) for copies in stamps.values()} == {ratio}
    assert len(set.union(*stamps.values())) == 64 * ratio


@pytest.mark.slow
def test_a_copy_stays_the_same_while_the_ring_turns():
    kind = replay(environments=1, update_ratio=1.0)
    seen: dict[int, float] = {}
    for writes in range(1, 9):
        buffers, added = filled(kind, writes)
        _, augmented = halves(kind, sample(kind, buffers, added, 1, Stamp()))
        stamps = np.asarray(augmented.action[..., 0]).ravel().tolist()
        for code, stamp in zip(code_of(augmented).ravel().tolist(), stamps, strict=True):
            assert seen.setdefault(code, stamp) == stamp
    assert len(seen) == 8 * LENGTH
    assert len(set(seen.values())) == len(seen)  # and no transition inherits the copy of one overwritten


def test_an_infinite_ratio_draws_a_new_copy_every_time():
    kind = replay(environments=1, update_ratio=1.0)
    buffers, added = filled(kind, 1)
    _, augmented = halves(kind, sample(kind, buffers, added, math.inf, Stamp(), batches=50))
    assert len(np.unique(augmented.action[..., 0])) == augmented.reward.size
    assert set(np.unique(code_of(augmented))) == set(range(LENGTH))


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.75])
def test_a_fractional_ratio_augments_each_transition_with_its_probability(ratio):
    kind = replay(environments=4, capacity=512, fractional=True, update_ratio=4.0)
    buffers, added = filled(kind, 64, ratio)
    count = int(kind.augmented_size(buffers, added, jnp.float32(ratio)))
    expected = ratio * 4 * 512
    assert abs(count - expected) < 4 * math.sqrt(expected)
    # Each transition of R̃ is equally likely, and none beyond them appears.
    _, augmented = halves(kind, sample(kind, buffers, added, ratio, Stamp(), batches=2_000))
    _, counts = np.unique(np.asarray(augmented.action[..., 0]), return_counts=True)
    assert len(counts) == count
    mean = counts.sum() / count
    assert (abs(counts - mean) < 6 * np.sqrt(mean)).all()


@pytest.mark.slow
def test_a_fractional_ratio_forgets_what_the_ring_overwrote():
    kind = replay(environments=2, capacity=32, fractional=True, update_ratio=4.0)
    for writes in (3, 4, 5, 11, 23):
        buffers, added = filled(kind, writes, 0.5)
        _, augmented = halves(kind, sample(kind, buffers, added, 0.5, Stamp()))
        assert (code_of(augmented) % 1000 >= writes * LENGTH - 32).all()
        assert len(np.unique(code_of(augmented))) == int(
            kind.augmented_size(buffers, added, jnp.float32(0.5))
        )


def test_a_tiny_ratio_never_leaves_the_augmented_buffer_empty():
    kind = replay(environments=1, fractional=True, update_ratio=1.0)
    for writes, certain in ((1, 0), (4, 0), (5, 32), (7, 32), (9, 64)):
        buffers, added = filled(kind, writes, 1e-6)
        assert int(kind.augmented_size(buffers, added, jnp.float32(1e-6))) == 1
        _, augmented = halves(kind, sample(kind, buffers, added, 1e-6, Stamp()))
        assert set(np.unique(code_of(augmented))) == {certain}


@pytest.mark.parametrize(("alpha", "rows"), [(0, 0), (0.25, 4), (1, 16), (0.3, 5), (2.5, 40)])
def test_the_split_of_a_batch_is_exactly_alpha(alpha, rows):
    kind = replay(update_ratio=alpha)
    assert kind.augmented_rows == rows
    assert kind.weights.shape == (16 + rows,)
    assert kind.weights[:16].sum() == 16
    assert kind.weights[16:].sum() == pytest.approx(16 * alpha)
    buffers, added = filled(kind, 2)
    assert sample(kind, buffers, added, 1, Stamp(), batches=3).reward.shape == (3, 16 + rows)


@pytest.mark.slow
def test_agents_of_one_program_may_have_different_ratios():
    kind = replay(environments=1, update_ratio=1.0, fractional=True)
    ratios = [0.5, 1.0, 3.0, math.inf]
    alone = [sample(kind, *filled(kind, 3, ratio), ratio, Stamp(), batches=9) for ratio in ratios]
    stacked = [filled(kind, 3, ratio)[0] for ratio in ratios]
    buffers = jax.tree.map(lambda *leaves: jnp.stack(leaves), *stacked)
    together = jax.vmap(lambda b, m: kind.sample(jax.random.key(0), b, jnp.int32(24), m, Stamp(), 9))(
        buffers, jnp.array(ratios)
    )
    for index, expected in enumerate(alone):
        jax.tree.map(lambda a, b, i=index: np.testing.assert_array_equal(a[i], b), together, expected)


def looked_at(kind: Replay, ratio: float, writes: int, function, grid: Grid, succeeded=None):
    buffers, added = filled(kind, writes, ratio)
    return survey(
        jax.random.key(0),
        kind,
        buffers,
        added,
        jnp.float32(ratio),
        function,
        succeeded or (lambda transition: transition.terminated),
        grid,
    )


def test_reward_density_is_the_share_of_successes():
    grid = Grid.over(([-2000] * 3, [2000] * 3), ([0] * 2, [2000] * 2))
    kind = replay()
    held = looked_at(kind, 2, 3, Stamp(), grid, lambda transition: transition.reward % 1000 < 3)
    assert float(held.observed_reward_density) == pytest.approx(3 / 24)
    assert float(held.augmented_reward_density) == pytest.approx(3 / 24)
    nothing = looked_at(kind, 0, 3, None, grid)
    assert float(nothing.augmented_reward_density) == 0
    assert float(nothing.augmented_coverage) == 0


def test_coverage_is_the_share_of_occupied_cells():
    @augmentation
    class Elsewhere:
        def __call__(self, key: Key, transition: Transition) -> Transition:
            return transition._replace(action=transition.action + 1000)

    # Five dimensions, 9⁵ cells; only the last two vary, and only by their tens.
    grid = Grid.over(([-1e9] * 3, [1e9] * 3), ([0, 0], [9000, 9000]))
    assert grid.bins == 9
    kind = replay(environments=1)
    held = looked_at(kind, 1, 2, Elsewhere(), grid)
    assert float(held.observed_coverage) == pytest.approx(1 / 9**5)
    assert float(held.augmented_coverage) == pytest.approx(1 / 9**5)
    assert float(held.coverage) == pytest.approx(2 / 9**5)


@pytest.mark.slow
@pytest.mark.parametrize(("dimensions", "groups", "bins"), [(2, 1, 256), (6, 1, 6), (8, 1, 4), (62, 32, 8)])
def test_the_grid_fits_the_number_of_dimensions(dimensions, groups, bins):
    grid = Grid.over(([0.0] * dimensions, [1.0] * dimensions))
    assert len(grid.groups) == groups
    assert grid.bins == bins
    points = jax.random.uniform(jax.random.key(0), (300_000, dimensions))
    occupied = grid.occupied(points, jnp.ones(300_000, bool))
    assert float(occupied.mean()) > 0.98
    assert not grid.occupied(points, jnp.zeros(300_000, bool)).any()


def test_a_grid_without_bounds_is_refused():
    with pytest.raises(ValueError, match="finite bounds"):
        Grid.over(([-np.inf], [np.inf]))


# Hindsight.
LENGTHS = np.array([11, 3, 5])  # of every environment's episodes


@augmentation
class Look:
    """Keeps the transition's number as its reward and shows what it was shown: goals, and its own dice."""

    names: tuple[str, ...] = static(default=LATER_GOALS)

    @property
    def needs(self):
        return self.names

    def __call__(self, key: Key, transition: Transition) -> Transition:
        shown = [transition.extras[name][0] for name in self.names]
        dice = jax.random.randint(key, (), 0, 1000).astype(jnp.float32)
        return transition._replace(action=jnp.stack([*shown, dice]))


def reaching(environment: Array, number: Array) -> Transition:
    """What a transition achieves is its own number; episodes end as `LENGTHS` says, in either way."""
    code = (1000 * environment + number).astype(jnp.float32)
    observation = {"observation": code[None], "achieved_goal": code[None] - 0.5, "desired_goal": jnp.ones(1)}
    last = (number + 1) % jnp.asarray(LENGTHS)[environment] == 0
    return Transition(
        observation=observation,
        action=jnp.zeros(3),
        reward=code,
        next_observation={**observation, "achieved_goal": code[None]},
        terminated=last & (number % 2 == 0),
        truncated=last & (number % 2 == 1),
        extras={"x": code},
    )


def hindsight_replay(environments=3, capacity=48, later=LATER_GOALS, **options) -> Replay:
    layout = Layout.of(reaching(jnp.int32(0), jnp.int32(0)))
    return Replay(layout, environments, capacity, batch_size=16, update_ratio=4.0, later=later, **options)


def finished(writes: int, capacity: int = 48, environments: int = 3) -> list[int]:
    """Codes of the transitions of finished episodes that the rings still hold."""
    added = writes * LENGTH
    return [
        1000 * environment + number
        for environment, length in enumerate(LENGTHS[:environments])
        for number in range(max(0, added - capacity), added // length * length)
    ]


def looked(kind: Replay, writes: int, ratio: float, batches: int = 300, seed: int = 0):
    """Code, future, final and dice of augmented rows that were drawn."""
    buffers, added = filled(kind, writes, ratio, make=reaching)
    _, drawn = halves(kind, sample(kind, buffers, added, ratio, Look(), batches, seed))
    assert drawn.extras.keys() == {"x"}
    np.testing.assert_array_equal(drawn.extras["x"], drawn.reward)
    rows = np.concatenate([np.asarray(drawn.reward)[..., None], np.asarray(drawn.action)], -1)
    return rows.reshape(-1, 4).astype(int)


def last_of(code: np.ndarray) -> np.ndarray:
    """The last transition of the same episode."""
    length = LENGTHS[code // 1000]
    return code + length - 1 - code % 1000 % length


@pytest.mark.slow
@pytest.mark.parametrize("writes", [2, 5, 6, 9, 20])  # 6 fill the rings
def test_copies_that_look_ahead_are_of_finished_episodes_each_equally_often(writes):
    kind = hindsight_replay()
    rows = looked(kind, writes, ratio=2, batches=1_000)
    codes, counts = np.unique(rows[:, 0], return_counts=True)
    np.testing.assert_array_equal(codes, finished(writes))
    assert (abs(counts - counts.mean()) < 5 * np.sqrt(counts.mean())).all()
    buffers, added = filled(kind, writes, 2, make=reaching)
    assert int(kind.augmented_size(buffers, added, jnp.float32(2))) == 2 * len(codes)
    so_far = sum(writes * LENGTH // LENGTHS * LENGTHS)
    assert float(kind.augmented_total(buffers, added, jnp.float32(2))) == 2 * so_far


def test_copies_are_shown_this_step_or_a_later_one_of_the_episode_each_equally_likely():
    code, future, final, _ = looked(hindsight_replay(), writes=20, ratio=math.inf, batches=2_000).T
    np.testing.assert_array_equal(final, last_of(code))
    assert (code <= future).all()
    assert (future <= final).all()
    for remaining in range(11):
        ahead = (future - code)[final - code == remaining]
        counts = np.bincount(ahead, minlength=remaining + 1)
        assert (abs(counts - counts.mean()) < 5 * np.sqrt(counts.mean())).all()


@pytest.mark.slow
def test_a_copy_is_shown_the_same_goal_every_time_while_the_ring_turns():
    kind, seen = hindsight_replay(), {}
    for writes in range(2, 12):
        for code, future, _, dice in looked(kind, writes, ratio=3, seed=writes).tolist():
            seen.setdefault(code, {})[dice] = seen.get(code, {}).get(dice, future)
            assert seen[code][dice] == future
    assert np.mean([len(copies) for copies in seen.values()]) == pytest.approx(3, abs=0.05)
    assert np.mean([len(set(copies.values())) for copies in seen.values()]) > 1.5


def test_what_a_copy_is_shown_does_not_tell_what_it_draws():
    code, future, final, dice = looked(hindsight_replay(), writes=20, ratio=math.inf, batches=2_000).T
    long = final - code == 9
    # One of ten steps, and one of a thousand: the same key would draw numbers with the same last digit.
    assert (dice[long] % 10 == (future - code)[long]).mean() == pytest.approx(0.1, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.5, 2.5, 1e-6])
def test_a_fractional_ratio_looks_ahead_in_finished_episodes_too(ratio):
    kind = hindsight_replay(fractional=True)
    for writes in (2, 6, 11, 19):  # after the last, what is certain of this turn of the ring is not ready
        buffers, added = filled(kind, writes, ratio, make=reaching)
        held, size = finished(writes), int(kind.augmented_size(buffers, added, jnp.float32(ratio)))
        rows = looked(kind, writes, ratio)
        assert set(rows[:, 0]) <= set(held)
        assert len(np.unique(rows[:, [0, 3]], axis=0)) == pytest.approx(size, abs=1)
        assert abs(size - ratio * len(held)) < 3 * math.sqrt(len(held) * (ratio % 1) + 1)
        assert size > 0


def test_nothing_looks_ahead_before_an_episode_has_finished():
    kind = hindsight_replay(environments=3, capacity=16)
    new = jax.vmap(jax.vmap(reaching))(jnp.full((3, 2), 2), jnp.broadcast_to(jnp.arange(2), (3, 2)))
    buffers = jax.jit(kind.add)(
        kind.init(jax.random.key(0)),
        kind.layout.pack(new),
        jnp.int32(0),
        jnp.float32(2),
        None,
    )
    assert int(kind.augmented_size(buffers, jnp.int32(2), jnp.float32(2))) == 0
    assert float(kind.augmented_total(buffers, jnp.int32(2), jnp.float32(math.inf))) == 0
