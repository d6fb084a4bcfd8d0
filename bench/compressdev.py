#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DEFLATE on the cores, by ISA-L, and by DPDK's software drivers, and the page about them.

    bench/compressdev.py FOLDER [--limit 3] [--rounds 5]   writes bench/results/compressdev.json
    bench/compressdev.py FOLDER --sizes         writes bench/results/compressdev_sizes.json
    bench/compressdev.py FOLDER --jobs          writes bench/results/compressdev_jobs.json
    bench/compressdev.py --page                 writes docs/results/compressdev.md from it

FOLDER holds files (for the page: xml and mr of the Silesia corpus); one packed with zstd (.zst) is
unpacked first. The engines take turns in one process each; the fastest round counts. Speeds are of
processor time, so that other programs of the machine do not count.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import results
import silesia

import wirepress

BLOCK = "32KiB"  # the drivers take jobs to 65,535 bytes
BASE = "cpu:libdeflate"
ENGINES = (BASE, "cpu:isal", "compressdev:isal", "compressdev:zlib")
DRIVERS = (BASE, "compressdev:isal", "compressdev:zlib")
DIVIDED = (BASE, "compressdev:isal", "cores+compressdev:isal")
PAGE = results.ROOT / "docs" / "results" / "compressdev.md"
DIVIDED_SIZE = 4 << 20
SIZES = ("32KiB", "64KiB", "512KiB", "1MiB")  # the drivers take jobs of the first one
JOB = 60 << 10  # bytes: the pieces of MPI messages
DIRECT = "ISA-L called directly"
# A device expands raw deflate by a driver that tells where a code ends, which isal does not.
JOBS = (("deflate:1", BASE), ("deflate:1", "cpu:isal"), ("deflate:1", "compressdev:isal"),
        ("zlib:1", BASE), ("zlib:1", "compressdev:isal"))  # fmt: skip


def seconds(work: Any) -> tuple[float, Any]:
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def one(file: str, limit: int, recipe: str, engine: str, threads: int) -> dict[str, Any]:
    """In a process of its own, which may have one device: one round both ways."""
    data = silesia.unpacked(Path(file))[:limit]
    strict = engine + "!" if "compressdev" in engine else engine
    options = {"engine": strict, "block_size": BLOCK, "threads": threads}
    opened, compressor = seconds(lambda: wirepress.Compressor(recipe, **options))
    again, _ = seconds(lambda: wirepress.Compressor(recipe, **options))
    compressor.compress(data[: 1 << 18])
    encode, frame = min((seconds(lambda: compressor.compress(data)) for _ in range(2)),
                        key=lambda pair: pair[0])  # fmt: skip
    decode, back = min((seconds(lambda: compressor.decompress(frame, raw=True)) for _ in range(2)),
                       key=lambda pair: pair[0])  # fmt: skip
    if bytes(back) != data:
        raise SystemExit(f"{engine} gives other bytes")
    state = next((row.state for row in wirepress.engines() if row.state), "")
    return {"bytes": len(data), "frame_bytes": len(frame), "encode": encode, "decode": decode,
            "first_open": opened, "second_open": again, "state": state}  # fmt: skip


def measured(
    file: Path, limit: int, recipe: str, engines: tuple[str, ...], threads: int, rounds: int
) -> Any:
    best: dict[str, dict[str, Any]] = {}
    for _ in range(rounds):
        for engine in engines:
            words = ["--one", str(file), str(limit), recipe, engine, str(threads)]
            done = subprocess.run([sys.executable, __file__, *words], check=True,
                                  capture_output=True, text=True)  # fmt: skip
            row = json.loads(done.stdout)
            known = best.setdefault(engine, row)
            for name in ("encode", "decode", "first_open", "second_open"):
                known[name] = min(known[name], row[name])
    name = file.name.removesuffix(".zst")
    about = {"file": name, "recipe": recipe, "threads": threads}
    return [about | {"engine": engine, **row} for engine, row in best.items()]


def measure(folder: Path, limit: int, rounds: int) -> None:
    rows = []
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        if file.name.removesuffix(".zst") in ("xml", "mr"):
            rows += measured(file, limit << 20, "deflate:1", ENGINES, 1, rounds)
            rows += measured(file, limit << 20, "zlib:1", DRIVERS, 1, rounds)
            rows += measured(file, DIVIDED_SIZE, "zlib:1", DIVIDED, 0, rounds)
    results.write("compressdev", {"block_size": BLOCK, "rounds": rounds, "rows": rows})


def sizes(folder: Path, rounds: int) -> None:
    """What larger jobs would give: ISA-L on a core, by turns."""
    rows = []
    for name in ("mr", "xml"):
        file = next(p for p in folder.iterdir() if p.name.removesuffix(".zst") == name)
        data = silesia.unpacked(file)[:DIVIDED_SIZE]
        coders = {block: wirepress.Compressor("deflate:1", engine="cpu:isal", block_size=block,
                                              threads=1) for block in SIZES}  # fmt: skip
        best = dict.fromkeys(SIZES, float("inf"))
        frames = {block: len(coder.compress(data)) for block, coder in coders.items()}
        for _ in range(rounds):
            for block, coder in coders.items():
                time_taken, _ = seconds(lambda coder=coder, data=data: coder.compress(data))
                best[block] = min(best[block], time_taken)
        rows += [{"file": name, "block_size": block, "bytes": len(data),
                  "frame_bytes": frames[block], "encode": best[block]}
                 for block in SIZES]  # fmt: skip
    results.write("compressdev_sizes", {"engine": "cpu:isal", "recipe": "deflate:1",
                                        "rounds": rounds, "rows": rows})  # fmt: skip


def jobs_of(file: str, limit: int, recipe: str, engine: str) -> dict[str, Any]:
    """In a process of its own: a message for each job, one round both ways."""
    data = silesia.unpacked(Path(file))[:limit]
    parts = [data[at : at + JOB] for at in range(0, len(data) - JOB + 1, JOB)]
    strict = engine + "!" if "compressdev" in engine else engine
    coder = wirepress.Compressor(recipe, engine=strict, block_size="64KiB", threads=1)
    frames = [coder.compress(part) for part in parts]
    if any(bytes(coder.decompress(frame, raw=True)) != part
           for frame, part in zip(frames, parts, strict=True)):  # fmt: skip
        raise SystemExit(f"{engine} gives other bytes")
    encode = min(seconds(lambda: [coder.compress(part) for part in parts])[0] for _ in range(3))
    decode = min(seconds(lambda: [coder.decompress(frame, raw=True) for frame in frames])[0]
                 for _ in range(3))  # fmt: skip
    return {"bytes": JOB * len(parts), "frame_bytes": sum(map(len, frames)),
            "encode": encode, "decode": decode}  # fmt: skip


def jobs(folder: Path, limit: int, rounds: int) -> None:
    """Jobs of 60 KiB by the driver, beside ISA-L called directly by a C program."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        program = Path(place) / "isal_direct"
        source = results.ROOT / "bench" / "isal_direct.c"
        subprocess.run(["cc", "-std=gnu11", "-O2", source, "-o", program, "-lisal"], check=True)
        for name in ("mr", "xml"):
            packed = next(p for p in folder.iterdir() if p.name.removesuffix(".zst") == name)
            file = Path(place) / name
            file.write_bytes(silesia.unpacked(packed))
            direct = [program, file, str(limit), str(JOB), "3"]
            others = [[sys.executable, __file__, "--one-jobs", file, str(limit), recipe, engine]
                      for recipe, engine in JOBS]  # fmt: skip
            best: dict[int, dict[str, Any]] = {}
            for _ in range(rounds):
                for i, words in enumerate([direct, *others]):
                    done = subprocess.run(words, check=True, capture_output=True, text=True)
                    row = json.loads(done.stdout)
                    known = best.setdefault(i, row)
                    for way in ("encode", "decode"):
                        known[way] = min(known[way], row[way])
            names = [("deflate:1", DIRECT), *JOBS]
            rows += [{"file": name, "recipe": names[i][0], "engine": names[i][1], **row}
                     for i, row in best.items()]  # fmt: skip
    results.write("compressdev_jobs", {"job": JOB, "rounds": rounds, "rows": rows})


def jobs_table(rows: list[dict[str, Any]]) -> list[str]:
    columns = ("file", "codec", "engine", "compress MB/s", "of ISA-L", "of the cores",
               "expand MB/s", "of the cores", "ratio", "of the cores")  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in rows:
        mine = [r for r in rows if r["file"] == row["file"]]
        direct = next(r for r in mine if r["engine"] == DIRECT)
        base = next(r for r in mine if (r["recipe"], r["engine"]) == (row["recipe"], BASE))
        speed = {way: row["bytes"] / row[way] / 1e6 for way in ("encode", "decode")}
        cells = [
            row["file"], f"`{row['recipe']}`",
            row["engine"] if row is direct else f"`{row['engine']}`",
            f"{speed['encode']:,.0f}", f"{direct['encode'] / row['encode']:.2f}",
            f"{base['encode'] / row['encode']:.2f}",
            f"{speed['decode']:,.0f}", f"{base['decode'] / row['decode']:.2f}",
            f"{row['bytes'] / row['frame_bytes']:.2f}",
            f"{base['frame_bytes'] / row['frame_bytes']:.2f}",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def sizes_table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| file | blocks | compress MB/s | ratio |", "|---" * 4 + "|"]
    for row in rows:
        base = next(r for r in rows if r["file"] == row["file"])
        ratio, least = (r["bytes"] / r["frame_bytes"] for r in (row, base))
        speed = row["bytes"] / row["encode"] / 1e6
        cells = [row["file"], row["block_size"],
                 f"{speed:,.0f} ({base['encode'] / row['encode']:.2f})",
                 f"{ratio:.2f} ({ratio / least:.2f})"]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def speeds(row: dict[str, Any], base: dict[str, Any]) -> list[str]:
    cells = [f"{row['bytes'] / row[way] / 1e6:,.0f} ({base[way] / row[way]:.2f})"
             for way in ("encode", "decode")]  # fmt: skip
    ratio, least = (r["bytes"] / r["frame_bytes"] for r in (row, base))
    return [*cells, f"{ratio:.2f} ({ratio / least:.2f})"]


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| file | codec | engine | compress MB/s | expand MB/s | ratio |", "|---" * 6 + "|"]
    for row in rows:
        base = next(r for r in rows if (r["file"], r["recipe"], r["engine"])
                    == (row["file"], row["recipe"], BASE))  # fmt: skip
        names = [row["file"], f"`{row['recipe']}`", f"`{row['engine']}`"]
        lines.append(f"| {' | '.join([*names, *speeds(row, base)])} |")
    return lines


PAGE_TEXT = """# Compression devices: driver, cores and both

Blocks of {block_size}, the fastest of {rounds} rounds by turns. MB/s are of processor time. In
parentheses: against `cpu:libdeflate` for the same file and codec. No device was there: the drivers
are software on the same cores.

Machine: {machine}. Date: {date}.
Command: `{command}`. Raw:
[compressdev.json](../../bench/results/compressdev.json). Other programs ran meanwhile: caches were
shared, so ratios of a tenth mean little.

## One thread

{one_thread}

A device has one level of its own. With driver `isal`, which does not tell where a code ends, raw
`deflate` is expanded on the cores; `zlib` is expanded by the driver.

## Jobs of 60 KiB

A message for each job, the pieces of MPI messages, through the Python door with its frame and
checksum, beside a C program that does nothing but call ISA-L (`bench/isal_direct.c`). MB/s of
processor time, the fastest of {job_rounds} rounds by turns (`{jobs_command}`,
[compressdev_jobs.json](../../bench/results/compressdev_jobs.json), {jobs_date}). "The cores" are
`cpu:libdeflate` with the same codec. Aims for the driver: compressing at least 0.9 of ISA-L and 1.5
of the cores, expanding at least 0.7 of the cores, a ratio of at least 0.92 of theirs.

{jobs}

## Set-up

`compressdev:isal`: {first:.0f} ms of processor time for the first context, {second:.3f} ms for the
second.

## Device and cores together, 4 MiB, all cores

{divided}

The driver works inside the thread that gives it a job, on a core. So nothing can be gained here.
What dividing costs against the driver alone is seen; what it gives with a device is measured with
[virtual ones](virtual-devices.md).

## Jobs above 64 KiB

Through DPDK a job lies in one segment of at most 65,535 bytes; larger blocks go to the cores.
Chains of segments would carry them, but driver `isal` loses the end of some codes in chains, and
loops for ever on a damaged code. Several jobs for one block would need streams that end in the
middle of a block, which compressdev's stateless jobs do not write. So blocks of 32 KiB are to be
chosen. What that costs, by ISA-L on a core, in parentheses against blocks of 32 KiB
(`{sizes_command}`,
[compressdev_sizes.json](../../bench/results/compressdev_sizes.json), {sizes_date}):

{sizes}
"""


def page(raw: dict[str, Any], larger: dict[str, Any], by_job: dict[str, Any]) -> str:
    one_thread = [row for row in raw["rows"] if row["threads"] == 1]
    divided = [row for row in raw["rows"] if row["threads"] == 0]
    opens = [row for row in one_thread if row["engine"] == "compressdev:isal"]
    about = {name: raw[name] for name in ("block_size", "rounds", "date", "command")}
    return PAGE_TEXT.format(
        **about,
        machine=", ".join(str(value) for value in raw["machine"].values()),
        one_thread="\n".join(table(one_thread)),
        divided="\n".join(table(divided)),
        jobs="\n".join(jobs_table(by_job["rows"])),
        jobs_command=by_job["command"],
        jobs_date=by_job["date"],
        job_rounds=by_job["rounds"],
        sizes="\n".join(sizes_table(larger["rows"])),
        sizes_command=larger["command"],
        sizes_date=larger["date"],
        first=1e3 * min(row["first_open"] for row in opens),
        second=1e3 * min(row["second_open"] for row in opens),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--limit", type=int, default=3, help="MiB of a file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--jobs", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--one-jobs", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        file, limit, recipe, engine, threads = args.one
        print(json.dumps(one(file, int(limit), recipe, engine, int(threads))))
    elif args.one_jobs:
        file, limit, recipe, engine = args.one_jobs
        print(json.dumps(jobs_of(file, int(limit), recipe, engine)))
    elif args.page:
        names = ("compressdev", "compressdev_sizes", "compressdev_jobs")
        raws = [json.loads((results.FOLDER / f"{name}.json").read_text()) for name in names]
        PAGE.write_text(page(*raws))
    elif args.folder and args.jobs:
        jobs(args.folder, args.limit << 20, args.rounds)
    elif args.folder and args.sizes:
        sizes(args.folder, args.rounds)
    elif args.folder:
        measure(args.folder, args.limit, args.rounds)
    else:
        parser.error("a folder of files, or --page")


if __name__ == "__main__":
    main()
