#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lossless recipes beside pcodec, OpenZL, ZipNN and Blosc2: ratio against speed, each way.

    python3 bench/peers.py --peers FOLDER [--weights FILE] FILE...

FILE: raw float32 (.f32), bfloat16 (.bf16) or float64 (.f64). Integers are made here: the column
indices of the 7-point stencil on a cube of 96 points a side, rows in order. --weights: a file of
torch.save whose tensors become bfloat16, such as resemblyzer/pretrained.pt of the PyPI package
Resemblyzer (a speaker encoder). The peers are no part of what `make setup` installs:

    pip install --target FOLDER pcodec openzl zipnn blosc2

One thread, processor time, memcpy in the same turns, the best of --rounds. fpzip, zfp and SZ3,
which have C libraries alone, are in `codecs.py`. Writes bench/results/peers.json,
docs/results/peers.md and docs/results/peers.svg.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.metadata
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import results

from wirepress import api, arrays
from wirepress.commands import bench

PAGE = results.ROOT / "docs" / "results" / "peers.md"
SIZE = 16 << 20
RECIPES = ("planes", "bx", "shuffle+lz4", "shuffle+zstd:1", "lz4", "zstd:1")
Row = dict[str, Any]


@dataclasses.dataclass
class Data:
    name: str
    dtype: str
    array: np.ndarray  # bfloat16 as uint16


@dataclasses.dataclass
class Subject:
    name: str
    own: bool
    encode: Callable[[], Any]  # returns what has a length
    decode: Callable[[Any], Any]


# ---- data -----------------------------------------------------------------------------------


def stencil(side: int = 96) -> np.ndarray:
    i = np.arange(side**3, dtype=np.int64)
    x, y, z = i % side, i // side % side, i // side**2
    columns = [
        (i - side**2, z > 0),
        (i - side, y > 0),
        (i - 1, x > 0),
        (i, x >= 0),
        (i + 1, x < side - 1),
        (i + side, y < side - 1),
        (i + side**2, z < side - 1),
    ]
    table = np.stack([c for c, _ in columns], 1)
    return table[np.stack([there for _, there in columns], 1)].astype(np.int32)


def read(path: Path) -> Data:
    dtype = {".f32": "float32", ".f64": "float64", ".bf16": "bfloat16"}[path.suffix]
    item = np.uint16 if dtype == "bfloat16" else np.dtype(dtype)
    return Data(path.stem, dtype, np.fromfile(path, item, SIZE // np.dtype(item).itemsize))


def weights(path: Path) -> Data:
    import torch

    state = torch.load(path, map_location="cpu", weights_only=True)
    state = state.get("model_state", state)
    flat = torch.cat([t.float().flatten() for t in state.values() if t.ndim > 0])
    return Data("speaker encoder", "bfloat16", flat.bfloat16().view(torch.int16).numpy().view("u2"))


# ---- what is measured -----------------------------------------------------------------------


def own_subjects(data: Data) -> Iterator[Subject]:
    view = arrays.describe(data.array, data.dtype)
    frame, out = bytearray(data.array.nbytes + (1 << 20)), bytearray(data.array.nbytes)
    bits = {"float32": 23, "float64": 52, "bfloat16": 7}
    for name in RECIPES:
        recipe = f"bx:m={bits.get(data.dtype)}" if name == "bx" else name
        if data.dtype == "int32" and name in ("planes", "bx"):
            continue
        compressor = api.Compressor(recipe, threads=1)
        yield Subject(
            recipe,
            True,
            lambda c=compressor: memoryview(frame)[: c.compress_view_into(view, frame)],
            lambda code, c=compressor: (c.decompress(code, out), out)[1],
        )


def pcodec_subjects(data: Data) -> Iterator[Subject]:
    pcodec = importlib.import_module("pcodec")
    standalone = pcodec.standalone
    for level in (1, 8):
        config = pcodec.ChunkConfig(compression_level=level)
        yield Subject(
            f"pcodec {level}",
            False,
            lambda c=config: standalone.simple_compress(data.array, c),
            lambda code: standalone.simple_decompress(code).tobytes(),
        )


def zipnn_subjects(data: Data) -> Iterator[Subject]:
    if data.dtype not in ("float32", "bfloat16"):
        return
    coder = importlib.import_module("zipnn").ZipNN(
        input_format="byte", bytearray_dtype=data.dtype, threads=1
    )
    raw = data.array.tobytes()
    # it reorders the memory that it is given
    yield Subject("ZipNN", False, lambda: coder.compress(bytearray(raw)), coder.decompress)


def blosc_subjects(data: Data) -> Iterator[Subject]:
    blosc = importlib.import_module("blosc2")
    blosc.set_nthreads(1)
    size = data.array.itemsize
    for name, codec, filters in (
        ("Blosc2 shuffle+lz4", blosc.Codec.LZ4, blosc.Filter.SHUFFLE),
        ("Blosc2 bitshuffle+lz4", blosc.Codec.LZ4, blosc.Filter.BITSHUFFLE),
        ("Blosc2 shuffle+zstd", blosc.Codec.ZSTD, blosc.Filter.SHUFFLE),
    ):
        yield Subject(
            name,
            False,
            lambda c=codec, f=filters: blosc.compress2(
                data.array, typesize=size, codec=c, clevel=1, filters=[f], nthreads=1
            ),
            lambda code: blosc.decompress2(code, nthreads=1),
        )


def openzl_subjects(data: Data) -> Iterator[Subject]:
    zl = importlib.import_module("openzl.ext")
    split = {"float32": "Float32Deconstruct", "bfloat16": "BFloat16Deconstruct"}.get(data.dtype)
    for last in ("Huffman", "Zstd", "FieldLz"):
        if (last == "FieldLz") != (split is None):
            continue
        compressor = zl.Compressor()
        if split is not None:
            graph = getattr(zl.nodes, split)()(
                compressor,
                sign_frac=zl.graphs.Store()(compressor),
                exponent=getattr(zl.graphs, last)()(compressor),
            )
        else:
            graph = zl.graphs.FieldLz()(compressor)
            if data.dtype == "int32":
                graph = zl.nodes.DeltaInt()(compressor, graph)
        compressor.select_starting_graph(graph)

        def encode(compressor: Any = compressor) -> bytes:
            context = zl.CCtx()
            context.ref_compressor(compressor)
            context.set_parameter(zl.CParam.FormatVersion, zl.MAX_FORMAT_VERSION)
            return context.compress([zl.Input(zl.Type.Numeric, data.array)])

        name = f"OpenZL {'split+' if split else 'delta+' if data.dtype == 'int32' else ''}{last}"
        yield Subject(
            name,
            False,
            encode,
            lambda code: np.asarray(zl.DCtx().decompress(code)[0].content.as_nparray()).tobytes(),
        )


PEERS = {
    "pcodec": pcodec_subjects,
    "openzl": openzl_subjects,
    "zipnn": zipnn_subjects,
    "blosc2": blosc_subjects,
}


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = call()
    return time.process_time() - began, result


def measure(data: Data, subject: Subject, rounds: int) -> Row:
    raw = data.array.tobytes()
    to = memoryview(bytearray(raw))
    best = [float("inf")] * 3
    for turn in range(rounds + 1):
        copy, _ = seconds(lambda: to.__setitem__(slice(None), raw))
        encode, code = seconds(subject.encode)
        decode, back = seconds(lambda code=code: subject.decode(code))
        if turn == 0 and bytes(back) != raw:
            raise RuntimeError(f"{subject.name}: other bytes came back")
        best = [min(pair) for pair in zip(best, (copy, encode, decode), strict=True)]
    return {
        "data": data.name,
        "dtype": data.dtype,
        "subject": subject.name,
        "own": subject.own,
        "ratio": len(raw) / len(code),
        "encode_gbps": len(raw) / best[1] / 1e9,
        "decode_gbps": len(raw) / best[2] / 1e9,
        "memcpy_gbps": len(raw) / best[0] / 1e9,
    }


# ---- the page -------------------------------------------------------------------------------


def front(rows: list[Row], speed: str) -> list[Row]:
    """Rows that no other beats in ratio and speed."""

    def beaten(row: Row) -> bool:
        return any(
            (other["ratio"] >= row["ratio"] and other[speed] > row[speed])
            or (other["ratio"] > row["ratio"] and other[speed] >= row[speed])
            for other in rows
        )

    return [row for row in rows if not beaten(row)]


def ahead(rows: list[Row], speed: str) -> list[str]:
    """Peers above 1 GB/s than which none of ours is better both ways."""
    return [r["subject"] for r in front(rows, speed) if not r["own"] and r[speed] > 1]


def above(rows: list[Row], speed: str) -> list[str]:
    """Peers above 1 GB/s up and to the right of one of ours that no other of ours beats."""
    best = front([r for r in rows if r["own"]], speed)
    return [
        f"{peer['subject']} of `{own['subject']}`"
        for peer in rows
        for own in best
        if not peer["own"] and peer[speed] > max(1, own[speed]) and peer["ratio"] > own["ratio"]
    ]


def groups(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    for key in dict.fromkeys((r["data"], r["dtype"]) for r in rows):
        yield f"{key[0]}, {key[1]}", [r for r in rows if (r["data"], r["dtype"]) == key]


def page(rows: list[Row], machine: Row, versions: dict[str, str]) -> str:
    lines = [
        "# Lossless peers",
        "",
        "Written by `bench/peers.py`, which says what the data are. One thread, processor time, "
        "GB/s",
        "of raw bytes, 16 MiB at most. **Bold**: on the Pareto front, each way; no other has both",
        "a larger ratio and more speed. Ours have frames with checksums. *Up and to the right*: of",
        "one of ours that no other of ours beats both ways; *beside*: none of ours beats it.",
        "",
        f"{machine['cpu']}; raw numbers: `bench/results/peers.json`. "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + ".",
        "",
        "![ratio against speed](peers.svg)",
    ]
    for name, some in groups(rows):
        best = {s: front(some, s) for s in ("encode_gbps", "decode_gbps")}
        lines += ["", f"## {name}", "", "| | ratio | encode | decode |", "|---|---|---|---|"]
        for r in sorted(some, key=lambda r: -r["ratio"]):
            cells = [f"**{r[s]:.2f}**" if r in best[s] else f"{r[s]:.2f}" for s in best]
            label = f"`{r['subject']}`" if r["own"] else r["subject"]
            lines.append(f"| {label} | {r['ratio']:.3f} | {cells[0]} | {cells[1]} |")
        for s, way in (("encode_gbps", "Encoding"), ("decode_gbps", "Decoding")):
            over, past = (", ".join(names(some, s)) or "none" for names in (above, ahead))
            lines += [
                "",
                f"{way}, peers above 1 GB/s: up and to the right of one of ours: {over}; on the "
                f"front, beside ours: {past}.",
            ]
    return "\n".join(lines) + "\n"


def picture(rows: list[Row], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "peers", "svg.fonttype": "none"}
    from matplotlib import pyplot as plt

    named = list(groups(rows))
    figure, axes = plt.subplots(2, len(named), figsize=(4.2 * len(named), 8), squeeze=False)
    for column, (name, some) in enumerate(named):
        for line, speed in enumerate(("encode_gbps", "decode_gbps")):
            axis = axes[line][column]
            for r in some:
                axis.plot(
                    r[speed],
                    r["ratio"],
                    "o" if r["own"] else "x",
                    color="tab:blue" if r["own"] else "tab:orange",
                )
                axis.annotate(r["subject"], (r[speed], r["ratio"]), fontsize=6)
            edge = sorted(front(some, speed), key=lambda r: r[speed])
            axis.plot([r[speed] for r in edge], [r["ratio"] for r in edge], ":", color="gray")
            axis.set(
                xscale="log",
                title=name if line == 0 else "",
                xlabel=f"{speed.split('_')[0]}, GB/s",
                ylabel="ratio",
            )
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--peers", type=Path, help="a folder that has the peers")
    parser.add_argument("--weights", type=Path, help="a file of torch.save")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, help="the raw results, instead of bench/results")
    args = parser.parse_args()
    if args.peers:
        sys.path.append(str(args.peers))
    data = [read(path) for path in args.files]
    if args.weights:
        data.append(weights(args.weights))
    data.append(Data("stencil columns", "int32", stencil()))
    rows, versions = [], {}
    for one in data:
        subjects = list(own_subjects(one))
        for package, make in PEERS.items():
            try:
                subjects += make(one)
                versions[package] = importlib.metadata.version(package)
            except ImportError as error:
                print(f"without {package}: {error}", file=sys.stderr)
        for subject in subjects:
            try:
                row = measure(one, subject, args.rounds)
            except (RuntimeError, TypeError, ValueError) as error:
                if subject.own:
                    raise
                print(f"{subject.name} does not take {one.dtype}: {error}", file=sys.stderr)
                continue
            rows.append(row)
            print(
                f"{one.name:16} {one.dtype:9} {subject.name:24} ratio {row['ratio']:7.3f}  "
                f"C {row['encode_gbps']:6.2f}  D {row['decode_gbps']:6.2f} GB/s",
                flush=True,
            )
    results.write("peers", {"versions": versions, "rows": rows}, args.output)
    if not args.output:
        PAGE.write_text(page(rows, bench.machine(), versions))
        picture(rows, PAGE.with_suffix(".svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
