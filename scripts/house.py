#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/house.svg, the rooms and the arrows between them, from what the sources include.

  scripts/house.py            writes docs/house.svg
  scripts/house.py --arrows   prints each arrow with the first line that makes it

An arrow is an #include (C, C++) or an import of `wirepress` (Python) in another room's source, a
call of the generated registry, or a core that a codec's CMakeLists.txt names. Sources of tests are
not looked at, because tests may see every room. ROOMS and WAYS are the layout; an arrow that has no
way stops the script.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
DRAWING = ROOT / "docs" / "house.svg"
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)/[^/">]+[>"]', re.M)
# What CMake's registry.cpp defines and base/kernel.hpp declares, for the rooms that may see base/.
GENERATED = {"codecs": re.compile(r"\bregistry\(\)"), "engines": re.compile(r"\bengines\(\)")}
CALLERS = {"frame", "codecs", "engines", "pipeline"}
CORES = re.compile(r"\bCORES\b")
OF_TESTS = re.compile(r"(^|/)(tests?/|test_[^/]*$|conftest\.py$|[^/]*_test\.[ch]pp$)")


class Room(NamedTuple):
    left: int
    top: int
    width: int
    height: int
    holds: tuple[str, ...]
    colour: str


USERS, DOOR, LIBRARY, APART = "#e8f1fb", "#fff3d1", "#e7f5e9", "#f3f3f3"
ROOMS = {
    "bench": Room(20, 20, 960, 56, ("measurements, with raw results",), USERS),
    "examples": Room(20, 130, 180, 66, ("small programs",), USERS),
    "integrations": Room(
        290, 130, 420, 66, ("one folder per host: MPI, PyTorch, HDF5 ...",), USERS
    ),
    "python": Room(110, 256, 420, 66, ("bindings, package, command line, report pages",), USERS),
    "sim": Room(610, 256, 230, 66, ("plans and simulations",), USERS),
    "include": Room(
        20, 382, 960, 56, ("the public door: wirepress.h, wirepress.hpp, store.h",), DOOR
    ),
    "pipeline": Room(
        20, 508, 630, 66, ("blocks, threads, bypass, auto; joins frame, engines, codecs",), LIBRARY
    ),
    "store": Room(690, 508, 130, 66, ("the frame store",), LIBRARY),
    "frame": Room(20, 644, 150, 66, ("writes and checks", "frames"), LIBRARY),
    "engines": Room(230, 644, 180, 66, ("places where kernels", "run"), LIBRARY),
    "codecs": Room(470, 644, 180, 66, ("one folder per codec,", "with its kernels"), LIBRARY),
    "rtl": Room(850, 644, 130, 66, ("FPGA cores",), LIBRARY),
    "base": Room(20, 770, 800, 56, ("status, options, checked bytes, kernel door",), LIBRARY),
    "spec": Room(850, 770, 130, 66, ("formats, and an", "own decoder"), APART),
}
# Where an arrow goes: at this x from room to room if they lie below each other, else at this y.
WAYS = {
    ("bench", "python"): 245,
    ("bench", "integrations"): 500,
    ("bench", "sim"): 775,
    ("bench", "include"): 910,
    ("examples", "integrations"): 163,
    ("examples", "include"): 65,
    ("integrations", "python"): 400,
    ("integrations", "include"): 570,
    ("integrations", "sim"): 660,
    ("python", "sim"): 278,
    ("python", "include"): 320,
    ("sim", "python"): 300,
    ("pipeline", "include"): 335,
    ("store", "include"): 755,
    ("store", "base"): 705,
    ("rtl", "include"): 915,
    ("pipeline", "frame"): 95,
    ("pipeline", "base"): 200,
    ("pipeline", "engines"): 320,
    ("pipeline", "codecs"): 560,
    ("codecs", "rtl"): 677,
    ("frame", "base"): 95,
    ("engines", "base"): 320,
    ("codecs", "base"): 560,
    ("codecs", "engines"): 690,
}
LABELS = {
    ("pipeline", "include"): "implements",
    ("store", "include"): "implements",
    ("pipeline", "codecs"): "by the registry",
    ("pipeline", "engines"): "by the registry",
    ("codecs", "rtl"): "simulate",
}


class Arrow(NamedTuple):
    source: str
    target: str
    generated: bool  # by a name that CMake fills in, not by an include


def _imported(text: str, integrations: set[str]) -> Iterator[str]:
    """The rooms that a Python source imports from; the wheel joins three of them in one package."""
    for node in ast.walk(ast.parse(text)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for package, *modules in (name.split(".") for name in names):
            if package == "wirepress":
                module = modules[0] if modules else ""
                yield {"sim": "sim"}.get(
                    module, "integrations" if module in integrations else "python"
                )


def _included(room: str, text: str) -> Iterator[tuple[str, bool]]:
    for folder in INCLUDE.findall(text):
        target = folder.split("/")[0]
        yield ("include" if target == "wirepress" else target), False
    for target, call in GENERATED.items():
        if room in CALLERS and call.search(text):
            yield target, True


def arrows_of(path: Path, text: str, integrations: set[str]) -> set[Arrow]:
    """The arrows that one source makes, by its path from the root."""
    room = path.parts[0]
    if room not in ROOMS or OF_TESTS.search(path.as_posix()):
        return set()
    found: list[tuple[str, bool]] = []
    if path.suffix == ".py":
        found = [(target, False) for target in _imported(text, integrations)]
    elif path.suffix in {".c", ".h", ".cpp", ".hpp"}:
        found = [*_included(room, text)]
    elif path.name == "CMakeLists.txt" and room == "codecs" and CORES.search(text):
        found = [("rtl", True)]
    return {
        Arrow(room, target, generated)
        for target, generated in found
        if target in ROOMS and target != room
    }


def arrows(root: Path = ROOT) -> dict[Arrow, str]:
    """Every arrow of the tree, with the first file that makes it."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    paths = [Path(name) for name in sorted(listed.split("\n")) if name]
    integrations = {path.parts[1] for path in paths if path.parts[0] == "integrations"}
    found: dict[Arrow, str] = {}
    for path in paths:
        if path.suffix in {".py", ".c", ".h", ".cpp", ".hpp", ".txt"} and (root / path).is_file():
            text = (root / path).read_text()
            for arrow in sorted(arrows_of(path, text, integrations)):
                found.setdefault(arrow, path.as_posix())
    return found


def _ends(arrow: Arrow) -> tuple[int, int, int, int]:
    """From x, y to x, y."""
    source, target = ROOMS[arrow.source], ROOMS[arrow.target]
    try:
        way = WAYS[arrow.source, arrow.target]
    except KeyError:
        raise SystemExit(
            f"house: {arrow.source}/ now uses {arrow.target}/, for which the drawing has no way: "
            "mend the source (scripts/house.py --arrows), or give WAYS one"
        ) from None
    if source.top + source.height < target.top:
        return way, source.top + source.height, way, target.top
    if target.top + target.height < source.top:
        return way, source.top, way, target.top + target.height
    if source.left < target.left:
        return source.left + source.width, way, target.left, way
    return source.left, way, target.left + target.width, way


def _room(name: str, room: Room) -> str:
    middle = room.left + room.width / 2
    first = room.top + room.height / 2 - 7 * len(room.holds) + 4
    lines = [f'<text class="name" x="{middle:g}" y="{first:g}">{name}/</text>']
    lines += [
        f'<text x="{middle:g}" y="{first + 19 + 16 * n:g}">{escape(words)}</text>'
        for n, words in enumerate(room.holds)
    ]
    return (
        f'<rect x="{room.left}" y="{room.top}" width="{room.width}" height="{room.height}" rx="6" '
        f'fill="{room.colour}" stroke="#555"/>\n' + "\n".join(lines)
    )


def _arrow(arrow: Arrow) -> str:
    x1, y1, x2, y2 = _ends(arrow)
    dashes = ' stroke-dasharray="6 4"' if arrow.generated else ""
    line = f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"{dashes} marker-end="url(#head)"/>'
    label = LABELS.get((arrow.source, arrow.target))
    if label and x1 == x2:
        line += f'\n<text class="label" x="{x1 + 8}" y="{(y1 + y2) / 2 + 4:g}">{label}</text>'
    elif label:
        middle = (x1 + x2) / 2
        line += f'\n<text class="label middle" x="{middle:g}" y="{y1 - 7}">{label}</text>'
    return line


HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 890" width="1000" height="890">
<!-- Written by scripts/house.py from includes and imports; do not edit. -->
<style>
text { font: 14px sans-serif; fill: #222; text-anchor: middle; }
text.name { font-weight: bold; font-size: 16px; }
text.label, text.key { font-size: 13px; fill: #444; text-anchor: start; }
text.middle { text-anchor: middle; }
line { stroke: #444; stroke-width: 1.6; }
</style>
<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">
<path d="M0,0 L9,4 L0,8 z" fill="#444"/></marker></defs>
<rect width="1000" height="890" fill="#fff"/>
"""
KEY = """<line x1="20" y1="856" x2="70" y2="856" marker-end="url(#head)"/>
<text class="key" x="80" y="861">includes or imports</text>
<line x1="230" y1="856" x2="280" y2="856" stroke-dasharray="6 4" marker-end="url(#head)"/>
<text class="key" x="290" y="861">by a name that CMake fills in</text>
<text class="key" x="690" y="861">tests/ may use every room</text>
</svg>
"""


def drawing(found: set[Arrow]) -> str:
    lines = [_arrow(arrow) for arrow in sorted(found)]
    boxes = [_room(name, room) for name, room in ROOMS.items()]
    return HEAD + "\n".join([*lines, *boxes]) + "\n" + KEY


def main() -> None:
    found = arrows()
    if sys.argv[1:] == ["--arrows"]:
        for arrow, path in sorted(found.items()):
            way = "names" if arrow.generated else "uses"
            print(f"{arrow.source} {way} {arrow.target}: {path}")
    else:
        DRAWING.write_text(drawing(set(found)))


if __name__ == "__main__":
    main()
