# SPDX-License-Identifier: Apache-2.0
"""The meeting point of the ranks: here they agree to switch on, and leave their reports.

The protocol is in spec/report.md.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import resource
import selectors
import socket
import struct
import threading
import time

TYPE_CHECKING = False  # modules that a job would wait for are not loaded: typing, dataclasses
if TYPE_CHECKING:
    from typing import Any

VERSION = 2  # of the protocol
MAX_LINE = 4096
MAX_REPORT = 16 << 20
MAX_RANKS = 1 << 20
SLOW_CLIENT_SECONDS = 10.0
RUN_DIGITS = 16  # of the token that are no secret: they name the run
TICK_SECONDS = 0.2  # between looks at who is too slow
LAST_SECONDS = 1.0  # for clients that are here when the run ends


def own_addresses() -> list[str]:
    """The IPv4 addresses of this host by which ranks may reach it; the loopback one is the last."""
    addresses = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            with contextlib.suppress(OSError):  # an interface without an IPv4 address
                answer = fcntl.ioctl(probe, 0x8915, request)  # SIOCGIFADDR
                addresses.append(socket.inet_ntoa(answer[20:24]))
    return [a for a in addresses if not a.startswith("127.")] + ["127.0.0.1"]


def listen(ports: range) -> socket.socket:
    """At the first of these ports that is free, in an order of its own; OSError if none is.

    Runs that begin together do not all try the same ones.
    """
    first = int.from_bytes(os.urandom(4), "little") % len(ports)
    for port in (*ports[first:], *ports[:first]):
        try:
            return socket.create_server(("", port), backlog=1024)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or len(ports) == 1:
                raise
    raise OSError(errno.EADDRINUSE, f"ports {ports[0]} to {ports[-1]} are all in use")


def ranges(numbers: list[int]) -> str:
    """[0, 1, 2, 5] as "0-2,5", short enough for a line."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [str(a) if a == b else f"{a}-{b}" if b > a + 1 else f"{a},{b}" for a, b in runs[:8]]
    return ",".join(shown) + (",..." if len(runs) > 8 else "")


def same_bytes(a: bytes, b: bytes) -> bool:
    """In a time that does not tell where they differ. (hmac's loads all of OpenSSL.)"""
    return len(a) == len(b) and not sum(x ^ y for x, y in zip(a, b, strict=True))


class Hello:
    """What a rank says of itself."""

    def __init__(
        self,
        job: str,  # alike on all ranks of a job, and on no others that run at the same time
        process: str,  # random
        rank: int,
        size: int,
        version: str,
        config: str,
        host: str,
        program: str,
        reason: str,
    ) -> None:
        self.job, self.process, self.rank, self.size = job, process, rank, size
        self.version, self.config, self.host = version, config, host
        self.program, self.reason = program, reason


class Job:
    """One MPI job: those who said hello, what was decided, and the reports of its ranks."""

    def __init__(self, deadline: float, cookie: str) -> None:
        self.deadline, self.cookie = deadline, cookie
        self.hellos: dict[int, Hello] = {}
        self.state = ""  # "on" or "off" once decided
        self.reason = ""
        self.size = 0
        self.nodes: list[int] = []
        self.verdict = ""  # the line that every rank gets
        self.reports: dict[int, Any] = {}

    @property
    def program(self) -> str:
        """Of the first rank that is known: "wave", or "wave..." where others run another."""
        programs = [self.hellos[rank].program for rank in sorted(self.hellos)]
        return programs[0] + ("..." if len(set(programs)) > 1 else "") if programs else ""

    def decide(self) -> str:
        """The line that every rank gets; who lost it may ask again."""
        self.verdict = self._decide()
        return self.verdict

    def _decide(self) -> str:
        self.size = next(iter(self.hellos.values())).size
        self.reason = self.objection()
        self.state = "off" if self.reason else "on"
        if self.reason:
            return f"off {self.reason}\n"
        numbers: dict[str, int] = {}
        for rank in range(self.size):
            self.nodes.append(numbers.setdefault(self.hellos[rank].host, len(numbers)))
        return f"on {self.cookie} {' '.join(map(str, self.nodes))}\n"

    def objection(self) -> str:
        hellos = [self.hellos[rank] for rank in sorted(self.hellos)]
        first = hellos[0]
        for hello in hellos:
            if hello.reason != "-":
                return f"rank {hello.rank}: {hello.reason}"
        for hello in hellos:
            if hello.size != first.size:
                return f"ranks {first.rank} and {hello.rank} belong to jobs of different sizes"
            if hello.version != first.version:
                return (
                    f"rank {first.rank} has wirepress {first.version}, "
                    f"rank {hello.rank} has {hello.version}"
                )
            if hello.config != first.config:
                return f"ranks {first.rank} and {hello.rank} have different settings"
        missing = [rank for rank in range(first.size) if rank not in self.hellos]
        if missing:
            word = "rank" if len(missing) == 1 else "ranks"
            return f"{word} {ranges(missing)} did not load wirepress"
        return ""


class Client:
    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self.sock, self.deadline = sock, deadline
        self.inbox, self.outbox = bytearray(), bytearray()
        self.hello: Hello | None = None
        self.job: Job | None = None  # whose decision it waits for
        self.report: tuple[Job, int, int] | None = None  # with rank and length: it is coming in
        self.last_words = False  # close it once the outbox is empty


class BadClientError(Exception):
    """Not one of our ranks, or out of its mind: the connection is closed without an answer."""


def more_descriptors() -> tuple[int, int]:
    """Lets this process have as many as it may: each rank takes one. Returns the limits of before,
    which are for the processes that it starts."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    return limits


class Rendezvous:
    """Where ranks say hello, learn whether all of them have the library, and leave their reports.

    One thread, one selector, no blocking call: who sends rubbish, sends nothing or reads nothing
    is dropped after a while, and holds up nobody. The protocol is in spec/report.md.
    """

    def __init__(self, grace: float, ports: range = range(1)) -> None:
        self.grace = grace
        self.descriptors = more_descriptors()
        self.token = os.urandom(24).hex()
        self._jobs: list[Job] = []  # in the order of their first hellos
        self._latest: dict[str, Job] = {}  # by name
        self._seats: dict[str, tuple[Job, int]] = {}  # job and rank of each process
        self._clients: set[Client] = set()
        self._selector = selectors.DefaultSelector()
        self._listener = listen(ports)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._bell, self._ring = socket.socketpair()  # wakes the thread
        self._selector.register(self._bell, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._serve, name="rendezvous", daemon=True)

    def address(self) -> str:
        """The value of WIREPRESS_RENDEZVOUS."""
        port = self._listener.getsockname()[1]
        return ",".join(f"{address}:{port}" for address in own_addresses()) + f";{self.token}"

    @property
    def jobs(self) -> list[Job]:
        """Those that were decided, in the order in which their first ranks came."""
        return [job for job in self._jobs if job.verdict]

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Takes what is still on its way, for a moment, then closes everything."""
        self._ring.close()
        if self._thread.ident is not None:
            self._thread.join()

    def _serve(self) -> None:
        look_at, stop_at = 0.0, 0.0
        while True:
            idle = 0 if stop_at else None
            events = self._selector.select(TICK_SECONDS if self._clients else idle)
            for key, mask in events:
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._bell:
                    self._selector.unregister(self._bell)
                    stop_at = time.monotonic() + LAST_SECONDS
                else:
                    self._attend(key.data, mask)
            now = time.monotonic()
            if now > look_at:
                self._keep_time(now)
                look_at = now + TICK_SECONDS
            if stop_at and (now > stop_at or not (self._clients or events)):
                break
        for client in list(self._clients):
            self._drop(client)
        self._selector.close()
        self._bell.close()
        self._listener.close()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:  # gone again, or no descriptor left: who waits is served later
            time.sleep(0.01)
            return
        sock.setblocking(False)
        client = Client(sock, time.monotonic() + SLOW_CLIENT_SECONDS)
        client.outbox += f"wirepress {VERSION} {self.token[:RUN_DIGITS]}\n".encode()
        self._clients.add(client)
        self._selector.register(sock, selectors.EVENT_READ, client)
        self._attend(client, 0)

    def _attend(self, client: Client, events: int) -> None:
        try:
            if events & selectors.EVENT_READ:
                self._read(client)
            if client in self._clients:
                self._flush(client)
        except (OSError, BadClientError):
            self._drop(client)

    def _read(self, client: Client) -> None:
        data = client.sock.recv(1 << 16)
        if not data:
            raise BadClientError
        client.inbox += data
        if client.report is not None:
            client.deadline = time.monotonic() + SLOW_CLIENT_SECONDS
            self._take_report(client)
        elif client.hello is not None or client.last_words:
            raise BadClientError  # it should be listening
        elif (end := client.inbox.find(b"\n", 0, MAX_LINE)) >= 0:
            line = client.inbox[:end].decode("utf-8", "replace")
            del client.inbox[: end + 1]
            self._take_line(client, line)
        elif len(client.inbox) >= MAX_LINE:
            raise BadClientError

    def _take_line(self, client: Client, line: str) -> None:
        words = line.split(" ")
        if len(words) < 3 or words[0] not in ("hello", "report"):
            raise BadClientError
        self._check_token(words[2])
        if words[1] != str(VERSION):
            raise BadClientError
        if words[0] == "hello" and len(words) >= 12:
            rank, size = self._number(words[5], MAX_RANKS), self._number(words[6], MAX_RANKS)
            if rank >= size:
                raise BadClientError
            hello = Hello(*words[3:5], rank, size, *words[7:11], reason=" ".join(words[11:]))
            self._take_hello(client, hello)
        elif words[0] == "report" and len(words) == 5 and words[3] in self._seats:
            job, rank = self._seats[words[3]]
            client.report = (job, rank, self._number(words[4], MAX_REPORT))
            self._take_report(client)
        else:
            raise BadClientError

    def _check_token(self, word: str) -> None:
        if not same_bytes(word.encode(), self.token.encode()):
            raise BadClientError

    @staticmethod
    def _number(word: str, limit: int) -> int:
        if not (word.isascii() and word.isdigit() and len(word) < 10 and int(word) <= limit):
            raise BadClientError
        return int(word)

    def _take_hello(self, client: Client, hello: Hello) -> None:
        if client.inbox or client.hello is not None:
            raise BadClientError
        job = self._job_of(hello)
        old = job.hellos.get(hello.rank, hello)
        if crossed := old.process != hello.process:
            hello.reason = f"another process is rank {hello.rank} of {hello.job}, too"
        job.hellos[hello.rank] = hello
        self._seats[hello.process] = (job, hello.rank)
        client.hello, client.job = hello, job
        if job.verdict:
            self._tell(client, job)
        elif crossed or len(job.hellos) == hello.size:
            self._decide(job)

    def _job_of(self, hello: Hello) -> Job:
        """The job that a rank belongs to, which may have been decided without it."""
        if hello.process in self._seats:  # it lost the verdict, and asks again
            job = self._seats[hello.process][0]
            if job.verdict or self._latest.get(hello.job) is job:
                return job
        job = self._latest.get(hello.job)
        # A name comes again if ranks run one program after the other.
        if job is None or (job.verdict and hello.rank in job.hellos):
            cookie = os.urandom(8).hex() + self.token[:RUN_DIGITS]
            job = self._latest[hello.job] = Job(time.monotonic() + self.grace, cookie)
            self._jobs.append(job)
        return job

    def _decide(self, job: Job) -> None:
        job.decide()
        for client in list(self._clients):
            if client.job is job and not client.last_words:
                self._tell(client, job)
                self._attend(client, 0)

    @staticmethod
    def _tell(client: Client, job: Job) -> None:
        client.outbox += job.verdict.encode()
        client.last_words = True
        client.deadline = time.monotonic() + SLOW_CLIENT_SECONDS

    def _take_report(self, client: Client) -> None:
        assert client.report is not None
        job, rank, length = client.report
        if len(client.inbox) < length:
            return
        if len(client.inbox) > length:
            raise BadClientError
        try:
            report = json.loads(client.inbox)
        except (ValueError, RecursionError):
            raise BadClientError from None
        if not isinstance(report, dict):
            raise BadClientError
        job.reports[rank] = report
        client.report = None
        client.inbox.clear()
        client.outbox += b"ok\n"
        client.last_words = True

    def _flush(self, client: Client) -> None:
        if client.outbox:
            with contextlib.suppress(BlockingIOError):
                del client.outbox[: client.sock.send(client.outbox)]
        if client.last_words and not client.outbox:
            self._drop(client)
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.outbox else 0)
        self._selector.modify(client.sock, wanted, client)

    def _keep_time(self, now: float) -> None:
        for client in list(self._clients):
            waits = client.hello is not None and not client.last_words
            if not waits and now > client.deadline:
                self._drop(client)
        for job in self._jobs:
            if not job.verdict and now > job.deadline:
                self._decide(job)

    def _drop(self, client: Client) -> None:
        """Closes a connection; who leaves before the decision has not said hello."""
        if client not in self._clients:
            return
        self._clients.remove(client)
        self._selector.unregister(client.sock)
        client.sock.close()
        job, hello = client.job, client.hello
        if job is None or hello is None or job.verdict:
            return
        if job.hellos.get(hello.rank) is hello:
            del job.hellos[hello.rank]
        if not job.hellos:
            self._jobs.remove(job)
            del self._latest[hello.job]
