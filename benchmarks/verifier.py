"""Whether the verifier catches what is wrong, names the right cause, and leaves alone what is right.

    python benchmarks/verifier.py                       # 61 wrong and 42 right augmentations, one seed
    python benchmarks/verifier.py --seeds 0 1 2 3 4
    python benchmarks/verifier.py --seeds 0 1 2 3 4 --right --samples 10000
    python benchmarks/verifier.py --repeat              # how much of Gymnasium's own can be repeated

Each wrong augmentation is a right one with a mistake. Beside it stands what the report must say: a part of
the cause, or nothing where no small repair exists and a description is what can be had.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box

from augury import augmentations
from augury.augmentations import from_numpy
from augury.augmentations.symmetry import reflect, rotate
from augury.envs.mujoco.locomotion import TASKS
from augury.verify import Report, verify
from augury.verify.comparison import Errors
from augury.verify.simulators import simulator_of

Edit = Callable[[Any, Any], Any]
BOTH = ("observation", "next_observation")


@dataclass(frozen=True)
class Case:
    """An augmentation, where it is verified, and what must be said about it."""

    name: str
    augmentation: Any
    environment: Any
    cause: str | None = None
    """A part of the right cause. None where there is none to be named."""


class Spring(gymnasium.Env[Any, Any]):
    """A mass on a spring between two walls: somebody's own environment."""

    observation_space, action_space = Box(-2, 2, (2,), np.float64), Box(-1, 1, (1,), np.float64)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, 2)
        return self.state.copy(), {}

    def step(self, action: Any) -> tuple[Any, ...]:
        position, velocity = self.state
        velocity = 0.98 * velocity + 0.1 * (action[0] - position)
        position = np.clip(position + 0.2 * velocity, -1, 1)
        self.state = np.array([position, velocity])
        return self.state.copy(), -float(position**2), False, False, {}

    def restore(self, observation: Any, extras: Any) -> None:
        self.state = np.array(observation)


def edited(augmentation: Any, **edits: Callable[[Any, Any], Any]) -> Any:
    """The augmentation with a mistake: each field is what its function of the result and the input gives."""

    def wrong(key: Any, transition: Any) -> Any:
        result = augmentation(key, transition)
        return result._replace(**{field: edit(result, transition) for field, edit in edits.items()})

    wrong.needs = getattr(augmentation, "needs", ())  # type: ignore[attr-defined]
    return wrong


def both(augmentation: Any, change: Edit) -> Any:
    """The same mistake in observation and next observation."""
    return edited(augmentation, **{field: _on(field, change) for field in BOTH})


def _on(field: str, change: Edit) -> Callable[[Any, Any], Any]:
    return lambda result, seen: change(getattr(result, field), getattr(seen, field))


def flip(*places: int) -> Edit:
    return lambda said, seen: jnp.asarray(said).at[np.array(places)].multiply(-1)


def keep(*places: int) -> Edit:
    return lambda said, seen: jnp.asarray(said).at[np.array(places)].set(seen[np.array(places)])


def swap(one: list[int], other: list[int]) -> Edit:
    to, source = np.array(one + other), np.array(other + one)
    return lambda said, seen: jnp.asarray(said).at[to].set(said[source])


def noise(size: float) -> Any:
    """Noise upon the observation and the next observation, as images are augmented."""

    def noisy(key: Any, transition: Any) -> Any:
        drawn = size * jax.random.normal(key, transition.observation.shape)
        return transition._replace(
            observation=transition.observation + drawn, next_observation=transition.next_observation + drawn
        )

    return noisy


def reversed_in_time(key: Any, transition: Any) -> Any:
    return transition._replace(
        observation=transition.next_observation, next_observation=transition.observation
    )


def signed(observation: list[int], action: list[int] | None = None, flipped: int = 0) -> Any:
    """A mirror by signs; with `flipped` choices, the action i becomes flipped - 1 - i."""

    def mirror(key: Any, transition: Any) -> Any:
        signs = jnp.asarray(observation)
        acted = flipped - 1 - transition.action if flipped else transition.action * jnp.asarray(action)
        return transition._replace(
            observation=transition.observation * signs,
            action=acted.astype(transition.action.dtype),
            next_observation=transition.next_observation * signs,
        )

    return mirror


def gym(name: str) -> Any:
    return gymnasium.make(name).unwrapped


def place(robot: str, name: str) -> int:
    return [quantity.name for quantity in TASKS[robot].table].index(name)


def wrong_robots() -> Iterator[Case]:
    swimmer, walker, ant, humanoid = (
        reflect(TASKS[name]) for name in ("swimmer", "walker2d", "ant", "humanoid")
    )
    turn, man_turn = rotate(TASKS["ant"]), rotate(TASKS["humanoid"])
    for spot in (0, 2, 4, 6):
        yield Case(
            f"sign of observation {spot}", both(swimmer, flip(spot)), "swimmer", f"(observation {spot})"
        )
    yield Case(
        "sign of an action", edited(swimmer, action=_on("action", flip(0))), "swimmer", "sign of action 0"
    )
    yield Case(
        "two signs",
        edited(both(swimmer, flip(1)), action=_on("action", flip(1))),
        "swimmer",
        "sign of action 1",
    )
    yield Case("noise", noise(0.01), "swimmer")
    yield Case("time reversed", reversed_in_time, "swimmer")
    yield Case(
        "joints clipped near their limits",
        both(swimmer, lambda said, seen: said.at[1:3].set(jnp.clip(said[1:3], -1.5, 1.5))),
        "swimmer",
        "positions of joints",
    )
    legs, other = [2, 3, 4], [5, 6, 7]
    speeds, others = [11, 12, 13], [14, 15, 16]
    yield Case("legs' velocities not exchanged", both(walker, swap(speeds, others)), "walker2d", "velocities")
    yield Case("legs' angles not exchanged", both(walker, swap(legs, other)), "walker2d", "positions")
    yield Case(
        "motors not permuted", edited(walker, action=lambda r, s: s.action), "walker2d", "the action is that"
    )
    yield Case(
        "motors in another order",
        edited(walker, action=lambda r, s: r.action[np.array([2, 1, 0, 5, 4, 3])]),
        "walker2d",
        "action",
    )
    yield Case(
        "one pair of motors",
        edited(walker, action=_on("action", swap([1], [4]))),
        "walker2d",
        "actions 1 and 4",
    )
    yield Case("one pair of angles", both(walker, swap([3], [6])), "walker2d", "must be exchanged")
    yield Case("torso flipped", both(walker, flip(1)), "walker2d", "(observation 1)")
    yield Case(
        "next observation stale",
        edited(walker, next_observation=lambda r, s: s.next_observation),
        "walker2d",
        "augment it too",
    )
    yield Case(
        "observation stale",
        edited(walker, observation=lambda r, s: s.observation),
        "walker2d",
        "augment it too",
    )
    yield Case(
        "a pair and a sign", both(both(walker, swap([3], [6])), flip(1)), "walker2d", "positions of joints"
    )
    yield Case("gymnasium's friction", "walker2d/reflect", TASKS["walker2d"].variant("stock"), "in contact")
    for number in (place("ant", "root velocity y"), place("ant", "root quaternion x")):
        yield Case(f"sign of observation {number}", both(ant, flip(number)), "ant", f"(observation {number})")
    yield Case("a leg not exchanged", both(ant, swap([5, 6], [7, 8])), "ant", "positions")
    yield Case("motors forgotten", edited(ant, action=lambda r, s: s.action), "ant", "the action is that")
    yield Case("stale reward", edited(turn, reward=lambda r, s: s.reward), "ant", "the reward is that")
    yield Case("velocity not turned", both(turn, keep(13, 14, 15)), "ant", "must rotate with the robot")
    yield Case("extras left", edited(turn, extras=lambda r, s: s.extras), "ant", "the extra 'x_velocity'")
    yield Case(
        "stale next observation", edited(turn, next_observation=lambda r, s: s.next_observation), "ant"
    )
    yield Case("pyramids of friction", "ant/rotate", "ant-paper", "in contact")
    yield Case("noise", noise(0.001), "ant")
    quaternion = [place("humanoid", f"root quaternion {part}") for part in "wxyz"]
    order = np.array(quaternion), np.roll(quaternion, -1)
    yield Case(
        "x, y, z, w",
        both(humanoid, lambda said, seen: said.at[order[0]].set(said[order[1]])),
        "humanoid",
        "order x, y, z, w",
    )
    yield Case("inverted", both(humanoid, flip(*quaternion[1:])), "humanoid", "is inverted")
    yield Case("from the wrong side", both(man_turn, _from_the_right(quaternion)), "humanoid", "wrong side")
    yield Case(
        "an actuator's sign", edited(humanoid, action=_on("action", flip(1))), "humanoid", "sign of action 1"
    )
    yield Case(
        "motors forgotten", edited(humanoid, action=lambda r, s: s.action), "humanoid", "the action is that"
    )
    yield Case("pyramids of friction", "humanoid/rotate", "humanoid-paper", "in contact")
    yield Case(
        "stale reward", edited(man_turn, reward=lambda r, s: s.reward), "humanoid", "the reward is that"
    )
    yield Case(
        "truncated", edited(humanoid, truncated=lambda r, s: ~s.truncated), "humanoid", "truncated must stay"
    )


def _from_the_right(places: list[int]) -> Edit:
    """r·q becomes q·r, where r turns about z."""

    def change(said: Any, seen: Any) -> Any:
        first, second = (one[np.array(places)] for one in (said, seen))
        inverse = second * jnp.array([1, -1, -1, -1]) / (second**2).sum()
        return said.at[np.array(places)].set(_product(second, _product(first, inverse)))

    return change


def _product(one: Any, other: Any) -> Any:
    w, x, y, z = one
    a, b, c, d = other
    return jnp.stack(
        [
            w * a - x * b - y * c - z * d,
            w * b + x * a + y * d - z * c,
            w * c - x * d + y * a + z * b,
            w * d + x * c - y * b + z * a,
        ]
    )


PENDULUM = signed([1, -1, -1], [-1])
CARTPOLE = signed([-1] * 4, flipped=2)
ACROBOT = signed([1, -1, 1, -1, -1, -1], flipped=3)
SWIMMER_V5 = signed([-1, -1, -1, 1, -1, -1, -1, -1], [-1, -1])
MIRROR = signed([-1, -1], [-1])


def wrong_others() -> Iterator[Case]:
    yield Case("sign of sine", both(PENDULUM, flip(1)), gym("Pendulum-v1"), "sign of observation 1 is")
    yield Case("sign of speed", both(PENDULUM, flip(2)), gym("Pendulum-v1"), "sign of observation 2 is")
    yield Case(
        "action forgotten",
        edited(PENDULUM, action=lambda r, s: s.action),
        gym("Pendulum-v1"),
        "sign of action 0",
    )
    yield Case("cosine flipped", both(PENDULUM, flip(0)), gym("Pendulum-v1"), "sign of observation 0 is")
    yield Case(
        "action out of bounds",
        edited(PENDULUM, action=lambda r, s: 3 * r.action),
        gym("Pendulum-v1"),
        "action 0",
    )
    yield Case("sign of the angle", both(CARTPOLE, flip(2)), gym("CartPole-v1"), "sign of observation 2 is")
    yield Case(
        "action forgotten",
        edited(CARTPOLE, action=lambda r, s: s.action),
        gym("CartPole-v1"),
        "must be exchanged",
    )
    yield Case(
        "stale termination at the track's end",
        _shifted_cart,
        gym("CartPole-v1"),
        "the termination is that",
    )
    yield Case("sign of a speed", both(ACROBOT, flip(5)), gym("Acrobot-v1"), "sign of observation 5 is")
    yield Case(
        "two signs", both(both(ACROBOT, flip(5)), flip(3)), gym("Acrobot-v1"), "sign of observation 3 is"
    )
    yield Case("sign of a velocity", both(SWIMMER_V5, flip(3)), gym("Swimmer-v5"), "(observation 3)")
    yield Case(
        "an action", edited(SWIMMER_V5, action=_on("action", flip(1))), gym("Swimmer-v5"), "sign of action 1"
    )
    yield Case("action forgotten", edited(MIRROR, action=lambda r, s: s.action), Spring(), "sign of action 0")
    yield Case("sign of the velocity", both(MIRROR, flip(1)), Spring(), "sign of observation 1 is")
    yield Case("through the wall", from_numpy(_through_the_wall), Spring())
    yield Case("noise upon the action", _noisy_action, Spring())
    translate = augmentations.make("goal2d/translate")
    yield Case(
        "stale reward", edited(translate, reward=lambda r, s: s.reward), "goal2d", "the reward is that"
    )
    yield Case(
        "stale termination",
        edited(translate, terminated=lambda r, s: s.terminated),
        "goal2d",
        "the termination is that",
    )
    yield Case("goal beyond the walls", _goals_outside, "goal2d")
    yield Case("through the wall", _through_goal2d, "goal2d")
    push = augmentations.make("panda/translate-goal", "panda-push")
    yield Case("stale reward", edited(push, reward=lambda r, s: s.reward), "panda-push", "the reward is that")
    yield Case(
        "goals differ",
        edited(push, next_observation=lambda r, s: s.next_observation),
        "panda-push",
        "desired_goal must be the same",
    )
    turned = augmentations.make("panda/translate-goal", "panda-flip")
    yield Case("stale termination", edited(turned, terminated=lambda r, s: ~r.terminated), "panda-flip")


def _shifted_cart(key: Any, transition: Any) -> Any:
    """The cart is moved along its track, which changes nothing but where it ends."""
    shift = jnp.array([jax.random.uniform(key, (), float, -1, 1), 0, 0, 0])
    return transition._replace(
        observation=transition.observation + shift, next_observation=transition.next_observation + shift
    )


def _through_the_wall(generator: Any, transition: Any) -> Any:
    position, velocity = transition.observation
    velocity = 0.98 * velocity + 0.1 * (transition.action[0] - position)
    return transition._replace(next_observation=np.array([position + 0.2 * velocity, velocity]))


def _noisy_action(key: Any, transition: Any) -> Any:
    return transition._replace(action=jnp.clip(transition.action + 0.1 * jax.random.normal(key, (1,)), -1, 1))


def _goals_outside(key: Any, transition: Any) -> Any:
    away = jnp.array([0, 0, 3.0, 3.0])
    return transition._replace(
        observation=transition.observation.at[2:].set(away[2:]),
        next_observation=transition.next_observation.at[2:].set(away[2:]),
        reward=jnp.full_like(transition.reward, -0.1),
        terminated=jnp.zeros_like(transition.terminated),
    )


def _through_goal2d(key: Any, transition: Any) -> Any:
    shift = jnp.append(jax.random.uniform(key, (2,), float, -1, 1), jnp.zeros(2))
    started = transition.observation + shift
    ended = started.at[:2].add(transition.next_observation[:2] - transition.observation[:2])
    reached = ((ended[:2] - ended[2:]) ** 2).sum() < 0.05**2
    reward = jnp.where(reached, 1.0, -0.1).astype(transition.reward.dtype)
    return transition._replace(observation=started, next_observation=ended, reward=reward, terminated=reached)


def unchanged(key: Any, transition: Any) -> Any:
    return transition


def right() -> Iterator[Case]:
    for name in ("translate", "rotate", "translate-proximal(0.3)", "translate-proximal(0.9)"):
        yield Case(name, f"goal2d/{name}", "goal2d")
        yield Case(name, f"goal2d/{name}", "goal2d-quadrant")
    for robot in ("swimmer", "walker2d", "ant", "humanoid"):
        yield Case("reflect", f"{robot}/reflect", robot)
        yield Case("reflect, in NumPy", from_numpy(_in_numpy(robot), _needs(robot)), robot)
        yield Case("unchanged", unchanged, robot)
    yield Case("reflect", "ant/reflect", "ant-paper")
    yield Case("reflect", "humanoid/reflect", "humanoid-paper")
    for robot in ("ant", "humanoid"):
        yield Case("rotate", f"{robot}/rotate", robot)
        parts = (augmentations.make(f"{robot}/{name}", robot) for name in ("reflect", "rotate"))
        yield Case("reflect and rotate", augmentations.compose(*parts), robot)
        yield Case("sometimes", augmentations.sometimes(0.5, rotate(TASKS[robot])), robot)
    yield Case("mirror", PENDULUM, gym("Pendulum-v1"))
    yield Case("mirror", CARTPOLE, gym("CartPole-v1"))
    yield Case("mirror", ACROBOT, gym("Acrobot-v1"))
    yield Case("mirror", SWIMMER_V5, gym("Swimmer-v5"))
    yield Case("mirror", MIRROR, Spring())
    for name in ("Walker2d-v5", "Hopper-v5", "HalfCheetah-v5", "InvertedPendulum-v5", "MountainCar-v0"):
        yield Case("unchanged", unchanged, gym(name))
    for task in ("push", "slide", "pick-and-place", "flip"):
        yield Case("translate-goal", "panda/translate-goal", f"panda-{task}")


def _needs(robot: str) -> tuple[str, ...]:
    return tuple(getattr(reflect(TASKS[robot]), "needs", ()))


def _in_numpy(robot: str) -> Any:
    """A mirror with its masks in NumPy: what a user would have written."""
    mirror = reflect(TASKS[robot])
    width, motors = len(TASKS[robot].table), TASKS[robot].model.nu
    with jax.enable_x64(True):
        seen = np.asarray(jax.vmap(lambda row: mirror.observation(row))(jnp.eye(width)))
        done = np.asarray(jax.vmap(lambda row: mirror.action(row))(jnp.eye(motors)))

    def mirrored(generator: Any, transition: Any) -> Any:
        result = transition._replace(
            observation=transition.observation @ seen,
            action=transition.action @ done,
            next_observation=transition.next_observation @ seen,
        )
        extras, reward = dict(transition.extras), transition.reward
        if "x_velocity" in extras:  # the ant's front becomes its back, and its reward counts the way forward
            extras["x_velocity"] = -extras["x_velocity"]
            reward = reward + 2 * TASKS[robot].forward_weight * extras["x_velocity"]
        return result._replace(reward=reward, extras=extras)

    return mirrored


def judged(case: Case, report: Report) -> str:
    """How the verifier did on something wrong."""
    if report.verdict == "valid":
        return "missed"
    if report.cause is None:
        return "described" if case.cause is None else "no cause"
    return "right cause" if case.cause is not None and case.cause in report.cause else "WRONG CAUSE"


GYMNASIUM = (
    *("Pendulum-v1", "CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0"),
    *(
        f"{name}-v{version}"
        for name in ("Walker2d", "Hopper", "HalfCheetah", "Swimmer")
        for version in (4, 5)
    ),
    *("InvertedPendulum-v4", "InvertedPendulum-v5", "Ant-v4"),
)


def repeat(samples: int) -> None:
    """The share of observed transitions that an environment repeats when it is put back."""
    for name in GYMNASIUM:
        simulator = simulator_of(gym(name))
        observed = simulator.play(samples, None, 0).transition
        repeated = Errors.between(simulator, observed, ()).largest <= 1e-8
        print(f"| {name} | {repeated.mean():.0%} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--right", action="store_true", help="only what is right")
    parser.add_argument("--wrong", action="store_true", help="only what is wrong")
    parser.add_argument("--repeat", action="store_true", help="only what can be repeated")
    parser.add_argument("--only", default="", help="only environments with this in their name")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()
    if options.repeat:
        return repeat(options.samples)
    cases: list[tuple[bool, Case]] = []
    if not options.right:
        cases += [(True, case) for case in (*wrong_robots(), *wrong_others())]
    if not options.wrong:
        cases += [(False, case) for case in right()]
    total: Counter[str] = Counter()
    for seed in options.seeds:
        counts = Counter(tried(cases, options.only, options.samples, seed))
        summarise(f"seed {seed}", counts)
        total += counts
    summarise(f"all of {len(options.seeds)} seeds", total)
    return None


def tried(cases: list[tuple[bool, Case]], only: str, samples: int, seed: int) -> Iterator[str]:
    """How the verifier did on every case, in a few words."""
    for is_wrong, case in cases:
        where = getattr(case.environment, "name", None) or (
            case.environment if isinstance(case.environment, str) else type(case.environment).__name__
        )
        if only not in where:
            continue
        began = time.process_time()
        report = verify(case.augmentation, case.environment, samples=samples, seed=seed)
        how = judged(case, report) if is_wrong else ("passed" if report.valid else "FALSE ALARM")
        loud = how in ("missed", "no cause", "WRONG CAUSE", "FALSE ALARM")
        detail = f"{report.cause or report.description or report.verdict}" if loud else ""
        spent = time.process_time() - began
        print(
            f"| {where} | {case.name} | {seed} | {how} | {report.invalid} | {spent:.1f} s | {detail}",
            flush=True,
        )
        yield f"{'wrong' if is_wrong else 'right'}: {how}"


def summarise(what: str, counts: Counter[str]) -> None:
    print(what, *(f"{how}: {count}" for how, count in sorted(counts.items())), sep="; ", flush=True)


if __name__ == "__main__":
    main()
