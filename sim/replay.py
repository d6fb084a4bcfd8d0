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
longer ones are announced, answered and then sent, and what one rank sends to another stands in
one line, answers behind data (Connection); a rank hears of announcements and answers only while it
waits in a call (Progress); after a pause a link lets a burst pass at once. Ranks of one machine
share its cores.
"""

from __future__ import annotations

import bisect
import copy
import functools
import heapq
import itertools
import json
import os
import random
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

import simgrid
from simgrid import Actor, Comm, Engine, LinkInRoute, NetZone, Semaphore, this_actor

SPEED = 1e9  # of a core, in SimGrid's flops a second: any number
PRECISION = 1e-9  # seconds: SimGrid's
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


# Open MPI 4.1 and 5, coll/tuned: ranks of a communicator below the first number take, for vectors
# below each size in bytes, this algorithm for Allreduce by an operation that commutes
# (coll_tuned_decision_fixed.c). Its segmented ring is a ring here, its non-overlapping reduce and
# broadcast a tree, Rabenseifner's algorithm is "halving".
OPEN_MPI = (
    (4, ((8, "ring"), (4096, "doubling"), (8192, "ring"), (16384, "doubling"), (262144, "ring"))),
    (8, ((16, "ring"), (8192, "doubling"))),
    (16, ((8192, "doubling"),)),
    (32, ((64, "ring"), (4096, "doubling"))),
    (64, ((128, "ring"),)),
    (128, ((262144, "doubling"),)),
    (256, ((131072, "tree"), (262144, "doubling"))),
    (512, ((4096, "tree"),)),
    (2048, ((2048, "tree"), (16384, "doubling"))),
    (4096, ((2048, "tree"), (4096, "ring"), (16384, "doubling"))),
    (float("inf"), ((2048, "tree"), (16384, "ring"), (32768, "doubling"))),
)


def open_mpi_allreduce(n: int, size: float) -> str:
    """The algorithm that Open MPI takes for a vector of `size` bytes on n ranks."""
    sizes = next(sizes for below, sizes in OPEN_MPI if n < below)
    return next((name for below, name in sizes if size < below), "halving")


class Zone:
    """A star of hosts: SimGrid 4 has other names for what makes it."""

    def __init__(self, name: str) -> None:
        if hasattr(NetZone, "add_netzone_star"):
            zone = Engine.instance.netzone_root.add_netzone_star(name)
            self.new_host, self.new_link = zone.add_host, zone.add_link
        else:
            zone = NetZone.create_star_zone(name)
            self.new_host, self.new_link = zone.create_host, zone.create_link
        self.add_route, self.seal = zone.add_route, zone.seal


class Platform:
    """Hosts for the ways of messages, in a star: full bisection but for a fabric in the middle, or
    the up-links of a tree's switches, if any. One for each node and way, and one for each rank
    inside its node. `raw[n]` and `coded[n]` are ways over n levels of the tree."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.zone = Zone("network")
        self.tree = job["tree"]
        self.cores, self.machine = job["cores"], job["machine"]
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
        # where the actors live; no message passes these
        self.desk = self._host("desk", [self._link("desk", 1e12, 0)], [])
        self.machines = []  # whose cores the ranks share
        if job["cores"]:
            self.machines = [self._machine(i) for i in range(-(-job["ranks"] // job["machine"]))]
        self.zone.seal()

    def _machine(self, number: int) -> Any:
        host = self.zone.new_host(f"machine{number}", SPEED)
        host.core_count = self.cores
        host.seal()
        return host

    def home(self, rank: int) -> Any:
        """Where an actor of the rank lives."""
        return self.machines[rank // self.machine] if self.machines else self.desk

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
        link = self.zone.new_link(name, rate)
        link.set_latency(latency)
        link.seal()
        return link

    def _host(self, name: str, up: list[Any], down: list[Any]) -> Any:
        host = self.zone.new_host(name, SPEED)
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


class Clock:
    """Calls functions later, all from one actor."""

    def __init__(self, desk: Any) -> None:
        self.due: list[tuple[float, int, Callable[[], Any]]] = []
        self.number, self.changed = itertools.count(), Semaphore(0)
        create_actor("clock", desk, self._run)

    def after(self, delay: float, body: Callable[[], Any]) -> None:
        heapq.heappush(self.due, (now() + delay, next(self.number), body))
        self.changed.release()

    def _run(self) -> None:
        Actor.self().daemonize()
        while True:
            while self.due and self.due[0][0] <= now() + PRECISION:
                heapq.heappop(self.due)[2]()
            if self.due:
                self.changed.acquire_timeout(self.due[0][0] - now())
            else:
                self.changed.acquire()


class Progress:
    """What came for ranks that were not in MPI: they hear of it when they next wait for something.
    Open MPI, MPICH and others have no thread that would answer meanwhile."""

    def __init__(self) -> None:
        self.listening: dict[int, int] = defaultdict(int)
        self.left: dict[int, float] = {}  # when a rank last listened
        self.unheard: dict[int, deque[Callable[[], Any]]] = defaultdict(deque)

    def tell(self, rank: int, body: Callable[[], Any]) -> None:
        """What comes with the end of what a rank waited for is read with it."""
        if self.listening[rank] or self.left.get(rank) == now():
            body()
        else:
            self.unheard[rank].append(body)

    def enter(self, rank: int) -> None:
        self.listening[rank] += 1
        unheard = self.unheard[rank]
        while unheard:
            unheard.popleft()()

    def leave(self, rank: int) -> None:
        self.listening[rank] -= 1
        self.left[rank] = now()


class Connection:
    """The line from one rank to another, as a TCP connection is one: nothing overtakes."""

    def __init__(self, desk: Any) -> None:
        self.line: deque[tuple[float, Callable[[], Any]]] = deque()
        self.queued, self.work = 0.0, Semaphore(0)
        create_actor("connection", desk, self._run)

    def put(self, size: float, begin: Callable[[], Any]) -> None:
        """`begin` is called when all before it is through; it may wait. `size`: of its bytes."""
        self.queued += size
        self.line.append((size, begin))
        self.work.release()

    def _run(self) -> None:
        Actor.self().daemonize()
        while True:
            self.work.acquire()
            size, begin = self.line.popleft()
            begin()
            self.queued -= size


class Request:
    """One side of a message. `flow`: what it waits for; True: nothing more; None: not known yet."""

    def __init__(self, progress: Progress, rank: int) -> None:
        self.progress, self.rank = progress, rank
        self.flow: Any = None
        self.ready = Semaphore(0)
        self.after: Callable[[], Any] | None = None  # what the rank does when the message is there

    def begin(self, flow: Any) -> None:
        self.flow = flow
        self.ready.release()

    def wait(self) -> None:
        self.progress.enter(self.rank)
        if self.flow is None:
            self.ready.acquire()
        if self.flow is not True:
            self.flow.wait()
        self.progress.leave(self.rank)
        if self.after:
            self.after()


class Message:
    """Both sides of a message, of which one may still be missing. `heard`: the receiver knows of
    it; `chunked`: it stands for chunks of a coded collective."""

    def __init__(self, source: int, target: int, chunked: bool, raw: bool = False) -> None:
        self.source, self.target, self.chunked = source, target, chunked
        self.raw = raw  # whatever its size
        self.size, self.ratio = 0.0, 1.0
        self.by_ranks = False  # see World.by_ranks
        self.sides: list[Request | None] = [None, None]
        self.flow: Any = None  # of the receiver, once it has begun
        self.heard = False

    def join(self, side: int, request: Request, size: float) -> None:
        self.sides[side] = request
        if side == 0:
            self.size = size
        elif self.flow is not None:
            request.begin(self.flow)

    @property
    def met(self) -> bool:
        return None not in self.sides

    def begin(self, side: int, flow: Any) -> None:
        if side == 1:
            self.flow = flow
        request = self.sides[side]
        if request:
            request.begin(flow)


_RAW = "raw"  # at the end of a tag: such messages are not coded


class World:
    """What the ranks share."""

    def __init__(self, job: dict[str, Any], platform: Platform) -> None:
        self.job, self.platform = job, platform
        self.clock, self.progress = Clock(platform.desk), Progress()
        self.waiting: dict[tuple[Any, ...], deque[Message]] = defaultdict(deque)
        self.connections: dict[tuple[int, int], Connection] = {}
        self.random = random.Random(1)  # any seed: the same job takes the same time twice
        self.chance = random.Random(2)  # of ratios
        self.messages = self.bypassed = 0
        self.raw_bytes = self.wire_bytes = 0.0
        # of each end of a link: bytes that it lets pass at once, and when it was so
        self.tokens: dict[tuple[str, int], tuple[float, float]] = {}

    def meet(self, side: int, source: int, target: int, tag: Any, size: float) -> Request:
        """Announces one side (0 sends, 1 receives)."""
        others = self.waiting[source, target, tag, 1 - side]
        if others:
            message = others.popleft()
        else:
            chunked = bool(self.job["codec"]) and isinstance(tag, tuple)
            message = Message(source, target, chunked, isinstance(tag, tuple) and tag[-1] is _RAW)
            self.waiting[source, target, tag, side].append(message)
        request = Request(self.progress, target if side else source)
        message.join(side, request, size)
        if side == 0:
            self._sent(message)
        else:
            self._posted(message)
        return request

    def _sent(self, message: Message) -> None:
        if self._coded(message):
            message.ratio = self._ratio(message.size)
            message.by_ranks = self.by_ranks(
                message.source, message.target, message.chunked, message.size
            )
        if self._between_nodes(message):
            self.messages += 1
            self.raw_bytes += message.size
            self.wire_bytes += self._wire(message)
            self.bypassed += not self._coded(message)
            if self._is_eager(message):
                return self._after_startup(message, self._send)
            if self.job["handshake"]:
                return self._after_startup(message, self._announce)
        if message.met:
            self._start(message)
        return None

    def _posted(self, message: Message) -> None:
        if message.flow is not None or message.sides[0] is None:
            return
        if message.heard:
            self._answer(message)
        elif not self._between_nodes(message) or not (
            self._is_eager(message) or self.job["handshake"]
        ):
            self._start(message)

    def _start(self, message: Message) -> None:
        """Both sides are there, and nothing else is waited for."""
        source, target = message.source, message.target
        if self._between_nodes(message):
            return self._after_startup(message, self._send)
        flow: Any = True
        if source != target:
            hosts = self.platform.inside
            flow = Comm.sendto_async(hosts[source], hosts[target], max(round(message.size), 1))
        message.begin(0, flow)
        message.begin(1, flow)
        return None

    # ---- what a message is

    def _node(self, rank: int) -> int:
        local: int = self.job["local"]
        return rank // local

    def _between_nodes(self, message: Message) -> bool:
        return self._node(message.source) != self._node(message.target)

    def _coded(self, message: Message) -> bool:
        codec = bool(self.job["codec"]) and not message.raw
        return codec and message.size >= self.job["bypass_below"]

    def by_ranks(self, source: int, target: int, chunked: bool, size: float) -> bool:
        """Whether both ranks do the coding themselves, before and after the message: those of one
        block on a processor. Meanwhile they hear of nothing."""
        codec = self.job["codec"]
        return (
            bool(codec and codec["core"])
            and not chunked
            and self._node(source) != self._node(target)
            and self.job["bypass_below"] <= size <= codec["block"]
        )

    def _by_engines(self, message: Message) -> bool:
        return self._coded(message) and not message.by_ranks

    def _wire(self, message: Message) -> float:
        return message.size / message.ratio

    def _ratio(self, size: float) -> float:
        """That of a sample of messages of about this size, or else of the next larger ones."""
        codec = self.job["codec"]
        if not codec["ratios"]:
            return float(codec["ratio"])
        least = [entry[0] for entry in codec["ratios"]]
        at = max(bisect.bisect_right(least, size) - 1, 0)
        return float(self.chance.choice(codec["ratios"][at][1]))

    def _is_eager(self, message: Message) -> bool:
        size = self._wire(message)
        if message.chunked and self.job["codec"]["chunk"]:
            size = min(size, self.job["codec"]["chunk"])
        return size <= self.job["eager"]

    def startup(self, size: float, chunked: bool) -> float:
        """Seconds that the first block of a message spends in the codec's other stages."""
        codec = self.job["codec"]
        block = codec["chunk"] if chunked and codec["chunk"] else codec["block"]
        piece = min(block, size)
        stages = [
            piece / codec["compress"],
            piece / (codec["ratio"] * self.job["link"]),
            piece / codec["decompress"],
        ]
        return sum(stages) - max(stages)

    # ---- how it goes

    def _after_startup(self, message: Message, body: Callable[[Message], None]) -> None:
        delay = self.startup(message.size, message.chunked) if self._by_engines(message) else 0.0
        if delay > 0:
            self.clock.after(delay, functools.partial(body, message))
        else:
            body(message)

    def _connection(self, source: int, target: int) -> Connection:
        key = source, target
        if key not in self.connections:
            self.connections[key] = Connection(self.platform.desk)
        return self.connections[key]

    def _announce(self, message: Message) -> None:
        self._control(message.source, message.target, functools.partial(self._heard, message))

    def _heard(self, message: Message) -> None:
        message.heard = True
        if message.met:
            self._answer(message)

    def _answer(self, message: Message) -> None:
        self._control(message.target, message.source, functools.partial(self._send, message))

    def _control(self, source: int, target: int, body: Callable[[], None]) -> None:
        """A few bytes that the other rank acts upon, behind what is on its way there; where a
        transport has its data in pieces, behind so much of it."""
        connection, ahead = self._connection(source, target), self.job["buffer"]
        due = now() + self.job["handshake"] / 2

        def through() -> None:
            tell = functools.partial(self.progress.tell, target, body)
            if due > now():
                self.clock.after(due - now(), tell)
            else:
                tell()

        if connection.queued <= ahead:
            connection.put(0.0, through)
        else:
            self.clock.after(ahead / self.job["link"], through)

    def _send(self, message: Message) -> None:
        if not self.job["handshake"]:
            flow = self._flow(message, self._wire(message))
            message.begin(0, flow)
            message.begin(1, flow)
            return
        eager = self._is_eager(message)
        if eager:
            message.begin(0, True)
        body = functools.partial(self._pass, message, eager)
        self._connection(message.source, message.target).put(self._wire(message), body)

    def _pass(self, message: Message, eager: bool) -> None:
        """A message's turn in its line. The send is done when the rest fits in the socket."""
        wire = self._wire(message)
        if eager:
            return message.begin(1, self._flow(message, wire))
        rest = min(self.job["socket"], wire)
        if wire > rest:
            first = self._flow(message, wire - rest)
            message.begin(0, first)
            first.wait()
        else:
            message.begin(0, True)
        last: Any = self._flow(message, rest) if rest else True
        message.begin(1, last)
        return last.wait() if rest else None

    def _flow(self, message: Message, wire: float) -> Any:
        here, there = self._node(message.source), self._node(message.target)
        size = wire - self._at_once(here, there, wire)
        size *= 1 + self.job["spread"] * self.random.random()
        hosts = self.platform.ways(here, there, self._by_engines(message))
        return Comm.sendto_async(*hosts, max(round(size), 1))

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
        if self.world.job["cores"]:
            this_actor.execute(seconds * SPEED)
        else:
            this_actor.sleep_for(seconds)

    def do_sleep(self, seconds: float) -> None:
        this_actor.sleep_for(seconds)

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
        """A ring as one flow to the neighbour: 2(n-1)/n of the bytes; the same on equal links. It
        is coded where the ring's messages, of 1/n of the bytes, would be."""
        n = self.n
        if n == 1:
            return
        coded = size / n >= self.world.job["bypass_below"]
        tag = self._tag() if coded else (*self._tag(), _RAW)
        self._both((self.rank + 1) % n, (self.rank - 1) % n, 2 * (n - 1) / n * size, tag)
        codec = self.world.job["codec"]
        start = self.world.job["latency"]
        if codec and coded:
            start += 2 * codec["latency"] + self.world.startup(size / n, True)
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

    def _allreduce_openmpi(self, size: float) -> None:
        getattr(self, "_allreduce_" + open_mpi_allreduce(self.n, size))(size)

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
        """As MPI_Sendrecv: the receive first, so that it may be answered before the send."""
        incoming, outgoing = self._recv(source, size, tag), self._send(target, size, tag)
        outgoing.wait()
        incoming.wait()

    def _tag(self) -> Any:
        self.collective += 1
        return (self.side, self.collective)

    def _send(self, peer: int, size: float, tag: Any) -> Request:
        if self.world.by_ranks(self.rank, peer, isinstance(tag, tuple), size):
            self.do_compute(size / self.world.job["codec"]["compress"])
        return self.world.meet(0, self.rank, peer, tag, size)

    def _recv(self, peer: int, size: float, tag: Any) -> Request:
        request = self.world.meet(1, peer, self.rank, tag, size)
        if self.world.by_ranks(peer, self.rank, isinstance(tag, tuple), size):
            seconds = size / self.world.job["codec"]["decompress"]
            request.after = functools.partial(self.do_compute, seconds)
        return request


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
        create_actor(f"rank{rank.rank}", platform.home(rank.rank), rank.run)
        if threaded:
            create_actor(f"thread{rank.rank}", platform.desk, rank.in_background)
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
