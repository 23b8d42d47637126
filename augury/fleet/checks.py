"""From an arm as given to one that can be trained: defaults are filled in, and everything is checked.

No check compiles anything, but for the operations that try an augmentation on discrete actions. Each refusal
is one line that names the setting and what it may be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from augury import augmentations, envs
from augury.agents import ALGORITHMS
from augury.augmentations.base import conforming, describe, needs_of
from augury.augmentations.goals import LATER_GOALS
from augury.envs import Environment
from augury.envs.actions import blank_action
from augury.envs.base import without_numbers
from augury.errors import UserError, nearest, unknown_name
from augury.fleet.arm import Arm
from augury.fleet.building import augmentation_of, example
from augury.fleet.defaults import DEFAULTS, UNSET, defaults_for
from augury.transition import Transition


def resolved(arm: Arm) -> Arm:
    """The arm with what was left open filled in, after every check."""
    environment = envs.make(arm.environment)
    arm = _with_defaults(arm, environment)
    _check_numbers(arm)
    _check_evaluation(arm, environment)
    _check_algorithm(arm, environment)
    if arm.augmentation is not None:
        _check_augmentation(arm, environment)
    for name in ("ratio", "update_ratio"):
        if arm.augmentation is None and getattr(arm, name):
            raise UserError(f"{name} {getattr(arm, name):g} needs an augmentation: name one or leave it out")
    default = 0.0 if arm.augmentation is None else 1.0
    return replace(
        arm,
        evaluation_environment=arm.evaluation_environment or arm.environment,
        ratio=default if arm.ratio is None else float(arm.ratio),
        update_ratio=default if arm.update_ratio is None else float(arm.update_ratio),
    )


def _with_defaults(arm: Arm, environment: Environment) -> Arm:
    own, others = environment.training, defaults_for(environment)
    for name in own:
        if name not in DEFAULTS:
            raise UserError(f"{environment.name} has a default for '{name}'{nearest(name, DEFAULTS)}")
    unset = [name for name in DEFAULTS if getattr(arm, name) is UNSET]
    return replace(arm, **{name: own.get(name, others[name]) for name in unset})


def _check_algorithm(arm: Arm, environment: Environment) -> None:
    """Its actions must be of the environment's kind."""
    if arm.algorithm not in ALGORITHMS:
        raise unknown_name("algorithm", arm.algorithm, ALGORITHMS)
    discrete = environment.action_count is not None
    if ALGORITHMS[arm.algorithm].discrete != discrete:
        kind = "discrete" if discrete else "continuous"
        fit = [name for name, algorithm in ALGORITHMS.items() if algorithm.discrete == discrete]
        raise UserError(
            f"{arm.algorithm} cannot act in {environment.name}, whose actions are {kind}: use "
            f"{' or '.join(fit)}"
        )


def _check_evaluation(arm: Arm, environment: Environment) -> None:
    """The same agents must be able to act in both environments: both in JAX, or both on the host."""
    other = envs.make(arm.evaluation_environment or arm.environment)
    check_fits(environment, other)
    if (environment.runs_in == "host") != (other.runs_in == "host"):
        raise UserError(
            f"agents trained on {environment.name} cannot be evaluated on {other.name} while they train: one "
            "of these is simulated on the host; augury evaluate does that in the end"
        )


def check_fits(trained: Environment, other: Environment) -> None:
    """Agents that were trained on one environment must be able to act in the other."""

    def looks(environment: Environment) -> Any:
        observed = jax.tree.map(np.shape, environment.observation_low)
        return observed, blank_action(environment).shape, environment.action_count

    if looks(trained) != looks(other):
        raise UserError(f"agents trained on {trained.name} cannot be evaluated on {other.name}")


def _check_augmentation(arm: Arm, environment: Environment) -> None:
    if isinstance(arm.augmentation, str):
        augmentations.parse(arm.augmentation)[0].require(environment)
    elif not callable(arm.augmentation):
        raise UserError(f"{arm.augmentation!r} is no augmentation: it cannot be called")
    function = augmentation_of(arm)
    needs = set(needs_of(function)) if function is not None else set()
    if lacking := needs - set(environment.extras) - set(LATER_GOALS):
        raise UserError(f"{environment.name} does not provide the extras {', '.join(sorted(lacking))}")
    if needs & set(LATER_GOALS):
        _check_hindsight(arm, environment)
    elif function is not None and environment.action_count is not None:
        _check_discrete(arm, environment, function, sorted(needs))
    if arm.storage == "eager" and arm.ratio is not None and math.isinf(arm.ratio):
        raise UserError("storage 'eager' cannot hold infinitely many copies: use 'lazy' with ratio inf")
    kept = min(arm.buffer_size, arm.steps) * arm.policy_data
    if arm.ratio is not None and not math.isinf(arm.ratio) and arm.ratio * kept >= 2**32:
        raise UserError(f"ratio {arm.ratio:g} makes more than 2^32 copies: use 'inf'")


MOST_TRIED = 64
"""Discrete actions that an augmentation is tried on."""

_CONFORMING: set[Any] = set()
"""What was found to keep dtypes: others that differ in the values of numbers alone do so too."""


def _check_discrete(arm: Arm, environment: Environment, function: Any, needs: list[str]) -> None:
    """An action of 1.0 would choose no value, and say so only when it is compiled."""
    leaves, structure = jax.tree.flatten(function)
    kinds = tuple((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
    asked = structure, kinds, without_numbers(environment)
    if asked not in _CONFORMING:
        alike = conforming(describe(arm.augmentation), function)
        jax.eval_shape(alike, jax.random.key(0), example(environment, needs))
        _check_choices(arm, environment, alike, example(environment, needs))
        _CONFORMING.add(asked)


def _check_choices(arm: Arm, environment: Environment, function: Any, transition: Transition) -> None:
    """Networks have no value for an action that does not exist, and would not say so."""
    count = environment.action_count
    assert count is not None
    actions = jnp.unique(jnp.linspace(0, count - 1, MOST_TRIED).astype(jnp.int32))
    try:
        given = jax.vmap(lambda key, action: function(key, transition._replace(action=action)).action)(
            jax.random.split(jax.random.key(0), len(actions)), actions
        )
    except Exception:  # it may fail in a state that is not one; training will tell
        return
    if (beyond := given[(given < 0) | (given >= count)]).size:
        raise UserError(
            f"{describe(arm.augmentation)} gives action {beyond[0]}, but {environment.name} has the actions "
            f"0 to {count - 1}"
        )


def _check_hindsight(arm: Arm, environment: Environment) -> None:
    """Hindsight reads finished episodes: there must be one whenever an update draws a copy."""
    observed = environment.observation_low
    if not (isinstance(observed, dict) and "achieved_goal" in observed):
        raise UserError(f"hindsight needs observations with achieved goals, unlike {environment.name}'s")
    if arm.storage == "eager":
        raise UserError("storage 'eager' cannot hold copies that look ahead in their episode: use 'lazy'")
    horizon, collect = environment.horizon, arm.collect
    first = arm.round_steps * (math.ceil(horizon / collect) - 1)
    if arm.random_steps < first:
        raise UserError(
            f"hindsight draws from finished episodes, which take up to {horizon} steps in each "
            f"environment: random_steps must be at least {first}, not {arm.random_steps}"
        )
    kept = 2 * horizon * arm.environments
    if min(arm.buffer_size, arm.steps) < kept:
        raise UserError(
            f"hindsight needs room for two episodes of {horizon} steps in each environment: "
            f"buffer_size and steps must be at least {kept}"
        )


_SIZES = "agents steps collect updates batch_size buffer_size evaluate_every evaluation_episodes"


def _check_numbers(arm: Arm) -> None:
    _require(arm, f"{_SIZES} policy_data environments", lambda value: value >= 1, "at least 1")
    _require(arm, f"{_SIZES} random_steps environments", lambda value: value < 2**31, "below 2^31")
    _require(arm, "policy_data", math.isfinite, "a finite number")
    _require(arm, "random_steps", lambda value: value >= 0, "0 or more")
    _require(arm, "seed", lambda value: 0 <= value < 2**31, "0 or more, and below 2^31")
    _require(arm, "learning_rate", lambda value: 0 < value < math.inf, "above 0")
    _require(arm, "exploration_noise smoothing_noise smoothing_clip", _finite_and_not_negative, "0 or more")
    _require(
        arm, "discount target_rate random_action_probability", lambda value: 0 <= value <= 1, "in [0, 1]"
    )
    _require(arm, "ratio", lambda value: value is None or value >= 0, "0 or more")
    _require(arm, "update_ratio", lambda value: value is None or _finite_and_not_negative(value), "0 or more")
    if arm.random_steps // arm.round_steps >= arm.rounds:
        raise UserError(f"random_steps {arm.random_steps} leave no update in {arm.steps} steps")
    if not arm.hidden or min(arm.hidden) < 1 or max(arm.hidden) >= 2**31:
        raise UserError(f"hidden must be widths of at least 1 and below 2^31, not {arm.hidden}")
    if not math.isclose(held := arm.policy_data * arm.environments, round(held)):
        raise UserError(
            f"policy_data {arm.policy_data:g} times environments {arm.environments} must be whole"
        )
    if arm.storage not in ("lazy", "eager"):
        raise unknown_name("storage", arm.storage, ("lazy", "eager"))


def _require(arm: Arm, names: str, holds: Callable[[Any], bool], expectation: str) -> None:
    for name in names.split():
        value = getattr(arm, name)
        if not holds(value):
            raise UserError(f"{name} must be {expectation}, not {value}")


def _finite_and_not_negative(value: float) -> bool:
    return 0 <= value < math.inf
