# SPDX-License-Identifier: Apache-2.0
"""The short form of `make conformance-mpi`: mpi4py's own tests, plain and interposed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "conformance_mpi.py"
MODULES = """test_p2p_buf test_p2p_buf_matched test_p2p_obj test_p2p_obj_matched test_msgspec
    test_cco_buf test_request test_status""".split()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_mpi4py_suite(name, tmp_path):
    result = tmp_path / "result.json"
    parts = [word for module in MODULES for word in ("--part", module)]
    command = [sys.executable, SCRIPT, "--mpi", name, "--suite", "mpi4py", "--ranks", "2"]
    done = subprocess.run(
        [*command, *parts, "--json", result], capture_output=True, text=True, timeout=600
    )
    if done.returncode == 77:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    (job,) = json.loads(result.read_text())["mpis"]
    assert len(job["results"]) == len(MODULES)
    assert sum(part["interposed"]["pass"] for part in job["results"]) > 300
    sent = sum(part["interposer"]["compressed_messages"] for part in job["results"])
    assert sent > 400
