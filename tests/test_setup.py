# SPDX-License-Identifier: Apache-2.0
"""scripts/setup: what cannot be installed is left out and named, and does not end it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# In the place of .venv's Python: notes what it is asked for, and a pip that cannot get some of it.
PYTHON = """#!/bin/bash
echo "$*" >> asked
case "$*" in
  *"-r scripts/requirements.txt"*|*xarray*|*torch==*|*pyrevolve==*|*adios2==*) exit 1 ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A checkout whose system packages are there and whose Python packages are not."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / "build" / "setup").mkdir(parents=True)
    for size in ("demo", "full", "release"):
        (tmp_path / "build" / "setup" / f"packages-{size}").touch()
    return tmp_path


def setup(machine: Path, *words: str) -> tuple[str, str]:
    """What it said, and what it asked of Python."""
    (machine / "asked").write_text("")
    command = [machine / "scripts" / "setup", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stderr, (machine / "asked").read_text()


def test_leaves_out_what_fails(machine):
    said, asked = setup(machine, "deps")
    for package in ("xarray>=2025.1", "torch==2.13.0", "pyrevolve==2.2.8"):
        assert package in "".join(line for line in said.splitlines() if "could not" in line)
    assert "zarr>=3.1" in asked  # one by one, as all at once had failed
    again, asked = setup(machine, "deps")
    assert "pip could not install: xarray>=2025.1" in again and "pip install" not in asked


def test_release_asks_for_what_packages_need(machine):
    _, asked = setup(machine, "release")
    assert "requirements-release.txt" in asked and "scripts/get_sz3.py zfp" in asked
    assert (
        "third_party/mpi/openmpi5" in asked and "torch" not in asked and "cmake.define" not in asked
    )


def test_demo_asks_for_little(machine):
    _, asked = setup(machine, "demo")
    assert "requirements-demo.txt" in asked and "cmake.define.WPR_RTL=OFF" in asked
    assert "torch" not in asked and "requirements.txt" not in asked
    _, asked = setup(machine)
    assert "cmake.define.WPR_RTL=ON" in asked
    _, asked = setup(machine, "demo")
    assert "WPR_RTL" not in asked  # what tests run on, the demo runs on
