# SPDX-License-Identifier: Apache-2.0
"""Runs simulations in SimGrid (S4U): reads jobs as a JSON list, writes a line of JSON for each.

A program of its own, run by whichever Python has simgrid; it imports nothing of wirepress.
simulate.py makes the jobs and says what their fields mean.

Every rank is an actor. A message is a flow between the hosts of its two ranks, from the moment that
both are in the call; its route is, for coded messages, compressor, link up, (fabric,) link down,
expander, and without the engines for those that bypass them. Sizes are those on the wire, and the
engines' rates are divided by the ratio, so that links are shared by their true bytes. The ranks
of a node share its link and its engines; what they send to each other goes raw over links inside
the node. Each job runs in a process of its own, because SimGrid has one engine a process.
"""

from __future__ import annotations

import copy
import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import simgrid
from simgrid import Actor, Comm, Engine, LinkInRoute, NetZone, Semaphore, this_actor

OPTIONS = (
    "--cfg=network/model:CM02",  # a flow gets what is left of the bandwidth, not 97 % of it
    "--cfg=network/TCP-gamma:0",
    "--cfg=network/crosstraffic:0",
    "--log=root.thresh:critical",
)
NONBLOCKING = {
    f"i{name}"
    for name in ("allreduce", "bcast", "reduce", "allgather", "reducescatter", "alltoall",
                 "gather", "scatter", "barrier")
}  # fmt: skip


def now() -> float:
    return Engine.clock if hasattr(Engine, "clock") else Engine.get_clock()


class Platform:
    """Hosts for the ways of messages, in a star: full bisection but for a fabric in the middle, if
    any. One for each node and way, and one for each rank inside its node."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.zone = NetZone.create_star_zone("network")
        codec = job["codec"]
        fabric = [self._link("fabric", job["fabric"], 0)] if job["fabric"] else []
        self.coded, self.raw, self.inside = [], [], []
        local = job["local"]
        for node in range(-(-job["ranks"] // local)):
            up = self._link(f"up{node}", job["link"], job["latency"])
            down = self._link(f"down{node}", job["link"], 0)
            self.raw.append(self._host(f"raw{node}", [up, *fabric], [down]))
            if codec:
                ratio, start = codec["ratio"], codec["latency"]
                first = self._link(f"compress{node}", codec["compress"] / ratio, start)
                last = self._link(f"expand{node}", codec["decompress"] / ratio, start)
                self.coded.append(self._host(f"node{node}", [first, up, *fabric], [down, last]))
        for rank in range(job["ranks"] if local > 1 else 0):
            out = self._link(f"out{rank}", job["intra"], job["intra_latency"])
            back = self._link(f"in{rank}", job["intra"], 0)
            self.inside.append(self._host(f"inside{rank}", [out], [back]))
        # where the actors live; no message passes it
        self.desk = self._host("desk", [self._link("desk", 1e12, 0)], [])
        self.zone.seal()

    def _link(self, name: str, rate: float, latency: float) -> Any:
        link = self.zone.create_link(name, rate)
        link.set_latency(latency)
        link.seal()
        return link

    def _host(self, name: str, up: list[Any], down: list[Any]) -> Any:
        host = self.zone.create_host(name, 1e9)
        for ends, links in (((host.netpoint, None), up), ((None, host.netpoint), down)):
            route = [LinkInRoute(link) for link in links]
            try:
                self.zone.add_route(*ends, None, None, route, False)
            except TypeError:  # SimGrid 4: hosts, not their points
                pair = (host, None) if ends[0] is not None else (None, host)
                self.zone.add_route(*pair, route, False)
        return host


class Request:
    """One side of a message; the side that comes second starts the flow."""

    def __init__(self, size: float) -> None:
        self.size, self.flow, self.ready = size, None, Semaphore(0)

    def wait(self) -> None:
        if self.flow is None:
            self.ready.acquire()
        if self.flow is not True:
            self.flow.wait()


class World:
    """What the ranks share."""

    def __init__(self, job: dict[str, Any], platform: Platform) -> None:
        self.job, self.platform = job, platform
        self.waiting: dict[tuple[Any, ...], list[Request]] = defaultdict(list)
        self.messages = self.bypassed = 0
        self.raw_bytes = self.wire_bytes = 0.0

    def meet(self, side: int, source: int, target: int, tag: Any, size: float) -> Request:
        """Announces one side (0 sends, 1 receives); starts the flow if the other was there."""
        mine, others = (source, target, tag, side), (source, target, tag, 1 - side)
        request = Request(size)
        if not self.waiting[others]:
            self.waiting[mine].append(request)
            return request
        other = self.waiting[others].pop(0)
        request.flow = self._start(source, target, size if side == 0 else other.size)
        other.flow = request.flow
        other.ready.release()
        return request

    def _start(self, source: int, target: int, size: float) -> Any:
        codec, hosts, wire = self.job["codec"], self.platform.raw, size
        if source == target:
            return True
        here, there = source // self.job["local"], target // self.job["local"]
        if here == there:
            hosts = self.platform.inside
            return Comm.sendto_async(hosts[source], hosts[target], max(round(size), 1))
        self.messages += 1
        self.raw_bytes += size
        if codec and size >= self.job["bypass_below"]:
            hosts, wire = self.platform.coded, size / codec["ratio"]
        else:
            self.bypassed += 1
        self.wire_bytes += wire
        return Comm.sendto_async(hosts[here], hosts[there], max(round(wire), 1))


class Rank:
    """An actor: runs the calls of one rank."""

    def __init__(self, world: World, rank: int, calls: list[list[Any]]) -> None:
        self.world, self.rank, self.calls = world, rank, calls
        self.n = world.job["ranks"]
        self.head = world.job["head"]  # of a parameter server, or None
        self.computing = self.exchange = self.finish = 0.0
        self.at: tuple[int, str] | None = (0, "start")  # None: at the end
        self.requests: list[tuple[tuple[Any, ...], Request]] = []
        self.collective, self.side = 0, "collective"
        self.named: dict[int, Any] = {}
        self.queue: list[tuple[str, list[Any], Semaphore]] = []
        self.work, self.pending = Semaphore(0), []
        self.intervals: list[tuple[str, float, float]] = []

    def run(self) -> None:
        for _ in range(self.world.job["repeat"]):
            for i, (name, *rest) in enumerate(self.calls):
                begin, self.at = now(), (i, name)
                if name in NONBLOCKING:
                    self.start(name[1:], *rest)
                else:
                    getattr(self, f"do_{name}")(*rest)
                spent = now() - begin
                if name == "compute":
                    self.computing += spent
                else:
                    self.exchange += spent
                if self.world.job["intervals"] and spent:
                    self.intervals.append((name, begin, begin + spent))
        self.finish, self.at = now(), None
        self.queue.append(("stop", [], Semaphore(0)))
        self.work.release()

    def in_background(self) -> None:
        """The rank's communication thread: non-blocking collectives, one after the other."""
        thread = copy.copy(self)  # tags of its own: its collectives have an order of their own
        thread.side, thread.collective = "background", 0
        while True:
            self.work.acquire()
            name, rest, done = self.queue.pop(0)
            if name == "stop":
                return
            getattr(thread, f"do_{name}")(*rest)
            done.release()

    # ---- calls

    def do_compute(self, seconds: float) -> None:
        this_actor.sleep_for(seconds)

    do_sleep = do_compute

    def do_send(self, peer: int, size: float, tag: Any = 0) -> None:
        self._send(peer, size, tag).wait()

    def do_recv(self, peer: int, size: float, tag: Any = 0) -> None:
        self._recv(peer, size, tag).wait()

    def do_isend(self, peer: int, size: float, tag: Any = 0, number: int = 0) -> None:
        self._keep((self.rank, peer, tag), number, self._send(peer, size, tag))

    def do_irecv(self, peer: int, size: float, tag: Any = 0, number: int = 0) -> None:
        self._keep((peer, self.rank, tag), number, self._recv(peer, size, tag))

    def _keep(self, key: tuple[Any, ...], number: int, request: Request) -> None:
        if number:
            self.named[number] = request.wait
        else:
            self.requests.append((key, request))

    def do_complete(self, number: int) -> None:
        self.named.pop(number)()

    def do_wait(self, source: int, target: int, tag: Any = 0) -> None:
        key = (source, target, tag)
        i = next(i for i, (other, _) in enumerate(self.requests) if other == key)
        self.requests.pop(i)[1].wait()

    def do_waitall(self) -> None:
        for _, request in self.requests:
            request.wait()
        self.requests.clear()
        for done in self.pending:
            done.acquire()
        self.pending.clear()

    def start(self, name: str, *rest: Any) -> None:
        """A non-blocking collective; its last argument is the request's number."""
        done = Semaphore(0)
        self.queue.append((name, list(rest[:-1]), done))
        if rest[-1]:
            self.named[rest[-1]] = done.acquire
        else:
            self.pending.append(done)
        self.work.release()

    def do_allreduce(self, size: float) -> None:
        getattr(self, "_allreduce_" + self.world.job["allreduce"])(size)

    def do_bcast(self, size: float, root: int = 0) -> None:
        """A binomial tree."""
        tag, me = self._tag(), (self.rank - root) % self.n
        bit = 1
        while bit < self.n and not me & bit:
            bit <<= 1
        if me:
            self._recv((me - bit + root) % self.n, size, tag).wait()
        else:
            bit = 1 << (self.n - 1).bit_length()
        while bit > 1:
            bit >>= 1
            if me + bit < self.n:
                self._send((me + bit + root) % self.n, size, tag).wait()

    def do_reduce(self, size: float, root: int = 0) -> None:
        """A binomial tree, upside down; adding takes no time."""
        tag, me = self._tag(), (self.rank - root) % self.n
        bit = 1
        while bit < self.n:
            if me & bit:
                self._send((me - bit + root) % self.n, size, tag).wait()
                return
            if me + bit < self.n:
                self._recv((me + bit + root) % self.n, size, tag).wait()
            bit <<= 1

    def do_allgather(self, size: float) -> None:
        """`size` bytes of every rank, in a ring."""
        self._ring(self.n - 1, size)

    def do_reducescatter(self, size: float) -> None:
        """`size` bytes at every rank before, in a ring."""
        self._ring(self.n - 1, size / self.n)

    def do_alltoall(self, size: float) -> None:
        """`size` bytes to every rank, in pairs."""
        tag = self._tag()
        for step in range(1, self.n):
            self._both((self.rank + step) % self.n, (self.rank - step) % self.n, size, tag)

    def do_gather(self, size: float, root: int = 0) -> None:
        self._star(size, root, into=True)

    def do_scatter(self, size: float, root: int = 0) -> None:
        self._star(size, root, into=False)

    def do_barrier(self) -> None:
        """Dissemination, of one byte."""
        tag, step = self._tag(), 1
        while step < self.n:
            self._both((self.rank + step) % self.n, (self.rank - step) % self.n, 1, tag)
            step <<= 1

    # ---- algorithms

    def _allreduce_ring(self, size: float) -> None:
        self._ring(2 * (self.n - 1), size / self.n)

    def _allreduce_flow(self, size: float) -> None:
        """A ring as one flow to the neighbour: 2(n-1)/n of the bytes; the same on equal links."""
        n = self.n
        if n == 1:
            return
        tag = self._tag()
        self._both((self.rank + 1) % n, (self.rank - 1) % n, 2 * (n - 1) / n * size, tag)
        codec = self.world.job["codec"]
        start = self.world.job["latency"]
        if codec and size / n >= self.world.job["bypass_below"]:
            start += 2 * codec["latency"]
        this_actor.sleep_for((2 * (n - 1) - 1) * start)

    def _allreduce_hierarchical(self, size: float) -> None:
        """Reduce-scatter in the node, a ring between the nodes for each part, allgather."""
        local = self.world.job["local"]
        node, place = divmod(self.rank, local)
        mates = [node * local + i for i in range(local)]
        peers = [i * local + place for i in range(self.n // local)]
        self._ring_of(mates, local - 1, size / local)
        self._ring_of(peers, 2 * (len(peers) - 1), size / self.n)
        self._ring_of(mates, local - 1, size / local)

    def _allreduce_tree(self, size: float) -> None:
        self.do_reduce(size)
        self.do_bcast(size)

    def _allreduce_ps(self, size: float) -> None:
        """All push to the head, a node of its own, then get the sum from it."""
        self._star(size, self.head, into=True)
        self._star(size, self.head, into=False)

    def _allreduce_doubling(self, size: float) -> None:
        """Recursive doubling; the ranks beyond the largest power of two hand theirs over before."""
        tag, whole = self._tag(), 1 << (self.n.bit_length() - 1)
        extra = self.n - whole
        if self.rank >= whole:
            self._send(self.rank - whole, size, (tag, "in")).wait()
            self._recv(self.rank - whole, size, (tag, "out")).wait()
            return
        if self.rank < extra:
            self._recv(self.rank + whole, size, (tag, "in")).wait()
        bit = 1
        while bit < whole:
            self._both(self.rank ^ bit, self.rank ^ bit, size, (tag, bit))
            bit <<= 1
        if self.rank < extra:
            self._send(self.rank + whole, size, (tag, "out")).wait()

    def _ring(self, steps: int, size: float) -> None:
        self._ring_of(range(self.n), steps, size)

    def _ring_of(self, members: Sequence[int], steps: int, size: float) -> None:
        tag, me = self._tag(), members.index(self.rank)
        after, before = members[(me + 1) % len(members)], members[me - 1]
        for _ in range(steps):
            self._both(after, before, size, tag)

    def _star(self, size: float, root: int, into: bool) -> None:
        """All at once, to the root or from it (its own part moves nothing)."""
        tag = self._tag()
        others = [r for r in range(self.n) if r != root] if self.rank == root else [root]
        sends = (self.rank == root) != into
        calls = [(self._send if sends else self._recv)(other, size, tag) for other in others]
        for call in calls:
            call.wait()

    def _both(self, target: int, source: int, size: float, tag: Any) -> None:
        outgoing, incoming = self._send(target, size, tag), self._recv(source, size, tag)
        outgoing.wait()
        incoming.wait()

    def _tag(self) -> Any:
        self.collective += 1
        return (self.side, self.collective)

    def _send(self, peer: int, size: float, tag: Any) -> Request:
        return self.world.meet(0, self.rank, peer, tag, size)

    def _recv(self, peer: int, size: float, tag: Any) -> Request:
        return self.world.meet(1, peer, self.rank, tag, size)


def simulate(job: dict[str, Any]) -> dict[str, Any]:
    engine = Engine(["wirepress", *OPTIONS])
    platform = Platform(job)
    world = World(job, platform)
    programs = job["programs"]
    workers = range(job["ranks"] - (job["head"] is not None))
    ranks = [Rank(world, rank, programs[rank if len(programs) > 1 else 0]) for rank in workers]
    if job["head"] is not None:
        sums = [call for call in programs[0] if call[0] in ("allreduce", "iallreduce", "waitall")]
        ranks.append(Rank(world, job["head"], sums))
    threaded = any(call[0] in NONBLOCKING for calls in programs for call in calls)
    create = getattr(platform.desk, "add_actor", None)  # SimGrid 4.1
    for rank in ranks:
        for name, body in (("rank", rank.run), ("thread", rank.in_background)):
            if name == "rank" or threaded:
                if create:
                    create(f"{name}{rank.rank}", body)
                else:
                    Actor.create(f"{name}{rank.rank}", platform.desk, body)
    engine.run()
    if stuck := [rank for rank in ranks if rank.at]:
        where = (f"rank {r.rank} in {r.at[1]} (call {r.at[0]})" for r in stuck[:4])
        sys.exit("deadlock: " + ", ".join(where))
    return {
        "simgrid": str(getattr(simgrid, "simgrid_version", "")),
        "seconds": max(rank.finish for rank in ranks),
        "computing": [rank.computing for rank in ranks[: len(workers)]],
        "exchange": [rank.exchange for rank in ranks[: len(workers)]],
        "messages": world.messages,
        "bypassed": world.bypassed,
        "raw_bytes": world.raw_bytes,
        "wire_bytes": world.wire_bytes,
        "intervals": [rank.intervals for rank in ranks[: len(workers)]] if job["intervals"] else [],
    }


def main() -> int:
    """The exit status: 0, or that of the first job that failed."""
    for job in json.load(sys.stdin):
        child = os.fork()
        if child == 0:
            print(json.dumps(simulate(job)), flush=True)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if status:
            return os.waitstatus_to_exitcode(status) or 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
