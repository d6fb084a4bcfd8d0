# SPDX-License-Identifier: Apache-2.0
"""`wirepress inspect | codecs | engines | options`: what frames and the library contain."""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import os
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

from wirepress import _core, api, arrays
from wirepress.commands import series
from wirepress.errors import CorruptError, TruncatedError, WirepressError

_RAW, _LAST, _OWN = 1 << 31, 1 << 30, 1 << 29


def table(rows: Iterable[Sequence[Any]], head: Sequence[str], right: Iterable[str] = ()) -> str:
    """Columns of text; `right` names the columns whose cells are numbers."""
    text = [list(head)] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in text) for i in range(len(head))]
    align = [str.rjust if name in right else str.ljust for name in head]
    lines = ("  ".join(a(c, w) for a, c, w in zip(align, row, widths, strict=True)) for row in text)
    return "\n".join(line.rstrip() for line in lines)


def shape_text(shape: Sequence[int] | None) -> str:
    """A shape in a cell of a table."""
    return "-" if shape is None else "x".join(map(str, shape)) or "scalar"


def print_rest(count: int) -> None:
    """Says how many rows of `wirepress inspect` are left out."""
    if count > 0:
        print(f"... and {count:,} more; --blocks 0 prints all")


def as_json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


def print_json(value: Any) -> None:
    sys.stdout.write(as_json(value))


# ---- inspect --------------------------------------------------------------------------------


@dataclasses.dataclass
class Block:
    """A block's place in its frame (spec/frame.md, "Blocks"). Sizes are bytes."""

    index: int
    offset: int
    raw_size: int
    stored_size: int
    raw: bool
    checksum: str | None


def _exactly(file: BinaryIO, size: int, index: int) -> bytes:
    data = _upto(file, size)
    if len(data) < size:
        raise TruncatedError(f"block {index}: needs {size} bytes, the file has {len(data)} left")
    return data


def _skip(file: BinaryIO, size: int, index: int) -> None:
    while size:
        size -= len(_exactly(file, min(size, 1 << 20), index))


def blocks(file: BinaryIO, info: api.Info) -> Iterator[Block]:
    """Walks the blocks of a frame whose header was read; expands nothing."""
    offset, index, last = info.header_size, 0, info.n_blocks == 0
    while not last:
        (word,) = struct.unpack("<I", _exactly(file, 4, index))
        head_size = 4
        checksum = None
        if info.checksum:
            checksum = _exactly(file, 4, index)[::-1].hex()
            head_size += 4
        if info.raw_size is None:
            raw_size, last = info.block_size, bool(word & _LAST)
            if last:
                (raw_size,) = struct.unpack("<I", _exactly(file, 4, index))
                head_size += 4
        else:
            raw_size = min(info.block_size, info.raw_size - index * info.block_size)
            last = index + 1 == info.n_blocks
        stored_size = word & (_OWN - 1)
        if stored_size > raw_size:
            raise CorruptError(f"block {index}: stored size {stored_size} > raw size {raw_size}")
        _skip(file, stored_size, index)
        yield Block(index, offset, raw_size, stored_size, bool(word & _RAW), checksum)
        offset += head_size + stored_size
        index += 1


def _verify(file: BinaryIO) -> None:
    """Raises what is wrong with the content."""
    pieces = map(memoryview, iter(lambda: file.read(1 << 20), b""))
    with open(os.devnull, "wb") as nowhere:
        series.Expander(pieces, nowhere, {}).run()


def seekable(file: BinaryIO) -> BinaryIO:
    """The file, or what a pipe holds."""
    try:
        file.seek(0)
    except OSError:
        return io.BytesIO(file.read())
    return file


def _frame(file: BinaryIO) -> tuple[api.Info, list[Block]]:
    """The frame that begins here."""
    begin = file.tell()
    info = api.inspect(_head(file))
    file.seek(begin + info.header_size)
    return info, list(blocks(file, info))


def _head(file: BinaryIO) -> bytes:
    """As many bytes as a header may have, or all there are."""
    return _upto(file, _core.MAX_HEADER)


def _upto(file: BinaryIO, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


def _frames(file: BinaryIO) -> list[tuple[int, api.Info, list[Block]]]:
    """Place, header and blocks of every frame of a series."""
    found = []
    file.seek(len(series.HEAD))
    while True:
        at = file.tell()
        start = _upto(file, series.END_SIZE)
        file.seek(at)
        if start[:3] != b"WPR":
            raw_size = sum(block.raw_size for _, _, blocks in found for block in blocks)
            series.check_end(start, len(found), raw_size)
            file.seek(at + len(start))
            return found
        found.append((at, *_frame(file)))


def _look(file: BinaryIO, verify: bool) -> tuple[list[tuple[int, api.Info, list[Block]]], bool]:
    """The frames of a file, and whether they are a series."""
    head = _head(file)
    file.seek(0)
    if not head:
        raise TruncatedError("the input is empty")
    series.refuse_others(head)
    is_series = head[:3] == series.HEAD[:3]
    if is_series:
        series.check_head(head.ljust(4, b"\0"))
    found = _frames(file) if is_series else [(0, *_frame(file))]
    if file.read(1):
        raise CorruptError("there are bytes after the end of the frame")
    if verify:
        file.seek(0)
        _verify(file)
    return found, is_series


def _summary(info: api.Info, found: list[Block], verified: bool) -> dict[str, Any]:
    """The header, and what the walk adds to it."""
    raw_size = sum(block.raw_size for block in found)
    overhead = [8 if info.checksum else 4] * len(found)
    if info.streamed:
        overhead[-1] += 4
    frame_size = info.header_size + sum(block.stored_size for block in found) + sum(overhead)
    return dataclasses.asdict(info) | {
        "raw_size": raw_size,
        "frame_size": frame_size,
        "ratio": round(raw_size / frame_size, 4),
        "n_blocks": len(found),
        "n_raw_blocks": sum(block.raw for block in found),
        "verified": verified,
    }


def _print_summary(name: str, summary: dict[str, Any]) -> None:
    shape = summary["shape"]
    layout = "a stream" if summary["streamed"] else "sizes in the header"
    lines = {
        "recipe": summary["recipe"],
        "content": summary["dtype"] + ("" if shape is None else f", shape {tuple(shape)}"),
        "raw size": f"{summary['raw_size']:,}",
        "frame size": f"{summary['frame_size']:,}  ({summary['ratio']:.3f}x)",
        "blocks": f"{summary['n_blocks']:,} of {summary['block_size']:,} raw bytes, "
        f"{summary['n_raw_blocks']:,} stored raw",
        "checksums": "yes" if summary["checksum"] else "no",
        "header": f"version {summary['version']}, {summary['header_size']} bytes, {layout}",
    }
    if summary["verified"]:
        lines["verified"] = "every block expands"
    print(name)
    for key, value in lines.items():
        print(f"  {key:<11} {value}")


def _print_blocks(found: list[Block], limit: int) -> None:
    rows = [
        (
            block.index,
            block.offset,
            block.raw_size,
            block.stored_size,
            f"{block.raw_size / block.stored_size:.2f}" if block.stored_size else "-",
            "raw" if block.raw else "coded",
            block.checksum or "-",
        )
        for block in found[:limit]
    ]
    head = ("block", "offset", "raw", "stored", "ratio", "how", "checksum")
    print("\n" + table(rows, head, right=head[:5]))
    print_rest(len(found) - limit)


def _inspect_series(
    name: str, frames: list[tuple[int, api.Info, list[Block]]], args: argparse.Namespace
) -> dict[str, Any]:
    rows = [{"offset": at} | _summary(info, found, args.verify) for at, info, found in frames]
    raw_size = sum(row["raw_size"] for row in rows)
    size = len(series.HEAD) + sum(row["frame_size"] for row in rows) + series.END_SIZE
    ratio = raw_size / size
    if not args.json:
        print(
            f"{name}\n  a series of {len(rows)} frames, {raw_size:,} raw bytes in {size:,}", end=""
        )
        print(f"  ({ratio:.3f}x)" + ("; every block expands" if args.verify else ""))
        _print_frames(rows, args.blocks or len(rows))
    return {
        "file": name,
        "raw_size": raw_size,
        "frame_size": size,
        "ratio": round(ratio, 4),
        "verified": args.verify,
        "frames": rows,
    }


def _print_frames(rows: list[dict[str, Any]], limit: int) -> None:
    cells = [
        (
            i,
            row["offset"],
            row["raw_size"],
            row["frame_size"],
            f"{row['ratio']:.2f}",
            row["dtype"],
            shape_text(row["shape"]),
            row["recipe"],
        )
        for i, row in enumerate(rows[:limit])
    ]
    head = ("frame", "offset", "raw", "size", "ratio", "type", "shape", "recipe")
    print("\n" + table(cells, head, right=head[:5]))
    print_rest(len(rows) - limit)


def inspect_frames(name: str, file: BinaryIO, args: argparse.Namespace) -> dict[str, Any]:
    """Prints one frame or series, or with --json only returns it; `file` is at its beginning."""
    frames, is_series = _look(file, args.verify)
    if is_series:
        return _inspect_series(name, frames, args)
    _, info, found = frames[0]
    summary = {"file": name} | _summary(info, found, args.verify)
    if not args.json:
        _print_summary(name, summary)
        if found:
            _print_blocks(found, args.blocks or len(found))
    return summary | {"blocks": [dataclasses.asdict(block) for block in found]}


# ---- what there is --------------------------------------------------------------------------


def _range(param: api.Param) -> str:
    if param.words:
        return f"{param.name}={'|'.join(param.words)}"
    if param.real:
        return f"{param.name}=NUMBER"
    return f"{param.name}={param.min}..{param.max}"


def _default(param: api.Param) -> str:
    if param.words:
        return param.words[int(param.default)]
    return f"{param.default:g}" if param.real else str(param.default)


def _types(codec: api.Codec) -> str:
    """The types that a codec takes, in a few words."""
    if len(codec.dtypes) == len(arrays.DTYPES):
        return "any"
    if "bytes" not in codec.dtypes or len(codec.dtypes) < len(arrays.DTYPES) // 2:
        return " ".join(codec.dtypes)
    return "any but " + " ".join(name for name in arrays.DTYPES if name not in codec.dtypes)


def codecs(args: argparse.Namespace) -> int:
    if args.json:
        print_json([dataclasses.asdict(codec) for codec in api.codecs()])
        return 0
    rows = [
        (
            codec.name,
            f"0x{codec.id:02x}",
            "yes" if codec.lossless else "no",
            _types(codec),
            ", ".join(f"{k.engine}:{k.variant}" for k in codec.kernels if k.usable) or "none",
            codec.sentence,
        )
        for codec in api.codecs()
    ]
    print(table(rows, ("codec", "id", "lossless", "types", "kernels usable here", "what")))
    params = [
        (codec.name, _range(param), _default(param), param.sentence)
        for codec in api.codecs()
        for param in codec.params
    ]
    print("\n" + table(params, ("codec", "parameter", "default", "what")))
    print("\nA recipe joins codecs with +: shuffle+zstd:3, fre:m=6,ways=4.")
    print("A codec's first parameter needs no name.")
    return 0


def engines(args: argparse.Namespace) -> int:
    api.Compressor(engine=args.engine)  # sets its device up
    if args.json:
        print_json([dataclasses.asdict(engine) for engine in api.engines()])
        return 0
    rows = [
        (engine.name, "yes" if engine.available else "no", engine.reason or engine.sentence)
        for engine in api.engines()
    ]
    print(table(rows, ("engine", "here", "what")))
    for engine in api.engines():
        if engine.state:
            print(f"\n{engine.name}: {engine.state}")
        if engine.refusal:
            print(f"\n{engine.name}: {engine.refusal}; the cores do its jobs")
    return 0


def _option_rows() -> list[dict[str, Any]]:
    """Every option with its value as the environment has it; an invalid variable says so."""
    try:
        current = api.Compressor().option
    except WirepressError as error:
        print(f"wirepress: {error}", file=sys.stderr)
        current = None
    rows = []
    for option in api.options():
        value, origin = current(option.key) if current else (option.default, "default")
        rows.append(
            dataclasses.asdict(option)
            | {"variable": option.variable, "flag": option.flag, "value": value, "origin": origin}
        )
    return rows


def options(args: argparse.Namespace) -> int:
    rows = _option_rows()
    if args.json:
        print_json(rows)
        return 0
    cells = [
        (
            r["key"],
            r["type"],
            r["default"] or "-",
            r["value"] or "-",
            r["origin"],
            r["flag"] or "-",
            r["variable"],
        )
        for r in rows
    ]
    print(table(cells, ("option", "type", "default", "value", "origin", "flag", "variable")))
    print(
        "\nIn Python, options are keyword arguments; the mpi_ ones are flags of `wirepress run`,\n"
        "the torch_ ones fields of wirepress.torch.GroupOptions.\n"
    )
    print(table([(row["key"], row["sentence"]) for row in rows], ("option", "what")))
    return 0
