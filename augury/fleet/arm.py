"""An arm: what one group of agents is asked to do. Arms are what a study compares."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal

from augury import augmentations, envs
from augury.augmentations import Augmentation
from augury.envs import Environment
from augury.fleet.defaults import UNSET

Storage = Literal["lazy", "eager"]


@dataclass(frozen=True, kw_only=True)
class Arm:
    """Settings of one arm. One that is `UNSET` gets the environment's default, else that of `defaults_for`.

    An arm is data: `augury.fleet.checks.resolved` fills in defaults and checks it, and
    `augury.fleet.building` makes its program.
    """

    environment: str | Environment = "goal2d"
    """Where the agents collect experience: a name (see `augury list`), with knobs or without, as in
    'family/point(wind=0.1)'; a module:name; or an object."""
    evaluation_environment: str | Environment | None = None
    """Where they are evaluated; by default the same."""
    algorithm: str = UNSET
    """ddpg, td3 or sac; dqn where actions are discrete."""
    augmentation: str | Augmentation | None = None
    """A name, with parameters in brackets: 'goal2d/translate-proximal(0.1)'; a module:name; or a function."""
    ratio: float | None = None
    """m, augmented transitions per observed one; a fraction or 'inf' too. 1 with an augmentation."""
    update_ratio: float | None = None
    """α, augmented per observed transition in an update batch; a fraction too. 1 with an augmentation."""
    policy_data: float = 1
    """N gives an agent N times the experience of its own policy: N times the environments, batch and buffer.
    Steps are counted as if N were 1."""
    environments: int = UNSET
    """Environments of each agent. k of them make k times the updates, so all ratios stay the same."""
    storage: Storage = "lazy"
    """Recompute augmented transitions when sampled (lazy), or store them (eager): the same batches."""
    agents: int = 10
    """How many agents to train, with seeds from `seed` on."""
    seed: int = 0
    """Seed of the first agent."""
    steps: int = UNSET
    """Steps of an agent in all its environments."""
    random_steps: int = UNSET
    """Steps with uniform actions before the first update."""
    collect: int = UNSET
    """Steps in each environment between updates."""
    updates: int = UNSET
    """Updates after every `collect` steps, for each environment."""
    batch_size: int = UNSET
    """Observed transitions in an update batch."""
    buffer_size: int = UNSET
    """Observed transitions kept; never more than the run collects."""
    hidden: tuple[int, ...] = UNSET
    """Widths of the hidden layers."""
    learning_rate: float = UNSET
    """Of Adam, for every network."""
    discount: float = UNSET
    """γ."""
    target_rate: float = UNSET
    """Share of the online network in a target network's step."""
    exploration_noise: float = UNSET
    """Standard deviation of the noise on actions scaled to [-1, 1]."""
    random_action_probability: float = UNSET
    """Chance of a uniform action while collecting: DQN's ε."""
    smoothing_noise: float = UNSET
    """TD3: noise on target actions."""
    smoothing_clip: float = UNSET
    """TD3: largest noise on target actions."""
    evaluate_every: int = UNSET
    """Steps between evaluations."""
    evaluation_episodes: int = UNSET
    """Episodes in an evaluation."""

    def described(self) -> dict[str, Any]:
        """The settings as plain values, as `run.json` holds them: the same in every process."""
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("environment", "evaluation_environment"):
            if settings[name] is not None:
                settings[name] = envs.reference(settings[name])
        if self.augmentation is not None:
            settings["augmentation"] = augmentations.reference(self.augmentation)
        settings["hidden"] = list(self.hidden)
        settings["ratio"] = "inf" if self.ratio is not None and math.isinf(self.ratio) else self.ratio
        return settings

    @classmethod
    def from_description(cls, settings: dict[str, Any]) -> Arm:
        """The arm with this description; settings that only older versions had are left out."""
        known = {field.name for field in fields(cls)}
        kept = {name: value for name, value in settings.items() if name in known}
        return cls(**{**kept, "hidden": tuple(kept["hidden"]), "ratio": float(kept["ratio"])})

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
