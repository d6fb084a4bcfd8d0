# SPDX-License-Identifier: Apache-2.0
"""What the tests of the built library share."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """build/dev where that was built, brought up to date; else a build without integrations."""
    build = ROOT / "build" / "dev"
    if not (build / "tests" / "unit_tests").exists():
        build = ROOT / "build" / "shared"
        configure = ["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DWPR_INTEGRATIONS=OFF"]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)
    return build


@pytest.fixture(scope="session")
def shared_library(build_dir: Path) -> Path:
    return build_dir / "pipeline" / "libwirepress.so"
