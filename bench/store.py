#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The frame store where data does not fit in memory and the disk is slow: policies side by side.

    bench/store.py --again --rounds 3     all of it; about 12 minutes on a quiet machine
    bench/store.py [--rates 200 500 1000 0] [--workers 1 2] [--sides 128 200] [--policies ...]
    bench/store.py --writes [--rates ..]  page cache, direct, reserved: seconds of writing
    bench/store.py --page                 the page from the last results
    bench/store.py --quick --out FILE     a smoke test, some seconds; no page

tests/bench/store.cpp computes a wave (25-point stencil), puts every step to a store and gets all of
them back in reverse. Data are larger than the memory of the process, page cache included, which a
control group of its own limits; the disk is an ext4 on a loop device of its own that the block
layer throttles. No other device is touched. Without root there is neither: then a token bucket in
the store's calls is the slow disk, memory is not limited, and results say so. Policy `memory` runs
without a limit: it is what the others are measured against. The others write and read past the
page cache (--no-direct): that takes fewer of the cores' time from the workers.

Writes bench/results/store.json and docs/results/benchmarks/store.md with its picture
(--out: a file of another name there, and its page), and says of every cell whether it meets what is
asked of it.
Cells that are there are not measured again (--again). What was stopped goes on where it was, with
the same program and options (--restart: it does not).
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import results
from frame_cost import BUILD, configure

ROOT = results.ROOT
WORK = ROOT / "build" / "bench" / "store"
PAGES = ROOT / "docs" / "results" / "benchmarks"  # a page for each file of results
CGROUP = Path("/sys/fs/cgroup")
MIB, MB = 1 << 20, 10**6
UNLIMITED = 0

POLICIES = {  # name: policy, recipe, what it promises
    "memory": ("memory", "", "all frames in memory"),
    "disk": ("disk", "", "raw"),
    "bx:m=6": ("compressed", "bx:m=6", "relative error 2^-7"),
    "in-worker bx:m=6": ("in-worker", "bx:m=6", "relative error 2^-7"),
    "fre:m=6": ("compressed", "fre:m=6", "relative error 2^-7"),
    "bf16": ("compressed", "bf16", "cut to 16 bits"),
    "int8": ("compressed", "int8", "blocks of 8 bits"),
    "bx:m=13": ("compressed", "bx:m=13", "as large as bf16"),
    "bx:m=5": ("compressed", "bx:m=5", "about as large as int8"),
    "fre:m=5": ("compressed", "fre:m=5", "about as large as int8"),
    "bx:m=23": ("compressed", "bx:m=23", "lossless"),
    "zfp:precision=16": ("compressed", "zfp:precision=16", "16 planes of bits"),
    "shuffle+lz4": ("compressed", "shuffle+lz4:1", "lossless"),
}
GRID = ("memory", "disk", "bx:m=6", "in-worker bx:m=6")  # in every cell; the others in one
ONCE = 500  # MB/s, where it is among the rates
SIZES = {32: (16, 0), 128: (64, 256 * MIB), 200: (40, 640 * MIB)}  # side: frames, memory limit
ALLOWED = 1.1  # times the time of policy memory, where the disk is fast enough
GAINED = 0.9  # of the ratio, against policy disk, where the disk is the bound

HOW_TO_READ = """
A wave (25-point stencil) is computed, every step goes to the store; then all come back in reverse
while another wave is computed, and are multiplied with it. By every policy the workers put and get
tiles. A cell: seconds of both passes (the model's), how many times as long as `memory` (m), and how
many times as fast as `disk` (d). The model, for each gigabyte and way: max(1/K + 1/(P C), 1/(r B)),
with kernel K, codec C of one thread, P = {cores} cores, ratio r and disk B; all but B measured in
the same process. Without a limit B is what `disk` saw.
"""

Row = dict[str, Any]
Key = tuple[int, int, int, str]


def key_of(row: Row) -> Key:
    return row["side"], row["workers"], row["rate"], row["policy"]


# ---- a slow disk and little memory ----------------------------------------------------------


def run(*command: object) -> str:
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class Unavailable(Exception):
    """This machine does not let us slow a disk down; says why."""


def write_to(file: Path, text: str) -> None:
    """One write, as control groups want it."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Unavailable(f"{file}: {error.strerror}") from None


class Group:
    """A control group of its own, version 1 or 2; the limits of memory and of one device."""

    def __init__(self, undo: contextlib.ExitStack, root: Path = CGROUP) -> None:
        self.root = root
        self.two = (root / "cgroup.controllers").exists()
        parent = root if self.two else root / "memory"
        if self.two:
            self._enable(("memory", "io"))
        elif not (parent.is_dir() and (root / "blkio").is_dir()):
            raise Unavailable(f"{root} has no control groups of memory and blkio")
        self.folder = parent / f"wirepress-store-{os.getpid()}"
        try:
            self.folder.mkdir()
        except OSError as error:
            raise Unavailable(f"{self.folder}: {error.strerror}") from None
        undo.callback(self._remove)

    def _enable(self, wanted: tuple[str, ...]) -> None:
        """Version 2: a child has the controllers that its parent hands down. A parent that holds
        processes, as that of a container may, hands none down (EBUSY)."""
        there = (self.root / "cgroup.controllers").read_text().split()
        if missing := [name for name in wanted if name not in there]:
            raise Unavailable(f"{self.root} has no controller {' and '.join(missing)}")
        control = self.root / "cgroup.subtree_control"
        given = control.read_text().split() if control.is_file() else []
        if add := [f"+{name}" for name in wanted if name not in given]:
            write_to(control, " ".join(add))

    def _remove(self) -> None:
        for _ in range(50):  # a process that has ended leaves it a little later
            try:
                self.folder.rmdir()
            except OSError:
                time.sleep(0.1)
            else:
                return
        print(f"left behind: {self.folder}", file=sys.stderr)

    def limit_memory(self, size: int) -> None:
        """0: no limit. What is in the page cache counts; nothing is swapped out instead."""
        if self.two:
            write_to(self.folder / "memory.max", str(size or "max"))
            if (self.folder / "memory.swap.max").exists():
                write_to(self.folder / "memory.swap.max", "0" if size else "max")
        else:
            write_to(self.folder / "memory.limit_in_bytes", str(size or -1))

    def limit_device(self, number: str, rate: int) -> None:
        """Bytes a second of this device; 0: as fast as it goes."""
        if self.two:  # what the page cache writes back is charged to the group, too
            most = rate or "max"
            write_to(self.folder / "io.max", f"{number} rbps={most} wbps={most}")
            return
        # Of the root group: what the page cache writes back is charged there.
        for way in ("read", "write"):
            file = self.root / "blkio" / f"blkio.throttle.{way}_bps_device"
            write_to(file, f"{number} {rate}")

    def join(self) -> None:
        """Called in the child."""
        write_to(self.folder / "cgroup.procs", str(os.getpid()))


class SlowDisk:
    """ext4 on a loop device, throttled; `how` says what was slowed down."""

    how = "loop device, throttled by the block layer; memory limited by a control group"

    def __init__(self, folder: Path, size: int, undo: contextlib.ExitStack) -> None:
        image = folder / "image"
        self.group = Group(undo)
        with image.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)  # else the first pass is slow
        undo.callback(image.unlink)
        try:
            run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0", image)
            direct = ("--direct-io=on",)  # else its data are twice in the page cache
            self.device = run("losetup", "--find", "--show", *direct, image).strip()
            undo.callback(run, "losetup", "--detach", self.device)
            self.folder = folder / "mount"
            self.folder.mkdir(exist_ok=True)
            run("mount", self.device, self.folder)
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            said = getattr(error, "stderr", "") or str(error)
            raise Unavailable(f"no loop device: {said.strip()}") from None
        undo.callback(run, "umount", self.folder)
        stat = os.stat(self.device)
        self.number = f"{os.major(stat.st_rdev)}:{os.minor(stat.st_rdev)}"
        undo.callback(self.group.limit_device, self.number, UNLIMITED)

    @contextlib.contextmanager
    def limits(self, rate: int, memory: int) -> Iterator[tuple[list[str], Callable[[], None]]]:
        self.group.limit_memory(memory)
        self.group.limit_device(self.number, rate)
        try:
            yield [], self.group.join
        finally:
            self.group.limit_device(self.number, UNLIMITED)


class Bucket:
    """What there is without root, and where the machine does not let us slow a disk down."""

    def __init__(self, folder: Path, why: str) -> None:
        self.folder = folder
        self.how = (
            f"token bucket in the store's calls ({why}): memory is not limited, the disk not slow"
        )

    @contextlib.contextmanager
    def limits(self, rate: int, memory: int) -> Iterator[tuple[list[str], Callable[[], None]]]:
        del memory
        yield (["--bucket", str(rate)] if rate else []), lambda: None


@contextlib.contextmanager
def slow_disk(args: argparse.Namespace, size: int) -> Iterator[SlowDisk | Bucket]:
    args.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=args.folder) as name,
        contextlib.ExitStack() as undo,
    ):
        why = "as asked" if args.bucket else "no root" if os.geteuid() != 0 else ""
        disk: SlowDisk | Bucket | None = None
        if not why:
            try:
                disk = SlowDisk(Path(name), size, undo)
            except Unavailable as error:
                why = str(error)
                print(f"no slow disk: {why}", file=sys.stderr)
                undo.close()
        yield disk or Bucket(Path(name), why)


# ---- measuring ------------------------------------------------------------------------------


def build() -> Path:
    configure()
    subprocess.run(["cmake", "--build", BUILD, "--target", "store_bench"], check=True)
    return BUILD / "bench" / "store_bench"


def cell(program: Path, disk: SlowDisk | Bucket, key: Key, args: argparse.Namespace) -> Row:
    side, workers, rate, name = key
    policy, recipe, _ = POLICIES[name]
    frames, memory = SIZES[side]
    file = disk.folder / "frames"
    command: list[object] = [program, "--side", side, "--workers", workers, "--frames", frames]
    command += ["--policy", policy, "--path", file, "--start", args.folder / f"wave{side}"]
    command += ["--direct", int(args.direct), "--reserve", args.reserve]
    if recipe:
        command += ["--recipe", recipe]
    limited = policy != "memory"
    with disk.limits(rate * MB, memory if limited else 0) as (more, join):
        words = [str(word) for word in [*command, *more]]
        done = subprocess.run(words, capture_output=True, text=True, preexec_fn=join)
    file.unlink(missing_ok=True)
    if done.returncode:
        why = done.stderr.strip() or f"status {done.returncode}"
        raise RuntimeError(f"{' '.join(words)}: {why}")
    return json.loads(done.stdout)


def median_row(rows: list[Row]) -> Row:
    """The run whose total is the median; all totals stay."""
    rows = sorted(rows, key=lambda row: row["forward"] + row["backward"])
    totals = [round(row["forward"] + row["backward"], 4) for row in rows]
    return rows[(len(rows) - 1) // 2] | {"totals": totals}


def grid(args: argparse.Namespace) -> list[Key]:
    once = (min(args.sides), args.workers[0], ONCE if ONCE in args.rates else args.rates[0])
    return [
        (side, workers, rate, name)
        for side in args.sides
        for workers in args.workers
        for rate in args.rates
        for name in args.policies
        if (name in GRID or (side, workers, rate) == once)
        and (name != "memory" or rate == args.rates[0])  # it knows no disk
    ]


class Runs:
    """What was measured so far, in a file of its own, so that a stopped measurement goes on."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.file = args.folder / "unfinished.json"
        program = hashlib.sha256(args.program.read_bytes()).hexdigest()
        self.same = {"program": program, "direct": args.direct, "reserve": args.reserve}
        self.same |= {"bucket": args.bucket, "out": str(args.out)}
        self.rows: list[Row] = []
        if args.restart or not self.file.exists():
            return
        old = json.loads(self.file.read_text())
        if all(old[name] == value for name, value in self.same.items()):
            self.rows = old["rows"]
            print(f"goes on after {len(self.rows)} runs ({self.file})", file=sys.stderr)

    def of(self, key: Key) -> list[Row]:
        return [row for row in self.rows if key_of(row) == key]

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(self.same | {"rows": self.rows}))


def expected_seconds(key: Key) -> float:
    """Of one run, about: for the time that is left."""
    side, workers, rate, name = key
    gigabytes = SIZES[side][0] * 4 * side**3 / 1e9
    ratio = 1 if name == "disk" else 2 if name == "bf16" else 3
    slow = 1000 / (rate * ratio) if rate and name != "memory" else 0
    return 0.8 + 2 * gigabytes * max(1 / (0.8 * workers) + 0.3, slow)


class Progress:
    """A bar by expected seconds on a terminal; elsewhere a line for each run."""

    def __init__(self, keys: list[Key]) -> None:
        from tqdm import tqdm

        self.left = sum(map(expected_seconds, keys))
        self.done, self.n_done, self.n, self.began = 0.0, 0, len(keys), time.monotonic()
        form = "{desc} |{bar}| {percentage:3.0f} %, {elapsed} of it, {remaining} left"
        self.bar = tqdm(total=round(self.left, 1), disable=None, bar_format=form)
        print(f"{self.n} runs, about {self.left / 60:.0f} minutes", file=sys.stderr)

    def starts(self, text: str) -> None:
        self.bar.set_description(f"{self.n_done + 1} of {self.n}: {text}")

    def ends(self, key: Key, text: str) -> None:
        mine = expected_seconds(key)
        self.left -= mine
        self.done += mine
        self.n_done += 1
        self.bar.update(min(mine, self.bar.total - self.bar.n))
        if self.bar.disable:
            rate = (time.monotonic() - self.began) / self.done
            minutes = max(0.0, rate * self.left / 60)
            print(f"{self.n_done} of {self.n}, {minutes:.1f} min left: {text}", file=sys.stderr)


def measure(args: argparse.Namespace, rows: dict[Key, Row], save: Callable[[str], None]) -> None:
    runs = Runs(args)
    keys = [key for key in grid(args) if key not in rows]
    todo = [
        (turn, key)
        for side in args.sides
        for turn in range(args.rounds)
        for key in keys
        if key[0] == side and len(runs.of(key)) <= turn
    ]
    progress = Progress([key for _, key in todo])
    sizes = {side: int(SIZES[side][0] * 4 * side**3 * 1.1) + 256 * MIB for side in args.sides}
    for side in args.sides:
        mine = [key for _, key in todo if key[0] == side]
        if not mine:
            continue
        with slow_disk(args, sizes[side]) as disk:
            for name in "memory", "disk":  # makes the wave; the first file is a slow one
                cell(args.program, disk, (side, 1, UNLIMITED, name), args)
            for key in mine:
                text = name_of(key)
                progress.starts(text)
                row = cell(args.program, disk, key, args)
                row |= {"rate": key[2], "policy": key[3], "direct_asked": args.direct}
                runs.add(row | {"how": disk.how})
                progress.ends(key, f"{text}: {seconds_of(row):.2f} s")
        progress.bar.refresh()
    progress.bar.close()
    how = ""
    for key in keys:
        row = median_row(runs.of(key))
        how = row.pop("how")
        rows[key] = row
    if keys:
        save(how)
    runs.file.unlink(missing_ok=True)


def name_of(key: Key) -> str:
    side, workers, rate, name = key
    return f"{side}^3, {workers} worker{'s' * (workers > 1)}, {rate_name(rate)}, {name}"


# ---- ways of writing ------------------------------------------------------------------------

WAYS = {  # name: direct, bytes reserved ahead
    "page cache": (False, 0),
    "page cache, 64 MiB reserved": (False, 64 * MIB),
    "direct": (True, 0),
    "direct, 64 MiB reserved": (True, 64 * MIB),
}


def write_paths(args: argparse.Namespace) -> None:
    """Policy disk in every way of writing, in turns: the forward pass, sync included."""
    from tqdm import tqdm

    side, frames = 128, SIZES[128][0]
    rows: list[Row] = []
    with slow_disk(args, int(frames * 4 * side**3 * 1.1) + 256 * MIB) as disk:
        cell(args.program, disk, (side, 1, UNLIMITED, "memory"), args)
        turns = [(t, rate, way) for t in range(args.rounds) for rate in args.rates for way in WAYS]
        for _, rate, way in tqdm(turns, unit="run", disable=None):
            args.direct, args.reserve = WAYS[way]
            row = cell(args.program, disk, (side, 1, rate, "disk"), args)
            rows.append({"rate": rate, "way": way} | row)
        about = results.compiler(args.program.resolve().parents[1])
        measured = {"how": disk.how, "note": args.note, "rows": rows}
    path = results.write("store_writes", measured, compiler=about)
    print("| way | " + " | ".join(rate_name(rate) for rate in args.rates) + " |")
    print("|---|" + "---:|" * len(args.rates))
    for way in WAYS:
        cells = []
        for rate in args.rates:
            mine = [r["forward"] for r in rows if (r["rate"], r["way"]) == (rate, way)]
            cells.append(f"{min(mine):.2f} {statistics.median(mine):.2f} {max(mine):.2f}")
        print(f"| {way} | " + " | ".join(cells) + " |")
    print(f"written: {path.relative_to(ROOT)}")


# ---- the model and the page -----------------------------------------------------------------


def disk_speeds(rows: dict[Key, Row], key: Key) -> tuple[float, float]:
    """GB/s of writing and reading: the limit, or what policy disk saw without one."""
    side, workers, rate, _ = key
    if rate:
        return rate / 1000, rate / 1000
    raw = rows.get((side, workers, rate, "disk"))
    if not raw:
        return 0.0, 0.0
    seconds = (max(raw["forward"], raw["write"]), max(raw["backward"], raw["read"]))
    return raw["raw_bytes"] / seconds[0] / 1e9, raw["raw_bytes"] / seconds[1] / 1e9


def model(rows: dict[Key, Row], row: Row, cores: int) -> float:
    """Seconds of forward and backward: max(1/K + 1/(P C), 1/(r B)) for each gigabyte."""
    kernel, gigabytes = row["kernel_gbps"], row["raw_bytes"] / 1e9
    ratio = row["raw_bytes"] / max(row["stored_bytes"], 1)
    total = 0.0
    for codec, disk in zip(
        (row["encode_gbps"], row["decode_gbps"]), disk_speeds(rows, key_of(row)), strict=True
    ):
        seconds = 1 / kernel + 1 / (cores * codec)
        if row["policy"] == "memory":
            seconds = 1 / kernel + 1 / row["copy_gbps"]
        elif disk:
            seconds = max(seconds, 1 / (ratio * disk))
        total += gigabytes * seconds
    return total


def verdict(rows: dict[Key, Row], row: Row) -> tuple[bool, str] | None:
    """Whether a run that compresses meets what is asked of it, and what that is. None: it lacks
    what it is to be compared with."""
    side, workers, rate, name = key = key_of(row)
    memory = next((r for k, r in rows.items() if k[:2] == key[:2] and k[3] == "memory"), None)
    raw, speed = rows.get((side, workers, rate, "disk")), min(disk_speeds(rows, key))
    if POLICIES[name][0] not in ("compressed", "in-worker") or not (memory and raw and speed):
        return None
    ratio = row["raw_bytes"] / row["stored_bytes"]
    kernel = row["kernel_gbps"]
    enough = f"{ratio:.2f} x {speed:.2f} GB/s {'>=' if ratio * speed >= kernel else '<'} "
    enough += f"{kernel:.2f} of the kernel"
    if ratio * speed >= kernel:
        times = seconds_of(row) / seconds_of(memory)
        return times <= ALLOWED, f"{times:.2f} x the time of memory, {ALLOWED} allowed ({enough})"
    gain = seconds_of(raw) / seconds_of(row)
    asked = f"{GAINED * ratio:.2f} asked"
    return gain >= GAINED * ratio, f"{gain:.2f} x as fast as disk, {asked} ({enough})"


def verdicts(rows: dict[Key, Row]) -> list[tuple[str, bool, str]]:
    """Of each cell of the grid: its name, whether it is met, and what was asked."""
    found = []
    for key in sorted(rows, key=lambda k: (k[0], k[1], k[2] or 10**9, k[3])):
        said = verdict(rows, rows[key]) if key[3] in GRID else None
        if said:
            found.append((name_of(key), *said))
    return found


def seconds_of(row: Row) -> float:
    return row["forward"] + row["backward"]


def rate_name(rate: int) -> str:
    return f"{rate} MB/s" if rate else "unlimited"


def table(rows: dict[Key, Row], side: int, workers: int, cores: int) -> Iterator[str]:
    rates = sorted({key[2] for key in rows if key[:2] == (side, workers)}, key=lambda r: r or 10**9)
    memory = next((rows[k] for k in rows if k[:2] == (side, workers) and k[3] == "memory"), None)
    yield "| policy | ratio | " + " | ".join(rate_name(rate) for rate in rates) + " |"
    yield "|---|---:|" + "---:|" * len(rates)
    if memory:
        text = f"{seconds_of(memory):.2f} ({model(rows, memory, cores):.2f})"
        yield f"| memory, all of it, no limit | | {text} |" + " |" * (len(rates) - 1)
    for name in POLICIES:
        mine = [rows.get((side, workers, rate, name)) for rate in rates]
        if name == "memory" or not any(mine):
            continue
        first = next(row for row in mine if row)
        cells = []
        for rate, row in zip(rates, mine, strict=True):
            if not row:
                cells.append("")
                continue
            raw = rows.get((side, workers, rate, "disk"))
            text = f"{seconds_of(row):.2f} ({model(rows, row, cores):.2f})"
            if memory:
                text += f" {seconds_of(row) / seconds_of(memory):.2f}m"
            if raw and name != "disk":
                text += f" {seconds_of(raw) / seconds_of(row):.2f}d"
            cells.append(text)
        ratio = first["raw_bytes"] / first["stored_bytes"]
        yield f"| {name} | {ratio:.2f} | " + " | ".join(cells) + " |"


def errors_table(rows: dict[Key, Row]) -> Iterator[str]:
    yield "| recipe | grid | ratio | SNR, dB | largest relative error | encode | decode | memcpy |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    seen = set()
    for row in rows.values():
        if row["policy"] in GRID[:2] or (row["side"], row["policy"]) in seen:
            continue
        seen.add((row["side"], row["policy"]))
        snr = f"{row['snr_db']:.1f}" if row["snr_db"] else "exact"
        speeds = " | ".join(f"{row[f'{what}_gbps']:.1f}" for what in ("encode", "decode", "copy"))
        ratio = row["raw_bytes"] / row["stored_bytes"]
        worst = f"{row['worst_relative']:.1e}" if row["snr_db"] else "0"
        yield f"| {row['policy']} | {row['side']}^3 | {ratio:.2f} | {snr} | {worst} | {speeds} |"


def picture(rows: dict[Key, Row], path: Path, cores: int) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    panels = sorted({key[:2] for key in rows})
    names = [name for name in POLICIES if any(key[3] == name for key in rows)]
    figure, axes = plt.subplots(
        len(panels), 1, figsize=(9, 2.6 * len(panels)), squeeze=False, layout="constrained"
    )
    for axis, (side, workers) in zip(axes[:, 0], panels, strict=True):
        rates = sorted({k[2] for k in rows if k[:2] == (side, workers)}, key=lambda r: r or 10**9)
        width = 0.8 / len(names)
        memory = [rows[k] for k in rows if k[:2] == (side, workers) and k[3] == "memory"]
        for i, name in enumerate(names):
            at = [r + (i - len(names) / 2 + 0.5) * width for r in range(len(rates))]
            mine = [rows.get((side, workers, rate, name)) for rate in rates]
            if name == "memory":
                mine = memory * len(rates)
            pairs = [(x, row) for x, row in zip(at, mine, strict=True) if row]
            axis.bar([x for x, _ in pairs], [seconds_of(r) for _, r in pairs], width, label=name)
            marks = [model(rows, row, cores) for _, row in pairs]
            axis.plot([x for x, _ in pairs], marks, "k_", markersize=60 * width)
        axis.set_xticks(range(len(rates)), [rate_name(rate) for rate in rates])
        axis.set_title(f"{side}^3, {workers} worker{'s' * (workers > 1)} and a servant", size=10)
        axis.set_ylabel("s")
        axis.set_yscale("log")
        axis.grid(axis="y", alpha=0.3)
    axes[0, 0].legend(ncols=4, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def fill(text: str) -> list[str]:
    return textwrap.wrap(text.strip(), 100, break_on_hyphens=False, break_long_words=False)


def page(measured: Row, stem: str) -> str:
    rows = {key_of(row): row for row in measured["rows"]}
    cores = measured["machine"].get("cores") or os.cpu_count() or 1
    machine = measured["machine"]
    lines = [
        "# The frame store on slow disks and in little memory",
        "",
        f"<!-- Written by bench/store.py from bench/results/{stem}.json; do not edit. -->",
        "",
        *fill(
            f"Measured {measured['date'][:10]} with `{measured['command']}` on {machine['cpu']}, "
            f"{cores} cores. How it was made slow: {measured['how']}. {measured['note']}"
        ),
        "",
        *fill(HOW_TO_READ.format(cores=cores)),
        "",
        f"![seconds by policy]({stem}.svg)",
        "",
    ]
    for side, workers in sorted({key[:2] for key in rows}):
        mine = [row for key, row in rows.items() if key[:2] == (side, workers)]
        kernel = statistics.median(row["kernel_gbps"] for row in mine)
        lines += [
            f"## {side}^3, {workers} worker{'s' * (workers > 1)} and a servant",
            "",
            f"{mine[0]['frames']} frames, {mine[0]['raw_bytes'] / 1e6:.0f} MB; memory limit "
            f"{SIZES[side][1] // MIB} MiB; the kernel alone makes {kernel:.2f} GB/s of frames.",
            "",
            *table(rows, side, workers, cores),
            "",
        ]
    said = verdicts(rows)
    lines += [
        "## What is asked of compressing",
        "",
        *fill(
            f"Where ratio times disk is at least the kernel's rate: at most {ALLOWED} times the "
            f"time of `memory`. Elsewhere the disk is the bound: at least {GAINED} times the ratio "
            f"faster than `disk`. {sum(met for _, met, _ in said)} of {len(said)} cells meet it."
        ),
        "",
        "| cell | met | |",
        "|---|---|---|",
        *(f"| {name} | {'yes' if met else '**no**'} | {what} |" for name, met, what in said),
        "",
        "## What comes back",
        "",
        "Of the last frame against the one that was put; SNR is 10 log10. Speeds are GB/s of one",
        "thread alone.",
        "",
        *errors_table(rows),
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rates", type=int, nargs="+", default=[200, 500, 1000, UNLIMITED])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--sides", type=int, nargs="+", default=[128, 200], choices=list(SIZES))
    parser.add_argument("--policies", nargs="+", default=list(POLICIES), choices=list(POLICIES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--direct",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="past the page cache, where the file system can",
    )
    parser.add_argument("--reserve", type=int, default=64 * MIB, help="bytes to allocate ahead")
    parser.add_argument("--bucket", action="store_true", help="as without root")
    parser.add_argument("--folder", type=Path, default=WORK, help="where the loop device's file is")
    parser.add_argument("--note", default="", help="said on the page")
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    parser.add_argument("--restart", action="store_true", help="forget a run that was stopped")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    parser.add_argument("--writes", action="store_true", help="the ways of writing, in turns")
    parser.add_argument("--program", type=Path, help="store_bench; without it, it is built")
    parser.add_argument("--out", type=Path, default=results.FOLDER / "store.json")
    args = parser.parse_args()
    if args.quick:
        args.sides, args.workers, args.rounds = [32], [1], 1
        args.rates = args.rates[:1]
    rows: dict[Key, Row] = {}
    if args.out.exists() and not args.again:
        old = json.loads(args.out.read_text())
        rows = {key_of(row): row for row in old["rows"]}

    def save(said: str) -> None:
        measured = {"how": said, "note": args.note, "rows": list(rows.values())}
        about = results.compiler(args.program.resolve().parents[1])
        results.write("store", measured, args.out, compiler=about)

    if not args.page:
        args.program = args.program or build()
    if args.writes:
        write_paths(args)
        return 0
    if not args.page:
        measure(args, rows, save)
    measured = json.loads(args.out.read_text())
    print(f"how: {measured['how']}")
    cores = measured["machine"].get("cores") or os.cpu_count() or 1
    for side, workers in sorted({key[:2] for key in rows}):
        print(f"\n{side}^3, {workers} workers")
        print("\n".join(table(rows, side, workers, cores)))
    said = verdicts(rows)
    print()
    for name, met, what in said:
        print(f"{'met    ' if met else 'NOT MET'} {name}: {what}")
    if said:
        print(f"{sum(met for _, met, _ in said)} of {len(said)} met")
    if args.out.resolve().parent == results.FOLDER:
        written = PAGES / f"{args.out.stem}.md"
        picture(rows, written.with_suffix(".svg"), cores)
        written.write_text(page(measured, args.out.stem))
        print(f"\nwritten: {written.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
