"""Fleets compared to the last bit, and killed in between."""

import math

import jax
import numpy as np
import pytest

from augury.fleet import host_trainer, shared_trainer, train_fleet, training
from augury.runs import checkpoints


class KilledError(Exception):
    """In place of a SIGKILL."""


def train_until_killed(arms, path, monkeypatch, rounds=0):
    """Train with a checkpoint after every round, as far as trainers allow, and die with that of `rounds`."""
    save = checkpoints.save

    def save_and_die(path, checkpoint, *about):
        save(path, checkpoint, *about)
        if checkpoint.rounds >= rounds:
            raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "save", save_and_die)
        patch.setattr(training, "CHECKPOINT_SHARE", math.inf)
        patch.setattr(host_trainer, "HOST_CALL_SECONDS", 0.0)
        patch.setattr(shared_trainer, "CALL_SECONDS", 0.0)
        with pytest.raises(KilledError):
            train_fleet(arms, checkpoint=path, checkpoint_every=0)


def assert_same(first, second):
    jax.tree.map(np.testing.assert_array_equal, first, second)


def assert_different(first, second):
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    assert any((a != b).any() for a, b in pairs)


def member(tree, index):
    """One agent, of what a fleet's agents have."""
    return jax.tree.map(lambda leaf: leaf[index : index + 1], tree)
