"""A cart with a pole on it, pushed along x: a MuJoCo task from a model and a reward, in one file."""

from dataclasses import dataclass

import mujoco

import augury
from augury.envs.mujoco.vector import Outcome

MODEL = """
<mujoco>
  <option timestep="0.02"/>
  <worldbody>
    <body>
      <joint name="slide" type="slide" axis="1 0 0" limited="true" range="-2 2"/>
      <geom type="box" size=".1 .05 .05" mass="1"/>
      <body>
        <joint name="hinge" type="hinge" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 .6" size=".03" mass=".1"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="slide" gear="20" ctrlrange="-1 1"/></actuator>
</mujoco>
"""

SMALL = {"steps": 120, "random_steps": 32, "collect": 2, "updates": 1, "batch_size": 16, "hidden": (16,)}


@dataclass(frozen=True)
class Cart(augury.MujocoTask):
    """Keep the pole up."""

    name: str = "cart"
    horizon: int = 25
    start_noise: float = 0.1
    mirror_normal = "x"
    training = SMALL

    def spec(self):
        return mujoco.MjSpec.from_string(MODEL)

    def outcome(self, before, action, after):
        angle = after.qpos[:, 1]
        return Outcome(1 - angle**2, abs(angle) > 0.5, extras={})


cart = Cart()
mirror = augury.reflect(cart)
