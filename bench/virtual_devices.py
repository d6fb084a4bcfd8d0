#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Blocks divided between cores and a virtual device, and set-up paid once or for every message.

    bench/virtual_devices.py FOLDER [--rounds 15]   writes bench/results/virtual_devices.json
    bench/virtual_devices.py --page        writes docs/results/virtual-devices.md from it

FOLDER holds xml of the Silesia corpus; packed with zstd (.zst) it is unpacked first. Each engine
has a process, which may have one device. The processes take turns, and the fastest round counts: a
virtual device sleeps, so its time does not depend on other programs, but that of the cores does.
Where the user may, the processes come before all others: by nice -20, and for the milliseconds of
expanding in real time (SCHED_RR; coding has more threads than cores, which that would keep from
taking turns). Times are of wall clock, into memory that is there. Devices are warm: they remember
the codes of this message.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import results
import silesia

import wirepress

RECIPE = "zlib:9"
BLOCK = "32KiB"
SIZE = 4 << 20
CORES = "cpu:libdeflate"
# Rates of the device by that of all cores, of compressing and of expanding.
FRACTIONS = (0.25, 0.5, 1, 2, 4)
EXPANDS = 5  # in a round, for one takes a millisecond
PIECE = 80 << 10  # of an MPI message of 5 MB, which one thread codes
BUSY = 10  # MB/s: a device that has no time for this message
PEDAL = ("virtual-bluefield2", "virtual-bluefield3", "isal")
PEDAL_BLOCK = "8MiB"  # the whole message is one job
OF_SUM, OF_BETTER = 0.85, 0.95  # aims
WAYS = ("compress", "expand")
PAGE = results.ROOT / "docs" / "results" / "virtual-devices.md"


class Worker:
    """One engine in a process of its own, which does a round when it is asked."""

    def __init__(
        self, file: Path, ways: tuple[str, ...], engine: str, block: str, size: int, threads: int
    ) -> None:
        words = ["--worker", str(file), ",".join(ways), engine, block, str(size), str(threads)]
        self.process = subprocess.Popen(
            [sys.executable, __file__, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # whose niceness is its own
        )
        self.about = self.answer()
        self.best = {way: float("inf") for way in ways}

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.answer()

    def round(self) -> None:
        seconds = self.ask()
        self.best = {way: min(self.best[way], seconds[way]) for way in self.best}

    def close(self) -> dict[str, Any]:
        last = self.ask()
        self.process.communicate()
        return self.about | {"state": last["state"]} | self.best


def seconds(work: Any) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


@contextlib.contextmanager
def in_real_time() -> Iterator[None]:
    """All threads of the process come before others', where the user may say so."""

    def change(policy: int, priority: int) -> None:
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(PermissionError):
                os.sched_setscheduler(int(thread), policy, os.sched_param(priority))

    change(os.SCHED_RR, 1)
    try:
        yield
    finally:
        change(os.SCHED_OTHER, 0)


def serve(
    file: Path, ways: tuple[str, ...], engine: str, block: str, size: int, threads: int
) -> None:
    """What a worker does: one line when it is ready, and one for each line that it reads."""
    with contextlib.suppress(OSError):
        os.nice(-20)
        Path("/proc/self/autogroup").write_text("-20")
    data = silesia.unpacked(file)[:size]
    strict = engine if engine == CORES else engine + "!"
    options = {"block_size": block, "threads": threads}
    frame = wirepress.Compressor(RECIPE, engine=CORES, **options).compress(data)
    back = bytearray(len(data))
    whole = strict.removeprefix("cores+")  # the device first sees and remembers all blocks
    opened, coder = seconds(lambda: wirepress.Compressor(RECIPE, engine=whole, **options))

    def one_round() -> dict[str, float]:
        times = {}
        if "compress" in ways:
            times["compress"], _ = seconds(lambda: coder.compress(data))
        if "expand" in ways:
            with in_real_time():
                times["expand"] = min(seconds(lambda: coder.decompress(frame, back))[0]
                                      for _ in range(EXPANDS))  # fmt: skip
        return times

    one_round()
    coder = wirepress.Compressor(RECIPE, engine=strict, **options)
    for _ in range(6 * max(1, SIZE // len(data) // 4)):  # it learns what the jobs take
        one_round()
    own = coder.compress(data)
    if coder.decompress(own, raw=True) != data or ("expand" in ways and back != data):
        raise SystemExit(f"{engine} gives other bytes")
    about = {"engine": engine, "bytes": len(data), "frame_bytes": len(own), "set_up": opened}
    print(json.dumps(about), flush=True)
    for _ in sys.stdin:
        times = one_round()
        state = next((row.state for row in wirepress.engines() if row.state), "")
        print(json.dumps(times | {"state": state}), flush=True)


def rounds_of(
    file: Path, ways: tuple[str, ...], engines: list[tuple[str, str, int, int]], rounds: int
) -> list[Any]:
    workers = [Worker(file, ways, *engine) for engine in engines]
    for _ in range(rounds):
        for worker in workers:
            worker.round()
    return [worker.close() for worker in workers]


def divided(
    file: Path, rounds: int, size: int = SIZE, threads: int = 0, waiting: int = 4
) -> list[dict[str, Any]]:
    """For each rate: cores, device and both, in turns."""
    rows = []
    for way in WAYS:
        cores = rounds_of(file, (way,), [(CORES, BLOCK, size, threads)], rounds)[0]
        for fraction in FRACTIONS:
            rate = max(1, round(fraction * cores["bytes"] / cores[way] / 1e6))
            device = f"compressdev:virtual-{rate}"
            engines = [(CORES, BLOCK, size, threads), (device, BLOCK, size, waiting),
                       (f"cores+{device}", BLOCK, size, threads)]  # fmt: skip
            three = rounds_of(file, (way,), engines, rounds)
            rows.append({"way": way, "rate": rate, "fraction": fraction, "engines": three})
    return rows


def busy(file: Path, rounds: int) -> list[dict[str, Any]]:
    """Cores, and a device that has no time beside them."""
    engines = [(engine, BLOCK, SIZE, 0) for engine in (CORES, f"cores+compressdev:virtual-{BUSY}")]
    both_ways = [rounds_of(file, (way,), engines, rounds) for way in WAYS]
    return [coded | {"expand": expanded["expand"]}
            for coded, expanded in zip(*both_ways, strict=True)]  # fmt: skip


def set_ups(file: Path, rounds: int) -> list[dict[str, Any]]:
    """Whole messages, one thread: what the set-up is against them."""
    engines = [(f"compressdev:{name}", "32KiB" if name == "isal" else PEDAL_BLOCK, 6 << 20, 1)
               for name in PEDAL]  # fmt: skip
    return rounds_of(file, WAYS, engines, rounds)


def measure(folder: Path, rounds: int) -> None:
    file = next(path for path in folder.iterdir() if path.name.removesuffix(".zst") == "xml")
    measured = {
        "block_size": BLOCK,
        "recipe": RECIPE,
        "rounds": rounds,
        "busy": busy(file, rounds),
        "set_up": set_ups(file, rounds),
        "rows": divided(file, rounds),
        "one_thread": divided(file, 4 * rounds, PIECE, 1, 1),
    }
    results.write("virtual_devices", measured)


PAGE_TEXT = """# Virtual devices: cores and device together, and set-up

`virtual`: no device was there. Its jobs are done by the cores' libraries, remembered, and answered
when a device of the rate would answer ([engine](../../engines/compressdev/README.md)). It sleeps
meanwhile, so that the cores are free, as beside a real one. What is measured is how the library
divides the work.

Recipe `{recipe}`, xml of the Silesia corpus, blocks of {block_size}, the fastest of {rounds} rounds
by turns; MB/s of wall clock. Machine: {machine}. Date: {date}.
Command: `{command}`. Raw: [virtual_devices.json](../../bench/results/virtual_devices.json). Other
programs ran meanwhile on the same cores; the measured ones came before them (`nice -20`, and
real-time priority for the milliseconds of expanding).

## 4 MiB divided

Blocks of {block_size}. Aims: at least {of_sum} of the sum of both rates, and at least {of_better}
of the better one alone.

{divided}

{missed}

A block that the device expands costs a core time, too: it is copied and summed up (`zlib`), and the
device is asked. A trace of one message on a busy machine had 6 us for that, of 17 us that a core
takes to expand a block. Device alone has one block in flight for each of four threads, and so does
not reach the rates that are asked of it from twice the cores' on; both together keep more blocks in
flight, which is how they pass the sum of what is measured alone.

## A piece of a message, one thread

{piece} KiB, as of an MPI message: two blocks of 32 KiB and one of 16. The thread codes or expands
one while the device has others. Device alone waits for each. Aim: at least 0.95 of the better one.

{one_thread}

{missed_one}

## A busy device

`virtual-{busy}`, a device that has {busy} MB/s left: cores and device against the cores alone. The
aim is 0.97.

{guard}

## Set-up paid once, or for every message

A message of {size:.2f} MB, in blocks of {large} (`isal`: {block_size}, for it takes no larger
jobs), compressed and expanded in one thread. PEDAL's figure 7 has 94 % of this
for start and memory on BlueField-2; the virtual devices' set-up is derived from that number. `isal`
is DPDK's driver in software, whose set-up is real.

{set_up}
"""


def speed(row: dict[str, Any], way: str) -> float:
    return row["bytes"] / row[way] / 1e6


def divided_table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| way | device / cores | cores | device | both | of the sum | of the better |",
             "|---" * 7 + "|"]  # fmt: skip
    for row in rows:
        cores, device, both = (speed(engine, row["way"]) for engine in row["engines"])
        cells = [row["way"], f"{row['fraction']:g}", f"{cores:.0f}", f"{device:.0f}",
                 f"{both:.0f}", f"{both / (cores + device):.2f}",
                 f"{both / max(cores, device):.2f}"]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def ratios(row: dict[str, Any]) -> tuple[float, float]:
    cores, device, both = (speed(engine, row["way"]) for engine in row["engines"])
    return both / (cores + device), both / max(cores, device)


def is_noise(row: dict[str, Any], rows: list[dict[str, Any]]) -> bool:
    """Cores that were a quarter slower or faster than in the other rows."""
    cores = [speed(r["engines"][0], r["way"]) for r in rows if r["way"] == row["way"]]
    usual = statistics.median(cores)
    return abs(speed(row["engines"][0], row["way"]) / usual - 1) > 0.25


def missed(rows: list[dict[str, Any]]) -> str:
    def named(chosen: list[dict[str, Any]]) -> str:
        ways = []
        for way in WAYS:
            rates = [f"{row['fraction']:g}" for row in chosen if row["way"] == way]
            every = len(rates) == len(FRACTIONS)
            ways += [f"{way} {'at every rate' if every else ', '.join(rates)}"] if rates else []
        return "; ".join(ways) or "none"

    of_sum = [row for row in rows if round(ratios(row)[0], 2) < OF_SUM]
    of_better = [row for row in rows if round(ratios(row)[1], 2) < OF_BETTER]
    noise = [row for row in rows if is_noise(row, rows)]
    return "\n".join([
        f"Below {OF_SUM} of the sum: {named(of_sum)}.",
        f"Below {OF_BETTER} of the better: {named(of_better)}.",
        f"Noise, for the three rates of a row were not measured alike: {named(noise)}.",
    ])  # fmt: skip


def jobs_of(row: dict[str, Any]) -> str:
    jobs = re.search(r"(\d+) jobs by the device", row["state"])
    if jobs is None:
        raise SystemExit(f"{row['engine']}: its state names no jobs")
    above = "above the device's limit" in row["state"]
    return jobs[1] if int(jobs[1]) or not above else "0: blocks above its limit, by the cores"


def guard_table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| way | cores | cores and device | ratio |", "|---" * 4 + "|"]
    for way in WAYS:
        cores, both = (speed(row, way) for row in rows)
        lines.append(f"| {way} | {cores:.0f} | {both:.0f} | {both / cores:.2f} |")
    return lines


def set_up_table(rows: list[dict[str, Any]]) -> list[str]:
    columns = (
        "device",
        "its jobs",
        "set-up ms",
        "compress ms",
        "expand ms",
        "set-up",
        "once: times as fast",
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * 7 + "|"]
    for row in rows:
        message = row["compress"] + row["expand"]
        whole = message + row["set_up"]
        cells = [f"`{row['engine']}`", jobs_of(row), f"{1e3 * row['set_up']:.0f}",
                 f"{1e3 * row['compress']:.1f}", f"{1e3 * row['expand']:.1f}",
                 f"{row['set_up'] / whole:.0%}", f"{whole / message:.1f}"]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def page(raw: dict[str, Any]) -> str:
    about = {name: raw[name] for name in ("recipe", "block_size", "rounds", "date", "command")}
    return PAGE_TEXT.format(
        **about,
        machine=", ".join(str(value) for value in raw["machine"].values()),
        of_sum=OF_SUM,
        of_better=OF_BETTER,
        missed=missed(raw["rows"]),
        large=PEDAL_BLOCK,
        divided="\n".join(divided_table(raw["rows"])),
        piece=PIECE >> 10,
        one_thread="\n".join(divided_table(raw["one_thread"])),
        missed_one=missed(raw["one_thread"]).split("\n")[1],
        busy=BUSY,
        guard="\n".join(guard_table(raw["busy"])),
        size=raw["set_up"][0]["bytes"] / 1e6,
        set_up="\n".join(set_up_table(raw["set_up"])),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--worker", nargs=6, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        file, ways, engine, block, size, threads = args.worker
        serve(Path(file), tuple(ways.split(",")), engine, block, int(size), int(threads))
    elif args.page:
        PAGE.write_text(page(json.loads((results.FOLDER / "virtual_devices.json").read_text())))
    elif args.folder:
        measure(args.folder, args.rounds)
    else:
        parser.error("a folder with xml, or --page")


if __name__ == "__main__":
    main()
