# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the codecs runs, says what it measured and skips what is not built."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")


@pytest.fixture(scope="module")
def measured(root: Path, build_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("bench")
    command = [sys.executable, root / "bench" / "codecs.py", "--quick", "--build", build_dir]
    command += ["--data", folder, "--out", folder / "codecs.json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "aims: " in done.stdout and "skipped no-such-codec: unknown codec" in done.stdout
    return json.loads((folder / "codecs.json").read_text())


def rows_of(measured: dict, subject: str) -> list[dict]:
    return [row for row in measured["rows"] if row["subject"] == subject and "skipped" not in row]


def test_says_where_and_how_it_measured(measured: dict) -> None:
    assert {"date", "command", "machine", "compiler", "versions"} <= set(measured)


def test_codecs_stand_beside_their_plain_libraries(measured: dict) -> None:
    variants = {row["variant"] for row in rows_of(measured, "lz4")}
    assert variants == {"liblz4", "plain"}
    for row in rows_of(measured, "lz4"):
        assert min(row[name] for name in ("memcpy", "encode", "decode", "ratio")) > 0


def test_a_run_has_one_memcpy(measured: dict) -> None:
    figures: dict[str, set[float]] = {}
    for row in measured["rows"]:
        if "memcpy" in row:
            figures.setdefault(row["run"], set()).add(row["memcpy"])
    assert figures and all(len(seen) == 1 for seen in figures.values())


def test_errors_are_measured_and_bounded(measured: dict) -> None:
    rows = rows_of(measured, "fre:m=5")
    assert {row["data"] for row in rows} == {"quick_t60", "gradsyn"}
    assert all(0 < row["relative_error"] <= 2**-6 for row in rows)
    assert all("relative_error" not in row for row in rows_of(measured, "lz4"))


def test_nothing_failed(measured: dict) -> None:
    said = [row["skipped"] for row in measured["rows"] if "skipped" in row]
    assert not [text for text in said if text.startswith("failed")]
