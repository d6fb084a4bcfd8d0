# SPDX-License-Identifier: Apache-2.0
"""`wirepress run`: what it does to launchers' command lines, and its rendezvous with the ranks.

Launchers here are scripts that show what they were given; real ones are in integrations/mpi and
tests/net.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import resource
import secrets
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import time
from typing import ClassVar

import pytest

from python.tests.run_site import make_launcher, wirepress_run
from wirepress.launch import launchers, rendezvous, run
from wirepress.launch.mpi_libraries import RunError

SIZE = 4


# ---- command lines ---------------------------------------------------------------------------


def test_openmpi_ranks_get_the_variables(site):
    done = wirepress_run("--codec", "zstd:3", "--", "mpirun", "-n", "4", "./app", "-x", "y")
    assert done.returncode == 0
    *words, environment = done.stdout.splitlines()
    assert words[-5:] == ["-n", "4", "./app", "-x", "y"]
    given = dict((w + "=").split("=", 1) for w in words[1:-5:2])
    assert set(words[:-5:2]) == {"-x"}
    assert given["LD_PRELOAD"] == str(site / "lib" / "libwirepress_mpi_openmpi.so") + "="
    assert given["WIREPRESS_MPI_CODEC"] == "zstd:3="
    assert given["WIREPRESS_RENDEZVOUS"] == ""  # from the environment: others read command lines
    addresses, token = environment.removeprefix("environment: ").split(";")
    assert addresses.split(",")[-1].startswith("127.0.0.1:")
    assert len(bytes.fromhex(token)) == 24 and token not in "".join(words)


def test_mpich_ranks_get_the_variables(site):
    done = wirepress_run("--", "mpiexec.mpich", "-n", "2", "./app")
    *words, environment = done.stdout.splitlines()
    assert words[-3:] == ["-n", "2", "./app"]
    assert words[0::3][:2] == ["-genv", "-genv"]
    given = dict(zip(words[1:-3:3], words[2:-3:3], strict=True))
    assert given["LD_PRELOAD"] == str(site / "lib" / "libwirepress_mpi_mpich.so")
    token = environment.split(";")[1]
    assert "WIREPRESS_RENDEZVOUS" not in given and token not in "".join(words)


@pytest.mark.parametrize(
    ("own", "passed"),
    [
        ("-genvall", "-genvall"),
        ("-genvnone", "-genvlist WIREPRESS_RENDEZVOUS"),
        ("-genvlist A,B", "-genvlist A,B,WIREPRESS_RENDEZVOUS"),
        ("-n 1 -envnone a : -envlist A b", "-n 1 -envlist WIREPRESS_RENDEZVOUS a : "
         "-envlist A,WIREPRESS_RENDEZVOUS b"),
    ],
)  # fmt: skip
def test_hydra_hands_the_token_on(own, passed):
    """Where the user restricts what ranks of other hosts get."""
    variables = {"A": "1", "WIREPRESS_RENDEZVOUS": "secret"}
    words = launchers.inject(["mpiexec", *own.split(), "./app"], "mpich", variables)
    assert words == ["mpiexec", "-genv", "A", "1", *passed.split(), "./app"]


def test_every_program_of_an_mpmd_line_gets_them():
    command = ["mpirun", "-n", "1", "a", ":", "-n", "2", "b"]
    words = launchers.inject(command, "openmpi", {"A": "1"})
    assert words == [
        "mpirun", "-x", "A=1", "-n", "1", "a", ":", "-x", "A=1", "-n", "2", "b",
    ]  # fmt: skip
    words = launchers.inject(["mpiexec", *command[1:]], "mpich", {"A": "1"})
    assert words == ["mpiexec", "-genv", "A", "1", *command[1:]]


@pytest.mark.parametrize("own", [["-x", "LD_PRELOAD=/own.so"], ["-x", "LD_PRELOAD"]])
def test_own_preload_is_kept(site, monkeypatch, own):
    monkeypatch.setenv("LD_PRELOAD", "/own.so")
    command = ["mpirun", *own, "./app"]
    words, environment = launchers.wrap(command, "openmpi", {})
    ours = str(site / "lib" / "libwirepress_mpi_openmpi.so")
    assert words[-3:] == ["-x", f"LD_PRELOAD={ours}:/own.so", "./app"]
    assert words.count("LD_PRELOAD") == 0
    assert environment["LD_PRELOAD"] == "/own.so"  # the launcher's own is as before


@pytest.mark.parametrize(
    ("flavour", "line", "good"),
    [
        ("openmpi", "-n 1 -x LD_PRELOAD=/p a : -n 2 b", False),
        ("openmpi", "-n 1 -x LD_PRELOAD=/p a : -n 2 -x LD_PRELOAD=/q b", False),
        ("openmpi", "-n 1 -x LD_PRELOAD=/p a : -n 2 -x LD_PRELOAD=/p b", True),
        ("openmpi", "-n 1 -x OTHER=/p a : -n 2 b", True),
        ("openmpi", "-x LD_PRELOAD=/p -n 2 b", True),
        ("mpich", "-n 1 -env LD_PRELOAD /p a : -n 2 b", False),
        ("mpich", "-n 1 -env LD_PRELOAD /p a : -n 2 -env LD_PRELOAD /p b", True),
        ("mpich", "-genv LD_PRELOAD /p -n 1 a : -n 2 b", True),
    ],
)
def test_a_preload_of_some_programs_is_refused(flavour, line, good):
    with contextlib.nullcontext() if good else pytest.raises(RunError, match="LD_PRELOAD"):
        launchers.check_parts(line.split(), flavour)


def test_own_preload_of_mpich_is_kept(site):
    command = ["mpiexec.mpich", "-genv", "LD_PRELOAD", "/a.so /b.so", "./app"]
    words, _ = launchers.wrap(command, "mpich", {})
    ours = str(site / "lib" / "libwirepress_mpi_mpich.so")
    assert words[4:7] == ["-genv", "LD_PRELOAD", f"{ours}:/a.so:/b.so"]
    assert words[-1] == "./app"
    assert words.count("LD_PRELOAD") == 1


def test_a_setting_on_the_command_line_wins(site):
    words, _ = launchers.wrap(
        ["mpirun", "-x", "WIREPRESS_MPI_CODEC=lz4", "./app"],
        "openmpi",
        {"WIREPRESS_MPI_CODEC": "zstd:1"},
    )
    assert "WIREPRESS_MPI_CODEC=lz4" in words
    assert "WIREPRESS_MPI_CODEC=zstd:1" not in words


def test_variables_are_forwarded(site, monkeypatch):
    monkeypatch.setenv("WIREPRESS_MPI_LINK", "1Gbps")
    done = wirepress_run("--", "mpirun", "./app")
    assert "WIREPRESS_MPI_LINK=1Gbps" in done.stdout.splitlines()
    assert "WIREPRESS_LIB_DIR" not in done.stdout


def test_each_call_of_a_launcher_has_its_own_word(site):
    done = wirepress_run("--", "sh", "-c", "mpirun a; mpirun b; mpiexec.mpich c")
    words = re.findall("WIREPRESS_LAUNCH[=\n](.*)", done.stdout)
    assert len(words) == len(set(words)) == 3 and all(len(word) == 16 for word in words)


def test_a_run_inside_a_script_is_its_own(site):
    """The ranks of the inner one meet at its rendezvous, and their launcher is wrapped once."""
    for launcher in ("mpirun", "mpiexec.mpich"):
        inner = [sys.executable, run.__file__, "--codec", "lz4", "--", launcher, "-n", "1", "a"]
        done = wirepress_run("--", "sh", "-c", shlex.join(inner))
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("LD_PRELOAD") == done.stdout.count("WIREPRESS_LAUNCH") == 1
        assert "WIREPRESS_RENDEZVOUS" in done.stdout or launcher != "mpirun"
        assert done.stdout.count("environment: ") == 1 and "lz4" in done.stdout


def test_launchers_inside_a_script(site):
    done = wirepress_run("--", "sh", "-c", "mpirun -n 1 a && mpiexec.mpich -n 1 b; exit 7")
    assert done.returncode == 7
    assert f"LD_PRELOAD={site / 'lib' / 'libwirepress_mpi_openmpi.so'}" in done.stdout
    assert f"LD_PRELOAD\n{site / 'lib' / 'libwirepress_mpi_mpich.so'}" in done.stdout


@pytest.mark.parametrize(
    ("version", "flavour"),
    [
        ("mpirun (Open MPI) 5.0.11", "openmpi"),
        ("prterun (PRRTE) 3.0.9", "openmpi"),
        ("mpirun.real (OpenRTE) 4.1.2", "openmpi"),
        ("HYDRA build details:\n    Version: 4.3.0", "mpich"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.18", "mpich"),
        ("slurm 23.02.1", ""),
    ],
)
def test_flavours(site, version, flavour):
    assert launchers.flavour_of(str(make_launcher(site, "mpiexec", version))) == flavour


def test_unknown_launcher(site):
    make_launcher(site, "mpiexec", "frobnicate 1.0")
    done = wirepress_run("--", "mpiexec", "-n", "2", "./app")
    assert done.returncode == 2
    assert "frobnicate 1.0" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([], "after --"),
        (["--", "no-such-launcher", "x"], "no such command"),
        (["--report", "/no/such/folder/r.json", "--", "mpirun", "x"], "not a folder"),
    ],
)
def test_mistakes(site, words, part):
    done = wirepress_run(*words)
    assert done.returncode == 2
    assert part in done.stderr
    assert "Traceback" not in done.stderr


def test_exit_code_signal_and_no_leftovers(site, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = os.environ | {"TMPDIR": str(temporary)}
    make_launcher(site, "mpirun", "Open MPI", "exit 42")
    assert wirepress_run("--", "mpirun", env=environment).returncode == 42
    make_launcher(site, "mpirun", "Open MPI", "kill -KILL $$")
    assert wirepress_run("--", "mpirun", env=environment).returncode == 128 + signal.SIGKILL
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_reach_the_launcher(site, signo):
    body = "trap 'echo caught; exit 9' TERM INT USR1; echo ready; while :; do sleep 0.05; done"
    make_launcher(site, "mpirun", "Open MPI", body)
    with subprocess.Popen(
        [sys.executable, run.__file__, "--", "mpirun"],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signo, signal.SIG_DFL),  # ignored in background jobs
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signo)
        assert process.stdout.read() == "caught\n"
    assert process.returncode == 9


@pytest.mark.parametrize("also_alone", [False, True])
def test_a_signal_to_the_group_reaches_the_launcher_once(site, also_alone):
    """As from `timeout`, which sends it to its child as well, and from batch systems: the second
    SIGTERM means to Open MPI's launcher that it may leave its ranks."""
    body = """n=0; trap 'n=$((n + 1))' TERM; trap 'echo $n; exit 9' USR1; echo ready
while :; do sleep 0.05; done"""
    make_launcher(site, "mpirun", "Open MPI", body)
    with subprocess.Popen(
        [sys.executable, run.__file__, "--", "mpirun"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(2):  # what is over does not stand in the way of the next
            if also_alone:
                process.send_signal(signal.SIGTERM)
            os.killpg(process.pid, signal.SIGTERM)
            time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.read() == "3\n"
    assert process.returncode == 9


def test_descriptors_reach_the_command(site, tmp_path):
    """As those of `<(...)`; and their limit is the program's, not the launcher's own."""
    (tmp_path / "given").write_text("what was given")
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    with open(tmp_path / "given") as file:
        given = file.fileno()
        command = [sys.executable, "-m", "wirepress", "run", "--quiet", "--", "sh", "-c"]
        done = subprocess.run(
            [*command, f"cat /dev/fd/{given}; echo; ulimit -n; ls /proc/self/fd"],
            pass_fds=[given],
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    text, limit, *open_ones = done.stdout.splitlines()
    assert text == "what was given" and limit == str(soft)
    assert {int(number) for number in open_ones} <= {0, 1, 2, 3, 4, given}  # ls has one of its own


def test_an_ignored_signal_stays_ignored(site):
    """As under nohup: neither wirepress nor the launcher ends."""
    make_launcher(site, "mpirun", "Open MPI", "echo ready; sleep 0.5; echo done; exit 5")
    with subprocess.Popen(
        [sys.executable, run.__file__, "--", "mpirun"],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGHUP)
        assert process.stdout.read() == "done\n"
    assert process.returncode == 5


def test_what_a_job_waits_for(site):
    """Modules that take long to load, and that `wirepress run` can do without, are not loaded."""
    program = "import sys; sys.argv[1:] = ['run', '--quiet', '--', 'mpirun', 'x']\n"
    program += "from wirepress.__main__ import main; code = main()\n"
    program += "print(*sys.modules); sys.exit(code)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "wirepress.launch.run" in loaded
    assert not loaded & {
        "wirepress.api",
        "wirepress.commands",
        "numpy",
        "dataclasses",
        "tempfile",
    }
    assert not loaded & {"asyncio", "hashlib", "inspect", "shtab", "ssl", "urllib.request"}


def test_an_idle_meeting_point_sleeps(monkeypatch):
    """It is woken by who comes and by the end, and does not look for them now and then."""
    waits = []

    class Selector(selectors.DefaultSelector):
        def select(self, timeout=None):
            waits.append(timeout)
            return super().select(timeout)

    monkeypatch.setattr(rendezvous.selectors, "DefaultSelector", Selector)
    server = rendezvous.Rendezvous(grace=0.6)
    server.start()
    server.stop()
    assert set(waits) <= {None, 0}


# ---- the rendezvous --------------------------------------------------------------------------


@pytest.fixture
def meeting():
    server = rendezvous.Rendezvous(grace=0.6)
    server.start()
    yield server
    while Rank.open:
        Rank.open.pop().close()
    server.stop()


class Rank:
    """One rank's side of the protocol, from spec/report.md."""

    open: ClassVar[list[Rank]] = []

    def __init__(self, server, rank=0, size=SIZE, host="a", config="c", version="1", reason="-",
                 job="j", process="", program="wave"):  # fmt: skip
        self.connect(server)
        self.process = process or secrets.token_hex(8)
        line = f"hello 2 {server.token} {job} {self.process} {rank} {size} {version} {config} "
        self.sock.sendall(f"{line}{host} {program} {reason}\n".encode())

    def connect(self, server):
        addresses, _ = server.address().split(";")
        host, port = addresses.split(",")[-1].split(":")
        self.sock = socket.create_connection((host, int(port)), 10)
        self.file = self.sock.makefile("rb")
        self.open.append(self)
        assert self.line() == f"wirepress 2 {server.token[:16]}\n"

    def line(self) -> str:
        return self.file.readline().decode()

    def close(self):
        self.file.close()
        self.sock.close()


def raw_client(server) -> Rank:
    client = Rank.__new__(Rank)
    client.connect(server)
    return client


def answers(ranks: list[Rank]) -> set[str]:
    """What they were told, the nodes without the cookie."""
    lines = {r.line() for r in ranks}
    for rank in ranks:
        assert rank.line() == ""
        rank.close()
    assert len(lines) == 1
    return {re.sub("^on [0-9a-f]{32} ", "on ", line) for line in lines}


def test_all_come(meeting):
    ranks = [Rank(meeting, r, host="ab"[r // 2]) for r in (2, 0, 3, 1)]
    (line,) = {rank.line() for rank in ranks}
    state, cookie, *nodes = line.split()
    assert state == "on" and nodes == ["0", "0", "1", "1"]
    assert len(bytes.fromhex(cookie)) == 16 and cookie[16:] == meeting.token[:16]


def test_node_numbers_follow_rank_order(meeting):
    ranks = [Rank(meeting, r, host="zyxz"[r]) for r in range(4)]
    assert answers(ranks) == {"on 0 1 2 0\n"}


def test_someone_is_missing(meeting):
    began = time.monotonic()
    assert answers([Rank(meeting, r) for r in (0, 1)]) == {"off ranks 2,3 did not load wirepress\n"}
    assert time.monotonic() - began > 0.5
    # One that was only late is told the same, whoever it is.
    assert answers([Rank(meeting, 3)]) == {"off ranks 2,3 did not load wirepress\n"}
    assert len(meeting.jobs) == 1


def test_someone_refuses(meeting):
    ranks = [Rank(meeting, r, reason="-" if r else "no memory for it") for r in range(4)]
    assert answers(ranks) == {"off rank 0: no memory for it\n"}


def test_settings_and_versions_differ(meeting):
    ranks = [Rank(meeting, r, config="c" if r < 3 else "d") for r in range(4)]
    assert answers(ranks) == {"off ranks 0 and 3 have different settings\n"}
    ranks = [Rank(meeting, r, version="1" if r else "2") for r in range(4)]
    assert answers(ranks) == {"off rank 0 has wirepress 2, rank 1 has 1\n"}


def test_two_ranks_with_one_number(meeting):
    ranks = [Rank(meeting, r) for r in (0, 1, 1)]
    assert answers(ranks) == {"off rank 1: another process is rank 1 of j, too\n"}


@pytest.mark.parametrize("seed", range(20))
def test_jobs_that_meet_at_the_same_time(meeting, seed):
    """Hellos of many jobs in any order: each gets its own cookie, nodes and reports."""
    order = random.Random(seed)
    sizes = [order.randint(1, 5) for _ in range(8)]
    seats = [(job, rank) for job, size in enumerate(sizes) for rank in range(size)]
    order.shuffle(seats)
    ranks = {
        (job, rank): Rank(meeting, rank, sizes[job], host=f"h{rank * job % 3}", job=f"j{job}")
        for job, rank in seats
    }
    cookies = set()
    for job, size in enumerate(sizes):
        told = {ranks[job, rank].line() for rank in range(size)}
        assert len(told) == 1
        _, cookie, *nodes = told.pop().split()
        hosts = [rank * job % 3 for rank in range(size)]
        assert [int(node) for node in nodes] == [list(dict.fromkeys(hosts)).index(h) for h in hosts]
        cookies.add(cookie)
    assert len(cookies) == len(sizes)
    order.shuffle(seats)
    for job, rank in seats:
        assert send_report(meeting, ranks[job, rank], {"job": job, "rank": rank}) == "ok\n"
    found = sorted([report for job in meeting.jobs for report in job.reports.items()], key=str)
    assert len(found) == len(seats) and all(report["rank"] == rank for rank, report in found)
    for job in meeting.jobs:
        assert len({report["job"] for report in job.reports.values()}) == 1
        assert sorted(job.reports) == list(range(job.size))


def test_jobs_in_the_worst_order(meeting):
    """A0 B1 A1 B0 are two jobs, and neither is the first two of them."""
    a0, b1 = Rank(meeting, 0, 2, job="a"), Rank(meeting, 1, 2, job="b")
    a1, b0 = Rank(meeting, 1, 2, job="a"), Rank(meeting, 0, 2, job="b")
    assert answers([a0, a1]) == answers([b0, b1]) == {"on 0 0\n"}


def test_a_name_that_comes_again(meeting):
    """Ranks that run one program after the other keep their job's name."""
    first = [Rank(meeting, r, 2) for r in range(2)]
    second = [Rank(meeting, r, 2) for r in range(2)]
    lines = [rank.line() for rank in (*first, *second)]
    assert lines[0] == lines[1] != lines[2] == lines[3]
    assert [send_report(meeting, r, {"n": n}) for n, r in enumerate((*second, *first))] == [
        "ok\n"
    ] * 4
    assert [job.reports[0]["n"] for job in meeting.jobs] == [2, 0]


def test_a_rank_that_missed_the_verdict_asks_again(meeting):
    ranks = [Rank(meeting, r, host="ab"[r // 2]) for r in range(4)]
    (line,) = {rank.line() for rank in ranks}
    others = [Rank(meeting, r, size=2, job="k") for r in range(2)]
    answers(others)
    for r in (3, 3, 0):
        assert Rank(meeting, r, process=ranks[r].process).line() == line
    again = [Rank(meeting, r) for r in range(4)]  # the next of this name
    assert Rank(meeting, 1, process=ranks[1].process).line() == line
    assert {rank.line() for rank in again} != {line}
    assert len(meeting.jobs) == 3


def test_a_rank_that_left_before_the_verdict_says_hello_again(meeting):
    ranks = [Rank(meeting, r) for r in range(3)]
    ranks[1].close()
    wait_until(lambda: len(meeting._clients) == 2)
    ranks[1] = Rank(meeting, 1, process=ranks[1].process)
    ranks.append(Rank(meeting, 3))
    assert answers(ranks) == {"on 0 0 0 0\n"}


def test_a_broken_connection_that_the_server_does_not_see(meeting):
    """The same process, twice: both connections hear the same."""
    one = Rank(meeting, 0, 2, job="y")
    two = Rank(meeting, 0, 2, job="y", process=one.process)
    assert answers([one, two, Rank(meeting, 1, 2, job="y")]) == {"on 0 0\n"}


def test_next_job_starts_fresh(meeting):
    assert answers([Rank(meeting, r) for r in range(4)]) == {"on 0 0 0 0\n"}
    assert answers([Rank(meeting, r, size=2, job="k") for r in range(2)]) == {"on 0 0\n"}
    assert [job.size for job in meeting.jobs] == [4, 2]
    assert meeting.jobs[0].cookie != meeting.jobs[1].cookie


def test_a_rank_that_left_can_come_again(meeting):
    Rank(meeting, 0, size=2).close()
    wait_until(lambda: not meeting._clients)
    assert answers([Rank(meeting, r, size=2) for r in range(2)]) == {"on 0 0\n"}


def wait_until(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def send_report(server, rank: Rank, report: object, length: int | None = None) -> str:
    data = json.dumps(report).encode()
    client = raw_client(server)
    header = f"report 2 {server.token} {rank.process} {len(data) if length is None else length}\n"
    client.sock.sendall(header.encode() + data)
    client.sock.shutdown(socket.SHUT_WR)
    answer = client.line()
    client.close()
    return answer


def test_reports(meeting):
    ranks = [Rank(meeting, r) for r in range(4)]
    answers(ranks)
    for rank in range(4):
        report = {"rank": rank, "padding": "x" * 300_000}
        assert send_report(meeting, ranks[rank], report) == "ok\n"
    assert [meeting.jobs[0].reports[r]["rank"] for r in range(4)] == [0, 1, 2, 3]
    stranger = raw_client(meeting)
    stranger.process = "00" * 8
    assert send_report(meeting, stranger, {}) == ""
    assert send_report(meeting, ranks[0], [1]) == ""  # not an object
    assert send_report(meeting, ranks[0], {}, length=1) == ""
    assert send_report(meeting, ranks[0], {}, length=1 << 40) == ""


GARBAGE = [
    b"\n",
    b"\0" * 5000,
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"hello\n",
    b"hello 2 wrong j p 0 4 1 c a w -\n",
    b"hello 2 " + "ü".encode() + b" j p 0 4 1 c a w -\n",
    b"hello 9 TOKEN j p 0 4 1 c a w -\n",
    b"hello 1 TOKEN 0 4 1 c a -\n",
    b"hello 2 TOKEN j p 4 4 1 c a w -\n",
    b"hello 2 TOKEN j p -1 4 1 c a w -\n",
    b"hello 2 TOKEN j p 0 99999999 1 c a w -\n",
    b"hello 2 TOKEN j p 0 4 1 c a w -\nand more",
    b"hello 2 TOKEN j p 0 4 1 c a w\n",
    b"report 2 TOKEN p 2\n{}",
    b"report 2 TOKEN p 200000\n" + b"[" * 200_000,
    b"x" * 100_000,
]


@pytest.mark.parametrize("words", GARBAGE)
def test_garbage_is_dropped_and_holds_up_nobody(meeting, words):
    client = raw_client(meeting)
    client.sock.sendall(words.replace(b"TOKEN", meeting.token.encode()))
    client.sock.settimeout(5)
    with contextlib.suppress(ConnectionResetError):
        assert client.line() == ""
    client.close()
    assert answers([Rank(meeting, r) for r in range(4)]) == {"on 0 0 0 0\n"}


def test_silent_clients_hold_up_nobody(meeting, monkeypatch):
    monkeypatch.setattr(rendezvous, "SLOW_CLIENT_SECONDS", 0.3)
    silent = [raw_client(meeting) for _ in range(50)]
    slow = raw_client(meeting)
    slow.sock.sendall(b"hel")
    assert answers([Rank(meeting, r) for r in range(4)]) == {"on 0 0 0 0\n"}
    for client in (*silent, slow):
        assert client.line() == ""
        client.close()


def test_many_ranks(meeting):
    meeting.grace = 60  # it counts from the first hello, and a busy machine is slow
    ranks = [Rank(meeting, r, size=200, host=f"h{r // 8}") for r in range(200)]
    (decision,) = answers(ranks)
    assert decision.split()[-1] == "24"


# ---- report and summary ----------------------------------------------------------------------

JOINING = """
import os, secrets, socket, sys
addresses, token = os.environ["WIREPRESS_RENDEZVOUS"].split(";")
host, port = addresses.split(",")[-1].split(":")
def connect():
    s = socket.create_connection((host, int(port)))
    file = s.makefile(); file.readline()
    return s, file
me = secrets.token_hex(8)
s, file = connect(); s.sendall(f"hello 2 {token} {me} {me} 0 1 0.1 c a wave -\\n".encode())
assert file.read().split()[::2] == ["on", "0"]
body = open(sys.argv[1], "rb").read()
r, file = connect(); r.sendall(f"report 2 {token} {me} {len(body)}\\n".encode() + body)
assert file.read() == "ok\\n"
"""


@pytest.fixture
def job(site):
    """A launcher whose one rank joins and reports what lies in rank.json."""
    (site / "rank.py").write_text(JOINING)
    call = {
        "messages": 3, "compressed_messages": 2, "raw_bytes": 3_000_000, "wire_bytes": 1_000_000,
        "compress_seconds": 0.25, "wait_seconds": 0.5, "decompress_seconds": 0.125,
        "bypasses": {"small": 1},
    }  # fmt: skip
    (site / "rank.json").write_text(json.dumps({"rank": 0, "calls": {"MPI_Send": call}}))
    body = f"{sys.executable} {site}/rank.py {site}/rank.json"
    make_launcher(site, "mpirun", "Open MPI", body)
    return site


def test_report_and_summary(job):
    path = job / "report.json"
    done = wirepress_run("--report", str(path), "--", "mpirun", "-n", "1", "x")
    assert done.returncode == 0, done.stderr
    assert "3.0 MB -> 1.0 MB (3.00x)" in done.stderr
    assert "1 small" in done.stderr
    report = json.loads(path.read_text())
    assert report["state"] == "on"
    assert report["mpi"] == "openmpi"
    assert report["exit_code"] == 0
    assert report["totals"]["wire_bytes"] == 1_000_000
    assert report["ranks"][0]["calls"]["MPI_Send"]["messages"] == 3


def test_explain(job):
    site = {
        "caller": "lm+0x1234", "function": "exchange", "call": "MPI_Isend", "type": "float32",
        "bytes_from": 1048576, "messages": 10, "compressed_messages": 8, "raw_bytes": 12_000_000,
        "wire_bytes": 3_000_000, "choice": "zeros", "why": "the link moves 0.12 GB/s",
    }  # fmt: skip
    contest = {
        "call": "MPI_Bcast", "type": "bytes", "bytes_from": 65536, "ranks": 4, "winner": "plain",
        "plain_seconds": 0.002, "own_seconds": 0.003,
    }  # fmt: skip
    report = {"rank": 0, "calls": {}, "sites": [site, site], "contests": [contest]}
    (job / "rank.json").write_text(json.dumps(report))
    done = wirepress_run("--quiet", "--explain", "--", "mpirun", "-n", "1", "x")
    assert done.returncode == 0, done.stderr
    assert "24.0        6.0        20      16  MPI_Isend, float32 from 1,048,576" in done.stderr
    assert "exchange" in done.stderr and "zeros: the link moves 0.12 GB/s" in done.stderr
    assert "MPI's own algorithm (2 ms MPI's, 3 ms wirepress's)" in done.stderr


def test_second_job_has_its_own_report(job):
    path = job / "report.json"
    done = wirepress_run("--report", str(path), "--", "sh", "-c", "mpirun x; mpirun x")
    assert done.returncode == 0, done.stderr
    assert json.loads((job / "report-2.json").read_text())["state"] == "on"
    assert "job 2 (wave, 1 rank): 3 messages" in done.stderr
    assert "2 of 2 jobs compressed: 6 messages" in done.stderr
    assert f"reports: {path} to {job}/report-2.json" in done.stderr


def test_many_jobs_have_a_short_summary(job):
    """A line for all that were on and one for each reason; their reports tell the rest."""
    script = "for i in 1 2 3 4 5 6 7 8 9 10; do mpirun x & done; wait"
    done = wirepress_run("--report", str(job / "out.json"), "--", "bash", "-c", script)
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert "10 of 10 jobs compressed: 30 messages, 30.0 MB -> 10.0 MB" in done.stderr
    reports = [json.loads(path.read_text()) for path in job.glob("out*.json")]
    assert len(reports) == 10
    assert {(r["program"], r["size"], len(r["ranks"])) for r in reports} == {("wave", 1, 1)}


def test_quiet(job):
    assert wirepress_run("--quiet", "--", "mpirun", "x").stderr == ""


def test_full_disk_leaves_no_half_report(job, monkeypatch, tmp_path):
    """A file size limit stands for a full disk: the same OSError path, without a disk to fill."""
    folder = tmp_path / "out"
    folder.mkdir()
    rank = json.loads((job / "rank.json").read_text()) | {"padding": "x" * 100_000}
    (job / "rank.json").write_text(json.dumps(rank))
    words = [sys.executable, run.__file__, "--report", str(folder / "r.json"), "--", "mpirun", "x"]
    limited = "import resource, os, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "
    limited += "os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", limited, *words], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "cannot write the report" in done.stderr
    assert list(folder.iterdir()) == []


def test_report_into_what_is_no_file(job, tmp_path):
    """Nothing is put in the place of a pipe or device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    done = wirepress_run("--report", str(pipe), "--", "mpirun", "x")
    assert done.returncode == 0, done.stderr
    assert pipe.is_fifo() and b'"version": 1' in os.read(reader, 1 << 16)
    os.close(reader)


# ---- where it listens ------------------------------------------------------------------------


def test_ports_that_a_firewall_lets_through(site, monkeypatch):
    """The first free one of a range; none is left where all are in use."""
    with socket.create_server(("", 0)) as taken, contextlib.ExitStack() as stack:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            rendezvous.listen(range(port, port + 1))
        free = stack.enter_context(rendezvous.listen(range(port, port + 20)))
        assert port < free.getsockname()[1] < port + 20
        monkeypatch.setenv("WIREPRESS_PORTS", str(port))
        done = wirepress_run("--", "mpirun", "./app")
        assert done.returncode == 2 and "Address already in use" in done.stderr, done.stderr
        monkeypatch.setenv("WIREPRESS_PORTS", f"{port}-{port + 20}")
        *_, environment = wirepress_run("--", "mpirun", "./app").stdout.splitlines()
        assert port < int(re.search(r":(\d+);", environment)[1]) <= port + 20


@pytest.mark.parametrize("text", ["", "x", "5-", "0-9", "9-5", "1-70000", "-5", "1-2-3"])
def test_ports_that_are_none(site, monkeypatch, text):
    monkeypatch.setenv("WIREPRESS_PORTS", text)
    done = wirepress_run("--", "mpirun", "./app")
    assert done.returncode == 2 and "no range of ports" in done.stderr
