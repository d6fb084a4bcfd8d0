# SPDX-License-Identifier: Apache-2.0
"""The map in README.md names every file, and headers include downwards only."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
README = (HERE / "README.md").read_text()
FOLDERS = re.findall(r"^\*\*`(\w+)/`\*\*", README, re.MULTILINE)
INCLUDE = re.compile(r'#include "(\w+)/(\w+\.hpp)"')


def sources() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((HERE / folder).iterdir())]


def test_map_names_every_file():
    named = set()
    for folder in FOLDERS:
        rows = README.split(f"**`{folder}/`**")[1].split("\n\n")[1]
        for name in re.findall(r"^\| `([\w.]+)` \|", rows, re.MULTILINE):
            endings = [""] if "." in name else [".hpp", ".cpp"]
            named |= {f"{folder}/{name}{ending}" for ending in endings}
    assert named == {path.relative_to(HERE).as_posix() for path in sources()}
    built = {path.parent.name for path in HERE.glob("*/*.[ch]pp")}
    assert built - {"tests"} == set(FOLDERS)


def test_headers_include_downwards():
    headers = [path for path in sources() if path.suffix == ".hpp"]
    includes = {
        f"{path.parent.name}/{path.name}": {"/".join(found) for found in INCLUDE.findall(text)}
        for path in headers
        if (text := path.read_text())
    }
    for name, targets in includes.items():
        above = FOLDERS[: FOLDERS.index(name.split("/")[0]) + 1]
        assert {target.split("/")[0] for target in targets} <= {*above, "wirepress"}, name
    done: set[str] = set()
    while ready := {
        name for name in includes.keys() - done if includes[name] & includes.keys() <= done
    }:
        done |= ready
    assert done == set(includes), "headers include each other in a circle"
