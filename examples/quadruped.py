"""A quadruped that walks as commanded: a task from a model file, in a few lines."""

import numpy as np

import augury
from augury.envs.mujoco import terms as t


class Walk(augury.MujocoTask):
    """Move with the velocity of the command, smoothly; a fall ends the episode."""

    name, model_file = "quadruped-walk", "quadruped.xml"
    horizon, substeps, start_noise, action_scale = 100, 10, 0.05, 0.4
    commands = augury.Commands(forward=(0.5, 1.0), turning=(-0.5, 0.5))
    observed = (t.projected_gravity, t.base_linear_velocity, t.base_angular_velocity,
                t.joint_offsets, t.joint_velocities, t.previous_action, t.command)  # fmt: skip

    def reward(self, before, action, after):
        forward, sideways, turning = t.command(after).T
        vx, vy, _ = t.base_linear_velocity(after).T
        *_, yaw = t.base_angular_velocity(after).T
        jerk = ((action - t.previous_action(before)) ** 2).sum(1)
        missed = (vx - forward) ** 2 + (vy - sideways) ** 2
        return np.exp(-2 * missed) + 0.5 * np.exp(-2 * (yaw - turning) ** 2) - 0.005 * jerk

    def terminated(self, before, action, after):
        *_, down = t.projected_gravity(after).T
        return down > -0.5  # it leans by more than 60 degrees


walk = Walk()
mirror = augury.reflect(walk)
