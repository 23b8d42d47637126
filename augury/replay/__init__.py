"""Algorithm 1: the observed ring and the augmented view."""

from augury.replay.buffer import Batch, Buffers, Replay
from augury.replay.layout import Layout
from augury.replay.survey import Grid, Survey, survey

__all__ = ["Batch", "Buffers", "Grid", "Layout", "Replay", "Survey", "survey"]
