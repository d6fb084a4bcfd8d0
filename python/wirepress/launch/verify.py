# SPDX-License-Identifier: Apache-2.0
"""`wirepress run --verify`: the job once more without wirepress, and how far the results differ.

What a bound on messages does to a result only the result can tell: an iterative solver may take
other steps, or none that lead anywhere. Standard library only, as run.py, which uses it.
"""

from __future__ import annotations

import argparse
import array
import ast
import contextlib
import glob
import itertools
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# Beside the largest number of a file what is smaller than this is a rounding error.
NOTHING = 1e-12
NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?|nan|NaN|inf|Inf|Infinity)(?![\w.])"
)
# Lines that differ between any two runs.
OF_TIME = re.compile(
    r"time|second|\bsecs?\b|wall|elapsed|clock|\bcpu\b|date|perf|speed|flops|memory|bytes|\b[KMG]i?B\b"
    r"|ns/day|\d:\d\d|\bpid\b|finished|started",
    re.IGNORECASE,
)
OURS = re.compile(r"\.(plain|wirepress)\d*$")  # files that this command named
TYPES = {"float32": "f", "float64": "d", "int32": "i", "int64": "q"}
NPY = {"f4": "f", "f8": "d", "c8": "f", "c16": "d", "i4": "i", "i8": "q"}


class VerifyError(Exception):
    """A mistake the user can act on; its text is the whole message."""


@dataclass
class Difference:
    """Of two results. `largest` is relative to the larger of two numbers; infinite where the
    results cannot be compared number by number, and `where` says why."""

    largest: float = 0.0
    n_numbers: int = 0
    where: str = ""
    left_out: int = 0  # lines


# ---- comparing -------------------------------------------------------------------------------


def apart(a: float, b: float, least: float) -> float:
    """The relative difference; numbers below `least` count as zero."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    most = max(abs(a), abs(b))
    return 0.0 if most <= least else abs(a - b) / most


def compare_numbers(ours: Sequence[float], plain: Sequence[float]) -> Difference:
    if len(ours) != len(plain):
        return Difference(math.inf, 0, f"{len(ours):,} numbers, plain {len(plain):,}")
    pairs = list(zip(ours, plain, strict=True))
    finite = (abs(x) for pair in pairs for x in pair if math.isfinite(x))
    least = NOTHING * max(finite, default=0.0)
    found = Difference(n_numbers=len(pairs))
    for i, (a, b) in enumerate(pairs):
        difference = apart(a, b, least)
        if difference > found.largest:
            found.largest = difference
            found.where = f"number {i + 1}: {a:g}, plain {b:g}"
    return found


def read_number(text: str) -> float:
    return float(text.replace("d", "e").replace("D", "e"))


def compare_text(ours: str, plain: str, lines: re.Pattern[str] | None) -> Difference:
    """The numbers of two texts, whose words must be equal. `lines`: only those that match it;
    without it all but those about time and the like."""

    def chosen(text: str) -> list[str]:
        if lines:
            return [line for line in text.splitlines() if lines.search(line)]
        return [line for line in text.splitlines() if not OF_TIME.search(line)]

    def words(line: str) -> str:  # blanks depend on how long numbers are
        return " ".join(NUMBER.sub("#", line).split())

    a, b = chosen(ours), chosen(plain)
    left_out = len(plain.splitlines()) - len(b)
    shapes = [words(line) for line in a], [words(line) for line in b]
    if shapes[0] != shapes[1]:
        same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(*shapes, strict=False))
        first = len(list(same))
        said = [repr(x[first].strip()[:60]) if first < len(x) else "nothing" for x in (a, b)]
        where = (
            f"{len(a)} lines, plain {len(b)}; the first to differ in more than numbers: "
            f"{said[0]}, plain {said[1]}"
        )
        return Difference(math.inf, 0, where, left_out)
    numbers = [[read_number(word) for line in text for word in NUMBER.findall(line)]
               for text in (a, b)]  # fmt: skip
    found = compare_numbers(*numbers)
    found.left_out = left_out
    if found.largest:
        found.where = line_of(found.where, a, b)
    return found


def line_of(where: str, ours: list[str], plain: list[str]) -> str:
    """The line that has the number, in place of where it stands among all."""
    number, rest = where.split(":", 1)
    left = int(number.split()[1])
    for line, other in zip(ours, plain, strict=True):
        left -= len(NUMBER.findall(line))
        if left <= 0:
            return f"{line.strip()[:70]!r}, plain {other.strip()[:70]!r}"
    return rest


def numbers_of_npy(data: bytes) -> tuple[str, array.array[float] | array.array[int]] | None:
    """What an array file says of itself, and its numbers; None: it is none, or of other types."""
    if data[:6] != b"\x93NUMPY":
        return None
    n = 2 if data[6] == 1 else 4
    begin = 8 + n + int.from_bytes(data[8 : 8 + n], "little")
    with contextlib.suppress(ValueError, SyntaxError, KeyError, TypeError):
        head = ast.literal_eval(data[8 + n : begin].decode("latin-1"))
        order, kind = head["descr"][0], NPY[head["descr"][1:]]
        return str(head), numbers_of(data[begin:], kind, swapped=order == ">")
    return None


def numbers_of(data: bytes, kind: str, swapped: bool = False) -> array.array:  # type: ignore[type-arg]
    numbers = array.array(kind)
    numbers.frombytes(data)
    if swapped:
        numbers.byteswap()
    return numbers


def compare_bytes(ours: bytes, plain: bytes, kind: str | None, lines: re.Pattern[str] | None
                  ) -> Difference:  # fmt: skip
    """Two files: numbers of a stated type, .npy, text with numbers, or bytes that must be equal."""
    if ours == plain:
        return Difference()
    arrays = numbers_of_npy(ours), numbers_of_npy(plain)
    if arrays[0] and arrays[1]:
        if arrays[0][0] != arrays[1][0]:
            return Difference(math.inf, 0, f"an array of {arrays[0][0]}, plain {arrays[1][0]}")
        return compare_numbers(arrays[0][1], arrays[1][1])
    if len(ours) != len(plain) and kind:
        return Difference(math.inf, 0, f"{len(ours):,} bytes, plain {len(plain):,}")
    if kind and len(ours) % array.array(kind).itemsize == 0:
        return compare_numbers(numbers_of(ours, kind), numbers_of(plain, kind))
    if b"\0" not in ours and b"\0" not in plain:
        with contextlib.suppress(UnicodeDecodeError):
            return compare_text(ours.decode(), plain.decode(), lines)
    if len(ours) != len(plain):
        return Difference(math.inf, 0, f"{len(ours):,} bytes, plain {len(plain):,}")
    n = sum(a != b for a, b in zip(ours, plain, strict=True))
    hint = ", ".join(f"FILE:{name}" for name in TYPES)
    return Difference(math.inf, 0, f"{n:,} of {len(ours):,} bytes differ; for numbers: {hint}")


# ---- files -----------------------------------------------------------------------------------


@dataclass
class Named:
    """What --verify names: a file or a pattern, and the type of its numbers."""

    pattern: str
    kind: str | None

    def paths(self) -> list[Path]:
        found = [Path(name) for name in sorted(glob.glob(self.pattern, recursive=True))]
        return [path for path in found if path.is_file() and not OURS.search(path.name)]


def parse_named(words: list[str]) -> list[Named]:
    named = []
    for word in words:
        pattern, colon, kind = word.rpartition(":")
        if colon and kind in TYPES and not Path(word).exists():
            named.append(Named(pattern, TYPES[kind]))
        else:
            named.append(Named(word, None))
        if Path(named[-1].pattern).is_dir():
            raise VerifyError(f"--verify: {word} is a folder: name files, or a pattern such as "
                              f"'{word.rstrip('/')}/*.dat'")  # fmt: skip
        for path in glob.glob(named[-1].pattern + ".plain", recursive=True):
            raise VerifyError(f"--verify: {path} is there already, and the plain run's result "
                              "would get that name: move it away")  # fmt: skip
    return named


class Aside:
    """The named files through both runs: each run begins with the files that were there before,
    and at the end FILE is what the run with wirepress made, FILE.plain what the plain run made."""

    def __init__(self, named: list[Named], private: Path) -> None:
        self.named = named
        self.kinds: dict[Path, str | None] = {}
        self.before: dict[Path, tuple[Path, int]] = {}  # a copy, and when the file was written
        self.ours: dict[Path, Path] = {}
        for i, path in enumerate(self._matching()):
            kept = private / f"before-{i}"
            shutil.copy2(path, kept)
            self.before[path] = kept, path.stat().st_mtime_ns

    def _matching(self) -> list[Path]:
        found = {path: named.kind for named in self.named for path in named.paths()}
        self.kinds |= found
        return sorted(found)

    def _written(self) -> list[Path]:
        """Those that a run wrote, not those that lay there."""
        return [
            path
            for path in self._matching()
            if path not in self.before or path.stat().st_mtime_ns != self.before[path][1]
        ]

    def _restore(self, path: Path) -> None:
        if path in self.before:
            shutil.copy2(self.before[path][0], path)

    def after_ours(self) -> None:
        """Puts aside what the first run made, beside where it lies: it survives whatever ends this
        command."""
        for path in self._written():
            kept = free_name(path.with_name(path.name + ".wirepress"))
            path.rename(kept)
            self.ours[path] = kept
            self._restore(path)

    def after_plain(self) -> dict[Path, tuple[bool, Path | None]]:
        """Of each file that a run wrote: whether the first one did, and the plain run's."""
        found: dict[Path, tuple[bool, Path | None]] = {}
        for path in self._written():
            plain = free_name(path.with_name(path.name + ".plain"))
            path.rename(plain)
            found[path] = path in self.ours, plain
            self._restore(path)
        for path in self.ours:
            found.setdefault(path, (True, None))
        self.give_back()
        return found

    def give_back(self) -> None:
        """What the first run made has its name again."""
        for path, kept in self.ours.items():
            if kept.exists():
                kept.replace(path)

    def unmatched(self, found: Iterable[Path]) -> list[str]:
        """What --verify names and neither run wrote."""
        written = set(found)
        return [n.pattern for n in self.named
                if not written & {*n.paths(), Path(n.pattern)}]  # fmt: skip


def free_name(path: Path) -> Path:
    number, name = 1, path
    while name.exists():
        number += 1
        name = path.with_name(f"{path.name}{number}")
    return name


# ---- running ---------------------------------------------------------------------------------


@contextlib.contextmanager
def kept_output(file: Path) -> Iterator[None]:
    """Standard output goes where it went, and into the file."""
    sys.stdout.flush()
    before = os.dup(1)
    # -i: an interrupt is for the job, whose last words are to arrive
    tee = subprocess.Popen(["tee", "-i", str(file)], stdin=subprocess.PIPE)
    assert tee.stdin
    os.dup2(tee.stdin.fileno(), 1)
    tee.stdin.close()
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(before, 1)
        os.close(before)
        tee.wait()


def run_plain(command: list[str], output: Path) -> int:
    """The same command, without wirepress; its output goes to the file alone. The exit status as a
    shell has it."""
    with open(output, "wb") as file:
        child = subprocess.Popen(command, stdout=file, close_fds=False)  # as the first run's
        forwarded = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
        # an interrupt from the terminal the child has already
        old = {s: signal.signal(s, lambda s, _: s != signal.SIGINT and child.send_signal(s))
               for s in forwarded if signal.getsignal(s) is not signal.SIG_IGN}  # fmt: skip
        try:
            status = child.wait()
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)
    return status if status >= 0 else 128 - status


def input_place() -> int | None:
    """Where standard input stands, if both runs can read it from there."""
    try:
        return os.lseek(0, 0, os.SEEK_CUR)
    except OSError:
        return None


def say_difference(say: Callable[[str], None], name: str, found: Difference) -> None:
    lines = "line" if found.left_out == 1 else "lines"
    numbers = "number" if found.n_numbers == 1 else "numbers"
    out = f"; {found.left_out:,} {lines} of it not compared" if found.left_out else ""
    if math.isinf(found.largest):
        say(f"verify: {name}: {found.where}{out}")
    elif found.largest == 0:
        say(f"verify: {name}: no difference{out}")
    else:
        say(
            f"verify: {name}: {found.n_numbers:,} {numbers}, largest relative difference "
            f"{found.largest:.2g}: {found.where}{out}"
        )


def compare_files(aside: Aside) -> dict[str, Difference]:
    found: dict[str, Difference] = {}
    made = aside.after_plain()
    for path, (by_us, plain) in sorted(made.items()):
        if by_us and plain:
            found[str(path)] = compare_bytes(
                path.read_bytes(), plain.read_bytes(), aside.kinds.get(path), None
            )
        else:
            run = "the run with wirepress" if by_us else "the plain run"
            found[str(path)] = Difference(math.inf, 0, f"only {run} wrote it")
    for pattern in aside.unmatched(made):
        found[pattern] = Difference(math.inf, 0, "neither run wrote it")
    return found


def run_both(
    args: argparse.Namespace,
    command: list[str],
    private: Path,
    start: Callable[[], int],
    say: Callable[[str], None],
) -> int:
    lines = re.compile(args.verify_lines) if args.verify_lines else None
    aside = Aside(parse_named(args.verify), private)
    place, outputs = input_place(), (private / "output", private / "output.plain")
    began = time.monotonic()
    with kept_output(outputs[0]):
        status = start()
    if status:
        say("verify: the job failed: there is nothing to verify")
        return status
    seconds = time.monotonic() - began
    if place is not None:
        os.lseek(0, place, os.SEEK_SET)
    aside.after_ours()
    try:
        say("verify: the same command without wirepress")
        if place is None and not os.isatty(0):
            say("verify: standard input is a pipe, of which it gets what the first run has left")
        began = time.monotonic()
        if failed := run_plain(command, outputs[1]):
            say(f"verify: the plain run ended with status {failed}: nothing to compare with")
            return 1
        say(f"verify: plain took {time.monotonic() - began:.1f} s, with wirepress {seconds:.1f} s")
        found = {"standard output": compare_bytes(
            outputs[0].read_bytes(), outputs[1].read_bytes(), None, lines
        )}  # fmt: skip
        found |= compare_files(aside)
    finally:
        aside.give_back()
    for name, difference in found.items():
        say_difference(say, name, difference)
    too_far = [name for name, f in found.items() if f.largest > args.verify_tolerance]
    if too_far:
        say(f"verify: more than {args.verify_tolerance:g} apart: {', '.join(too_far)}")
    return 1 if too_far else 0


def run(
    args: argparse.Namespace,
    command: list[str],
    start: Callable[[], int],
    say: Callable[[str], None],
) -> int:
    """Runs the job by start(), then plain, and compares. The exit status: 2 for a mistake in the
    options, start()'s if the job failed, 1 if the plain run failed or results differ by more than
    the tolerance."""
    try:
        check(args)
        with tempfile.TemporaryDirectory(prefix="wirepress-verify-") as private:
            return run_both(args, command, Path(private), start, say)
    except VerifyError as error:
        say(str(error))
        return 2


def check(args: argparse.Namespace) -> None:
    """VerifyError for what cannot be done, before anything is started."""
    if args.verify is None:
        raise VerifyError("--verify-lines and --verify-tolerance are for --verify")
    if not args.verify_tolerance >= 0:
        raise VerifyError("--verify-tolerance: not a number from 0 on")
    try:
        re.compile(args.verify_lines or "")
    except re.error as error:
        raise VerifyError(f"--verify-lines: {args.verify_lines!r}: {error}") from None
    parse_named(args.verify)
