"""What an environment is: where its steps happen, what it must have, and what it may be able to do beyond.

An environment is a value, a frozen dataclass as a rule: equal ones share a compiled program. Nobody looks at
its class, only at `runs_in` and at the methods that are there. Yours may subclass `JaxEnvironment` or
`HostEnvironment`, which have defaults for everything that is optional.

| optional | who asks for it |
|---|---|
| `restore(observation, extras) -> state` | the verifier, in JAX: the state which looks like this |
| `restored(observation, extras) -> Start` | the verifier, of a task of the vector engine: the same |
| `state(moment)` | of such a task, where that takes more than the observation: becomes `extras["state"]` |
| `restorable` | the verifier: the same environment with observations that determine its state |
| `is_possible(observation) -> flags` | the verifier: which rows can be observed at all |
| `sets_goal(observation) -> flags` | the verifier: which rows show a goal that the task sets |
| `table` | the verifier and symmetries: what each observed number is, a sequence of `Quantity` |
| `draw(axes, transitions)` | `augury show`: draw a batch of transitions with Matplotlib |
| `draw_augmented(axes, observed, augmented)` | `augury show`: the same, with their observed origins |
| `worth_drawing(transitions) -> scores` | `augury show`: which observed transitions to choose |
| `explore(observation, generator) -> actions` | `augury show`: actions under which something happens |
| `panel` | `augury show`: a `Panel`, how pictures are laid out |
| `sample_transition(key) -> Transition` | studies of probabilities, of what does not step in JAX |
| `one()` | the verifier: a single one as a `gymnasium.Env`, which it asks instead |
| `model`, `mirror_normal`, `largest_turn`, `forward_weight` | symmetries, with `table` |
| `state_table` | symmetries, of a task with `state`: what its numbers are, so that they are mapped too |

For the verifier the engine of an environment on the host may have `restore(observation, extras)`, which
brings every copy to a state with this observation; if it returns what is then observed, that is compared. An
engine that restores and steps in an order of its own has
`ask(observation, extras, action) -> (observation, next_observation, reward, terminated, extras)` instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar, dataclass_transform

import jax
import numpy as np
import numpy.typing as npt

from augury.pytrees import frozen_pytree, static
from augury.transition import Array, Key, Observation, Transition

Measure = Literal["success", "returns"]
Bounds = Any  # an array of float32, or a dict of them: as an observation is
State = Any  # whatever pytree the environment carries from step to step
RunsIn = Literal["program", "device", "host"]
T = TypeVar("T")


class Panel(NamedTuple):
    """How `augury show` lays out what an environment draws."""

    width: float = 3.1
    """Of a panel, in inches."""
    height: float = 3.3
    copies: int = 1
    """Augmented transitions in one panel: more than one where they can be distinguished."""
    candidates: int = 200
    """Observed transitions among which each of those that are drawn is chosen."""
    legend: str = ""
    """A line below all panels."""


class Environment(Protocol):
    """What is true of every environment."""

    runs_in: ClassVar[RunsIn]
    """Where its steps happen: inside the compiled program; inside it, but on a simulator that the agents of
    all arms share, since it is fast only with thousands of worlds ("device"); or on the host."""

    @property
    def name(self) -> str:
        """What run.json, tables and pages call it."""

    @property
    def horizon(self) -> int:
        """Steps after which an episode is truncated."""

    @property
    def observation_low(self) -> Bounds:
        """Finite bounds, between which coverage is measured; observations may lie outside."""

    @property
    def observation_high(self) -> Bounds: ...

    @property
    def action_count(self) -> int | None:
        """How many actions there are, where they are discrete: whole numbers from 0 on. Else None."""

    @property
    def action_low(self) -> npt.NDArray[np.float32]:
        """Bounds of continuous actions, which are vectors; discrete ones have none."""

    @property
    def action_high(self) -> npt.NDArray[np.float32]: ...

    @property
    def measure(self) -> Measure:
        """What its learning curves show."""

    @property
    def training(self) -> Mapping[str, Any]:
        """Settings of an arm that it has defaults of its own for."""

    @property
    def extras(self) -> tuple[str, ...]:
        """Named numbers beyond the observation that its transitions can carry."""

    def succeeded(self, transition: Transition) -> Array:
        """Whether a transition carries the success reward; works on batches too."""


class StepsInJax(Environment, Protocol):
    """A task as pure functions of ONE environment, in JAX; the trainer batches and resets it."""

    def reset(self, key: Key) -> State:
        """Draw the start of an episode."""

    def observe(self, state: State) -> Observation:
        """What the agent sees of a state."""

    def step(self, key: Key, state: State, action: Array) -> tuple[State, Array, Array]:
        """Return the next state, the reward and whether the task terminated."""


class HostEngine(Protocol):
    """Many copies of a task on the host: a Gymnasium vector environment that can be saved and restored.

    Observations are arrays, rows first, or dicts of them; so is `infos["final_obs"]`, with all rows.
    """

    num_envs: int

    def reset(self, *, seed: list[int]) -> tuple[Any, dict[str, Any]]: ...

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]: ...

    def state(self) -> dict[str, npt.NDArray[Any]]: ...

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> Any:
        """Go on from a state. Returns None; or what is observed now, if all episodes had to begin anew."""

    def close(self) -> None: ...


class StepsOnHost(Environment, Protocol):
    """A task that is simulated on the host, many copies at a time."""

    def vector(self, count: int, *, autoreset: bool = True) -> HostEngine:
        """So many copies.

        With autoreset they start again in the step that ends an episode, and `infos["final_obs"]` keeps its
        end; without, they then stand still and earn nothing.
        """


AnyEnvironment = StepsInJax | StepsOnHost
"""An environment that can be trained on."""


class _Defaults:
    """Defaults of what is optional in an environment."""

    action_count: Any = None
    measure: Any = "returns"
    training: Any = MappingProxyType({})
    extras: Any = ()

    def succeeded(self, transition: Transition) -> Array:
        """Never: such a task is measured by its returns."""
        return transition.terminated & False


class JaxEnvironment(_Defaults):
    """To subclass: a task in JAX, as pure functions of ONE environment.

    Yours has `name`, `horizon`, `observation_low`, `observation_high`, `action_low`, `action_high` and the
    methods `reset(key) -> state`, `observe(state) -> observation` and
    `step(key, state, action) -> (state, reward, terminated)`. Where actions are discrete it has
    `action_count` in place of `action_low` and `action_high`, and an action is an int32 without axes.
    Whatever it changes in `measure`, `training`, `extras` or `succeeded` replaces the defaults here.
    """

    runs_in: ClassVar[RunsIn] = "program"


@dataclass_transform(frozen_default=True, field_specifiers=(static,))
def with_numbers(cls: type[T]) -> type[T]:
    """Make a `JaxEnvironment` a frozen dataclass with numbers in which agents of one fleet may differ.

    Its fields are numbers, or tuples of them, but for `static()` ones. Arms that differ in numbers alone
    share a compiled program. So name, horizon, bounds and shapes follow from static fields only.
    """
    made: Any = frozen_pytree(cls)
    made.has_numbers = True
    return made


def numbers_of(environment: Any) -> Any:
    """The environment itself, where agents of one fleet may differ in its numbers; else None."""
    # A subclass that was not made `with_numbers` itself is no pytree.
    differs = "has_numbers" in vars(type(environment)) and environment.runs_in == "program"
    return environment if differs else None


def without_numbers(environment: Any) -> Any:
    """The same for all environments that share a program: numbers that agents may differ in are blank."""
    numbers = numbers_of(environment)
    return environment if numbers is None else jax.tree.map(lambda number: 0.0, numbers)


class HostEnvironment(_Defaults):
    """To subclass: a task that a simulator on the host steps, many copies at a time.

    Yours has `name`, `horizon`, `observation_low`, `observation_high`, `action_low`, `action_high` and
    `vector(count, autoreset=True)`, which gives a `HostEngine`. Where actions are discrete it has
    `action_count` in place of `action_low` and `action_high`, and its engine takes a vector of int32.
    """

    runs_in: ClassVar[RunsIn] = "host"
