# SPDX-License-Identifier: Apache-2.0
"""`wirepress calibrate`: measures hosts as MPI or gloo uses them, for `wirepress simulate`.

probe.py measures, on the ranks that the given launcher starts; here the points become the numbers
of simulate.Network and simulate.Transport, and a file.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from wirepress import units
from wirepress.commands import bench, files, show
from wirepress.commands.needs import need
from wirepress.errors import ParameterError, WirepressError

KIND = "wirepress calibration"
VERSION = 2
BLOCK = 1 << 20  # bytes of a message that the interposer compresses before any of it leaves
CHUNK = 60 << 10  # raw bytes of the messages of its collectives: option mpi_chunk
SPREAD = 0.02, 0.1
WHOLE = 0.7  # so much of a message in the way of the other direction: all of every message is
NOTHING = 0.15
LIMITED = 0.93  # of a link's rate when all hosts send: below it something else limits
UNEVEN = 2.0
LEAST_BURST = 2048  # bytes


class CalibrationError(WirepressError, RuntimeError):
    """The ranks did not measure."""


@dataclasses.dataclass(frozen=True)
class Calibration:
    """What was measured. Bytes, seconds, bytes a second; None where there was one host only.

    Attributes:
        transport: the MPI, or PyTorch with gloo.
        rate, latency, fabric: as in simulate.Network.
        eager, handshake, buffer, socket, burst, spread, add, slowdown, cores, machine: as in
            simulate.Transport.
        points: the seconds of every message that was timed, by kind and size.
    """

    transport: str
    ranks: int
    hosts: int
    rate: float | None
    latency: float | None
    fabric: float | None
    eager: float
    handshake: float
    buffer: float
    socket: float
    burst: float
    spread: float
    add: float
    slowdown: float
    cores: int
    machine: int
    points: list[dict[str, Any]]


# ---- from points to numbers -----------------------------------------------------------------


def lower(times: list[float]) -> float:
    """The lower quartile: what disturbs a measurement makes it longer."""
    ordered = sorted(times)
    return ordered[(len(ordered) - 1) // 4]


class _Points:
    def __init__(self, points: list[dict[str, Any]]) -> None:
        self.by_kind: dict[str, dict[int, float]] = {}
        for point in points:
            times = self.by_kind.setdefault(point["kind"], {})
            size = int(point["size"])
            # whether messages take turns is luck: the usual case counts; of small ones the best,
            # for a processor that does something else first delays them by more than they take
            of = {"both ways": median, "there and back": min, "after a pause": min}.get(
                point["kind"], lower
            )
            times[size] = min(of(point["seconds"]), times.get(size, math.inf))

    def of(self, kind: str) -> dict[int, float]:
        return dict(sorted(self.by_kind.get(kind, {}).items()))


def fit(found: dict[str, Any]) -> Calibration:
    """Numbers from what probe.py says. Raises ParameterError where times make no sense."""
    points = _Points(found["points"])
    link: dict[str, Any] = {"rate": None, "latency": None, "fabric": None}
    messages = dict.fromkeys(("eager", "handshake", "buffer", "socket", "burst", "spread"), 0.0)
    one = points.of("one way")
    if one:
        (small, t_small), (large, t_large) = [*one.items()][-2:]
        if t_large <= t_small:
            raise ParameterError(
                f"{large:,} bytes took {t_large:g} s, {small:,} bytes {t_small:g} s: the machine "
                "is too busy to be measured"
            )
        rate = (large - small) / (t_large - t_small)
        latency = min(points.of("there and back").values())
        link = {"rate": rate, "latency": latency, "fabric": _fabric(found, points, rate)}
        eager = found.get("eager")
        messages = {
            "eager": math.inf if eager is None else float(eager),
            "handshake": 0.0 if eager is None else 2 * latency,
            "buffer": _buffer(points, rate),
            "socket": _socket(points, rate, latency),
            "burst": _burst(points, rate, latency),
            "spread": _spread(found["points"], large),
        }
    return Calibration(
        transport=found["transport"],
        ranks=found["ranks"],
        hosts=len(found["hosts"]),
        **link,
        **messages,
        add=found["add_together"],
        slowdown=max(found["codec"] / found["codec_together"], 1.0),
        cores=found["cores"],
        machine=found["machine"],
        points=found["points"],
    )


def _fabric(found: dict[str, Any], points: _Points, rate: float) -> float | None:
    n = len(found["hosts"]) if len(found["hosts"]) > 1 else found["ranks"]
    each = [size / seconds for size, seconds in points.of("all at once").items()]
    return n * min(each) if each and min(each) < LIMITED * rate else None


def _buffer(points: _Points, rate: float) -> float:
    """Bytes by which a message that meets another one is later; inf: all of that one."""
    one = points.of("one way")
    shares = []
    for size, seconds in points.of("both ways").items():
        shares.append((seconds - one[size]) * rate / size)
    if not shares or max(shares) < NOTHING:
        return 0.0
    return math.inf if shares[-1] > WHOLE else max(shares[-1], 0.0) * max(points.of("both ways"))


def _socket(points: _Points, rate: float, latency: float) -> float:
    """Bytes that were still to come when the send was done."""
    one = points.of("one way")
    left = [(one[size] - latency - seconds) * rate for size, seconds in
            points.of("until sent").items()]  # fmt: skip
    return max(left[-1], 0.0) if left else 0.0


def _spread(points: list[dict[str, Any]], size: int) -> float:
    """Between the quartiles of a large message's times. Two that begin together never end together:
    SPREAD is the least and the most that is believed."""
    times = sorted(
        next(p["seconds"] for p in points if (p["kind"], p["size"]) == ("one way", size))
    )
    upper = times[3 * (len(times) - 1) // 4]
    return min(max(upper / lower(times) - 1, SPREAD[0]), SPREAD[1])


def _burst(points: _Points, rate: float, latency: float) -> float:
    """The answer takes a latency, too. A bucket smaller than a message shows best by the smallest
    messages, for an error of the rate counts by their size; a larger one lets them pass whole."""
    at_once = {
        size: min(max(size - max(seconds - 2 * latency, 0.0) * rate, 0.0), size)
        for size, seconds in points.of("after a pause").items()
    }
    for size, found in at_once.items():
        if found < 0.75 * size:
            return found if found > LEAST_BURST else 0.0
    return max(at_once.values(), default=0.0)


def uneven(calibration: Calibration) -> list[str]:
    """Large messages whose times differ so much that something else ran."""
    lines = []
    for point in calibration.points:
        times = sorted(point["seconds"])
        if point["size"] >= 1 << 20 and times[len(times) // 2] > UNEVEN * times[0]:
            lines.append(f"{point['kind']}, {units.size(point['size'])}: {units.seconds(times[0])} "
                         f"to {units.seconds(times[-1])}")  # fmt: skip
    return lines


# ---- the file -------------------------------------------------------------------------------

_FIELDS: dict[str, dict[str, str]] = {
    "link": {
        "rate": "bytes_per_second",
        "latency": "latency_seconds",
        "fabric": "fabric_bytes_per_second",
    },
    "messages": {
        "eager": "eager_bytes",
        "handshake": "handshake_seconds",
        "buffer": "buffer_bytes",
        "socket": "socket_bytes",
        "burst": "burst_bytes",
        "spread": "spread",
    },
    "processor": {
        "add": "add_bytes_per_second",
        "slowdown": "codec_slowdown",
        "cores": "cores_of_machine",
        "machine": "ranks_of_machine",
    },
}
_ENDLESS = ("eager", "buffer")  # null: without end
_OPTIONAL = ("rate", "latency", "fabric")  # null: not measured, or no limit
_COUNTS = ("cores", "machine")


def as_json(calibration: Calibration) -> dict[str, Any]:
    body: dict[str, Any] = {
        "kind": KIND,
        "version": VERSION,
        "transport": calibration.transport,
        "ranks": calibration.ranks,
        "hosts": calibration.hosts,
    }
    for part, fields in _FIELDS.items():
        values = {key: getattr(calibration, name) for name, key in fields.items()}
        body[part] = {
            key: None if value is not None and math.isinf(value) else value
            for key, value in values.items()
        }
    return body | {"points": calibration.points}


def read(path: str | Path) -> Calibration:
    """A file that `wirepress calibrate` wrote. Raises ParameterError with what is wrong in it,
    OSError where it cannot be opened."""
    try:
        body = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"{path}: no JSON: {error}") from None
    if not isinstance(body, dict) or body.get("kind") != KIND:
        raise ParameterError(f'{path}: "kind" is not "{KIND}", as `wirepress calibrate` writes it')
    if body.get("version") != VERSION:
        raise ParameterError(
            f"{path}: version {body.get('version')!r}; {VERSION} was expected: calibrate again"
        )
    values: dict[str, Any] = {}
    for part, fields in _FIELDS.items():
        section = body.get(part)
        if not isinstance(section, dict):
            raise ParameterError(f'{path}: "{part}" is missing')
        if unknown := sorted(set(section) - set(fields.values())):
            known = ", ".join(fields.values())
            raise ParameterError(f'{path}: "{part}": unknown {unknown[0]}; known: {known}')
        for name, key in fields.items():
            values[name] = _value(path, part, key, name, section)
    for name, kind in (("transport", str), ("ranks", int), ("hosts", int), ("points", list)):
        if not isinstance(body.get(name), kind):
            raise ParameterError(f'{path}: "{name}" must be a {kind.__name__}')
        values[name] = body[name]
    return Calibration(**values)


def _value(path: str | Path, part: str, key: str, name: str, section: dict[str, Any]) -> Any:
    if key not in section:
        raise ParameterError(f'{path}: "{part}": {key} is missing')
    value = section[key]
    if value is None and name in (*_ENDLESS, *_OPTIONAL):
        return math.inf if name in _ENDLESS else None
    positive = name in ("rate", "fabric", "add", "slowdown", *_COUNTS)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0 or (positive and value == 0):
        what = "more than 0" if positive else "0 or more"
        raise ParameterError(f'{path}: "{part}": {key} is {value!r}; a number, {what}, is due')
    if name in _COUNTS:
        if value != int(value):
            raise ParameterError(f'{path}: "{part}": {key} is {value!r}; a whole number is due')
        return int(value)
    return float(value)


# ---- the command ----------------------------------------------------------------------------


def measure(
    launcher: Sequence[str],
    seconds: float,
    limit: float = 300.0,
    quiet: bool = False,
    environment: dict[str, str] | None = None,
) -> dict[str, Any]:
    """What probe.py says on the ranks that `launcher` starts; none: on this processor alone. Their
    progress goes to stderr, unless `quiet`.

    Raises CalibrationError where the ranks fail or take longer than `limit` seconds."""
    from wirepress.sim import probe

    module = ["-m", probe.__name__, "--seconds", f"{seconds:g}"]
    command = [sys.executable, *module, "--alone"]
    if launcher:
        own = Path(launcher[0]).name == "torchrun" or "torch.distributed.run" in launcher
        command = [*launcher, *([] if own else [sys.executable]), *module]
    stderr = subprocess.PIPE if quiet else None
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment
        )
    except OSError as error:
        raise CalibrationError(f"{command[0]} cannot be started: {error.strerror}") from None
    with process:
        try:
            out, err = process.communicate(timeout=limit)
        except BaseException as error:
            process.terminate()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise CalibrationError(f"{shlex.join(command)}: not done after {limit:g} s") from None
    for line in out.splitlines():
        if line.startswith(probe.MARK):
            found: dict[str, Any] = json.loads(line.removeprefix(probe.MARK))
            return found
    last = [line for line in (out + (err or "")).splitlines() if line.strip()][-8:]
    raise CalibrationError(
        "\n".join([f"{shlex.join(command)}: exit status {process.returncode}", *last])
    )


def _text(calibration: Calibration) -> str:
    c = calibration
    rows = []
    if c.rate is not None and c.latency is not None:
        eager = "of any size" if math.isinf(c.eager) else f"up to {units.size(c.eager)}"
        turns = "do not hinder each other"
        if c.buffer:
            turns = "may take turns"
            turns += "" if math.isinf(c.buffer) else f" for {units.size(c.buffer)}"
        rows += [
            ("link", f"{units.link(c.rate)} of payload ({units.rate(c.rate)})"),
            ("latency", units.seconds(c.latency)),
            ("all hosts at once", "as fast" if c.fabric is None else units.rate(c.fabric)),
            ("sends that wait for nobody", eager),
            ("two hosts that send to each other", turns),
            ("left to send when a large send is done", units.size(c.socket)),
            ("at once after a pause", units.size(c.burst)),
        ]
    rows += [
        ("adding vectors, all ranks at once", units.rate(c.add)),
        ("codecs when all ranks work", f"{c.slowdown:.2f} times as long"),
        ("ranks and cores of a machine", f"{c.machine}, {c.cores}"),
    ]
    return show.table(rows, (f"{c.ranks} ranks, {c.hosts} hosts", c.transport))


def main(args: argparse.Namespace) -> int:
    launcher = args.launcher[1:] if args.launcher[:1] == ["--"] else args.launcher
    if args.output and Path(args.output).exists() and not args.force:
        raise files.UsageError(f"{args.output} is there already; --force replaces it")
    need("numpy", "calibrate")
    found = measure(launcher, args.seconds, args.limit, args.quiet)
    calibration = fit(found)
    body = bench.provenance() | as_json(calibration)
    if args.output:
        Path(args.output).write_text(json.dumps(body, indent=1) + "\n")
    if args.json:
        show.print_json(body)
    else:
        print(_text(calibration))
    for line in uneven(calibration) if not args.quiet else []:
        print(f"wirepress: something else ran meanwhile? {line}", file=sys.stderr)
    return 0


def add_parser(parsers: Any) -> None:
    parser = parsers.add(
        "calibrate",
        "measure hosts as MPI or PyTorch uses them, for `wirepress simulate --calibration`",
        main,
        "  wirepress calibrate -o here.json -- mpirun -n 4 --host a,b,c,d     by mpi4py\n"
        "  wirepress calibrate -o here.json -- torchrun --nproc-per-node 2    by gloo\n"
        "  wirepress calibrate                                     this processor alone\n"
        "  wirepress simulate wirepress-trace --calibration here.json\n",
    )
    parser.add_argument(
        "launcher", nargs=argparse.REMAINDER, metavar="-- LAUNCHER ...",
        help="what starts the ranks, without a program; one rank of each host measures the links",
    )  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FILE", help="write it there (JSON)")
    parser.add_argument("--force", action="store_true", help="replace the file")
    parser.add_argument(
        "--seconds", type=files.duration, default=0.3, metavar="S",
        help="that each of about 20 measurements may take (0.3)",
    )  # fmt: skip
    parser.add_argument(
        "--limit", type=files.duration, default=300.0, metavar="S", help="give up after it (300)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no warnings")
    parser.add_argument("--json", action="store_true", help="print JSON")
