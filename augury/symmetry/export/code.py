"""The lines of an exported file that apply its map: they need NumPy, torch or JAX, and nothing of ours."""

from __future__ import annotations

from typing import Literal

Form = Literal["numpy", "torch", "jax", "rsl_rl", "json"]
TORCH = ("torch", "rsl_rl")
"""Those that need torch."""

_FRONT = '''
def mirror_observation(values, group="{group}"):
    """The mirror image of observations of a group, one or many in rows."""
    return _mirrored(values, group)


def mirror_action(values):
    """The mirror image of actions."""
    return _mirrored(values, "action")


def _mirrored(values, which):
    size = len(MAPS[which])
    if values.shape[-1] != size:
        raise ValueError(f"'{{which}}' has {{values.shape[-1]}} numbers, but its map has {{size}}: see MAPS")
'''

_ROWS = """
    rows = MAPS[which]
    most = max(len(row) for row in rows)
    sources = [[*row, *[0] * (most - len(row))] for row in rows]
    factors = [[*row.values(), *[0.0] * (most - len(row))] for row in rows]
    offset = [OFFSETS[which].get(place, 0.0) for place in range(len(rows))]
"""

_NUMPY = '''    sources, factors, offset = _map(which, str(values.dtype))
    return (values[..., sources] * factors).sum(-1) + offset


@functools.cache
def _map(which, dtype):
    """Where numbers come from, with which factors, and what is added."""
{rows}    return np.array(sources), np.array(factors, dtype), np.array(offset, dtype)
'''

_TORCH = '''    sources, factors, offset = _map(which, values.dtype, values.device)
    return (values[..., sources] * factors).sum(-1) + offset


@functools.cache
@torch.inference_mode(False)  # else a map that is first used in a rollout could not be used in training
def _map(which, dtype, device):
    """Where numbers come from, with which factors, and what is added, on the device of the values."""
{rows}    as_values = functools.partial(torch.tensor, dtype=dtype, device=device)
    return torch.tensor(sources, device=device), as_values(factors), as_values(offset)
'''

_RSL_RL = '''
def augment(env, obs, actions):
    """rsl_rl's `data_augmentation_func`: rows as they are, and after them their mirror images."""
    if obs is not None:
        if unknown := [group for group in obs.keys() if group not in MAPS]:
            raise KeyError(f"the observation group {unknown[0]!r} has no map: {list(MAPS)}")
        mirrored = obs.clone()
        for group in obs.keys():
            mirrored[group] = mirror_observation(obs[group], group)
        obs = torch.cat([obs, mirrored])
    if actions is not None:
        actions = torch.cat([actions, mirror_action(actions)])
    return obs, actions

'''

IMPORTS = {
    "numpy": "import functools\n\nimport numpy as np\n",
    "jax": "import functools\n\nimport numpy as np\n",
    "torch": "import functools\n\nimport torch\n",
    "rsl_rl": "import functools\n\nimport torch\n",
}


def functions(form: Form, group: str) -> str:
    """What applies the map; `group` is the observation group that is meant where none is named."""
    apply = _TORCH if form in TORCH else _NUMPY
    whole = _FRONT.format(group=group) + apply.format(rows=_ROWS.lstrip("\n"))
    return f"{_RSL_RL}{whole}" if form == "rsl_rl" else whole
