"""Do our Panda tasks move as panda-gym's do? Everything is measured in both, in the same run.

    pip install 'augury[panda-gym]'
    python benchmarks/panda_fidelity.py [--episodes 600] [--transitions 4000]

- *kinematics*: where the hand is at random joint angles, and where the motors are told to bring it;
- *one step*: MuJoCo is put where panda-gym was, under uniform random actions, and given the same action;
- *objects*: how far one is pushed in such a step, and how far one slides on its own;
- *holding and lifting*: where the hand goes that is told to stay, and whether a script lifts the cube;
- *exploration*: what uniform random actions come to, over many episodes from the same starts and goals.

Errors of shares are standard errors, by bootstrap over episodes: steps of one episode are not independent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tyro
from rich.console import Console
from rich.table import Table
from scipy.stats import ks_2samp

from augury.envs.mujoco.physics import Rows
from augury.envs.mujoco.vector import Flags, Start
from augury.envs.panda.goals import GOAL_TASKS, GoalTask
from augury.envs.panda.kinematics import hand_position, joint_targets
from augury.envs.panda.observations import JOINTS, REACH
from augury.envs.panda.reference.panda_gym import REFERENCES, PandaGym
from augury.envs.panda.reference.simulation import NEUTRAL, STATE_SIZE, Simulation, row_type, start_state
from augury.envs.panda.robot import LINKS
from augury.envs.panda.settings import HORIZON, action_size, table
from augury.envs.panda.tasks import PANDA_TASKS, PandaTask

FINGERS = len(NEUTRAL) - JOINTS
HAND_LINK = 11
"""PyBullet's number of the link whose place is the hand's."""
MOVED = 0.001
"""Metres from which on an object counts as moved."""
NEAR_TABLE = 0.03
ROWS = 64
"""Environments at a time."""
QUANTILES = (5, 25, 50, 75, 95)
RESAMPLED = 1_000
NOTHING = "-"
SLIDES = (0.1, 0.3, 0.6, 1.0)
"""Speeds in m/s."""

Engine = Any
"""Ours or panda-gym's: both are Gymnasium vector environments."""
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


class Reference:
    """panda-gym in this process, where its inner workings can be seen."""

    def __init__(self, goals: GoalTask) -> None:
        self.goals = goals
        self.simulation = Simulation(goals.name)
        self.client = self.simulation.env.sim.physics_client
        self.bodies = self.simulation.env.sim._bodies_idx
        self.row = np.zeros(1, row_type(goals))[0]
        self.targets = np.zeros(len(NEUTRAL))
        robot = self.simulation.env.robot
        control = robot.control_joints

        def overheard(target_angles: Rows) -> None:
            self.targets = np.array(target_angles)
            control(target_angles)

        robot.control_joints = overheard

    def begin(self, state: Rows, goal: Rows) -> None:
        self.row["begin"], self.row["start"], self.row["desired_goal"] = True, state, goal
        self.simulation.carry_out(self.row)

    def step(self, action: npt.ArrayLike) -> None:
        self.row["begin"], self.row["action"] = False, action
        self.simulation.carry_out(self.row)

    def touches(self) -> bool:
        return len(self.client.getContactPoints(self.bodies["panda"])) > 0

    def hand_at(self, angles: Rows) -> Rows:
        """Where the hand is at these joint angles."""
        for joint, angle in enumerate(angles):
            self.client.resetJointState(self.bodies["panda"], joint, angle)
        return np.array(
            self.client.getLinkState(self.bodies["panda"], HAND_LINK, computeForwardKinematics=1)[0]
        )


def main(episodes: int = 600, transitions: int = 4_000, seed: int = 0) -> None:
    """Measure, and print tables.

    Args:
        episodes: Of each task in each simulator, for exploration.
        transitions: Of each task that are compared one by one.
        seed: Of everything that is random.
    """
    console = Console(width=140)
    references = {name: Reference(goals) for name, goals in GOAL_TASKS.items()}
    console.print(forward_kinematics(references["push"], 1_000, seed))
    recorded = {name: record(reference, transitions, seed) for name, reference in references.items()}
    console.print(inverse_kinematics(recorded))
    stepped = {name: stepped_by_ours(PANDA_TASKS[f"panda-{name}"], seen) for name, seen in recorded.items()}
    console.print(one_step(recorded, stepped))
    console.print(pushed(recorded, stepped))
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
    engine = PANDA_TASKS["panda-push"].vector(count, autoreset=False)
    engine.put(*start_of(states, 3))
    shown = Table(
        "hand's place by", "largest error, mm", title=f"Forward kinematics, {count:,} random arms", box=None
    )
    for name, ours in (
        ("panda_kinematics", hand_position(angles)),
        ("MuJoCo", engine.moment.readings[:, :3]),
    ):
        shown.add_row(name, f"{1e3 * distance(ours, theirs).max():.4f}")
    engine.close()
    return shown


def record(reference: Reference, count: int, seed: int) -> Transitions:
    """So many steps of episodes under uniform random actions."""
    goals, generator = reference.goals, np.random.default_rng(seed)
    row, rows = reference.row, list[Any]()
    thing = place_of_thing(goals)
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


def stepped_by_ours(task: PandaTask, seen: Transitions) -> Rows:
    """What our environment observes after the same steps."""
    engine = task.vector(len(seen.states), autoreset=False)
    engine.put(*start_of(seen.states, task.goals.goal_size))
    observation = engine.step(seen.actions)[0]["observation"]
    engine.close()
    return observation.astype(np.float64)


def one_step(recorded: dict[str, Transitions], stepped: dict[str, Rows]) -> Table:
    shown = Table(title="One step: the hand's place after it, error in mm (it moves by)", box=None)
    for name in ("task", "steps", "number", "median", "90%", "99%", "moves, median"):
        shown.add_column(name, justify="right")
    for name, seen in recorded.items():
        error = 1e3 * distance(stepped[name][:, :3], seen.next_hands)
        moves = 1e3 * distance(seen.hands, seen.next_hands)
        for kind, chosen in (
            ("all", np.ones(len(error), bool)), ("free", ~seen.touching), ("touching", seen.touching)
        ):  # fmt: skip
            cells = [*percentiles(error[chosen], (50, 90, 99), 2), *percentiles(moves[chosen], (50,), 2)]
            shown.add_row(name, kind, f"{chosen.sum():,}", *cells)
    return shown


def pushed(recorded: dict[str, Transitions], stepped: dict[str, Rows]) -> Table:
    shown = Table(
        title=f"Objects in these steps: how far they move, in mm, where either moves by {1e3 * MOVED:.0f} mm",
        box=None,
    )
    for name in ("task", "by", "moved", "10%", "50%", "90%", "mean", "median error", "KS distance (p)"):
        shown.add_column(name, justify="right")
    for name, seen in recorded.items():
        thing, at = place_of_thing(GOAL_TASKS[name]), slice(2 * len(NEUTRAL), 2 * len(NEUTRAL) + 3)
        before, after, ours = seen.states[:, at], seen.next_states[:, at], stepped[name][:, thing]
        moves = {"panda-gym": 1e3 * distance(before, after), "ours": 1e3 * distance(before, ours)}
        either = np.maximum(*moves.values()) > 1e3 * MOVED
        for who, values in moves.items():
            cells = [f"{(values > 1e3 * MOVED).sum()} of {either.sum()}"]
            cells += percentiles(values[either], (10, 50, 90), 1)
            cells.append(f"{values[either].mean():.1f}" if either.any() else NOTHING)
            if who == "ours" and either.any():
                apart = ks_2samp(*(moved[either] for moved in moves.values()))
                error = np.median(1e3 * distance(after, ours)[either])
                cells += [f"{error:.2f}", f"{apart.statistic:.3f} ({apart.pvalue:.2f})"]
            shown.add_row(name, who, *cells)
    return shown


def percentiles(values: Rows, which: tuple[int, ...], digits: int) -> list[str]:
    """As a table shows them, also where there is nothing to show."""
    if not values.size:
        return [NOTHING] * len(which)
    return [f"{value:.{digits}f}" for value in np.percentile(values, which)]


def slid(references: dict[str, Reference]) -> Table:
    """Along x, in 25 steps (a second), with the arm out of the way."""
    shown = Table(title="Objects on their own: how far they slide in a second, in mm", box=None)
    for name in ("object", "speed, m/s", "panda-gym", "ours", "ratio"):
        shown.add_column(name, justify="right")
    for name, thing, height in (("push", "cube", 0.02), ("slide", "puck", 0.015)):
        reference, task = references[name], PANDA_TASKS[f"panda-{name}"]
        states = np.tile(start_state(np.array([-0.45, 0.2, height])), (len(SLIDES), 1))
        states[:, 2 * len(NEUTRAL) + 7] = SLIDES
        engine = task.vector(len(SLIDES), autoreset=False)
        engine.put(*start_of(states, 3))
        engine._goals[:] = 9.0  # out of reach
        still = np.zeros(3)
        for _ in range(25):
            observation = engine.step(np.tile(still, (len(SLIDES), 1)))[0]["achieved_goal"]
        for speed, state, ours in zip(SLIDES, states, observation, strict=True):
            reference.begin(state, np.full(3, 9.0))
            for _ in range(25):
                reference.step(still)
            ways = [
                1e3 * (place[0] - state[2 * len(NEUTRAL)]) for place in (reference.row["achieved_goal"], ours)
            ]
            shown.add_row(thing, f"{speed}", *(f"{way:.1f}" for way in ways), f"{ways[1] / ways[0]:.3f}")
        engine.close()
    return shown


def held_and_lifted(seed: int) -> Table:
    """Episodes of two scripts in both."""
    shown = Table(title=f"Holding still and lifting: {ROWS} episodes of PickAndPlace", box=None)
    for name in ("by", "drifts in 10 steps, mm: median", "largest", "lifted", "width at the end, mm"):
        shown.add_column(name, justify="right")
    for who, engine in both("pick-and-place", ROWS):
        observations = played(engine, hold, seed, goal=9.0)[0]
        drift = 1e3 * distance(observations[-11, :, :3], observations[-1, :, :3])
        last = played(engine, lift, seed, goal=9.0)[0][-1]
        lifted = (last[:, 9] > 0.1).mean()
        shown.add_row(
            who,
            f"{np.median(drift):.2f}",
            f"{drift.max():.2f}",
            f"{lifted:.0%}",
            f"{1e3 * np.median(last[:, 6]):.1f}",
        )
        engine.close()
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
    heights = Table(title=f"Exploration, {episodes:,} episodes: height of the hand, in m", box=None)
    for name in ("task", "by", *(f"{quantile}%" for quantile in QUANTILES), "mean return"):
        heights.add_column(name, justify="right")
    shares = Table(title=f"… and steps that move the object by more than {1e3 * MOVED:.0f} mm", box=None)
    for name in ("task", "panda-gym", "ours", "ratio", "largest ratio of heights off 1"):
        shares.add_column(name, justify="right")
    for name in GOAL_TASKS:
        quantiles, moved, made = {}, {}, {}
        for who, engine in both(name, ROWS):
            found = [explored(engine, name, first + seed * episodes) for first in range(0, episodes, ROWS)]
            height, moves, steps, success = (
                np.concatenate(part)[:episodes] for part in zip(*found, strict=True)
            )
            engine.close()
            quantiles[who] = np.percentile(height[~np.isnan(height)], QUANTILES)
            moved[who], made[who] = moves, steps
            heights.add_row(
                name, who, *(f"{value:.4f}" for value in quantiles[who]), f"{(success - steps).mean():.2f}"
            )
        ratios = quantiles["ours"] / quantiles["panda-gym"]
        heights.add_row(name, "ratio", *(f"{ratio:.3f}" for ratio in ratios), "")
        drawn = np.random.default_rng(seed).integers(episodes, size=(RESAMPLED, episodes))
        drawn = np.concatenate([np.arange(episodes)[None], drawn])
        share = {who: moved[who][drawn].sum(1) / made[who][drawn].sum(1) for who in moved}
        ratio = share["ours"] / share["panda-gym"]
        cells = [f"{100 * values[0]:.2f}% ± {100 * values[1:].std():.2f}" for values in share.values()]
        shares.add_row(
            name, *cells, f"{ratio[0]:.3f} ± {ratio[1:].std():.3f}", f"{abs(ratios - 1).max():.3f}"
        )
    return heights, shares


def explored(engine: Engine, name: str, seed: int) -> tuple[Any, Any, Any, Any]:
    """Of episodes under random actions: heights, steps that moved the object, steps, and success."""
    thing = place_of_thing(GOAL_TASKS[name])
    shape = engine.action_space.shape
    generator = np.random.default_rng(seed)
    actions = generator.uniform(-1, 1, (HORIZON, *shape))
    observations, alive, success = played(engine, lambda _, step: actions[step], seed)
    moves = np.linalg.norm(np.diff(observations[:, :, thing], axis=0), axis=-1) > MOVED
    heights = np.where(alive, observations[1:, :, 2], np.nan)
    return heights.T, (moves & alive).sum(0), alive.sum(0), success


def played(engine: Engine, policy: Policy, seed: int, goal: float | None = None) -> tuple[Rows, Flags, Flags]:
    """Observations of episodes, (steps + 1, rows, numbers); which steps were made; and success."""
    observation, _ = engine.reset(seed=seed)
    if goal is not None:
        engine._goals[:] = goal
    seen, alive = [observation["observation"]], []
    over = np.zeros(engine.num_envs, bool)
    terminated = over
    for step in range(HORIZON):
        alive.append(~over)
        observation, _, terminated, truncated, _ = engine.step(policy(seen[-1], step))
        over = terminated | truncated
        seen.append(observation["observation"])
    return np.array(seen, np.float64), np.array(alive), terminated


def both(name: str, count: int) -> list[tuple[str, Engine]]:
    reference: PandaGym = next(task for task in REFERENCES if task.name == f"panda-gym-{name}")
    engines: tuple[Any, Any] = (reference, PANDA_TASKS[f"panda-{name}"])
    return [
        (who, task.vector(count, autoreset=False))
        for who, task in zip(("panda-gym", "ours"), engines, strict=True)
    ]


def start_of(states: Rows, goal_size: int) -> Start:
    """PyBullet's states for MuJoCo: quaternions begin with w, and bodies turn in their own frame."""
    assert states.shape[1] == STATE_SIZE
    joints = len(NEUTRAL)
    angles, speeds, place, turn, velocity, spin = np.split(
        states, np.cumsum([joints, joints, 3, 4, 3]), axis=1
    )
    axis, scalar = -turn[:, :3], turn[:, 3:]
    twice = 2 * np.cross(axis, spin)
    own_spin = spin + scalar * twice + np.cross(axis, twice)
    qpos = np.concatenate([angles, place, turn[:, [3, 0, 1, 2]]], 1)
    return Start(
        qpos, np.concatenate([speeds, velocity, own_spin], 1), np.full((len(states), goal_size), 9.0)
    )


def place_of_thing(goals: GoalTask) -> slice:
    """Where `observation` has it."""
    first = [number.name for number in table(goals)].index("object x")
    return slice(first, first + 3)


def distance(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> Any:
    return np.linalg.norm(one - other, axis=-1)


if __name__ == "__main__":
    tyro.cli(main)
