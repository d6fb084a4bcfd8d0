# SPDX-License-Identifier: Apache-2.0
"""`wirepress convert`: .safetensors files to .wps files (spec/wps.md) and back, byte for byte."""

from __future__ import annotations

import argparse
import functools
import os
from typing import Any, BinaryIO

from wirepress import wps
from wirepress.commands import files
from wirepress.commands.paths import PIPE, UsageError, label, write_all

_PLAIN = ".safetensors"


def _other_suffix(name: str) -> str:
    stem, suffix = os.path.splitext(name)
    if suffix not in (_PLAIN, wps.SUFFIX):
        raise UsageError(f"{name}: the name ends neither in {_PLAIN} nor in {wps.SUFFIX}")
    return stem + (wps.SUFFIX if suffix == _PLAIN else _PLAIN)


def _convert(
    name: str, source: BinaryIO, target: BinaryIO, args: argparse.Namespace
) -> dict[str, Any]:
    options, sizes = files.settings(args), [0]
    recipe = options.pop("recipe", None)

    def write(data: bytes | bytearray) -> None:
        write_all(target, data)
        sizes[0] += len(data)

    with files.progress_bar(name, source, args) as bar, open(os.dup(source.fileno()), "rb") as file:
        if name.endswith(_PLAIN):
            wps.pack(file, write, recipe, bar.update, **options)
        else:
            wps.unpack(file, write, bar.update, **options)
    raw, packed = os.fstat(source.fileno()).st_size, sizes[0]
    if name.endswith(wps.SUFFIX):
        raw, packed = packed, raw
    return {
        "raw_size": raw, "frame_size": packed, "recipe": recipe or "planes", "dtype": "bytes",
        "shape": None, "tensors": [],
    }  # fmt: skip


def convert_file(name: str, args: argparse.Namespace) -> files.Result:
    """Converts one file; its name says in which direction."""
    if name == PIPE:
        raise UsageError("convert reads files, not stdin")
    output = args.output or _other_suffix(name)
    _other_suffix(name)
    if output == PIPE or (os.path.exists(output) and not os.path.isfile(output)):
        raise UsageError(f"convert writes regular files; {label(output, 'stdout')} is none")
    files.check_names(name, output, args)
    convert = functools.partial(_convert, name, args=args)
    return files.make_file(name, output, args, convert, durable=True)
