"""Algorithm 1: the observed ring and the augmented view."""

from augury.replay.buffer import Batch, Buffers, Replay
from augury.replay.layout import Layout
from augury.replay.survey import Survey, survey

__all__ = ["Batch", "Buffers", "Layout", "Replay", "Survey", "survey"]
