# SPDX-License-Identifier: Apache-2.0
"""Several jobs under one `wirepress run`: which ranks belong together, whatever started them.

Ranks of this machine count as nodes of their own, so all messages are compressed, and each program
knows what it must receive.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("wirepress")
from wirepress.launch import launchers, run

SETTINGS = {"WIREPRESS_MPI_SAME_HOST": "on", "WIREPRESS_MPI_CODEC": "lz4"}
SETTINGS |= {"WIREPRESS_MPI_PIECES": "1GiB", "WIREPRESS_MPI_GRACE": "60"}
WIREPRESS = [sys.executable, run.__file__]
MANY = int(os.environ.get("WPR_JOBS", "25"))  # a multiple of 25


def wirepress_run(
    mpi: Any, words: list[Any], folder: Path, seconds: float = 100
) -> tuple[str, list[dict[str, Any]]]:
    """What the ranks printed, and the reports of all jobs."""
    environment = mpi.environment() | SETTINGS | {"WIREPRESS_LIB_DIR": str(mpi.library.parent)}
    command = [*WIREPRESS, "--report", folder / "report.json", "--", *words]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=seconds, cwd=folder
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WRONG" not in done.stdout and "wirepress: off" not in done.stderr, done.stderr
    return done.stdout, [json.loads(path.read_text()) for path in folder.glob("report*.json")]


def check(reports: list[dict[str, Any]], n_jobs: int, size: int, messages: int = 4) -> None:
    """Every job was on, all of its ranks reported, and everything that they sent was compressed."""
    assert len(reports) == n_jobs
    for report in reports:
        assert (report["state"], report["size"]) == ("on", size), report["reason"]
        assert [rank["rank"] for rank in report["ranks"]] == list(range(size))
        assert report["totals"]["compressed_messages"] == messages * size


def at_the_same_time(launch: list[list[Any]]) -> str:
    lines = [shlex.join(map(str, words)) + ' & pids="$pids $!"' for words in launch]
    return "\n".join([*lines, "status=0", "for p in $pids; do wait $p || status=1; done",
                      "exit $status"])  # fmt: skip


@pytest.mark.parametrize(
    "jobs",
    [pytest.param(6, marks=pytest.mark.quick), pytest.param(MANY, marks=pytest.mark.slow)],
)
def test_jobs_of_a_script(mpi, tmp_path, jobs):
    """`mpirun ... &` many times, as ensembles and sweeps do."""
    program, launcher = mpi.build("crossed.c"), f"mpirun.{mpi.name}"
    at_once = min(jobs, 25)
    for first in range(0, jobs, at_once):
        (tmp_path / str(first)).mkdir()
        script = at_the_same_time(
            [[launcher, "-n", "2", program, i] for i in range(first, first + at_once)]
        )
        out, reports = wirepress_run(mpi, ["sh", "-c", script], tmp_path / str(first), 300)
        assert sorted(re.findall(r"^ok (\d+) \d$", out, re.M)) == sorted(
            2 * [str(i) for i in range(first, first + at_once)]
        )
        check(reports, at_once, 2)


def test_traces_of_jobs_at_the_same_time(mpi, tmp_path):
    launch = [f"mpirun.{mpi.name}", "-n", "2", mpi.build("crossed.c")]
    script = at_the_same_time([[*launch, i] for i in range(2)])
    environment = mpi.environment() | SETTINGS | {"WIREPRESS_LIB_DIR": str(mpi.library.parent)}
    command = [sys.executable, "-m", "wirepress", "trace", "-o", tmp_path, "--", "sh", "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    for folder in (tmp_path, tmp_path / "job-2"):
        first, second = sorted(path.name.split("-") for path in folder.glob("*.wpt"))
        assert first[0] == second[0] and [first[1], second[1]] == ["00000.wpt", "00001.wpt"]


def test_one_job_after_another(mpi, tmp_path):
    """A loop that starts its job again, as after a failure."""
    words = shlex.join([f"mpirun.{mpi.name}", "-n", "2", str(mpi.build("crossed.c"))])
    _, reports = wirepress_run(mpi, ["sh", "-c", f"{words} 1 && {words} 2"], tmp_path)
    check(reports, 2, 2)


def test_several_programs_are_one_job(mpi, tmp_path):
    program = mpi.build("crossed.c")
    again = tmp_path / "again"
    shutil.copy(program, again)
    launch = [f"mpirun.{mpi.name}", "-n", "1", program, "7", ":", "-n", "2", again, "7"]
    plain = subprocess.run(launch, env=mpi.environment(), capture_output=True, text=True)
    if plain.returncode in (-signal.SIGSEGV, 128 + signal.SIGSEGV):
        pytest.skip("this launcher ends by SIGSEGV at a colon, without wirepress, too")
    _, reports = wirepress_run(mpi, launch, tmp_path)
    check(reports, 1, 3)
    assert reports[0]["program"] == "crossed..."


def test_jobs_inside_a_job(mpi, tmp_path):
    """A rank that starts launchers: they have the environment of that rank, and one another's."""
    program = mpi.build("crossed.c")
    script = at_the_same_time([[f"mpirun.{mpi.name}", "-n", "2", program, i] for i in range(4)])
    if mpi.name == "openmpi":  # which refuses to start in the environment of a rank
        ranks = r"OMPI_MCA_ess|OMPI_MCA_orte|OMPI_MCA_pmix|OMPI_COMM|OMPI_UNIV|PMIX"
        script = (
            f"for n in $(env | sed -nE 's/^(({ranks})[^=]*)=.*/\\1/p'); do unset $n; done\n{script}"
        )
    _, reports = wirepress_run(mpi, [f"mpirun.{mpi.name}", "-n", "1", "sh", "-c", script], tmp_path)
    check(reports, 4, 2)


def test_a_run_inside_a_run(mpi, tmp_path):
    """The inner one has its own rendezvous and report; the outer one has no job."""
    program = mpi.build("crossed.c")
    for outer in (["sh", "-c"], [f"mpirun.{mpi.name}", "-n", "1", "sh", "-c"]):
        folder = tmp_path / outer[0]
        folder.mkdir()
        inner = [*WIREPRESS, "--report", folder / "inner.json", "--"]
        inner += [f"mpirun.{mpi.name}", "-n", "2", program, "3"]
        script = shlex.join(map(str, inner))
        if mpi.name == "openmpi" and outer[0] != "sh":
            continue  # refused by Open MPI
        _, reports = wirepress_run(mpi, [*outer, script], folder)
        assert reports == []
        check([json.loads((folder / "inner.json").read_text())], 1, 2)


def test_spawned_processes_take_no_part(mpi, tmp_path):
    """They have their parents' environment and an MPI_COMM_WORLD of their own."""
    program = mpi.build("spawn.c")
    launch = [f"mpirun.{mpi.name}", "-n", "2", program]
    plain = subprocess.run(launch, env=mpi.environment(), capture_output=True, timeout=60)
    if plain.returncode:
        pytest.skip(f"this {mpi.name} cannot spawn")
    out, reports = wirepress_run(mpi, launch, tmp_path)
    assert out.count("ok child") == 2 and out.count("ok parent") == 2
    (report,) = reports  # one of each parent to the other, and one by the communicator of all four
    assert report["totals"]["compressed_messages"] == 3 and len(report["ranks"]) == 2


def test_the_token_is_in_no_command_line(mpi, tmp_path):
    """Every user of a host reads them; the ranks look at those of their launcher, too."""
    look = (
        "import os, pathlib\n"
        "addresses, token = os.environ['WIREPRESS_RENDEZVOUS'].split(';')\n"
        "lines = []\n"
        "for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):\n"
        "    try: lines.append(path.read_bytes())\n"
        "    except OSError: pass\n"
        "assert any(b'LD_PRELOAD' in line for line in lines)\n"
        "n = sum(token.encode() in line for line in lines)\n"
        "print(f'seen {n}\\n', end='')\n"
    )
    (tmp_path / "look.py").write_text(look)
    for outer in ([], ["sh", "-c"]):
        launch = [f"mpirun.{mpi.name}", "-n", "2", sys.executable, tmp_path / "look.py"]
        words = [*outer, shlex.join(map(str, launch))] if outer else launch
        out, _ = wirepress_run(mpi, words, tmp_path)
        assert out.count("seen 0") == 2, out


def test_a_killed_run_ends_the_job(mpi, tmp_path):
    """The launcher is told, and ends its ranks; the next run removes what is left."""
    environment = mpi.environment() | {"WIREPRESS_LIB_DIR": str(mpi.library.parent)}
    environment["TMPDIR"] = str(tmp_path)
    rank = ["sh", "-c", "echo $$; exec sleep 100"]
    command = [*WIREPRESS, "--", f"mpirun.{mpi.name}", "-n", "2", *rank]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as run:
        ranks = [int(run.stdout.readline()) for _ in range(2)]
        run.kill()
    deadline = time.monotonic() + 60
    while any(launchers.start_time(pid) for pid in ranks) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(launchers.start_time(pid) for pid in ranks)
    subprocess.run(
        [*WIREPRESS, "--quiet", "--", f"mpirun.{mpi.name}", "-n", "1", "true"], env=environment
    )
    assert not list(tmp_path.glob("wirepress-*"))
