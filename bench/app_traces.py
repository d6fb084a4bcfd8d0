# SPDX-License-Identifier: Apache-2.0
"""What the programs of apps.py send, by `wirepress trace`, what could be saved of it, and what
`wirepress simulate` makes of the traces.

A record of the trace whose peer is on another host is a message. Samples of payloads (whole
messages, pieces of large ones) are compressed one by one, as messages are. Sizes, ratios and speeds
say by how much each way of going about it shortens the time that the links are busy: a message of
s bytes holds a link of rate L for s / L seconds raw, and in a frame for s / (ratio L) +
compressing + expanding + 4 us; it goes by the shorter. A program gains at most that, since it may
compute meanwhile.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apps
import numpy as np
import results
from app_programs import Program

from wirepress import Compressor
from wirepress.sim import trace_reader

SAMPLE = "24MiB"
COLLECTIVES = ("bcast", "reduce", "allreduce", "gather", "scatter", "alltoall", "barrier", "scan",
               "exscan", "allgather")  # fmt: skip
FRAME_SECONDS = 4e-6
COOKIE = 16
RATES = (0.2, 1.0, 10.0)  # Gb/s
TODAY = 64 << 10
AT_MOST = 12  # samples compressed of each class of messages

BY_TYPE = {
    "float64": ("zeros", "bx:m=52", "lz4:1", "planes", "zstd:1", "shuffle+zstd:1"),
    "float32": ("zeros", "bx:m=23", "lz4:1", "planes", "zstd:1", "shuffle+zstd:1"),
    "bytes": ("zeros", "lz4:1", "zstd:1", "shuffle+zstd:1"),
}
OTHERS = ("zeros", "lz4:1", "zstd:1", "shuffle+zstd:1")
AS_DOUBLES = ("bx:m=52", "planes", "shuffle+lz4:1", "shuffle+zstd:1")
PREDICTED = ("lammps", "espresso", "openfoam")
CODECS = ("shuffle+lz4:1", "zstd:1")


@dataclass(frozen=True)
class Way:
    """A way of going about it."""

    name: str
    least: int = TODAY  # bytes of a message that is looked at
    doubles: bool = False  # bytes are tried as doubles, too
    nonblocking: bool = False  # non-blocking collectives, too
    helper: bool = False  # another core compresses and expands while the link is busy
    together: bool = False  # sends of one Waitall to one host are one message
    free: bool = False  # frames cost no bytes: ratios without header and cookie


WAYS = (
    Way("today: from 64 KiB"),
    Way("from 16 KiB", 16 << 10),
    Way("from 4 KiB", 4 << 10),
    Way("from 1 KiB", 1 << 10),
    Way("from 1 KiB, frames without a header", 1 << 10, free=True),
    Way("from 1 KiB, bytes as doubles too", 1 << 10, doubles=True),
    Way("from 64 KiB, non-blocking collectives", nonblocking=True),
    Way("from 64 KiB, sends of a Waitall together", together=True),
    Way("from 64 KiB, helper thread", helper=True),
    Way("all of these", 1 << 10, True, True, True, True),
)


@dataclass
class Message:
    size: int
    dtype: str
    call: str
    peer: int
    rank: int
    collective: bool


@dataclass
class Code:
    """What a recipe does to messages of one class."""

    ratio: float
    free_ratio: float  # without header and cookie
    seconds: float  # for a byte, both ends


def is_collective(call: str) -> bool:
    name = call.removeprefix("MPI_").removesuffix("_init").lower()
    return any(name.removeprefix("i").startswith(word) or name.startswith(word)
               for word in COLLECTIVES)  # fmt: skip


def messages(job: trace_reader.Job) -> list[Message]:
    """What ranks sent to ranks on other hosts. Of a collective: one message with the rank's own
    bytes, if its communicator spans hosts."""
    found = []
    for rank in job.ranks:
        calls, dtypes = rank.calls, rank.meta["dtypes"]
        here = job.nodes[rank.rank]
        for record in rank.records:
            call = calls[record["call"]]
            comm = rank.comms.get(int(record["comm"]))
            sent = int(record["sent"])
            if (
                comm is None
                or sent == 0
                or record["flags"] & (trace_reader.RECEIVE_HALF | trace_reader.FAILED)
            ):
                continue
            if call.endswith("_init") and not record["flags"] & trace_reader.STARTED:
                continue
            collective = is_collective(call)
            if collective:
                if all(member < 0 or job.nodes[member] == here for member in comm.peers):
                    continue
                peer = -1
            else:
                if call.startswith(("MPI_Wait", "MPI_Test", "MPI_Probe", "MPI_Iprobe", "MPI_Recv")):
                    continue
                at = int(record["peer"])
                peer = comm.peers[at] if 0 <= at < len(comm.peers) else -1
                if peer < 0 or job.nodes[peer] == here:
                    continue
            dtype = dtypes[record["dtype"]]
            if "lltoall" in call:  # a message for every member, one of them the rank itself
                away = [m for m in comm.peers if m < 0 or job.nodes[m] != here]
                block = sent // len(comm.peers)
                found += [Message(block, dtype, call, m, rank.rank, True) for m in away]
            else:
                found.append(Message(sent, dtype, call, peer, rank.rank, collective))
    return found


def size_class(size: int) -> int:
    return max(size, 1).bit_length() - 1


def size_name(n: int) -> str:
    return f"{n >> 20} MiB" if n >= 1 << 20 else f"{n >> 10} KiB" if n >= 1 << 10 else f"{n} B"


# ---- what samples shrink by ----


def _code(recipe: str, dtype: str, data: bytes) -> Code | None:
    element = 1 if dtype == "bytes" else np.dtype(dtype).itemsize
    usable = len(data) // element * element
    if usable == 0:
        return None
    view = data[:usable]
    tool = Compressor(recipe, threads=1, checksum="off")
    kind = None if dtype == "bytes" else dtype
    best, back = 1e9, 1e9
    for _ in range(4):
        start = time.perf_counter()
        frame = tool.compress(view, dtype=kind)
        middle = time.perf_counter()
        tool.decompress(frame, raw=True)
        best = min(best, middle - start)
        back = min(back, time.perf_counter() - middle)
    head = 40  # of a frame with one block, about
    free = max(len(frame) - head, 1)
    return Code(usable / (len(frame) + COOKIE), usable / free, (best + back) / usable)


def codes(job: trace_reader.Job) -> dict[tuple[str, int], dict[str, Code]]:
    """By element type and class of size: what each recipe does to messages like these."""
    samples: dict[tuple[str, int], list[bytes]] = defaultdict(list)
    names = job.ranks[0].meta["dtypes"]
    for rank in job.ranks:
        for sample in rank.samples:
            samples[names[sample.dtype], size_class(sample.message_size)].append(sample.data)
    found: dict[tuple[str, int], dict[str, Code]] = {}
    for (dtype, size), pieces in samples.items():
        step = max(1, len(pieces) // AT_MOST)
        chosen = pieces[::step][:AT_MOST]
        recipes = [(r, dtype) for r in BY_TYPE.get(dtype, OTHERS)]
        if dtype == "bytes":
            recipes += [(r, "float64") for r in AS_DOUBLES]
        of: dict[str, Code] = {}
        for recipe, kind in recipes:
            known = [c for piece in chosen if (c := _code(recipe, kind, piece))]
            if not known:
                continue
            name = recipe if kind == dtype else f"{recipe} of doubles"
            of[name] = Code(
                len(known) / sum(1 / c.ratio for c in known),
                len(known) / sum(1 / c.free_ratio for c in known),
                float(np.median([c.seconds for c in known])),
            )
        found[dtype, size] = of
    return found


# ---- what could be saved ----


def _nearest(
    known: dict[tuple[str, int], dict[str, Code]], dtype: str, size: int
) -> dict[str, Code]:
    near = [key for key in known if key[0] == dtype]
    if not near:
        return {}
    return known[min(near, key=lambda key: abs(key[1] - size))]


def link_seconds(
    sent: list[Message], known: dict[tuple[str, int], dict[str, Code]], way: Way, rate: float
) -> float:
    """For which the links are busy, summed over ranks."""
    total = 0.0
    for (size, dtype, call, collective), n in Counter(
        (m.size, m.dtype, m.call, m.collective) for m in sent
    ).items():
        raw = size / rate
        least = raw
        waits = call in ("MPI_Isend", "MPI_Issend")
        allowed = size >= way.least or (way.together and waits and size >= way.least / 4)
        name = call.removeprefix("MPI_")
        if collective and name.startswith("I") and not way.nonblocking:
            allowed = False
        if allowed:
            for recipe, code in _nearest(known, dtype, size_class(size)).items():
                if recipe.endswith("of doubles") and not way.doubles:
                    continue
                ratio = code.free_ratio if way.free else code.ratio
                if ratio < 1.03:
                    continue
                wire, codec = size / (ratio * rate), code.seconds * size
                time = max(wire, codec) if way.helper else wire + codec
                least = min(least, time + FRAME_SECONDS)
        total += n * least
    return total


def savings(
    sent: list[Message], known: dict[tuple[str, int], dict[str, Code]]
) -> list[dict[str, Any]]:
    rows = []
    for gigabits in RATES:
        rate = gigabits * 1e9 / 8
        raw = sum(m.size for m in sent) / rate
        for way in WAYS:
            busy = link_seconds(sent, known, way, rate)
            rows.append({"gbps": gigabits, "way": way.name, "raw_seconds": round(raw, 4),
                         "seconds": round(busy, 4)})  # fmt: skip
    return rows


def look(name: str, folder: Path) -> dict[str, Any]:
    """What one program sent, and what could be saved."""
    job = trace_reader.read(folder)
    sent = messages(job)
    known = codes(job)
    total = sum(m.size for m in sent)
    by_size: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for m in sent:
        entry = by_size[size_class(m.size)]
        entry[0] += 1
        entry[1] += m.size

    def shares(key: Any) -> dict[str, float]:
        weights: Counter[str] = Counter()
        for m in sent:
            weights[key(m)] += m.size
        return {k: round(v / total, 4) for k, v in weights.most_common(8)}

    neighbours: dict[int, set[int]] = defaultdict(set)
    for m in sent:
        if m.peer >= 0:
            neighbours[m.rank].add(m.peer)
    best: dict[str, dict[str, Any]] = {}
    for (dtype, size), of in sorted(known.items()):
        if of:
            recipe = max(of, key=lambda r: of[r].ratio)
            best[f"{dtype}, {size_name(1 << size)}"] = {
                "recipe": recipe,
                "ratio": round(of[recipe].ratio, 3),
                "gbps": round(8e-9 / of[recipe].seconds, 2),
            }
    return {
        "program": name,
        "messages": len(sent),
        "bytes": total,
        "below_64KiB": round(sum(m.size for m in sent if m.size < TODAY) / max(total, 1), 4),
        "by_size": {size_name(1 << k): v for k, v in sorted(by_size.items())},
        "by_type": shares(lambda m: m.dtype),
        "by_call": shares(lambda m: m.call),
        "neighbours": max((len(n) for n in neighbours.values()), default=0),
        "best": best,
        "savings": savings(sent, known),
    }


# ---- the page ----


def sent_table(found: list[dict[str, Any]]) -> str:
    lines = [
        "| program | messages | MB | below 64 KiB | sizes that carry most bytes | types | calls |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in found:
        sizes = sorted(one["by_size"].items(), key=lambda item: -item[1][1])[:3]
        words = ", ".join(f"{k} {100 * v[1] / one['bytes']:.0f} %" for k, v in sizes)
        lines.append(
            f"| {one['program']} | {one['messages']:,} | {one['bytes'] / 1e6:.0f} | "
            f"{100 * one['below_64KiB']:.0f} % | {words} | {_main(one['by_type'])} | "
            f"{_main(one['by_call'])} |"
        )
    return "\n".join(lines)


def _main(shares: dict[str, float]) -> str:
    return ", ".join(
        f"{name} {100 * share:.0f} %" for name, share in shares.items() if share > 0.02
    )


def savings_table(found: list[dict[str, Any]]) -> str:
    names = [one["program"] for one in found]
    lines = [
        "| Gb/s | way | " + " | ".join(names) + " | mean |",
        "|---|---|" + "---|" * (len(names) + 1),
    ]
    for at, row in enumerate(found[0]["savings"]):
        rows = [one["savings"][at] for one in found]
        saved = [1 - r["seconds"] / r["raw_seconds"] for r in rows]
        cells = " | ".join(f"{100 * s:.0f}" for s in saved)
        lines.append(f"| {row['gbps']:g} | {row['way']} | {cells} | {100 * np.mean(saved):.1f} |")
    return "\n".join(lines)


# ---- the command ----

TOOL = str(Path(sys.executable).parent / "wirepress")


def record(options: argparse.Namespace, programs: list[Program]) -> list[dict[str, Any]]:
    """Traces of all programs on two hosts with one rank each, without a limit on the link."""
    path = options.raw / "traces.json"
    rows: dict[str, Any] = {}
    if path.exists():
        rows = {row["program"]: row for row in json.loads(path.read_text())["rows"]}
    progress = apps.Progress(len(programs), options.quiet)
    with apps.place("none") as hosts:
        for program in programs:
            progress.step(f"{program.name}, traced")
            folder = apps.BUILD / "traces" / program.name
            shutil.rmtree(folder, ignore_errors=True)
            apps.run(apps.Cell(program, "none", 1), hosts, _tracing(folder))
            rows[program.name] = look(program.name, folder)
            found = [rows[name] for name in apps.PROGRAMS if name in rows]
            results.write("traces", {"rows": found}, path)
    progress.close()
    return found


def predict(options: argparse.Namespace, programs: list[Program]) -> list[dict[str, Any]]:
    """Traced, calibrated and simulated; then measured: plain and with two codecs."""
    rows: list[dict[str, Any]] = []
    links = [link for link in options.link if apps.LINKS[link].endswith("bit")]
    cells = [apps.Cell(p, link, 1) for link in links for p in programs if p.name in PREDICTED]
    kinds = ("plain", *CODECS)
    progress = apps.Progress(len(cells) * (1 + len(kinds) * options.pairs), options.quiet)
    for link in links:
        with apps.place(link) as hosts:
            for cell in (cell for cell in cells if cell.link == link):
                progress.step(f"{cell}, calibrated, traced and simulated")
                guesses = _simulated(cell, hosts)
                for kind in kinds:
                    measured = []
                    for number in range(1, options.pairs + 1):
                        progress.step(f"{cell}, {kind}, run {number}")
                        words = [] if kind == "plain" else _with_codec(kind)
                        measured.append(apps.run(cell, hosts, words)[0]["seconds"])
                    rows.append({"program": cell.program.name, "link": link, "kind": kind,
                                 "simulated": guesses.get(kind), "measured": measured})  # fmt: skip
                results.write("predictions", {"rows": rows}, options.raw / "predictions.json")
    progress.close()
    return rows


def _with_codec(codec: str) -> list[str]:
    """Every message that a codec can take, as the simulator has it."""
    said = ["--codec", codec, "--threshold", "1KiB", "--contest", "off"]
    return [TOOL, "run", "--quiet", *said, "--"]


def _simulated(cell: apps.Cell, hosts: apps.Hosts | None) -> dict[str, float]:
    """Seconds of the whole run, plain and by codec: what the simulator makes of the calls, and what
    the traced run took before the first call and after the last, without the tracer's own work. A
    run with a codec has the start-up of `wirepress run`, too."""
    calibration = apps.BUILD / f"calibration-{cell.link}.json"
    words = ["calibrate", "-q", "--force", "-o", str(calibration), "--"]
    _tool(hosts, [*words, *apps.launcher(cell, hosts)])
    folder = apps.BUILD / "traces" / f"{cell.program.name}-{cell.link}"
    shutil.rmtree(folder, ignore_errors=True)
    row, _ = apps.run(cell, hosts, _tracing(folder))
    words = ["simulate", str(folder), "--calibration", str(calibration), "-q", "--json"]
    body = json.loads(_tool(None, [*words, "--no-bypass", "--recipes", *CODECS]))
    plain, run, traced = _doing_nothing(cell, hosts)
    outside = row["seconds"] - body["traced_seconds"] - (traced - plain)
    return {
        row["codec"] or "plain": row["seconds"] + outside + (run - plain if row["codec"] else 0)
        for row in body["rows"]
    }


def _doing_nothing(cell: apps.Cell, hosts: apps.Hosts | None) -> list[float]:
    """Seconds of a program that does nothing: plain, by `wirepress run`, by `wirepress trace`."""
    nothing = [*apps.launcher(cell, hosts), sys.executable, "-c", "from mpi4py import MPI"]
    folder = apps.BUILD / "traces" / "nothing"
    ways = ([], [TOOL, "run", "--quiet", "--"], _tracing(folder))
    taken: list[list[float]] = [[], [], []]
    for _ in range(5):
        for way, seconds in zip(ways, taken, strict=True):
            shutil.rmtree(folder, ignore_errors=True)
            begin = time.perf_counter()
            _run_tool(hosts, [*way, *nothing])
            seconds.append(time.perf_counter() - begin)
    return [float(np.median(seconds)) for seconds in taken]


def _tracing(folder: Path) -> list[str]:
    return [TOOL, "trace", "-q", "-o", str(folder), "--sample", SAMPLE, "--"]


def _tool(hosts: apps.Hosts | None, words: list[str]) -> str:
    return _run_tool(hosts, [TOOL, *words])


def _run_tool(hosts: apps.Hosts | None, command: list[str]) -> str:
    done = subprocess.run(
        hosts.on(0, command) if hosts else command,
        capture_output=True,
        text=True,
        env=apps.environment(next(iter(apps.PROGRAMS.values()))),
    )
    if done.returncode:
        raise apps.AppsError(f"{command[1]}: {done.stderr[-1500:]}")
    return done.stdout


def predictions_table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| program | link | | simulated s | measured s | off by |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        measured = float(np.median(row["measured"]))
        guess = row["simulated"]
        off = f"{100 * (guess / measured - 1):+.0f} %" if guess else "not simulated"
        lines.append(
            f"| {row['program']} | {apps.LINK_NAMES[row['link']]} | {row['kind']} | "
            f"{guess or 0:.2f} | {measured:.2f} | {off} |"
        )
    return "\n".join(lines)


def main(options: argparse.Namespace, programs: list[Program]) -> int:
    try:
        if options.predict:
            parts = {"predictions": predictions_table(predict(options, programs))}
        else:
            found = record(options, programs)
            parts = {"sent": sent_table(found), "savings": savings_table(found)}
    except apps.AppsError as error:
        print(f"\napps: {error}", file=sys.stderr)
        return 1
    for name, text in parts.items():
        print(text, end="\n\n")
        if options.raw == apps.FOLDER:
            results.put(apps.PAGE, name, text, apps.NEW_PAGE)
    return 0
