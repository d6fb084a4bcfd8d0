# SPDX-License-Identifier: Apache-2.0
"""`wirepress run --verify`: what is compared, and that no file is lost."""

from __future__ import annotations

import math
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from wirepress.launch import run
from wirepress.launch.verify import compare_bytes, compare_text

WIREPRESS = [sys.executable, run.__file__]
# A job whose result depends on whether it is the first of two runs.
JOB = """#!/bin/sh
if [ -e .ran ]; then x={plain}; rm .ran; else x={ours}; touch .ran; fi
echo "energy $x after 10 steps"
echo "wall time 0.$$ s"
{more}
"""


def verify(
    folder: Path, *words: str, ours: str = "1.0001", plain: str = "1.0", more: str = ""
) -> subprocess.CompletedProcess[str]:
    script = folder / "job"
    script.write_text(JOB.format(ours=ours, plain=plain, more=more))
    script.chmod(0o755)
    command = [*WIREPRESS, "--quiet", *words, "--", "./job"]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60)


def test_output(tmp_path):
    done = verify(tmp_path, "--verify")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("energy 1.0001 after 10 steps\n") and "1.0 " not in done.stdout
    assert "standard output: 2 numbers, largest relative difference 0.0001: 'energy" in done.stderr
    assert "1 line of it not compared" in done.stderr
    done = verify(tmp_path, "--verify", "--verify-tolerance", "1e-5")
    assert done.returncode == 1 and "more than 1e-05 apart: standard output" in done.stderr
    assert verify(tmp_path, "--verify", "--verify-lines", "steps$").returncode == 0


def test_files_of_both_runs_are_kept(tmp_path):
    more = "echo $x > out.dat; [ ! -e state ] || cat state >> seen; echo $x > state"
    (tmp_path / "state").write_text("old\n")
    done = verify(tmp_path, "--verify", "out.dat", "stat*", more=more)
    assert done.returncode == 0, done.stderr
    (tmp_path / "job").unlink()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "out.dat": "1.0001\n",
        "out.dat.plain": "1.0\n",
        "state": "1.0001\n",
        "state.plain": "1.0\n",
        "seen": "old\nold\n",  # each run began with what was there
    }
    assert "out.dat: 1 number, largest relative difference 0.0001" in done.stderr
    again = verify(tmp_path, "--verify", "out.dat", more=more)
    assert again.returncode == 2 and "out.dat.plain is there already" in again.stderr
    assert (tmp_path / "seen").read_text() == "old\nold\n"  # nothing was started


def test_files_that_a_run_did_not_write(tmp_path):
    (tmp_path / "here").write_text("1\n")
    done = verify(tmp_path, "--verify", "here", "nowhere")
    assert done.returncode == 1
    assert "here: neither run wrote it" in done.stderr
    assert "nowhere: neither run wrote it" in done.stderr
    only = verify(tmp_path, "--verify", "new", more='[ "$x" = 1.0 ] || echo 1 > new')
    assert only.returncode == 1 and "new: only the run with wirepress wrote it" in only.stderr
    assert (tmp_path / "new").read_text() == "1\n" and not (tmp_path / "new.plain").exists()


def test_runs_that_fail(tmp_path):
    done = verify(tmp_path, "--verify", more="exit 3")
    assert done.returncode == 3 and "nothing to verify" in done.stderr


def test_plain_run_that_fails(tmp_path):
    more = 'echo $x > out; [ "$x" != 1.0 ] || exit 4'
    done = verify(tmp_path, "--verify", "out", more=more)
    assert done.returncode == 1 and "ended with status 4" in done.stderr
    assert (tmp_path / "out").read_text() == "1.0001\n"


def test_input_is_read_by_both(tmp_path):
    (tmp_path / "in").write_text("7\n")
    script = tmp_path / "job"
    script.write_text('#!/bin/sh\nread x; echo "result $x"\n')
    script.chmod(0o755)
    with open(tmp_path / "in") as file:
        done = subprocess.run([*WIREPRESS, "--verify", "--", "./job"], stdin=file, cwd=tmp_path,
                              capture_output=True, text=True, timeout=60)  # fmt: skip
    assert done.returncode == 0 and "standard output: no difference" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--verify", "."], "--verify: . is a folder"),
        (["--verify", "--verify-lines", "("], "--verify-lines: '('"),
        (["--verify", "--verify-tolerance", "-1"], "--verify-tolerance: not a number from 0"),
        (["--verify-lines", "x"], "are for --verify"),
    ],
)
def test_mistakes(tmp_path, words, sentence):
    done = verify(tmp_path, *words)
    assert done.returncode == 2 and sentence in done.stderr and not done.stdout


# ---- comparing -------------------------------------------------------------------------------


def test_text():
    assert compare_text("a 1 b 2", "a 1 b 2", None).largest == 0
    assert compare_text("E = -1.0D+02", "E = -1.01D+02", None).largest == pytest.approx(
        0.0099, 0.01
    )
    assert compare_text("x nan", "x nan", None).largest == 0
    assert compare_text("x nan", "x 1.0", None).largest == math.inf
    assert compare_text("T: 1e-17 5.0", "T: -3e-18 5.0", None).largest == 0  # roundings of zero
    more = compare_text("iteration 1\niteration 2\ndone", "iteration 1\ndone", None)
    assert more.largest == math.inf and "3 lines, plain 2" in more.where
    assert compare_text("x1 2", "x1 3", None).n_numbers == 1  # the name's digit is none
    chosen = compare_text("noise 1\nresult 2", "noise 5\nresult 2", re.compile("result"))
    assert chosen.largest == 0 and chosen.left_out == 1


def npy(kind: str, data: bytes, n: int) -> bytes:
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({n},), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def test_arrays_and_raw_numbers():
    a, b = struct.pack("<3d", 1, 2, 4), struct.pack("<3d", 1, 2, 5)
    assert compare_bytes(npy("<f8", a, 3), npy("<f8", b, 3), None, None).largest == 0.2
    swapped = struct.pack(">3d", 1, 2, 4), struct.pack(">3d", 1, 2, 5)
    assert compare_bytes(*(npy(">f8", x, 3) for x in swapped), None, None).largest == 0.2
    assert compare_bytes(npy("<f8", a, 3), npy("<f8", a[:16], 2), None, None).largest == math.inf
    assert compare_bytes(npy("<f8", a, 3), npy("<f8", b[:20], 3), None, None).largest == math.inf
    assert compare_bytes(a, b, "d", None).largest == 0.2
    raw = compare_bytes(a, b, None, None)
    assert raw.largest == math.inf and "of 24 bytes differ; for numbers: FILE:float32" in raw.where
    assert compare_bytes(a, a, None, None).largest == 0
