# SPDX-License-Identifier: Apache-2.0
"""The example of two sites."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.examples import test_checkpoint

if importlib.util.find_spec("torch") is None:
    pytest.skip("needs PyTorch (pip install torch)", allow_module_level=True)

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "two_sites" / "train.py"


@pytest.mark.slow
def test_two_sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_checkpoint, "PROGRAM", PROGRAM)
    codes, said = test_checkpoint.job(4, tmp_path, "--steps", "40", "--every", "10")
    assert codes == [0] * 4, said
    found = re.findall(r"loss ([0-9.]+); .* ([0-9]+) bytes, of ([0-9]+)", said)
    assert len(found) == 4, said
    assert float(found[-1][0]) < float(found[0][0]) < 5
    assert 7 * int(found[-1][1]) < int(found[-1][2])
