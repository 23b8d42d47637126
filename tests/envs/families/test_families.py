"""Laws of all families and their augmentations: what is exact is so to rounding, what is wrong is wrong."""

import re
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from augury import envs
from augury.augmentations import families
from augury.envs.actions import random_actions
from augury.envs.families import FAMILIES
from augury.fleet import Arm, resolved
from augury.fleet.building import fleets_of
from augury.precision import double_precision
from augury.transition import Transition
from augury.verify import verify
from tests.marks import slowly

MEMBERS = ["family/point(distractors=2)", "family/pendulum", "family/cartpole", "family/grid"]
"""Of every kind of state, map and action."""
VARIANTS = [
    "family/reacher",
    "family/maze",
    "family/collect",
    "family/collect(reward='dense', coins=3)",
    "family/point(dimensions=3, discrete=True)",
    "family/point(reward='shaped', dimensions=1)",
    "family/point(goal_spread=0.3, goal_centre=0.5, reward='dense')",
    "family/pendulum(reward='sparse', friction=0.1)",
    "family/cartpole(start_spread=0.1, friction=0.1)",
    "family/grid(size=4, reward='shaped')",
]
PAGE = Path(__file__).parents[3] / "docs" / "families.md"
BROKEN = 0.3
"""A knob that breaks a symmetry, where it does."""


def episodes(task, key, actions):
    """Transitions of one environment under given actions; it begins anew where an episode ends."""

    def step(state, drawn):
        key, action = drawn
        following, reward, terminated = task.outcome(state, action)
        seen = task.observe(state), task.observe(following)
        transition = Transition(seen[0], action, reward, seen[1], terminated, jnp.zeros((), bool), {})
        begun = task.reset(key)
        return jax.tree.map(partial(jnp.where, terminated), begun, following), transition

    start, keys = task.reset(key), jax.random.split(key, len(actions))
    return jax.lax.scan(step, start, (keys, actions))[1]


def errors_of(task, keys, actions):
    """Of every augmentation on the menu: transitions it made, and how far each is off."""
    observed = jax.vmap(partial(episodes, task))(keys, actions)
    observed = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), observed)
    rows = jax.random.split(keys[0], len(observed.reward))

    def difference(one, other):
        gaps = jax.tree.map(lambda a, b: jnp.abs(a.astype(float) - b).max(), one, other)
        return jnp.stack(jax.tree.leaves(gaps)).max()

    def asked(change, key, transition):
        made = change.apply(task, key, transition, 0.5)
        state = task.restore(made.observation, {})
        following, reward, terminated = task.outcome(state, made.action)
        told = made._replace(
            observation=task.observe(state),
            reward=reward,
            next_observation=task.observe(following),
            terminated=terminated,
        )
        again = change.apply(task, key, made, 0.5) if change.involution else transition
        return Asked(
            made, difference(made, told), difference(made, transition), difference(again, transition)
        )

    return {name: jax.vmap(partial(asked, change))(rows, observed) for name, change in task.menu.items()}


class Asked(NamedTuple):
    """An augmented transition."""

    made: Transition
    off: jax.Array
    """How far the task disagrees."""
    moved: jax.Array
    """How far it is from the observed one."""
    twice: jax.Array
    """How far the augmentation, done twice, is from having done nothing; 0 where it need not be."""


UNOPTIMISED = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""Most of the time would go into optimising programs that run once."""
compiled = jax.jit(errors_of, compiler_options=UNOPTIMISED)


def judged(task):
    """What `errors_of` says; knobs are arguments of one program."""
    actions = random_actions(task, np.random.default_rng(0), 16 * 24)
    with double_precision():
        keys = jax.random.split(jax.random.key(1, impl="unsafe_rbg"), 16)  # which is compiled the fastest
        numbers = jax.tree.map(jnp.asarray, task)
        found = compiled(numbers, keys, jnp.asarray(actions.reshape(16, 24, *actions.shape[1:])))
        return jax.tree.map(np.asarray, found)


@pytest.mark.parametrize("text", [*MEMBERS, *slowly(*VARIANTS)])
def test_every_augmentation_is_as_exact_as_its_family_says(text):
    task = envs.make(text)
    found = judged(task)
    assert np.abs(found["identity"].made.observation).max() <= 1.5
    for name, change in task.menu.items():
        made, off, moved, twice = found[name]
        wrong = off > 1e-8
        assert (not wrong.any()) if change.exact else wrong.mean() > 0.05, name
        assert moved.any() != (name == "identity"), name
        assert twice.max() < 1e-12, name
        if change.exact:
            assert task.is_possible(made.observation).all(), name
            if task.action_count is None:
                assert (np.abs(made.action) <= task.action_high + 1e-6).all(), name
            else:
                assert ((made.action >= 0) & (made.action < task.action_count)).all(), name

    for knob in {one for change in task.menu.values() for one in change.broken_by}:
        broken = judged(replace(task, **{knob: BROKEN}))
        for name, change in task.menu.items():
            if change.exact:
                assert (broken[name].off > 1e-8).any() == (knob in change.broken_by), (name, knob)


def test_a_menu_does_what_its_number_chooses_and_is_wrong_by_what_it_is_told():
    task = envs.make("family/point")
    menus = [
        families.menu(name, task, error=0.25, **({change.amount[0]: 0.5} if change.amount else {}))
        for name, change in task.menu.items()
    ]
    chosen = jax.tree.map(lambda *leaves: jnp.stack(leaves), *menus)

    def both(chosen, key):
        flag = jnp.zeros((), bool)
        observed = Transition(task.reset(key), jnp.ones(2), jnp.float32(-1), jnp.zeros(6), flag, flag, {})
        own = [change.apply(task, key, observed, 0.5) for change in task.menu.values()]
        return jax.lax.map(lambda change: change(key, observed), chosen), own

    made, own = jax.jit(both, compiler_options=UNOPTIMISED)(chosen, jax.random.key(0, impl="unsafe_rbg"))
    own = jax.tree.map(lambda *leaves: jnp.stack(leaves), *own)
    own = own._replace(next_observation=own.next_observation.at[:, 0].add(0.25))
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-6), made, own)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_familys_knobs_have_a_name_a_meaning_and_limits(name):
    task = FAMILIES[name]()
    assert name in {text.partition("(")[0] for text in (*MEMBERS, *VARIANTS)}, "every family is tested"
    assert envs.reference(task) == task.name == name
    for knob in fields(task):
        default = getattr(task, knob.name)
        assert isinstance(default, bool) or knob.name in task.limits, knob.name
    for knob, words in task.words.items():
        for word in words:
            text = envs.reference(replace(task, **{knob: word}))
            assert text in (name, f"{name}({knob}='{word}')")
            assert getattr(envs.make(text), knob) == words[word]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_page_on_families_has_every_knob_and_every_augmentation(name):
    (section,) = re.findall(rf"^## `{name}`\n(.*?)^## ", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    task = FAMILIES[name]()
    for knob in fields(task):
        default = getattr(task, knob.name)
        words = {number: word for word, number in task.words.get(knob.name, {}).items()}
        assert f"| `{knob.name}` | {words.get(default, default)} |" in section
    for own, change in task.changes.items():
        assert re.search(rf"^\| `family/{own}[(`].* {change.adds} \|", section, re.MULTILINE), own


@pytest.mark.parametrize("name", FAMILIES)
def test_arms_over_knobs_and_augmentations_of_a_family_train_in_one_fleet(name):
    task = FAMILIES[name]()
    arms = [
        resolved(
            Arm(
                environment=replace(task, wind=0.1 * number),
                evaluation_environment=task,
                augmentation=f"family/{one}",
                ratio=1 + number / 2,
            )
        )
        for number, one in enumerate(task.menu)
    ]
    arms.append(resolved(Arm(environment=task, augmentation="family/reflect(error=0.1, reward_error=1)")))
    assert fleets_of(arms) == [list(range(len(arms)))]


@pytest.mark.slow
@pytest.mark.parametrize("text", [*MEMBERS, *VARIANTS])
def test_the_verifier_agrees(text):
    task = envs.make(text)
    for name, change in task.menu.items():
        report = verify(f"family/{name}", text, samples=300)
        assert report.valid == change.exact, f"{name}: {report}"
        assert not change.exact or report.outside_space == 0, f"{name}: {report}"


def test_a_single_goal_is_among_those_that_the_task_sets():
    task = envs.make("family/grid(goal_spread=0)")
    keys = jax.random.split(jax.random.key(0), 8)
    assert task.sets_goal(jax.vmap(lambda key: task.observe(task.reset(key)))(keys)).all()


def test_families_with_the_same_static_knobs_are_told_apart():
    structures = [jax.tree.structure(envs.make(text)) for text in ("family/pendulum", "family/cartpole")]
    assert structures[0] != structures[1]
