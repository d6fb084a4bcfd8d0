# SPDX-License-Identifier: Apache-2.0
"""Raw results: where, with what and when something was measured, beside what was measured."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from wirepress.commands.bench import machine

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "bench" / "results"


def processor_seconds() -> tuple[float, float]:
    """What this machine's cores did since it started, and what other machines took from them."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq, steal = (int(word) for word in words[:8])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / tick, steal / tick


def compiler(build: Path) -> str:
    """The C++ compiler and flags of a build folder."""
    cache = dict(
        line.split("=", 1)
        for line in (build / "CMakeCache.txt").read_text().splitlines()
        if "=" in line and not line.startswith(("#", "//"))
    )
    program = cache.get("CMAKE_CXX_COMPILER:FILEPATH") or cache["CMAKE_CXX_COMPILER:STRING"]
    said = subprocess.run([program, "--version"], check=True, capture_output=True, text=True)
    kind = cache["CMAKE_BUILD_TYPE:STRING"]
    return f"{said.stdout.splitlines()[0]}, {kind}"


def _text(value: dict[str, Any]) -> str:
    """JSON with one row a line."""
    rows = value.pop("rows", None)
    text = json.dumps(value, indent=1)
    if rows is None:
        return text + "\n"
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    return f'{text[:-2]},\n "rows": [\n  {lines}\n ]\n}}\n'


def _command() -> str:
    """This program's command line; where folders lie on this machine is nobody's business."""
    given = ["FOLDER" if Path(a).is_absolute() and Path(a).is_dir() else a for a in sys.orig_argv]
    return shlex.join(["python3", *given[1:]])


def write(name: str, measured: dict[str, Any], path: Path | None = None, **more: Any) -> Path:
    """Writes bench/results/NAME.json, or another file."""
    path = path or FOLDER / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": _command(),
        "machine": machine(),
        **more,
    }
    path.write_text(_text(about | measured))
    return path


def put(page: Path, name: str, text: str, new: str) -> None:
    """Text between the marks of `name` in a page; at its end where it has none. A page that is not
    there begins with `new`."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    old = page.read_text() if page.exists() else new
    body = f"{begin}\n\n{text.rstrip()}\n\n{end}"
    if begin in old:
        body = old[: old.index(begin)] + body + old[old.index(end) + len(end) :]
    else:
        body = old.rstrip("\n") + f"\n\n{body}\n"
    page.write_text(body)
