"""Environments written in JAX, in double precision. They are put into a state by their `restore`.

What is observed in the restored state is compared with the observation: an augmentation may have changed a
number that `restore` need not look at, as an achieved goal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from augury.envs.actions import blank_action
from augury.envs.base import StepsInJax
from augury.errors import UserError
from augury.transition import Observation, Transition
from augury.verify.base import (
    Answer,
    Flags,
    Judged,
    Played,
    Policy,
    Rows,
    abreast,
    actions_of,
    has_goals,
    joined,
    playing,
    rows,
)
from augury.verify.behaviour import Act, Actions, Mixture
from augury.verify.episodes import with_later_goals
from augury.verify.observations import table_of, taken
from augury.verify.played import gathered

_STEPS = np.uint32(2**32 - 2)
"""Folded into the key of a seed, beyond the numbers of transitions."""


class JaxSource(Judged):
    """Collects; nothing needs to be restored for that."""

    def __init__(self, environment: StepsInJax) -> None:
        self.environment = environment
        self.name = environment.name
        self._all_reset, self._all_observe, self._all_step = (
            jax.jit(jax.vmap(function))
            for function in (environment.reset, environment.observe, environment.step)
        )
        # Some insist on 32 bits: by what they observe, or because nothing else can be traced.
        self._double = self._observes(double=True) is not None
        observed = jax.tree.leaves(self._observes(double=self._double))
        self.single_precision = any(part.dtype == np.float32 for part in observed)

    def collect(self, samples: int, policy: Policy | None, seed: int) -> Transition:
        generator = np.random.default_rng(seed)

        def act(observation: Observation, begins: Flags) -> Any:
            return actions_of(self.environment, policy, observation, generator)

        return joined(self._rounds(samples, abreast(self.environment, samples), act, seed), samples)

    def play(self, samples: int, policy: Policy | None, seed: int) -> Played:
        generator = np.random.default_rng(seed)
        copies = playing(self.environment, samples)
        mixture = Mixture(Actions.of(self.environment, generator), copies, generator)

        def act(observation: Observation, begins: Flags) -> Any:
            if policy is None:
                return mixture(observation, begins)
            return actions_of(self.environment, policy, observation, generator)

        return gathered(self._rounds(samples, copies, act, seed))

    def _rounds(self, samples: int, count: int, act: Act, seed: int) -> list[Transition]:
        # Of another root than the copies': what an augmentation draws must not repeat what a reset drew.
        root = jax.random.fold_in(jax.random.key(seed), _STEPS)
        keys = jax.random.split(root, (-(-samples // count) + 1, count))
        states, steps, rounds = self._reset(keys[0]), np.zeros(count, int), []
        over = np.ones(count, bool)
        for key in keys[1:]:
            observation = self._observe(states)
            action = act(observation, over)
            step_key = jax.vmap(jax.random.fold_in, (0, None))(key, 1)
            states, reward, terminated = self._step(step_key, states, action)
            steps += 1
            truncated = ~terminated & (steps >= self.environment.horizon)
            following = self._observe(states)
            rounds.append(rows(observation, action, reward, following, terminated, truncated, {}))
            over = terminated | truncated
            states, steps = self._where(over, self._reset(key), states), np.where(over, 0, steps)
        if has_goals(self.environment):
            rounds = with_later_goals(rounds, seed)
        return rounds

    def _reset(self, keys: Any) -> Any:
        """Starts as training draws them, with 32 bits; then with 64."""
        starts = self._all_reset(keys)
        with jax.enable_x64(self._double):
            return jax.tree.map(_in_double_precision, starts)

    def _observe(self, states: Any) -> Observation:
        with jax.enable_x64(self._double):
            return taken(self._all_observe(states))

    def _step(self, keys: Any, states: Any, action: Any) -> tuple[Any, Rows, Flags]:
        with jax.enable_x64(self._double):
            states, reward, terminated = self._all_step(keys, states, jnp.asarray(action))
        return states, np.asarray(reward), np.asarray(terminated)

    def _where(self, flags: Flags, yes: Any, no: Any) -> Any:
        """Rows of one or the other."""

        def choose(one: Any, other: Any) -> Any:
            return jnp.where(flags.reshape(-1, *(1,) * (one.ndim - 1)), one, other)

        with jax.enable_x64(self._double):
            return jax.tree.map(choose, yes, no)

    def _observes(self, *, double: bool) -> Any:
        """The types that a step observes; None where the environment cannot be traced so."""

        def one_step(key: Any, action: Any) -> Any:
            state = jax.tree.map(_in_double_precision, self.environment.reset(key))
            return self.environment.observe(self.environment.step(key, state, action)[0])

        with jax.enable_x64(double):
            action = _in_double_precision(jnp.asarray(blank_action(self.environment)))
            try:
                return jax.eval_shape(one_step, jax.random.key(0), action)
            except TypeError:  # a loop whose state starts with 32 bits and goes on with 64, for example
                return None


class JaxSimulator(JaxSource):
    """Answers for all rows at once."""

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        if not hasattr(environment, "restore"):
            raise UserError(
                f"{self.name} cannot be verified: give it a method restore(observation, extras) that returns "
                "the state which looks like that"
            )
        self.table = table_of(environment)
        self._all_restore = jax.jit(jax.vmap(environment.restore))

    def play(self, samples: int, policy: Policy | None, seed: int) -> Played:
        played = super().play(samples, policy, seed)
        self._refuse_random_steps(played.transition)
        return played

    def ask(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        states = self._restore(observation, extras)
        following, reward, terminated = self._step(_keys(0, len(action)), states, action)
        return Answer(self._observe(following), reward, terminated, {}, self._observe(states))

    def in_contact(self, transition: Transition) -> None:
        """Nobody knows what touches what."""
        return

    def at_limit(self, transition: Transition) -> None:
        """Nor how far joints reach."""
        return

    def _restore(self, observation: Any, extras: Mapping[str, Any]) -> Any:
        with jax.enable_x64(self._double):
            given = jax.tree.map(jnp.asarray, (observation, dict(extras)))
            return self._all_restore(*given)

    def _refuse_random_steps(self, collected: Transition) -> None:
        states = self._restore(collected.observation, collected.extras)
        count = len(collected.action)
        steps = [self._step(_keys(seed, count), states, collected.action) for seed in (0, 1)]
        outcomes = [(self._observe(after), reward, terminated) for after, reward, terminated in steps]
        if not all(map(np.array_equal, *map(jax.tree.leaves, outcomes))):
            raise UserError(
                f"{self.name} cannot be verified: its step draws from its key, so that no transition can be "
                "repeated"
            )


def _keys(seed: int, count: int) -> Any:
    return jax.random.split(jax.random.key(seed), count)


def _in_double_precision(leaf: Any) -> Any:
    """Numbers with 64 bits, where they are allowed; what is no floating-point number stays as it is."""
    return jnp.asarray(leaf, float) if jnp.issubdtype(leaf.dtype, np.floating) else leaf
