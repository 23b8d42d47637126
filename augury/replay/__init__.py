"""Algorithm 1: the ring of what was observed, R, and what is augmented from it, R̃."""

from augury.replay.layout import Layout
from augury.replay.ring import Batch, Buffers, Replay
from augury.replay.survey import Survey, survey

__all__ = ["Batch", "Buffers", "Layout", "Replay", "Survey", "survey"]
