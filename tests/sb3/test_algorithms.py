"""The drop-in under algorithms that nobody here wrote, which get as many rows as they ask for."""

import importlib.util

import cloudpickle
import numpy as np
import pytest
import sb3_contrib
import stable_baselines3 as sb3
from sb3_contrib.tqc import tqc

from augury.errors import UserError
from augury.sb3 import AugmentedReplayBuffer
from augury.sb3.batches import interleaved
from tests.sb3.test_buffer import Numbered, Recording, check_rows, filled, mirror, small


def trained(kind, steps=15, buffer=Recording, **kwargs):
    """A model after a few updates with batches of 16, and its environment."""
    env = Numbered()
    model = kind(
        "MlpPolicy",
        env,
        learning_starts=10,
        batch_size=16,
        replay_buffer_class=buffer,
        replay_buffer_kwargs={"augmentation": mirror} | kwargs,
        **small(),
    )
    return model.learn(steps), env


@pytest.mark.parametrize("update_ratio", [0.25, 1.0, 1.7, 4.0])
def test_any_cut_of_interleaved_rows_has_the_right_share(update_ratio):
    share = update_ratio / (1 + update_ratio)
    phases = np.linspace(0, 1, 1000, endpoint=False)
    layouts = np.stack([interleaved(60, update_ratio, phase) for phase in phases])
    for first, end in ((0, 60), (0, 30), (7, 8), (13, 45)):
        counts = layouts[:, first:end].sum(1)
        assert np.abs(counts - share * (end - first)).max() < 1
        assert counts.mean() == pytest.approx(share * (end - first), abs=0.01)


def test_a_batch_may_have_no_observed_row_or_no_augmented_one():
    buffer, vector = filled(augmentation=mirror, batch_size_counts="all")
    alone = [check_rows(vector.envs[0], buffer.sample(1)) for _ in range(50)]
    assert {len(augmented) for augmented in alone} == {1}
    assert {bool(augmented[0]) for augmented in alone} == {True, False}


class Halving(sb3_contrib.TQC):
    """Updates with half of the batch size, whatever it is called with."""

    def train(self, *args, **kwargs):
        super().train(*args[:1] or [kwargs["gradient_steps"]], batch_size=self.batch_size // 2)


class Fewer(sb3_contrib.TQC):
    """Updates with half of the batch size that it is told."""

    def train(self, gradient_steps, batch_size=64):
        super().train(gradient_steps, batch_size // 2)


class Looking(sb3.SAC):
    """Looks at a batch before it updates as SAC does."""

    def train(self, gradient_steps, batch_size=64):
        self.rows = len(self.replay_buffer.sample(batch_size).rewards)
        super().train(gradient_steps, batch_size)


def copied_tqc():
    """TQC's own file under another module's name, as people copy it into their projects."""
    spec = importlib.util.spec_from_file_location("elsewhere", tqc.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.TQC is not sb3_contrib.TQC
    return module.TQC


@pytest.mark.parametrize(("kind", "rows"), [(Halving, 8), (Fewer, 8), (Looking, 16), (copied_tqc(), 16)])
def test_an_algorithm_from_elsewhere_gets_the_rows_that_it_asks_for(kind, rows):
    model, env = trained(kind)
    assert type(model) is kind
    assert len(model.replay_buffer.batches) >= 4
    for drawn in model.replay_buffer.batches:
        augmented = check_rows(env, drawn)
        assert (len(augmented), augmented.sum()) == (rows, rows // 2)
    assert len(model.replay_buffer.sample(32).rewards) == 32


def test_an_algorithm_of_ones_own_may_take_more_rows_when_told_so():
    model, _ = trained(Looking, batch_size_counts="observed")
    assert model.rows == 32
    assert type(model) is Looking


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Halving, r"Halving.train\(self, \*args, \*\*kwargs\) has no batch_size .*'all'"),
        (
            Fewer,
            "mirror: train was told to ask for 32 rows, of which 16 are observed, and asks for 16; .*'all'",
        ),
    ],
)
def test_a_train_that_cannot_be_wrapped_is_refused_with_the_way_out(kind, message):
    with pytest.raises(UserError, match=message):
        trained(kind, batch_size_counts="observed")


def test_a_model_that_asks_for_every_row_can_be_pickled_and_trained_by_hand():
    model, _ = trained(sb3_contrib.TQC, buffer=AugmentedReplayBuffer, batch_size_counts="observed")
    again = cloudpickle.loads(cloudpickle.dumps(model))
    again.train(gradient_steps=1)  # with the batch size that TQC has by default
    assert again.replay_buffer.drawn_augmented == model.replay_buffer.drawn_augmented + 64
    assert isinstance(again, sb3_contrib.TQC)


@pytest.mark.parametrize("kind", [sb3_contrib.TQC, Looking])
def test_a_buffer_that_such_a_model_did_not_build_is_refused_rather_than_cut_wrongly(kind):
    model = kind("MlpPolicy", Numbered(), learning_starts=10, **small())
    model.replay_buffer, _ = filled(augmentation=mirror)
    model.replay_buffer.sample(4)
    with pytest.raises(
        UserError, match=r"may count on as many rows as it asks for: .* batch_size_counts='all'"
    ):
        model.learn(12)


def test_with_every_row_counted_a_buffer_assigned_by_hand_will_do():
    model = sb3_contrib.TQC("MlpPolicy", Numbered(), learning_starts=10, batch_size=16, **small())
    model.replay_buffer, _ = filled(augmentation=mirror, batch_size_counts="all")
    model.learn(14)
    assert model.replay_buffer.drawn_observed == model.replay_buffer.drawn_augmented == 32
