# SPDX-License-Identifier: Apache-2.0
"""The short form of store_crash.py: writers are killed, disks lose power."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def crash(build_dir: Path, tmp_path: Path, *options: str) -> list[dict[str, int]]:
    program, out = build_dir / "tests" / "store_crash", tmp_path / "out.json"
    if not program.exists():
        pytest.skip("build/dev has no tests: make build")
    command = [sys.executable, Path(__file__).with_name("store_crash.py"), "--program", program]
    done = subprocess.run(
        [*command, "--out", out, *options], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(out.read_text())
    assert result["found"] == []
    return result["rows"]


def test_killed_writers(build_dir: Path, tmp_path: Path) -> None:
    options = ("--kills", "40", "--power-cuts", "0", "--full", "0")
    (row,) = crash(build_dir, tmp_path, *options)
    assert row["deaths"] == 40 and row["frames verified"] > row["of them acknowledged"] > 100
    assert min(row[f"policy {policy}"] for policy in ("disk", "compressed", "in-worker")) > 3
    assert row["at a random time"] > 5 and row["at a named point"] > 3


def test_killed_workers(build_dir: Path, tmp_path: Path) -> None:
    """Of policy in-worker: threads of the caller die half through a frame."""
    options = ("--kills", "30", "--power-cuts", "0", "--full", "0", "--policies", "in-worker")
    (row,) = crash(build_dir, tmp_path, *options, "--seed", "2")
    assert row["deaths"] == row["policy in-worker"] == 30 and row["put by tiles"] > 10


@pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root")
def test_power_cuts_and_full_disks(build_dir: Path, tmp_path: Path) -> None:
    if subprocess.run(["losetup", "--find"], capture_output=True).returncode:
        pytest.skip("no loop device can be had here")
    if not shutil.which("mkfs.ext4", path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
        pytest.skip("no mkfs.ext4 (apt-get install e2fsprogs)")
    options = ("--kills", "0", "--power-cuts", "4", "--full", "3")
    cuts, full = crash(build_dir, tmp_path, *options)
    assert (cuts["deaths"], full["deaths"]) == (4, 3) and cuts["of them acknowledged"] > 20
