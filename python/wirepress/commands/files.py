# SPDX-License-Identifier: Apache-2.0
"""`wirepress compress` and `decompress`: files and pipes to frames and back.

Bytes stream through constant memory. Of files of tensors each tensor is coded as its type: a plain
.npy file becomes the frame of its array (which remembers dtype and shape, and is made in memory),
others a series of frames (spec/series.md) of at most 16 MiB of data.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import math
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, BinaryIO, NamedTuple

from wirepress import api, arrays
from wirepress.arrays import DEFAULT_RECIPE, fold
from wirepress.commands import npy, paths, tensors
from wirepress.commands.paths import PIPE, UsageError, label, open_input, open_output, write_all
from wirepress.commands.series import Expander, Writer
from wirepress.commands.tensors import Layout, Part, Source
from wirepress.errors import ParameterError

SUFFIX = ".wpr"
SMALLEST = "auto:goal=ratio"
_SMALLEST_BLOCK = "4MiB"
_PIECE = 1 << 20  # bytes read at a time
_FRAME = 16 << 20  # bytes of a tensor in a frame at most
_DELAY = 0.5  # seconds that a file may take before its progress bar appears
_FLOATS = ("float32", "float64", "float16", "bfloat16")


@dataclasses.dataclass
class Group:
    """Tensors of one type that were coded alike."""

    dtype: str
    recipe: str
    lossless: bool
    count: int = 0
    raw_size: int = 0

    def __str__(self) -> str:
        how = "without loss" if self.lossless else "with loss"
        return f"{self.count} x {self.dtype} by {self.recipe} ({how})"


@dataclasses.dataclass
class Result:
    """What was done with one file; one object of --json."""

    input: str
    output: str
    raw_size: int
    frame_size: int
    recipe: str
    dtype: str
    shape: tuple[int, ...] | None
    seconds: float
    tensors: list[Group] | None = None

    @property
    def ratio(self) -> float:
        return self.raw_size / self.frame_size if self.frame_size else 1.0

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"ratio": round(self.ratio, 4)}

    def __str__(self) -> str:
        speed = self.raw_size / self.seconds / 1e6 if self.seconds else 0.0
        tensors = "; tensors: " + ", ".join(map(str, self.tensors)) if self.tensors else ""
        what = "frame" if self.tensors is None else "frames"
        return (
            f"{self.input} -> {self.output}: {self.raw_size:,} raw, {self.frame_size:,} as {what} "
            f"({self.ratio:.3f}x) in {self.seconds:.2f} s, {speed:.0f} MB/s{tensors}"
        )


# ---- progress -------------------------------------------------------------------------------


def _pieces(source: Source, bar: Any) -> Iterator[memoryview]:
    """The source's bytes in one reused buffer, which is filled whole but for the last."""
    piece = memoryview(bytearray(_PIECE))
    size = _PIECE
    while size == _PIECE:
        size = source.fill(piece)
        yield piece[:size]
        bar.update(size)


def progress_bar(name: str, file: BinaryIO, args: argparse.Namespace) -> Any:
    from tqdm import tqdm

    total = None
    with contextlib.suppress(OSError, ValueError):
        total = os.fstat(file.fileno()).st_size or None
    return tqdm(
        total=total,
        desc=os.path.basename(name),
        unit="B",
        unit_scale=True,
        delay=_DELAY,
        leave=False,
        disable=args.quiet or name == PIPE or not sys.stderr.isatty(),
    )


def bar_of_rows(args: argparse.Namespace) -> Any:
    """Counts rows of a table that takes minutes."""
    from tqdm import tqdm

    return tqdm(
        unit=" rows", delay=_DELAY, leave=False, disable=args.quiet or not sys.stderr.isatty()
    )


def whole(least: int) -> Callable[[str], int]:
    """The type of a flag that is a whole number of at least this."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} on")
        return int(text)

    return number


def real(what: str, text: str, *, above: bool = False) -> float:
    """A flag's finite number from 0 on, or `above` 0; `what` it is of in the refusal."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < math.inf or (above and not number):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of {what}")
    return number


def duration(text: str) -> float:
    """The type of a flag that is seconds."""
    return real("seconds", text)


# ---- recipes --------------------------------------------------------------------------------


def settings(args: argparse.Namespace) -> dict[str, str]:
    """The library options among the flags."""
    keys = (option.key for option in api.options())
    found = {key: value for key in keys if (value := getattr(args, key, None)) is not None}
    if getattr(args, "smallest", False):
        asked = found.get("recipe", "auto")
        if asked != "auto" and not asked.startswith("auto:"):
            raise UsageError(f"--smallest chooses codecs itself: leave out -r {asked}")
        found["recipe"] = SMALLEST + ("," + asked[5:] if asked[5:] else "")
        found.setdefault("block_size", _SMALLEST_BLOCK)
    return found


class Plan(NamedTuple):
    """The recipe of a part, and the type and shape that codecs are told."""

    recipe: str
    dtype: str
    shape: tuple[int, ...]
    lossless: bool


class _Recipes:
    """The recipe for elements of each type."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.options = settings(args)
        self._made: dict[str, api.Compressor] = {}
        recipe, origin = api.Compressor(**self.options).option("recipe")
        self.asked = recipe if origin != "default" else ""
        self.plain = recipe if origin == "default" else "zstd:1"
        """What opaque bytes get where the recipe asked for does not suit them."""
        self._is_auto = self.asked == "auto" or self.asked.startswith("auto:")
        self.changes_floats = any(self.is_lossless(self.asked, d) is False for d in _FLOATS)
        self.needs_type = self.changes_floats and not self._is_auto
        """auto changes floats only: what has no type it codes without loss."""

    def compressor(self, recipe: str) -> api.Compressor:
        if recipe not in self._made:
            self._made[recipe] = api.Compressor(**{**self.options, "recipe": recipe})
        return self._made[recipe]

    def is_lossless(self, recipe: str, dtype: str) -> bool | None:
        """Whether elements of this type come back bit for bit; None: it does not take them."""
        if not recipe:
            return None
        try:
            lossless = self.compressor(recipe).lossless(dtype)
        except ParameterError:
            return None
        return lossless or (self._is_auto and recipe == self.asked and dtype not in _FLOATS)

    def require_lossless(self, name: str, why: str) -> None:
        """Raises UsageError where the recipe would change values of unknown type."""
        if self.needs_type:
            raise UsageError(f"{label(name)}: {why}, and {self.asked} changes values")

    def of_stream(self, dtype: str | None) -> str:
        """The recipe for a stream of elements, opaque where dtype is None."""
        return self.asked or (DEFAULT_RECIPE if dtype and dtype != "bytes" else self.plain)

    def of_part(self, part: Part, *, sole: bool) -> Plan:
        """How a part is coded. `sole`: it is what the recipe was asked for.

        A complex number is a pair of floats to a codec that knows none. What is no float, or of a
        type that the recipe does not take, is coded without loss.
        """
        kinds = [(part.dtype, part.shape)]
        if part.dtype.startswith("complex"):
            kinds.append((f"float{int(part.dtype[7:]) // 2}", (*part.shape, 2)))
        for dtype, shape in kinds:
            lossless = self.is_lossless(self.asked, dtype)
            if lossless or (lossless is False and (part.is_float or sole)):
                return Plan(self.asked, dtype, shape, lossless)
        recipe = self.plain if part.dtype == "bytes" else DEFAULT_RECIPE
        return Plan(recipe, part.dtype, part.shape, True)


# ---- compress -------------------------------------------------------------------------------


def _format(name: str, args: argparse.Namespace) -> str:
    """What the file shall be read as."""
    by_name = tensors.format_of(name) if name != PIPE else "bytes"
    asked = getattr(args, "format", None)
    if args.dtype and (asked or by_name) != "bytes":
        raise UsageError(
            f"{label(name)} says its own types: leave out --dtype {args.dtype}, or say --format "
            f"bytes for a file that has no header"
        )
    return str(asked or by_name)


def _layout(
    name: str, source: Source, recipes: _Recipes, args: argparse.Namespace
) -> Layout | None:
    """How a file of tensors is cut; None: it is compressed as a stream."""
    form = _format(name, args)
    if form == "bytes":
        _require_no_header(name, source, recipes, args)
        return None
    try:
        layout = tensors.LAYOUTS[form](source)
    except tensors.TensorFileError as error:
        if args.format or isinstance(error, tensors.CutShortError):
            hint = "" if recipes.needs_type else "; --format bytes takes it as it is"
            raise UsageError(f"{label(name)}: {error}{hint}") from None
        recipes.require_lossless(name, str(error))
        _say(f"{name}: {error}: kept as bytes", args)
        return None
    if layout.note:
        recipes.require_lossless(name, layout.note)
        _say(f"{name}: {layout.note}", args)
        return None
    return layout


def _require_no_header(
    name: str, source: Source, recipes: _Recipes, args: argparse.Namespace
) -> None:
    """Raises UsageError where a header would be changed as if it were numbers."""
    if recipes.needs_type or (recipes.changes_floats and args.dtype):
        found = tensors.sniff(source.peek(9))
        if found != "bytes":
            raise UsageError(
                f"{label(name)} begins with the header of a .{found} file, which "
                f"{recipes.asked} would change; say --format {found}"
            )
    if recipes.needs_type and not args.dtype:
        recipes.require_lossless(
            name, "it does not say what its elements are (--dtype float32 would)"
        )


def _say(sentence: str, args: argparse.Namespace) -> None:
    if not args.quiet:
        print(f"wirepress: {sentence}", file=sys.stderr)


def _read_exactly(source: Source, size: int) -> memoryview:
    memory = memoryview(bytearray(size))
    done = source.fill(memory)
    if done < size:
        raise UsageError(f"it ended {size - done} bytes early while it was read")
    return memory


def _compress_array(
    source: Source, target: BinaryIO, layout: Layout, recipes: _Recipes
) -> api.Stats:
    """One frame of a .npy file's array, which remembers dtype and shape."""
    assert layout.array and layout.header
    code, shape = arrays.dtype_code(layout.array.dtype), layout.array.shape
    _read_exactly(source, len(layout.header.head))
    elements = _read_exactly(source, arrays.n_bytes(code, shape))
    if source.peek(1):
        raise UsageError("bytes follow the array of the .npy file, which a pipe may not have")
    compressor = recipes.compressor(recipes.of_stream(layout.array.dtype))
    write_all(target, compressor.compress_view(arrays.View(elements, code, len(shape), shape)))
    return compressor.stats


def _compress_stream(
    source: Source, target: BinaryIO, bar: Any, recipe: str, dtype: str, recipes: _Recipes
) -> api.Stats:
    options = {**recipes.options, "recipe": recipe}
    stream = api.StreamCompressor(dtype=dtype, **options)
    for piece in _pieces(source, bar):
        write_all(target, stream.update(piece))
    write_all(target, stream.finish())
    return stream.stats


class _SeriesCoder:
    """Makes a series of a file of tensors."""

    def __init__(
        self,
        source: Source,
        target: BinaryIO,
        layout: Layout,
        plans: list[Plan],
        recipes: _Recipes,
        frames: IO[bytes],
    ) -> None:
        self._source, self._layout, self._plans = source, layout, plans
        self._recipes = recipes
        self._groups: dict[tuple[str, str], Group] = {}
        self._made: dict[int, list[tuple[int, int]]] = {}  # by part, frames' places in this file:
        self._frames = frames
        self._patches = self._find_patches()
        self._writer = Writer(target)

    def run(self, bar: Any) -> tuple[int, int, list[Group]]:
        """Returns the sizes of the file and of its series, and what was done with tensors."""
        for i, (part, plan) in enumerate(zip(self._layout.parts, self._plans, strict=True)):
            if part.dtype == "bytes":
                self._bytes(part, plan.recipe, bar)
            else:
                self._tensor(i, part, plan, bar)
        self._writer.finish()
        return self._writer.raw_size, self._writer.size, list(self._groups.values())

    def _find_patches(self) -> dict[int, bytes]:
        """What a zip must say of tensors that are changed: the CRC-32 of what comes back."""
        found, crcs = {}, {}
        for at, i in self._layout.patches.items():
            if self._plans[i].lossless:
                continue
            if i not in crcs:
                crcs[i] = self._crc_of_result(i, self._layout.parts[i], self._plans[i])
            found[at] = crcs[i].to_bytes(4, "little")
        return found

    def _crc_of_result(self, i: int, part: Part, plan: Plan) -> int:
        """Codes and expands a part, because its CRC-32 stands before it in the file. The frames are
        kept: `auto` may choose another recipe the next time."""
        compressor, crc = self._recipes.compressor(plan.recipe), 0
        made = self._made[i] = []
        self._source.rewind(part.at)
        for view in self._views(part, plan):
            frame = compressor.compress_view(view)
            crc = zlib.crc32(compressor.decompress(frame, raw=True), crc)
            made.append((self._frames.tell(), len(frame)))
            self._frames.write(frame)
        self._source.rewind()
        return crc

    def _patch(self, piece: memoryview, at: int) -> None:
        for begin, word in self._patches.items():
            for i in range(max(begin, at), min(begin + 4, at + len(piece))):
                piece[i - at] = word[i - begin]

    def _bytes(self, part: Part, recipe: str, bar: Any) -> None:
        stream = api.StreamCompressor(**{**self._recipes.options, "recipe": recipe})
        done = 0
        buffer = memoryview(bytearray(min(_PIECE, part.size or _PIECE)))
        while part.size is None or done < part.size:
            want = len(buffer) if part.size is None else min(len(buffer), part.size - done)
            size = self._source.fill(buffer[:want])
            if size < want and part.size is not None:
                raise UsageError(f"it ended at {part.at + done + size} while it was read")
            if size == 0:
                break
            self._patch(buffer[:size], part.at + done)
            self._writer.add_piece(stream.update(buffer[:size]))
            done += size
            bar.update(size)
        if done:
            self._writer.add_piece(stream.finish())
            self._writer.end_frame(done)

    def _views(self, part: Part, plan: Plan) -> Iterator[arrays.View]:
        """A tensor as arrays of whole rows, of at most 16 MiB."""
        code, left = arrays.dtype_code(plan.dtype), part.size or 0
        item, shape = arrays.dtype_size(code), fold(plan.shape)
        row = item * math.prod(shape[1:])
        if left > _FRAME and 4 * row > _FRAME:
            shape, row = (left // item,), item
        rows = left // row if left <= _FRAME else _FRAME // row // 4 * 4
        while left:
            n = min(rows, left // row)
            extents = (n, *shape[1:]) if shape else ()
            yield arrays.View(_read_exactly(self._source, n * row), code, len(extents), extents)
            left -= n * row

    def _frame(self, i: int, number: int, plan: Plan, view: arrays.View) -> Any:
        if i not in self._made:
            return self._recipes.compressor(plan.recipe).compress_view(view)
        at, size = self._made[i][number]
        self._frames.seek(at)
        return self._frames.read(size)

    def _tensor(self, i: int, part: Part, plan: Plan, bar: Any) -> None:
        for number, view in enumerate(self._views(part, plan)):
            self._writer.add_piece(self._frame(i, number, plan, view))
            self._writer.end_frame(len(view.buffer))
            bar.update(len(view.buffer))
        group = Group(part.dtype, plan.recipe, plan.lossless)
        group = self._groups.setdefault((part.dtype, plan.recipe), group)
        group.count += 1
        group.raw_size += part.size or 0


def _plans(name: str, layout: Layout, recipes: _Recipes) -> list[Plan]:
    """The recipe of every part; UsageError where that asked for would have no use."""
    sole = layout.header is not None
    plans = [recipes.of_part(part, sole=sole and bool(part.name)) for part in layout.parts]
    tried = [plan for part, plan in zip(layout.parts, plans, strict=True) if part.name]
    if not recipes.asked or any(plan.recipe == recipes.asked for plan in tried):
        return plans
    if sole and tried:
        _refuse_elements(name, layout, tried[0], recipes)
    if recipes.needs_type:
        raise UsageError(
            f"{label(name)}: {recipes.asked} takes none of its tensors of {tensors.SMALL} bytes "
            f"and more"
        )
    return plans


def _refuse_elements(name: str, layout: Layout, plan: Plan, recipes: _Recipes) -> None:
    order = ", in the other byte order" if layout.header and layout.header.other_order else ""
    descr = layout.header.descr if layout.header else plan.dtype
    try:
        recipes.compressor(recipes.asked).lossless(plan.dtype)
    except ParameterError as error:
        raise UsageError(f"{label(name)}: its elements are {descr!r}{order}: {error}") from None


def _compress_to(
    name: str, file: BinaryIO, target: BinaryIO, recipes: _Recipes, args: argparse.Namespace
) -> dict[str, Any]:
    """Compresses an open file; returns fields of a Result."""
    source = Source(file)
    layout = _layout(name, source, recipes, args)
    with progress_bar(name, file, args) as bar:
        if layout is None:
            recipe, dtype = recipes.of_stream(args.dtype), args.dtype or "bytes"
            stats = _compress_stream(source, target, bar, recipe, dtype, recipes)
            return _fields(stats, recipe, dtype)
        plans = _plans(name, layout, recipes)
        described = [plan.dtype for plan in plans] == [part.dtype for part in layout.parts]
        if layout.array and described:
            stats = _compress_array(source, target, layout, recipes)
            return _fields(stats, recipes.of_stream(layout.array.dtype), *layout.array)
        with tempfile.SpooledTemporaryFile(_FRAME) as frames:
            coder = _SeriesCoder(source, target, layout, plans, recipes, frames)
            raw_size, size, groups = coder.run(bar)
    return {
        "raw_size": raw_size,
        "frame_size": size,
        "recipe": recipes.asked or DEFAULT_RECIPE,
        "dtype": "bytes",
        "shape": None,
        "tensors": groups,
    }


def _fields(
    stats: api.Stats, recipe: str, dtype: str, shape: tuple[int, ...] | None = None
) -> dict[str, Any]:
    return {
        "raw_size": stats.raw_bytes,
        "frame_size": stats.wire_bytes,
        "recipe": recipe,
        "dtype": dtype,
        "shape": shape,
    }


def make_file(
    name: str,
    output: str,
    args: argparse.Namespace,
    make: Callable[[BinaryIO, BinaryIO], dict[str, Any]],
    durable: bool = False,
) -> Result:
    """A result that `make` writes, which then stands in its place; removes the source if asked.

    durable: the result is on stable storage then, as it is before a source is removed.

    `make` takes the open source and the open result, and returns fields of a Result.
    """
    began = time.perf_counter()
    with open_input(name) as source:
        before = os.fstat(source.fileno())
        with open_output(output, source, force=args.force, durable=durable or args.rm) as target:
            fields = make(source, target)
        args.written[os.path.realpath(output)] = name
        if args.rm:
            paths.remove_source(name, source, before)
    return Result(name, output, seconds=time.perf_counter() - began, **fields)


def compress_file(name: str, args: argparse.Namespace) -> Result:
    """Makes the frame or the series of one file."""
    output = args.output or (PIPE if name == PIPE else name + SUFFIX)
    check_names(name, output, args)
    recipes = _Recipes(args)
    return make_file(
        name,
        output,
        args,
        lambda source, target: _compress_to(name, source, target, recipes, args),
    )


def read_sample(name: str, dtype: str | None, limit: int) -> arrays.View:
    """At most `limit` bytes of a file's elements, for measuring: a .npy file's as its type, another
    file's as `dtype`. Whole rows, in the order in which they lie in memory."""
    with open_input(name) as file:
        source, shape = Source(file), None
        if dtype is None and name.endswith(".npy"):
            try:
                layout = tensors.npy_layout(source)
            except tensors.TensorFileError as error:
                raise UsageError(f"{name}: {error}") from None
            part = next((part for part in layout.parts if part.name), None)
            if part is None:
                raise UsageError(f"{name}: {layout.note or 'its array is empty'}")
            _read_exactly(source, part.at)
            dtype, shape, limit = part.dtype, fold(part.shape), min(limit, part.size or 0)
        content = memoryview(bytearray(limit if source.size() is None else source.size() or 0))
        content = content[: min(len(content), limit)]
        content = content[: source.fill(content)]
    code = arrays.dtype_code(dtype or "bytes")
    row = arrays.dtype_size(code) * math.prod(shape[1:] if shape else ())
    content = content[: len(content) // row * row]
    if not content:
        raise UsageError(f"{label(name)} is empty" if not shape else f"{name}: rows of {row} bytes")
    if shape:
        return arrays.View(content, code, len(shape), (len(content) // row, *shape[1:]))
    return arrays.describe(content, dtype)


# ---- decompress -----------------------------------------------------------------------------


def _output_of(name: str) -> str:
    if name == PIPE:
        return PIPE
    if not name.endswith(SUFFIX) or len(os.path.basename(name)) == len(SUFFIX):
        raise UsageError(f"{name}: the name does not end in {SUFFIX}; say with -o where to write")
    return name.removesuffix(SUFFIX)


def _wants_npy(output: str, info: api.Info, args: argparse.Namespace) -> bool:
    if args.npy and info.shape is None:
        raise UsageError("the frame remembers no shape: it cannot become a .npy file")
    wanted = args.npy if args.npy is not None else output.endswith(".npy")
    return bool(wanted and info.shape is not None)


def _decompress_to(
    name: str, file: BinaryIO, target: BinaryIO, output: str, args: argparse.Namespace
) -> dict[str, Any]:
    with progress_bar(name, file, args) as bar:
        expander = Expander(_pieces(Source(file), bar), target, settings(args))
        if expander.is_series:
            if args.npy is not None:
                raise UsageError("a series of frames is a whole file: leave out --npy and --no-npy")
        elif _wants_npy(output, expander.infos[0], args):
            info = expander.infos[0]
            write_all(target, npy.make_header(npy.Header(info.dtype, info.shape or ())))
        expander.run()
    infos = expander.infos
    one = infos[0] if len(infos) == 1 and not expander.is_series else None
    return {
        "raw_size": expander.n_written,
        "frame_size": expander.n_taken,
        "recipe": one.recipe if one else ", ".join(dict.fromkeys(info.recipe for info in infos)),
        "dtype": one.dtype if one else "bytes",
        "shape": one.shape if one else None,
    }


def decompress_file(name: str, args: argparse.Namespace) -> Result:
    """Expands one frame or series."""
    output = args.output or _output_of(name)
    check_names(name, output, args)
    return make_file(
        name,
        output,
        args,
        lambda source, target: _decompress_to(name, source, target, output, args),
    )


# ---- the commands ---------------------------------------------------------------------------


def check_request(args: argparse.Namespace) -> None:
    """Raises UsageError for files and flags that do not fit together."""
    if args.output and len(args.files) > 1:
        raise UsageError("-o takes one result; give one file")
    if args.files.count(PIPE) > 1:
        raise UsageError("- (stdin) can be read only once")
    if getattr(args, "dtype", None):
        try:
            arrays.dtype_code(args.dtype)
        except ParameterError as error:
            raise UsageError(str(error)) from None
    args.written = {}


def check_names(name: str, output: str, args: argparse.Namespace) -> None:
    """Raises UsageError where one file's result would take the place of another's, or of a source
    that is still to be read."""
    if args.rm:
        paths.check_removable(name)
    if output == PIPE:
        return
    path = os.path.realpath(output)
    if path in args.written:
        raise UsageError(f"{output} holds the result of {args.written[path]} already")
    for other in args.files:
        if other not in (PIPE, name) and os.path.realpath(other) == path:
            raise UsageError(f"{output} is also to be read; do that first")


def finish(result: Result, args: argparse.Namespace) -> None:
    """After one file: says what was done."""
    if not args.quiet and not args.json:
        print(result, file=sys.stderr)
