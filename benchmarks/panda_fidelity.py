"""Do our Panda tasks move as panda-gym's do? On MuJoCo and, where it is installed, on MuJoCo Warp.

    pip install 'augury[panda-gym,warp]'
    nice python benchmarks/panda_fidelity.py [--episodes 600] [--transitions 4000]

- *kinematics*: where the hand is at random joint angles, and where the motors are told to bring it;
- *one step*: ours are put where panda-gym was, under uniform random actions, and given the same action;
- *objects*: how far one is pushed in such a step, and how far one slides on its own;
- *holding and lifting*: where the hand goes that is told to stay, and whether a script lifts the cube;
- *exploration*: what uniform random actions come to, over many episodes from the same starts and goals.

All simulators are asked the same in one run. Errors of shares are standard errors, by bootstrap over
episodes: steps of one episode are not independent. Without a GPU Warp runs on the CPU, with the same kernels:
some hundred steps a second, so that 1,000 episodes take it ten minutes or more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tyro
from panda_simulators import ALL, OURS, Engine, Reference, engine, object_columns, start_of
from rich.console import Console
from rich.table import Table
from scipy.stats import ks_2samp

from augury.envs.mujoco.physics import Rows
from augury.envs.mujoco.vector import Flags
from augury.envs.panda.goals import GOAL_TASKS
from augury.envs.panda.kinematics import hand_position, joint_targets
from augury.envs.panda.observations import JOINTS, REACH
from augury.envs.panda.reference.simulation import NEUTRAL, start_state
from augury.envs.panda.robot import LINKS
from augury.envs.panda.settings import HORIZON, action_size
from augury.envs.panda.tasks import PANDA_TASKS

MOVED = 0.001
"""Metres from which on an object counts as moved."""
NEAR_TABLE = 0.03
ROWS = 64
"""Environments of panda-gym at a time, each in a process of its own."""
QUANTILES = (5, 25, 50, 75, 95)
RESAMPLED = 1_000
NOTHING = "-"
OBJECT = slice(2 * len(NEUTRAL), 2 * len(NEUTRAL) + 3)
"""The object's position in panda-gym's state."""
SLIDES = (0.1, 0.3, 0.6, 1.0)
"""Speeds in m/s."""

Stepped = dict[str, dict[str, Rows]]
"""What ours observe after panda-gym's steps: by task and by simulator."""
Policy = Callable[[Rows, int], Rows]
"""Actions for rows of observations at a step of the episode."""


class Transitions(NamedTuple):
    """Steps of panda-gym under uniform random actions, one a row."""

    states: Rows
    """Where they began: see `STATE_SIZE`."""
    hands: Rows
    """The hand's place there, as panda-gym observes it."""
    actions: Rows
    targets: Rows
    """Angles that the motors were given."""
    next_states: Rows
    next_hands: Rows
    touching: Flags
    """The arm touched something, may have touched the table meanwhile, or moved the object."""


def main(episodes: int = 600, transitions: int = 4_000, seed: int = 0) -> None:
    """Measure, and print tables.

    Args:
        episodes: Of each task in each simulator, for exploration.
        transitions: Of each task that are compared one by one.
        seed: Of everything that is random.
    """
    console = Console(width=140)
    console.print(f"Compared with panda-gym: {' and '.join(OURS)}")
    references = {name: Reference(goals) for name, goals in GOAL_TASKS.items()}
    console.print(forward_kinematics(references["push"], 1_000, seed))
    recorded = {name: record(reference, transitions, seed) for name, reference in references.items()}
    console.print(inverse_kinematics(recorded))
    stepped = {name: {who: stepped_by(who, name, seen) for who in OURS} for name, seen in recorded.items()}
    console.print(one_step(recorded, stepped))
    console.print(pushed(recorded, stepped))
    if "Warp" in OURS:
        console.print(apart(recorded, stepped))
    console.print(slid(references))
    for reference in references.values():
        reference.simulation.close()
    console.print(held_and_lifted(seed))
    for shown in exploration(episodes, seed):
        console.print(shown)


def forward_kinematics(reference: Reference, count: int, seed: int) -> Table:
    limits = np.array([link.limits for link in LINKS])
    angles = np.random.default_rng(seed).uniform(limits[:, 0], limits[:, 1], (count, JOINTS))
    theirs = np.array([reference.hand_at(row) for row in angles])
    states = np.tile(start_state(np.array([0.0, 0.0, 0.02])), (count, 1))
    states[:, :JOINTS] = angles
    mujoco = PANDA_TASKS["panda-push"].vector(count, autoreset=False)
    mujoco.put(*start_of(states, 3))
    shown = Table(
        "hand's place by", "largest error, mm", title=f"Forward kinematics, {count:,} random arms", box=None
    )
    for name, ours in (
        ("the tasks on Warp", hand_position(angles)),
        ("MuJoCo", mujoco.moment.readings[:, :3]),
    ):
        shown.add_row(name, f"{1e3 * distance(ours, theirs).max():.4f}")
    mujoco.close()
    return shown


def record(reference: Reference, count: int, seed: int) -> Transitions:
    """So many steps of episodes under uniform random actions."""
    goals, generator = reference.goals, np.random.default_rng(seed)
    row, rows = reference.row, list[Any]()
    thing = object_columns(goals)
    left = 0
    while len(rows) < count:
        if left == 0:
            goal = goals.goal(generator.random(goals.draws))
            reference.begin(start_state(goals.start(generator.random(3))), goal)
            left = HORIZON
        state, seen, touched = row["state"].copy(), row["observation"].copy(), reference.touches()
        action = generator.uniform(-1, 1, action_size(goals))
        reference.step(action)
        after = row["observation"].copy()
        touching = touched or reference.touches() or min(seen[2], after[2]) < NEAR_TABLE
        touching |= distance(seen[thing], after[thing]) > MOVED
        next_state = row["state"].copy()
        rows.append((state, seen[:3], action, reference.targets, next_state, after[:3], touching))
        left = 0 if row["success"] else left - 1
    return Transitions(*(np.array(part) for part in zip(*rows, strict=True)))


def inverse_kinematics(recorded: dict[str, Transitions]) -> Table:
    shown = Table(title="Inverse kinematics: the hand's place at the motors' targets, error in mm", box=None)
    for name in ("task", "median", "99%", "largest"):
        shown.add_column(name, justify="right")
    for name, seen in recorded.items():
        asked = seen.hands + REACH * seen.actions[:, :3]
        asked[:, 2] = np.maximum(asked[:, 2], 0)
        ours = hand_position(joint_targets(seen.states[:, :JOINTS], asked)[0])
        error = 1e3 * distance(ours, hand_position(seen.targets[:, :JOINTS]))
        shown.add_row(name, *(f"{value:.3f}" for value in np.percentile(error, [50, 99, 100])))
    return shown


def stepped_by(simulator: str, name: str, seen: Transitions) -> Rows:
    """What our environment observes after the same steps."""
    ours = engine(simulator, name, len(seen.states))
    ours.put(*start_of(seen.states, GOAL_TASKS[name].goal_size))
    observation = ours.step(seen.actions)[0]["observation"]
    ours.close()
    return observation.astype(np.float64)


def one_step(recorded: dict[str, Transitions], stepped: Stepped) -> Table:
    shown = Table(
        title="One step: the hand's position after it, error in mm (panda-gym's moves by)", box=None
    )
    for name in ("task", "by", "steps", "number", "median", "90%", "99%", "moves, median"):
        shown.add_column(name, justify="right")
    for name, seen in recorded.items():
        moves = 1e3 * distance(seen.hands, seen.next_hands)
        for who, observed in stepped[name].items():
            error = 1e3 * distance(observed[:, :3], seen.next_hands)
            for kind, chosen in (
                ("all", np.ones(len(error), bool)), ("free", ~seen.touching), ("touching", seen.touching)
            ):  # fmt: skip
                cells = [*percentiles(error[chosen], (50, 90, 99), 2), *percentiles(moves[chosen], (50,), 2)]
                shown.add_row(name, who, kind, f"{chosen.sum():,}", *cells)
    return shown


def pushed(recorded: dict[str, Transitions], stepped: Stepped) -> Table:
    shown = Table(
        title=f"Objects in these steps: how far they move, in mm, where any moves by {1e3 * MOVED:.0f} mm",
        box=None,
    )
    for name in ("task", "by", "moved", "10%", "50%", "90%", "mean", "median error", "KS distance (p)"):
        shown.add_column(name, justify="right")
    for name, seen in recorded.items():
        before, after = object_before(seen), seen.next_states[:, OBJECT]
        ends = {"panda-gym": after}
        ends |= {
            who: observed[:, object_columns(GOAL_TASKS[name])] for who, observed in stepped[name].items()
        }
        moves = {who: 1e3 * distance(before, end) for who, end in ends.items()}
        chosen = np.max([*moves.values()], 0) > 1e3 * MOVED
        for who, values in moves.items():
            cells = [f"{(values > 1e3 * MOVED).sum()} of {chosen.sum()}"]
            cells += percentiles(values[chosen], (10, 50, 90), 1)
            cells.append(f"{values[chosen].mean():.1f}" if chosen.any() else NOTHING)
            if who != "panda-gym" and chosen.any():
                test = ks_2samp(moves["panda-gym"][chosen], values[chosen])
                error = np.median(1e3 * distance(after, ends[who])[chosen])
                cells += [f"{error:.2f}", f"{test.statistic:.3f} ({test.pvalue:.2f})"]
            shown.add_row(name, who, *cells)
    return shown


def apart(recorded: dict[str, Transitions], stepped: Stepped) -> Table:
    shown = Table(title="The same steps on MuJoCo and on Warp: how far apart they end, in mm", box=None)
    for name in ("task", "what", "number", "median", "90%", "99%", "largest"):
        shown.add_column(name, justify="right")
    for name, seen in recorded.items():
        one, other = (stepped[name][who] for who in ("MuJoCo", "Warp"))
        columns = object_columns(GOAL_TASKS[name])
        moves = distance(object_before(seen), one[:, columns]) > MOVED
        hand, thing = (1e3 * distance(one[:, at], other[:, at]) for at in (slice(3), columns))
        for what, error in (("hand", hand), ("object", thing), ("object that moves", thing[moves])):
            shown.add_row(name, what, f"{len(error):,}", *percentiles(error, (50, 90, 99, 100), 4))
    return shown


def object_before(seen: Transitions) -> Rows:
    return seen.states[:, OBJECT]


def percentiles(values: Rows, which: tuple[int, ...], digits: int) -> list[str]:
    """As a table shows them, also where there is nothing to show."""
    if not values.size:
        return [NOTHING] * len(which)
    return [f"{value:.{digits}f}" for value in np.percentile(values, which)]


def slid(references: dict[str, Reference]) -> Table:
    """Along x, in 25 steps (a second), with the arm out of the way."""
    shown = Table(title="Objects on their own: how far they slide in a second, in mm (ratio)", box=None)
    for name in ("object", "speed, m/s", *ALL):
        shown.add_column(name, justify="right")
    for name, thing, height in (("push", "cube", 0.02), ("slide", "puck", 0.015)):
        states = np.tile(start_state(np.array([-0.45, 0.2, height])), (len(SLIDES), 1))
        states[:, OBJECT.stop + 4] = SLIDES
        ways = {"panda-gym": np.array([slid_in_panda_gym(references[name], state) for state in states])}
        ways |= {who: slid_in_ours(who, name, states) for who in OURS}
        for row, speed in enumerate(SLIDES):
            cells = [f"{way[row]:.1f} ({way[row] / ways['panda-gym'][row]:.3f})" for way in ways.values()]
            shown.add_row(thing, f"{speed}", *cells)
    return shown


def slid_in_panda_gym(reference: Reference, state: Rows) -> float:
    reference.begin(state, np.full(3, 9.0))
    for _ in range(25):
        reference.step(np.zeros(3))
    return 1e3 * float(reference.row["achieved_goal"][0] - state[OBJECT][0])


def slid_in_ours(simulator: str, name: str, states: Rows) -> Rows:
    ours = engine(simulator, name, len(states))
    ours.put(*start_of(states, 3))
    for _ in range(25):
        observation, *_ = ours.step(np.zeros((len(states), 3)))
    ours.close()
    return 1e3 * (observation["achieved_goal"][:, 0] - states[:, OBJECT][:, 0])


def held_and_lifted(seed: int) -> Table:
    """Episodes of two scripts in all of them."""
    shown = Table(title=f"Holding still and lifting: {ROWS} episodes of PickAndPlace", box=None)
    for name in ("by", "drifts in 10 steps, mm: median", "largest", "lifted", "width at the end, mm"):
        shown.add_column(name, justify="right")
    for who in ALL:
        rows = engine(who, "pick-and-place", ROWS)
        observations = played(rows, hold, seed, goal=9.0)[0]
        drift = 1e3 * distance(observations[-11, :, :3], observations[-1, :, :3])
        last = played(rows, lift, seed, goal=9.0)[0][-1]
        lifted = (last[:, 9] > 0.1).mean()
        shown.add_row(
            who,
            f"{np.median(drift):.2f}",
            f"{drift.max():.2f}",
            f"{lifted:.0%}",
            f"{1e3 * np.median(last[:, 6]):.1f}",
        )
        rows.close()
    return shown


def hold(seen: Rows, step: int) -> Rows:
    """Random actions for twenty steps, and then none."""
    if step >= 20:
        return np.zeros((len(seen), 4))
    return np.random.default_rng(step).uniform(-1, 1, (len(seen), 4))


def lift(seen: Rows, step: int) -> Rows:
    """Go above the cube with open fingers, down, close them, and go up."""
    hand, thing = seen[:, :3], seen[:, 7:10]
    above, grasped = thing + np.array([0, 0, 0.08]), thing * (1, 1, 0) + np.array([0, 0, 0.015])
    towards = (above if step < 12 else grasped) - hand
    if step >= 24:
        towards = np.tile([0, 0, 0.0 if step < 30 else 0.015], (len(seen), 1))
    fingers = np.full((len(seen), 1), 1.0 if step < 24 else -1.0)
    return np.concatenate([towards / REACH, fingers], 1)


def exploration(episodes: int, seed: int) -> tuple[Table, Table]:
    heights = Table(title=f"Exploration, {episodes:,} episodes: height of the hand, in m (ratio)", box=None)
    for name in ("task", "by", *(f"{quantile}%" for quantile in QUANTILES), "mean return"):
        heights.add_column(name, justify="right")
    shares = Table(title=f"… and steps that move the object by more than {1e3 * MOVED:.0f} mm", box=None)
    for name in ("task", "by", "share", "ratio to panda-gym's"):
        shares.add_column(name, justify="right")
    drawn = np.random.default_rng(seed).integers(episodes, size=(RESAMPLED, episodes))
    drawn = np.concatenate([np.arange(episodes)[None], drawn])
    for name in GOAL_TASKS:
        quantiles, share = {}, {}
        for who in ALL:
            height, moved, made, success = explored(who, name, episodes, seed)
            quantiles[who] = np.percentile(height[~np.isnan(height)], QUANTILES)
            share[who] = moved[drawn].sum(1) / made[drawn].sum(1)
            pairs = zip(quantiles[who], quantiles[who] / quantiles["panda-gym"], strict=True)
            cells = [f"{value:.4f} ({ratio:.2f})" for value, ratio in pairs]
            heights.add_row(name, who, *cells, f"{(success - made).mean():.2f}")
            shares.add_row(
                name,
                who,
                with_error(100 * share[who], 2, "%"),
                with_error(share[who] / share["panda-gym"], 3),
            )
    return heights, shares


def with_error(values: Rows, digits: int, unit: str = "") -> str:
    """The first, which is of all episodes, and the spread of the others, which are of resampled ones."""
    return f"{values[0]:.{digits}f}{unit} ± {values[1:].std():.{digits}f}"


def explored(simulator: str, name: str, episodes: int, seed: int) -> tuple[Any, ...]:
    """Of episodes under random actions: heights, steps that moved the object, steps, and success.

    Every `ROWS` episodes have actions of their own seed, however many a simulator plays at a time.
    """
    groups = [seed * episodes + first for first in range(0, episodes, ROWS)]
    at_once = 1 if simulator == "panda-gym" else len(groups)
    rows = engine(simulator, name, at_once * ROWS)
    found = [
        explored_together(rows, name, groups[turn : turn + at_once])
        for turn in range(0, len(groups), at_once)
    ]
    rows.close()
    return tuple(np.concatenate(part)[:episodes] for part in zip(*found, strict=True))


def explored_together(rows: Engine, name: str, seeds: list[int]) -> tuple[Any, ...]:
    shape = (HORIZON, ROWS, action_size(GOAL_TASKS[name]))
    actions = np.concatenate([np.random.default_rng(seed).uniform(-1, 1, shape) for seed in seeds], 1)
    observations, alive, success = played(rows, lambda _, step: actions[step], seeds[0])
    things = observations[:, :, object_columns(GOAL_TASKS[name])]
    moves = np.linalg.norm(np.diff(things, axis=0), axis=-1) > MOVED
    heights = np.where(alive, observations[1:, :, 2], np.nan)
    return heights.T, (moves & alive).sum(0), alive.sum(0), success


def played(rows: Engine, policy: Policy, seed: int, goal: float | None = None) -> tuple[Rows, Flags, Flags]:
    """Observations of episodes, (steps + 1, rows, numbers); which steps were made; and success."""
    observation, _ = rows.reset(seed=seed)
    if goal is not None:
        rows._goals[:] = goal
    seen, alive = [observation["observation"]], []
    over = np.zeros(rows.num_envs, bool)
    terminated = over
    for step in range(HORIZON):
        alive.append(~over)
        observation, _, terminated, truncated, _ = rows.step(policy(seen[-1], step))
        over = terminated | truncated
        seen.append(observation["observation"])
    return np.array(seen, np.float64), np.array(alive), terminated


def distance(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> Any:
    return np.linalg.norm(one - other, axis=-1)


if __name__ == "__main__":
    tyro.cli(main)
