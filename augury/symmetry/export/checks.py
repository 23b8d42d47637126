"""The tests that are written beside an exported map."""

from __future__ import annotations

from augury.symmetry.export.code import TORCH, Form

_STANDARD = """from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
"""


def imports(form: Form) -> str:
    """What the tests import, for a map of this form."""
    first = ["import json"] if form == "json" else ["import importlib.util"]
    first += ["import os"]
    libraries = ["import mujoco", "import numpy as np", "import pytest"]
    libraries += ["import torch"] if form in TORCH else []
    libraries = ["import jax.numpy as jnp", *libraries] if form == "jax" else libraries
    return "\n".join([*first, _STANDARD, *libraries]) + "\n"


_LOAD = """_SPEC = importlib.util.spec_from_file_location(MAP.stem, MAP)
MIRROR = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(MIRROR)
"""
_OF_MODULE = """
def mirrored(values, which):
    return np.asarray({given} if which == "action" else {observed})
"""
_OF_JSON = """
def mirrored(values, which):
    given = MIRROR["maps"][which]
    rows = [{int(source): factor for source, factor in row["sources"].items()} for row in given]
    offsets = {place: row["offset"] for place, row in enumerate(given)}
    return np.array([mapped(rows, each, offsets) for each in values])
"""


def applied(form: Form) -> str:
    """How the tests call an exported map with arrays."""
    if form == "json":
        return "MIRROR = json.loads(MAP.read_text())\n\n" + _OF_JSON
    values = {"numpy": "values", "jax": "jnp.asarray(values)"}.get(form, "torch.as_tensor(values)")
    called = _OF_MODULE.format(
        given=f"MIRROR.mirror_action({values})", observed=f"MIRROR.mirror_observation({values}, which)"
    )
    return f"{_LOAD}\n{called}"


TESTS = '''
SEEDS = range(5)
"""Of the random states; every term is measured in each of them."""
CASES = [(group, term) for group, vector in TERMS.items() for term in vector["terms"]]


@pytest.fixture(scope="module")
def simulator():
    load = mujoco.MjModel.from_binary_path if MODEL.suffix == ".mjb" else mujoco.MjModel.from_xml_path
    return Simulator(load(str(MODEL)), PLANE, (QPOS, QPOS_OFFSETS), QVEL, BODIES, DEFAULT, STILL)


@pytest.mark.parametrize("group", TERMS)
def test_mirrored_twice_is_the_same(group):
    values = np.random.default_rng(0).normal(size=(4, TERMS[group]["size"]))
    np.testing.assert_allclose(mirrored(mirrored(values, group), group), values, atol=ROUNDING)


def test_states_are_mirrored_as_the_plane_says(simulator):
    for seed in SEEDS:
        error, body = simulator.state_error(seed)
        assert error <= BODY_TOLERANCE, f"{body} is off by {error:.3g}: was the map made for this model?"


@pytest.mark.parametrize(("group", "name"), CASES)
def test_simulator_agrees(simulator, group, name):
    """What is observed in the mirror is the mirror image of what is observed."""
    if TERMS[group]["terms"][name]["kind"] == "custom" and name not in CUSTOM:
        pytest.skip(f"'{name}' is a block of your own: say in CUSTOM how to measure it")
    for seed in SEEDS:
        here, there, where = simulator.observed(TERMS[group], seed, CUSTOM)
        found = mirrored(here[None], group)[0]
        for place in where[name]:
            error = relative_error(there[place], found[place])
            assert error <= TERM_TOLERANCE, (
                f"{group}, {name}: number {place} of the mirror image is {found[place]:.6g} by the map, "
                f"{there[place]:.6g} in the simulator"
            )


def turned(action):
    """The mirror image of a change of the action."""
    return np.subtract(*mirrored(np.stack([action, 0 * action]), "action"))


@pytest.mark.parametrize("number", ACTIONS)
def test_action_does_the_mirrored_thing(simulator, number):
    term = TERMS["action"]["terms"][ACTION]
    action = np.zeros(term["size"])
    action[number] = 0.1
    image = turned(action)
    error = simulator.effect_error(0, term, action, image)
    assert error <= EFFECT_TOLERANCE, f"action {number} does another thing in the mirror: off by {error:.3g}"


def test_symmetric_policy_does_the_mirrored_thing(simulator):
    """A policy that is symmetric by the map acts symmetrically in the simulator, at mirrored states."""
    term = TERMS["action"]["terms"][ACTION]
    mirrored_only = np.isin(np.arange(term["size"]), ACTIONS)
    for group in TERMS:
        if group == "action":
            continue
        for seed in SEEDS:
            here, there, _ = simulator.observed(TERMS[group], seed, CUSTOM)
            weights = np.random.default_rng(seed).normal(size=(term["size"], len(here))) / len(here) ** 0.5

            def policy(observation):
                image = mirrored(observation[None], group)[0]
                own, other = (np.tanh(weights @ each) for each in (observation, image))
                return 0.05 * (own + turned(other)) * mirrored_only

            error = simulator.effect_error(seed, term, policy(here), policy(there))
            assert error <= EFFECT_TOLERANCE, f"{group}: what it does is off by {error:.3g} in the mirror"
'''

POLICY = '''

@pytest.mark.skipif("SYMMETRY_POLICY" not in os.environ, reason="SYMMETRY_POLICY names no TorchScript file")
def test_your_policy_is_symmetric(simulator):
    """How far a trained policy's actions at mirrored states are from the mirror images of its actions."""
    policy = torch.jit.load(os.environ["SYMMETRY_POLICY"], map_location="cpu")
    limit = float(os.environ.get("SYMMETRY_POLICY_TOLERANCE", "0.1"))
    group, differences = next(iter(TERMS)), []
    for seed in range(100):
        here, there, _ = simulator.observed(TERMS[group], seed, CUSTOM)
        with torch.no_grad():
            one, other = (policy(torch.tensor(each[None], dtype=torch.float32)) for each in (here, there))
        differences.append(float((MIRROR.mirror_action(one) - other).abs().max()))
    middle, most = np.quantile(differences, [0.5, 0.99])
    assert most <= limit, f"its actions are off by {middle:.3g} (median), {most:.3g} (99%) in the mirror"
'''
