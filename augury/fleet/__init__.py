"""Many agents trained at once."""

from augury.fleet.arm import Arm
from augury.fleet.checks import resolved
from augury.fleet.compilation import keep_compiled
from augury.fleet.devices import use_all_cores
from augury.fleet.evaluation import Played, Policies, load_policies
from augury.fleet.training import Interrupted, Progress, train, train_fleet
from augury.runs.results import Result

__all__ = [
    "Arm",
    "Interrupted",
    "Played",
    "Policies",
    "Progress",
    "Result",
    "keep_compiled",
    "load_policies",
    "resolved",
    "train",
    "train_fleet",
    "use_all_cores",
]
