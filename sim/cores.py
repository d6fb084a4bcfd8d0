# SPDX-License-Identifier: Apache-2.0
"""The FPGA cores of rtl/ as an engine: their clocks are counted, in simulation, on the user's data.

`rtl:lz4` in `wirepress plan` and `wirepress simulate` takes as many cycles as these bytes take, and
has the ratio that the core reaches, where an engine file has those of somebody else's data.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from typing import Protocol

from wirepress import api, arrays
from wirepress.commands import bench
from wirepress.errors import ParameterError, UnsupportedError
from wirepress.sim.engine_files import CodecModel, Engine, Side

NAME = "rtl"
WIDEST = 64  # bytes that a core takes in one clock at most


class Sample(Protocol):
    """Data that are sent."""

    @property
    def name(self) -> str: ...
    @property
    def data(self) -> memoryview: ...
    @property
    def view(self) -> arrays.View: ...


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What stands behind `rtl:`; no counts: as many engines as pay."""

    recipe: str
    counts: tuple[int, int] | None = None


@dataclasses.dataclass
class _Sums:
    raw: int = 0
    frame: int = 0
    compress: int = 0  # clocks
    decompress: int = 0


class NoCore(Exception):
    """A recipe that the cores do not code; the text says why."""


def is_asked(text: str) -> bool:
    """Whether this value of --engine names the cores."""
    return text == NAME or text.startswith(NAME + ":")


def wanted(text: str) -> list[Wanted]:
    """`rtl` (every lossless codec with a core), `rtl:RECIPE` or `rtl:RECIPE=16c8d`."""
    recipe = text.partition(":")[2]
    if not recipe:
        return [Wanted(codec.name) for codec in api.codecs() if codec.lossless and _has_core(codec)]
    counts = re.fullmatch(r"(.+)=(\d+)c(\d+)d", recipe)
    if counts is None:
        return [Wanted(recipe)]
    pair = int(counts[2]), int(counts[3])
    if 0 in pair:
        raise ParameterError(f'"{text}": an engine of each kind is needed')
    return [Wanted(counts[1], pair)]


def _has_core(codec: api.Codec) -> bool:
    return any(kernel.engine == NAME and kernel.usable for kernel in codec.kernels)


def measured(
    samples: Iterable[Sample], asked: Iterable[Wanted], clock: float, left: dict[str, str],
    done: Callable[[], object] = lambda: None,
) -> Engine:  # fmt: skip
    """The cores on these samples, at `clock` Hz; `left` gets the recipes that no core codes, and
    why. `done` is called after each recipe.

    Raises:
        ParameterError: this build has no simulated cores, or a recipe is unknown.
    """
    codecs = {}
    if not clock:
        raise ParameterError("--clock must be more than 0")
    samples = list(samples)
    if not samples:
        raise ParameterError(
            f"engine {NAME} counts clocks on data: give a sample, or a trace with samples"
        )
    for want in asked:
        try:
            codecs[want.recipe] = _model(want, _sums(samples, want.recipe), clock)
        except NoCore as why:
            left[f"{want.recipe} on {NAME}"] = str(why)
        done()
    title = f"FPGA cores (rtl/), simulated on the sample, at {clock / 1e6:g} MHz"
    return Engine(NAME, title, "fpga", "simulated cores", "measured now", codecs)


def _sums(samples: Iterable[Sample], recipe: str) -> _Sums:
    sums = _Sums()
    for sample in samples:
        subject = bench.frame_subject(sample.data, sample.view, recipe, NAME, threads=1)
        clocks = [api.engine_clocks(NAME)]
        try:
            sums.frame += subject.compress()
        except (ParameterError, UnsupportedError) as error:
            raise NoCore(f"it does not take {sample.name}: {error}") from None
        clocks.append(api.engine_clocks(NAME))
        subject.decompress()
        clocks.append(api.engine_clocks(NAME))
        subject.check()
        sums.raw += len(sample.data)
        sums.compress += clocks[1] - clocks[0]
        sums.decompress += clocks[2] - clocks[1]
    for side in ("compress", "decompress"):
        # Blocks that a core does not take go to the processor, whose work has no clocks.
        if getattr(sums, side) < sums.raw / WIDEST:
            raise NoCore(f"no core {side}es these data, or not all of them")
    return sums


def _model(want: Wanted, sums: _Sums, clock: float) -> CodecModel:
    model = CodecModel(
        name=want.recipe,
        compress=Side(clock * sums.raw / sums.compress, clock=clock),
        decompress=Side(clock * sums.raw / sums.decompress, clock=clock),
        recipe=want.recipe,
        lossless=all(codec.lossless for codec in bench.codecs_of(want.recipe)),
        ratio=sums.raw / sums.frame,
        ratio_data="the sample",
        source="measured now",
    )
    return model.with_counts(*want.counts) if want.counts else model
