#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every codec and its peers against memcpy, on fields, gradients, weights, text, noise and zeros.

    bench/codecs.py [--data FOLDER] [--torch PYTHON] [--resume]    measure, then write the page
    bench/codecs.py --page                                         the page from the last results
    bench/codecs.py --quick --out FILE                             a smoke test, some seconds
    bench/codecs.py --recipes planes                               these anew, the rest as it was
    bench/codecs.py --dtypes bfloat16 float16                      data of these types anew

Builds tests/bench/codecs.cpp and bench/wavefield.cpp and makes what is missing in FOLDER
(build/bench/data): wave fields, synthetic gradients, text, noise, zeros, and with a Python that has
PyTorch the gradients of real trainings (bench/gradients.py says how; without it those are skipped).
Then each buffer goes through the harness in a process of its own, all of them --rounds times, and
the best of the rounds counts. Writes bench/results/codecs.json and docs/results/benchmarks.md
with its pictures, prints the table of aims. --resume keeps what an interrupted run of the same
program has measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import results
import sample_data
from frame_cost import BUILD, configure

ROOT = results.ROOT
WORK = ROOT / "build" / "bench"
KIB, MIB = 1 << 10, 1 << 20
WHOLE = 0
FRAMES = range(40, 761, 40)

Row = dict[str, Any]


# ---- what is measured -----------------------------------------------------------------------


SUFFIXES = {
    "float32": ".f32",
    "float64": ".f64",
    "bfloat16": ".bf16",
    "float16": ".f16",
    "bytes": "",
}


@dataclasses.dataclass(frozen=True)
class Data:
    name: str
    what: str
    dtype: str = "float32"
    shape: tuple[int, ...] = ()

    @property
    def file(self) -> str:
        return self.name + SUFFIXES[self.dtype]

    @property
    def item(self) -> int:
        return {"float64": 8, "float32": 4, "bytes": 1}.get(self.dtype, 2)


CUBE = (200, 200, 200)
DATA = (
    *(Data(f"wave_t{t}", f"wave field, step {t}", shape=CUBE) for t in (200, 400, 800)),
    Data("wave_t400", "wave field, step 400", "float64", CUBE),
    Data("lstm_out", "gradient of an LSTM's output layer, dense"),
    Data("lstm_l2", "gradient of an LSTM's second layer, dense"),
    Data("lstm_all", "gradient of the whole LSTM, its embedding mostly zeros"),
    Data("tf", "gradient of a transformer"),
    Data("cnn", "gradient of a convolutional network"),
    Data("mlp", "gradient of a small network with ReLU"),
    Data("gradsyn", "synthetic gradient, 40 % zeros"),
    Data("lstm_l2_w", "weights of an LSTM's second layer"),
    Data("text", "text, made from a seed", "bytes"),
    Data("random", "noise, uniform in (-1, 1)"),
    Data("random", "noise, uniform in (-1, 1)", "float64"),
    Data("zeros", "zeros"),
)

# Made of those above: rounded to nearest, or widened.
DERIVED = (
    Data("wave_t800", "wave field, step 800", "bfloat16", CUBE),
    Data("lstm_out", "gradient of an LSTM's output layer, dense", "bfloat16"),
    Data("lstm_out", "gradient of an LSTM's output layer, dense", "float16"),
    Data("lstm_l2_w", "weights of an LSTM's second layer", "bfloat16"),
    Data("lstm_l2_w", "weights of an LSTM's second layer", "float16"),
    Data("lstm_out", "gradient of an LSTM's output layer, dense", "float64"),
)

# Recipes. "@1e-3" is that part of the data's range, as an absolute bound.
GENERAL = ("lz4", "snappy", "zstd:-1", "zstd:1", "deflate:1")
EXACT = (*GENERAL, "shuffle+lz4", "shuffle+zstd:1", "planes", "zeros", "bx:m=23")
EXACT64 = (*GENERAL, "shuffle+lz4", "shuffle+zstd:1", "planes", "zeros", "bx:m=52")
EXACT16 = (*GENERAL, "shuffle+lz4", "shuffle+zstd:1", "planes", "zeros")
RELATIVE = ("bx:m=5", "bx:m=10", "fre:m=5", "fre:m=5,ways=4", "fre:m=6,round=truncate")
FIELD = (
    *RELATIVE,
    "zfp:rate=8",
    "zfp:precision=16",
    "zfp:accuracy=@1e-3",
    "sz3:rel=1e-3",
    "sz3:pw=1e-2",
    "bf16",
    "fp16",
)
FIELD64 = ("bx:m=5", "zfp:rate=16", "zfp:accuracy=@1e-3", "sz3:rel=1e-3")
GRADIENT = (
    *RELATIVE,
    "onebit",
    "signsgd",
    "tbq",
    "terngrad",
    "terngrad+trits",
    "qsgd:4",
    "graddrop",
    "topk:1e-3",
    "topk:1e-2",
    "dgc",
    "bf16",
    "fp16",
    "fp8",
    "int8",
    "int4",
)


@dataclasses.dataclass(frozen=True)
class Run:
    """One process: a buffer, and what goes over it."""

    data: Data
    size: int  # bytes, or WHOLE
    recipes: tuple[str, ...]
    peers: bool = False
    kernels: str = ""  # only these variants; "best": the first that this machine can run
    seconds: float = 0.1
    label: str = ""

    @property
    def name(self) -> str:
        size = f"{self.size // KIB}k" if self.size else "whole"
        return "-".join(x for x in (self.data.name, self.data.dtype, size, self.label) if x)

    def extent(self) -> tuple[int, int]:
        """(offset, size): whole planes from the middle of a field."""
        if not self.data.shape or not self.size:
            return 0, self.size
        plane = self.data.item * int(np.prod(self.data.shape[1:]))
        n = min(max(1, round(self.size / plane)), self.data.shape[0])
        return (self.data.shape[0] - n) // 2 * plane, n * plane


def data_of(name: str, dtype: str = "float32") -> Data:
    return next(d for d in (*DATA, *DERIVED) if (d.name, d.dtype) == (name, dtype))


def all_runs() -> Iterator[Run]:
    fields, gradients = (*EXACT, *FIELD), (*EXACT, *GRADIENT)
    # the buffers that the aims and most tables speak of: each kernel
    for name in ("wave_t200", "wave_t800"):
        yield Run(data_of(name), 32 * MIB, fields, peers=True)
    for name in ("lstm_out", "gradsyn"):
        yield Run(data_of(name), 32 * MIB, gradients, peers=name == "lstm_out")
    # smaller ones: what caches do
    for size in (4 * MIB, 256 * KIB):
        yield Run(data_of("wave_t800"), size, fields, kernels="best", seconds=0.03)
        yield Run(data_of("lstm_out"), size, gradients, kernels="best", seconds=0.03)
    # others, with the best kernel
    yield Run(data_of("lstm_all"), WHOLE, (*EXACT, *RELATIVE), kernels="best", seconds=0.05)
    yield Run(data_of("wave_t400"), 32 * MIB, fields, kernels="best", seconds=0.05)
    for name in ("lstm_l2", "tf", "cnn", "mlp"):
        yield Run(data_of(name), 32 * MIB, gradients, kernels="best", seconds=0.05)
    yield Run(data_of("lstm_l2_w"), 32 * MIB, (*EXACT, "bx:m=5", "bf16", "int8", "int4"),
              kernels="best", seconds=0.05)  # fmt: skip
    yield Run(data_of("wave_t400", "float64"), 32 * MIB, (*EXACT64, *FIELD64), kernels="best",
              seconds=0.05)  # fmt: skip
    yield Run(data_of("random", "float64"), 32 * MIB, EXACT64, kernels="best", seconds=0.05)
    yield Run(data_of("lstm_out", "float64"), 32 * MIB, EXACT64, kernels="best", seconds=0.05)
    for name in ("wave_t800", "lstm_out", "lstm_l2_w"):
        yield Run(data_of(name, "bfloat16"), 32 * MIB, (*EXACT16, "bx:m=7", "bx:m=5"), seconds=0.05)
    for name in ("lstm_out", "lstm_l2_w"):
        yield Run(data_of(name, "float16"), 32 * MIB, (*EXACT16, "bx:m=10", "bx:m=5"), seconds=0.05)
    yield Run(data_of("text", "bytes"), 32 * MIB, (*GENERAL, "zstd:3", "deflate:6"), peers=True,
              seconds=0.05)  # fmt: skip
    for name in ("random", "zeros"):
        yield Run(data_of(name), 32 * MIB, (*EXACT, "bx:m=5", "fre:m=5"), kernels="best",
                  seconds=0.05)  # fmt: skip


def frame_runs() -> Iterator[Run]:
    """Ratios over 19 frames of one wave."""
    for t in FRAMES:
        data = Data(f"wave_t{t}", f"wave field, step {t}", shape=CUBE)
        recipes = ("bx:m=5", "fre:m=5", "fre:m=6,round=truncate", "planes", "lz4")
        yield Run(data, 32 * MIB, recipes, kernels="best", seconds=0, label="frames")


def quick_runs() -> Iterator[Run]:
    recipes = ("lz4", "shuffle+zstd:1", "bx:m=5", "fre:m=5", "onebit", "no-such-codec")
    wave = Data("quick_t60", "wave field, step 60", shape=(32, 32, 32))
    yield Run(wave, 64 * KIB, recipes, peers=True, seconds=0)
    yield Run(data_of("gradsyn"), 64 * KIB, recipes, seconds=0)
    yield Run(data_of("text", "bytes"), 64 * KIB, ("lz4", "zstd:1"), seconds=0)


# ---- data -----------------------------------------------------------------------------------


def wave_dtype(data: Data) -> str:
    """What the wave is computed in."""
    return "float32" if data in DERIVED else data.dtype


def make_waves(folder: Path, build: Path, runs: list[Run]) -> None:
    program = build / "bench" / "wavefield"
    for dtype, option in (("float32", []), ("float64", ["--double"])):
        names = {r.data.name + SUFFIXES[dtype] for r in runs
                 if r.data.shape == CUBE and wave_dtype(r.data) == dtype}  # fmt: skip
        steps = sorted(int(n.split("_t")[1].split(".")[0]) for n in names
                       if not (folder / n).exists())  # fmt: skip
        if steps:
            listed = ",".join(map(str, steps))
            subprocess.run([program, "--steps", listed, "--out", folder, *option], check=True)
    for data in {r.data for r in runs if r.data.shape and r.data.shape != CUBE}:
        if not (folder / data.file).exists():
            n, step = str(data.shape[0]), data.name.split("_t")[1]
            small = [program, "--n", n, "--steps", step, "--out", folder, "--quiet"]
            subprocess.run(small, check=True)
            (folder / f"wave_t{step}.f32").rename(folder / data.file)


def make_simple(folder: Path, data: Data) -> None:
    path = folder / data.file
    if path.exists():
        return
    if data.name == "text":
        path.write_bytes(sample_data.text())
    elif data.name == "gradsyn":
        sample_data.gradients().tofile(path)
    elif data.name == "random":
        values = sample_data.noise()
        (values if data.dtype == "float32" else sample_data.noise64()).tofile(path)
    elif data.name == "zeros":
        np.zeros(MIB, np.float32).tofile(path)


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """float32 as another type, to nearest, ties to even; bfloat16 as its words."""
    if dtype != "bfloat16":
        return values.astype(dtype)
    words = values.view(np.uint32)
    return ((words + 0x7FFF + (words >> 16 & 1)) >> 16).astype(np.uint16)


def make_others(folder: Path, runs: list[Run]) -> None:
    """Those of the same name in float32, in another type."""
    for data in {run.data for run in runs if run.data in DERIVED}:
        single = folder / (data.name + SUFFIXES["float32"])
        if single.exists() and not (folder / data.file).exists():
            rounded(np.fromfile(single, np.float32), data.dtype).tofile(folder / data.file)


def torch_python(chosen: str | None) -> str | None:
    places = (chosen, os.environ.get("TORCH_PYTHON"), WORK / "torch" / "bin" / "python")
    for place in places:
        if place and Path(place).exists():
            return str(place)
    return None


def make_data(folder: Path, build: Path, runs: list[Run], torch: str | None) -> None:
    """Makes the missing files of these runs."""
    folder.mkdir(parents=True, exist_ok=True)
    make_waves(folder, build, runs)
    for run in runs:
        make_simple(folder, run.data)
    names = {run.data.name + SUFFIXES["float32"] if run.data in DERIVED else run.data.file
             for run in runs if not (folder / run.data.file).exists()}  # fmt: skip
    names = {name for name in names if not (folder / name).exists()}
    python = torch_python(torch)
    if names and python:
        subprocess.run([python, ROOT / "bench" / "gradients.py", folder], check=True)
    elif names:
        print(f"no PyTorch, so without {', '.join(sorted(names))}; bench/gradients.py says how")
    make_others(folder, runs)


# ---- measuring ------------------------------------------------------------------------------


def bound_text(share: float, values: np.ndarray) -> str:
    """A part of the range, as a real parameter: three digits."""
    finite = values[np.isfinite(values)]
    return f"{share * float(finite.max() - finite.min()):.2e}"


def resolved(recipe: str, run: Run, folder: Path) -> str:
    if "@" not in recipe:
        return recipe
    head, share = recipe.split("@")
    values = np.fromfile(folder / run.data.file, run.data.dtype)
    return head + bound_text(float(share), values)


def measure(run: Run, folder: Path, program: Path, cpu: int | None) -> list[Row]:
    offset, size = run.extent()
    said = {resolved(recipe, run, folder): recipe for recipe in run.recipes}
    command: list[Any] = [program, "--data", folder / run.data.file, "--dtype", run.data.dtype,
                          "--size", size, "--offset", offset, "--seconds", run.seconds]  # fmt: skip
    if run.data.shape:
        command += ["--shape", ",".join(map(str, run.data.shape))]
    if run.kernels:
        command += ["--kernels", run.kernels]
    if cpu is not None:
        command += ["--cpu", cpu]
    if run.peers:
        command.append("--peers")
    command += said
    done = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True)
    rows = []
    for line in done.stdout.splitlines():
        row = json.loads(line)
        if "subject" in row:
            row["subject"] = said.get(row["subject"], row["subject"])
        rows.append({"run": run.name, "data": run.data.name, "dtype": run.data.dtype} | row)
    return rows


SPEEDS = ("memcpy", "encode", "decode", "decode_add", "encode_feedback")


def best_of(rounds: list[list[Row]]) -> list[Row]:
    """Rows of one run: of each speed the best of the rounds, and one memcpy, the best of all rows,
    so that speeds over it order as the speeds do."""
    best: dict[tuple[Any, ...], Row] = {}
    for row in (row for rows in rounds for row in rows):
        kept = best.setdefault((row.get("subject"), row.get("variant")), row)
        for name in SPEEDS:
            if name in row:
                kept[name] = max(kept[name], row[name])
    timed = [row for row in best.values() if "memcpy" in row]
    memcpy = max((row["memcpy"] for row in timed), default=0.0)
    for row in timed:
        row["memcpy"] = memcpy
    return list(best.values())


def measure_all(runs: list[Run], args: argparse.Namespace, program: Path) -> list[Row]:
    key = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
    kept = WORK / f"codecs-{key}"
    kept.mkdir(parents=True, exist_ok=True)
    rounds: dict[str, list[list[Row]]] = {}
    began = time.monotonic()
    for number in range(args.rounds):
        for i, run in enumerate(runs):
            if not (args.data / run.data.file).exists():
                continue
            if number and run.seconds == 0:
                continue  # sizes do not change
            path = kept / f"{run.name}-{number}.json"
            if not (args.resume and path.exists()):
                path.write_text(json.dumps(measure(run, args.data, program, args.cpu)))
            rounds.setdefault(run.name, []).append(json.loads(path.read_text()))
            spent = time.monotonic() - began
            print(f"round {number + 1}, {i + 1} of {len(runs)}: {run.name}, {spent:.0f} s",
                  file=sys.stderr)  # fmt: skip
    return [row for each in rounds.values() for row in best_of(each)]


def only(run: Run, recipes: list[str]) -> Run:
    kept = tuple(recipe for recipe in run.recipes if recipe in recipes)
    return dataclasses.replace(run, recipes=kept, peers=False)


def in_place(rows: list[Row], what: list[str], forget: bool) -> Row:
    """The last results with these rows for those of the same run and subject. `what` was measured
    anew; forget: its older rows go, too, where it was not."""
    last = json.loads((results.FOLDER / "codecs.json").read_text())
    new = {(row["run"], row["subject"]) for row in rows}
    gone = what if forget else []
    kept = [
        row
        for row in last["rows"]
        if (row["run"], row["subject"]) not in new and row["subject"] not in gone
    ]
    day = time.strftime("%Y-%m-%d", time.gmtime())
    before = last.get("again", {})
    today = before["recipes"] if before.get("date") == day else []
    again = {"recipes": list(dict.fromkeys([*today, *what])), "date": day}
    return last | {"rows": kept + rows, "again": again}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=WORK / "data", help="where the data lie")
    parser.add_argument("--torch", metavar="PYTHON", help="a Python that has PyTorch")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cpu", type=int, help="the core to measure on (the last)")
    parser.add_argument(
        "--only", nargs="+", metavar="DATA", help="these data sets; no page, but with --recipes"
    )
    parser.add_argument("--recipes", nargs="+", help="these anew, in place of their last results")
    parser.add_argument(
        "--forget", action="store_true", help="their other last results go, too: a new format"
    )
    parser.add_argument("--dtypes", nargs="+", help="likewise, all of data of these types")
    parser.add_argument("--resume", action="store_true", help="keep what is already measured")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    parser.add_argument("--build", type=Path, default=BUILD, help="the build folder")
    parser.add_argument("--out", type=Path, help="JSON goes here; no page")
    args = parser.parse_args()

    import codecs_page

    if args.page:
        codecs_page.write(json.loads((results.FOLDER / "codecs.json").read_text()))
        return
    configure(args.build)
    build = ["cmake", "--build", args.build, "--target", "codecs", "wavefield"]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    runs = [*quick_runs()] if args.quick else [*all_runs(), *frame_runs()]
    if args.quick:
        args.rounds = 1
    if args.only:
        runs = [run for run in runs if run.data.name in args.only]
    if args.dtypes:
        runs = [run for run in runs if run.data.dtype in args.dtypes]
    if args.recipes:
        runs = [run for run in (only(run, args.recipes) for run in runs) if run.recipes]
    make_data(args.data, args.build, runs, args.torch)
    rows = measure_all(runs, args, args.build / "bench" / "codecs")
    versions = next((row["versions"] for row in rows if "versions" in row), {})
    rows = [row for row in rows if "subject" in row]
    measured = {"versions": versions, "rounds": args.rounds, "text": sample_data.TEXT, "rows": rows}
    if args.recipes or args.dtypes:
        what = args.recipes or [f"all in {dtype}" for dtype in args.dtypes]
        measured = in_place(rows, what, args.forget)
    some = args.only and not args.recipes
    partial = args.out or (WORK / "codecs-partial.json" if some else None)
    path = results.write("codecs", measured, path=partial, compiler=results.compiler(args.build))
    print(codecs_page.aims_text(measured["rows"]))
    for line in codecs_page.skipped(rows):
        print(line)
    if not partial:
        codecs_page.write(json.loads(path.read_text()))
    print(f"written: {path}")


if __name__ == "__main__":
    main()
