"""Pilots that nobody trained: transitions of Goal2D, with a critic and a policy that are known functions."""

from __future__ import annotations

import numpy as np

from augury.advise.pilot import Pilot, numbered
from augury.envs import goal2d
from augury.fleet.arm import Arm
from augury.fleet.checks import resolved
from augury.transition import Transition

EPISODE = 20


def walked(count, seed):
    """Random walks of Goal2D, in NumPy, in episodes of twenty steps; those that succeed walk on."""
    draw = np.random.default_rng(seed)
    observation, action = (
        [],
        draw.uniform(goal2d.ACTION_LOW, goal2d.ACTION_HIGH, (count, 2)).astype(np.float32),
    )
    for number in range(count):
        if number % EPISODE == 0:
            start = draw.uniform(-1, 1, 2)
            near = np.clip(start + draw.uniform(-0.2, 0.2, 2), -1, 1)  # so that some walks succeed
            state = np.concatenate([start, near]).astype(np.float32)
        observation.append(state)
        state = goal2d.step(state, action[number])[0].astype(np.float32)
    observation = np.stack(observation)
    following, reward, terminated = goal2d.step(observation, action)
    truncated = (np.arange(count) % EPISODE == EPISODE - 1) & ~terminated
    shown = Transition(observation, action, reward, following.astype(np.float32), terminated, truncated, {})
    return numbered(shown, np.arange(count) % EPISODE == EPISODE - 1)


def distance(observation, action):
    """A critic that knows how far the goal is: no rotation changes that."""
    del action
    return -np.linalg.norm(observation[:, :2] - observation[:, 2:], axis=1).astype(float)


def pilot(count=800, *, environment=None, edit=None, critic=distance):
    observed = walked(count, seed=0)
    if edit is not None:
        observed = observed._replace(transition=edit(observed.transition))
    where = environment or goal2d.Goal2D()
    return Pilot(
        arm=resolved(Arm(environment=where, agents=1)),
        environment=where,
        observed=observed,
        finished=np.ones(count, bool),
        evaluated=walked(400, seed=1),
        critic=critic,
        policy=lambda observation: np.tile(np.float32([1, 0]), (len(observation), 1)),
    )
