#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HDF5 datasets through h5py: filters one chunk at a time, and chunks coded by threads.

    bench/hdf5.py [--rounds 5] [--folder /dev/shm] [--steps 300,500,700] [--out FILE]

Data: steps of a wave in three dimensions (bench/wavefield.cpp), 200^3 float32 each, in chunks of
4 MB. Every round writes and reads all of it with every method, each in a process of its own; the
median of the rounds counts. The file lies in memory, so that what is measured is the pipeline and
no disk. Prints a table and writes bench/results/hdf5.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import results

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "build" / "bench" / "data"
N = 200
CHUNK = (1, 25, N, N)
RECIPES = ("shuffle+lz4", "shuffle+zstd:1", "planes", "bx:m=0", "bx:m=6")
# method: options of the dataset (a recipe, or h5py's own), threads of the filter, by our threads
METHODS: dict[str, tuple[str | dict[str, Any], int, bool]] = {
    "no filter": ({}, 1, False),
    "lzf": ({"compression": "lzf"}, 1, False),
    "shuffle, lzf": ({"compression": "lzf", "shuffle": True}, 1, False),
    "gzip 1": ({"compression": "gzip", "compression_opts": 1}, 1, False),
    "shuffle, gzip 1": ({"compression": "gzip", "compression_opts": 1, "shuffle": True}, 1, False),
    **{f"filter {recipe}": (recipe, 1, False) for recipe in RECIPES},
    **{f"filter {recipe}, threads": (recipe, 0, False) for recipe in RECIPES},
    **{f"write/read {recipe}": (recipe, 1, True) for recipe in RECIPES},
}


def make_wave(build: Path, steps: list[int]) -> list[Path]:
    """The files of those steps."""
    files = [DATA / f"wave_t{step}.f32" for step in steps]
    missing = [str(step) for step, file in zip(steps, files, strict=True) if not file.exists()]
    if missing:
        DATA.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cmake", "--build", build, "--target", "wavefield"], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        program = build / "bench" / "wavefield"
        subprocess.run([program, "--steps", ",".join(missing), "--out", DATA], check=True)
    return files


def measure(method: str, files: list[Path], folder: Path) -> dict[str, Any]:
    """In the process of one method: seconds to write and to read."""
    options, _, by_us = METHODS[method]
    import h5py

    import wirepress.hdf5

    if isinstance(options, str):
        options = wirepress.hdf5.options(options)
    data = np.stack([np.fromfile(file, np.float32).reshape(N, N, N) for file in files])
    path = folder / "bench.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("p", data.shape, "f4", chunks=CHUNK, **options)
        began = time.perf_counter()
        if by_us:
            wirepress.hdf5.write(dataset, data)
        else:
            dataset[...] = data
        file.flush()
        write_seconds = time.perf_counter() - began
        stored = dataset.id.get_storage_size()
    with h5py.File(path) as file:
        back = np.empty_like(data)
        back.fill(0)  # so that its pages are there
        began = time.perf_counter()
        if by_us:
            wirepress.hdf5.read(file["p"], out=back)
        else:
            file["p"].read_direct(back)
        read_seconds = time.perf_counter() - began
    error = float(np.max(np.abs(back - data)) / np.max(np.abs(data)))
    return {"size": data.nbytes, "stored": stored, "error": error,
            "write_seconds": write_seconds, "read_seconds": read_seconds}  # fmt: skip


def child(method: str, files: list[Path], folder: Path) -> dict[str, Any]:
    threads = METHODS[method][1]
    environment = os.environ | ({"WIREPRESS_THREADS": str(threads)} if threads else {})
    command = [sys.executable, __file__, "--one", method, "--folder", folder, *files]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout)


def summary(method: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    size = runs[0]["size"]
    speeds = {
        f"{what}_mb_s": round(size / statistics.median(r[f"{what}_seconds"] for r in runs) / 1e6)
        for what in ("write", "read")
    }
    ratio = round(size / runs[0]["stored"], 3)
    return {"method": method, "ratio": ratio, **speeds, "error": runs[0]["error"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    shm = Path("/dev/shm")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=shm if shm.is_dir() else Path("/tmp"))
    parser.add_argument("--steps", default="300,500,700", help="of the wave")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "dev")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("files", nargs="*", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args.files, args.folder)))
        return 0
    files = make_wave(args.build, [int(step) for step in args.steps.split(",")])
    runs: dict[str, list[dict[str, Any]]] = {method: [] for method in METHODS}
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for _ in range(args.rounds):
            for method, found in runs.items():
                found.append(child(method, files, Path(folder)))
    rows = [summary(method, found) for method, found in runs.items()]
    print(f"{'method':32} {'ratio':>6} {'write MB/s':>11} {'read MB/s':>10}  error")
    for row in rows:
        print(
            f"{row['method']:32} {row['ratio']:6.2f} {row['write_mb_s']:11} {row['read_mb_s']:10}  "
            f"{row['error']:.1e}"
        )
    import h5py

    measured = {"h5py": h5py.__version__, "hdf5": h5py.version.hdf5_version, "steps": args.steps,
                "chunk": CHUNK, "rounds": args.rounds, "rows": rows}  # fmt: skip
    print(results.write("hdf5", measured, path=args.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
