# SPDX-License-Identifier: Apache-2.0
"""What scripts/gpu-check makes of programs that say this and that: small scripts stand for those
that it builds, as no machine of the tests has a GPU that fails."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts/gpu-check"
RESULTS = Path("build/gpu-check/results")


def run(root: Path, **programs: str) -> tuple[int, str]:
    """The exit status and the summary."""
    pack = root / "build/gpu-check"
    pack.mkdir(parents=True)
    (root / "scripts").mkdir()
    shutil.copy(SCRIPT, root / "scripts")
    for name, lines in programs.items():
        (pack / name).write_text(f"#!/bin/sh\n{lines}\n")
        (pack / name).chmod(0o755)
    code = subprocess.run(
        [root / "scripts/gpu-check", "run"],
        env={"PATH": "/usr/bin:/bin"},  # compute-sanitizer lies elsewhere
        capture_output=True,
        check=False,
        timeout=60,
    ).returncode
    return code, (root / RESULTS / "summary.txt").read_text()


BENCH = """echo '{"copy_s": 1}'; echo 'a warning' >&2"""
LIST = "[ $1 != --list ] || echo 0x001 onebit cpu:scalar cuda:device"


def test_what_passes(tmp_path: Path) -> None:
    code, summary = run(tmp_path, gpu_bench=BENCH, conformance=LIST, unit_tests="exit 0")
    assert code == 0, summary
    for step in ("conformance_onebit", "door", "bench"):
        assert f"{step}: ok" in summary
    with open(tmp_path / RESULTS / "gpu.json") as file:
        assert json.load(file) == {"copy_s": 1}
    assert "a warning" in (tmp_path / RESULTS / "bench.log").read_text()


def test_a_build_without_kernels_fails(tmp_path: Path) -> None:
    code, summary = run(tmp_path, gpu_bench=BENCH, conformance="exit 0", unit_tests="exit 0")
    assert code == 1
    assert "conformance: FAILED: the build has no codec with a kernel" in summary


def test_what_fails_is_said_and_the_others_are_run(tmp_path: Path) -> None:
    left_out = f"{LIST}; [ $1 = --list ] || echo skipped onebit cuda:device: no"
    code, summary = run(tmp_path, gpu_bench=BENCH, conformance=left_out, unit_tests="exit 3")
    assert code == 1
    assert "conformance_onebit: FAILED: its device kernel was left out" in summary
    assert "door: FAILED (3)" in summary
    assert "bench: ok" in summary


def test_rows_that_were_measured_before_a_failure_stay(tmp_path: Path) -> None:
    fails = f"{BENCH}; [ $1 = 1 ] || exit 4"
    code, summary = run(tmp_path, gpu_bench=fails, conformance=LIST, unit_tests="exit 0")
    assert code == 1
    assert "bench: FAILED (4)" in summary
    assert (tmp_path / RESULTS / "gpu.json").read_text() == '{"copy_s": 1}\n'


def test_what_travelled_is_unpacked(tmp_path: Path) -> None:
    programs = {"gpu_bench": BENCH, "conformance": LIST, "unit_tests": "exit 0"}
    run(tmp_path / "here", **programs)
    there = tmp_path / "there"
    (there / "build").mkdir(parents=True)
    shutil.copytree(tmp_path / "here/scripts", there / "scripts")
    archive = there / "build/gpu-check.tar.xz"
    subprocess.run(["tar", "-C", tmp_path / "here/build", "-cJf", archive, "gpu-check"], check=True)
    subprocess.run([there / "scripts/gpu-check", "run"], env={"PATH": "/usr/bin:/bin"}, check=True)
    assert "conformance_onebit: ok" in (there / RESULTS / "summary.txt").read_text()


def test_nothing_built_is_said(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    ran = subprocess.run(
        [tmp_path / "scripts/gpu-check", "run"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert "scripts/gpu-check build makes it" in ran.stdout


@pytest.mark.slow
def test_the_benchmark_of_a_step_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    model = "--layers 1 --width 16 --heads 2 --tokens 8 --vocabulary 50"
    small = f"{model} --rounds 1 --steps 1 --methods int8"
    program = SCRIPT.parent.parent / "bench/gpu_step.py"
    out = tmp_path / "step.json"
    command = [sys.executable, program, "--device", "cpu", *small.split(), "--out", out]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    plain, coded = json.loads(out.read_text())["rows"]
    assert (plain["method"], coded["method"]) == ("plain", "int8")
    assert coded["statistics"]["coded_bytes"] > 0
    ran = subprocess.run([*command, "--heads", "3"], capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and "--width 16 is no multiple of --heads 3" in ran.stderr
