#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the laws of the house that a compiler does not (docs/design.md); prints what breaks them.

1. Includes point downwards, never sideways: a room may include only what ALLOWED says, and a folder
   of codecs/, engines/ or integrations/ nothing of its neighbours.
2. Every source file has an SPDX line: the first, or the second after #!.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOOR = {"wirepress"}  # include/wirepress
MIDDLE = {"base"}
ALLOWED = {
    "base": {"base"},
    "frame": MIDDLE | {"frame"},
    "codecs": MIDDLE | {"codecs"},
    "engines": MIDDLE | {"engines"},
    "pipeline": MIDDLE | {"frame", "codecs", "engines", "pipeline"} | DOOR,
    "include": DOOR,
    **{
        room: DOOR | {room}
        for room in ("integrations", "store", "python", "sim", "bench", "examples")
    },
}
ROOMS = {*ALLOWED, *DOOR, "tests"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[>"]')
SOURCES = {".c", ".h", ".cc", ".cpp", ".hpp", ".cu", ".cuh", ".sv", ".py", ".sh", ".cmake"}


def include_law(path: Path, lines: list[str]) -> Iterator[str]:
    room = path.parts[0]
    if room not in ALLOWED:
        return
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        parts = Path(match[1]).parts if match else ()
        if len(parts) < 2 or parts[0] not in ROOMS:
            continue
        if parts[0] not in ALLOWED[room]:
            yield f"{path}:{number}: {room}/ must not include {match[1]}"
        elif (
            parts[0] == room in ("codecs", "engines", "integrations") and parts[1] != path.parts[1]
        ):
            yield f"{path}:{number}: {path.parent} must not include its neighbour {match[1]}"


def spdx_law(path: Path, lines: list[str]) -> Iterator[str]:
    script = bool(lines) and lines[0].startswith("#!")
    if not (script or path.suffix in SOURCES or path.name == "CMakeLists.txt") or not lines:
        return
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[: 1 + script]):
        yield f"{path}:1: the SPDX line is missing"


def main() -> int:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    broken = []
    for name in filter(None, listed.decode().split("\0")):
        path = Path(name)
        try:
            lines = (ROOT / path).read_text().splitlines()
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # data; or deleted and not yet committed
        for law in (include_law, spdx_law):
            broken += law(path, lines)
    print("\n".join(broken) or "laws: kept")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
