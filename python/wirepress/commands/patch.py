# SPDX-License-Identifier: Apache-2.0
"""`wirepress diff`, `patch` and `fold`: patches of .safetensors files (spec/patch.md)."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from typing import Any

from wirepress import patches
from wirepress.commands import files
from wirepress.commands.paths import UsageError, file_name


def _options(args: argparse.Namespace, *sources: str) -> dict[str, Any]:
    """The library's; UsageError where the result would be the end of one of the sources."""
    if args.output == "-":
        raise UsageError("the result is written aside and renamed when it is whole: give -o a file")
    if os.path.exists(args.output) and not args.force:
        raise UsageError(f"{args.output} exists already; -f replaces it")
    for name in sources:
        if os.path.exists(name) and os.path.realpath(name) == os.path.realpath(args.output):
            raise UsageError(f"{args.output} is the source itself; give the result another name")
    return files.settings(args)


def _diff(args: argparse.Namespace) -> dict[str, Any]:
    base, target = args.versions
    size = patches.diff_files(
        args.old,
        args.new,
        args.output,
        base=base,
        target=target,
        op=args.op,
        **_options(args, args.old, args.new),
    )
    return {"output": args.output, "size": size, "of": os.path.getsize(args.new)}


def _patch(args: argparse.Namespace) -> dict[str, Any]:
    version = patches.patch_file(args.base, args.patch, args.output, **_options(args, args.patch))
    return {"output": args.output, "version": version}


def _fold(args: argparse.Namespace) -> dict[str, Any]:
    size = patches.fold_files(
        args.first, args.second, args.output, **_options(args, args.first, args.second)
    )
    return {"output": args.output, "size": size}


def _sentence(result: dict[str, Any]) -> str:
    text = str(result["output"])
    if "version" in result:
        return f"{text}: version {result['version']}"
    of = f", for a file of {result['of']:,}" if "of" in result else ""
    return f"{text}: {result['size']:,} bytes{of}"


def _command(act: Callable[[argparse.Namespace], dict[str, Any]]) -> Any:
    def command(args: argparse.Namespace) -> int:
        result = act(args)
        if args.json:
            print(json.dumps(result))
        elif not args.quiet:
            print(_sentence(result))
        return 0

    return command


def _versions(text: str) -> tuple[int, int]:
    base, _, target = text.partition(":")
    if not (base.isdecimal() and target.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not BASE:TARGET, such as 3:4")
    return int(base), int(target)


def add_parsers(parsers: Any, add_options: Callable[..., None]) -> None:
    """Adds the three commands; `add_options` those of the library."""
    for name, sentence, act, places, example in (
        ("diff", "write the patch between two .safetensors files", _diff, ("old", "new"),
         "  wirepress diff step3.safetensors step4.safetensors -o step4.wpp --versions 3:4\n"),
        ("patch", "make the next .safetensors file of one and a patch", _patch, ("base", "patch"),
         "  wirepress patch step3.safetensors step4.wpp -o step4.safetensors\n"),
        ("fold", "join two patches that follow each other", _fold, ("first", "second"),
         "  wirepress fold step4.wpp step5.wpp -o step3-to-5.wpp\n"),
    ):  # fmt: skip
        parser = parsers.add(name, sentence, _command(act), example)
        for place in places:
            parser.add_argument(place, type=file_name, metavar=place.upper())
        parser.add_argument(
            "-o", "--output", required=True, type=file_name, metavar="FILE", help="the result"
        )
        parser.add_argument("-f", "--force", action="store_true", help="replace the result")
        parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
        parser.add_argument("--json", action="store_true", help="print JSON")
        if name == "diff":
            parser.add_argument(
                "--versions", type=_versions, default=(0, 1), metavar="BASE:TARGET",
                help="numbers that the patch carries (0:1)",
            )  # fmt: skip
            parser.add_argument(
                "--op", choices=patches.OPS[1:], default="ulp",
                help="steps (ulp), new words and places (set), or whole tensors (full)",
            )  # fmt: skip
        add_options(parser, but=("recipe", "checksum", "probe"))
