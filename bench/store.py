#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The frame store where data does not fit in memory and the disk is slow: policies side by side.

    bench/store.py [--rates 200 500 1000 0] [--workers 1 2] [--sides 128 200] [--rounds 3]
    bench/store.py --writes [--rates ..]  page cache, direct, reserved: seconds of writing
    bench/store.py --page                 the page from the last results
    bench/store.py --quick --out FILE     a smoke test, some seconds; no page

tests/bench/store.cpp computes a wave (25-point stencil), puts every step to a store and gets all of
them back in reverse. Data are larger than the memory of the process, page cache included, which a
control group of its own limits; the disk is an ext4 on a loop device of its own that the block
layer throttles. No other device is touched. Without root there is neither: then a token bucket in
the store's calls is the slow disk, memory is not limited, and results say so. Policy `memory` runs
without a limit: it is what the others are measured against.

Writes bench/results/store.json and docs/benchmarks/store.md with its picture. Cells that are there
are not measured again (--again).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import results
from frame_cost import BUILD, configure

ROOT = results.ROOT
WORK = ROOT / "build" / "bench" / "store"
PAGE = ROOT / "docs" / "benchmarks" / "store.md"
PICTURE = PAGE.with_suffix(".svg")
CGROUP = Path("/sys/fs/cgroup")
MIB, MB = 1 << 20, 10**6
UNLIMITED = 0

POLICIES = {  # name: policy, recipe, what it promises
    "memory": ("memory", "", "all frames in memory"),
    "disk": ("disk", "", "raw"),
    "bx:m=6": ("compressed", "bx:m=6", "relative error 2^-7"),
    "fre:m=6": ("compressed", "fre:m=6", "relative error 2^-7"),
    "bf16": ("compressed", "bf16", "cut to 16 bits"),
    "int8": ("compressed", "int8", "blocks of 8 bits"),
    "bx:m=13": ("compressed", "bx:m=13", "as large as bf16"),
    "bx:m=5": ("compressed", "bx:m=5", "about as large as int8"),
    "fre:m=5": ("compressed", "fre:m=5", "about as large as int8"),
    "bx:m=23": ("compressed", "bx:m=23", "lossless"),
    "shuffle+lz4": ("compressed", "shuffle+lz4:1", "lossless"),
}
RIVALS = ("bx:m=13", "bx:m=5", "fre:m=5")  # for their errors: in one cell only
SIZES = {32: (16, 0), 128: (64, 256 * MIB), 200: (64, 832 * MIB)}  # side: frames, memory limit

HOW_TO_READ = """
A wave (25-point stencil) is computed, every step goes to the store; then all come back in reverse
while another wave is computed. A cell: seconds of both (the model's), how many times as long as
`memory` (m), and how many times as fast as `disk` (d). The model, for each gigabyte and way:
max(1/K + 1/(P C), 1/(r B)), with kernel K, codec C of one thread, P = {cores} cores, ratio r
and disk B; all but B measured in the same process. Without a limit B is what `disk` saw.
"""

Row = dict[str, Any]
Key = tuple[int, int, int, str]


def key_of(row: Row) -> Key:
    return row["side"], row["workers"], row["rate"], row["policy"]


# ---- a slow disk and little memory ----------------------------------------------------------


def run(*command: object) -> str:
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class Group:
    """Control groups of its own, version 1 or 2; the limits of one device."""

    def __init__(self, undo: contextlib.ExitStack) -> None:
        self.two = (CGROUP / "cgroup.controllers").exists()
        self.folder = CGROUP / ("" if self.two else "memory") / f"wirepress-store-{os.getpid()}"
        self.folder.mkdir()
        undo.callback(self.folder.rmdir)
        if self.two:
            (CGROUP / "cgroup.subtree_control").write_text("+memory +io")

    def limit_memory(self, size: int) -> None:
        name = "memory.max" if self.two else "memory.limit_in_bytes"
        (self.folder / name).write_text(str(size or "max" if self.two else size or -1))

    def limit_device(self, number: str, rate: int) -> None:
        """Bytes a second of this device; 0: as fast as it goes."""
        if self.two:
            most = rate or "max"
            (self.folder / "io.max").write_text(f"{number} rbps={most} wbps={most}")
            return
        # Of the root group: what the page cache writes back is charged there.
        for way in ("read", "write"):
            file = CGROUP / "blkio" / f"blkio.throttle.{way}_bps_device"
            file.write_text(f"{number} {rate}")

    def join(self) -> None:
        """Called in the child."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))


class SlowDisk:
    """ext4 on a loop device, throttled; `how` says what was slowed down."""

    how = "loop device, throttled by the block layer; memory limited by a control group"

    def __init__(self, folder: Path, size: int, undo: contextlib.ExitStack) -> None:
        image = folder / "image"
        with image.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)  # else the first pass is slow
        undo.callback(image.unlink)
        run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0", image)
        direct = ("--direct-io=on",)  # else its data are twice in the page cache
        self.device = run("losetup", "--find", "--show", *direct, image).strip()
        undo.callback(run, "losetup", "--detach", self.device)
        self.folder = folder / "mount"
        self.folder.mkdir(exist_ok=True)
        run("mount", self.device, self.folder)
        undo.callback(run, "umount", self.folder)
        self.group = Group(undo)
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
    """What there is without root."""

    how = "token bucket in the store's calls (no root): memory is not limited, the disk not slow"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

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
        if args.bucket or os.geteuid() != 0:
            yield Bucket(Path(name))
            return
        yield SlowDisk(Path(name), size, undo)


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


def measure(args: argparse.Namespace, rows: dict[Key, Row], save: Callable[[str], None]) -> None:
    from tqdm import tqdm

    program = args.program
    keys = [
        (side, workers, rate, name)
        for side in args.sides
        for workers in args.workers
        for rate in args.rates
        for name in args.policies
        if (side, workers, rate, name) not in rows
        and (name not in RIVALS or (rate, workers) == (args.rates[0], args.workers[0]))
        and (name != "memory" or rate == args.rates[0])  # it knows no disk
    ]
    sizes = {side: int(SIZES[side][0] * 4 * side**3 * 1.1) + 256 * MIB for side in args.sides}
    bar = tqdm(total=len(keys) * args.rounds, unit="run", disable=None)
    for side in args.sides:
        mine = [key for key in keys if key[0] == side]
        if not mine:
            continue
        with slow_disk(args, sizes[side]) as disk:
            once = (side, *mine[0][1:3], "memory")
            cell(program, disk, once, args)  # makes the wave, outside of any limit
            runs: dict[Key, list[Row]] = {key: [] for key in mine}
            for turn in range(args.rounds):
                for key in mine:
                    bar.set_description(f"{side}^3, {key[1]} workers, {key[2]} MB/s, {key[3]}")
                    runs[key].append(cell(program, disk, key, args))
                    bar.update()
                    if turn == args.rounds - 1:
                        what = {"rate": key[2], "policy": key[3], "direct_asked": args.direct}
                        rows[key] = median_row(runs[key]) | what
                        save(disk.how)
    bar.close()


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
        if row["policy"] in ("memory", "disk") or (row["side"], row["policy"]) in seen:
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


def page(measured: Row) -> str:
    rows = {key_of(row): row for row in measured["rows"]}
    cores = measured["machine"].get("cores") or os.cpu_count() or 1
    machine = measured["machine"]
    lines = [
        "# The frame store on slow disks and in little memory",
        "",
        "<!-- Written by bench/store.py from bench/results/store.json; do not edit. -->",
        "",
        *fill(
            f"Measured {measured['date'][:10]} with `{measured['command']}` on {machine['cpu']}, "
            f"{cores} cores. How it was made slow: {measured['how']}. {measured['note']}"
        ),
        "",
        *fill(HOW_TO_READ.format(cores=cores)),
        "",
        "![seconds by policy](store.svg)",
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
    lines += [
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
    parser.add_argument("--direct", action="store_true", help="writes go past the page cache")
    parser.add_argument("--reserve", type=int, default=0, help="bytes to allocate ahead")
    parser.add_argument("--bucket", action="store_true", help="as without root")
    parser.add_argument("--folder", type=Path, default=WORK, help="where the loop device's file is")
    parser.add_argument("--note", default="", help="said on the page")
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
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
    if args.out == results.FOLDER / "store.json":
        picture(rows, PICTURE, cores)
        PAGE.write_text(page(measured))
        print(f"\nwritten: {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
