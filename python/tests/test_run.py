# SPDX-License-Identifier: Apache-2.0
"""`wirepress run`: what it does to launchers' command lines, and its rendezvous with the ranks.

Launchers here are scripts that show what they were given; real ones are in integrations/mpi and
tests/net.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wirepress import launchers, rendezvous, run

SIZE = 4
FAKE = """#!/bin/sh
if [ "$1" = --version ]; then echo "{version}"; exit 0; fi
{body}
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Two launchers, both libraries, and nothing of the environment that matters."""
    for name in list(os.environ):
        if name.startswith(("WIREPRESS_", "LD_")):
            monkeypatch.delenv(name)
    (tmp_path / "lib").mkdir()
    for flavour in ("openmpi", "mpich"):
        (tmp_path / "lib" / f"libwirepress_mpi_{flavour}.so").touch()
    monkeypatch.setenv("WIREPRESS_LIB_DIR", str(tmp_path / "lib"))
    (tmp_path / "bin").mkdir()
    make_launcher(tmp_path, "mpirun", "mpirun (Open MPI) 4.1.4")
    make_launcher(tmp_path, "mpiexec.mpich", "HYDRA build details: Version: 4.0.2")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path


def make_launcher(site: Path, name: str, version: str, body: str = 'printf "%s\\n" "$@"') -> Path:
    path = site / "bin" / name
    path.write_text(FAKE.format(version=version, body=body))
    path.chmod(0o755)
    return path


def wirepress_run(*words: str, **kwargs) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, run.__file__, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **kwargs)


# ---- command lines ---------------------------------------------------------------------------


def test_openmpi_ranks_get_the_variables(site):
    done = wirepress_run("--codec", "zstd:3", "--", "mpirun", "-n", "4", "./app", "-x", "y")
    assert done.returncode == 0
    words = done.stdout.split("\n")[:-1]
    assert words[-5:] == ["-n", "4", "./app", "-x", "y"]
    given = dict(w.split("=", 1) for flag, w in zip(words[:-5:2], words[1:-5:2], strict=True))
    assert set(words[:-5:2]) == {"-x"}
    assert given["LD_PRELOAD"] == str(site / "lib" / "libwirepress_mpi_openmpi.so")
    assert given["WIREPRESS_MPI_CODEC"] == "zstd:3"
    addresses, token = given["WIREPRESS_RENDEZVOUS"].split(";")
    assert addresses.split(",")[-1].startswith("127.0.0.1:")
    assert len(bytes.fromhex(token)) == 16


def test_mpich_ranks_get_the_variables(site):
    done = wirepress_run("--", "mpiexec.mpich", "-n", "2", "./app")
    words = done.stdout.split("\n")[:-1]
    assert words[-3:] == ["-n", "2", "./app"]
    assert words[0::3][:2] == ["-genv", "-genv"]
    given = dict(zip(words[1:-3:3], words[2:-3:3], strict=True))
    assert given["LD_PRELOAD"] == str(site / "lib" / "libwirepress_mpi_mpich.so")


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
    words, environment = launchers.wrap(command, "openmpi", site, {})
    ours = str(site / "lib" / "libwirepress_mpi_openmpi.so")
    assert words == ["mpirun", "-x", f"LD_PRELOAD={ours}:/own.so", "./app"]
    assert environment["LD_PRELOAD"] == "/own.so"  # the launcher's own is as before


def test_own_preload_of_mpich_is_kept(site):
    command = ["mpiexec", "-genv", "LD_PRELOAD", "/a.so /b.so", "./app"]
    words, _ = launchers.wrap(command, "mpich", site, {})
    ours = str(site / "lib" / "libwirepress_mpi_mpich.so")
    assert words[1:4] == ["-genv", "LD_PRELOAD", f"{ours}:/a.so:/b.so"]
    assert words[-1] == "./app"
    assert words.count("LD_PRELOAD") == 1


def test_a_setting_on_the_command_line_wins(site):
    words, _ = launchers.wrap(
        ["mpirun", "-x", "WIREPRESS_MPI_CODEC=lz4", "./app"],
        "openmpi",
        site,
        {"WIREPRESS_MPI_CODEC": "zstd:1"},
    )
    assert "WIREPRESS_MPI_CODEC=lz4" in words
    assert "WIREPRESS_MPI_CODEC=zstd:1" not in words


def test_variables_are_forwarded(site, monkeypatch):
    monkeypatch.setenv("WIREPRESS_MPI_LINK", "1Gbps")
    done = wirepress_run("--", "mpirun", "./app")
    assert "WIREPRESS_MPI_LINK=1Gbps" in done.stdout.splitlines()
    assert "WIREPRESS_LIB_DIR" not in done.stdout


def test_mpich_under_its_other_name(tmp_path):
    """A Debian-like tree: libmpich.so.12 alone; the alias is what mpi4py looks for."""
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/lib").mkdir()
    real = tmp_path / "usr/lib/libmpich.so.12"
    real.touch()
    launcher = tmp_path / "usr/bin/mpiexec"
    launcher.touch(mode=0o755)
    folder = launchers.mpich_alias_dir(str(launcher), tmp_path)
    assert folder is not None
    assert sorted(p.name for p in folder.iterdir()) == ["libmpi.so", "libmpi.so.12"]
    assert {p.resolve() for p in folder.iterdir()} == {real}


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


def test_library_that_was_not_built(site, monkeypatch):
    monkeypatch.setattr(launchers, "library_dirs", lambda: [site / "elsewhere"])
    with pytest.raises(launchers.RunError, match=r"libmpich-dev.*build wirepress again"):
        launchers.library_for("mpich")


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


# ---- the rendezvous --------------------------------------------------------------------------


@pytest.fixture
def meeting():
    server = rendezvous.Rendezvous(grace=0.6)
    server.start()
    yield server
    server.stop()


class Rank:
    """One rank's side of the protocol, from spec/report.md."""

    def __init__(self, server, rank=0, size=SIZE, host="a", config="c", version="1", reason="-"):
        self.connect(server)
        line = f"hello 1 {server.token} {rank} {size} {version} {config} {host} {reason}\n"
        self.sock.sendall(line.encode())

    def connect(self, server):
        addresses, _ = server.address().split(";")
        host, port = addresses.split(",")[-1].split(":")
        self.sock = socket.create_connection((host, int(port)), 10)
        self.file = self.sock.makefile("rb")

    def line(self) -> str:
        return self.file.readline().decode()

    def close(self):
        self.file.close()
        self.sock.close()


def raw_client(server) -> Rank:
    client = Rank.__new__(Rank)
    client.connect(server)
    return client


def answers(ranks: list[Rank]) -> tuple[set[str], set[str]]:
    cookies, decisions = {r.line() for r in ranks}, {r.line() for r in ranks}
    for rank in ranks:
        assert rank.line() == ""
        rank.close()
    return cookies, decisions


def test_all_come(meeting):
    ranks = [Rank(meeting, r, host="ab"[r // 2]) for r in (2, 0, 3, 1)]
    cookies, decisions = answers(ranks)
    assert decisions == {"on 0 0 1 1\n"}
    (cookie,) = cookies
    assert len(bytes.fromhex(cookie.removeprefix("cookie ").strip())) == 16


def test_node_numbers_follow_rank_order(meeting):
    ranks = [Rank(meeting, r, host="zyxz"[r]) for r in range(4)]
    assert answers(ranks)[1] == {"on 0 1 2 0\n"}


def test_someone_is_missing(meeting):
    began = time.monotonic()
    _, decisions = answers([Rank(meeting, r) for r in (0, 1)])
    assert decisions == {"off ranks 2,3 did not load wirepress\n"}
    assert 0.5 < time.monotonic() - began < 5


def test_someone_refuses(meeting):
    ranks = [Rank(meeting, r, reason="-" if r else "no memory for it") for r in range(4)]
    assert answers(ranks)[1] == {"off rank 0: no memory for it\n"}


def test_settings_and_versions_differ(meeting):
    ranks = [Rank(meeting, r, config="c" if r < 3 else "d") for r in range(4)]
    assert answers(ranks)[1] == {"off ranks 0 and 3 have different settings\n"}
    ranks = [Rank(meeting, r, version="1" if r else "2") for r in range(4)]
    assert answers(ranks)[1] == {"off rank 0 has wirepress 2, rank 1 has 1\n"}


def test_two_ranks_with_one_number(meeting):
    ranks = [Rank(meeting, r) for r in (0, 1, 1)]
    assert answers(ranks)[1] == {
        "off rank 1: two ranks have this number (are two jobs starting at the same time?)\n"
    }


def ask_again(server, rank: int, cookie: str) -> str:
    client = raw_client(server)
    client.sock.sendall(f"again 1 {server.token} {rank} {cookie}\n".encode())
    answer = client.line()
    assert client.line() == ""
    client.close()
    return answer


def test_a_rank_that_missed_the_verdict_asks_again(meeting):
    ranks = [Rank(meeting, r, host="ab"[r // 2]) for r in range(4)]
    cookies, decisions = answers(ranks)
    first = cookies.pop().split()[1]
    assert {ask_again(meeting, r, first) for r in (3, 3, 0)} == decisions == {"on 0 0 1 1\n"}
    answers([Rank(meeting, r, size=2) for r in range(2)])  # another job changes nothing
    assert ask_again(meeting, 1, first) == "on 0 0 1 1\n"
    assert ask_again(meeting, 4, first) == "undecided\n"  # no rank of that job
    assert ask_again(meeting, 0, "00" * 16) == "undecided\n"


def test_a_rank_that_left_before_the_verdict_says_hello_again(meeting):
    ranks = [Rank(meeting, r) for r in range(3)]
    cookie = ranks[1].line().split()[1]
    ranks[1].close()
    assert ask_again(meeting, 1, cookie) == "undecided\n"
    ranks[1] = Rank(meeting, 1)
    ranks.append(Rank(meeting, 3))
    cookies, decisions = answers(ranks)
    assert cookies == {f"cookie {cookie}\n"} and decisions == {"on 0 0 0 0\n"}


def test_next_job_starts_fresh(meeting):
    first, _ = answers([Rank(meeting, r) for r in range(4)])
    second, decisions = answers([Rank(meeting, r, size=2) for r in range(2)])
    assert decisions == {"on 0 0\n"}
    assert first != second
    assert [job.size for job in meeting.jobs] == [4, 2]


def test_a_rank_that_left_can_come_again(meeting):
    Rank(meeting, 0, size=2).close()
    time.sleep(0.1)
    assert answers([Rank(meeting, r, size=2) for r in range(2)])[1] == {"on 0 0\n"}


def send_report(server, rank: int, report: object, length: int | None = None) -> str:
    data = json.dumps(report).encode()
    client = raw_client(server)
    header = f"report {server.token} {rank} {len(data) if length is None else length}\n"
    client.sock.sendall(header.encode() + data)
    client.sock.shutdown(socket.SHUT_WR)
    answer = client.line()
    client.close()
    return answer


def test_reports(meeting):
    answers([Rank(meeting, r) for r in range(4)])
    for rank in range(4):
        assert send_report(meeting, rank, {"rank": rank, "padding": "x" * 300_000}) == "ok\n"
    assert [meeting.jobs[0].reports[r]["rank"] for r in range(4)] == [0, 1, 2, 3]
    assert send_report(meeting, 4, {}) == ""  # no such rank
    assert send_report(meeting, 0, [1]) == ""  # not an object
    assert send_report(meeting, 0, {}, length=1) == ""
    assert send_report(meeting, 0, {}, length=1 << 40) == ""


GARBAGE = [
    b"\n",
    b"\0" * 5000,
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"hello\n",
    b"hello 1 wrong 0 4 1 c a -\n",
    b"hello 1 " + "ü".encode() + b" 0 4 1 c a -\n",
    b"hello 9 TOKEN 0 4 1 c a -\n",
    b"hello 1 TOKEN 4 4 1 c a -\n",
    b"hello 1 TOKEN -1 4 1 c a -\n",
    b"hello 1 TOKEN 0 99999999 1 c a -\n",
    b"hello 1 TOKEN 0 4 1 c a -\nand more",
    b"report TOKEN 0 2\n{}",
    b"report TOKEN 0 200000\n" + b"[" * 200_000,
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
    assert answers([Rank(meeting, r) for r in range(4)])[1] == {"on 0 0 0 0\n"}


def test_silent_clients_hold_up_nobody(meeting, monkeypatch):
    monkeypatch.setattr(rendezvous, "SLOW_CLIENT_SECONDS", 0.3)
    silent = [raw_client(meeting) for _ in range(50)]
    slow = raw_client(meeting)
    slow.sock.sendall(b"hel")
    assert answers([Rank(meeting, r) for r in range(4)])[1] == {"on 0 0 0 0\n"}
    for client in (*silent, slow):
        assert client.line() == ""
        client.close()


def test_many_ranks(meeting):
    ranks = [Rank(meeting, r, size=200, host=f"h{r // 8}") for r in range(200)]
    (decision,) = answers(ranks)[1]
    assert decision.split()[-1] == "24"


# ---- report and summary ----------------------------------------------------------------------

JOINING = """
import os, socket, sys
addresses, token = os.environ["WIREPRESS_RENDEZVOUS"].split(";")
host, port = addresses.split(",")[-1].split(":")
def connect(): return socket.create_connection((host, int(port)))
s = connect(); s.sendall(f"hello 1 {token} 0 1 0.1 c a -\\n".encode())
assert s.makefile().read().split()[2:] == ["on", "0"]
body = open(sys.argv[1], "rb").read()
r = connect(); r.sendall(f"report {token} 0 {len(body)}\\n".encode() + body)
assert r.makefile().read() == "ok\\n"
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
    body = 'for w in "$@"; do case $w in WIREPRESS_RENDEZVOUS=*) export "$w";; esac; done; '
    body += f"{sys.executable} {site}/rank.py {site}/rank.json"
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
    assert "job 2:" in done.stderr


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


def test_why_nothing_happened(site):
    assert "no rank loaded wirepress" in wirepress_run("--", "mpirun", "x").stderr
