# SPDX-License-Identifier: Apache-2.0
"""`wirepress bench FILE...`: codec x kernel on the user's own data, against memcpy.

Each row's compression and expansion are timed in turns with a copy, so that whatever else the
machine does meanwhile hits all three; the best of the turns counts. The copy is the same for all
rows, of as many bytes as the largest file has. Its best of all rows is what speeds are divided by,
so these ratios order as the speeds do. Buffers are made before and reused.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from wirepress import api, arrays
from wirepress.commands import files, paths, plot, show
from wirepress.commands.needs import need
from wirepress.commands.speeds import Row
from wirepress.errors import ParameterError

MIN_TURN = 0.005  # seconds that one timing lasts at least, so that the clock does not matter
MIN_TURNS = 3


@dataclasses.dataclass
class Subject:
    """What a row measures: how to compress (returning the size) and to expand again."""

    recipe: str
    kernel: str
    compress: Callable[[], int]
    decompress: Callable[[], Any]
    check: Callable[[], None]  # raises unless what was expanded is what was compressed


# ---- timing ---------------------------------------------------------------------------------


def time_of(call: Callable[[], Any]) -> float:
    """Seconds per call; short calls are repeated until they last MIN_TURN together."""
    n, spent = 0, 0.0
    began = time.perf_counter()
    while spent < MIN_TURN:
        call()
        n += 1
        spent = time.perf_counter() - began
    return spent / n


class Copy:
    """memcpy of `size` bytes: one yardstick for all rows of a run, timed in turns with each."""

    def __init__(self, size: int) -> None:
        self._size, self._best = size, float("inf")
        self._from = memoryview(b"\1" * size)  # not zeros, of which the system keeps one page
        self._to = memoryview(bytearray(self._from))

    def _copy(self) -> None:
        self._to[:] = self._from

    def time(self) -> None:
        self._best = min(self._best, time_of(self._copy))

    @property
    def gbps(self) -> float:
        """The best so far, in 10^9 bytes a second."""
        return self._size / self._best / 1e9


def _clocks() -> int:
    """Of all engines together; one is measured at a time."""
    return sum(api.engine_clocks(engine.name) for engine in api.engines())


def measure(
    name: str, data: memoryview, subject: Subject, seconds: float, copy: Copy | None = None
) -> Row:
    """Times one subject for about `seconds`, in turns with a copy where one is given."""
    clocks = [_clocks()]
    frame_size = subject.compress()
    clocks.append(_clocks())
    subject.decompress()
    clocks.append(_clocks())
    subject.check()
    calls = (subject.compress, subject.decompress)
    best = [float("inf")] * len(calls)
    turns, end = 0, time.perf_counter() + seconds
    while turns < MIN_TURNS or time.perf_counter() < end:
        if copy:
            copy.time()
        best = [min(b, time_of(call)) for b, call in zip(best, calls, strict=True)]
        turns += 1
    compress, decompress = (len(data) / second / 1e9 for second in best)
    ratio = len(data) / frame_size
    return Row(
        name,
        subject.recipe,
        subject.kernel,
        len(data),
        frame_size,
        ratio,
        compress,
        decompress,
        turns,
        clocks[1] - clocks[0],
        clocks[2] - clocks[1],
    )


# ---- subjects -------------------------------------------------------------------------------


def _require_same(a: Any, b: Any, what: str) -> None:
    if a != b:
        raise RuntimeError(f"{what}: expanded to other bytes than were compressed")


def frame_subject(
    data: memoryview, view: arrays.View, recipe: str, engine: str = "auto", **options: api.Value
) -> Subject:
    """wirepress with these settings; `view` says what the data are."""
    compressor = api.Compressor(recipe, engine=engine, **options)
    frame = bytearray(compressor.bound(len(data)))
    out = bytearray(len(data))
    size = 0

    def compress() -> int:
        nonlocal size
        size = compressor.compress_view_into(view, frame)
        return size

    def decompress() -> None:
        compressor.decompress(memoryview(frame)[:size], out)

    def check() -> None:
        if all(codec.lossless for codec in codecs_of(recipe)):
            _require_same(out, data, recipe)

    return Subject(recipe, engine, compress, decompress, check)


def plain_subject(
    data: memoryview, recipe: str, kernel: str, compress: Any, decompress: Any
) -> Subject:
    """Another library, by its functions from bytes to bytes."""
    made: list[Any] = [b"", b""]

    def run_compress() -> int:
        made[0] = compress(data)
        return len(made[0])

    def run_decompress() -> None:
        made[1] = decompress(made[0])

    def check() -> None:
        _require_same(made[1], data, kernel)

    return Subject(recipe, kernel, run_compress, run_decompress, check)


def codecs_of(recipe: str) -> list[api.Codec]:
    names = {stage.split(":")[0] for stage in recipe.split("+")}
    return [codec for codec in api.codecs() if codec.name in names]


def _is_of(kernel: api.Kernel, engine: str) -> bool:
    """Whether it is a kernel of that engine, or the one that is named."""
    return engine in (kernel.engine, f"{kernel.engine}:{kernel.variant}")


def _engines_of(recipe: str, engine: str) -> list[str]:
    """The kernels on `engine` of the recipe's codec that has most of them; the other codecs take
    their best where they lack one of these."""
    usable = [
        [k for k in codec.kernels if k.usable and _is_of(k, engine)] for codec in codecs_of(recipe)
    ]
    kernels = max(usable, key=len, default=[])
    return [f"{kernel.engine}:{kernel.variant}" for kernel in kernels] or [engine]


def _shrinks(recipe: str) -> bool:
    zeros = bytes(1 << 16)
    for dtype in ("float32", "int32"):  # some take floats, some integers
        with contextlib.suppress(ParameterError):
            return len(api.compress(zeros, recipe, dtype=dtype, probe=False)) < len(zeros)
    return True


def _default_recipes(dtype: int, engine: str) -> Iterator[str]:
    """The engine's codecs: alone, or what only prepares data before the default recipe."""
    default = next(option.default for option in api.options() if option.key == "recipe")
    for codec in api.codecs():
        if not any(_is_of(kernel, engine) for kernel in codec.kernels):
            continue
        if not codec.lossless and dtype == 0:
            print(
                f"wirepress: {codec.name}: left out, opaque bytes must not be changed "
                "(--dtype says what they are)",
                file=sys.stderr,
            )
        elif codec.name == "store" or _shrinks(codec.name):
            yield codec.name
        else:
            yield f"{codec.name}+{default}"


def _plain(data: memoryview) -> Iterator[Subject]:
    """The plain libraries through their Python packages, where installed."""
    import zlib

    yield plain_subject(
        data, "zlib:6", "plain zlib", lambda d: zlib.compress(d, 6), zlib.decompress
    )
    try:
        import lz4.block

        yield plain_subject(data, "lz4", "plain lz4", lz4.block.compress, lz4.block.decompress)
    except ImportError:
        print("wirepress: --plain: package lz4 is not installed", file=sys.stderr)
    try:
        import zstandard

        packer, unpacker = zstandard.ZstdCompressor(level=1), zstandard.ZstdDecompressor()
        yield plain_subject(data, "zstd:1", "plain zstd", packer.compress, unpacker.decompress)
    except ImportError:
        print("wirepress: --plain: package zstandard is not installed", file=sys.stderr)


# ---- the command ----------------------------------------------------------------------------


def read_sample(name: str, args: argparse.Namespace) -> tuple[memoryview, arrays.View]:
    """A file's bytes, at most --limit of them, and what they are."""
    view = files.read_sample(name, args.dtype, args.limit << 20)
    return memoryview(view.buffer), view


def _try_type(recipe: str, engine: str, view: arrays.View) -> None:
    """Raises ParameterError where the recipe does not take this type."""
    api.Compressor(recipe, engine=engine).compress(b"", dtype=arrays.DTYPES[view.dtype])


def _size_of(name: str, args: argparse.Namespace) -> int:
    """Bytes of a file that are measured; 0 where only reading it tells."""
    path = Path(name)
    return min(path.stat().st_size, args.limit << 20) if path.is_file() else 0


def _measure_files(args: argparse.Namespace) -> Iterator[tuple[Row, Copy]]:
    copy: Copy | None = None
    for name in args.files:
        data, view = read_sample(name, args)
        copy = copy or Copy(max(len(data), *(_size_of(each, args) for each in args.files)))
        for subject in _subjects(os.path.basename(name), data, view, args):
            yield measure(os.path.basename(name), data, subject, args.seconds, copy), copy


def _subjects(
    label: str, data: memoryview, view: arrays.View, args: argparse.Namespace
) -> Iterator[Subject]:
    """What is measured on a file's data."""
    for recipe in args.recipes or _default_recipes(view.dtype, args.engine):
        for engine in _engines_of(recipe, args.engine):
            try:
                subject = frame_subject(data, view, recipe, engine, threads=args.threads)
                _try_type(recipe, engine, view)
            except ParameterError as error:
                if args.recipes:
                    raise
                print(f"wirepress: {label}: {recipe} left out: {error}", file=sys.stderr)
                break
            yield subject
    if args.plain:
        yield from _plain(data)


_VECTORS = {"avx512_vbmi2": "AVX-512", "avx2": "AVX2"}  # as the library's kernels ask for


def machine() -> dict[str, Any]:
    """Where a measurement was made."""
    about: dict[str, str] = {}
    with contextlib.suppress(OSError):  # of the first processor
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        about = {key.strip(): value.strip() for key, _, value in (x.partition(":") for x in lines)}
    flags = set(about.get("flags", "").split())
    # A codec's kernels are twice as fast with the wider ones.
    vectors = next((name for flag, name in _VECTORS.items() if flag in flags), "")
    return {
        "cpu": ", ".join(filter(None, [about.get("model name") or platform.processor(), vectors])),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def provenance() -> dict[str, Any]:
    """Where, when, by what and how a report was made."""
    from wirepress import __version__

    return {
        "wirepress": __version__,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": shlex.join(sys.argv),
        "machine": machine(),
    }


def _report(rows: list[Row], memcpy_gbps: float, args: argparse.Namespace) -> dict[str, Any]:
    return provenance() | {
        "threads": args.threads,
        "memcpy_gbps": memcpy_gbps,
        "rows": [row.as_json(memcpy_gbps) for row in rows],
    }


def print_table(rows: list[Row], memcpy_gbps: float) -> None:
    head = ("file", "recipe", "kernel", "ratio", "comp GB/s", "x memcpy", "exp GB/s", "x memcpy")
    counted = any(row.compress_clocks or row.decompress_clocks for row in rows)
    if counted:
        head += ("comp B/clock", "exp B/clock")
    cells = [
        (
            row.file,
            row.recipe,
            row.kernel,
            f"{row.ratio:.3f}",
            f"{row.compress_gbps:.3f}",
            f"{row.compress_gbps / memcpy_gbps:.3f}",
            f"{row.decompress_gbps:.3f}",
            f"{row.decompress_gbps / memcpy_gbps:.3f}",
            *(row.bytes_a_clock() if counted else ()),
        )
        for row in rows
    ]
    print(show.table(cells, head, right=head[3:]))
    print(f"memcpy: {memcpy_gbps:.3f} GB/s, one figure for all rows")


def main(args: argparse.Namespace) -> int:
    api.engine_clocks(args.engine.partition(":")[0])  # it is known
    if args.plot:
        need("matplotlib", "--plot")  # before minutes of measuring
    bar = files.bar_of_rows(args)
    rows = []
    for row, copy in _measure_files(args):  # noqa: B007  (the copy's speed is known at the end)
        rows.append(row)
        bar.set_postfix_str(f"{row.file} {row.recipe} {row.kernel}")
        bar.update(1)
    bar.close()
    print_table(rows, copy.gbps)
    if args.json:
        paths.write_text(args.json, show.as_json(_report(rows, copy.gbps, args)))
    if args.plot:
        plot.scatter(rows, copy.gbps, args.plot, machine()["cpu"], args.threads)
    return 0


def add_parser(parsers: Any) -> None:
    parser = parsers.add(
        "bench",
        "measure codecs on your files: ratio, and speed against memcpy",
        main,
        "  wirepress bench field.npy\n"
        "  wirepress bench log.txt --recipes lz4 lz4:9 zstd:1 zstd:9 --plot log.png\n"
        "  wirepress bench field.raw --dtype float32 --plain --json field.json\n"
        "  wirepress bench field.npy --engine rtl --recipes fre:5 --limit 4\n",
    )
    parser.add_argument("files", nargs="+", type=paths.file_name, metavar="FILE", help="- is stdin")
    parser.add_argument(
        "--recipes", nargs="+", metavar="RECIPE", help="instead of every codec x kernel"
    )
    parser.add_argument("--dtype", metavar="NAME", help="what the elements of raw files are")
    parser.add_argument(
        "--engine",
        default="cpu",
        metavar="NAME",
        help="whose kernels (cpu); rtl simulates the FPGA cores and also says bytes a clock",
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of the library (1)")
    parser.add_argument(
        "--seconds",
        type=files.duration,
        default=0.5,
        metavar="S",
        help="that each row may take (0.5)",
    )
    parser.add_argument(
        "--limit",
        type=files.whole(1),
        default=256,
        metavar="MIB",
        help="of each file at most (256)",
    )
    parser.add_argument(
        "--plain", action="store_true", help="also zlib, lz4 and zstd without frames, from PyPI"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    parser.add_argument("--json", metavar="FILE", help="write what was measured")
    parser.add_argument(
        "--plot", metavar="FILE", help="draw ratio and speed (.png, .svg; needs matplotlib)"
    )
