# SPDX-License-Identifier: Apache-2.0
"""What `wirepress calibrate` runs on every rank: measures links, MPI or gloo, and the processor.

A program of its own; rank 0 prints a line of JSON behind MARK. Under an MPI launcher it uses
mpi4py, under torchrun (or with its environment variables) PyTorch's gloo. Where ranks wait for
others to measure they sleep, so that waiting does not take the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MARK = "wirepress-calibration "
LONG = 0.4  # seconds in which ranks work at the same time but for their first and last moments
PAUSE = 0.03  # seconds that a link rests before a burst
LARGEST = 16 << 20
SKEW = 1e-3
NAP = 500e-6


class Mpi:
    """Ranks of an MPI job."""

    piece = 32 << 10  # of messages that fill the links: below everybody's eager limit

    def __init__(self) -> None:
        from mpi4py import MPI

        self._mpi, self._comm = MPI, MPI.COMM_WORLD
        self.rank, self.size = self._comm.rank, self._comm.size
        self.name = MPI.Get_library_version().split(",")[0].splitlines()[0].strip("\0 ")

    def isend(self, data: np.ndarray, to: int) -> Any:
        return self._comm.Isend([data, self._mpi.BYTE], to)

    def irecv(self, data: np.ndarray, source: int) -> Any:
        return self._comm.Irecv([data, self._mpi.BYTE], source)

    def send(self, data: np.ndarray, to: int) -> None:
        self._comm.Send([data, self._mpi.BYTE], to)

    def recv(self, data: np.ndarray, source: int) -> None:
        self._comm.Recv([data, self._mpi.BYTE], source)

    def wait(self, requests: list[Any]) -> None:
        self._mpi.Request.Waitall(requests)

    def await_announcement(self, source: int) -> None:
        """Returns when a message from `source` is known here."""
        while not self._comm.Iprobe(source):
            pass

    def gather(self, value: Any) -> list[Any]:
        self.barrier()
        return self._comm.allgather(value)

    def barrier(self) -> None:
        request = self._comm.Ibarrier()
        while not request.Test():
            time.sleep(NAP)

    def add(self, a: np.ndarray, b: np.ndarray) -> None:
        self._mpi.SUM.Reduce_local([a, self._mpi.FLOAT], [b, self._mpi.FLOAT])


class Gloo:
    """Ranks of PyTorch."""

    piece = 1 << 20  # small ones cost Python more than the link

    def __init__(self) -> None:
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        self._torch, self._dist = torch, dist
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.name = f"PyTorch {torch.__version__}, gloo"

    def isend(self, data: np.ndarray, to: int) -> Any:
        return self._dist.isend(self._torch.from_numpy(data), to)

    def irecv(self, data: np.ndarray, source: int) -> Any:
        return self._dist.irecv(self._torch.from_numpy(data), source)

    def send(self, data: np.ndarray, to: int) -> None:
        self.isend(data, to).wait()

    def recv(self, data: np.ndarray, source: int) -> None:
        self.irecv(data, source).wait()

    def wait(self, requests: list[Any]) -> None:
        for request in requests:
            request.wait()

    def await_announcement(self, source: int) -> None:
        """gloo announces nothing."""

    def gather(self, value: Any) -> list[Any]:
        found: list[Any] = [None] * self.size
        self._dist.all_gather_object(found, value)
        return found

    def barrier(self) -> None:  # gloo's threads sleep
        self._dist.barrier()

    def add(self, a: np.ndarray, b: np.ndarray) -> None:
        self._torch.from_numpy(b).add_(self._torch.from_numpy(a))


class Alone:
    """One process, no network."""

    rank, size, name = 0, 1, "one process"

    def gather(self, value: Any) -> list[Any]:
        return [value]

    def barrier(self) -> None:
        pass

    def add(self, a: np.ndarray, b: np.ndarray) -> None:
        np.add(a, b, out=b)


def connect(alone: bool) -> Any:
    if alone:
        return Alone()
    if "MASTER_ADDR" in os.environ and "RANK" in os.environ:
        return Gloo()
    return Mpi()


class Probe:
    """The measurements; all ranks call all of them, in this order."""

    def __init__(self, ranks: Any, share: float) -> None:
        self.ranks, self.share = ranks, share
        hosts = ranks.gather(socket.gethostname())
        names = list(dict.fromkeys(hosts))
        self.hosts, self.n_hosts = names, len(names)
        # one rank of each host; all of them where there is only one
        self.leaders = [hosts.index(name) for name in names]
        if self.n_hosts == 1:
            self.leaders = list(range(ranks.size))
        self.me = self.leaders.index(ranks.rank) if ranks.rank in self.leaders else -1
        self.out = np.ones(LARGEST, np.uint8)
        self.into = np.ones(LARGEST, np.uint8)
        self.points: list[dict[str, Any]] = []

    # ---- messages

    def _times(
        self, kind: str, size: int, one: Callable[[int], float], least: int = 3, most: int = 9
    ) -> list[float]:
        """Seconds of a measurement that all repeat as often as fits in its share of time."""
        times = [one(size)]
        fits = int(self.share / max(times[0], 1e-6))
        again = self.ranks.gather(min(max(fits, least), most) - 1)[self.leaders[0]]
        times += [one(size) for _ in range(again)]
        if self.ranks.rank == 0:
            self.points.append({"kind": kind, "size": size, "seconds": times})
        return times

    def there_and_back(self, size: int) -> float:
        """Seconds of 20 round trips, divided by 40."""
        self.ranks.barrier()
        began = time.perf_counter()
        for _ in range(20):
            if self.me == 0:
                self.ranks.send(self.out[:size], self.leaders[1])
                self.ranks.recv(self.into[:size], self.leaders[1])
            elif self.me == 1:
                self.ranks.recv(self.into[:size], self.leaders[0])
                self.ranks.send(self.out[:size], self.leaders[0])
        return (time.perf_counter() - began) / 40

    def one_way(self, size: int, pause: float = 0.0) -> float:
        """Seconds until a byte has come back after a message. Right on the first two ranks."""
        self.ranks.barrier()
        time.sleep(pause)
        byte = self.out[:1]
        for round_ in range(2):  # the first wakes up who slept
            began = time.perf_counter()
            part = self.out[:size] if round_ else byte
            if self.me == 0:
                self.ranks.send(part, self.leaders[1])
                self.ranks.recv(self.into[:1], self.leaders[1])
            elif self.me == 1:
                self.ranks.recv(self.into[: len(part)], self.leaders[0])
                self.ranks.send(byte, self.leaders[0])
        return time.perf_counter() - began

    def after_pause(self, size: int) -> float:
        return self.one_way(size, PAUSE)

    def both_ways(self, size: int) -> float:
        """The same where both send, the second rank a little later: it knows of the first one's
        message and answers it before it sends its own."""
        self.ranks.barrier()
        began = time.perf_counter()
        if self.me in (0, 1):
            other = self.leaders[1 - self.me]
            requests = [self.ranks.irecv(self.into[:1], other)]
            requests.append(self.ranks.isend(self.out[:1], other))
            self.ranks.wait(requests)
            began = time.perf_counter()
            if self.me == 1:
                while time.perf_counter() < began + SKEW:
                    pass
                self.ranks.await_announcement(other)
            requests = [self.ranks.irecv(self.into[:size], other)]
            requests.append(self.ranks.isend(self.out[:size], other))
            self.ranks.wait(requests)
        return time.perf_counter() - began

    def until_sent(self, size: int) -> float:
        """Seconds until a send to one who receives is done. Right on the first rank."""
        self.ranks.barrier()
        seconds = 0.0
        if self.me == 1:
            self.ranks.recv(self.into[:size], self.leaders[0])
            self.ranks.send(self.out[:1], self.leaders[0])
        elif self.me == 0:
            time.sleep(SKEW)  # the receive is posted
            began = time.perf_counter()
            self.ranks.send(self.out[:size], self.leaders[1])
            seconds = time.perf_counter() - began
            self.ranks.recv(self.into[:1], self.leaders[1])
        return seconds

    def all_at_once(self, size: int) -> float:
        """Every host to the next one, in small pieces; seconds of the slowest."""
        self.ranks.barrier()
        began = time.perf_counter()
        n = len(self.leaders)
        if self.me >= 0:
            after, before = self.leaders[(self.me + 1) % n], self.leaders[self.me - 1]
            piece = self.ranks.piece
            parts = [slice(i, i + piece) for i in range(0, size, piece)]
            requests = [self.ranks.irecv(self.into[part], before) for part in parts]
            requests += [self.ranks.isend(self.out[part], after) for part in parts]
            self.ranks.wait(requests)
        return max(self.ranks.gather(time.perf_counter() - began))

    def eager(self) -> int:
        """The largest message, by halving, whose send ends although nobody receives; bytes."""
        low, high = 0, 8 << 20
        while high - low > 1024:
            size = (low + high) // 2
            self.ranks.barrier()
            ended = 1.0
            if self.me == 0:
                request = self.ranks.isend(self.out[:size], self.leaders[1])
                began = time.perf_counter()
                ended = 0.0
                while time.perf_counter() - began < PAUSE / 2 and not ended:
                    ended = float(request.Test())
                time.sleep(max(0.0, PAUSE - (time.perf_counter() - began)))
                request.Wait()
            elif self.me == 1:
                time.sleep(PAUSE)
                self.ranks.recv(self.into[:size], self.leaders[0])
            said = self.ranks.gather(ended)[self.leaders[0]]
            low, high = (size, high) if said else (low, size)
        return low

    # ---- the processor

    def _alone_and_together(self, work: Callable[[], None], bytes_: int) -> tuple[float, float]:
        """Bytes a second of `work` on the first rank alone, and of the mean rank all together."""
        alone = 0.0
        self.ranks.barrier()
        if self.ranks.rank == 0:
            alone = _speed(work, bytes_, LONG)
        self.ranks.barrier()
        together = self.ranks.gather(_speed(work, bytes_, LONG))
        return alone, sum(together) / len(together)

    def adding(self) -> tuple[float, float]:
        a, b = np.ones(1 << 20, np.float32), np.zeros(1 << 20, np.float32)
        return self._alone_and_together(lambda: self.ranks.add(a, b), a.nbytes)

    def coding(self) -> tuple[float, float]:
        from wirepress import api

        text = b"".join(b"%d squared is %d\n" % (i, i * i) for i in range(40_000))[: 1 << 20]
        code = api.Compressor("lz4")

        def work() -> None:
            code.compress(text)

        return self._alone_and_together(work, len(text))

    # ---- all

    def run(self) -> dict[str, Any]:
        found: dict[str, Any] = {"transport": self.ranks.name, "ranks": self.ranks.size,
                                 "hosts": self.hosts}  # fmt: skip
        if len(self.leaders) > 1:
            self._network(found)
        found["machine"], found["cores"] = _sharing(self.ranks.gather(_place()))
        self._say("the processor")
        found["add"], found["add_together"] = self.adding()
        found["codec"], found["codec_together"] = self.coding()
        found["points"] = self.points
        return found

    def _network(self, found: dict[str, Any]) -> None:
        self._say("latency")
        self.there_and_back(8)  # connections are made
        self._times("there and back", 8, self.there_and_back)
        self._say("large messages")
        size, first = 1 << 20, 0.0
        while True:  # as large as the time allows
            first = self.ranks.gather(self.one_way(size))[self.leaders[0]]
            if size >= LARGEST or first > self.share:
                break
            size *= 4
        for part in (size // 4, size):
            self._times("one way", part, self.one_way)
        self._say("both ways, and all hosts at once")
        if isinstance(self.ranks, Mpi):
            self._times("until sent", size, self.until_sent)
        self._times("both ways", size // 4, self.both_ways)
        self._times("both ways", size, self.both_ways)
        self._times("all at once", size, self.all_at_once)
        self._say("small messages")
        if isinstance(self.ranks, Mpi):
            found["eager"] = self.eager()
        for part in (16 << 10, 64 << 10, 128 << 10, 256 << 10):
            self._times("one way", part, self.one_way)
            self._times("after a pause", part, self.after_pause, 5)

    def _say(self, what: str) -> None:
        if self.ranks.rank == 0:
            print(f"calibrate: {what}", file=sys.stderr, flush=True)


def _place() -> tuple[str, list[int]]:
    """What tells machines apart although they have several hosts, as containers are; and the cores
    that this rank may use."""
    try:
        machine = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        machine = socket.gethostname()
    try:
        cores = sorted(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        cores = list(range(os.cpu_count() or 1))
    return machine, cores


def _sharing(places: list[tuple[str, list[int]]]) -> tuple[int, int]:
    """Ranks of the fullest machine, and the cores that these share."""
    ranks = Counter(machine for machine, _ in places)
    fullest = max(ranks, key=lambda machine: ranks[machine])
    cores = {core for machine, several in places if machine == fullest for core in several}
    return ranks[fullest], len(cores)


def _speed(work: Callable[[], None], bytes_: int, seconds: float) -> float:
    work()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    # what the processor did meanwhile for others counts, so no median
    return bytes_ * len(times) / sum(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.3, help="of each measurement, about")
    parser.add_argument("--alone", action="store_true", help="only the processor")
    args = parser.parse_args()
    try:
        ranks = connect(args.alone)
    except ImportError as error:
        print(f"calibrate: {error}: pip install mpi4py (MPI) or torch (torchrun)", file=sys.stderr)
        return 1
    found = Probe(ranks, args.seconds).run()
    if ranks.rank == 0:
        print(f"\n{MARK}{json.dumps(found)}", flush=True)
    ranks.barrier()
    return 0


if __name__ == "__main__":
    sys.exit(main())
