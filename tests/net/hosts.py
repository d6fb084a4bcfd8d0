#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several hosts on one machine, joined by a switch of a given rate.

A host is a network and a UTS namespace (so host names differ) with one NIC, eth0; all NICs hang on
a bridge in a namespace of its own that has no way out. Both ends of every NIC are shaped by a
token bucket, so a host sends and receives at the rate. Needs root, iproute2 and util-linux.

As a program: hosts.py N RATE -- COMMAND...   runs COMMAND on host 0; in it, {mpirun:openmpi:2}
stands for the words that start Open MPI with two ranks a host (mpich likewise).
As a module: `with Hosts(2, "1gbit") as hosts:`; always torn down, on signals too, and what a
killed run left behind is cleared by the next one.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

NET = "10.87.0"
NAME = re.compile(r"wpr(\d+)-\d+-")
# Rates up to which this holds, the largest packet (GSO), and what passes at full speed after a
# pause. A NIC lets nothing pass: with 72 kB, a message of 64 KiB crossed a link of 1 Gb/s at twice
# its rate. A bucket must hold a whole packet, else it takes every one apart and halves the rate;
# small packets cost processor time, which a fast link has not got on this machine.
BUCKETS = ((0.25e9, 4_000, 6_000), (1e9, 16_000, 24_000), (math.inf, 65_536, 72_000))
BURST_SECONDS = 250e-6  # of a fast link: what a late timer may owe
QUEUE = "20ms"


def ip(*words: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return _checked(["ip", *words], **kwargs)


def _checked(command: list[str], **kwargs: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, **kwargs)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done


def bits_per_second(rate: str) -> float:
    match = re.fullmatch(r"([0-9.]+)(k|m|g)bit", rate.lower())
    if not match:
        raise ValueError(f"rate {rate!r} is not like 100mbit, 2.5gbit or none")
    return float(match[1]) * {"k": 1e3, "m": 1e6, "g": 1e9}[match[2]]


@functools.cache
def why_not() -> str:
    """Why there can be no hosts on this machine; "" if there can."""
    if os.geteuid() != 0:
        return "needs root (network namespaces)"
    for tool in ("ip", "tc", "unshare", "hostname"):
        if not shutil.which(tool):
            return f"needs {tool} (apt-get install iproute2 util-linux hostname)"
    try:
        with Hosts(1, "100mbit"):
            return ""
    except OSError as error:
        return f"the kernel refuses: {error}"


class Hosts:
    """N hosts; use it in a with statement."""

    def __init__(self, n: int, rate: str = "none") -> None:
        if not 1 <= n <= 250:
            raise ValueError(f"{n} hosts: 1 to 250 can be had")
        self.n, self.rate = n, rate
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Hosts:
        with contextlib.ExitStack() as stack:  # takes it all down again if a step fails
            stack.enter_context(_signals_raise())
            remove_stale()
            self.prefix = _free_prefix()
            stack.callback(remove, self.prefix)
            self._private = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wpr-")))
            self._build()
            self.set_rate(self.rate)
            self._write_agent()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    # ---- building ----

    def _build(self) -> None:
        switch = f"{self.prefix}sw"
        ip("netns", "add", switch)
        ip("-n", switch, "link", "add", "br0", "type", "bridge")
        ip("-n", switch, "link", "set", "br0", "up")
        for i in range(self.n):
            host, port = self.namespace(i), f"p{i}"
            ip("netns", "add", host)
            ip("-n", switch, "link", "add", port, "type", "veth", "peer", "name", "eth0",
               "netns", host)  # fmt: skip
            ip("-n", switch, "link", "set", port, "master", "br0", "up")
            ip("-n", host, "link", "set", "lo", "up")
            ip("-n", host, "addr", "add", f"{self.address(i)}/24", "dev", "eth0")
            ip("-n", host, "link", "set", "eth0", "up")
            # cubic, as most clusters have it; by route, for the sysctl of a namespace takes only
            # what the machine allows to unprivileged users. A kernel without it keeps its own.
            with contextlib.suppress(OSError):
                ip("-n", host, "route", "change", f"{NET}.0/24", "dev", "eth0", "congctl", "cubic")

    def _write_agent(self) -> None:
        """What launchers call in the place of ssh: AGENT [-options] ADDRESS WORDS..."""
        self.agent = self._private / "agent"
        self.agent.write_text(f"""#!/bin/sh
while :; do case $1 in -l) shift 2 ;; -*) shift ;; *) break ;; esac; done
host={self.prefix}h$(( ${{1##*.}} - 1 ))
shift
exec ip netns exec "$host" unshare --uts sh -c 'hostname "$0"; eval "$*"' "$host" "$@"
""")
        self.agent.chmod(0o700)

    # ---- using ----

    def namespace(self, i: int) -> str:
        return f"{self.prefix}h{i}"

    def address(self, i: int) -> str:
        return f"{NET}.{i + 1}"

    def set_rate(self, rate: str) -> None:
        """Shapes all NICs, both ways; "none" takes the limit off."""
        if rate != "none":
            bits_per_second(rate)
        for i in range(self.n):
            self._shape(self.namespace(i), "eth0", rate)  # what the host sends
            self._shape(f"{self.prefix}sw", f"p{i}", rate)  # what it receives
        self.rate = rate

    def _shape(self, namespace: str, device: str, rate: str) -> None:
        tc = ["tc", "-n", namespace, "qdisc"]
        subprocess.run([*tc, "del", "dev", device, "root"], capture_output=True)
        bits = math.inf if rate == "none" else bits_per_second(rate)
        packet, burst = next(rest for most, *rest in BUCKETS if bits <= most)
        ip("-n", namespace, "link", "set", device, "gso_max_size", str(packet))
        if rate == "none":
            return
        if packet == BUCKETS[-1][1]:
            burst = max(burst, int(bits / 8 * BURST_SECONDS))
        _checked([*tc, "add", "dev", device, "root", "tbf", "rate", rate,
                  "burst", str(burst), "latency", QUEUE])  # fmt: skip

    def on(self, i: int, command: list[str]) -> list[str]:
        """The words that run a command on host i."""
        name = self.namespace(i)
        uts = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', name]
        return ["ip", "netns", "exec", name, *uts, *command]

    def sent_bytes(self) -> list[int]:
        """What each host's NIC has sent so far, Ethernet headers included."""
        return [self._statistics(i)["tx"]["bytes"] for i in range(self.n)]

    def received_bytes(self) -> list[int]:
        return [self._statistics(i)["rx"]["bytes"] for i in range(self.n)]

    def _statistics(self, i: int) -> dict[str, Any]:
        out = ip("-n", self.namespace(i), "-s", "-j", "link", "show", "eth0").stdout
        (link,) = json.loads(out)
        return link["stats64"]

    def mpirun(self, flavour: str, ranks_a_host: int, launcher: str | None = None) -> list[str]:
        """The words, program excluded, that start ranks on every host; to be run on host 0."""
        launcher = launcher or f"mpirun.{flavour}"
        build = {"openmpi": self._openmpi, "mpich": self._mpich}[flavour]
        return build(launcher, ranks_a_host)

    def _openmpi(self, launcher: str, ranks_a_host: int) -> list[str]:
        names = [self.address(i) for i in range(self.n)]
        mca = {
            "pml": "ob1",
            "btl_tcp_if_include": "eth0",
            "mpi_yield_when_idle": "1",  # there may be fewer cores than ranks
        }
        runtime = {}
        if openmpi_major(launcher) <= 4:
            mca |= {"btl": "tcp,self,vader", "plm": "rsh", "plm_rsh_agent": str(self.agent),
                    "plm_rsh_no_tree_spawn": "1", "oob_tcp_if_include": "eth0"}  # fmt: skip
        else:
            names[0] = self.namespace(0)  # mpirun's own host: Open MPI 5 forgets its address
            mca |= {"btl": "tcp,self,sm"}
            runtime = {"plm": "ssh", "plm_ssh_agent": str(self.agent),
                       "plm_ssh_no_tree_spawn": "1", "prte_if_include": "eth0"}  # fmt: skip
        words = [launcher, "--allow-run-as-root", "-n", str(self.n * ranks_a_host),
                 "--host", ",".join(f"{name}:{ranks_a_host}" for name in names),
                 "--bind-to", "none"]  # fmt: skip
        for flag, values in (("--mca", mca), ("--prtemca", runtime)):
            for name, value in values.items():
                words += [flag, name, value]
        return words

    def _mpich(self, launcher: str, ranks_a_host: int) -> list[str]:
        hosts = ",".join(self.address(i) for i in range(self.n))
        shim = self._private / "mpich_finalize.so"
        if not shim.exists():
            source = Path(__file__).with_name("mpich_finalize.c")
            _checked(["cc", "-shared", "-fPIC", "-O1", str(source), "-o", str(shim)])
        words = [launcher, "-n", str(self.n * ranks_a_host), "-ppn", str(ranks_a_host),
                 "-hosts", hosts, "-iface", "eth0", "-launcher", "ssh",
                 "-launcher-exec", str(self.agent), "-bind-to", "none"]  # fmt: skip
        # UCX takes one kernel for one host: with a shared-memory transport in UCX_TLS, ranks of
        # two hosts would slip past the network
        for name, value in {
            "UCX_TLS": "tcp,self",
            "UCX_NET_DEVICES": "eth0",
            "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": "eth0",
            "LD_PRELOAD": ":".join(filter(None, [str(shim), os.environ.get("LD_PRELOAD")])),
        }.items():
            words += ["-genv", name, value]
        return words


@functools.cache
def openmpi_major(launcher: str) -> int:
    said = subprocess.run([launcher, "--version"], capture_output=True, text=True).stdout
    match = re.search(r"\b(\d+)\.\d+\.\d+", said)
    return int(match[1]) if match else 4


def namespaces() -> list[str]:
    return [line.split()[0] for line in ip("netns", "list").stdout.splitlines() if line.strip()]


def remove(prefix: str) -> None:
    """Ends what still runs in the namespaces of one network, and deletes them."""
    for name in namespaces():
        if name.startswith(prefix):
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
            for pid in pids.stdout.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def remove_stale() -> None:
    """Networks whose maker is gone: a process that was killed cannot clean up."""
    for name in namespaces():
        match = NAME.match(name)
        if match and not Path(f"/proc/{match[1]}").exists():
            remove(match[0])


def _free_prefix() -> str:
    """Unique for this process, and for each network that it makes at the same time."""
    taken = namespaces()
    base = f"wpr{os.getpid()}-"
    serial = 0
    while any(name.startswith(f"{base}{serial}-") for name in taken):
        serial += 1
    return f"{base}{serial}-"


@contextlib.contextmanager
def _signals_raise() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind the stack, as SIGINT does, so that `with` tears down."""

    def leave(signo: int, _frame: object) -> None:
        sys.exit(128 + signo)

    old: dict[int, Callable[..., Any] | int | None] = {}
    try:
        with contextlib.suppress(ValueError):  # not the main thread: its owner must see to it
            for signo in (signal.SIGTERM, signal.SIGHUP):
                old[signo] = signal.signal(signo, leave)
        yield
    finally:
        for signo, handler in old.items():
            signal.signal(signo, handler)


def main(arguments: list[str]) -> int:
    if len(arguments) < 4 or arguments[2] != "--" or not arguments[0].isdigit():
        print(__doc__, file=sys.stderr)
        return 2
    if reason := why_not():
        print(f"hosts: {reason}", file=sys.stderr)
        return 2
    try:
        with Hosts(int(arguments[0]), arguments[1]) as hosts:
            command: list[str] = []
            for word in arguments[3:]:
                match = re.fullmatch(r"\{mpirun:(openmpi|mpich):(\d+)\}", word)
                command += hosts.mpirun(match[1], int(match[2])) if match else [word]
            return subprocess.run(hosts.on(0, command)).returncode
    except ValueError as error:
        print(f"hosts: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
