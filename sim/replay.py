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

What a transport adds (simulate.Transport) is here, too: eager messages begin without their receive;
the answer that others wait for stands behind what the receiver is sending itself; after a pause a
link lets a burst pass at once.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
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
    """Hosts for the ways of messages, in a star: full bisection but for a fabric in the middle, or
    the up-links of a tree's switches, if any. One for each node and way, and one for each rank
    inside its node. `raw[n]` and `coded[n]` are ways over n levels of the tree."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.zone = NetZone.create_star_zone("network")
        self.tree = job["tree"]
        codec = job["codec"]
        fabric = [self._link("fabric", job["fabric"], 0)] if job["fabric"] else []
        self.switches: dict[tuple[int, int], tuple[Any, Any]] = {}
        self.coded: list[list[Any]] = [[] for _ in range(len(self.tree) + 1)]
        self.raw: list[list[Any]] = [[] for _ in range(len(self.tree) + 1)]
        self.inside = []
        local = job["local"]
        for node in range(-(-job["ranks"] // local)):
            up = self._link(f"up{node}", job["link"], job["latency"])
            down = self._link(f"down{node}", job["link"], 0)
            ends: tuple[list[Any], list[Any]] = ([], [])
            if codec:
                ratio, start = codec["ratio"], codec["latency"]
                first = self._link(f"compress{node}", codec["compress"] / ratio, start)
                last = self._link(f"expand{node}", codec["decompress"] / ratio, start)
                core = []
                if codec["core"]:  # one core compresses what goes and expands what comes
                    core = [self._link(f"core{node}", codec["core"] / ratio, 0)]
                ends = [first, *core], [*core, last]
            for level in range(len(self.tree) + 1):
                pairs = [self._switch(i, node) for i in range(level)]
                ups = [up, *fabric, *(pair[0] for pair in pairs)]
                downs = [*(pair[1] for pair in reversed(pairs)), down]
                self.raw[level].append(self._host(f"raw{level}-{node}", ups, downs))
                if codec:
                    name = f"node{level}-{node}"
                    host = self._host(name, [*ends[0], *ups], [*downs, *ends[1]])
                    self.coded[level].append(host)
        for rank in range(job["ranks"] if local > 1 else 0):
            out = self._link(f"out{rank}", job["intra"], job["intra_latency"])
            back = self._link(f"in{rank}", job["intra"], 0)
            self.inside.append(self._host(f"inside{rank}", [out], [back]))
        # where the actors live; no message passes it
        self.desk = self._host("desk", [self._link("desk", 1e12, 0)], [])
        self.zone.seal()

    def ways(self, here: int, there: int, coded: bool) -> tuple[Any, Any]:
        """The hosts between which a message of two nodes is a flow."""
        level = 0
        for nodes, _ in self.tree:
            if here // nodes == there // nodes:
                break
            level += 1
        hosts = (self.coded if coded else self.raw)[level]
        return hosts[here], hosts[there]

    def _switch(self, level: int, node: int) -> tuple[Any, Any]:
        """All links of a node's switch up to the next level, and back, as one each."""
        nodes, rate = self.tree[level]
        key = level, node // nodes
        if key not in self.switches:
            name = f"switch{level}-{key[1]}"
            self.switches[key] = self._link(name + "up", rate, 0), self._link(name, rate, 0)
        return self.switches[key]

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


def create_actor(name: str, host: Any, body: Callable[[], None]) -> None:
    create = getattr(host, "add_actor", None)  # SimGrid 4.1
    if create:
        create(name, body)
    else:
        Actor.create(name, host, body)


class Request:
    """One side of a message; the side that comes second starts the flow."""

    def __init__(self, size: float) -> None:
        self.size, self.flow, self.ready = size, None, Semaphore(0)
        self.started = False
        self.followers: list[Request] = []  # receives that came while it was delayed

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
        # of each node: when what it has begun to send will be on its way
        self.drained: dict[int, float] = defaultdict(float)
        # of each end of a link: bytes that it lets pass at once, and when it was so
        self.tokens: dict[tuple[str, int], tuple[float, float]] = {}

    def meet(self, side: int, source: int, target: int, tag: Any, size: float) -> Request:
        """Announces one side (0 sends, 1 receives); starts the flow if the other was there, or
        need not be."""
        mine, others = (source, target, tag, side), (source, target, tag, 1 - side)
        request = Request(size)
        if not self.waiting[others]:
            self.waiting[mine].append(request)
            if side == 0 and self._is_eager(source, target, size):
                self._start(source, target, size, [request], True)
            return request
        other = self.waiting[others].pop(0)
        if side == 1 and other.started:
            request.flow = other.flow
            if other.flow is None:
                other.followers.append(request)
            return request
        eager = self._is_eager(source, target, size)
        self._start(source, target, size if side == 0 else other.size, [request, other], eager)
        return request

    def _coded(self, size: float) -> bool:
        return bool(self.job["codec"]) and size >= self.job["bypass_below"]

    def _wire(self, size: float) -> float:
        return size / self.job["codec"]["ratio"] if self._coded(size) else size

    def _is_eager(self, source: int, target: int, size: float) -> bool:
        local = self.job["local"]
        return source // local != target // local and self._wire(size) <= self.job["eager"]

    def _start(
        self, source: int, target: int, size: float, requests: list[Request], eager: bool
    ) -> None:
        """Begins a message, now or when what delays it is over."""
        if source == target:
            return self._begun(True, requests)
        here, there = source // self.job["local"], target // self.job["local"]
        if here == there:
            hosts = self.platform.inside
            flow = Comm.sendto_async(hosts[source], hosts[target], max(round(size), 1))
            return self._begun(flow, requests)
        self.messages += 1
        self.raw_bytes += size
        wire, coded = self._wire(size), self._coded(size)
        self.bypassed += not coded
        self.wire_bytes += wire
        hosts = self.platform.ways(here, there, coded)
        delay = self.startup(size) if coded else 0.0
        if not eager:
            delay += self._answer(there)
        for request in requests:
            request.started = True
        if delay <= 0:
            return self._send(here, there, wire, hosts, requests)
        body = functools.partial(self._later, delay, here, there, wire, hosts, requests)
        create_actor("courier", self.platform.desk, body)
        return None

    def _later(self, delay: float, *rest: Any) -> None:
        this_actor.sleep_for(delay)
        self._send(*rest)

    def startup(self, size: float) -> float:
        """Seconds that the first block of a message spends in the codec's other stages."""
        codec = self.job["codec"]
        piece = min(codec["block"], size)
        stages = [
            piece / codec["compress"],
            piece / (codec["ratio"] * self.job["link"]),
            piece / codec["decompress"],
        ]
        return sum(stages) - max(stages)

    def _answer(self, there: int) -> float:
        """Seconds until the sender knows that the receiver is there."""
        if not self.job["handshake"] and not self.job["buffer"]:
            return 0.0
        link = self.job["link"]
        ahead = max(self.drained[there] - now(), 0.0) * link
        return self.job["handshake"] + min(ahead, self.job["buffer"]) / link

    def _send(
        self, here: int, there: int, wire: float, hosts: tuple[Any, Any], requests: list[Request]
    ) -> None:
        self.drained[here] = max(self.drained[here], now()) + wire / self.job["link"]
        size = wire - self._at_once(here, there, wire)
        self._begun(Comm.sendto_async(*hosts, max(round(size), 1)), requests)

    def _at_once(self, here: int, there: int, wire: float) -> float:
        """Bytes of a message that pass at once: two token buckets, one after the other."""
        burst, link = self.job["burst"], self.job["link"]
        if not burst:
            return 0.0
        levels = {}
        for end in (("up", here), ("down", there)):
            level, since = self.tokens.get(end, (burst, 0.0))
            levels[end] = min(burst, level + link * (now() - since))
        for end, level in levels.items():
            self.tokens[end] = level - wire, now()
        return max(min(*levels.values(), wire), 0.0)

    def _begun(self, flow: Any, requests: list[Request]) -> None:
        for request in requests:
            request.started, request.flow = True, flow
            request.ready.release()
            for follower in request.followers:
                follower.flow = flow
                follower.ready.release()


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
        """A binomial tree, upside down."""
        tag, me = self._tag(), (self.rank - root) % self.n
        bit = 1
        while bit < self.n:
            if me & bit:
                self._send((me - bit + root) % self.n, size, tag).wait()
                return
            if me + bit < self.n:
                self._recv((me + bit + root) % self.n, size, tag).wait()
                self._add(size)
            bit <<= 1

    def do_allgather(self, size: float) -> None:
        """`size` bytes of every rank, in a ring."""
        self._ring(self.n - 1, size)

    def do_reducescatter(self, size: float) -> None:
        """`size` bytes at every rank before, in a ring."""
        self._ring(self.n - 1, size / self.n, self.n - 1)

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
        self._ring(2 * (self.n - 1), size / self.n, self.n - 1)

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
            start += 2 * codec["latency"] + self.world.startup(size / n)
        this_actor.sleep_for((2 * (n - 1) - 1) * start)
        self._add((n - 1) / n * size)

    def _allreduce_hierarchical(self, size: float) -> None:
        """Reduce-scatter in the node, a ring between the nodes for each part, allgather."""
        local = self.world.job["local"]
        node, place = divmod(self.rank, local)
        mates = [node * local + i for i in range(local)]
        peers = [i * local + place for i in range(self.n // local)]
        self._ring_of(mates, local - 1, size / local, local - 1)
        self._ring_of(peers, 2 * (len(peers) - 1), size / self.n, len(peers) - 1)
        self._ring_of(mates, local - 1, size / local)

    def _allreduce_tree(self, size: float) -> None:
        self.do_reduce(size)
        self.do_bcast(size)

    def _allreduce_ps(self, size: float) -> None:
        """All push to the head, a node of its own, then get the sum from it."""
        self._star(size, self.head, into=True)
        self._star(size, self.head, into=False)

    def _allreduce_doubling(self, size: float) -> None:
        """Recursive doubling."""
        self._powers_of_two(size, self._doubling)

    def _doubling(self, whole: int, size: float, tag: Any) -> None:
        bit = 1
        while bit < whole:
            self._both(self.rank ^ bit, self.rank ^ bit, size, (tag, bit))
            self._add(size)
            bit <<= 1

    def _allreduce_halving(self, size: float) -> None:
        """Recursive halving to sums of parts, recursive doubling to get all of them."""
        self._powers_of_two(size, self._halving)

    def _halving(self, whole: int, size: float, tag: Any) -> None:
        bits = [1 << i for i in range(whole.bit_length() - 1)]
        for bit in bits:
            size /= 2
            self._both(self.rank ^ bit, self.rank ^ bit, size, (tag, bit, "sums"))
            self._add(size)
        for bit in reversed(bits):
            self._both(self.rank ^ bit, self.rank ^ bit, size, (tag, bit, "parts"))
            size *= 2

    def _powers_of_two(self, size: float, run: Callable[[int, float, Any], None]) -> None:
        """The ranks beyond the largest power of two hand theirs over before, and get the sum."""
        tag, whole = self._tag(), 1 << (self.n.bit_length() - 1)
        extra = self.n - whole
        if self.rank >= whole:
            self._send(self.rank - whole, size, (tag, "in")).wait()
            self._recv(self.rank - whole, size, (tag, "out")).wait()
            return
        if self.rank < extra:
            self._recv(self.rank + whole, size, (tag, "in")).wait()
            self._add(size)
        run(whole, size, tag)
        if self.rank < extra:
            self._send(self.rank + whole, size, (tag, "out")).wait()

    def _ring(self, steps: int, size: float, adds: int = 0) -> None:
        self._ring_of(range(self.n), steps, size, adds)

    def _ring_of(self, members: Sequence[int], steps: int, size: float, adds: int = 0) -> None:
        """What comes in the first `adds` steps is added."""
        tag, me = self._tag(), members.index(self.rank)
        after, before = members[(me + 1) % len(members)], members[me - 1]
        for step in range(steps):
            self._both(after, before, size, tag)
            if step < adds:
                self._add(size)

    def _add(self, size: float) -> None:
        if self.world.job["add"]:
            this_actor.sleep_for(size / self.world.job["add"])

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
    for rank in ranks:
        for name, body in (("rank", rank.run), ("thread", rank.in_background)):
            if name == "rank" or threaded:
                create_actor(f"{name}{rank.rank}", platform.desk, body)
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
