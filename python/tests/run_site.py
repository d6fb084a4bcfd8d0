# SPDX-License-Identifier: Apache-2.0
"""Launchers that are scripts, for the tests of `wirepress run`; the fixture `site` makes two."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from wirepress.launch import run

FAKE = """#!/bin/sh
if [ "$1" = --version ]; then echo "{version}"; exit 0; fi
{body}
"""


SHOW = 'printf "%s\\n" "$@"; echo "environment: $WIREPRESS_RENDEZVOUS"'


def make_launcher(site: Path, name: str, version: str, body: str = SHOW) -> Path:
    path = site / "bin" / name
    path.write_text(FAKE.format(version=version, body=body))
    path.chmod(0o755)
    return path


def wirepress_run(*words: str, **kwargs) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, run.__file__, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **kwargs)
