# SPDX-License-Identifier: Apache-2.0
"""The hosts themselves: rate, isolation, counters, both MPIs, and that nothing is left."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hosts import Hosts, bits_per_second, namespaces

from wirepress.launch.mpi_libraries import library_dirs, library_of_launcher, preloaded

HERE = Path(__file__).parent
PORT = "5999"


def tcp_gbits(hosts: Hosts, seconds: float) -> float:
    program = [sys.executable, str(HERE / "tcp.py")]
    receiver = subprocess.Popen(
        hosts.on(1, [*program, "recv", hosts.address(1), PORT]), stdout=subprocess.PIPE, text=True
    )
    sender = hosts.on(0, [*program, "send", hosts.address(1), PORT, str(seconds)])
    subprocess.run(sender, check=True, timeout=60)
    out, _ = receiver.communicate(timeout=60)
    return float(out)


@pytest.fixture(scope="module")
def pair():
    with Hosts(2, "100mbit") as hosts:
        yield hosts


# Payload is at most 0.956 of the rate. Below it there is contention with whatever else this
# machine does; above it, only the bucket that was full at the start.
@pytest.mark.parametrize(
    ("rate", "lowest"), [("100mbit", 0.85), ("250mbit", 0.85), ("1gbit", 0.6), ("2.5gbit", 0.4)]
)
def test_rate(pair, rate, lowest):
    pair.set_rate(rate)
    share = tcp_gbits(pair, 1.5) * 1e9 / bits_per_second(rate)
    assert lowest < share < 1.0


def test_rate_can_be_taken_off(pair):
    pair.set_rate("1gbit")
    pair.set_rate("none")
    assert tcp_gbits(pair, 0.5) > 1.5


def test_counters(pair):
    pair.set_rate("none")
    sent, received = pair.sent_bytes(), pair.received_bytes()
    program = [sys.executable, str(HERE / "tcp.py")]
    with subprocess.Popen(
        pair.on(1, [*program, "recv", pair.address(1), PORT]), stdout=subprocess.DEVNULL
    ):
        code = (
            "import socket, sys, time\n"
            "for _ in range(200):\n"
            "    try: s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 1); break\n"
            "    except OSError: time.sleep(0.02)\n"
            "s.sendall(bytes(50_000_000))\n"
        )
        subprocess.run(pair.on(0, [sys.executable, "-c", code, pair.address(1), PORT]), check=True)
    for after, before in ((pair.sent_bytes()[0], sent[0]), (pair.received_bytes()[1], received[1])):
        assert 50_000_000 < after - before < 50_000_000 * 1.05
    assert pair.sent_bytes()[1] - sent[1] < 50_000_000 * 0.05  # acknowledgements


def test_hosts_have_names_and_no_way_out(pair):
    names = [
        subprocess.run(pair.on(i, ["hostname"]), capture_output=True, text=True).stdout.strip()
        for i in range(2)
    ]
    assert names == [pair.namespace(0), pair.namespace(1)]
    routes = subprocess.run(pair.on(0, ["ip", "route"]), capture_output=True, text=True).stdout
    assert [line.split()[0] for line in routes.splitlines()] == ["10.87.0.0/24"]
    code = "import socket; socket.create_connection(('192.0.2.1', 80), 2)"
    lost = subprocess.run(pair.on(0, [sys.executable, "-c", code]), capture_output=True, text=True)
    assert "unreachable" in lost.stderr


def test_two_networks_at_once_do_not_meet(pair):
    with Hosts(2, "100mbit") as other:
        assert other.prefix != pair.prefix
        before = pair.received_bytes()
        tcp_gbits(other, 0.3)
        assert max(a - b for a, b in zip(pair.received_bytes(), before, strict=True)) < 10_000
        prefix = other.prefix
    assert not [name for name in namespaces() if name.startswith(prefix)]
    assert [name for name in namespaces() if name.startswith(pair.prefix)]


@pytest.mark.parametrize("flavour", ["openmpi", "mpich"])
def test_mpi_across(pair, flavour, monkeypatch):
    if not shutil.which(f"mpirun.{flavour}"):
        pytest.skip(f"no mpirun.{flavour}")
    pair.set_rate("1gbit")
    before = pair.sent_bytes()
    code = (
        "from mpi4py import MPI; import numpy as np, socket\n"
        "w = MPI.COMM_WORLD; a = np.full(1_000_000, w.rank, 'f8'); b = np.empty_like(a)\n"
        "w.Sendrecv(a, (w.rank + 2) % 4, 0, b, (w.rank + 2) % 4, 0)\n"
        "assert (b == (w.rank + 2) % 4).all()\n"
        "names = w.gather(socket.gethostname())\n"
        "if w.rank == 0: print(w.size, *names)\n"
    )
    if flavour == "mpich":  # mpi4py asks for it by another name than Debian's
        _, *libraries = preloaded(library_of_launcher(f"mpirun.{flavour}", flavour), library_dirs())
        monkeypatch.setenv("LD_PRELOAD", ":".join(map(str, libraries)))
    command = [*pair.mpirun(flavour, 2), sys.executable, "-c", code]
    done = subprocess.run(pair.on(0, command), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    words = done.stdout.split()
    assert words[0] == "4"
    assert words[1:] == [pair.namespace(i) for i in (0, 0, 1, 1)]
    for after, begin in zip(pair.sent_bytes(), before, strict=True):  # 2 x 8 MB each way, no less
        assert 16e6 < after - begin < 16e6 * 1.1


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_tears_down(signo):
    program = subprocess.Popen(
        [sys.executable, str(HERE / "hosts.py"), "2", "none", "--", "sh", "-c",
         "echo up; sleep 1000"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        preexec_fn=lambda: signal.signal(signo, signal.SIG_DFL),  # ignored in background jobs
    )  # fmt: skip
    assert program.stdout is not None
    assert program.stdout.readline() == "up\n"
    prefix = f"wpr{program.pid}-"
    assert any(name.startswith(prefix) for name in namespaces())
    program.send_signal(signo)
    assert program.wait(20) != 0
    assert not [name for name in namespaces() if name.startswith(prefix)]
    program.stdout.close()


def test_what_a_killed_run_left_goes_with_the_next():
    program = subprocess.Popen(
        [sys.executable, str(HERE / "hosts.py"), "1", "none", "--", "sh", "-c",
         "echo $$; exec sleep 1000"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert program.stdout is not None
    sleeper = Path("/proc") / program.stdout.readline().strip()
    program.kill()
    program.wait()
    program.stdout.close()
    with Hosts(1):
        assert not [name for name in namespaces() if name.startswith(f"wpr{program.pid}-")]
    deadline = time.monotonic() + 5
    while sleeper.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not sleeper.exists()


@pytest.mark.parametrize("words", [[], ["2"], ["x", "1gbit", "--", "true"]])
def test_usage(words):
    done = subprocess.run(
        [sys.executable, str(HERE / "hosts.py"), *words], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "COMMAND" in done.stderr


@pytest.mark.parametrize(("n", "rate"), [("0", "1gbit"), ("251", "1gbit"), ("1", "fast")])
def test_bad_numbers(n, rate):
    done = subprocess.run(
        [sys.executable, str(HERE / "hosts.py"), n, rate, "--", "true"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("hosts: ")
    assert "Traceback" not in done.stderr
