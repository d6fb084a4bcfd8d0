# SPDX-License-Identifier: Apache-2.0
"""`wirepress plan`: which codec on which engine pays, how many engines, until which link, and why.

Closed forms only (models.py); nothing is simulated, so the answer is there at once. Ratios come
from the user's data where a sample is given, speeds of this machine's CPU as well.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from wirepress import api, arrays, units
from wirepress.commands import bench, files, show
from wirepress.commands.needs import need
from wirepress.errors import ParameterError
from wirepress.sim import cores, engine_files, models
from wirepress.sim.engine_files import CodecModel, Engine

SAME = 0.01  # what is nearer than this is the same: then fewer engines win
WORTH = 1.01  # a smaller gain is not worth a codec
LOSSLESS = ("lz4", "snappy", "zstd:1", "zstd:3", "zstd:9", "shuffle+zstd:1")
FLOATS = ("bx:m=23", "planes")
LOSSY = ("bf16", "int8", "int4", "bx:m=5", "onebit")


@dataclasses.dataclass(frozen=True)
class Request:
    """The job: bytes that every worker exchanges in a step, and what it computes meanwhile."""

    size: float
    workers: int
    link: float
    latency: float
    scheme: str
    compute: float
    overlap: bool
    bucket: float

    def exchange(self, codec: models.Stage | None) -> float:
        """Seconds of a step's messages when nothing else happens."""
        runs = models.bucket_runs(self.size, self.bucket)
        return sum(n * self._bucket(size, codec) for n, size in runs)

    def step(self, codec: models.Stage | None, contends: bool) -> float:
        """Seconds of a step. An engine that `contends` takes its time from computing."""
        compute = self.compute
        if self.overlap and contends and codec is not None:
            coded = models.SENT[self.scheme](self.workers) * self.size
            compute += coded / codec.compress + coded / codec.decompress
        if not self.overlap:
            return compute + self.exchange(codec)
        runs = models.bucket_runs(self.size, self.bucket)
        return models.overlapped_step(
            [(n, compute * size / self.size, self._bucket(size, codec)) for n, size in runs]
        )

    def _bucket(self, size: float, codec: models.Stage | None) -> float:
        net = models.Network(self.link, self.latency, codec)
        return models.SCHEMES[self.scheme](self.workers, size, net)


@dataclasses.dataclass(frozen=True)
class Option:
    """One codec on one engine with its counts, and what it does for the request."""

    engine: Engine
    codec: CodecModel
    stage: models.Stage
    ratio_data: str
    exchange: float
    step: float
    speed_up: float
    published: CodecModel  # with the counts of the engine file, which power was measured with
    counted: bool = True  # the counts were given; else each link gets its own

    @property
    def label(self) -> str:
        return f"{self.codec.name} on {self.engine.name}"

    @property
    def counts(self) -> str:
        return f"{self.codec.compress.engines}c{self.codec.decompress.engines}d"

    @property
    def full_ratio_until(self) -> float:
        return models.full_ratio_until(self.stage)

    @property
    def break_even(self) -> float:
        return models.break_even(self.stage)

    def needed(self, link: float) -> tuple[int, int]:
        """Engines for the whole ratio at that link."""
        rate = link * self.stage.ratio
        c, d = self.codec.compress.rate, self.codec.decompress.rate
        assert c and d
        return models.engines_for(rate, c), models.engines_for(rate, d)

    def pays_from(self, link: float) -> float:
        """Bytes of the smallest message for which the start-up is worth it; inf: none."""
        saved = 1 / link - 1 / self.stage.through(link)
        return 2 * self.stage.latency / saved if saved > 0 else math.inf

    def as_json(self) -> dict[str, Any]:
        codec = self.codec
        joules = self.published.joules_per_byte
        return {
            "engine": self.engine.name,
            "codec": codec.name,
            "recipe": codec.recipe,
            "lossless": codec.lossless,
            "compress_engines": codec.compress.engines,
            "decompress_engines": codec.decompress.engines,
            "ratio": self.stage.ratio,
            "ratio_data": self.ratio_data,
            "compress_rate": self.stage.compress,
            "decompress_rate": self.stage.decompress,
            "exchange_seconds": self.exchange,
            "step_seconds": self.step,
            "speed_up": self.speed_up,
            "full_ratio_until_link": self.full_ratio_until,
            "break_even_link": self.break_even,
            "area": codec.area(),
            "clock": codec.compress.clock,
            "watts_as_published": codec.power,
            "joules_per_gb": None if joules is None else 1e9 * joules,
            "source": codec.source,
        }


# ---- candidates -----------------------------------------------------------------------------


@dataclasses.dataclass
class Sample:
    """The user's data, and what recipes make of them."""

    name: str
    data: memoryview
    view: arrays.View

    def ratio(self, recipe: str, engine: str = "auto") -> float:
        frame = api.Compressor(recipe, engine=engine).compress_view(self.view)
        return len(self.data) / len(frame)

    @property
    def floats(self) -> bool:
        return arrays.DTYPES[self.view.dtype].startswith(("float", "bfloat"))


class Left(Exception):
    """A codec that cannot be planned with; the text says why."""


def measured_cpu(
    samples: list[Sample], recipes: list[str], args: argparse.Namespace, left: dict[str, str]
) -> Engine:
    """This machine on the samples: ratio and speed are those of all of them together."""
    codecs = {}
    bar = files.bar_of_rows(args)
    for recipe in recipes:
        rows = []
        try:
            for s in samples:
                subject = bench.frame_subject(s.data, s.view, recipe, threads=args.threads)
                rows.append(bench.measure(s.name, s.data, subject, args.seconds))
        except ParameterError as error:
            if args.recipes:
                raise
            left[f"{recipe} on cpu"] = str(error)
            continue
        bar.update(1)
        raw = sum(row.raw_size for row in rows)
        rates = [
            raw / sum(row.raw_size / getattr(row, side) for row in rows) * 1e9
            for side in ("compress_gbps", "decompress_gbps")
        ]
        codecs[recipe] = CodecModel(
            name=recipe,
            compress=engine_files.Side(rates[0]),
            decompress=engine_files.Side(rates[1]),
            recipe=recipe,
            lossless=all(codec.lossless for codec in bench.codecs_of(recipe)),
            ratio=raw / sum(row.frame_size for row in rows),
            ratio_data="the sample",
            source="measured now",
        )
    bar.close()
    threads = "1 thread" if args.threads == 1 else f"{args.threads} threads"
    cpu = bench.machine()["cpu"]
    title = f"{threads} of this machine ({cpu}), measured on the sample"
    return Engine(
        "cpu", title, "cpu", cpu, "measured now", codecs, contends=True, threads=args.threads
    )


def measured_cores(
    text: str, samples: list[Sample], args: argparse.Namespace, left: dict[str, str]
) -> tuple[Engine, bool]:
    """The simulated FPGA cores on the samples, and whether the counts of engines were given."""
    wanted = cores.wanted(text)
    bar = files.bar_of_rows(args)
    try:
        engine = cores.measured(samples, wanted, args.clock, left, lambda: bar.update(1))
    finally:
        bar.close()
    return engine, any(want.counts for want in wanted)


def recipes_for(samples: list[Sample], args: argparse.Namespace) -> list[str]:
    if args.recipes:
        return list(args.recipes)
    floats = any(sample.floats for sample in samples)
    return [*LOSSLESS, *(FLOATS if floats else ()), *(LOSSY if floats and args.lossy else ())]


def ratio_of(
    codec: CodecModel, samples: list[Sample], given: dict[str, float]
) -> tuple[float, str]:
    """The ratio to plan with, and of which data it is."""
    if codec.name in given or codec.recipe in given:
        return given.get(codec.name, given.get(codec.recipe, 0.0)), "given"
    if samples and codec.source != "measured now":
        try:
            ratios = [(len(s.data), s.ratio(codec.recipe)) for s in samples]
        except ParameterError as error:
            raise Left(f"{codec.recipe} cannot code the sample: {error}") from None
        return sum(n for n, _ in ratios) / sum(n / r for n, r in ratios), "the sample"
    if codec.ratio is None:
        raise Left("the engine file has no ratio; give a sample or --ratio")
    return codec.ratio, codec.ratio_data


def _stage(engine: Engine, codec: CodecModel, ratio: float) -> models.Stage:
    c, d = codec.compress.total, codec.decompress.total
    if c is None or d is None:
        raise Left(f"no speed is known ({engine.note or engine.source})")
    return models.Stage(ratio, c, d, engine.latency, engine.host_link or math.inf)


def _fits(engine: Engine, codec: CodecModel, c: int, d: int) -> bool:
    area = codec.with_counts(c, d).area()
    return all(area.get(key, 0) <= limit for key, limit in engine.capacity.items())


def _counts(
    request: Request, engine: Engine, codec: CodecModel, ratio: float, most: int
) -> CodecModel:
    """The codec with the fewest engines whose step is as fast as with any number that fits."""
    c1, d1 = codec.compress.rate, codec.decompress.rate
    if c1 is None or d1 is None:
        return codec
    needed = ratio * request.link
    choices = []
    for c in range(1, min(models.engines_for(needed, c1), most) + 1):
        d = min(models.engines_for(min(c * c1, needed), d1), most)
        if _fits(engine, codec, c, d):
            model = codec.with_counts(c, d)
            choices.append((request.step(_stage(engine, model, ratio), engine.contends), model))
    if not choices:
        return codec
    best = min(seconds for seconds, _ in choices)
    return next(model for seconds, model in choices if seconds <= best * (1 + SAME))


def _engines(
    samples: list[Sample], args: argparse.Namespace, left: dict[str, str]
) -> Iterator[tuple[Engine, list[str], bool]]:
    """(engine, names of codecs, whether the counts were given)."""
    for text in args.engine or ["cpu", "fpga"]:
        if text == "cpu" and samples:
            engine = measured_cpu(samples, recipes_for(samples, args), args, left)
            yield engine, list(engine.codecs), True
        elif cores.is_asked(text):
            engine, counted = measured_cores(text, samples, args, left)
            yield engine, list(engine.codecs), counted
        else:
            engine, names = engine_files.choose(text)
            if args.recipes and ":" not in text:
                names = [n for n in names if {n, engine.codecs[n].recipe} & set(args.recipes)]
            yield engine, names, "=" in text.rpartition(":")[2] or engine.kind != "fpga"


def options(
    request: Request, samples: list[Sample], args: argparse.Namespace, left: dict[str, str]
) -> list[Option]:
    """All that could be done, fastest step first; `left` gets what was left out, and why."""
    found, known = [], []
    if args.threads != 1 and not samples:
        raise files.UsageError("--threads is of measuring on samples: give a file")
    for engine, names, counted in _engines(samples, args, left):
        for name in names:
            codec = engine.codecs[name]
            known.append(codec)
            if not codec.lossless and not args.lossy:
                left[f"{name} on {engine.name}"] = "lossy (--lossy admits it)"
                continue
            published = codec
            try:
                ratio, data = ratio_of(codec, samples, args.ratio)
                if not counted:
                    codec = _counts(request, engine, codec, ratio, args.max_engines)
                stage = _stage(engine, codec, ratio)
            except Left as why:
                left[f"{name} on {engine.name}"] = str(why)
                continue
            found.append(
                _option(request, engine, codec, stage, data, published=published, counted=counted)
            )
    check_ratios(args.ratio, known)
    names = _names_of(known)
    for recipe in args.recipes or []:
        if recipe not in names:
            raise ParameterError(f"--recipes: no engine that was looked at has {recipe}")
    return _sorted(found)


def _names_of(codecs: Iterable[CodecModel]) -> list[str]:
    return list(dict.fromkeys(name for codec in codecs for name in (codec.name, codec.recipe)))


def check_ratios(given: Iterable[str], known: Iterable[CodecModel]) -> None:
    """Refuses --ratio of a codec that is not among those that are planned with."""
    names = _names_of(known)
    for name in given:
        if name not in names:
            raise ParameterError(f"--ratio: no codec {name} here; known: {', '.join(names)}")


def _option(
    request: Request, engine: Engine, codec: CodecModel, stage: models.Stage, data: str,
    *, published: CodecModel, counted: bool,
) -> Option:  # fmt: skip
    seconds = request.step(stage, engine.contends)
    gain = request.step(None, False) / seconds
    exchange = request.exchange(stage)
    return Option(engine, codec, stage, data, exchange, seconds, gain, published, counted)


def _sorted(found: list[Option]) -> list[Option]:
    """Fastest first; among those as fast as the first, the smallest area first."""
    limit = min((option.step for option in found), default=0.0) * (1 + SAME)

    def key(option: Option) -> tuple[bool, float, float]:
        same = option.step <= limit
        return (not same, sum(option.codec.area().values()) if same else 0.0, option.step)

    return sorted(found, key=key)


# ---- the answer in words --------------------------------------------------------------------


def _times(value: float) -> str:
    return f"{value:.2f}x"


def _plural(n: int, word: str) -> str:
    return f"{n} {word}" + ("" if n == 1 else "s")


def _what(request: Request) -> str:
    plain = request.exchange(None)
    moved = models.SENT[request.scheme](request.workers) * request.size
    text = (
        f"{units.size(request.size)} by {request.scheme} among "
        f"{_plural(request.workers, 'worker')}: {units.size(moved)} pass the busiest link, "
        f"{units.seconds(plain)} at {units.link(request.link)}"
    )
    if not request.compute:
        return text + "."
    step = request.step(None, False)
    hidden = ", partly hidden behind computing" if request.overlap else ""
    least = max(request.compute, 1e-300)
    return (
        f"{text}{hidden}. A step takes {units.seconds(step)}, of which computing "
        f"{units.seconds(request.compute)}: no codec can gain more than {_times(step / least)}."
    )


def _counts_of(option: Option) -> str:
    if option.engine.kind != "fpga":
        return ""
    c, d = option.codec.compress.engines, option.codec.decompress.engines
    return f" with {_plural(c, 'compress engine')} and {d} to expand"


def _headline(request: Request, best: Option | None) -> str:
    plain = request.step(None, False)
    what = "a step" if request.compute else "the exchange"
    if best is None:
        return "Send raw: nothing that was looked at can be planned with."
    if best.speed_up >= WORTH:
        return (
            f"Use {best.label}{_counts_of(best)}: {what} takes {units.seconds(best.step)} instead "
            f"of {units.seconds(plain)} ({_times(best.speed_up)})."
        )
    return (
        f"Send raw: {what} takes {units.seconds(plain)}; with the best codec ({best.label}"
        f"{_counts_of(best)}) it takes {units.seconds(best.step)} ({_times(best.speed_up)})."
    )


def _why_best(request: Request, best: Option) -> str:
    stage, link = best.stage, request.link
    of = f" ({best.ratio_data})" if best.ratio_data else ""
    text = f"{best.label}: ratio {stage.ratio:.3g}{of}. "
    wanted = stage.ratio * link
    if stage.ratio <= 1:
        return text + "It does not make these data smaller."
    need = f"To fill {units.link(link)} with it, {units.rate(wanted)} of raw data must be coded; "
    if stage.rate >= wanted * (1 - SAME):
        return text + need + f"the engines do {units.rate(stage.rate)}: the link limits."
    slow = {
        stage.compress: "compressing",
        stage.decompress: "expanding",
        stage.host_link: "the way to the engine",
    }[stage.rate]
    c, d = best.needed(link)
    more = f"{c} to compress and {d} to expand"
    if best.engine.kind == "cpu":
        n = best.engine.threads
        more = f"{c * n} cores to compress and {d * n} to expand"
    return (
        text + need + f"{slow} does {units.rate(stage.rate)} and limits. Messages go "
        f"{_times(models.gain(stage, link))} as fast as raw; {more} would give the whole ratio."
    )


def _limits(request: Request, best: Option) -> str:
    if best.stage.ratio <= 1:
        return "Break-even: none; send these data raw at every link rate."
    text = (
        f"Break-even: whole ratio up to {units.link(best.full_ratio_until)}, a gain up to "
        f"{units.link(best.break_even)}; on faster links send raw"
    )
    text += " or take more engines" if best.engine.kind == "fpga" else " or use more cores"
    pays = best.pays_from(request.link)
    if 0 < pays < math.inf:
        text += f". Messages below {units.size(pays)} go raw: starting the engine costs more"
    return text + "."


def _cost(best: Option) -> str | None:
    codec, published, parts = best.codec, best.published, []
    for key, value in codec.area().items():
        limit = best.engine.capacity.get(key)
        share = f" ({value / limit:.0%})" if limit else ""
        parts.append(f"{value:,.0f} {key.upper() if key != 'slices' else key}{share}")
    if codec.compress.clock:
        parts.append(f"a clock of {codec.compress.clock / 1e6:.0f} MHz")
    if published.power:
        of = published.compress.engines, published.decompress.engines
        with_counts = f" (published for {of[0]}c{of[1]}d)" if best.engine.kind == "fpga" else ""
        parts.append(f"{published.power:g} W{with_counts}")
    if joules := published.joules_per_byte:
        parts.append(f"{1e9 * joules:.3g} J per GB compressed and expanded")
    where = f" of {best.engine.device}" if best.engine.device and codec.area() else ""
    return f"It takes{where}: {', '.join(parts)}." if parts else None


def _others(found: list[Option]) -> list[str]:
    lines = []
    best = found[0]
    for option in found[1:]:
        if option.step <= best.step * (1 + SAME):
            lines.append(f"{option.label} ({option.counts}) is as fast.")
    slower = [o for o in found if o.speed_up < 1]
    if slower:
        names = ", ".join(f"{o.label} {_times(o.speed_up)}" for o in slower[:6])
        more = f" and {len(slower) - 6} more" if len(slower) > 6 else ""
        lines.append(f"Bypass, because they would cost time: {names}{more}.")
    return lines


def _applies(request: Request, best: Option | None) -> list[str]:
    """Where the closed forms end."""
    lines = []
    if best is not None and best.engine.contends and not request.overlap and request.compute:
        lines.append("The CPU is taken to be free while messages travel (no --overlap).")
    if request.scheme == "recursive-doubling" and request.workers & (request.workers - 1):
        lines.append(f"{request.workers} is no power of two: two messages more are counted.")
    lines.append(
        "Model: every worker has a link of its own through a network that is never the bottleneck, "
        "all start together, adding costs nothing; `wirepress simulate` is for the rest."
    )
    return lines


def sentences(request: Request, found: list[Option]) -> list[str]:
    """The answer, first sentence first."""
    best = found[0] if found else None
    lines = [_headline(request, best), _what(request)]
    if best is not None:
        lines += [_why_best(request, best), _limits(request, best)]
        lines += [cost] if (cost := _cost(best)) else []
        lines += _others(found)
    return lines + _applies(request, best)


def _table(request: Request, found: list[Option], limit: int) -> str:
    head = (
        "engine",
        "codec",
        "engines",
        "ratio",
        "codes",
        "exchange",
        "step",
        "gain",
        "pays up to",
    )
    cells = [
        ("raw", "", "", "1", "", units.seconds(request.exchange(None)),
         units.seconds(request.step(None, False)), "1.00x", "")
    ]  # fmt: skip
    for option in found[:limit]:
        cells.append(
            (
                option.engine.name,
                option.codec.name,
                option.counts if option.engine.kind == "fpga" else "",
                f"{option.stage.ratio:.3f}",
                units.rate(option.stage.rate),
                units.seconds(option.exchange),
                units.seconds(option.step),
                _times(option.speed_up),
                units.link(option.break_even) if option.break_even else "never",
            )
        )
    return show.table(cells, head, right=head[3:])


def _at(request: Request, option: Option, most: int) -> Option:
    """The same codec for another request, with as many engines as that takes."""
    engine, codec, ratio = option.engine, option.codec, option.stage.ratio
    if not option.counted:
        codec = _counts(request, engine, option.published, ratio, most)
    stage = _stage(engine, codec, ratio)
    return _option(
        request, engine, codec, stage, option.ratio_data,
        published=option.published, counted=option.counted,
    )  # fmt: skip


def _sweep(
    request: Request, found: list[Option], links: list[float], most: int
) -> list[dict[str, Any]]:
    """The best at other link rates."""
    rows = []
    for link in links:
        there = dataclasses.replace(request, link=link)
        plain = there.step(None, False)
        best = next(iter(_sorted([_at(there, option, most) for option in found])), None)
        if best is not None and best.speed_up < WORTH:
            best = None
        rows.append(
            {
                "link": link,
                "plain_seconds": plain,
                "best": best.label if best else None,
                "compress_engines": best.codec.compress.engines if best else None,
                "decompress_engines": best.codec.decompress.engines if best else None,
                "step_seconds": best.step if best else plain,
                "speed_up": best.speed_up if best else 1.0,
            }
        )
    return rows


def _sweep_table(rows: list[dict[str, Any]]) -> str:
    cells = [
        (units.link(row["link"]), units.seconds(row["plain_seconds"]), row["best"] or "raw",
         f"{row['compress_engines']}c{row['decompress_engines']}d" if row["best"] else "",
         units.seconds(row["step_seconds"]), _times(row["speed_up"]))
        for row in rows
    ]  # fmt: skip
    head = ("link", "raw step", "best", "engines", "step", "gain")
    return show.table(cells, head, right=("link", "raw step", "step", "gain"))


# ---- the command ----------------------------------------------------------------------------


def quantity(kind: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            return units.parse(text, kind)
        except ParameterError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def ratio(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    if not name or not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f'"{text}" is not CODEC=RATIO with a ratio above 0')
    return name, value


def count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a count of at least 1')
    return value


def _request(samples: list[Sample], args: argparse.Namespace) -> Request:
    size = args.size if args.size is not None else float(sum(len(s.data) for s in samples))
    for flag in ("size", "bucket"):
        if getattr(args, flag) == 0:
            raise files.UsageError(f"--{flag} must be more than 0")
    if not size:
        raise files.UsageError("give a sample of the data, or --size: what a worker sends a step")
    if args.workers == 1:
        raise files.UsageError("one worker exchanges nothing: --workers takes 2 and more")
    if not args.link:
        raise files.UsageError("--link must be more than 0")
    if not all(args.sweep):
        raise files.UsageError("a link of --sweep must be more than 0")
    return Request(
        size=size,
        workers=args.workers or 4,
        link=args.link,
        latency=args.latency,
        scheme=args.scheme or "ring",
        compute=args.compute or 0.0,
        overlap=args.overlap,
        bucket=args.bucket or size,
    )


def samples_of(job: Any) -> list[Sample]:
    """The payloads that a trace (trace_reader.Job) has, by element type."""
    from wirepress.sim import trace_reader

    return [_sample(dtype, data) for dtype, data in trace_reader.samples(job)]


def messages_of(job: Any) -> list[tuple[int, Sample, float]]:
    """Every sample of a trace: bytes of its message, the sample, messages that it stands for."""
    from wirepress.sim import trace_reader

    names = trace_reader.sample_types(job)
    return [
        (one.message_size, _sample(names[one.dtype], one.data), one.stands_for / one.message_size)
        for rank in job.ranks
        for one in rank.samples
    ]


def _sample(dtype: str, data: bytes) -> Sample:
    code = arrays.dtype_code(dtype)
    size = arrays.n_bytes(code, (1,))
    data = data[: len(data) // size * size]
    view = arrays.View(memoryview(data), code, 1, (len(data) // size,))
    return Sample(f"{dtype} of the trace", memoryview(data), view)


def _from_trace(args: argparse.Namespace) -> list[Sample]:
    """The trace's samples; what the flags do not say is taken from it: the whole job is a step."""
    need("numpy", "a trace")
    from wirepress.sim import trace_calls, trace_reader

    job = trace_reader.read(args.trace, args.partial)
    found = trace_calls.profile(job)
    words = ", ".join(f"{units.size(size)} in {kind}" for kind, size in found.others.items())
    if found.size < sum(found.others.values()):
        raise files.UsageError(
            f"{args.trace}: most of what a rank sends is in collectives that plan has no form for "
            f"({words}); `wirepress simulate {args.trace}` has them"
        )
    if not found.size:
        raise files.UsageError(f"{args.trace}: its ranks sent nothing that can be planned for")
    if found.left.counts:
        words += ", " * bool(words) + str(found.left)
    if words and not args.quiet:
        print(f"wirepress: not planned for: {words}", file=sys.stderr)
    args.size = found.size if args.size is None else args.size
    args.workers = args.workers or found.workers
    args.scheme = args.scheme or found.scheme
    args.compute = found.compute if args.compute is None else args.compute
    if args.bucket is None:
        args.bucket = found.size / max(round(found.messages), 1)
    return samples_of(job)


def main(args: argparse.Namespace) -> int:
    samples = [Sample(name, *bench.read_sample(name, args)) for name in args.files]
    if args.trace:
        samples += _from_trace(args)
    args.ratio = dict(args.ratio)
    request = _request(samples, args)
    left: dict[str, str] = {}
    found = options(request, samples, args, left)
    sweep = _sweep(request, found, args.sweep, args.max_engines)
    if args.json:
        show.print_json(
            {
                "request": dataclasses.asdict(request),
                "plain": {
                    "exchange_seconds": request.exchange(None),
                    "step_seconds": request.step(None, False),
                },
                "raw_is_best": not found or found[0].speed_up < WORTH,
                "options": [option.as_json() for option in found],
                "left_out": left,
                "sweep": sweep,
                "sentences": sentences(request, found),
            }
        )
        return 0
    for line in sentences(request, found):
        print(line)
    print("\n" + _table(request, found, args.rows))
    if len(found) > args.rows:
        print(f"{len(found) - args.rows} more: --rows {len(found)} shows all")
    if sweep:
        print("\n" + _sweep_table(sweep))
    if left:
        print("\nleft out:")
        reasons: dict[tuple[str, str], list[str]] = {}
        for name, why in left.items():
            codec, _, engine = name.partition(" on ")
            reasons.setdefault((engine, why), []).append(codec)
        for (engine, why), codecs in reasons.items():
            print(f"  {', '.join(codecs)} on {engine}: {why}")
    return 0


def add_parser(parsers: Any) -> None:
    parser = parsers.add(
        "plan",
        "say which codec on which engine pays for a job, how many engines, and why",
        main,
        "  wirepress plan gradients.npy --link 25Gbps --workers 16 --compute 300ms\n"
        "  wirepress plan --size 395MB --compute 190ms --engine fpga --link 25Gbps\n"
        "  wirepress plan --trace wirepress-trace --link 10Gbps\n"
        "  wirepress plan --size 395MB --engine fpga:zstd=16c8d --sweep 10Gbps 25Gbps 100Gbps\n"
        "  wirepress plan halo.raw --dtype float32 --scheme p2p --engine cpu --engine card.toml\n"
        "  wirepress plan --size 2.5GB --bucket 230MB --overlap --engine gcow --lossy --json\n",
    )
    job = parser.add_argument_group("the job")
    job.add_argument("files", nargs="*", metavar="SAMPLE", help="of the data that are sent")
    job.add_argument("--dtype", metavar="NAME", help="what the elements of raw files are")
    job.add_argument(
        "--limit", type=count, default=64, metavar="MIB", help="of each file at most (64)"
    )
    job.add_argument(
        "--size", type=quantity("size"), metavar="SIZE",
        help="that each worker exchanges in a step (default: the sample's)",
    )  # fmt: skip
    job.add_argument(
        "--trace", metavar="DIR",
        help="of `wirepress trace`: its samples, bytes, messages, ranks and compute time, where "
        "nothing else is said; all of the job is one step",
    )  # fmt: skip
    job.add_argument(
        "--partial", action="store_true", help="of ranks that were killed, what is whole"
    )
    job.add_argument("--workers", type=count, metavar="N", help="(4)")
    job.add_argument(
        "--compute", type=quantity("time"), metavar="TIME",
        help="of a step; without it only the exchange is compared",
    )  # fmt: skip
    job.add_argument(
        "--overlap", action="store_true", help="buckets are exchanged while the next is computed"
    )
    job.add_argument(
        "--bucket", type=quantity("size"), metavar="SIZE", help="25MiB: DDP's (default: one)"
    )
    job.add_argument("--scheme", choices=tuple(models.SCHEMES), help="of the exchange (ring)")
    network = parser.add_argument_group("the network")
    network.add_argument(
        "--link", type=quantity("rate"), default=units.parse("10Gbps", "rate"), metavar="RATE",
        help="of each worker, each way (10Gbps)",
    )  # fmt: skip
    network.add_argument(
        "--latency", type=quantity("time"), default=10e-6, metavar="TIME", help="(10us)"
    )
    network.add_argument(
        "--sweep", nargs="+", type=quantity("rate"), default=[], metavar="RATE",
        help="what is best at these link rates; each gets as many engines as it takes, where "
        "ENGINE does not say how many",
    )  # fmt: skip
    codecs = parser.add_argument_group("codecs and engines")
    codecs.add_argument(
        "--engine", action="append", metavar="ENGINE[:CODEC[=32c4d],...]",
        help="one of " + ", ".join(engine_files.names()).replace("%", "%%")
        + ", a FILE.toml, or a report of `wirepress bench --json`; several (cpu, fpga). "
        "cpu is measured on the sample, if there is one; rtl:RECIPE has the clocks that the "
        "simulated FPGA core takes for it",
    )  # fmt: skip
    codecs.add_argument(
        "--clock", type=quantity("frequency"), default=250e6, metavar="HZ", help="of rtl (250MHz)"
    )
    codecs.add_argument(
        "--recipes", nargs="+", metavar="RECIPE", help="only these (cpu: lossless, some levels)"
    )
    codecs.add_argument("--lossy", action="store_true", help="lossy codecs, too")
    codecs.add_argument(
        "--ratio", action="append", type=ratio, default=[], metavar="CODEC=R",
        help="instead of the sample's or the engine file's",
    )  # fmt: skip
    codecs.add_argument("--threads", type=count, default=1, metavar="N", help="of the CPU (1)")
    codecs.add_argument(
        "--max-engines", type=count, default=256, metavar="N", help="of one kind (256)"
    )
    codecs.add_argument(
        "--seconds", type=files.duration, default=0.2, metavar="S",
        help="that each timing may take (0.2)",
    )  # fmt: skip
    parser.add_argument("--rows", type=count, default=12, metavar="N", help="of the table (12)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    parser.add_argument("--json", action="store_true", help="print JSON")
