"""Fleets: what must be the same however agents are grouped, stored, split and interrupted."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from augury.augmentations import augmentation, choose, compose, from_numpy, sometimes
from augury.envs.goal2d import Goal2D
from augury.errors import UserError
from augury.fleet import Arm, resolved, train, train_fleet
from augury.fleet.building import fleets_of, program_of
from augury.fleet.jax_trainer import JaxTrainer
from augury.replay import Replay
from tests.fleet.comparing import assert_different, assert_same, member
from tests.marks import slowly

SMALL = Arm(
    agents=2,
    steps=1_024,
    random_steps=192,
    collect=64,
    updates=8,
    batch_size=16,
    hidden=(16, 16),
    evaluate_every=256,
    evaluation_episodes=20,
)
TRANSLATE = replace(SMALL, augmentation="goal2d/translate")


def learned(arm: Arm):
    """The learners of an arm's agents after training."""
    arm = resolved(arm)
    fleet = JaxTrainer([arm])
    agents = fleet.advance(fleet.init(), 0, arm.rounds)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[: arm.agents], agents.learner)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["td3", "ddpg", "sac"])
def test_an_agent_alone_is_the_same_agent_inside_a_fleet(algorithm):
    crowd = learned(replace(TRANSLATE, algorithm=algorithm, agents=5))
    for index in (0, 3, 4):
        alone = learned(replace(TRANSLATE, algorithm=algorithm, agents=1, seed=index))
        assert_same(alone, member(crowd, index))
    assert_different(member(crowd, 0), member(crowd, 1))


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [1.25, 1, 3, 0.5])
def test_stored_and_recomputed_augmentation_train_the_same_agents(ratio):
    lazy = replace(TRANSLATE, ratio=ratio)
    assert_same(learned(lazy), learned(replace(lazy, storage="eager")))


@pytest.mark.slow
@pytest.mark.parametrize("nothing", [{"ratio": 0}, {"update_ratio": 0}, {"ratio": 4, "update_ratio": 0}])
def test_no_augmented_transitions_is_no_augmentation(nothing):
    assert_same(learned(replace(TRANSLATE, **nothing)), learned(SMALL))
    assert_different(learned(TRANSLATE), learned(SMALL))


@pytest.mark.slow
def test_arms_of_one_fleet_train_as_they_would_apart():
    arms = [
        TRANSLATE,
        replace(TRANSLATE, ratio=4, seed=7),
        replace(TRANSLATE, ratio=0.5, learning_rate=1e-4),
        replace(TRANSLATE, ratio=math.inf, exploration_noise=0.3, discount=0.9),
    ]
    checked = [resolved(arm) for arm in arms]
    assert fleets_of(checked) == [[0, 1, 2, 3]]
    fleet = JaxTrainer(checked)
    together = fleet.advance(fleet.init(), 0, resolved(SMALL).rounds).learner
    for index, arm in enumerate(arms):
        rows = jax.tree.map(lambda leaf, i=index: np.asarray(leaf)[2 * i : 2 * i + 2], together)
        assert_same(rows, learned(arm))


@pytest.mark.slow
def test_a_parameter_of_the_augmentation_may_differ_inside_a_fleet():
    arms = [resolved(replace(SMALL, augmentation=f"goal2d/translate-proximal({p})")) for p in (0, 0.25, 1)]
    assert fleets_of(arms) == [[0, 1, 2]]
    densities = [result.evaluations["augmented_reward_density"][:, -1].mean() for result in train_fleet(arms)]
    np.testing.assert_allclose(densities, [0, 0.25, 1], atol=0.03)


def test_arms_with_other_shapes_get_fleets_of_their_own():
    arms = [
        SMALL,
        TRANSLATE,
        replace(TRANSLATE, batch_size=32),
        replace(TRANSLATE, ratio=2),
        replace(SMALL, seed=9),
    ]
    assert fleets_of([resolved(arm) for arm in arms]) == [[0, 4], [1, 3], [2]]


@pytest.mark.slow
def test_however_the_rounds_are_split_the_program_is_traced_once_and_ends_alike():
    arm = resolved(replace(TRANSLATE, hidden=(24,)))  # a program of its own: not traced before
    fleet = JaxTrainer([arm])
    agents, first = fleet.init(), 0
    for rounds in (1, 5, 2, 8):
        agents = fleet.advance(agents, first, rounds)
        first += rounds
    outcome = jax.tree.map(np.asarray, agents.learner)
    assert_same(outcome, learned(arm))
    assert fleet.compiled.traces == 1


@pytest.mark.parametrize("arm", [TRANSLATE, *slowly(replace(TRANSLATE, storage="eager"))])
def test_a_restored_fleet_goes_on_with_the_program_that_is_compiled(arm, caplog):
    fleet = JaxTrainer([resolved(arm)])
    agents = fleet.advance(fleet.init(), 0, 2)
    saved = fleet.save(agents, 2)
    with jax.log_compiles():
        restored = fleet.load(saved)
        caplog.clear()
        fleet.advance(fleet.advance(restored, 2, 1), 3, 1)
    assert "Compiling" not in caplog.text


@pytest.mark.slow
def test_evaluating_more_often_does_not_change_training():
    often = train_fleet([resolved(replace(TRANSLATE, evaluate_every=64))])[0].evaluations
    seldom = train_fleet([resolved(replace(TRANSLATE, evaluate_every=512))])[0].evaluations
    rows = np.searchsorted(often["steps"], seldom["steps"])
    for name in ("success", "returns", "coverage"):
        np.testing.assert_array_equal(often[name][:, rows], seldom[name])


@pytest.mark.slow
def test_results_tell_ratios_and_counts():
    arm = replace(TRANSLATE, ratio=4, update_ratio=0.5)
    evaluations = train([arm])[0].evaluations
    np.testing.assert_array_equal(evaluations["steps"], [256, 512, 768, 1024])
    np.testing.assert_array_equal(evaluations["updates"], [8, 40, 72, 104])  # after 192 random steps
    np.testing.assert_array_equal(evaluations["transitions"], evaluations["steps"])
    np.testing.assert_allclose(evaluations["replay_ratio"][:, 1:], 0.125)
    np.testing.assert_allclose(evaluations["augmented_replay_ratio"][:, 1:], 0.125 / 4)
    assert evaluations["success"].shape == (2, 4)
    assert (evaluations["observed_coverage"][:, -1] > evaluations["observed_coverage"][:, 0]).all()
    assert (evaluations["augmented_coverage"] > evaluations["observed_coverage"]).all()
    assert (evaluations["coverage"] >= evaluations["augmented_coverage"]).all()


@pytest.mark.slow
def test_a_fractional_ratio_shows_in_the_measured_replay_ratio():
    evaluations = train([replace(TRANSLATE, ratio=0.5, agents=4)])[0].evaluations
    measured = evaluations["augmented_replay_ratio"][:, 1:].mean()
    assert measured == pytest.approx(0.125 / 0.5, rel=0.1)


@pytest.mark.slow
def test_policy_data_multiplies_transitions_batch_and_buffer_but_not_updates():
    arm = replace(SMALL, policy_data=4)
    replay: Replay = program_of(resolved(arm)).replay
    assert (replay.environments, replay.batch_size, replay.capacity) == (4, 64, 1024)
    plain, more = (train([each])[0].evaluations for each in (SMALL, arm))
    np.testing.assert_array_equal(more["updates"], plain["updates"])
    np.testing.assert_array_equal(more["transitions"], 4 * plain["transitions"])
    assert (more["coverage"][:, -1] > 1.5 * plain["coverage"][:, -1]).all()


@pytest.mark.slow
def test_policy_data_may_be_thirds_of_environments():
    arm = replace(TRANSLATE, environments=3, policy_data=5 / 3, ratio=1 / 5, update_ratio=1 / 5)
    replay: Replay = program_of(resolved(arm)).replay
    assert (replay.environments, replay.batch_size) == (5, 27)
    assert replay.weights.sum() == pytest.approx(27 * 6 / 5)
    evaluations = train([arm])[0].evaluations
    np.testing.assert_array_equal(evaluations["transitions"], evaluations["steps"] * 5 // 3)
    with pytest.raises(UserError, match=r"policy_data 1\.66667 times environments 2 must be whole"):
        resolved(replace(arm, environments=2))


@pytest.mark.slow
def test_several_environments_share_an_agents_steps_and_multiply_its_updates():
    arm = replace(TRANSLATE, collect=16, updates=2, environments=4, policy_data=2, ratio=2, buffer_size=512)
    replay: Replay = program_of(resolved(arm)).replay
    assert (replay.environments, replay.batch_size, replay.capacity) == (8, 32, 128)
    alone, several = (train([each])[0].evaluations for each in (TRANSLATE, arm))
    np.testing.assert_array_equal(several["steps"], alone["steps"])
    np.testing.assert_array_equal(several["updates"], alone["updates"])
    np.testing.assert_array_equal(several["transitions"], 2 * alone["steps"])
    np.testing.assert_allclose(several["replay_ratio"][:, 1:], 0.125 / 2)
    np.testing.assert_allclose(several["augmented_replay_ratio"][:, 1:], 0.125 / 2 / 2)
    crowd = learned(arm)
    assert_same(crowd, learned(replace(arm, storage="eager")))
    assert_same(member(crowd, 1), learned(replace(arm, agents=1, seed=1)))


@pytest.mark.slow
def test_training_on_a_quadrant_is_evaluated_everywhere():
    arm = resolved(replace(SMALL, environment="goal2d-quadrant", evaluation_environment="goal2d"))
    program = program_of(arm)
    assert program.environment == Goal2D("quadrant")
    assert program.evaluation_environment == Goal2D("all")
    fleet = JaxTrainer([arm])
    rows = np.asarray(fleet.advance(fleet.init(), 0, arm.rounds).buffers.observed)
    goals = program.replay.layout.unpack(rows).observation[..., 2:]
    assert goals.min() >= 0


@pytest.mark.slow
def test_transitions_in_the_buffer_are_real():
    """Final observations are kept, resets are not mistaken for steps, time limits are truncations."""
    arm = resolved(replace(SMALL, agents=1, steps=6_400, exploration_noise=0.5, evaluate_every=6_400))
    fleet = JaxTrainer([arm])
    rows = fleet.advance(fleet.init(), 0, arm.rounds).buffers.observed[0, 0]
    stored = jax.tree.map(np.asarray, fleet.program.replay.layout.unpack(rows))
    following, reward, terminated = jax.vmap(Goal2D().step, (None, 0, 0))(
        jax.random.key(0), stored.observation, stored.action
    )
    np.testing.assert_allclose(stored.next_observation, following, atol=2.5e-7)
    np.testing.assert_array_equal(stored.terminated, terminated)
    np.testing.assert_array_equal(stored.reward, reward)
    over = stored.terminated | stored.truncated
    continued = ~over[:-1]
    np.testing.assert_array_equal(stored.observation[1:][continued], stored.next_observation[:-1][continued])
    lengths = np.diff(np.flatnonzero(over), prepend=-1)
    assert (lengths[stored.truncated[over]] == 100).all()
    assert (lengths <= 100).all()
    assert not (stored.truncated & stored.terminated).any()
    first = stored.observation[1:][over[:-1]]
    assert (np.linalg.norm(first[:, :2] - first[:, 2:], axis=1) >= 0.05).all()


@pytest.mark.slow
def test_a_numpy_augmentation_trains():
    def mirror(generator, transition):
        flip = np.array([-1, 1, -1, 1], np.float32)
        angle = (np.pi - transition.action[1]) % (2 * np.pi)
        return transition._replace(
            observation=transition.observation * flip,
            action=np.array([transition.action[0], angle]),
            next_observation=transition.next_observation * flip,
        )

    @augmentation
    class Mirror:
        def __call__(self, key, transition):
            flip = jnp.array([-1.0, 1.0, -1.0, 1.0])
            angle = (jnp.pi - transition.action[1]) % (2 * jnp.pi)
            return transition._replace(
                observation=transition.observation * flip,
                action=transition.action.at[1].set(angle),
                next_observation=transition.next_observation * flip,
            )

    short = replace(SMALL, agents=1, steps=320)
    written, compiled = (
        learned(replace(short, augmentation=each)) for each in (from_numpy(mirror), Mirror())
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), written, compiled)


@pytest.mark.slow
def test_an_augmentation_may_be_a_plain_function_or_have_vectors_as_parameters():
    def stay(key, transition):
        return transition

    @augmentation
    class Stay:
        offset: object

        def __call__(self, key, transition):
            return transition._replace(observation=transition.observation + self.offset)

    short = replace(SMALL, agents=4, steps=320)
    plain, vector = (learned(replace(short, augmentation=each)) for each in (stay, Stay(jnp.zeros(4))))
    assert_same(plain, vector)
    combined = compose(stay, sometimes(0.5, stay), choose(stay, stay))
    assert_same(plain, learned(replace(short, augmentation=combined)))


def test_arms_that_do_not_fit_together_are_refused_by_one_fleet():
    with pytest.raises(UserError, match="cannot train in one fleet"):
        train_fleet([SMALL, replace(SMALL, batch_size=8)])


@pytest.mark.slow
def test_a_diverged_agent_is_reported_by_its_seed_and_kept():
    arms = [replace(SMALL, seed=3), replace(SMALL, seed=5, learning_rate=1e30)]
    healthy, lost = train(arms)
    assert healthy.diverged == {}
    assert lost.diverged == {5: 256, 6: 256}
    assert lost.evaluations["success"].shape == (2, 4)
    assert np.isfinite(lost.evaluations["success"]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"agents": 0}, "agents must be at least 1, not 0"),
        ({"steps": -5}, "steps must be at least 1, not -5"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"buffer_size": 0}, "buffer_size must be at least 1"),
        ({"seed": -1}, "seed must be 0 or more"),
        ({"discount": 1.5}, r"discount must be in \[0, 1\], not 1.5"),
        ({"learning_rate": 0}, "learning_rate must be above 0"),
        ({"learning_rate": math.nan}, "learning_rate must be above 0"),
        ({"hidden": (64, 0)}, "hidden must be widths of at least 1"),
        ({"ratio": -1, "augmentation": "goal2d/rotate"}, "ratio must be 0 or more, not -1"),
        ({"ratio": math.nan, "augmentation": "goal2d/rotate"}, "ratio must be 0 or more"),
        ({"update_ratio": math.inf, "augmentation": "goal2d/rotate"}, "update_ratio must be 0 or more"),
        ({"update_ratio": 1}, "update_ratio 1 needs an augmentation"),
        ({"ratio": 2}, "ratio 2 needs an augmentation"),
        ({"algorithm": "td4"}, "unknown algorithm 'td4': did you mean 'td3'?"),
        ({"environment": "goal3d"}, "unknown environment 'goal3d': did you mean 'goal2d'?"),
        ({"evaluation_environment": "x"}, "unknown environment 'x'"),
        ({"storage": "lzy"}, "unknown storage 'lzy': did you mean 'lazy'?"),
        ({"ratio": math.inf, "augmentation": "goal2d/rotate", "storage": "eager"}, "cannot hold infinitely"),
        ({"random_steps": 1_024}, "random_steps 1024 leave no update in 1024 steps"),
        ({"ratio": 1e8, "augmentation": "goal2d/rotate"}, "use 'inf'"),
    ],
)
def test_impossible_arms_are_refused(change, message):
    with pytest.raises(UserError, match=message):
        train([replace(SMALL, **change)])


def test_an_augmentation_that_needs_what_the_environment_lacks_is_refused():
    @augmentation
    class Needy:
        needs = ("x_velocity",)

        def __call__(self, key, transition):
            return transition

    with pytest.raises(UserError, match="goal2d does not provide the extras x_velocity"):
        train([replace(SMALL, augmentation=Needy())])
