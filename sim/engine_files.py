# SPDX-License-Identifier: Apache-2.0
"""Engine models: how fast, how large and how hungry the engines of codecs are, as data files.

A file (`engines/*.toml`, or the user's own) describes one place where codecs run:

    title = "..."                     what it is
    kind = "fpga"                     cpu, gpu, dpu, fpga
    device = "Alveo U200"
    source = "..."                    where the numbers come from; a codec may have its own
    latency = "10 us"                 start-up of one message, 0 s if absent
    host_link = "4 GB/s"              between host and engine, unlimited if absent
    contends = true                   it is the device that computes: no overlap with computing
    capacity = { luts = 1182240 }     of the device, for counts of engines

    [codec.zstd]                      any name; recipe: what makes this format here
    recipe = "zstd:1"
    lossless = true
    ratio = 1.84                      of ratio_data; the user's own data replace it
    power = "22 W"                    of the whole device while it works
    compress = { rate = "292.5 MB/s", engines = 16, clock = "275 MHz", luts = 11000 }
    decompress = { rate = "556.81 MB/s", engines = 8 }

A rate is that of one engine, in raw bytes. A file may also carry a paper's tables ([[table]] with
id, title, columns, rows). The report of `wirepress bench --json` is an engine, too.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

from wirepress import units
from wirepress.errors import ParameterError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "engines"
KINDS = ("cpu", "gpu", "dpu", "fpga")
AREAS = ("luts", "ffs", "brams", "urams", "dsps", "alms", "clbs", "slices")


@dataclasses.dataclass(frozen=True)
class Side:
    """Compressing or expanding: `rate` raw bytes a second of one engine (None: not known), how many
    engines there are, clock in Hz, and what one engine takes of each resource."""

    rate: float | None = None
    engines: int = 1
    clock: float | None = None
    where: str = ""
    area: dict[str, float] = dataclasses.field(default_factory=dict)

    @property
    def total(self) -> float | None:
        """Raw bytes a second of all engines."""
        return None if self.rate is None else self.rate * self.engines


@dataclasses.dataclass(frozen=True)
class CodecModel:
    """One codec on one engine. `ratio` is raw size by frame size on `ratio_data`."""

    name: str
    compress: Side
    decompress: Side
    recipe: str = ""
    lossless: bool = True
    ratio: float | None = None
    ratio_data: str = ""
    power: float | None = None
    source: str = ""
    derived: bool = False  # computed from a printed number with an assumption

    @property
    def rate(self) -> float | None:
        """Raw bytes a second that pass both sides: min(sum C, sum D) (FPGA-MPI, section 5.1)."""
        sides = self.compress.total, self.decompress.total
        return None if None in sides else min(s for s in sides if s is not None)

    def with_counts(self, compress: int, decompress: int) -> CodecModel:
        return dataclasses.replace(
            self,
            compress=dataclasses.replace(self.compress, engines=compress),
            decompress=dataclasses.replace(self.decompress, engines=decompress),
        )

    @property
    def joules_per_byte(self) -> float | None:
        """Of raw data, compressed and expanded at full speed by devices of this power."""
        c, d = self.compress.total, self.decompress.total
        return None if self.power is None or not c or not d else self.power * (1 / c + 1 / d)

    def area(self) -> dict[str, float]:
        """Of all engines of both sides."""
        total: dict[str, float] = {}
        for side in (self.compress, self.decompress):
            for key, value in side.area.items():
                total[key] = total.get(key, 0) + value * side.engines
        return total


@dataclasses.dataclass(frozen=True)
class Engine:
    """A place where codecs run; times in seconds, rates in bytes a second."""

    name: str
    title: str
    kind: str
    device: str
    source: str
    codecs: dict[str, CodecModel]
    note: str = ""
    latency: float = 0.0
    host_link: float | None = None
    contends: bool = False
    threads: int = 1  # of a processor, that code together: one engine
    capacity: dict[str, float] = dataclasses.field(default_factory=dict)
    tables: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)

    def codec(self, name: str) -> CodecModel:
        if name not in self.codecs:
            known = ", ".join(self.codecs)
            raise ParameterError(f'engine {self.name} has no codec "{name}"; it has {known}')
        return self.codecs[name]


# ---- reading --------------------------------------------------------------------------------


class _Reader:
    """Takes values out of a parsed file, and says file, line and key of what is wrong."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text

    def fail(self, keys: tuple[str, ...], why: str) -> ParameterError:
        return ParameterError(f"{self.path}{self._line(keys)}: {'.'.join(keys)}: {why}")

    def _line(self, keys: tuple[str, ...]) -> str:
        """ ":12" for the last of `keys` that stands at a line's beginning, in its table."""
        lines, at = self.text.splitlines(), 0
        found = ""
        for n in range(1, len(keys) + 1):
            header = re.compile(
                r'\s*\[\[?\s*"?' + r'"?\."?'.join(map(re.escape, keys[:n])) + r'"?\s*\]'
            )
            plain = re.compile(rf'\s*"?{re.escape(keys[n - 1])}"?\s*=')
            for i in range(at, len(lines)):
                if (
                    i > at
                    and plain.match(lines[i]) is None
                    and re.match(r"\s*\[", lines[i])
                    and found
                ):
                    break
                if header.match(lines[i]) or plain.match(lines[i]):
                    at, found = i, f":{i + 1}"
                    break
        return found

    def check_keys(self, keys: tuple[str, ...], table: Any, known: tuple[str, ...]) -> None:
        if not isinstance(table, dict):
            raise self.fail(keys, f"{table!r} is not a table")
        for key in table:
            if key not in known:
                raise self.fail((*keys, key), f"unknown key; known: {', '.join(known)}")

    def word(self, keys: tuple[str, ...], table: dict[str, Any], default: str | None = "") -> str:
        value = table.get(keys[-1], default)
        if value is None:
            raise self.fail(keys, "is missing")
        if not isinstance(value, str):
            raise self.fail(keys, f"{value!r} is not text")
        return value

    def flag(self, keys: tuple[str, ...], table: dict[str, Any], default: bool) -> bool:
        value = table.get(keys[-1], default)
        if not isinstance(value, bool):
            raise self.fail(keys, f"{value!r} is neither true nor false")
        return value

    def quantity(self, keys: tuple[str, ...], table: dict[str, Any], kind: str) -> float | None:
        if keys[-1] not in table:
            return None
        value = table[keys[-1]]
        try:
            result = units.parse(value, kind)
        except ParameterError as error:
            raise self.fail(keys, str(error)) from None
        if kind in ("rate", "frequency") and not result:
            raise self.fail(keys, f'"{value}" must be more than 0')
        return result

    def number(self, keys: tuple[str, ...], table: dict[str, Any], least: float) -> float | None:
        value = table.get(keys[-1])
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.fail(keys, f"{value!r} is not a number")
        if not least <= value < float("inf"):
            raise self.fail(keys, f"{value!r} must be finite and at least {least:g}")
        return float(value)

    def area(self, keys: tuple[str, ...], table: dict[str, Any]) -> dict[str, float]:
        values = {key: self.number((*keys, key), table, 0) for key in AREAS if key in table}
        return {key: value for key, value in values.items() if value is not None}


_SIDE = ("rate", "engines", "clock", "where", *AREAS)
_CODEC = (
    "recipe", "lossless", "ratio", "ratio_data", "power", "source", "derived", "compress",
    "decompress",
)  # fmt: skip
_ENGINE = (
    "title", "kind", "device", "source", "note", "latency", "host_link", "contends", "capacity",
    "codec", "table",
)  # fmt: skip


def _side(read: _Reader, keys: tuple[str, ...], codec: dict[str, Any]) -> Side:
    if keys[-1] not in codec:
        raise read.fail(keys, "is missing")
    table = codec[keys[-1]]
    read.check_keys(keys, table, _SIDE)
    engines = table.get("engines", 1)
    if isinstance(engines, bool) or not isinstance(engines, int) or engines < 1:
        raise read.fail((*keys, "engines"), f"{engines!r} is not a count of at least 1")
    return Side(
        rate=read.quantity((*keys, "rate"), table, "rate"),
        engines=engines,
        clock=read.quantity((*keys, "clock"), table, "frequency"),
        where=read.word((*keys, "where"), table),
        area=read.area(keys, table),
    )


def _codec(read: _Reader, keys: tuple[str, ...], table: Any, source: str) -> CodecModel:
    read.check_keys(keys, table, _CODEC)
    return CodecModel(
        name=keys[-1],
        compress=_side(read, (*keys, "compress"), table),
        decompress=_side(read, (*keys, "decompress"), table),
        recipe=read.word((*keys, "recipe"), table),
        lossless=read.flag((*keys, "lossless"), table, True),
        ratio=read.number((*keys, "ratio"), table, 1e-3),
        ratio_data=read.word((*keys, "ratio_data"), table),
        power=read.quantity((*keys, "power"), table, "power"),
        source=read.word((*keys, "source"), table, source),
        derived=read.flag((*keys, "derived"), table, False),
    )


def _tables(read: _Reader, tables: Any) -> dict[str, dict[str, Any]]:
    result = {}
    for table in tables:
        read.check_keys(("table",), table, ("id", "title", "columns", "rows"))
        for key in ("id", "title", "columns", "rows"):
            if key not in table:
                raise read.fail(("table", key), "is missing")
        for i, row in enumerate(table["rows"]):
            if len(row) != len(table["columns"]):
                raise read.fail(
                    ("table", "rows"),
                    f'row {i} of table "{table["id"]}" has {len(row)} values for '
                    f"{len(table['columns'])} columns",
                )
        result[str(table["id"])] = table
    return result


def _read_toml(path: Path, text: str) -> Engine:
    read = _Reader(path, text)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{path}: {error}") from None
    except RecursionError:
        raise ParameterError(f"{path}: nested too deeply") from None
    read.check_keys((), content, _ENGINE)
    kind = read.word(("kind",), content, None)
    if kind not in KINDS:
        raise read.fail(("kind",), f'"{kind}" is none of {", ".join(KINDS)}')
    source = read.word(("source",), content, None)
    codecs = content.get("codec", {})
    if not isinstance(codecs, dict) or not codecs:
        raise read.fail(("codec",), "an engine needs at least one [codec.NAME]")
    capacity = content.get("capacity", {})
    read.check_keys(("capacity",), capacity, AREAS)
    return Engine(
        name=path.stem,
        title=read.word(("title",), content, None),
        kind=kind,
        device=read.word(("device",), content),
        source=source,
        codecs={name: _codec(read, ("codec", name), t, source) for name, t in codecs.items()},
        note=read.word(("note",), content),
        latency=read.quantity(("latency",), content, "time") or 0.0,
        host_link=read.quantity(("host_link",), content, "rate"),
        contends=read.flag(("contends",), content, False),
        capacity=read.area(("capacity",), capacity),
        tables=_tables(read, content.get("table", [])),
    )


def from_bench(report: dict[str, Any], name: str) -> Engine:
    """The engine that `wirepress bench --json` measured; its rows are one codec each.

    Where several kernels made one recipe the fastest counts: the one that `auto` would take. Of
    several files ratio and speed are those of all together. Rows of plain libraries, and of
    simulated cores, whose seconds are the simulator's, are left out. Raises ParameterError for a
    report of another kind.
    """
    try:
        machine = report["machine"]
        source = f"{report['command']} ({report['date']})"
        fastest: dict[str, dict[str, dict[str, Any]]] = {}  # by recipe and file
        for row in report["rows"]:
            rate = 1 / sum(1 / _positive(row, f"{side}_gbps") for side in _SIDES)
            files = fastest.setdefault(row["recipe"], {})
            old = files.get(row["file"])
            if str(row["kernel"]).startswith(_NOT_THIS_CPU):
                continue
            if old is None or rate > 1 / sum(1 / old[f"{side}_gbps"] for side in _SIDES):
                files[row["file"]] = row
        codecs = {
            recipe: _measured(recipe, list(files.values()), source)
            for recipe, files in fastest.items()
            if files
        }
        title = f"{report['threads']} threads of {machine['cpu']}"
        source = f"wirepress bench, {report['date']}"
    except (KeyError, TypeError, ValueError) as error:
        raise ParameterError(
            f"{name}: not a report of `wirepress bench --json` ({error})"
        ) from None
    if not codecs:
        raise ParameterError(f"{name}: the report has no rows of the library's kernels")
    return Engine(
        Path(name).stem, title, "cpu", machine["cpu"], source, codecs, contends=True,
        threads=report["threads"],
    )  # fmt: skip


_SIDES = ("compress", "decompress")
_NOT_THIS_CPU = ("plain ", "rtl")  # how names of kernels begin


def _measured(recipe: str, rows: list[dict[str, Any]], source: str) -> CodecModel:
    """The codec on all files of a report, each of which has a row."""
    from wirepress.commands import bench

    raw = sum(_positive(row, "raw_size") for row in rows)
    sides = [
        Side(rate=1e9 * raw / sum(row["raw_size"] / row[f"{side}_gbps"] for row in rows))
        for side in _SIDES
    ]
    return CodecModel(
        name=recipe,
        compress=sides[0],
        decompress=sides[1],
        recipe=recipe,
        lossless=bool(found := bench.codecs_of(recipe)) and all(c.lossless for c in found),
        ratio=raw / sum(row["raw_size"] / _positive(row, "ratio") for row in rows),
        ratio_data=", ".join(row["file"] for row in rows),
        source=source,
    )


def _positive(row: dict[str, Any], key: str) -> float:
    number = float(row[key])
    if not 0 < number < math.inf:
        raise ValueError(f"{key} {number} is no number above 0")
    return number


def load(name: str) -> Engine:
    """An engine by its name (one of `names()`), or by the path of a .toml file or of a report of
    `wirepress bench --json`.

    Raises ParameterError with file, line, key and value where the file is wrong, OSError where it
    cannot be read.
    """
    if "/" not in name and "." not in name:
        path = FOLDER / f"{name}.toml"
        if not path.exists():
            known = ", ".join(names())
            raise ParameterError(f'engine "{name}" is not known; known: {known}, or a FILE.toml')
    else:
        path = Path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ParameterError(f"{path}: not text: {error.reason} at byte {error.start}") from None
    if path.suffix != ".json":
        return _read_toml(path, text)
    try:
        report = json.loads(text)
    except json.JSONDecodeError as error:
        raise ParameterError(f"{path}: {error}") from None
    except RecursionError:
        raise ParameterError(f"{path}: nested too deeply") from None
    return from_bench(report, str(path))


def names() -> list[str]:
    """The engines that come with wirepress."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def choose(text: str) -> tuple[Engine, list[str]]:
    """`ENGINE`, `ENGINE:CODEC` or `ENGINE:CODEC=32c4d` (compress and decompress engines), several
    codecs joined by commas: the engine with those counts, and the names of the codecs that were
    asked for (all if none was). ENGINE is what `load` takes.

    Raises ParameterError and OSError as `load` does, and for unknown codecs and counts.
    """
    name, _, wanted = text.partition(":")
    engine = load(name)
    if not wanted:
        return engine, list(engine.codecs)
    chosen = []
    codecs = dict(engine.codecs)
    # commas may belong to a recipe: fre:m=6,ways=4
    rest = wanted
    while rest:
        match = next(
            (
                m
                for known in sorted(codecs, key=len, reverse=True)
                if (m := re.match(rf"{re.escape(known)}(?:=(\d+)c(\d+)d)?(?:,|\Z)", rest))
            ),
            None,
        )
        if match is None:
            engine.codec(rest.split(",")[0].split("=")[0])
            raise ParameterError(f'"{rest}" is not CODEC or CODEC=32c4d')
        codec = match[0].rstrip(",")
        if match[1]:
            codec = codec[: codec.rindex("=")]
            counts = int(match[1]), int(match[2])
            if 0 in counts:
                raise ParameterError(f'"{match[0]}": an engine of each kind is needed')
            codecs[codec] = codecs[codec].with_counts(*counts)
        chosen.append(codec)
        rest = rest[match.end() :]
    return dataclasses.replace(engine, codecs=codecs), chosen
