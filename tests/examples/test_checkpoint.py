# SPDX-License-Identifier: Apache-2.0
"""The example of checkpoints: killed, loaded by other ranks, damaged."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.test_ddp import free_ports

if importlib.util.find_spec("torch") is None:
    pytest.skip("needs PyTorch (pip install torch)", allow_module_level=True)
if importlib.util.find_spec("wirepress.torch") is None:
    pytest.skip("needs wirepress.torch", allow_module_level=True)

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "checkpoint" / "train.py"


def job(ranks: int, folder: Path, *words: str) -> tuple[list[int], str]:
    """Exit codes and what the ranks said."""
    everywhere = {**os.environ, "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                  "MASTER_PORT": free_ports(1)[0], "OMP_NUM_THREADS": "1",
                  "GLOO_SOCKET_IFNAME": "lo"}  # fmt: skip
    running = [
        subprocess.Popen(
            [sys.executable, PROGRAM, *words], cwd=folder, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={**everywhere, "RANK": str(rank)},
        )
        for rank in range(ranks)
    ]  # fmt: skip
    try:
        said = [process.communicate(timeout=200)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    return [process.returncode for process in running], "".join(said)


def loss(said: str) -> float:
    return float(re.search(r"loss ([0-9.]+)", said)[1])


@pytest.mark.slow
def test_checkpoints_of_a_killed_job(tmp_path: Path) -> None:
    words = "saved", "--every", "4"
    codes, said = job(2, tmp_path, *words, "--steps", "20", "--die-at", "9")
    assert codes == [9, 9], said
    complete = {path.parent.name for path in tmp_path.glob("saved/*/.metadata")}
    assert complete and complete <= {"4", "8"}
    codes, said = job(1, tmp_path, *words, "--steps", "12")
    assert codes == [0], said
    assert f"goes on after step {max(complete, key=int)}" in said
    assert float(re.search(r"loss ([0-9.]+)", said)[1]) < 5  # it began at 5.5
    stored, raw = map(int, re.findall(r"stored ([0-9]+) bytes of ([0-9]+)", said)[-1])
    assert raw > 1.1 * stored

    (file,) = tmp_path.glob("saved/12/0-*.wpd")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    codes, said = job(1, tmp_path, *words, "--steps", "16")
    assert codes == [1]
    assert re.search(rf"{file.name}: tensor (model|optimizer)\.\S+: ", said), said
