# SPDX-License-Identifier: Apache-2.0
"""The command line as a process, for the tests of this room."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def wirepress_in(tmp_path: Path) -> Command:
    """Runs `wirepress ARGUMENTS` in tmp_path."""

    def run(*arguments: object, **kwargs: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "wirepress", *map(str, arguments)]
        options = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120} | kwargs
        return subprocess.run(command, **options)  # type: ignore[call-overload]

    return run
