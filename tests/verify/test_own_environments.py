"""Environments of a user, outside the package, are verified by what they have."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from augury.augmentations import hindsight
from augury.augmentations.symmetry import reflect
from augury.errors import UserError
from augury.verify import verify
from augury.verify.simulators import simulator_of
from tests.sledges import sledges
from tests.verify.test_verify import MIRRORED, Spring

__all__ = ["sledges"]

SAMPLES = 120


@pytest.mark.parametrize("environment", ["sledge", "Sledge", "on_host", "Swing"])
def test_by_module_and_name_or_as_an_object(sledges, environment):
    given = getattr(sledges, environment)
    for source in (f"sledges:{environment}", given() if isinstance(given, type) else given):
        right = verify("sledges:mirror", source, samples=SAMPLES)
        assert right.valid, str(right)
        assert (right.samples, right.set_aside, right.repeating_error) == (SAMPLES, 0, 0)
        wrong = verify(sledges.half_a_mirror, source, samples=SAMPLES)
        assert wrong.invalid == SAMPLES
        assert wrong.cause == "the sign of action 0 is wrong"


def test_a_task_of_mujoco_is_verified_and_mirrored_by_its_model(sledges):
    mirror = reflect("sledges:cart")
    assert repr(mirror) == "reflect(cart)"
    report = verify(mirror, sledges.cart, samples=SAMPLES)
    assert report.valid, str(report)
    assert (report.contact.touching, report.contact.free) == (0, SAMPLES)
    assert (
        verify("sledges:half_a_mirror", "sledges:cart", samples=SAMPLES).cause
        == "the sign of action 0 is wrong"
    )


def near(achieved, desired, info):
    return jnp.linalg.norm(achieved - desired) < 0.3


def rewarded(achieved, desired, info):
    return jnp.where(near(achieved, desired, info), 0.0, -1.0)


def test_goals_in_jax_are_relabelled_along_whole_episodes(sledges):
    right = verify(hindsight(rewarded, "future", near), sledges.reaching, samples=SAMPLES)
    assert (right.valid, right.largest_error) == (True, 0), str(right)
    stale = verify(hindsight(rewarded, "future"), sledges.reaching, samples=SAMPLES)
    assert [one.name for one in stale.dimensions] == ["termination"]
    collected = simulator_of(sledges.reaching).collect(SAMPLES, None, 0)
    assert collected.truncated.any()  # after ten steps
    assert not (collected.truncated & collected.terminated).any()
    last = collected.truncated | collected.terminated
    goals = collected.extras["final_achieved_goal"][last]
    np.testing.assert_array_equal(goals, collected.next_observation["achieved_goal"][last])


def test_what_restore_does_not_look_at_is_compared_too(sledges):
    """The achieved goal follows from the position: moved alone, it says what nobody would observe."""

    def moved(key, transition):
        observation = {**transition.observation, "achieved_goal": transition.observation["achieved_goal"] + 1}
        return transition._replace(observation=observation)

    report = verify(moved, sledges.reaching, samples=SAMPLES)
    assert report.invalid == SAMPLES
    assert {one.name for one in report.dimensions} == {f"achieved_goal {n}, before the step" for n in (0, 1)}
    assert report.cause is None  # to undo all of it would be no explanation
    assert "achieved_goal 0, before the step is off by 1 in 100% of the transitions: by a constant" in (
        report.description
    )


def test_a_policy_sees_rows_of_what_jax_observes(sledges):
    seen = []

    def policy(observation):
        seen.append({name: values.shape for name, values in observation.items()})
        return -observation["observation"]

    assert verify(hindsight(rewarded, "final", near), sledges.reaching, samples=40, policy=policy).valid
    assert seen == [{"observation": (2, 2), "achieved_goal": (2, 2), "desired_goal": (2, 2)}] * 10


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            "plain",
            r"^plain cannot be verified: give it a method restore\(observation, extras\) that returns the "
            "state which looks like that$",
        ),
        (
            "on_host_for_good",
            r"on-host-for-good cannot be verified: give the engine that its vector\(count\) returns a method "
            r"restore\(observation, extras\) that brings every copy to a state with this observation$",
        ),
        (
            "windy",
            "windy cannot be verified: its step draws from its key, so that no transition can be repeated",
        ),
        ("forgetful", "forgetful does not repeat its own transitions .* restore must bring back all"),
        ("mirror", r"sledges:mirror: mirror\(\) failed: TypeError"),
        ("SOURCE", "there is no 'SOURCE' in sledges|has no 'SOURCE'"),
    ],
)
def test_what_is_missing_is_one_line(sledges, environment, message):
    with pytest.raises(UserError, match=message) as error:
        verify("sledges:mirror", f"sledges:{environment}", samples=SAMPLES)
    assert "\n" not in str(error.value)


def test_a_task_without_restored_is_told_so(sledges):
    task = sledges.Cart("heavy-cart")

    class Bare:
        """A task of the vector engine that cannot be put anywhere."""

        def __init__(self, task):
            self._task = task

        def __getattr__(self, name):
            if name == "restored":
                raise AttributeError(name)
            return getattr(self._task, name)

    message = r"heavy-cart cannot be verified: give it a method restored\(observation, extras\)"
    with pytest.raises(UserError, match=message):
        verify(sledges.mirror, Bare(task), samples=SAMPLES)


def test_a_model_without_a_table_is_no_robot():
    with pytest.raises(
        UserError, match="panda-push has a MuJoCo model, but does not say what it observes of it"
    ):
        reflect("panda-push")


def test_an_environment_of_gymnasium_shows_its_task_by_what_it_has(sledges):
    class Wrapped(gymnasium.Env):
        task = sledges.sledge

    assert simulator_of(Wrapped()).name == "sledge"


def test_an_environment_that_insists_on_32_bits_is_verified_with_them(sledges):
    class Looping(sledges.Sledge):
        """Its loop starts with a number of 32 bits: nothing else can be traced."""

        def step(self, key, state, action):
            push, _ = jax.lax.scan(
                lambda total, one: (total + one, None), jnp.float32(0), jnp.stack([action[0]] * 2)
            )
            return super().step(key, state, action + push)

    simulator = simulator_of(Looping())
    assert simulator.single_precision
    assert not simulator_of(sledges.sledge).single_precision
    assert verify(sledges.mirror, Looping(), samples=SAMPLES).valid


def test_a_time_limit_around_an_environment_without_a_spec_ends_its_episodes():
    environment = gymnasium.wrappers.TimeLimit(Spring(), 10)
    report = verify(MIRRORED, environment, samples=100)
    assert "truncation" not in report.unseen
    assert "truncation" in verify(MIRRORED, Spring(), samples=100).unseen
