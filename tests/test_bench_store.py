# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the frame store runs as it does without root, and says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def test_a_slow_disk_of_the_test_kit(root: Path, build_dir: Path, tmp_path: Path) -> None:
    program = build_dir / "bench" / "store_bench"
    command = ["cmake", "--build", build_dir, "--target", "store_bench"]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("bench is not built here")
    out = tmp_path / "store.json"
    command = [sys.executable, root / "bench" / "store.py", "--quick", "--bucket", "--rates", "20"]
    command += ["--program", program, "--folder", tmp_path / "work", "--out", out]
    command += ["--policies", "memory", "disk", "bx:m=6"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "token bucket" in done.stdout
    rows = {row["policy"]: row for row in json.loads(out.read_text())["rows"]}
    assert rows["disk"]["snr_db"] is None and rows["bx:m=6"]["snr_db"] > 40
    seconds = rows["disk"]["raw_bytes"] / 20e6  # each way
    assert rows["disk"]["forward"] > 0.7 * seconds and rows["disk"]["backward"] > 0.7 * seconds
    packed = rows["bx:m=6"]
    assert packed["raw_bytes"] / packed["stored_bytes"] > 2
