# SPDX-License-Identifier: Apache-2.0
"""Frames: `wirepress inspect --json` (with their blocks), `compress` and `decompress --json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wirepress import units
from wirepress.report import figures, parts
from wirepress.report.expect import ANY, Either, Maybe, Positive
from wirepress.report.parts import Cards, Column, Input, Plot, Section, Table, Words

WHAT = "frames (wirepress inspect, compress or decompress ... --json)"
ORDER = 70

_INSPECTED = {
    "file": str,
    "recipe": str,
    "dtype": str,
    "raw_size": int,
    "frame_size": Positive,
    "blocks": [{"index": int, "offset": int, "raw_size": int, "stored_size": int, "raw": ANY}],
}
_MADE = {
    "input": str,
    "output": str,
    "raw_size": int,
    "frame_size": int,
    "recipe": str,
    "dtype": str,
    "seconds": Maybe(float),
}
EXPECTED = [Either("blocks", _INSPECTED, _MADE)]


def matches(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and "frame_size" in first and "recipe" in first


def _ratio(thing: dict[str, Any], stored: str = "frame_size") -> float:
    return parts.quotient(thing["raw_size"], thing[stored])


def _block_parts(frames: dict[str, dict[str, Any]]) -> list[parts.Part]:
    lines = {
        name: [(b["offset"] / 1e6, _ratio(b, "stored_size")) for b in frame["blocks"]]
        for name, frame in frames.items() if frame["blocks"]
    }  # fmt: skip
    if not lines:
        return []
    figure = figures.lines(lines, figures.axis("MB from the frame's begin"), figures.axis("ratio"),
                           marks=max(map(len, lines.values())) < 100)  # fmt: skip
    columns = [
        Column("file"), Column("block", ""), Column("offset", ""), Column("raw", "bytes"),
        Column("stored", "bytes"), Column("ratio", "x"), Column("how"),
    ]  # fmt: skip
    rows = [
        [name, b["index"], b["offset"], b["raw_size"], b["stored_size"], _ratio(b, "stored_size"),
         "raw" if b["raw"] else "coded"]
        for name, frame in frames.items() for b in frame["blocks"]
    ]  # fmt: skip
    return [Plot("Ratio along the frame", {"": figure}), Table("Blocks", columns, rows)]


def _words(name: str, frame: dict[str, Any]) -> str:
    raw = sum(bool(b["raw"]) for b in frame.get("blocks", []))
    text = f"{name}: {units.size(frame['raw_size'])} in {units.size(frame['frame_size'])}, "
    text += f"{_ratio(frame):.3f} times smaller by {frame['recipe']}"
    if raw:
        text += f"; {raw:,} of {len(frame['blocks']):,} blocks did not shrink and lie raw"
    return text + "."


def build(inputs: Sequence[Input]) -> list[Section]:
    frames: dict[str, dict[str, Any]] = {}
    for given in inputs:
        for i, frame in enumerate(given.value):
            name = parts.file_name(frame.get("file") or frame["input"])
            name = f"{given.name}: {name}" if len(inputs) > 1 else name
            frames[f"{name} ({i + 1})" if name in frames else name] = frame
    columns = [
        Column("file"), Column("recipe"), Column("content"), Column("raw", "bytes"),
        Column("frame", "bytes"), Column("ratio", "x"), Column("seconds", "seconds"),
    ]  # fmt: skip
    rows = [
        [name, f["recipe"], f["dtype"], f["raw_size"], f["frame_size"], _ratio(f), f.get("seconds")]
        for name, f in frames.items()
    ]
    names = list(frames)[:40]
    figure = figures.grouped(names, {"ratio": [_ratio(frames[n]) for n in names]}, "ratio")
    raw = sum(frame["raw_size"] for frame in frames.values())
    stored = sum(frame["frame_size"] for frame in frames.values())
    cards = [("files", str(len(frames))), ("raw", units.size(raw)), ("frames", units.size(stored)),
             ("ratio", parts.times(parts.quotient(raw, stored)))]  # fmt: skip
    content: list[parts.Part] = [
        Cards(cards), Words("", [_words(name, frames[name]) for name in names]),
        Plot("How much each shrank", {"": figure}), Table("Frames", columns, rows),
    ]  # fmt: skip
    inspected = {name: frame for name, frame in frames.items() if "blocks" in frame}
    return [Section("Frames", [*content, *_block_parts(inspected)])]
