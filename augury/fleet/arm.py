"""An arm: what one group of agents is asked to do. Arms are what a study compares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from augury import augmentations, envs
from augury.agents import ALGORITHMS, Hyperparameters
from augury.augmentations import Augmentation
from augury.augmentations.base import as_pytree, needs_of
from augury.augmentations.goals import LATER_GOALS
from augury.envs import Environment
from augury.errors import UserError, unknown_name
from augury.fleet.defaults import unless_said, with_own_defaults
from augury.fleet.program.base import Settings, blank_observation
from augury.fleet.program.in_jax import JaxProgram
from augury.fleet.program.with_host import HostProgram
from augury.replay import Layout, Replay
from augury.replay.coverage import Grid
from augury.transition import Transition, seen

Storage = Literal["lazy", "eager"]


@dataclass(frozen=True, kw_only=True)
class Arm:
    """Settings of one arm.

    The defaults are the paper's for Goal2D (TD3). Where an environment has its own (`training`), `resolved`
    takes those for what was not given.
    """

    environment: str = "goal2d"
    """Where the agents collect experience (see `augury list`)."""
    evaluation_environment: str | None = None
    """Where they are evaluated; the same, if not said."""
    algorithm: str = unless_said("td3")
    """ddpg, td3 or sac."""
    augmentation: str | Augmentation | None = None
    """Name of an augmentation, parameters in brackets: 'goal2d/translate-proximal(0.1)'."""
    ratio: float | None = None
    """m, augmented transitions per observed one; a fraction or 'inf' too. 1 with an augmentation."""
    update_ratio: float | None = None
    """α, augmented per observed transition in an update batch; a fraction too. 1 with an augmentation."""
    policy_data: float = 1
    """xN policy data: N times the environments, batch and buffer; steps are counted as without."""
    environments: int = unless_said(1)
    """Environments of each agent; the ratios stay as they are, k environments make k times the updates."""
    storage: Storage = "lazy"
    """Recompute augmented transitions when sampled (lazy), or store them (eager): the same batches."""
    agents: int = 10
    """How many agents to train, with seeds from `seed` on."""
    seed: int = 0
    """Seed of the first agent."""
    steps: int = unless_said(200_000)
    """Steps of an agent in all its environments."""
    random_steps: int = unless_said(10_000)
    """Steps with uniform actions before the first update."""
    collect: int = unless_said(64)
    """Steps in each environment between updates."""
    updates: int = unless_said(32)
    """Updates after every `collect` steps, for each environment."""
    batch_size: int = unless_said(128)
    """Observed transitions in an update batch."""
    buffer_size: int = unless_said(1_000_000)
    """Observed transitions kept; never more than the run collects."""
    hidden: tuple[int, ...] = unless_said((64, 64))
    """Widths of the hidden layers."""
    learning_rate: float = unless_said(1e-3)
    discount: float = unless_said(0.99)
    target_rate: float = unless_said(0.005)
    """Share of the online network in a target's step."""
    exploration_noise: float = unless_said(0.1)
    """Standard deviation of the noise on actions scaled to [-1, 1]."""
    random_action_probability: float = unless_said(0.0)
    """Chance of a uniform action while collecting."""
    smoothing_noise: float = unless_said(0.2)
    """TD3: noise on target actions."""
    smoothing_clip: float = unless_said(0.5)
    """TD3: largest noise on target actions."""
    evaluate_every: int = unless_said(10_000)
    """Steps between evaluations."""
    evaluation_episodes: int = unless_said(80)
    """Episodes in an evaluation."""

    def resolved(self) -> Arm:
        """The arm with what was left open filled in, after every check that needs no compilation."""
        environment = envs.make(self.environment)
        arm = with_own_defaults(self, environment.training)
        return arm._checked(environment)

    def _checked(self, environment: Environment) -> Arm:
        self._check_numbers()
        self._check_evaluation(environment)
        if self.algorithm not in ALGORITHMS:
            raise unknown_name("algorithm", self.algorithm, ALGORITHMS)
        if self.augmentation is None:
            for name in ("ratio", "update_ratio"):
                if getattr(self, name):
                    raise UserError(
                        f"{name} {getattr(self, name):g} needs an augmentation: name one or leave it out"
                    )
        else:
            self._check_augmentation(environment)
        default = 0.0 if self.augmentation is None else 1.0
        return replace(
            self,
            evaluation_environment=self.evaluation_environment or self.environment,
            ratio=default if self.ratio is None else float(self.ratio),
            update_ratio=default if self.update_ratio is None else float(self.update_ratio),
        )

    def described(self) -> dict[str, Any]:
        """The settings as plain values, as `run.json` holds them."""
        settings = asdict(replace(self, augmentation=None))
        settings["augmentation"] = (
            self.augmentation if isinstance(self.augmentation, str | None) else repr(self.augmentation)
        )
        settings["hidden"] = list(self.hidden)
        settings["ratio"] = "inf" if self.ratio is not None and math.isinf(self.ratio) else self.ratio
        return settings

    def function(self) -> Augmentation | None:
        """The augmentation itself; none where m = 0 leaves nothing augmented."""
        if self.ratio == 0 or self.augmentation is None:
            return None
        if isinstance(self.augmentation, str):
            return augmentations.make(self.augmentation, self.environment)
        return as_pytree(self.augmentation)

    def program(self) -> JaxProgram | HostProgram:
        """What fixes shapes. Arms with equal programs train in one fleet."""
        assert self.ratio is not None, "resolve the arm first"
        assert self.update_ratio is not None, "resolve the arm first"
        environment: Any = envs.make(self.environment)
        function = self.function()
        augmented = function is not None
        needs = needs_of(function) if function is not None else ()
        extras = tuple(name for name in needs if name not in LATER_GOALS)
        kind: Any = partial(HostProgram, extras=extras) if runs_on_host(environment) else JaxProgram
        program: JaxProgram | HostProgram = kind(
            environment=environment,
            evaluation_environment=envs.make(self.evaluation_environment or self.environment),
            algorithm=ALGORITHMS[self.algorithm](actions=len(environment.action_low), hidden=self.hidden),
            replay=Replay(
                layout=Layout.of(_example(environment, extras)),
                environments=round(self.policy_data * self.environments),
                capacity=self.collect * math.ceil(min(self.buffer_size, self.steps) / self.round_steps),
                batch_size=round(self.batch_size * self.policy_data),
                update_ratio=self.update_ratio if augmented else 0.0,
                copies=math.ceil(self.ratio) if augmented and self.storage == "eager" else 0,
                fractional=augmented and not math.isinf(self.ratio) and self.ratio % 1 > 0,
                later=tuple(name for name in LATER_GOALS if name in needs),
            ),
            grid=Grid.over(
                (seen(environment.observation_low), seen(environment.observation_high)),
                (environment.action_low, environment.action_high),
            ),
            counted=self.environments,
            collect=self.collect,
            updates=self.updates * self.environments,
            random_steps=self.random_steps,
            evaluation_episodes=self.evaluation_episodes,
        )
        return program

    def settings(self) -> Settings:
        """What may differ from agent to agent; agents are the leading axis."""

        def each(value: Any) -> Any:
            return np.full(self.agents, value, np.float32)

        def repeated(leaf: Any) -> Any:
            return jnp.broadcast_to(jnp.asarray(leaf), (self.agents, *jnp.shape(leaf)))

        return Settings(
            key=jax.vmap(jax.random.key)(np.array(self.seeds, np.uint32)),
            hyper=Hyperparameters(*(each(getattr(self, name)) for name in Hyperparameters._fields)),
            ratio=each(self.ratio),
            augmentation=jax.tree.map(repeated, self.function()),
        )

    @property
    def seeds(self) -> list[int]:
        return list(range(self.seed, self.seed + self.agents))

    @property
    def round_steps(self) -> int:
        """Steps of an agent in a round."""
        return self.collect * self.environments

    @property
    def rounds(self) -> int:
        return math.ceil(self.steps / self.round_steps)

    @property
    def evaluation_rounds(self) -> list[int]:
        """After which rounds to evaluate: the first to reach each multiple, and the last."""
        due = range(self.evaluate_every, self.steps + 1, self.evaluate_every)
        return sorted({math.ceil(steps / self.round_steps) for steps in due} | {self.rounds})

    def _check_evaluation(self, environment: Environment) -> None:
        """The same agents must be able to act in both environments, which run in the same place."""
        other = envs.make(self.evaluation_environment or self.environment)
        fits = all(
            jax.tree.map(np.shape, getattr(environment, name)) == jax.tree.map(np.shape, getattr(other, name))
            for name in ("observation_low", "action_low")
        )
        if not fits or runs_on_host(environment) != runs_on_host(other):
            raise UserError(f"agents trained on {environment.name} cannot be evaluated on {other.name}")

    def _check_augmentation(self, environment: Environment) -> None:
        if isinstance(self.augmentation, str):
            augmentations.parse(self.augmentation)[0].require(environment.name)
        function = self.function()
        needs = set(needs_of(function)) if function is not None else set()
        if lacking := needs - set(environment.extras) - set(LATER_GOALS):
            raise UserError(f"{environment.name} does not provide the extras {', '.join(sorted(lacking))}")
        if needs & set(LATER_GOALS):
            self._check_hindsight(environment)
        if self.storage == "eager" and self.ratio is not None and math.isinf(self.ratio):
            raise UserError("storage 'eager' cannot hold infinitely many copies: use 'lazy' with ratio inf")
        kept = min(self.buffer_size, self.steps) * self.policy_data
        if self.ratio is not None and not math.isinf(self.ratio) and self.ratio * kept >= 2**32:
            raise UserError(f"ratio {self.ratio:g} makes more than 2^32 copies: use 'inf'")

    def _check_hindsight(self, environment: Environment) -> None:
        """Copies look along finished episodes: there must be some whenever an update draws them."""
        shown = environment.observation_low
        if not (isinstance(shown, dict) and "achieved_goal" in shown):
            raise UserError(
                f"hindsight needs observations that tell achieved goals: not {environment.name}'s"
            )
        if self.storage == "eager":
            raise UserError("storage 'eager' cannot hold copies that look ahead in their episode: use 'lazy'")
        horizon, collect = environment.horizon, self.collect
        first = self.round_steps * (math.ceil(horizon / collect) - 1)
        if self.random_steps < first:
            raise UserError(
                f"hindsight draws from finished episodes, which take up to {horizon} steps in each "
                f"environment: random_steps must be at least {first}, not {self.random_steps}"
            )
        kept = 2 * horizon * self.environments
        if min(self.buffer_size, self.steps) < kept:
            raise UserError(
                f"hindsight needs room for two episodes of {horizon} steps in each environment: "
                f"buffer_size and steps must be at least {kept}"
            )

    def _check_numbers(self) -> None:
        sizes = "agents steps collect updates batch_size buffer_size evaluate_every evaluation_episodes"
        _require(self, f"{sizes} policy_data environments", lambda value: value >= 1, "at least 1")
        _require(self, f"{sizes} random_steps environments", lambda value: value < 2**31, "below 2^31")
        _require(self, "policy_data", math.isfinite, "a finite number")
        _require(self, "random_steps", lambda value: value >= 0, "0 or more")
        _require(self, "seed", lambda value: 0 <= value < 2**31, "0 or more, and below 2^31")
        _require(self, "learning_rate", lambda value: 0 < value < math.inf, "above 0")
        _require(
            self, "exploration_noise smoothing_noise smoothing_clip", _finite_and_not_negative, "0 or more"
        )
        _require(
            self, "discount target_rate random_action_probability", lambda value: 0 <= value <= 1, "in [0, 1]"
        )
        _require(self, "ratio", lambda value: value is None or value >= 0, "0 or more")
        _require(
            self, "update_ratio", lambda value: value is None or _finite_and_not_negative(value), "0 or more"
        )
        if self.random_steps // self.round_steps >= self.rounds:
            raise UserError(f"random_steps {self.random_steps} leave no update in {self.steps} steps")
        if not self.hidden or min(self.hidden) < 1 or max(self.hidden) >= 2**31:
            raise UserError(f"hidden must be widths of at least 1 and below 2^31, not {self.hidden}")
        if not math.isclose(held := self.policy_data * self.environments, round(held)):
            raise UserError(
                f"policy_data {self.policy_data:g} times environments {self.environments} must be whole"
            )
        if self.storage not in ("lazy", "eager"):
            raise unknown_name("storage", self.storage, ("lazy", "eager"))


def _require(arm: Arm, names: str, holds: Any, expectation: str) -> None:
    for name in names.split():
        value = getattr(arm, name)
        if not holds(value):
            raise UserError(f"{name} must be {expectation}, not {value}")


def _finite_and_not_negative(value: float) -> bool:
    return 0 <= value < math.inf


def runs_on_host(environment: Environment) -> bool:
    """Whether an environment is simulated on the host, and not part of the compiled program."""
    return hasattr(environment, "vector")


def _example(environment: Environment, extras: Sequence[str]) -> Transition:
    """What a transition of the environment looks like, with the extras that are stored."""
    observation = blank_observation(environment)
    action = jnp.zeros_like(environment.action_low)
    number, no = jnp.float32(0), jnp.zeros((), bool)
    return Transition(observation, action, number, observation, no, no, dict.fromkeys(extras, number))
