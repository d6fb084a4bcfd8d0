# SPDX-License-Identifier: Apache-2.0
"""What `wirepress inspect` prints of .wps files and of patches: their tensors, a line each."""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Callable
from typing import Any, BinaryIO

from wirepress import patches, wps
from wirepress.commands.show import print_rest, shape_text, table
from wirepress.errors import FrameError

Report = dict[str, Any]


def inspector(head: bytes) -> Callable[[str, BinaryIO, argparse.Namespace], Report] | None:
    """The function for a file whose first four bytes are `head`; None: neither format."""
    return {wps.MAGIC: _wps, patches.MAGIC: _patch}.get(head)


def _wps(name: str, file: BinaryIO, args: argparse.Namespace) -> Report:
    reader = wps.Reader(io.BufferedReader(file))  # type: ignore[type-var]  # raw, or in memory
    if args.verify:
        for tensor in reader.tensors:
            reader.read(tensor.name)
    rows = [
        {
            "name": tensor.name,
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "raw_size": tensor.size,
            "stored_size": reader.stored_size(tensor.name),
        }
        for tensor in reader.tensors
    ]
    report = _report(name, file, "wps", rows, args)
    if not args.json:
        print(_first_line(report, "tensors", "every one expands"))
        _print(rows, ("dtype", "shape", "raw_size", "stored_size"), args)
    return report


def _patch(name: str, file: BinaryIO, args: argparse.Namespace) -> Report:
    patch = patches.Patch(file.read())
    rows = []
    for entry in patch.entries:
        if args.verify:
            _verify(patch, entry)
        rows.append(
            {
                "name": entry.name,
                "op": entry.op,
                "dtype": entry.dtype,
                "shape": list(entry.shape),
                "raw_size": entry.raw_size,
                "stored_size": sum(size for size, _ in entry.frames),
            }
        )
    versions = {
        "base_version": patch.base_version,
        "target_version": patch.target_version,
        "base": patch.base,
        "target": patch.target,
    }
    report = _report(name, file, "patch", rows, args) | versions
    if not args.json:
        print(_first_line(report, "tensors of a patch", "every frame expands"))
        print(f"  base    version {patch.base_version}, digest {patch.base}")
        print(f"  target  version {patch.target_version}, digest {patch.target}")
        _print(rows, ("op", "dtype", "shape", "raw_size", "stored_size"), args)
    return report


def _verify(patch: patches.Patch, entry: patches.Entry) -> None:
    """Expands a tensor's frames; what they lead to is known where the base is at hand alone."""
    if entry.op == "full":
        patch.apply(entry, None)  # names the tensor where it is damaged
        return
    try:
        if entry.op == "ulp":
            patch.steps(entry)
        elif entry.op == "set":
            patch.words(entry)
    except FrameError as error:
        raise type(error)(f"tensor {entry.name}: {error}") from None


def _report(
    name: str, file: BinaryIO, kind: str, rows: list[Report], args: argparse.Namespace
) -> Report:
    raw_size, size = sum(row["raw_size"] for row in rows), file.seek(0, os.SEEK_END)
    return {
        "file": name,
        "format": kind,
        "raw_size": raw_size,
        "file_size": size,
        "ratio": round(raw_size / size, 4),
        "verified": args.verify,
        "tensors": rows,
    }


def _first_line(report: Report, noun: str, verified: str) -> str:
    text = f"{report['file']}\n  {len(report['tensors'])} {noun}, {report['raw_size']:,} raw bytes"
    text += f" in {report['file_size']:,}  ({report['ratio']:.3f}x)"
    return text + (f"; {verified}" if report["verified"] else "")


def _print(rows: list[Report], keys: tuple[str, ...], args: argparse.Namespace) -> None:
    limit = args.blocks or len(rows)
    cells = [
        [shape_text(row[key]) if key == "shape" else row[key] for key in ("name", *keys)]
        for row in rows[:limit]
    ]
    heads = {"dtype": "type", "raw_size": "raw", "stored_size": "stored"}
    head = ["tensor", *(heads.get(key, key) for key in keys)]
    if cells:
        print("\n" + table(cells, head, right=("raw", "stored")))
    print_rest(len(rows) - limit)
