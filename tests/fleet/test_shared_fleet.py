"""Arms whose environments share one simulation: each trains as it would alone."""

from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import numpy as np
import pytest

from augury.envs.goal2d import Goal2D
from augury.errors import UserError
from augury.fleet import Arm, jax_trainer, memory, resolved, shared_trainer, train_fleet
from augury.fleet.building import fleets_of
from augury.fleet.evaluation import Policies
from augury.fleet.trainers import trainer_for
from augury.runs import checkpoints
from tests.fleet.comparing import assert_same, train_until_killed


@dataclass(frozen=True)
class SharedGoal2D(Goal2D):
    """Goal2D, stepped as a simulation on a device would be."""

    runs_in: ClassVar[str] = "device"
    name: ClassVar[str] = "goal2d-shared"


NONE = Arm(
    algorithm="ddpg",
    environment=SharedGoal2D(),
    agents=2,
    environments=2,
    steps=512,
    random_steps=64,
    collect=8,
    updates=1,
    batch_size=8,
    hidden=(8, 8),
    evaluate_every=256,
    evaluation_episodes=2,
)
TRANSLATE = replace(NONE, augmentation="goal2d/translate", ratio=2.5, agents=3, seed=7)
MORE = replace(NONE, seed=20)  # the program of NONE
ARMS = [NONE, TRANSLATE, MORE]


@pytest.fixture(scope="module")
def together():
    return train_fleet(ARMS)


def whole(result):
    return result.evaluations, result.actors


def test_arms_of_one_simulation_are_one_fleet():
    elsewhere = replace(NONE, environment="goal2d")
    other_networks = replace(NONE, hidden=(8,))
    arms = [resolved(arm) for arm in (*ARMS, elsewhere, other_networks)]
    assert fleets_of(arms) == [[0, 1, 2], [3], [4]]


@pytest.mark.slow
def test_every_arm_trains_as_it_would_alone(together):
    for arm, result in zip(ARMS, together, strict=True):
        (alone,) = train_fleet([arm])
        assert_same(whole(alone), whole(result))
    assert [result.evaluations["seeds"].tolist() for result in together] == [[0, 1], [7, 8, 9], [20, 21]]


@pytest.mark.slow
def test_it_learns_what_a_fleet_of_its_own_would_up_to_rounding():
    arm = resolved(replace(TRANSLATE, agents=2))
    own = trainer_for([replace(arm, environment="goal2d", evaluation_environment="goal2d")])
    shared = trainer_for([arm])
    assert isinstance(own, jax_trainer.JaxTrainer)
    assert isinstance(shared, shared_trainer.SharedTrainer)
    rounds = shared.first_update_round + 3
    expected, (ours,) = own.advance(own.init(), 0, rounds), shared.advance(shared.init(), 0, rounds)
    np.testing.assert_allclose(ours.buffers.observed, expected.buffers.observed, atol=1e-5)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), ours.learner.actor, expected.learner.actor
    )


@pytest.mark.slow
def test_a_killed_fleet_resumes_bit_for_bit(together, tmp_path, monkeypatch):
    path = tmp_path / checkpoints.NAME
    train_until_killed(ARMS, path, monkeypatch, rounds=10)
    assert checkpoints.load(path, [resolved(arm).described() for arm in ARMS]).rounds < 32
    for resumed, expected in zip(train_fleet(ARMS, checkpoint=path), together, strict=True):
        assert_same(whole(resumed), whole(expected))


@pytest.mark.slow
def test_policies_play_in_the_order_of_their_arms(together):
    trainer = trainer_for([resolved(arm) for arm in ARMS])
    actors = jax.tree.map(lambda *leaves: np.concatenate(leaves), *(result.actors for result in together))
    success, returns = trainer.play(actors, seed=3)
    for arm, result, first in zip(ARMS, together, (0, 2, 5), strict=True):
        alone = trainer_for([resolved(arm)]).play(result.actors, seed=3)
        np.testing.assert_array_equal(
            alone, (success[first : first + arm.agents], returns[first : first + arm.agents])
        )


@pytest.mark.slow
def test_policies_play_where_steps_happen_elsewhere(together):
    result = together[0]
    own, elsewhere = (
        Policies(result.asked, result.actors).play(name, 4, seed=1) for name in (None, "goal2d")
    )
    np.testing.assert_allclose(own.returns, elsewhere.returns, atol=1e-4)


def test_what_does_not_fit_into_memory_is_refused_before_training(monkeypatch):
    monkeypatch.setattr(memory, "_limit", lambda device: 100_000)
    with pytest.raises(UserError, match=r"2 agents need .* GiB .*: about 1 would fit; train fewer"):
        train_fleet([replace(NONE, steps=1_000, buffer_size=1_000)])
