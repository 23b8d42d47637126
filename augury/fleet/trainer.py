"""What a fleet does, typed once: `Trainer`. And what its implementations share: agents dealt out to devices.

JaxTrainer      environments inside the compiled program         jax_trainer
SharedTrainer   the same, but all arms share one simulation      shared_trainer
HostTrainer     environments that a simulator on the host steps  host_trainer
Halves          two of the latter, side by side                  halves
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from augury.agents import Parameters
from augury.fleet.arm import Arm
from augury.fleet.building import settings_of, shared_program
from augury.fleet.devices import AGENTS, mesh_for, split_over
from augury.fleet.program.base import Agent, Measured, Program, Settings
from augury.replay.ring import RINGS
from augury.runs.arrays import Arrays, named

Agents = TypeVar("Agents")
ProgramT = TypeVar("ProgramT", bound=Program)

CALL_SECONDS = 3.0
"""Length of one call of `advance`: how often progress is reported and an interrupt noticed."""
CALL_SECONDS_PER_BYTE = 2e-8
"""Calls are longer where every call copies large buffers, as it does on a CPU."""


class Trainer(Protocol[Agents]):
    """Trains the agents of arms that train together. It holds no training state: callers hold the agents."""

    agents: int
    """How many there are."""
    devices: list[Any]
    """On which they learn."""
    parts: int
    """Into how many smaller fleets the agents are split; a checkpoint must be loaded into as many."""
    first_update_round: int
    """The first round with updates, from which on rounds take longer."""

    def shapes(self) -> Any:
        """Shapes and dtypes of the devices' part of what `init` gives."""

    def init(self) -> Agents:
        """New agents; with environments on the host, at the start of their first episodes."""

    def advance(self, agents: Agents, first: int, rounds: int) -> Agents:
        """Train for some rounds; returns when they are done. The agents passed in must not be used again."""

    def evaluate(self, agents: Agents, rounds: int) -> Measured:
        """Measure every agent after that many rounds."""

    def save(self, agents: Agents, rounds: int) -> Arrays:
        """Everything about the agents after that many rounds, as plain arrays by name."""

    def load(self, arrays: Arrays) -> Agents:
        """The agents that were saved. Raises KeyError or ValueError where the arrays are not theirs."""

    def actors(self, agents: Agents) -> Parameters:
        """The parameters of every agent's policy, as NumPy arrays."""

    def play(self, actors: Parameters, seed: int) -> tuple[Any, Any]:
        """Share of successes and mean return of every policy, in episodes that start by the seed."""

    def restarts(self, agents: Agents) -> list[int]:
        """Rounds after which a run that was resumed could not go on exactly: its episodes began anew."""

    def call_seconds(self, agents: Agents) -> float:
        """How long a call of `advance` should take."""

    def close(self) -> None:
        """Release what is not memory, such as engines."""


class OnDevices(Generic[ProgramT]):
    """Agents dealt out to devices: what trainers of both kinds share."""

    program: ProgramT
    parts = 1

    def __init__(self, arms: Sequence[Arm], number: int = 0, *, devices: int | None = None) -> None:
        self.number = number
        """Which part of a larger fleet it is."""
        program: Any = shared_program(arms)
        self.program = program
        self.first_update_round = self.program.first_update_round
        self.agents = sum(arm.agents for arm in arms)
        self.mesh = mesh_for(min(self.agents, devices or self.agents))
        self.devices = list(self.mesh.devices.flat)
        self.sharding = split_over(self.mesh)
        # Every device gets equally many agents: the last is repeated, and the copies are ignored.
        self.surplus = -self.agents % self.mesh.size
        members = [settings_of(arm) for arm in arms]
        last = jax.tree.map(lambda leaf: leaf[-1:], members[-1])
        self.settings: Settings = jax.device_put(
            jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *members, *[last] * self.surplus),
            self.sharding,
        )

    def own(self, tree: Any) -> Any:
        """What the devices hold, as NumPy arrays without the surplus agents."""
        return jax.tree.map(lambda values: np.asarray(values)[: self.agents], tree)

    def actors(self, agents: Agent) -> Parameters:
        return self.own(agents.learner.actor)

    def restarts(self, agents: Agent) -> list[int]:
        """None: the state of environments in the program is saved with the agents."""
        return []

    def dealt(self, actors: Parameters) -> Parameters:
        """Policies dealt out like their agents, surplus ones too."""
        every = np.minimum(np.arange(self.agents + self.surplus), self.agents - 1)
        return jax.device_put(jax.tree.map(lambda leaf: leaf[every], actors), self.sharding)

    def saved(self, agents: Agent, rounds: int) -> Arrays:
        """The agents as named arrays, without the unused part of their rings."""
        used = min(rounds * self.program.collect, self.program.replay.capacity)
        return {
            self._called(name): _plain(_cut(name, leaf[: self.agents], used))
            for name, leaf in named(agents).items()
        }

    def restored(self, shapes: Agent, arrays: Arrays) -> Agent:
        """The agents on their devices: rings get their unused part back, devices their share of agents."""

        def leaf(name: str, shape: Any) -> Any:
            stored = arrays[self._called(name)]
            is_key = jnp.issubdtype(shape.dtype, jax.dtypes.prng_key)
            if not is_key:
                grown = np.zeros((len(stored), *shape.shape[1:]), shape.dtype)
                grown[tuple(slice(length) for length in stored.shape)] = stored
                stored = grown
            stored = np.concatenate([stored, np.repeat(stored[-1:], shape.shape[0] - len(stored), 0)])
            values = jax.random.wrap_key_data(jnp.asarray(stored)) if is_key else stored
            return jax.device_put(values, self.sharding)

        leaves = [leaf(name, shape) for name, shape in named(shapes).items()]
        return jax.tree.unflatten(jax.tree.structure(shapes), leaves)

    def _called(self, name: str) -> str:
        return f"{self.number}.agents.{name}"


def spread(function: Callable[..., Any], mesh: Mesh, own: int, common: int = 0, **options: Any) -> Any:
    """Compile a function of agents for a mesh: `own` arguments are dealt out, `common` ones go to all."""
    split, shared = PartitionSpec(AGENTS), PartitionSpec()
    specs = (split,) * own + (shared,) * common
    mapped = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=split, check_vma=False)
    # Without `out_shardings` empty arrays come out unsharded, unlike a checkpoint's: a second compilation.
    return jax.jit(mapped, out_shardings=NamedSharding(mesh, split), **options)


def is_cpu(mesh: Mesh) -> bool:
    """Whether the devices are cores."""
    return mesh.devices.flat[0].platform == "cpu"


def _plain(leaf: Any) -> np.ndarray[Any, Any]:
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.ascontiguousarray(jax.random.key_data(leaf) if is_key else leaf)


def _cut(name: str, leaf: Any, used: int) -> Any:
    """Only the filled part of a ring of rows, whose axes are (agents, environments, capacity, …)."""
    part, _, name = name.partition(".")
    return leaf[:, :, :used] if part == "buffers" and name in RINGS and leaf.size else leaf
