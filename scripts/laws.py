#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the laws of the house that a compiler does not (docs/design.md); prints what breaks them.

1. Includes point downwards, never sideways: a room may include only what ALLOWED says, and a folder
   of codecs/, engines/ or integrations/ nothing of its neighbours. codecs/common/ is what any codec
   may include.
2. Imports of the package wirepress go from room to room as IMPORTS says, in functions and for
   types, too, and no modules import each other in a circle. What tests import is free.
3. Every source file has an SPDX line: the first, or the second after #!.
4. Every source file says behind that line what it is for. A .cpp file may leave that to the header
   of its name, a test to the name of what it tests, and a kernel to its path, codecs/CODEC/KERNEL.
5. A header of more than 300 lines says in its head why it is one: "Long because ...".
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DOOR = {"wirepress"}  # include/wirepress
MIDDLE = {"base"}
ALLOWED = {
    "base": {"base"},
    "frame": MIDDLE | {"frame"},
    "engines": MIDDLE | {"engines"},
    "codecs": MIDDLE | {"engines", "codecs"},
    "pipeline": MIDDLE | {"frame", "codecs", "engines", "pipeline"} | DOOR,
    "include": DOOR,
    "store": MIDDLE | {"store"} | DOOR,
    **{room: DOOR | {room} for room in ("integrations", "python", "sim", "bench", "examples")},
}
# Rooms of folders that do not see each other, with the folder that all of them see.
FOLDERS = {"codecs": "common", "engines": "", "integrations": ""}
# Rooms of the package, by how the names of their modules begin; the longest beginning counts. A
# folder of integrations/ is a room of its own.
LIBRARY, LAUNCH, COMMANDS = "wirepress", "wirepress.launch", "wirepress.commands"
SIM, REPORT, HOST = "wirepress.sim", "wirepress.report", "an integration"
IMPORTS = {
    LIBRARY: {LIBRARY},
    LAUNCH: {LIBRARY, LAUNCH},
    COMMANDS: {LIBRARY, COMMANDS},
    SIM: {LIBRARY, LAUNCH, COMMANDS, SIM},
    REPORT: {LIBRARY, LAUNCH, COMMANDS, SIM, REPORT},
    "wirepress.commands.cli": {LIBRARY, LAUNCH, COMMANDS, SIM, REPORT},
    "wirepress.__main__": {LAUNCH, COMMANDS, "wirepress.commands.cli"},
    HOST: {LIBRARY, SIM},
    "spec": set[str](),
    "examples": {LIBRARY, HOST},
}
EXTENSION = "wirepress._core"
OF_TESTS = re.compile(r"(^|/)(tests/|test_[^/]*$|conftest\.py$)")
ROOMS = {*ALLOWED, *DOOR, "tests"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[>"]')
MOST_LINES = 300  # of a header
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
        elif parts[0] == room in FOLDERS and parts[1] not in {path.parts[1], FOLDERS[room]}:
            yield f"{path}:{number}: {path.parent} must not include its neighbour {match[1]}"


class Import(NamedTuple):
    line: int
    module: str


def module_of(path: Path) -> str:
    """The name in the package wirepress; "": it is in no package."""
    *folders, last = path.with_suffix("").parts
    names = [*folders, last] if last != "__init__" else folders
    if names[:2] == ["python", "wirepress"]:
        return ".".join(names[1:])
    if names[:1] == ["sim"]:
        return ".".join(["wirepress", *names])
    return ".".join(["wirepress", *names[1:]]) if names[:1] == ["integrations"] else ""


def imports_of(path: Path, text: str, modules: Collection[str]) -> Iterator[Import]:
    """Modules of the package that a source imports, wherever in it."""
    package = module_of(path.parent / "__init__.py").split(".")
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join(filter(None, [*above, node.module]))
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            while name and name not in modules:  # a function, say, of the module
                name = name.rpartition(".")[0]
            if name:
                yield Import(node.lineno, name)


def room_of(module: str, path: Path | None = None) -> str:
    """A key of IMPORTS, or an integration's name; "": any module may be imported there."""
    if not module:
        return path.parts[0] if path and path.parts[0] in IMPORTS else ""
    found = max((r for r in IMPORTS if f"{module}.".startswith(f"{r}.")), key=len)
    folder = ".".join(module.split(".")[:2])
    hosts = {f"wirepress.{host.name}" for host in (ROOT / "integrations").iterdir()}
    return folder if found == LIBRARY and folder in hosts else found


def import_law(path: Path, imports: Iterable[Import]) -> Iterator[str]:
    room = room_of(module_of(path), path)
    for line, module in imports if room else ():
        target = room_of(module)
        allowed = IMPORTS.get(room, IMPORTS[HOST])
        if target != room and (target if target in IMPORTS else HOST) not in allowed:
            yield f"{path}:{line}: {room} must not import {module}"


def circle(graph: Mapping[str, Collection[str]]) -> list[str]:
    """Nodes that lead to each other, the first one again at the end; [] where none do."""
    done: set[str] = set()

    def visit(node: str, trail: list[str]) -> list[str]:
        if node in trail:
            return [*trail[trail.index(node) :], node]
        if node in done:
            return []
        for target in sorted(graph.get(node, ())):
            if found := visit(target, [*trail, node]):
                return found
        done.add(node)
        return []

    return next(filter(None, (visit(node, []) for node in sorted(graph))), [])


def python_laws(sources: Mapping[Path, str]) -> Iterator[str]:
    """What the Python sources, by their paths, break together."""
    modules = {module_of(path) for path in sources} - {""} | {EXTENSION}
    graph: dict[str, set[str]] = {}
    for path, text in sources.items():
        imports = list(imports_of(path, text, modules))
        yield from import_law(path, imports)
        if name := module_of(path):
            graph[name] = {each.module for each in imports} - {name}
    if found := circle(graph):
        yield f"modules import each other in a circle: {' -> '.join(found)}"


def spdx_law(path: Path, lines: list[str]) -> Iterator[str]:
    script = bool(lines) and lines[0].startswith("#!")
    if not (script or path.suffix in SOURCES or path.name == "CMakeLists.txt") or not lines:
        return
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[: 1 + script]):
        yield f"{path}:1: the SPDX line is missing"


def purpose_law(path: Path, lines: list[str]) -> Iterator[str]:
    text = "\n".join(line for line in lines if not line.startswith(("#!", "# SPDX", "// SPDX")))
    if path.suffix == ".py":
        said = not text.strip() or ast.get_docstring(ast.parse(text))
    elif path.suffix in {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh", ".sv"}:
        said = re.match(r"\s*(/[/*]+(?! SPDX)|/\* SPDX.*\n \*)\s*\S", text)
    else:
        return
    kernel = path.parts[0] == "codecs" and path.suffix == ".cpp"
    header = path.with_name(path.stem.removesuffix("_test") + ".hpp")
    if not (said or kernel or (path.suffix == ".cpp" and (ROOT / header).exists())):
        yield f"{path}:1: a sentence that says what the file is for is missing"


def length_law(path: Path, lines: list[str]) -> Iterator[str]:
    if path.suffix not in {".h", ".hpp", ".cuh"} or len(lines) <= MOST_LINES:
        return
    if not any("Long because" in line for line in lines[:30]):
        yield f"{path}:1: {len(lines)} lines; split it or say why not: Long because ..."


def main() -> int:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    broken = []
    sources = {}
    for name in filter(None, listed.decode().split("\0")):
        path = Path(name)
        try:
            lines = (ROOT / path).read_text().splitlines()
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # data; or deleted and not yet committed
        for law in (include_law, spdx_law, purpose_law, length_law):
            broken += law(path, lines)
        if path.suffix == ".py" and not OF_TESTS.search(path.as_posix()):
            sources[path] = "\n".join(lines)
    broken += python_laws(sources)
    print("\n".join(broken) or "laws: kept")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
