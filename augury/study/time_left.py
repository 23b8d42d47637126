"""How fast a study's fleets learn, and how long all of them will take."""

from __future__ import annotations

from collections.abc import Sequence

from augury.fleet.pace import duration
from augury.study.runner import Job


class TimeLeft:
    """Collects what fleets report, and predicts those that wait."""

    def __init__(self, jobs: Sequence[Job], at_once: int) -> None:
        self._open = {job.folder: job for job in jobs}
        """Fleets that are not at their end."""
        self._at_once = at_once
        self._steps = {job.folder: 0 for job in jobs}
        self._speed: dict[object, float] = {}
        self._left: dict[object, float] = {}
        self._at_random: set[object] = set()
        self._rate: float | None = None
        """Work of a fleet in a second, its evaluations included: the newest that is known."""

    def told(self, job: Job, steps: int, speed: float | None, left: float | None) -> None:
        """A fleet reports its steps, how fast it learns and how many seconds it has left."""
        key = job.folder
        self._steps[key] = steps
        self._at_random.discard(key)
        if speed is None or left is None:
            if steps <= job.random_steps:
                self._at_random.add(key)
            return
        self._speed[key], self._left[key] = speed, left
        if left > 0:
            self._rate = job.work_after(steps) / left
        elif self._rate is None:
            self._rate = speed

    def ended(self, job: Job) -> None:
        """A fleet is finished, has failed, or was stopped: nobody waits for it."""
        self._open.pop(job.folder, None)
        self._at_random.discard(job.folder)
        self._speed.pop(job.folder, None)
        self._left.pop(job.folder, None)

    @property
    def seconds(self) -> float | None:
        """Seconds until all fleets are at their end; None while no fleet has reported its speed."""
        if not self._rate:
            return None
        each = [
            self._left[key] if key in self._left else job.work_after(self._steps[key]) / self._rate
            for key, job in self._open.items()
        ]
        return max(sum(each) / self._at_once, max(each, default=0.0))

    def words(self) -> list[str]:
        """Speed and time left, as far as they are known."""
        found = []
        if self._speed:
            found.append(f"{sum(self._speed.values()):,.0f} agent-steps/s")
        elif self._at_random:
            found.append("random phase")
        if (left := self.seconds) is not None:
            found.append(f"about {duration(left)} left")
        return found
