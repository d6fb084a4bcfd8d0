# SPDX-License-Identifier: Apache-2.0
"""The harness of `make apps`: what it says of arguments and rows, and one short real run."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, str(ROOT / "bench" / "apps.py")]


@pytest.fixture(scope="module")
def apps() -> Any:
    sys.path.insert(0, str(ROOT / "bench"))
    return importlib.import_module("apps")


def said(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True)


def test_help_has_examples() -> None:
    done = said("--help")
    assert done.returncode == 0
    assert 'make apps ARGS="--program lammps --pairs 3 --link 200Mbps"' in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--program", "lamps"], "'lamps' is not one of lammps, gromacs"),
        (["--link", "5Gbps"], "'5Gbps' is not one of 200Mbps, 1Gbps, none, shm"),
        (["--ranks", "3"], "'3' is not 1, 2 or 1,2"),
        (["--pairs", "0"], "'0' is not a number from 1 on"),
    ],
)
def test_wrong_arguments_are_refused(words: list[str], sentence: str) -> None:
    done = said(*words)
    assert done.returncode == 2 and sentence in done.stderr


def rows(link: str, plain: list[float], pressed: list[float]) -> list[dict[str, Any]]:
    found = []
    for pair, (a, b) in enumerate(zip(plain, pressed, strict=True), 1):
        about = {"link": link, "ranks": 1, "pair": pair, "result": "x", "load": 0.5}
        without = {"kind": "plain", "seconds": a, "own_seconds": a - 1, "nic_bytes": 3000}
        with_it = {"kind": "wirepress", "seconds": b, "own_seconds": b - 1, "nic_bytes": 2000}
        found += [about | without, about | with_it | {"raw_bytes": 2900, "wire_bytes": 1900}]
    return found


def test_a_summary_takes_medians_of_pairs(apps: Any) -> None:
    found = apps.summary("petsc", rows("1Gbps", [4, 6, 4], [2, 2, 4]))
    assert found.ratios == [2, 3, 1] and apps.spread(found.ratios) == "2.00 (1.00 to 3.00)"
    assert found.own_ratios == [3, 5, 1] and found.plain == 4
    assert found.processor_ratios == []  # rows that were measured before it was
    assert found.nic == 1.5 and found.reported == pytest.approx(2900 / 1900)


def test_a_cell_replaces_its_own_rows_only(apps: Any, tmp_path: Path) -> None:
    program = apps.PROGRAMS["petsc"]
    for link, seconds in (("1Gbps", 4), ("shm", 3), ("1Gbps", 2)):
        apps.keep(apps.Cell(program, link, 1), rows(link, [seconds], [seconds]), tmp_path)
    kept = json.loads((tmp_path / "petsc.json").read_text())["rows"]
    assert [(row["link"], row["seconds"]) for row in kept] == [("1Gbps", 2)] * 2 + [("shm", 3)] * 2
    assert "| petsc | 2 x 1 | 1 Gb/s | 2.0 | 1.00" in apps.table(apps.summaries(tmp_path))


def test_a_changed_result_is_refused(apps: Any, tmp_path: Path, monkeypatch: Any) -> None:
    row = {"seconds": 1.0, "own_seconds": 1.0, "nic_bytes": 0, "load": 0.0}
    monkeypatch.setattr(
        apps, "run_kind", lambda _cell, _hosts, kind, _words: row | {"result": kind}
    )
    options = type("Options", (), {"pairs": 1, "wirepress": []})
    cell = apps.Cell(apps.PROGRAMS["petsc"], "shm", 2)
    with pytest.raises(apps.AppsError, match="wirepress: other results than the first run"):
        apps.measure(cell, None, options, apps.Progress(2, quiet=True))


def test_times_of_a_busy_machine_are_not_shown(apps: Any, tmp_path: Path) -> None:
    program, page = apps.PROGRAMS["petsc"], tmp_path / "apps.md"
    busy = [row | {"load": 20.0} for row in rows("1Gbps", [4], [2])]
    apps.keep(apps.Cell(program, "1Gbps", 1), busy, tmp_path)
    apps.write_page(tmp_path, page, tmp_path / "apps.png")
    assert "| petsc | 2 x 1 | 1 Gb/s | - | - | - | - | 1.50 | 1.53 | 20 |" in page.read_text()
    assert not (tmp_path / "apps.png").exists() and "apps.png" not in page.read_text()


@pytest.mark.slow
def test_a_program_that_is_installed_runs(apps: Any, tmp_path: Path) -> None:
    there = [p.name for p in apps.PROGRAMS.values() if not p.missing()]
    if not there or not shutil.which("mpirun.openmpi"):
        pytest.skip("none of the programs of `make apps` is installed (make apps installs them)")
    name = "lammps" if "lammps" in there else there[0]
    words = ["--program", name, "--link", "shm", "--pairs", "1", "--raw", str(tmp_path)]
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, env=os.environ, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    plain, pressed = json.loads((tmp_path / f"{name}.json").read_text())["rows"]
    assert plain["result"] == pressed["result"] and pressed["kind"] == "wirepress"
