# SPDX-License-Identifier: Apache-2.0
"""Whether compressing gains, by time."""

from __future__ import annotations

from statistics import median

TRIALS = 3
"""Calls of each way whose middle counts."""
CHECK = 24
"""Compressed calls after which their times are looked at again: three lucky ones may have won."""
PAUSES = (24, 768)
"""Calls until the other way is tried for the first time, and at most."""


class Contest:
    """Whether operations of one kind and about one size go raw: each way is timed three times, what
    is faster in the middle stays, and three calls of the other way are tried again after 24, 48 ...
    768 calls."""

    GAIN = 0.95
    """Compressed ones shall take at most this part of the time: a thread does them, whose waking
    is not timed; a raw one is done by the thread that asks."""

    def __init__(self) -> None:
        self._times: dict[bool, list[float]] = {False: [], True: []}  # raw?: the last of each
        self._pause = PAUSES[0]
        self._left = 0  # calls until the other way is tried
        self._trials = 0  # of the other way, that come then
        self._tried = False  # raw?
        self.raw = False
        self.granted = 0
        """Calls from the next one on that all ranks have agreed to do this way."""
        self.last: Contest | None = None
        """The contest of the call before."""

    def plan(self, most: int = PAUSES[1]) -> tuple[bool, int]:
        """Which way the next calls shall go (raw?), and how many, at least one, at most `most`."""
        pressed, raw = self._times[False], self._times[True]
        if len(raw) < TRIALS:
            return len(raw) < len(pressed), 1
        faster = self.GAIN * median(raw) < median(pressed)
        if self._left == 0 and self._trials == 0:
            self._left, self._trials = self._pause, TRIALS
            self._pause = min(2 * self._pause, PAUSES[1])
        if self._left > 0:
            calls = min(self._left, most if faster else min(CHECK, most))
            self._left -= calls
            self._tried = not faster
            return faster, calls
        self._trials -= 1
        return self._tried, 1

    def note(self, raw: bool, cost: float) -> None:
        """What an operation took, in seconds a byte."""
        self._times[raw] = [*self._times[raw], cost][-TRIALS:]
