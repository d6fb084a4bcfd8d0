#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Messages through devices that fail in every way: none may be wrong or lost.

    bench/device_faults.py BUILD [--first 0 --jobs 24]   adds to bench/results/device_faults.json
    bench/device_faults.py --page       writes docs/results/device-faults.md from it

BUILD is a folder of a build with the test kit's device (preset dev). Job I has fault I alone (1 to
11), and all kinds by seed I above; 420 messages each by MPI, half of them there and back between
two ranks and half broadcast, and 420 steps through the frame store. The jobs go by device and by
cores and device; the same messages by the cores alone say how long each may take. Jobs may be run
in several calls.
"""

from __future__ import annotations

import argparse
import array
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import results

KINDS = 11  # of faults, engines/compressdev/faulty_device.hpp
FAULTS = ("delay", "reorder", "lose", "repeat", "refuse", "an error for right bytes",
          "success for nothing", "too many bytes", "a part", "stop", "wrong bytes")  # fmt: skip
CODECS = ("deflate", "zlib", "gzip")
N = 420
DEADLINE = 1.3  # seconds of a job: one, and 1 us a byte of the largest
RANKS = 2  # a message may meet one late job of each
CORES = "cpu:libdeflate"
PAGE = results.ROOT / "docs" / "results" / "device-faults.md"
RAW = results.FOLDER / "device_faults.json"


def devices(job: int) -> str:
    return f"faulty-{job}-{job}" if job <= KINDS else f"faulty-{job}"


class Programs:
    def __init__(self, build: Path, folder: Path) -> None:
        self.build, self.folder = build.resolve(), folder
        library = self.build / "pipeline"
        self.mpi, self.store = folder / "devices", folder / "device_faults"
        source = results.ROOT / "integrations" / "mpi" / "tests" / "devices.c"
        subprocess.run(["mpicc.openmpi", "-std=gnu99", "-O2", source, "-o", self.mpi], check=True)
        subprocess.run(["cc", "-std=gnu11", "-O2", f"-I{results.ROOT / 'include'}",
                        results.ROOT / "bench" / "device_faults.c", "-o", self.store,
                        f"-L{library}", "-lwirepress", f"-Wl,-rpath,{library}"],
                       check=True)  # fmt: skip

    def messages(self, engine: str, codec: str, seed: int) -> tuple[dict[str, Any], array.array]:
        times, report = self.folder / "times", self.folder / "report.json"
        settings = {
            "LD_PRELOAD": str(self.build / "integrations/mpi/libwirepress_mpi_openmpi.so"),
            "WIREPRESS_ENGINE": engine,
            "WIREPRESS_MPI_CODEC": codec,
            "WIREPRESS_MPI_REPORT": str(report),
            "WIREPRESS_MPI_TRUST": "1",
            "WIREPRESS_MPI_SAME_HOST": "1",
            "WIREPRESS_MPI_THRESHOLD": "1",
            "WIREPRESS_BLOCK_SIZE": "16KiB",
            "WIREPRESS_VERIFY": "on",
        }
        env = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "OMPI_MCA_mpi_yield_when_idle": "1"}  # fmt: skip
        words = ["mpirun.openmpi", "--oversubscribe", "-n", str(RANKS), "env",
                 *(f"{key}={value}" for key, value in settings.items()),
                 self.mpi, str(N), str(seed), times]  # fmt: skip
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=250)
        found = re.search(r"devices (\d+) right of (\d+)", done.stdout)
        if done.returncode or not found:
            raise SystemExit(f"device_faults: {engine}\n{done.stdout}{done.stderr}")
        seconds = array.array("d", times.read_bytes())
        ranks = json.loads(report.read_text())["ranks"]
        calls = [call for rank in ranks for call in rank["calls"].values()]
        work = {name: sum(call.get(name, 0) for call in calls)
                for name in ("device_bytes", "cores_bytes")}  # fmt: skip
        states = [rank["engine"]["state"] for rank in ranks if isinstance(rank.get("engine"), dict)]
        return {"n": int(found[2]), "right": int(found[1]), "lost": N - len(seconds),
                "states": states, **work}, seconds  # fmt: skip

    def steps(self, engine: str, codec: str, seed: int) -> dict[str, Any]:
        path = self.folder / "steps"
        path.unlink(missing_ok=True)
        words = [self.store, path, engine, codec, str(N), str(seed)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=250)
        if done.returncode:
            raise SystemExit(f"device_faults: store, {engine}\n{done.stdout}{done.stderr}")
        return json.loads(done.stdout)


def run(programs: Programs, job: int) -> list[dict[str, Any]]:
    codec = CODECS[job % len(CODECS)]
    about = {"job": job, "codec": codec}
    _, allowed = programs.messages(CORES, codec, job)
    cores_store = programs.steps(CORES, codec, job)
    rows = []
    for way in ("", "cores+"):
        engine = f"{way}compressdev:{devices(job)}!"
        row, seconds = programs.messages(engine, codec, job)
        bounds = [RANKS * DEADLINE + 1.2 * most for most in allowed]
        late = sum(took > bound for took, bound in zip(seconds, bounds, strict=True))
        rows.append(
            about
            | {
                "through": "MPI",
                "engine": engine,
                "late": late,
                "slowest": max(seconds),
                "cores_slowest": max(allowed),
                **row,
            }
        )
        row = programs.steps(engine, codec, job)
        bound = 2 * DEADLINE + 1.2 * cores_store["slowest"]  # a put may wait for the one before it
        rows.append(
            about
            | {
                "through": "store",
                "engine": engine,
                "late": int(row["slowest"] > bound),  # the slowest step of all
                "cores_slowest": cores_store["slowest"],
                **row,
            }
        )
        print(job, engine, [(r["through"], r["right"], r["lost"], round(r["slowest"], 3))
                            for r in rows[-2:]], flush=True)  # fmt: skip
    return rows


PAGE_TEXT = """# Devices that fail

Messages and steps through the test kit's device, which delays, reorders, loses, repeats and refuses
jobs, lies about status and lengths, cuts answers, changes bytes and stops
([engine](../../engines/compressdev/README.md)). Half of the messages go there and back between two
ranks of a host, half are broadcast; 1 to 200,000 bytes, blocks of 16 KiB, `verify=on`. Steps of
100,000 bytes are put into a frame store and read back. Every byte is compared.

Machine: {machine}. Date: {date}.
Command, of the last jobs: `{command}`. Raw:
[device_faults.json](../../bench/results/device_faults.json). Other programs ran meanwhile.

**{messages:,} messages and {steps:,} steps: {wrong} wrong, {lost} lost, {late} late.**

Late: after more than the deadline of each rank's device, {deadline} s for the largest job, and 1.2
times what the cores alone took for the same message. Of a store's steps the slowest is compared,
with two deadlines (a step may wait for the one before it) and 1.2 times the slowest of the cores
alone. A device has no more jobs after it was late.

| fault | through | engine | right | wrong | lost | late | slowest ms | cores alone ms |
|---|---|---|---|---|---|---|---|---|
{table}

One fault comes in one job of 8, all of them by seed in one of 60. The slowest are those of a device
that loses a job: a second, once in a process.
"""


def table(rows: list[dict[str, Any]]) -> str:
    lines = []
    for fault in range(1, KINDS + 2):
        for through in ("MPI", "store"):
            for way in ("", "cores+"):
                mine = [r for r in rows if min(r["job"], KINDS + 1) == fault
                        and r["through"] == through
                        and r["engine"].startswith("cores+") == bool(way)]  # fmt: skip
                if not mine:
                    continue
                total = {
                    name: sum(r[name] for r in mine) for name in ("n", "right", "lost", "late")
                }
                name = FAULTS[fault - 1] if fault <= KINDS else "all, by seed"
                cells = [name, through, f"{way}device", f"{total['right']:,}",
                         str(total["n"] - total["right"] - total["lost"]), str(total["lost"]),
                         str(total["late"]), f"{1e3 * max(r['slowest'] for r in mine):,.0f}",
                         f"{1e3 * max(r['cores_slowest'] for r in mine):,.0f}"]  # fmt: skip
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def page(raw: dict[str, Any]) -> str:
    rows = raw["rows"]
    total = {name: sum(r[name] for r in rows) for name in ("n", "right", "lost", "late")}
    return PAGE_TEXT.format(
        machine=", ".join(str(value) for value in raw["machine"].values()),
        date=raw["date"],
        command=raw["command"],
        messages=sum(r["n"] for r in rows if r["through"] == "MPI"),
        steps=sum(r["n"] for r in rows if r["through"] == "store"),
        wrong=total["n"] - total["right"] - total["lost"],
        lost=total["lost"],
        late=total["late"],
        deadline=DEADLINE,
        table=table(rows),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("build", type=Path, nargs="?")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=24)
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args()
    if args.page:
        PAGE.write_text(page(json.loads(RAW.read_text())))
    elif args.build:
        before = json.loads(RAW.read_text())["rows"] if args.first > 1 else []
        with tempfile.TemporaryDirectory() as folder:
            programs = Programs(args.build, Path(folder))
            rows = [row for i in range(args.jobs) for row in run(programs, args.first + i)]
        results.write("device_faults", {"messages": N, "rows": before + rows})
    else:
        parser.error("a build, or --page")


if __name__ == "__main__":
    main()
