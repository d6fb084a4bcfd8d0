# SPDX-License-Identifier: Apache-2.0
"""method="auto": what each parameter's gradient is sent with, from what is measured on it.

In a tuning step every rank encodes a sample of each gradient with each candidate and notes bytes,
seconds and squared error; the measured rate of the link makes of them the seconds that a candidate
costs a step. The choice is the least total of seconds with a total squared error within the budget,
as in L-GreCo (Markov et al., MLSys 2024), solved by a Lagrange multiplier: for a price of error
every parameter takes its cheapest candidate, and the price is found by bisection. All ranks choose
from the same numbers, the means over ranks.

The guard: steps are timed without and with compression, and if it does not gain, none is used.
"""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import time

import torch
import torch.distributed as dist
from wirepress.errors import WirepressError
from wirepress.torch.coder import Coder, gather_is_smaller
from wirepress.torch.transport import all_gather_into, all_reduce_in
from wirepress.torch.wires import Wires

CANDIDATES = ("planes", "bx:m=0", "bf16", "int8", "int4", "int4+zstd:1", "qsgd:bits=2")
_SAMPLE = 1 << 18  # values of a parameter that are tried
_TIMED = 6  # steps in a measurement
_SETTLE = 2  # steps before it: DDP makes its buckets anew, and memory is first touched
_RETUNE = (64, 512)  # steps after which gradients have changed their nature ...
_EVERY = 2048  # ... and from then on
_PROBE = 1 << 20  # bytes that the link is measured with


@dataclasses.dataclass
class Trial:
    """A candidate for one parameter, as measured; of the whole parameter, not of the sample."""

    recipe: str  # "none": uncompressed
    seconds: float  # that a step takes longer for it: the wire, or the codec where that is slower
    error: float  # squared
    ratio: float


@dataclasses.dataclass
class Choice:
    """What a parameter's gradient is sent with, and why."""

    name: str
    n: int
    recipe: str
    ratio: float
    error: float  # relative, root mean square
    why: str


def choose(trials: dict[str, list[Trial]], budget: float) -> dict[str, Trial]:
    """For each parameter the candidate with which all together take the least time while their
    squared errors sum up to at most `budget`."""

    def at(price: float) -> dict[str, Trial]:
        return {
            name: min(some, key=lambda trial: (trial.seconds + price * trial.error, trial.error))
            for name, some in trials.items()
        }

    def fits(chosen: dict[str, Trial]) -> bool:
        return sum(trial.error for trial in chosen.values()) <= budget

    best = at(0)
    if fits(best):
        return best
    low, high = 0.0, 1.0
    while not fits(best := at(high)) and high < 1e300:
        high *= 16
    for _ in range(60):
        middle = (low + high) / 2
        chosen = at(middle)
        if fits(chosen):
            high, best = middle, chosen
        else:
            low = middle
    return best


class Tuner:
    """Follows the steps of one `State` and says what to do in each.

    The plan: settle, time plain steps, sample, time compressed ones, keep what was faster; tune
    again when gradients have changed.
    """

    def __init__(self, wires: Wires, error_budget: float) -> None:
        self.error_budget = error_budget
        self.link = 0.0  # bytes a second
        self.choices: list[Choice] = []
        self.plain_seconds = self.own_seconds = 0.0
        self.verdict = "not tuned yet"
        self._group, self._n = wires.gather.group, wires.gather.size
        self._everyone = wires.everyone.group  # decides: ranks of one host must not differ either
        self._coders = self._candidates()
        self._samples: dict[str, list[float]] = {}  # numbers of one parameter, see `sample`
        self._phase, self._left = "settle", _SETTLE
        self._times: list[float] = []
        self._last = 0.0
        self._used = True  # whether compression gained, when it was last compared
        self._step = 0

    def _candidates(self) -> dict[str, Coder]:
        """Those that the library has on all ranks: a build may lack zstd."""
        found = {}
        for recipe in CANDIDATES:
            with contextlib.suppress(WirepressError):
                found[recipe] = Coder(recipe)
        share = self._agreed([float(recipe in found) for recipe in CANDIDATES], "mean").tolist()
        everywhere = [recipe for recipe, part in zip(CANDIDATES, share, strict=True) if part == 1]
        return {recipe: found[recipe] for recipe in everywhere}

    # ---- what State asks ----

    @property
    def plain(self) -> bool:
        """Whether gradients go uncompressed in this step."""
        return self._phase in ("settle", "plain", "sample") or (
            self._phase == "run" and not self._used
        )

    @property
    def samples(self) -> bool:
        return self._phase == "sample"

    def begin_step(self) -> bool:
        """Called at the first bucket of a step; whether there are new choices. May talk to the
        other ranks, at the same steps on all."""
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        self._step += 1
        if self._phase in ("plain", "own"):
            self._times.append(seconds)
        self._left -= 1
        if self._left > 0:
            return False
        return self._next_phase()

    def _next_phase(self) -> bool:
        changed = False
        if self._phase == "settle":
            self._enter("plain", _TIMED + 1)
        elif self._phase == "plain":
            self.plain_seconds = self._agreed_median()
            self._enter("sample", 1)
        elif self._phase == "sample":
            changed = self._decide()
            self._enter("own", _TIMED + 1)
        elif self._phase == "own":
            self.own_seconds = self._agreed_median()
            self._used = self.own_seconds < self.plain_seconds
            self.verdict = (
                f"a step takes {1e3 * self.own_seconds:.1f} ms compressed, "
                f"{1e3 * self.plain_seconds:.1f} ms without: "
                + ("compressed" if self._used else "left alone")
            )
            later = [step for step in _RETUNE if step > self._step]
            self._enter("run", (later[0] - self._step) if later else _EVERY)
        else:
            self._enter("plain", _TIMED + 1)
        return changed

    def _enter(self, phase: str, steps: int) -> None:
        self._phase, self._left, self._times = phase, steps, []

    def _agreed_median(self) -> float:
        """Of the slowest rank; the first time is of the change from one way to the other."""
        return float(self._agreed([statistics.median(self._times[1:] or self._times)], "max")[0])

    def _agreed(self, numbers: list[float], how: str) -> torch.Tensor:
        tensor = torch.tensor(numbers, dtype=torch.float64, device="cpu")
        operation = dist.ReduceOp.MAX if how == "max" else dist.ReduceOp.SUM
        all_reduce_in(tensor, self._everyone, operation)
        return tensor if how == "max" else tensor / self._everyone.size()

    # ---- measuring ----

    def measure_link(self) -> None:
        """The rate at which this rank's frames reach the others; a collective call."""
        message = torch.zeros(_PROBE, dtype=torch.uint8, device="cpu")
        room = torch.empty(_PROBE * self._n, dtype=torch.uint8, device="cpu")
        times = []
        for _ in range(3):
            all_reduce_in(torch.zeros(1, dtype=torch.float32, device="cpu"), self._group)
            start = time.perf_counter()
            all_gather_into(room, message, self._group)
            times.append(time.perf_counter() - start)
        slowest = float(self._agreed([min(times)], "max")[0])
        self.link = _PROBE * max(self._n - 1, 1) / slowest

    def sample(self, name: str, values: torch.Tensor) -> None:
        """Tries all candidates on a gradient (float32, 1-D, CPU)."""
        part = values[: min(values.numel(), _SAMPLE)].contiguous()
        scale = values.numel() / part.numel()
        numbers = [float(part.double().square().sum()) * scale]
        decoded = torch.empty_like(part)
        for coder in self._coders.values():
            out = torch.empty(coder.bound(part.numel()), dtype=torch.uint8, device="cpu")
            start = time.perf_counter()
            size = coder.encode(part, out)
            coder.decode(out[:size], decoded)
            seconds = time.perf_counter() - start
            error = float((decoded - part).double().square().sum())
            numbers += [size * scale, seconds * scale, 0.0 if coder.lossless else error * scale]
        self._samples[name] = [float(values.numel()), *numbers]

    def _decide(self) -> bool:
        names = sorted(self._samples)
        if not names or not self.link:
            self.measure_link()
        flat = self._agreed([x for name in names for x in self._samples[name]], "mean")
        rows = dict(zip(names, flat.view(len(names), -1).tolist(), strict=True)) if names else {}
        self._samples = {}
        energy = sum(row[1] for row in rows.values())
        trials = {name: self._trials(row) for name, row in rows.items()}
        chosen = choose(trials, self.error_budget**2 * energy)
        old = [(choice.name, choice.recipe) for choice in self.choices]
        self.choices = [
            Choice(
                name,
                int(rows[name][0]),
                trial.recipe,
                trial.ratio,
                (trial.error / rows[name][1]) ** 0.5 if rows[name][1] else 0.0,
                self._why(trial, trials[name]),
            )
            for name, trial in chosen.items()
        ]
        return [(choice.name, choice.recipe) for choice in self.choices] != old

    def _trials(self, row: list[float]) -> list[Trial]:
        n, energy = row[0], row[1]
        both = 2 * (self._n - 1) / self._n  # bytes sent for a byte that all ranks add up
        found = [Trial("none", 4 * n * both / self.link, 0.0, 1.0)]
        for (recipe, coder), at in zip(self._coders.items(), range(2, len(row), 3), strict=True):
            size, seconds, error = row[at : at + 3]
            factor = self._n - 1 if gather_is_smaller(coder, self._n) else both
            wire = size * factor / self.link
            if error <= energy:  # else no contraction: error feedback would diverge
                found.append(Trial(recipe, max(wire, seconds * factor), error, 4 * n / size))
        return found

    def _why(self, chosen: Trial, trials: list[Trial]) -> str:
        plain = trials[0]
        if chosen is plain:
            return "nothing within the budget is faster"
        faster = [t for t in trials if t.seconds < chosen.seconds]
        text = f"{plain.seconds / max(chosen.seconds, 1e-12):.1f}x faster on the wire than plain"
        if faster:
            best = min(faster, key=lambda trial: trial.seconds)
            text += f"; {best.recipe} would be faster but cost more error"
        return text

    def explain(self) -> str:
        """The choices as a table, with the reasons."""
        gbps = self.link / 125e6
        lines = [
            f"link {gbps:.3g} Gb/s, error budget {self.error_budget:g}; {self.verdict}",
            f"{'parameter':40s} {'values':>10s} {'sent as':12s} {'ratio':>7s} {'error':>8s}  why",
        ]
        lines += [
            f"{c.name:40s} {c.n:10d} {c.recipe:12s} {c.ratio:7.2f} {c.error:8.2g}  {c.why}"
            for c in self.choices
        ]
        return "\n".join(lines)
