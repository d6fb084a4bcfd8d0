# SPDX-License-Identifier: Apache-2.0
"""`wirepress run` under a real Slurm of two nodes: srun, sbatch, salloc, and what each hands on.

Messages of crossed.c know their job, and the ranks check them. Ranks 0, 1 ... stand on the first
node, the last ones on the second, so eight of their messages go from node to node.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import slurm_cluster
from hosts import Hosts
from installed import libraries_of
from slurm_cluster import Slurm

PROGRAMS = Path(__file__).resolve().parents[2] / "integrations" / "mpi" / "tests"
WIREPRESS = [sys.executable, "-m", "wirepress", "run"]
SETTINGS = {"WIREPRESS_MPI_CODEC": "lz4", "WIREPRESS_MPI_CONTEST": "off"}
SETTINGS |= {"WIREPRESS_MPI_PIECES": "1GiB", "WIREPRESS_MPI_GRACE": "60"}
BETWEEN_NODES = 8  # messages


@pytest.fixture(scope="module")
def cluster() -> Iterator[Slurm]:
    if reason := slurm_cluster.why_not():
        pytest.skip(reason)
    with ExitStack() as stack:
        hosts = stack.enter_context(Hosts(2, "1gbit"))
        # A short path: slurmstepd makes sockets below it, and a socket's path has 107 characters.
        shared = stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-"))
        cluster = Slurm(hosts, Path(shared))
        try:
            stack.enter_context(cluster)
        except OSError as error:
            pytest.skip(f"Slurm does not start here: {error}")
        yield cluster


class Mpi:
    """An MPI that is installed, its program in the folder that all nodes share, and its plug-in."""

    def __init__(self, name: str, cluster: Slurm) -> None:
        self.name, self.cluster = name, cluster
        self.srun = ["srun", f"--mpi={ {'openmpi': 'pmix', 'mpich': 'pmi2'}[name] }"]
        self.program = cluster.shared / f"crossed-{name}"
        self.settings = dict(SETTINGS)
        if name == "openmpi":
            mca = {"pml": "ob1", "btl": "tcp,self,vader", "btl_tcp_if_include": "eth0"}
            mca |= {"mpi_yield_when_idle": "1", "oob_tcp_if_include": "eth0"}
            self.settings |= {f"OMPI_MCA_{key}": value for key, value in mca.items()}
            self.settings |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        else:
            own = cluster.shared / "mpich_finalize.so"  # which says why
            if not own.exists():
                source = Path(__file__).with_name("mpich_finalize.c")
                subprocess.run(["cc", "-shared", "-fPIC", "-O1", source, "-o", own], check=True)
            self.settings |= {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}
            self.settings |= {"LD_PRELOAD": str(own)}
        if not self.program.exists():
            words = [f"mpicc.{name}", "-std=gnu99", "-O1", "-w", PROGRAMS / "crossed.c", "-o",
                     self.program, "-lm", "-pthread"]  # fmt: skip
            subprocess.run([*words, *(["-DHAS_ISENDRECV"] if name == "mpich" else [])], check=True)

    def run(
        self, words: list[Any], options: tuple[str, ...] = (), **settings: str
    ) -> subprocess.CompletedProcess[str]:
        command = [*WIREPRESS, *options, "--", *map(str, words)]
        return self.cluster.run(0, command, **(self.settings | settings))

    def job(self, words: list[Any], folder: Path, **settings: str) -> list[dict[str, Any]]:
        """The reports of a run whose ranks got what they had to."""
        done = self.run(words, ("--report", str(folder / "report.json")), **settings)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "ok" in done.stdout and "WRONG" not in done.stdout, done.stdout
        return reports_of(folder)


def reports_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("report*.json"))]


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request, cluster) -> Mpi:
    libraries_of(request.param)
    return Mpi(request.param, cluster)


@pytest.fixture
def folder(cluster, request) -> Path:
    """One that all nodes have."""
    path = cluster.shared / re.sub(r"\W+", "-", request.node.name)
    path.mkdir()
    return path


def check(reports: list[dict[str, Any]], n_jobs: int, nodes: list[int]) -> None:
    """Every job was on, with all ranks where they belong, and all that could be was compressed."""
    assert len(reports) == n_jobs
    for report in reports:
        assert (report["state"], report["nodes"]) == ("on", nodes), report["reason"]
        assert [rank["rank"] for rank in report["ranks"]] == list(range(len(nodes)))
        assert report["totals"]["compressed_messages"] == BETWEEN_NODES


def at_the_same_time(lines: list[str]) -> str:
    wait = ["status=0", "for p in $pids; do wait $p || status=1; done", "exit $status"]
    return "\n".join([*(f'{line} & pids="$pids $!"' for line in lines), *wait])


# ---- srun ------------------------------------------------------------------------------------


def test_srun(mpi, folder):
    before = sum(mpi.cluster.hosts.sent_bytes())
    reports = mpi.job([*mpi.srun, "-N2", "-n4", mpi.program, "1"], folder)
    sent = sum(mpi.cluster.hosts.sent_bytes()) - before
    nodes = reports[0]["nodes"]  # block or by rounds, as this Slurm distributes tasks
    assert sorted(set(nodes)) == [0, 1]
    check(reports, 1, nodes)
    measured = sum(
        rank["calls"]["wirepress"]["wire_bytes"]
        for rank in reports[0]["ranks"]
        if "wirepress" in rank["calls"]
    )  # the link
    assert sent - measured < reports[0]["totals"]["raw_bytes"] / 2


@pytest.mark.slow
@pytest.mark.parametrize("options", ["--exp none", "--export=HOME,X=1"])
def test_what_srun_keeps_back(mpi, folder, options):
    launch = [*mpi.srun, *options.split(), "-N2", "-n2", mpi.program, "1"]
    check(mpi.job(launch, folder), 1, [0, 1])


@pytest.mark.slow
def test_what_srun_keeps_back_by_a_variable(mpi, folder):
    launch = [*mpi.srun, "-N2", "-n2", mpi.program, "1"]
    check(mpi.job(launch, folder, SRUN_EXPORT_ENV="NONE"), 1, [0, 1])


@pytest.mark.slow
def test_several_programs(mpi, folder):
    (folder / "conf").write_text(f"0 {mpi.program} 7\n1 {mpi.program} 7\n")
    launch = [*mpi.srun, "-N2", "-n2", "--multi-prog", folder / "conf"]
    check(mpi.job(launch, folder), 1, [0, 1])


@pytest.mark.slow
def test_a_heterogeneous_job(mpi, folder):
    launch = [*mpi.srun, "-N1", "-n1", mpi.program, "1"]
    launch += [":", "-N1", "-n2", "--export=NONE", mpi.program, "1"]
    check(mpi.job(launch, folder), 1, [0, 1, 1])


@pytest.mark.slow
def test_the_token_is_in_no_command_line(mpi, folder):
    """All nodes of this cluster show one another's processes."""
    code = (
        "import os, pathlib\n"
        "token, lines = os.environ['WIREPRESS_RENDEZVOUS'].split(';')[1], []\n"
        "for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):\n"
        "    try: lines.append(path.read_bytes())\n"
        "    except OSError: pass\n"
        "assert any(b'srun' in line for line in lines)\n"
        "n = sum(token.encode() in line for line in lines)\n"
        "print(f'seen {n}\\n', end='')\n"
    )
    words = [*mpi.srun, "--export=NONE", "-N2", "-n2", sys.executable, "-c", code]
    done = mpi.run(words, ("--mpi", mpi.name))
    assert done.stdout.count("seen 0") == 2, done.stdout + done.stderr


def test_ranks_that_do_not_find_each_other(mpi):
    """A plug-in that the program's MPI does not speak; Open MPI ends such a job by itself."""
    if mpi.name != "mpich":
        pytest.skip("Open MPI says it, and ends")
    done = mpi.run(["srun", "--mpi=none", "-N2", "-n2", mpi.program, "1"])
    assert "2 ranks that one call of a launcher started" in done.stderr, done.stderr


@pytest.mark.slow
def test_a_signal_ends_the_step(mpi, folder):
    code = (
        f"import os, time; open('{folder}/%s' % os.environ['SLURM_PROCID'], 'w'); time.sleep(1e3)"
    )
    launch = [*mpi.srun, "-N2", "-n2", sys.executable, "-c", code]
    words = mpi.cluster.on(0, [*WIREPRESS, "--mpi", mpi.name, "--", *launch])
    environment = mpi.cluster.environment() | mpi.settings
    with subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: len(list(folder.iterdir())) == 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) != 0
    wait_until(lambda: mpi.cluster.run(0, ["squeue", "-h"]).stdout == "")


def wait_until(condition: Any, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing within {seconds} s")
        time.sleep(0.1)


# ---- salloc and sbatch -----------------------------------------------------------------------


@pytest.mark.slow
def test_steps_of_an_allocation(mpi, folder):
    """`srun &` several times in a script."""
    line = shlex.join([*mpi.srun, "--overlap", "-N2", "-n2", str(mpi.program)])
    script = at_the_same_time([f"{line} {i}" for i in range(4)])
    check(mpi.job(["salloc", "-N2", "-n4", "sh", "-c", script], folder), 4, [0, 1])


@pytest.mark.slow
def test_an_mpirun_in_an_allocation(mpi, folder):
    """Whose ranks have Slurm's variables of the allocation, not of a step of their own."""
    words = ["salloc", "-N2", "-n2", f"mpirun.{mpi.name}", "-n", "2", mpi.program, "1"]
    check(mpi.job(words, folder), 1, [0, 1])


def batch(mpi: Mpi, folder: Path, lines: str, *options: str) -> None:
    """Queues a script and waits for its end; the script has its settings from nobody else."""
    settings = "\n".join(f"export {k}={shlex.quote(v)}" for k, v in mpi.settings.items())
    script = folder / "job.sh"
    script.write_text(f"#!/bin/bash\n{settings}\n{lines}\n")
    words = ["sbatch", "--parsable", "-N2", "-n2", "-o", f"{folder}/out-%a", *options, str(script)]
    done = mpi.cluster.run(0, words)
    assert done.returncode == 0, done.stderr
    job = done.stdout.strip()
    # sbatch --wait looks ever more rarely, up to every ten seconds
    try:
        wait_until(lambda: mpi.cluster.run(0, ["squeue", "-h", "-j", job]).stdout == "")
    except TimeoutError:
        shown = mpi.cluster.run(0, ["scontrol", "show", "job", job]).stdout
        mpi.cluster.run(0, ["scancel", job])  # the next test finds the nodes free
        pytest.fail(f"job {job} does not end:\n{shown}")
    out = "".join(path.read_text() for path in folder.glob("out-*"))
    assert "ok" in out and "WRONG" not in out, out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "options"),
    [
        ("srun", ""),
        ("srun", "--export=NONE"),
        ("srun", "--get-user-env"),
        ("mpirun", ""),
        ("mpiexec", "--export=NONE"),
    ],
)
def test_sbatch(mpi, folder, launcher, options):
    """With `wirepress run` inside the script; what sbatch keeps back srun keeps back, too."""
    if mpi.name == "openmpi" and launcher == "mpiexec":
        options = ""  # its daemons, which srun starts, fail without wirepress, too
    launch = mpi.srun if launcher == "srun" else [f"{launcher}.{mpi.name}", "-n", "2"]
    words = [*WIREPRESS, "--report", folder / "report.json", "--", *launch, mpi.program, "1"]
    batch(mpi, folder, shlex.join(map(str, words)), *options.split())
    check(reports_of(folder), 1, [0, 1])


@pytest.mark.slow
def test_an_array_of_jobs(mpi, folder):
    words = [*WIREPRESS, "--report", f"{folder}/report-$SLURM_ARRAY_TASK_ID.json", "--"]
    line = " ".join(map(str, [*words, *mpi.srun, mpi.program, "$SLURM_ARRAY_TASK_ID"]))
    batch(mpi, folder, line, "--array=0-2")
    check(reports_of(folder), 3, [0, 1])


def test_what_takes_too_long_leaves_no_job(cluster):
    with pytest.raises(subprocess.TimeoutExpired):
        cluster.run(0, ["srun", "-N2", "sleep", "90"], seconds=3)
    deadline = time.monotonic() + 60
    while cluster.run(0, ["squeue", "-h"]).stdout.strip():
        assert time.monotonic() < deadline
        time.sleep(0.2)


# ---- what is refused -------------------------------------------------------------------------


def test_refused(cluster):
    """In one sentence, before anything starts."""
    program = cluster.shared / "program"
    program.write_text("#!/usr/bin/env python3\n")
    program.chmod(0o755)
    started = [
        (["sbatch", "job.sh"], 2, "inside the job's script"),
        (["srun", "--pty", "bash"], 2, "give `wirepress run` in that shell"),
        (["salloc", "-n1"], 1, "give `wirepress run` in that shell"),
    ]
    for words, status, sentence in started:
        done = cluster.run(0, [*WIREPRESS, "--", *words], SHELL="/bin/sh")
        assert sentence in done.stderr and done.returncode == status, done.stderr
    done = cluster.run(0, ["srun", "-N2", "-n2", *WIREPRESS, "--", str(program)])
    assert done.stderr.count("put it before the launcher") == 2, done.stderr
    assert cluster.run(0, ["squeue", "-h"]).stdout == ""
