# SPDX-License-Identifier: Apache-2.0
"""Slurm's command lines, as `wirepress run` reads and extends them. A real Slurm: tests/net."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wirepress.launch import job_report, launchers, rendezvous, run, slurm

VARIABLES = {"A": "1", "WIREPRESS_RENDEZVOUS": "secret"}
OURS = "A,WIREPRESS_RENDEZVOUS"


def wirepress_run(*words: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, run.__file__, *map(str, words)]
    environment = {k: v for k, v in os.environ.items() if k not in launchers.RANKS_OF_A_JOB}
    return subprocess.run(
        command, env=environment | settings, capture_output=True, text=True, timeout=60
    )


def make(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("-n 2 ./a -n 3", "./a -n 3"),
        ("-n2 -lN 1 ./a", "./a"),
        ("-lK ./a", "./a"),
        ("--label ./a", "./a"),
        ("--ntasks 2 --mpi=pmix ./a --export=NONE", "./a --export=NONE"),
        ("--nta 2 --bcast ./a", "./a"),
        ("--nice --export NONE ./a", "./a"),
        ("-n 2 -- -a b", "-a b"),
        ("--of-a-plugin no-such-command -n 2 sh", "sh"),
        ("--of-a-plugin sh -n 2", "sh -n 2"),
        ("-n 1 ./a : -n 2 ./b c", "./a|./b c"),
        ("", ""),
    ],
)
def test_where_the_program_begins(line, program):
    parts = slurm.components(line.split())
    assert "|".join(" ".join(part.program) for part in parts) == program
    assert slurm.joined(parts) == line.split()


@pytest.mark.parametrize(
    ("words", "exported"),
    [
        ("-n 2 ./a", "-n 2 ./a"),
        ("--export=ALL,X=1 ./a", "--export=ALL,X=1 ./a"),
        ("--export=all ./a", "--export=all ./a"),
        ("--export=NONE ./a", f"--export={OURS} ./a"),
        ("--export=none ./a", f"--export={OURS} ./a"),
        ("--export=X,NONE,Y ./a", f"--export=X,{OURS} ./a"),  # Slurm reads up to there
        ("--exp=NIL ./a", f"--exp={OURS} ./a"),
        ("--export X ./a", f"--export X,{OURS} ./a"),
        ("--export=X='1,A=2',Y ./a", f"--export=X='1,A=2',Y,{OURS} ./a"),
        ("--export=A=2,X ./a", f"--export=X,{OURS} ./a"),
        ("--export=ALL,A=2 ./a", "--export=ALL ./a"),
        ("./a --export=NONE", "./a --export=NONE"),
        ("--export=NONE ./a : --export=B ./b", f"--export={OURS} ./a : --export=B,{OURS} ./b"),
    ],
)
def test_srun_hands_the_variables_on(words, exported):
    """Also where the user restricts what it hands on."""
    given, environment = slurm.export(["srun", *words.split()], {"B": "2"}, VARIABLES)
    assert given == ["srun", *exported.split()]
    assert environment == {"B": "2"} | VARIABLES


@pytest.mark.parametrize("name", ["SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV"])
@pytest.mark.parametrize(
    ("names", "exported"), [("NONE", OURS), ("B", f"B,{OURS}"), ("ALL", "ALL")]
)
def test_srun_is_told_by_a_variable(name, names, exported):
    """As sbatch --export does it for the steps of its job."""
    _, environment = slurm.export(["srun", "./a"], {name: names}, VARIABLES)
    assert environment[name] == exported


@pytest.mark.parametrize(
    ("options", "environment", "value"),
    [
        ("", {"P": "1"}, "1"),
        ("--export=NONE", {"P": "1"}, None),
        ("--export=P", {"P": "1"}, "1"),
        ("--export=Q", {"P": "1"}, None),
        ("--export=ALL,P=2", {"P": "1"}, "2"),
        ("--export=P='2'", {}, "2"),
        ("", {"P": "1", "SLURM_EXPORT_ENV": "NONE"}, None),
        ("", {"P": "1", "SLURM_EXPORT_ENV": "NONE", "SRUN_EXPORT_ENV": "P"}, "1"),
        ("--export=ALL", {"P": "1", "SLURM_EXPORT_ENV": "NONE"}, "1"),
    ],
)
def test_what_tasks_would_have_had(options, environment, value):
    assert slurm.handed_on(["srun", *options.split(), "./a"], environment, "P") == value


@pytest.fixture
def library(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith(("WIREPRESS_", "LD_", "SLURM_", "SRUN_")):
            monkeypatch.delenv(name)
    path = tmp_path / "libwirepress_mpi_openmpi.so"
    monkeypatch.setattr(launchers.mpi_libraries, "preloaded", lambda *_: [path])
    return path


def preload_of(*options: str) -> tuple[list[str], str]:
    words, environment = launchers.wrap(["srun", *options, "./a"], "openmpi", {})
    return words, environment["LD_PRELOAD"]


def test_own_preload_is_kept(library, monkeypatch):
    words, preload = preload_of("--export=ALL,LD_PRELOAD=/own.so")
    assert words == ["srun", "--export=ALL", "./a"] and preload == f"{library}:/own.so"
    monkeypatch.setenv("LD_PRELOAD", "/own.so")
    assert preload_of()[1] == f"{library}:/own.so"
    assert preload_of("--export=NONE")[1] == str(library)  # srun would drop it, too


def test_an_mpiexec_that_calls_srun(library, monkeypatch):
    """What srun is to keep back must not keep the token from the ranks."""
    monkeypatch.setenv("SLURM_EXPORT_ENV", "NONE")
    _, environment = launchers.wrap(["mpiexec", "./a"], "mpich", {launchers.SECRET: "token"})
    assert environment["SLURM_EXPORT_ENV"] == launchers.SECRET
    assert environment[launchers.SECRET] == "token"


def test_settings_for_srun_alone(library):
    """`./a -x NAME=VALUE` is the program's affair, --export is not."""
    settings = {"WIREPRESS_MPI_CODEC": "zstd:1"}
    command = ["srun", "--export=ALL,WIREPRESS_MPI_CODEC=lz4", "./a"]
    assert launchers.wrap(command, "openmpi", settings)[1]["WIREPRESS_MPI_CODEC"] == "lz4"
    command = ["srun", "./a", "-x", "WIREPRESS_MPI_CODEC=lz4"]
    words, environment = launchers.wrap(command, "openmpi", settings)
    assert words == command and environment["WIREPRESS_MPI_CODEC"] == "zstd:1"


def test_programs_of_a_file(tmp_path):
    conf = tmp_path / "conf"
    conf.write_text("# tasks program\n0 ./a %t\n\n1-3,5 \\\n ./b x\n* ./c\n")
    words = ["srun", "-n", "7", "--multi-prog", str(conf)]
    assert slurm.programs(words) == ["./a", "./b", "./c"]
    assert slurm.programs(["srun", "--mult", str(tmp_path / "none")]) == []


@pytest.mark.parametrize("queue", ["sbatch", "/opt/bin/qsub", "bsub"])
def test_a_queue_is_refused(tmp_path, queue):
    assert "inside the job's script" in launchers.refusal([queue, "job.sh"])


def test_a_launcher_that_nobody_tried_is_refused(tmp_path):
    make(tmp_path, "jsrun", "#!/bin/sh\necho ran\n")
    done = wirepress_run("--", tmp_path / "jsrun", "-n", "4", "./app")
    assert (done.returncode, done.stdout) == (2, "") and "take mpirun" in done.stderr


def test_a_queue_in_a_script_is_none_of_the_run(tmp_path):
    """A script that ends by queueing the next job; that one must not see our launchers."""
    make(tmp_path, "sbatch", "#!/bin/sh\necho $PATH; echo $*\n")
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = wirepress_run("--", "sh", "-c", "sbatch --parsable next.sh", PATH=path)
    assert done.stdout.splitlines() == [path, "--parsable next.sh"]
    assert "job that sbatch queues is no part of this run" in done.stderr
    done = wirepress_run("--", "sbatch", "next.sh", PATH=path)
    assert done.returncode == 2 and done.stdout == ""


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("--pty bash", True),
        ("--pty bash -l", True),
        ("--interactive --preserve-env --pty /opt/shell", True),
        ("--pty bash -c ./a", False),
        ("bash job.sh", False),
        ("./a bash", False),
    ],
)
def test_a_shell_on_a_node_is_refused(line, refused):
    assert bool(slurm.refusal(["srun", *line.split()])) is refused


@pytest.mark.parametrize("variable", launchers.RANKS_OF_A_JOB)
def test_a_run_in_every_rank_is_refused(tmp_path, variable):
    program = make(tmp_path, "program", "#!/usr/bin/env python3\nprint('ran')\n")
    done = wirepress_run("--", program, **{variable: "4"})
    assert done.returncode == 2 and "put it before the launcher" in done.stderr
    for size, words in (("1", [program]), ("4", ["sh", "-c", str(program)])):
        assert wirepress_run("--", *words, **{variable: size}).stdout == "ran\n"
    typed = {variable: "4", "SLURM_PTY_PORT": "1"}  # in srun -n 4 --pty bash
    assert wirepress_run("--", program, **typed).stdout == "ran\n"


def test_the_mpi_of_what_a_script_starts(tmp_path):
    """srun serves several MPIs; --mpi says which, and is no order to treat salloc as a launcher."""
    (tmp_path / "libwirepress_mpi_openmpi.so").touch()
    make(
        tmp_path, "srun", '#!/bin/sh\n[ "$1" = --version ] && echo slurm || echo "$LD_PRELOAD" $*\n'
    )
    make(tmp_path, "salloc", '#!/bin/sh\nshift 2; exec "$@"\n')
    settings = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "WIREPRESS_LIB_DIR": str(tmp_path)}
    words = ["salloc", "-n", "2", "srun", "python3", "a.py"]
    assert "give --mpi" in wirepress_run("--", *words, **settings).stderr
    done = wirepress_run("--mpi", "openmpi", "--", *words, **settings)
    assert done.stdout == f"{tmp_path}/libwirepress_mpi_openmpi.so python3 a.py\n", done.stderr


def test_ranks_that_take_themselves_for_jobs():
    def job(name: str, size: int = 1) -> rendezvous.Job:
        hello = rendezvous.Hello(name, name, 0, size, "1", "c", "h", "p", "-")
        found = rendezvous.Job(0, "")
        found.hellos, found.state, found.size = {0: hello}, "on", size
        return found

    farm = [job("-/1"), job("-/2"), job("a/3"), job("b/4"), job("c/x", 2)]
    assert job_report.most_lone_ranks(farm) == 0
    assert job_report.most_lone_ranks([*farm, job("b/5"), job("b/6")]) == 3
    assert "3 ranks that one call" in job_report.summaries([*farm, job("b/5"), job("b/6")], 0)[-1]
