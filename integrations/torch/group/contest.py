# SPDX-License-Identifier: Apache-2.0
"""Whether compressing gains, by time."""

from __future__ import annotations

from statistics import median


class Contest:
    """Whether operations of one kind and about one size go raw: each way is timed three times, what
    is faster in the middle stays, and the other one is tried again after 8, 16 ... 256 calls."""

    GAIN = 0.95
    """Compressed ones shall take at most this part of the time: a thread does them, whose waking
    is not timed; a raw one is done by the thread that asks."""

    def __init__(self) -> None:
        self._times: dict[bool, list[float]] = {False: [], True: []}  # raw?: the last three
        self._pause = 8
        self._trial = False
        self.raw = False
        self.granted = 0
        """Calls from the next one on that all ranks have agreed to do this way."""
        self.last: Contest | None = None
        """The contest of the call before."""

    def plan(self) -> tuple[bool, int]:
        """Which way the next calls shall go (raw?), and how many, at least one."""
        pressed, raw = self._times[False], self._times[True]
        if len(raw) < 3:
            return len(raw) < len(pressed), 1
        faster = self.GAIN * median(raw) < median(pressed)
        self._trial = not self._trial
        if not self._trial:
            return not faster, 1
        calls, self._pause = self._pause, min(2 * self._pause, 256)
        return faster, calls

    def note(self, raw: bool, cost: float) -> None:
        """What an operation took, in seconds a byte."""
        self._times[raw] = [*self._times[raw], cost][-3:]
