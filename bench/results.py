# SPDX-License-Identifier: Apache-2.0
"""Raw results: where, with what and when something was measured, beside what was measured."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from wirepress.bench import machine

ROOT = Path(__file__).resolve().parent.parent


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


def write(name: str, measured: dict[str, Any], **more: Any) -> Path:
    """Writes bench/results/NAME.json."""
    path = ROOT / "bench" / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    about = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": shlex.join(["python3", *sys.orig_argv[1:]]),
        "machine": machine(),
        **more,
    }
    path.write_text(json.dumps(about | measured, indent=1) + "\n")
    return path
