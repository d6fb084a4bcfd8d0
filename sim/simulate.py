# SPDX-License-Identifier: Apache-2.0
"""`wirepress simulate`: replays a job in SimGrid, with a codec in the path of every message.

replay.py is the simulation; it runs in whichever Python has SimGrid (the system's, on Debian).
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from wirepress import units
from wirepress.commands import files, show
from wirepress.commands.needs import need
from wirepress.errors import ParameterError, WirepressError
from wirepress.sim import calibrate, calls, cores, engine_files, models, plan
from wirepress.sim.engine_files import CodecModel, Engine

_STEPS_DRAWN = 3
SCRIPT = Path(__file__).parent / "replay.py"
ALGORITHMS = ("ring", "flow", "doubling", "halving", "tree", "ps", "hierarchical", "openmpi")
MANY = 16  # ranks; beyond that a ring is simulated as flows
CLOSED_FORM = {
    "ring": "ring",
    "flow": "ring",
    "doubling": "recursive-doubling",
    "halving": "recursive-halving",
    "tree": "tree",
    "ps": "ps",
}


class SimulationError(WirepressError, RuntimeError):
    """SimGrid failed, or is not there."""


@dataclasses.dataclass(frozen=True)
class Transport:
    """What lies between a program and the links: MPI or gloo, the kernel, the processor.

    Attributes:
        eager: bytes on the wire up to which a message does not wait for its receive.
        handshake: seconds that a longer one is announced and answered in. Both sides act upon it
            only while they wait in a call. 0: a message begins when both sides are there.
        buffer: bytes of its own messages to the other side behind which an answer waits at most:
            two ranks of which one answered before it announced take turns up to it.
        socket: bytes of a message that may still wait for the link when its send is done.
        burst: bytes that a link lets pass at once after a pause (a token bucket).
        spread: part of its time by which a message takes longer at most, at random. Two that begin
            together then do not end together, which decides who announces first (see handshake).
        add: bytes a second of adding vectors.
        block: raw bytes that a codec on a processor compresses before any of them leaves.
        chunk: raw bytes of the messages that a coded collective consists of; 0: whole parts.
        slowdown: how much longer a codec takes while all ranks work.
        cores: that the ranks of a machine share when they compute; 0: each has its own.
        machine: ranks of a machine.
    """

    eager: float = 0.0
    handshake: float = 0.0
    buffer: float = 0.0
    socket: float = 0.0
    burst: float = 0.0
    spread: float = 0.0
    add: float = math.inf
    block: float = 0.0
    chunk: float = 0.0
    slowdown: float = 1.0
    cores: int = 0
    machine: int = 1

    def __post_init__(self) -> None:
        values = (self.eager, self.handshake, self.buffer, self.socket, self.burst, self.spread,
                  self.block, self.chunk, self.cores, self.machine - 1)  # fmt: skip
        if min(values) < 0 or self.add <= 0 or self.slowdown <= 0:
            raise ParameterError(f"a transport's numbers must not be negative: {self}")

    @property
    def crowd(self) -> float:
        """Ranks by cores, where there are more ranks."""
        return max(self.machine / self.cores, 1.0) if self.cores else 1.0


@dataclasses.dataclass(frozen=True)
class Tree:
    """A fat tree of switches: `groups[0]` nodes at each of the lowest ones, `groups[1]` of these at
    each of the next, and so on. The links from a switch upwards carry together what comes from
    below, divided by `oversubscribed`; messages spread over them evenly."""

    groups: tuple[int, ...]
    oversubscribed: tuple[float, ...]

    @property
    def nodes(self) -> int:
        return math.prod(self.groups)

    def levels(self, link: float) -> list[tuple[int, float]]:
        """Of each level but the top: nodes below a switch, bytes a second from it upwards."""
        found, nodes, rate = [], 1, link
        for group, over in zip(self.groups[:-1], self.oversubscribed, strict=True):
            nodes, rate = nodes * group, rate * group / over
            found.append((nodes, rate))
        return found


def topology(text: str) -> Tree | None:
    """ "star", "fat-tree:16x8" (8 switches of 16 nodes), "fat-tree:16x8x4:2,1" (twice as much comes
    from below as the lowest switches can send up). Raises ParameterError."""
    if text == "star":
        return None
    match = re.fullmatch(r"fat-tree:(\d+(?:x\d+)+)(?::([\d.]+(?:,[\d.]+)*))?", text)
    if not match:
        raise ParameterError(f"{text!r} is not star, or like fat-tree:16x8 or fat-tree:16x8x4:2,1")
    groups = tuple(int(word) for word in match[1].split("x"))
    over = tuple(float(word) for word in (match[2] or "1").split(","))
    over *= len(groups) - 1 if match[2] is None else 1
    if min(groups) < 1 or min(over) <= 0 or len(over) != len(groups) - 1:
        raise ParameterError(
            f"{text!r}: {len(groups)} levels need groups of 1 or more, and {len(groups) - 1} "
            "oversubscriptions of more than 0"
        )
    return Tree(groups, over)


@dataclasses.dataclass(frozen=True)
class Network:
    """Nodes of `local` ranks; links of `rate` bytes a second a node and way with `latency` seconds
    a message; `fabric`: bytes a second of all messages together, None: never the bottleneck.
    `intra`: bytes a second of each rank and way inside its node. `tree`: of the switches, None: all
    nodes at one. Nodes stand in it in the order of their ranks."""

    rate: float
    latency: float
    fabric: float | None = None
    local: int = 1
    intra: float = 1e12
    intra_latency: float = 0.0
    transport: Transport = Transport()
    tree: Tree | None = None


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a simulation found; lists are by rank, times in seconds."""

    seconds: float
    computing: list[float]
    exchange: list[float]
    messages: int
    bypassed: int
    raw_bytes: float
    wire_bytes: float
    intervals: list[list[tuple[str, float, float]]]
    simgrid: str


@functools.cache
def interpreter() -> str:
    """A Python that has SimGrid: this one, or the system's. Raises SimulationError without."""
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3")):
        try:
            done = subprocess.run([python, "-I", "-c", "import simgrid"], capture_output=True)
        except OSError:
            continue
        if done.returncode == 0:
            return python
    raise SimulationError(
        "SimGrid is not here: apt-get install python3-simgrid (Debian, Ubuntu), or pip install "
        "simgrid"
    )


def bypass_below(stage: models.Stage, network: Network) -> float:
    """Bytes from which a message is faster through the codec; inf: never."""
    saved = 1 / network.rate - 1 / stage.through(network.rate)
    return stage.startup(stage.block, network.rate) / saved if saved > 0 else math.inf


Ratios = tuple[tuple[int, tuple[float, ...]], ...]


@dataclasses.dataclass(frozen=True)
class Job:
    """A simulation. `bypass`: messages that the codec would delay go raw.

    ratios: by least message size in bytes, those of samples of such messages, of which each message
    takes one at random; none: all have the codec's.
    allreduce: "ring", "doubling" (recursive), "tree" (binomial, to rank 0 and back), "ps" (a head
    beside the workers), "hierarchical" (reduce-scatter in the node, rings between the nodes,
    allgather), or "flow": a ring as one flow to the neighbour, for many ranks; the same time where
    all links are alike; "halving" (recursive, to sums of parts, and doubling); "openmpi": which of
    these Open MPI takes for the size and the number of ranks. `one_core`: the
    codec compresses and expands on one core of each node, not with engines of their own. Raises
    ParameterError where the ranks do not fill the nodes.
    """

    workload: calls.Workload
    network: Network
    codec: models.Stage | None = None
    allreduce: str = "ring"
    bypass: bool = True
    intervals: bool = False
    one_core: bool = False
    ratios: Ratios = ()

    def __post_init__(self) -> None:
        n, local = self.workload.n_ranks, self.network.local
        if n % local:
            raise ParameterError(f"{n} ranks do not fill nodes of {local}")
        tree, nodes = self.network.tree, n // local + (self.allreduce == "ps")
        if tree and nodes > tree.nodes:
            raise ParameterError(
                f"a fat tree of {'x'.join(map(str, tree.groups))} holds {tree.nodes} nodes; "
                f"{n} ranks, {local} a node, need {nodes}"
            )
        if local > 1 and self.allreduce in ("flow", "ps"):
            raise ParameterError(f"{self.allreduce} is for nodes of one rank, not of {local}")

    def as_json(self) -> dict[str, Any]:
        """As replay.py takes it."""
        codec, network = self.codec, self.network
        least = 0.0
        if codec is not None and self.bypass:
            least = bypass_below(codec, network)
        stage = None
        if codec is not None and not math.isinf(least):
            stage = {
                "ratio": codec.ratio,
                "ratios": self.ratios,
                "compress": min(codec.compress, codec.host_link, 1e15),
                "decompress": min(codec.decompress, codec.host_link, 1e15),
                "latency": codec.latency,
                "block": min(codec.block, 1e15),
                "chunk": network.transport.chunk,
                "core": 2 / (1 / codec.compress + 1 / codec.decompress) if self.one_core else None,
            }
        n = self.workload.n_ranks
        head = n if self.allreduce == "ps" else None
        transport = network.transport
        return {
            "ranks": n + (head is not None),
            "head": head,
            "link": network.rate,
            "latency": network.latency,
            "fabric": network.fabric,
            "tree": network.tree.levels(network.rate) if network.tree else [],
            "local": network.local,
            "intra": network.intra,
            "intra_latency": network.intra_latency,
            "eager": min(transport.eager, 1e15),
            "handshake": transport.handshake,
            "buffer": min(transport.buffer, 1e15),
            "socket": min(transport.socket, 1e15),
            "cores": transport.cores if transport.crowd > 1 else 0,
            "machine": transport.machine,
            "burst": transport.burst,
            "spread": transport.spread,
            "add": 0 if math.isinf(transport.add) else transport.add,
            "codec": stage,
            "bypass_below": 0 if stage is None else least,
            "programs": [[call.row() for call in p] for p in self.workload.programs],
            "repeat": self.workload.repeat,
            "allreduce": self.allreduce,
            "intervals": self.intervals,
        }


def run(jobs: Sequence[Job]) -> Iterator[Outcome]:
    """Runs the jobs, one after the other; each outcome comes as soon as it is there.

    Raises SimulationError where SimGrid is missing or finds that a job cannot end.
    """
    with tempfile.TemporaryFile("w+") as request, tempfile.TemporaryFile("w+") as errors:
        json.dump([job.as_json() for job in jobs], request)
        request.seek(0)
        process = subprocess.Popen(
            [interpreter(), "-I", str(SCRIPT)],
            stdin=request,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        done = 0
        try:
            assert process.stdout
            for line in process.stdout:
                yield Outcome(**json.loads(line))
                done += 1
        finally:
            if process.poll() is None and done < len(jobs):
                process.terminate()
            process.communicate()
        if done < len(jobs):
            errors.seek(0)
            raise _failure(jobs[done].workload.name, errors.read())


def _failure(name: str, text: str) -> SimulationError:
    if "deadlock: " in text:
        where = text.rpartition("deadlock: ")[2].strip()
        return SimulationError(f"{name}: the ranks wait for each other forever: {where}")
    lines = [line for line in text.splitlines() if line.strip()]
    return SimulationError(f"{name}: SimGrid failed: {lines[-1] if lines else 'it said nothing'}")


# ---- the command ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Row:
    """One simulation: a codec (or none) at a link rate."""

    link: float
    engine: Engine | None
    codec: CodecModel | None
    stage: models.Stage | None
    outcome: Outcome
    plain: float  # seconds without a codec at this link
    closed_form: float | None

    @property
    def label(self) -> str:
        if self.codec is None or self.engine is None:
            return "raw"
        return f"{self.codec.name} on {self.engine.name}"

    @property
    def counts(self) -> str:
        """Of cores in an FPGA, "16c2d"."""
        if self.codec is None or self.engine is None or self.engine.kind != "fpga":
            return ""
        return f"{self.codec.compress.engines}c{self.codec.decompress.engines}d"

    @property
    def name(self) -> str:
        """What tells it from the others."""
        return f"{self.label}, {self.counts}" if self.counts else self.label

    @property
    def speed_up(self) -> float:
        return self.plain / self.outcome.seconds

    def as_json(self, timeline: bool) -> dict[str, Any]:
        codec = self.codec
        return {
            "link": self.link,
            "engine": self.engine and self.engine.name,
            "codec": codec and codec.name,
            "compress_engines": codec and codec.compress.engines,
            "decompress_engines": codec and codec.decompress.engines,
            "ratio": self.stage.ratio if self.stage else 1.0,
            "speed_up": self.speed_up,
            "closed_form_seconds": self.closed_form,
        } | {k: v for k, v in vars(self.outcome).items() if timeline or k != "intervals"}


def _engine(text: str, args: argparse.Namespace) -> tuple[Engine, list[str]]:
    """The processor is measured on the payloads that a trace has, if any."""
    if text == "cpu" and args.samples:
        left: dict[str, str] = {}
        engine = plan.measured_cpu(args.samples, plan.recipes_for(args.samples, args), args, left)
        return engine, list(engine.codecs)
    if cores.is_asked(text):
        left = {}
        engine = plan.measured_cores(text, args.samples, args, left)[0]
        if not engine.codecs:
            raise ParameterError("; ".join(f"{name}: {why}" for name, why in left.items()))
        return engine, list(engine.codecs)
    return engine_files.choose(text)


def _ratios(job: Any, engine: Engine, recipe: str) -> Ratios:
    """Of a trace's samples one by one, each as often as its share of what was sent. A frame that is
    not smaller than its message goes raw."""
    found: dict[int, list[tuple[float, float]]] = {}
    kernels = cores.NAME if engine.name == cores.NAME else "auto"
    for size, sample, weight in plan.messages_of(job):
        least = 1 << max(size, 1).bit_length() - 1
        found.setdefault(least, []).append((max(sample.ratio(recipe, kernels), 1.0), weight))
    made = []
    for least, pairs in sorted(found.items()):
        lightest = min(weight for _, weight in pairs)
        made.append(
            (least, tuple(r for r, w in pairs for _ in range(min(round(w / lightest), 64))))
        )
    return tuple(made)


def _codecs(args: argparse.Namespace) -> list[tuple[Engine, CodecModel, models.Stage]]:
    found, known = [], []
    for text in args.engine or ["cpu" if args.samples else "fpga"]:
        engine, names = _engine(text, args)
        for name in names:
            codec = engine.codecs[name]
            known.append(codec)
            try:
                ratio: float | None = plan.ratio_of(codec, args.samples, args.ratio)[0]
            except plan.Left:
                ratio = None
            c, d = codec.compress.total, codec.decompress.total
            if not codec.lossless and ":" not in text and not args.lossy:
                continue
            if ratio is None:
                raise ParameterError(f"{name} on {engine.name}: no ratio; give --ratio {name}=R")
            if c is None or d is None:
                raise ParameterError(f"{name} on {engine.name}: no speed is known: {engine.note}")
            host = engine.host_link or math.inf
            slower, block = 1.0, 0.0
            if engine.contends:
                slower, block = args.transport.slowdown, args.transport.block
            stage = models.Stage(ratio, c / slower, d / slower, engine.latency, host, block)
            found.append((engine, codec, stage))
    plan.check_ratios(args.ratio, known)
    return found


def with_codec_time(
    workload: calls.Workload, stage: models.Stage, allreduce: str, crowd: float
) -> calls.Workload:
    """Computing takes longer where the codec runs on what computes, and both overlap. `crowd`: how
    much longer it takes in the simulation anyway when all ranks compute."""
    sent = models.SENT[CLOSED_FORM.get(allreduce, "ring")](workload.n_ranks)
    programs = []
    for program in workload.programs:
        total = sum(call.size for call in program if call.op in calls.NONBLOCKING)
        busy = sum(call.seconds for call in program)
        extra = sent * total * (1 / stage.compress + 1 / stage.decompress) / crowd
        programs.append(
            [
                dataclasses.replace(c, seconds=c.seconds * (1 + extra / busy)) if c.seconds else c
                for c in program
            ]
        )
    return dataclasses.replace(workload, programs=programs)


def _request(args: argparse.Namespace, link: float) -> plan.Request:
    return plan.Request(
        args.size, args.ranks, link, args.latency, CLOSED_FORM[args.collective], args.compute,
        args.overlap, args.bucket or args.size,
    )  # fmt: skip


def _closed_form(
    args: argparse.Namespace, link: float, stage: models.Stage | None, contends: bool
) -> float | None:
    """What `plan` says; only for made-up trainings without a fabric."""
    if (
        args.topology
        or args.trace
        or args.fabric
        or args.calibration
        or args.coded != args.collective
    ):
        return None
    if args.local > 1:
        return _hierarchical(args, link, stage) if args.collective == "hierarchical" else None
    if args.collective not in CLOSED_FORM:
        return None
    request = _request(args, link)
    network = Network(link, args.latency)
    if stage is not None and not args.no_bypass and math.isinf(bypass_below(stage, network)):
        stage = None
    return args.iterations * request.step(stage, contends)


def _hierarchical(args: argparse.Namespace, link: float, stage: models.Stage | None) -> float:
    inside = models.Network(args.intra, args.intra_latency)
    between = models.Network(link, args.latency, stage)
    size = args.size

    def exchange(part: float) -> float:
        return models.hierarchical_allreduce(
            args.ranks // args.local, args.local, part, between, inside
        )

    runs = models.bucket_runs(size, args.bucket or size)
    if args.overlap:
        timed = [(n, args.compute * part / size, exchange(part)) for n, part in runs]
        return args.iterations * models.overlapped_step(timed)
    return args.iterations * (args.compute + sum(n * exchange(part) for n, part in runs))


def _jobs(
    workload: calls.Workload, args: argparse.Namespace, links: list[float]
) -> Iterator[tuple[Job, Engine | None, CodecModel | None, float | None]]:
    """The simulations, with what the closed form says of each; raw first at each link rate."""
    codecs = _codecs(args)
    given = set(args.ratio)
    ratios = {
        (engine.name, codec.recipe): _ratios(args.job, engine, codec.recipe)
        for engine, codec, _ in codecs
        if args.job and not given & {codec.name, codec.recipe}
    }
    intervals = bool(args.plot or args.timeline)
    for link in links:
        network = Network(
            link, args.latency, args.fabric, args.local, args.intra, args.intra_latency,
            args.transport, args.topology,
        )  # fmt: skip
        raw = Job(workload, network, None, args.collective, intervals=intervals)
        yield raw, None, None, _closed_form(args, link, None, False)
        for engine, codec, stage in codecs:
            job, coded = workload, not math.isinf(bypass_below(stage, network)) or args.no_bypass
            contends = engine.contends and workload.overlaps and coded
            if contends:
                job = with_codec_time(workload, stage, args.coded, args.transport.crowd)
            form = _closed_form(args, link, stage, contends)
            bypass = not args.no_bypass
            core = engine.contends and bool(args.calibration)
            each = ratios.get((engine.name, codec.recipe), ())
            coding = Job(job, network, stage, args.coded, bypass, intervals, core, each)
            yield coding, engine, codec, form


def _rows(workload: calls.Workload, args: argparse.Namespace, links: list[float]) -> list[Row]:
    jobs = list(_jobs(workload, args, links))
    rows, plain = [], 0.0
    bar = files.bar_of_rows(args)
    outcomes = run([job for job, *_ in jobs])
    for (job, engine, codec, form), outcome in zip(jobs, outcomes, strict=True):
        plain = outcome.seconds if codec is None else plain
        rows.append(Row(job.network.rate, engine, codec, job.codec, outcome, plain, form))
        bar.update(1)
    bar.close()
    return rows


def _table(rows: list[Row]) -> str:
    head = ("link", "codec", "engines", "seconds", "gain", "computing", "waiting", "on the wire",
            "raw sent", "closed form")  # fmt: skip
    cells = []
    for row in rows:
        out, codec = row.outcome, row.codec
        computing = sum(out.computing) / len(out.computing)
        raw = f"{out.bypassed / out.messages:.0%}" if out.messages else "-"
        cells.append(
            (
                units.link(row.link),
                row.label,
                row.counts,
                f"{out.seconds:,.4g}" if out.seconds < 1e4 else f"{out.seconds:,.2f}",
                f"{row.speed_up:.3f}x",
                f"{computing / out.seconds:.0%}",
                f"{1 - computing / out.seconds:.0%}",
                units.size(out.wire_bytes),
                raw if codec else "",
                "" if row.closed_form is None else f"{row.closed_form / out.seconds - 1:+.2%}",
            )
        )
    return show.table(cells, head, right=("link", *head[3:]))


def _words(rows: list[Row]) -> Iterator[str]:
    for link in dict.fromkeys(row.link for row in rows):
        here = [row for row in rows if row.link == link]
        best = min(here, key=lambda row: row.outcome.seconds)
        if best.codec is None or best.speed_up < plan.WORTH:
            yield f"{units.link(link)}: send raw."
        else:
            yield f"{units.link(link)}: {best.name} is {best.speed_up:.2f}x as fast as raw."


def _draw(rows: list[Row], path: str, title: str, iterations: int) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    links = list(dict.fromkeys(row.link for row in rows))
    count = 1 if len(links) > 1 else len(rows)
    figure = Figure(figsize=(9, 4.5 if count == 1 else 1 + 1.3 * count), layout="constrained")
    FigureCanvasAgg(figure)
    if len(links) > 1:
        draw_sweep(figure, rows, links)
    else:
        until = rows[0].outcome.seconds * min(_STEPS_DRAWN, iterations) / iterations
        draw_timelines(figure, [(row.name, row.outcome) for row in rows], until=until)
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, format=Path(path).suffix.lstrip(".") or "png", dpi=150)


def draw_sweep(figure: Any, rows: list[Row], links: list[float]) -> None:
    """Speed-up by link rate."""
    axes = figure.subplots()
    for label in dict.fromkeys(row.name for row in rows):
        points = [(8 * r.link / 1e9, r.speed_up) for r in rows if r.name == label]
        raw = label == "raw"
        axes.plot(*zip(*points, strict=True), "-" if raw else "o-", label=label,
                  color="0.4" if raw else None, linewidth=1 if raw else 1.8)  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks([8 * link / 1e9 for link in links], [f"{8 * link / 1e9:g}" for link in links])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("link, Gb/s")
    axes.set_ylabel("speed-up")
    axes.grid(color="0.92")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def draw_timelines(
    figure: Any, outcomes: list[tuple[str, Outcome]], n_ranks: int = 8, until: float | None = None
) -> None:
    """When which rank computed and exchanged, one panel an outcome, all on one scale. `until`: of
    the first so many seconds; None: of all."""
    panels = figure.subplots(len(outcomes), 1, sharex=True, squeeze=False)[:, 0]
    end = until or max(out.seconds for _, out in outcomes)
    for axes, (label, out) in zip(panels, outcomes, strict=True):
        for rank, intervals in enumerate(out.intervals[:n_ranks]):
            for name, colour in (("compute", "tab:blue"), (None, "tab:orange")):
                spans = [
                    (begin, stop - begin)
                    for kind, begin, stop in intervals
                    if begin < end and (kind == "compute") == (name == "compute")
                ]
                axes.broken_barh(spans, (rank - 0.4, 0.8), color=colour)
        axes.set_yticks(range(min(len(out.intervals), n_ranks)))
        axes.invert_yaxis()
        axes.set_ylabel("rank")
        axes.set_title(f"{label}: {out.seconds:,.4g} s in all", loc="left", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlim(0, end)
    panels[-1].set_xlabel("seconds (blue: computing, orange: exchange)")


def _is_own_trace(name: str) -> bool:
    path = Path(name)
    return path.suffix == ".wpt" or any(path.glob("*.wpt"))


def _time_independent(args: argparse.Namespace) -> calls.Workload:
    return calls.read_ti(args.trace, args.flops or calls.SPEED)


def _traced(args: argparse.Namespace) -> calls.Workload:
    need("numpy", "a trace")
    from wirepress.sim import trace_calls, trace_reader

    job = trace_reader.read(args.trace, args.partial)
    args.samples = plan.samples_of(job)
    args.job = job
    args.traced_seconds = job.seconds
    workload, left = trace_calls.workload(job, args.eager)
    if left.counts and not args.quiet:
        print(f"wirepress: not simulated: {left}", file=sys.stderr)
    return workload


def _workload(args: argparse.Namespace) -> calls.Workload:
    if args.trace:
        if args.overlap:
            raise files.UsageError("--overlap is for made-up trainings; a trace says what overlaps")
        for flag in ("ranks", "size", "bucket", "compute"):
            if getattr(args, flag) is not None:
                raise files.UsageError(f"--{flag} is for made-up trainings; a trace says it")
        is_own = _is_own_trace(args.trace)
        if is_own and args.flops is not None:
            raise files.UsageError("--flops is for time-independent traces; this one has seconds")
        workload = _traced(args) if is_own else _time_independent(args)
        return dataclasses.replace(workload, repeat=args.iterations)
    if args.size is None or not args.ranks:
        raise files.UsageError("give a folder of traces, or --ranks and --size of a training")
    if args.partial or args.flops is not None:
        raise files.UsageError(f"--{'partial' if args.partial else 'flops'} is for traces")
    args.compute = args.compute or 0.0
    for flag in ("size", "bucket"):
        if getattr(args, flag) == 0:
            raise files.UsageError(f"--{flag} must be more than 0")
    bucket = args.bucket or args.size
    return calls.training(
        args.ranks, args.size, args.compute, bucket, args.overlap, args.iterations
    )


def _topology(text: str) -> Tree | None:
    try:
        return topology(text)
    except ParameterError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _algorithms(text: str) -> list[str]:
    names = text.split(",")
    if len(names) > 2 or not set(names) <= set(ALGORITHMS):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not one, or RAW,CODED, of {', '.join(ALGORITHMS)}"
        )
    return names


def transport_of(measured: calibrate.Calibration) -> Transport:
    return Transport(
        measured.eager, measured.handshake, measured.buffer, measured.socket, measured.burst,
        measured.spread, measured.add, calibrate.BLOCK, calibrate.CHUNK, measured.slowdown,
        measured.cores, measured.machine,
    )  # fmt: skip


def _apply_calibration(args: argparse.Namespace) -> None:
    """What was measured stands for what is not given."""
    args.transport, rate, latency, eager = Transport(), None, None, None
    args.mpi = ""
    if args.calibration:
        measured = calibrate.read(args.calibration)
        args.mpi = measured.transport
        if measured.rate is None and args.link is None and not args.sweep:
            raise files.UsageError(
                f"{args.calibration} is of one host without a network: give --link or --sweep"
            )
        args.transport = transport_of(measured)
        if args.eager is not None:
            args.transport = dataclasses.replace(args.transport, eager=args.eager)
        rate, latency, eager = measured.rate, measured.latency, measured.eager
        if args.fabric is None and args.link is None and not args.sweep and not args.topology:
            args.fabric = measured.fabric
    default = (rate or units.parse("10Gbps", "rate"), latency or 10e-6, eager or float(64 << 10))
    for name, value in zip(("link", "latency", "eager"), default, strict=True):
        if getattr(args, name) is None:
            setattr(args, name, value)


def _usual_collective(n_ranks: int, args: argparse.Namespace) -> list[str]:
    """Raw, and with a codec."""
    if args.local > 1:
        return ["hierarchical"]
    if n_ranks > MANY:
        return ["flow"]
    return ["openmpi", "ring"] if args.mpi.startswith("Open MPI") else ["ring"]


def main(args: argparse.Namespace) -> int:
    if args.plot:
        need("matplotlib", "--plot")
    if args.timeline and not args.json:
        raise files.UsageError("--timeline goes with --json")
    args.ratio = dict(args.ratio)
    args.samples, args.job, args.traced_seconds = [], None, None
    _apply_calibration(args)
    workload = _workload(args)
    if args.collective is None:
        args.collective = _usual_collective(workload.n_ranks, args)
    args.collective, args.coded = args.collective[0], args.collective[-1]
    if args.topology and args.fabric:
        raise files.UsageError("--topology says what --fabric would: give one of them")
    links = args.sweep or [args.link]
    if not all([*links, args.intra]):
        raise files.UsageError("a link must be faster than 0")
    rows = _rows(workload, args, links)
    if not all(row.outcome.seconds for row in rows):
        raise files.UsageError(f"{workload.name} takes no time: it sends and computes nothing")
    if args.plot:
        title = f"{workload.name}, {workload.n_ranks} ranks, {args.collective}"
        _draw(rows, args.plot, title, workload.repeat)
    if args.json:
        from wirepress.commands import bench

        body = {"workload": workload.name, "ranks": workload.n_ranks, "iterations": workload.repeat}
        body |= {"collective": args.collective, "latency": args.latency, "fabric": args.fabric}
        body["topology"] = args.topology and dataclasses.asdict(args.topology)
        body["calibration"] = args.calibration
        body["traced_seconds"] = args.traced_seconds
        body["rows"] = [row.as_json(args.timeline) for row in rows]
        show.print_json(bench.provenance() | body)
        return 0
    print(_table(rows))
    print()
    if args.traced_seconds is not None:
        print(f"As it was traced: {units.seconds(args.traced_seconds)}.")
    for line in _words(rows):
        print(line)
    return 0


def add_parser(parsers: Any) -> None:
    parser = parsers.add(
        "simulate",
        "replay a job in SimGrid with a codec in the path of its messages",
        main,
        "  wirepress simulate --ranks 16 --size 395MB --bucket 25MiB --compute 190ms --overlap\n"
        "  wirepress simulate --ranks 4 --size 395MB --engine fpga:lz4=32c4d,zstd \\\n"
        "      --compute 72ms --sweep 10Gbps 25Gbps 100Gbps --plot gain.png\n"
        "  wirepress simulate traces/ --engine here.json --ratio lz4=1.5 --link 1Gbps\n"
        "  wirepress simulate wirepress-trace --link 1Gbps     what `wirepress trace` recorded\n"
        "  wirepress simulate wirepress-trace --calibration here.json    of `wirepress calibrate`\n"
        "  wirepress simulate --ranks 1024 --size 100MB --compute 300ms --collective flow\n",
    )
    job = parser.add_argument_group("the job")
    job.add_argument(
        "trace", nargs="?", metavar="TRACES",
        help="folder of `wirepress trace`, or of SimGrid's time-independent traces; without it a "
        "training is made up",
    )  # fmt: skip
    job.add_argument(
        "--partial", action="store_true", help="of ranks that were killed, what is whole"
    )
    job.add_argument(
        "--eager", type=plan.quantity("size"), metavar="SIZE",
        help="sends of a trace up to it do not wait for their receives (64KiB)",
    )  # fmt: skip
    job.add_argument(
        "--flops", type=functools.partial(files.real, "operations a second", above=True),
        metavar="N", help="a second, of traces (1e9)",
    )  # fmt: skip
    job.add_argument("--ranks", type=plan.count, metavar="N", help="of the training")
    job.add_argument(
        "--size", type=plan.quantity("size"), metavar="SIZE", help="of its Allreduce a step"
    )
    job.add_argument("--bucket", type=plan.quantity("size"), metavar="SIZE", help="(one)")
    job.add_argument("--compute", type=plan.quantity("time"), metavar="TIME", help="of a step (0s)")
    job.add_argument(
        "--overlap", action="store_true", help="buckets travel while the next is computed"
    )
    job.add_argument(
        "--iterations", type=plan.count, default=1, metavar="N", help="steps, or times a trace (1)"
    )
    job.add_argument(
        "--collective", type=_algorithms, metavar="HOW",
        help=f"how Allreduce goes: {', '.join(ALGORITHMS)} (ring; over {MANY} ranks flow: the ring "
        "as one flow a rank; calibrated with Open MPI openmpi,ring); two, as in halving,ring: "
        "raw, and with a codec",
    )  # fmt: skip
    network = parser.add_argument_group("the network")
    network.add_argument(
        "--calibration", metavar="FILE",
        help="of `wirepress calibrate`: link, latency and fabric, unless given, how messages of "
        "MPI or gloo wait for one another, and how fast vectors are added",
    )  # fmt: skip
    network.add_argument(
        "--link", type=plan.quantity("rate"), metavar="RATE",
        help="of each rank, each way (10Gbps)",
    )  # fmt: skip
    network.add_argument("--latency", type=plan.quantity("time"), metavar="TIME", help="(10us)")
    network.add_argument(
        "--fabric", type=plan.quantity("rate"), metavar="RATE",
        help="of all messages together (default: never the bottleneck)",
    )  # fmt: skip
    network.add_argument(
        "--topology", type=_topology, metavar="HOW",
        help="star, or fat-tree:16x8 (8 switches of 16 nodes), fat-tree:16x8x4:2,1 (and how many "
        "times more comes from below than each level can send up) (star)",
    )  # fmt: skip
    network.add_argument(
        "--local", type=plan.count, default=1, metavar="N", help="ranks that share a link (1)"
    )
    network.add_argument(
        "--intra", type=plan.quantity("rate"), default=units.parse("75GB/s", "rate"),
        metavar="RATE", help="of a rank inside its node, each way (75GB/s)",
    )  # fmt: skip
    network.add_argument(
        "--intra-latency", type=plan.quantity("time"), default=5e-6, metavar="TIME", help="(5us)"
    )
    network.add_argument(
        "--sweep", nargs="+", type=plan.quantity("rate"), default=[], metavar="RATE",
        help="these link rates instead of --link",
    )  # fmt: skip
    codecs = parser.add_argument_group("codecs and engines")
    codecs.add_argument(
        "--engine", action="append", metavar="ENGINE[:CODEC[=32c4d],...]",
        help="one of " + ", ".join(engine_files.names()) + ", a FILE.toml, or a report of "
        "`wirepress bench --json`; several (fpga; of a trace with samples: cpu, which is measured "
        "on them). rtl:RECIPE has the clocks that the simulated FPGA core takes for the samples",
    )  # fmt: skip
    codecs.add_argument(
        "--clock", type=plan.quantity("frequency"), default=250e6, metavar="HZ",
        help="of rtl (250MHz)",
    )  # fmt: skip
    codecs.add_argument(
        "--recipes", nargs="+", metavar="RECIPE", help="only these are measured on samples"
    )
    codecs.add_argument("--threads", type=plan.count, default=1, metavar="N", help="of the CPU (1)")
    codecs.add_argument(
        "--seconds", type=files.duration, default=0.2, metavar="S",
        help="that each timing may take (0.2)",
    )  # fmt: skip
    codecs.add_argument(
        "--ratio", action="append", type=plan.ratio, default=[], metavar="CODEC=R",
        help="instead of the engine file's",
    )  # fmt: skip
    codecs.add_argument(
        "--lossy", action="store_true", help="an engine's lossy codecs, too, without naming them"
    )
    codecs.add_argument(
        "--no-bypass", action="store_true", help="code every message, also where it costs time"
    )
    parser.add_argument(
        "--plot", metavar="FILE", help="draw the sweep, or when which rank computed (.png, .svg)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--timeline", action="store_true",
        help="with --json: also when each rank computed and exchanged, for `wirepress report`",
    )  # fmt: skip
