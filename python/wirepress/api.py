# SPDX-License-Identifier: Apache-2.0
"""compress, decompress and their kin. See `help(wirepress)`."""

from __future__ import annotations

import copyreg
import dataclasses
import math
import operator
import sys
from collections.abc import Sequence
from typing import Any

from wirepress import _core, arrays, environment
from wirepress.errors import FrameError, ParameterError, TruncatedError
from wirepress.uncopied import Uncopied

Value = str | int | bool | None  # of an option; None: leave it as it is

_CHUNK = 1 << 20  # bytes that StreamDecompressor.update expands at a time


@dataclasses.dataclass(frozen=True, slots=True)
class Info:
    """What the header of a frame says. Sizes are bytes; None: a streamed frame, not known yet."""

    version: int
    header_size: int
    raw_size: int | None
    block_size: int
    n_blocks: int | None
    dtype: str
    shape: tuple[int, ...] | None
    """Extents, outermost first; None where the frame holds bytes without a shape."""
    checksum: bool
    streamed: bool
    recipe: str


@dataclasses.dataclass(frozen=True, slots=True)
class Stats:
    """What a Compressor did since it was made or `reset_stats`. Sizes are bytes."""

    raw_bytes: int
    wire_bytes: int
    blocks: int
    bypassed_probe: int
    bypassed_size: int
    expanded_bytes: int
    compress_seconds: float
    decompress_seconds: float

    @property
    def ratio(self) -> float:
        """Raw bytes per byte of frame; 1.0 before anything was compressed."""
        return self.raw_bytes / self.wire_bytes if self.wire_bytes else 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """A candidate that recipe="auto" weighed for a group of blocks; rates are bytes a second."""

    offset: int
    size: int
    reused: bool
    """The group looks like an earlier one, whose choice stands."""
    zero_lines: float
    """Share of 64-byte lines that are zeros, in a sample of the group."""
    byte_entropy: float
    """Bits a byte, order 0; this and the next three are of the other lines."""
    exponent_entropy: float
    roughness: float
    """Mean step between neighbours by twice their mean size, at most 1."""
    matches: float
    """Share of words (of 4 bytes, or elements of 8) that stood in the sample before."""
    recipe: str
    why: str
    """Why it was not tried; "" where it was."""
    ratio: float
    compress_rate: float
    expand_rate: float
    finish: float
    """Seconds a byte until it is expanded on the other side of the link (model)."""
    chosen: bool
    tried: int
    """Bytes that were compressed for the ratio; 0 where it is known."""
    timed: bool
    """compress_rate is of a block of data like these, not of the calibration."""
    pace: float
    """What the machine takes now by what it took at the calibration; the rates hold it."""
    prior: float
    """finish by the calibration alone."""


def rate(text: str) -> float:
    """A link rate such as "10Gbps" or "1.2GB/s", in bytes a second.

    >>> rate("10Gbps")
    1250000000.0
    """
    return float(_core.parse_rate(arrays.text("rate", text)))


@dataclasses.dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a codec; an integer in min..max, the word at that index, or a real number."""

    name: str
    min: int
    max: int
    default: int | float
    words: tuple[str, ...]
    sentence: str
    real: bool
    bounds: str
    """What it bounds of each value's error: "fraction_bits": the relative error, at most 2^-(m+1)
    for the value m; "absolute": the absolute error, at most the value; "": nothing."""


@dataclasses.dataclass(frozen=True, slots=True)
class Kernel:
    """One implementation of a codec; `engine:variant` forces it with the option `engine`."""

    engine: str
    variant: str
    usable: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Codec:
    """A byte format that recipes may name."""

    id: int
    name: str
    sentence: str
    lossless: bool
    exact_encode: bool
    sparse: bool
    """It codes some float32 values exactly and drops the others."""
    wants_feedback: bool
    """Gradients train worse without error feedback."""
    dtypes: tuple[str, ...]
    """The types that it takes without parameters."""
    params: tuple[Param, ...]
    kernels: tuple[Kernel, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Engine:
    """A place where kernels run; `reason` says why it is not available.

    `state` says what its device can do and has done in this process; "" where none is selected.
    `refusal` says why the cores do the jobs of the device that was named last, "" where it is set
    up.
    """

    name: str
    sentence: str
    available: bool
    reason: str
    state: str
    refusal: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """A setting: keyword argument `key`, environment variable `variable`, flag `flag`; those of
    PyTorch's process groups, `torch_...`, are fields of `wirepress.torch.GroupOptions` instead.
    `choices`: all values of a choice; of other types the words that it may be besides. `min` and
    `max`: the range of a size (bytes), an integer (exact below 2^53) or a boolean."""

    key: str
    type: str
    default: str
    choices: tuple[str, ...]
    sentence: str
    min: float
    max: float

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "WIREPRESS_" + self.key.upper()

    @property
    def flag(self) -> str:
        """The command-line flag that sets it; "" where no command does."""
        if self.key.startswith("torch_"):
            return ""
        return "--" + self.key.replace("_", "-")


@dataclasses.dataclass(frozen=True, slots=True)
class DeviceWork:
    """What engines with devices did in a thread since it began; raw bytes of blocks."""

    device_bytes: int
    cores_bytes: int
    """Of blocks that a device was given, or whose memory they lay in, and the CPU did instead; or
    that had no codec with the kernel that the option `engine` names."""
    reason: str
    """Why, of the last such block; "" where there was none."""


def device_work() -> DeviceWork:
    """What devices have done in the calling thread."""
    return DeviceWork(*_core.device_work())


def _context(recipe: str | None, options: dict[str, Value]) -> _core.Context:
    environment.check(4)
    context = _core.Context()
    for key, value in {"recipe": recipe, **options}.items():
        if value is not None:
            _set(context, key, value)
    return context


def _set(context: _core.Context, key: str, value: Value) -> None:
    if isinstance(value, bool) or _is_numpys_bool(value):
        value = "on" if value else "off"
    elif not isinstance(value, str):
        try:
            value = str(operator.index(value))
        except TypeError:
            raise TypeError(
                f"option {key}: a str, int or bool, not {type(value).__name__}"
            ) from None
    context.set(arrays.text("option", key), arrays.text(key, value))


def _is_numpys_bool(value: Any) -> bool:
    """Which is no int, as a bool is."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.bool_)


_GRADIENTS = ("float32", "bfloat16", "float16")


def _gradient(gradient: Any, dtype: str | None, residual: Any, stream: int) -> tuple[Any, int, Any]:
    """The memory of the gradient and its type, and the memory of its residual, which is written to:
    float32 in the gradient's shape."""
    view = arrays.describe(gradient, dtype, stream)
    rest = arrays.describe(residual, None, stream)
    _check_gradient("gradient", view)
    if arrays.DTYPES[rest.dtype] != "float32":
        raise ParameterError(f"residual must be float32, not {arrays.DTYPES[rest.dtype]}")
    if view.shape != rest.shape:
        raise ParameterError(f"gradient is {view.shape}, residual is {rest.shape}")
    return view.buffer, view.dtype, arrays.room_of(residual, None, stream)


def _sum(out: Any, dtype: str | None, stream: int) -> tuple[Any, int]:
    """The memory of what is added to, and its type."""
    view = arrays.describe(out, dtype, stream)
    _check_gradient("out", view)
    return arrays.room_of(arrays.plain(out), None, stream), view.dtype


def _check_gradient(what: str, view: arrays.View) -> None:
    name = arrays.DTYPES[view.dtype]
    if name not in _GRADIENTS:
        raise ParameterError(
            f"{what} must be {', '.join(_GRADIENTS[:-1])} or {_GRADIENTS[-1]}, not {name}"
        )


def _known(size: int) -> int | None:
    return None if size == _core.UNKNOWN else size


def _shape(row: tuple[Any, ...]) -> tuple[int, ...] | None:
    return None if row[6] == _core.NO_SHAPE else row[7]


def _info(row: tuple[Any, ...]) -> Info:
    (version, header_size, raw_size, block_size, n_blocks) = row[:5]
    dtype, _, _, checksum, streamed, recipe = row[5:]
    return Info(
        version,
        header_size,
        _known(raw_size),
        block_size,
        _known(n_blocks),
        arrays.DTYPES[dtype],
        _shape(row),
        checksum,
        streamed,
        recipe,
    )


class Job(Uncopied):
    """Work of `Compressor.compress_async` or `decompress_async` that goes on while the program does
    other things.

    The arrays and buffers that it was given are the job's until it is done: do not change, resize
    or read them before. They live as long as it needs them; a job that nobody keeps is waited for.
    """

    _instead = "copy its result"

    def __init__(self, job: _core.Job | None, out: Any = None) -> None:
        self._job, self._out = job, out

    def done(self) -> bool:
        """Whether it has ended, well or not; does not wait for the device."""
        return self._job is None or self._job.done()

    def result(self) -> Any:
        """Waits until it has ended, and gives what the call that waits would have given. Other
        threads may use the compressor meanwhile.

        Raises what that call would have raised, each time that it is called.
        """
        result = None if self._job is None else self._job.result()
        return result if self._out is None else self._out


class Compressor:
    """Compresses and decompresses with settings made once; reuses its memory and threads.

    Faster than the functions for many small calls. `compress_async` and `decompress_async` put the
    work on arrays of a GPU on its stream and return (`Job`). Safe to share: calls from several
    threads wait for each other (give each thread its own to run them at once), and each sees one
    set of options. A forked child may use its copy; the fork waits for the call that another thread
    is in. Copies and pickles have the same settings, and the attributes that a subclass adds.

    A long call of the main thread runs the handlers of signals meanwhile: it ends with the
    KeyboardInterrupt of a Ctrl-C. A handler that uses the compressor of that call is refused.

    Args:
        recipe: codecs in order with their parameters, `"shuffle:4+zstd:1"`; see `codecs()`.
        **options: every row of `options()`: `threads=2`, `block_size="256KiB"`, `checksum=False`.

    Raises:
        ParameterError: an unknown option, codec or value; the text lists the known ones.

    >>> compressor = Compressor("zstd:3", threads=1)
    >>> frames = [compressor.compress(b"step %d " % i * 100) for i in range(3)]
    >>> compressor.decompress(frames[2])[:7]
    b'step 2 '
    >>> compressor.stats.raw_bytes
    2100
    """

    def __init__(self, recipe: str | None = None, **options: Value) -> None:
        self._context = _context(recipe, options)

    def compress(self, data: Any, *, dtype: Any = None) -> bytes:
        """Makes one frame of `data`; see `wirepress.compress`."""
        return self.compress_view(arrays.describe(data, dtype, self._context.stream))

    def compress_view(self, view: arrays.View) -> bytes:
        """`compress` for memory that is described already."""
        return self._context.compress(*view)

    def compress_into(self, data: Any, out: Any, *, dtype: Any = None) -> int:
        """Writes one frame of `data` to `out`, a writable buffer, and returns the frame's size.

        `bound(raw size)` bytes always suffice; with less, TooSmallError says that the data did not
        shrink enough. `out` holds anything after an error.
        """
        return self.compress_view_into(arrays.describe(data, dtype, self._context.stream), out)

    def compress_view_into(self, view: arrays.View, out: Any) -> int:
        """`compress_into` for memory that is described already."""
        return self._context.compress_into(*view, self._room_of(out))

    def compress_async(
        self,
        data: Any,
        out: Any = None,
        *,
        dtype: Any = None,
        stream: int | None = None,
    ) -> Job:
        """`compress`, or `compress_into` where `out` is given, of an array of a device: returns at
        once, with the work on a CUDA stream behind what is there. `Job.result` is the frame, or its
        size.

        Args:
            stream: the stream; None: the one that the array's work is on (PyTorch's current one, or
                that of `__cuda_array_interface__`), else that of `set_stream`, which waits for the
                array's work.

        Memory is kept for the next job, and any number may be on their way; `set` is refused
        meanwhile, but for `seed`: a job has that of its call. The device does all of a job where
        the recipe is one codec with a kernel there. Other jobs are done by `result`, or by the
        `done` that finds the stream ready; those of arrays of the CPU by this call.

        >>> import numpy as np
        >>> compressor = Compressor("onebit", threads=1)
        >>> gradients = [np.full(4096, step, np.float32) for step in range(3)]
        >>> jobs = [compressor.compress_async(gradient) for gradient in gradients]
        >>> [compressor.decompress(job.result())[0].item() for job in jobs]
        [0.0, 1.0, 2.0]
        """
        stream = self._stream_for(data, stream)
        view = arrays.describe(data, dtype, stream)
        room = None if out is None else arrays.room_of(out, None, stream)
        return Job(self._context.compress_async(*view, room, stream))

    def decompress_async(
        self, frame: Any, out: Any = None, *, raw: bool = False, stream: int | None = None
    ) -> Job:
        """`decompress` to an array of a device: returns at once, with the work on a CUDA stream
        behind what is there. `Job.result` is what `decompress` gives.

        A frame in memory of the CPU is checked here: a damaged one is refused at once, and nothing
        of it is expanded. One in memory of a device is expanded by `result`; its header is read
        here, which waits for the stream. Without `out` a frame that has no shape, and any with
        `raw`, is expanded here.

        Args:
            stream: as of `compress_async`, of `out` or else of the frame.

        >>> import numpy as np
        >>> frame, out = compress(np.arange(1000)), np.zeros(1000, np.int64)
        >>> Compressor().decompress_async(frame, out).result() is out, int(out[7])
        (True, 7)
        """
        stream = self._stream_for(frame if out is None else out, stream)
        given, frame = out, arrays.memory_of(frame, stream)
        info = _info(self._context.inspect(frame, stream))
        if out is None and (raw or info.shape is None):
            return Job(None, self._context.decompress(frame, stream))
        if out is None:
            given, out = arrays.empty(arrays.dtype_code(info.dtype), info.shape)
        elif not isinstance(out, bytearray):
            if not raw:
                arrays.check_rows(out, arrays.dtype_code(info.dtype), info.shape)
            out = arrays.room_of(out, arrays.dtype_code(info.dtype), stream)
        return Job(self._context.decompress_async(frame, out, stream), given)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles are compressors of their own. They have the settings that this one was
        given; the others follow the environment of the process that has them. Statistics and a CUDA
        stream stay here."""
        keys = [option.key for option in options()]
        given = {key: self.option(key)[0] for key in keys if self.option(key)[1] == "set"}
        slots = (name for name in copyreg._slotnames(type(self)) if hasattr(self, name))  # type: ignore[attr-defined]
        return {**{name: getattr(self, name) for name in slots}, **vars(self), "_context": given}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in {**state, "_context": _context(None, state["_context"])}.items():
            setattr(self, name, value)

    def _memory_of(self, frame: Any) -> Any:
        return arrays.memory_of(frame, self._context.stream)

    def _room_of(self, out: Any, code: int | None = None) -> Any:
        return arrays.room_of(out, code, self._context.stream)

    def _check_rows(self, frame: Any, out: Any) -> None:
        if len(getattr(out, "shape", ())) > 1:
            row = self._context.inspect(frame)
            arrays.check_rows(out, row[5], _shape(row))

    def _stream_for(self, data: Any, stream: int | None) -> int:
        if stream is None:
            stream = arrays.stream_of(data)
        return self._context.stream if stream is None else stream

    def bound(self, raw_size: int) -> int:
        """The largest frame that `raw_size` bytes can make with these settings, in bytes."""
        return self._context.bound(arrays.whole("raw_size", raw_size))

    def decompress(self, frame: Any, out: Any = None, *, raw: bool = False) -> Any:
        """Expands one whole frame; see `wirepress.decompress`."""
        frame = self._memory_of(frame)
        if out is not None:
            if not isinstance(out, bytearray):
                row = self._context.inspect(frame)
                room = self._room_of(out, row[5])
                if not raw:
                    arrays.check_rows(out, row[5], _shape(row))
                self._context.decompress_into(frame, room)
            else:
                self._context.decompress_into(frame, out)
            return out
        info = self.inspect(frame)
        if raw or info.shape is None:
            return self._context.decompress(frame)
        array, memory = arrays.empty(arrays.dtype_code(info.dtype), info.shape)
        self._context.decompress_into(frame, memory)
        return array

    def decompress_range(self, frame: Any, offset: int, size: int) -> bytes:
        """Expands `size` raw bytes from `offset`; see `wirepress.decompress_range`."""
        frame = self._memory_of(frame)
        offset, size = arrays.whole("offset", offset), arrays.whole("size", size)
        held = self._context.inspect(frame)[2]
        if held != _core.UNKNOWN and offset + size > held:  # before memory for them is taken
            raise ParameterError(f"bytes {offset}..{offset + size} of a frame that holds {held}")
        try:
            return self._context.decompress_range(frame, offset, size)
        except MemoryError:
            raise MemoryError(f"no memory for {size} bytes of a frame") from None

    def compress_feedback(self, gradient: Any, residual: Any, *, dtype: str | None = None) -> bytes:
        """Makes a frame of `gradient + residual` and leaves in `residual` what it does not carry.

        Error feedback: what a lossy codec drops in one step is sent with the next. Both are arrays
        of one shape, the gradient of float32, bfloat16 or float16, the residual of float32 (in 16
        bits it would drop most of what it is kept for). `residual` is written to, is 0 where that
        is not finite, and begins as zeros. One pass over both where the recipe's codec has a kernel
        for it. The frame holds float32.

        `dtype` says what the gradient's elements are where the array cannot: `"bfloat16"` for
        uint16.

        >>> import numpy as np
        >>> gradient = np.linspace(-1, 1, 4096, dtype=np.float32)
        >>> residual = np.zeros_like(gradient)
        >>> compressor = Compressor("fre:m=1", threads=1)
        >>> sent = np.zeros_like(gradient)
        >>> compressor.decompress_add(compressor.compress_feedback(gradient, residual), sent)
        4096
        >>> bool(np.all(sent + residual == gradient))
        True
        """
        memory = _gradient(gradient, dtype, residual, self._context.stream)
        return self._context.compress_feedback(*memory)

    def compress_feedback_into(
        self, gradient: Any, residual: Any, out: Any, *, dtype: str | None = None
    ) -> int:
        """`compress_feedback` into `out`, a writable buffer; returns the frame's size.

        `bound(residual's bytes)` always suffice. After an error `residual` holds anything.
        """
        memory = _gradient(gradient, dtype, residual, self._context.stream)
        return self._context.compress_feedback_into(*memory, self._room_of(out))

    def decompress_add(self, frame: Any, out: Any, *, dtype: str | None = None) -> int:
        """Adds what a float32 frame holds to `out`, a writable array of float32, bfloat16 or
        float16; returns how many. A sum of 16 bits is rounded to the nearest, once.

        `out` has rows as long as those of the frame's array, or is flat. `dtype` says what the
        elements of `out` are where it cannot. After an error any part of `out` may have been added
        to.
        """
        room, code = _sum(out, dtype, self._context.stream)
        frame = self._memory_of(frame)
        self._check_rows(frame, out)
        return self._context.decompress_add(frame, room, code)

    def compress_feedback_async(
        self,
        gradient: Any,
        residual: Any,
        out: Any = None,
        *,
        dtype: str | None = None,
        stream: int | None = None,
    ) -> Job:
        """`compress_feedback`, or `compress_feedback_into` where `out` is given, of arrays of a
        device: returns at once, as `compress_async`. `Job.result` is the frame, or its size.

        The device does all of it where the gradient is float32 and the recipe is one codec with a
        kernel for it. What a device fails that has begun `result` raises; `residual` holds anything
        then.

        >>> import numpy as np
        >>> gradient, residual = np.ones(4096, np.float32), np.zeros(4096, np.float32)
        >>> job = Compressor("onebit").compress_feedback_async(gradient, residual)
        >>> sent = decompress(job.result(), np.empty_like(gradient))
        >>> sent[0].item(), residual[0].item()
        (1.0, 0.0)
        """
        stream = self._stream_for(gradient, stream)
        memory = _gradient(gradient, dtype, residual, stream)
        room = None if out is None else arrays.room_of(out, None, stream)
        return Job(self._context.compress_feedback_async(*memory, room, stream))

    def decompress_add_async(
        self, frame: Any, out: Any, *, dtype: str | None = None, stream: int | None = None
    ) -> Job:
        """`decompress_add` to an array of a device: returns at once, as `decompress_async`.
        `Job.result` is the number of values.

        >>> import numpy as np
        >>> frame, out = compress(np.ones(1000, np.float32)), np.ones(1000, np.float32)
        >>> Compressor().decompress_add_async(frame, out).result(), out[7].item()
        (1000, 2.0)
        """
        stream = self._stream_for(out, stream)
        room, code = _sum(out, dtype, stream)
        if not arrays.on_device(frame):  # whose header would have to be waited for
            self._check_rows(frame, out)
        frame = arrays.memory_of(frame, stream)
        return Job(self._context.decompress_add_async(frame, room, code, stream))

    def compress_pieces_async(
        self,
        pieces: Sequence[tuple[Any, Any, Any, int]],
        *,
        dtype: str | None = None,
        stream: int | None = None,
    ) -> Job:
        """Several frames as one job, which takes a device as many launches and copies as one frame
        does. `Job.result` is a list of their sizes.

        Args:
            pieces: of each the values (an array of one dimension; all of one type), a residual as
                of `compress_feedback_async` or None, the buffer that its frame is written to, and
                the seed of codecs that round at random.
            stream: as of `compress_async`, of the first values.

        >>> import numpy as np
        >>> compressor = Compressor("onebit")
        >>> values = [np.full(n, 1, np.float32) for n in (5000, 300)]
        >>> rooms = [bytearray(compressor.bound(each.nbytes)) for each in values]
        >>> job = compressor.compress_pieces_async(
        ...     [(each, None, room, 0) for each, room in zip(values, rooms)])
        >>> [compressor.decompress(room[:size]).sum().item()
        ...  for room, size in zip(rooms, job.result())]
        [5000.0, 300.0]
        """
        rows, codes = [], set()
        stream = self._stream_for(pieces[0][0] if pieces else None, stream)
        for values, residual, out, seed in pieces:
            room = arrays.room_of(out, None, stream)
            if residual is None:
                view = arrays.describe(values, dtype, stream)
                if len(view.shape) != 1:
                    raise ParameterError(f"a piece has one dimension, not {len(view.shape)}")
                memory, code, rest = view.buffer, view.dtype, None
            else:
                memory, code, rest = _gradient(values, dtype, residual, stream)
            rows.append((memory, rest, room, arrays.whole("seed", seed)))
            codes.add(code)
        if len(codes) != 1:
            raise ParameterError("a job has one piece at least, and pieces of one type")
        return Job(self._context.compress_pieces_async(rows, codes.pop(), stream))

    def decompress_pieces_async(
        self, pieces: Sequence[tuple[Any, Any]], *, add: bool = False, stream: int | None = None
    ) -> Job:
        """Expands several frames as one job, or adds what they hold to float32.

        Args:
            pieces: of each the frame, and the array that its values go to, or are added to.
            stream: as of `compress_async`, of the first array.

        `Job.result` is a list: of the bytes that each frame has made, or of the values added.

        >>> import numpy as np
        >>> compressor = Compressor()
        >>> frames = [compressor.compress(np.full(n, 2, np.float32)) for n in (10, 20)]
        >>> sums = [np.ones(10, np.float32), np.ones(20, np.float32)]
        >>> compressor.decompress_pieces_async(list(zip(frames, sums)), add=True).result()
        [10, 20]
        >>> sums[1][0].item()
        3.0
        """
        rows = []
        stream = self._stream_for(pieces[0][1] if pieces else None, stream)
        for frame, out in pieces:
            if add and arrays.DTYPES[_sum(out, None, stream)[1]] != "float32":
                raise ParameterError("pieces are added to float32")
            room = arrays.room_of(out, None, stream)
            rows.append((arrays.memory_of(frame, stream), None, room, 0))
        if not rows:
            raise ParameterError("a job has one piece at least")
        return Job(self._context.decompress_pieces_async(rows, add, stream))

    def add(self, a: Any, b: Any) -> bytes:
        """The frame of the sum of two float32 frames, without expanding them.

        Raises UnsupportedError where codes of the recipe's first codec cannot be added;
        ParameterError where the frames differ in recipe, shape or block size, hold another type,
        or are streamed.
        """
        return self._context.add(arrays.memory_of(a), arrays.memory_of(b))

    def compress_steps(self, before: Any, after: Any) -> bytes:
        """Makes a frame of the steps from one array of words to another, in the order of floats.

        Both have one dtype, of 1, 2 or 4 bytes, and one size. A step is the distance in the order
        of floats, so that neighbours are one apart; NaNs and -0 are exact, too. The recipe must be
        lossless; `sparse` is made for this.

        >>> import numpy as np
        >>> before = np.arange(4096, dtype=np.float32)
        >>> after = before.copy()
        >>> after[7] = np.nextafter(after[7], np.float32(9))
        >>> steps = Compressor("sparse").compress_steps(before, after)
        >>> len(steps) < 50, int(decompress(steps, np.empty(4096, np.int32))[7])
        (True, 1)
        """
        from_, to = arrays.describe(before), arrays.describe(after)
        if (from_.dtype, math.prod(from_.shape)) != (to.dtype, math.prod(to.shape)):
            raise ParameterError("before and after differ in dtype or size")
        size = arrays.dtype_size(to.dtype)
        return self._context.compress_steps(from_.buffer, to.buffer, size)

    def take_steps(self, steps: Any, words: Any) -> int:
        """Moves an array by the steps of a frame: what was `before` becomes `after`.

        `words` is a writable, contiguous array of the size that the frame holds; its bytes are
        returned. Steps do not know what they are applied to: see `wirepress.patch`. After an error
        any part of `words` may have moved.
        """
        (memory, size), info = arrays.words_of(words), self.inspect(steps)
        of = arrays.dtype_size(arrays.dtype_code(info.dtype))
        if info.raw_size != memory.nbytes:
            raise ParameterError(
                f"the steps are of {info.raw_size} bytes, the words have {memory.nbytes}"
            )
        if size not in (None, of):
            raise ParameterError(f"the steps are of words of {of} bytes, the words have {size}")
        return self._context.take_steps(steps, memory)

    def explain(self, data: Any, *, dtype: Any = None) -> list[Choice]:
        """What recipe="auto" would choose for `data`, and why: a row for every candidate of every
        group of blocks.

        >>> import numpy as np
        >>> rows = Compressor("auto:goal=ratio").explain(np.zeros(10000, dtype=np.float32))
        >>> rows[0].zero_lines
        1.0
        >>> next(row for row in rows if row.chosen).ratio > 10
        True
        """
        return self.explain_view(arrays.describe(data, dtype))

    def explain_view(self, view: arrays.View) -> list[Choice]:
        """`explain` for memory that is described already."""
        return [Choice(*row) for row in self._context.explain(*view)]

    def lossless(self, dtype: Any = "float32") -> bool:
        """Whether the recipe gives back every bit of data of this type.

        >>> Compressor("bx:m=0").lossless(), Compressor("bx:m=5").lossless()
        (True, False)
        """
        return self._context.lossless(self.option("recipe")[0], arrays.dtype_code(dtype))

    def inspect(self, frame: Any) -> Info:
        """What the header of a frame says; see `wirepress.inspect`."""
        return _info(self._context.inspect(self._memory_of(frame)))

    def set(self, key: str, value: Value) -> None:
        """Sets an option from the next call on, as the constructor does."""
        _set(self._context, key, value)

    def set_stream(self, stream: int | None) -> None:
        """The CUDA stream that work on arrays of a device was put on: calls wait for what is there.

        At first the default stream. None: all such work is done, and no call waits.
        `torch.cuda.current_stream().cuda_stream` is that of PyTorch.
        """
        self._context.set_stream(-1 if stream is None else arrays.whole("stream", stream))

    def option(self, key: str) -> tuple[str, str]:
        """An option's value as text, and where it comes from: default, environment or set."""
        key = arrays.text("option", key)
        return self._context.get(key), self._context.origin(key)

    def number(self, key: str) -> float:
        """An option's value as a number: bytes of a size, bytes a second of a rate, an integer, 1
        or 0 of a boolean; 0 for a word such as auto. ParameterError: the option is none of these.
        """
        return self._context.number(arrays.text("option", key))

    @property
    def stats(self) -> Stats:
        """What this compressor did so far."""
        return Stats(*self._context.stats())

    def reset_stats(self) -> None:
        """Starts counting from zero."""
        self._context.reset_stats()


class StreamCompressor(Uncopied):
    """Compresses data of unknown length, piece by piece, in constant memory.

    One use: `update` any number of times, then `finish`. The frame is what they return, joined.

    Args:
        recipe, **options: as for `Compressor`.
        dtype: what the elements are, for codecs that ask; the shape is not remembered.

    >>> stream = StreamCompressor("zstd")
    >>> frame = stream.update(b"hello ") + stream.update(b"world") + stream.finish()
    >>> decompress(frame)
    b'hello world'
    """

    def __init__(
        self, recipe: str | None = None, *, dtype: Any = "bytes", **options: Value
    ) -> None:
        self._context = _context(recipe, options)
        self._dtype = arrays.dtype_code(dtype)
        self._head = self._context.stream_begin(self._dtype)
        self._finished = False

    def update(self, data: Any) -> bytes:
        """Takes an array of the stream's dtype, or bytes, and returns what is ready of the frame.

        Raises ParameterError where the elements are of another type.
        """
        self._check_open()
        view = arrays.describe(data)
        if not arrays.fits_stream(view, self._dtype):
            raise ParameterError(
                f"the stream is of {arrays.DTYPES[self._dtype]}, the piece of "
                f"{arrays.DTYPES[view.dtype]}"
            )
        piece = self._context.stream_update(view.buffer)  # may have no memory
        head, self._head = self._head, b""
        return head + piece if head else piece

    def finish(self) -> bytes:
        """Returns the rest of the frame."""
        self._check_open()
        self._finished = True
        return self._head + self._context.stream_end()

    def _check_open(self) -> None:
        if self._finished:
            raise ParameterError("the stream is finished; use a new StreamCompressor")

    @property
    def stats(self) -> Stats:
        """What this stream did so far."""
        return Stats(*self._context.stats())


class StreamDecompressor(Uncopied):
    """Expands one frame, streamed or not, piece by piece, in constant memory.

    >>> frame = compress(b"abc" * 1000)
    >>> stream = StreamDecompressor()
    >>> data = stream.update(frame[:20]) + stream.update(frame[20:])
    >>> len(data), stream.done
    (3000, True)
    """

    def __init__(self, **options: Value) -> None:
        self._context = _context(None, options)
        self._context.expand_begin()
        self.done = False
        """True after the last byte of the frame's content was returned."""
        self.unused = b""
        """Bytes given to `update` that lie behind the end of the frame."""
        self._damage: FrameError | None = None

    def update(self, data: Any) -> bytes:
        """Takes the next bytes of the frame and returns what they expand to, perhaps nothing.

        Raises FrameError where the frame is damaged, as soon as that shows.
        """
        pieces = []
        offset, written = 0, _CHUNK
        with memoryview(data).cast("B") as view:
            # A full piece of output means that there may be more without more input.
            while not self.done and (offset < len(view) or written == _CHUNK):
                piece = bytearray(_CHUNK)
                consumed, written = self.update_into(view, offset, piece)
                offset += consumed
                pieces.append(piece[:written] if written < _CHUNK else piece)
            if self.done:
                self.unused += bytes(view[offset:])
        return b"".join(pieces)

    def update_into(self, data: Any, offset: int, out: Any) -> tuple[int, int]:
        """Expands `data` from `offset` on into `out`, a writable buffer, without other memory.

        Returns how many bytes it took and wrote. Call again with the rest while `out` was filled
        or bytes were left, until `done`.
        """
        if self.done:
            return 0, 0
        if self._damage:
            raise ParameterError("the stream ended at an error; use a new StreamDecompressor")
        data, offset = arrays.memory_of(data), arrays.whole("offset", offset)
        try:
            consumed, written, self.done = self._context.expand_update(data, offset, out)
        except FrameError as error:
            self._damage = error
            raise
        return consumed, written

    def close(self) -> None:
        """Raises TruncatedError unless the frame was whole; where it was damaged, what said so."""
        if self._damage:
            raise self._damage
        if not self.done:
            raise TruncatedError("the frame ends before its content does")


def compress(data: Any, recipe: str | None = None, *, dtype: Any = None, **options: Value) -> bytes:
    """Makes one frame of `data`.

    Args:
        data: any buffer (bytes, memoryview, NumPy array ...), DLPack array in memory of the CPU or
            of a CUDA device, or CUDA array, of at most 4 dimensions. Arrays come back from
            `decompress` with dtype and shape, in C order.
        recipe: codecs in order with their parameters, `"shuffle:4+zstd:1"`; see `codecs()`. One
            that changes values needs to know what they are: an array, or `dtype`.
        dtype: what the elements are where `data` cannot say: `"float32"` for bytes, `"bfloat16"`
            for uint16. One of `wirepress.DTYPES`, or NumPy's type of that name.
        **options: every row of `options()`: `threads=2`, `block_size="256KiB"`, `checksum=False`.

    Raises:
        ParameterError: an unknown option, codec or value; the text lists the known ones. Or an
            array of more than 4 dimensions, of another dtype, masked, or not in CPU memory. Or
            plain bytes and a recipe that changes values.

    >>> frame = compress(b"hello " * 1000, "zstd:3", threads=1)
    >>> len(frame) < 100
    True
    >>> import numpy as np
    >>> field = np.zeros((40, 50), dtype=np.float32)
    >>> decompress(compress(field, "shuffle+lz4")).shape
    (40, 50)
    >>> compress(b"", "zpaq")
    Traceback (most recent call last):
        ...
    wirepress.errors.ParameterError: ...
    """
    return Compressor(recipe, **options).compress(data, dtype=dtype)


def decompress(frame: Any, out: Any = None, *, raw: bool = False, **options: Value) -> Any:
    """Expands one whole frame; bytes after its end are an error.

    Args:
        frame: any buffer.
        out: a writable C-contiguous buffer of at least the raw size, or an array of a CUDA device;
            it is filled and returned.
            An array of the frame's dtype, or of bytes or unsigned integers of that size, with rows
            as long as those of the frame's array, or flat. After an error its content is undefined.
        raw: give bytes even where the frame knows dtype and shape, and fill `out` in any shape.
        **options: as for `compress`; the recipe is in the frame.

    Returns:
        A NumPy array where the frame has a shape, else bytes; `out` where that is given.

    Raises:
        FrameError: the frame is damaged, cut short or unknown; the text names block and numbers.
        TooSmallError: `out` is smaller than the content.
        ParameterError: `out` is an array of another dtype or with other rows, or masked.
        ImportError: the frame holds an array and NumPy is missing.

    >>> decompress(compress(b"hello"))
    b'hello'
    >>> out = bytearray(5)
    >>> decompress(compress(b"hello"), out)
    bytearray(b'hello')
    """
    return Compressor(None, **options).decompress(frame, out, raw=raw)


def decompress_range(frame: Any, offset: int, size: int, **options: Value) -> bytes:
    """Expands `size` raw bytes from `offset`, touching just the blocks that hold them.

    >>> frame = compress(bytes(range(256)) * 1000, block_size=4096)
    >>> decompress_range(frame, 70000, 4)
    b'pqrs'
    """
    return Compressor(None, **options).decompress_range(frame, offset, size)


def inspect(frame: Any) -> Info:
    """What the header of a frame says. `frame` may be cut short after 64 bytes.

    >>> inspect(compress(b"hello" * 99, "lz4")).raw_size
    495
    """
    return Compressor().inspect(frame)


def codecs(*, kernels: bool = True) -> list[Codec]:
    """Every codec of this build, by id.

    Args:
        kernels: False leaves them out. Whether those of a GPU are usable is asked of its driver,
            after which CUDA_VISIBLE_DEVICES counts no more and forked children have no GPU.

    >>> [codec.name for codec in codecs()][0]
    'store'
    """
    return [
        Codec(*row, tuple(Param(*p) for p in params), tuple(Kernel(*k) for k in found))
        for *row, params, found in _core.codecs(kernels)
    ]


def engines() -> list[Engine]:
    """Every engine of this build, and why it cannot be used here if so: drivers are asked."""
    return [Engine(*row) for row in _core.engines()]


def engine_clocks(name: str) -> int:
    """Clock cycles that the kernels of an engine have taken in this process; 0: it has no clock.

    Raises ParameterError for an unknown engine.
    """
    names = _core.engine_names()
    if name in names:
        return int(_core.engine_clocks(names.index(name)))
    raise ParameterError(f'unknown engine "{name}"; known: {", ".join(names)}')


def options() -> list[Option]:
    """Every option of the library.

    >>> next(option.variable for option in options() if option.key == "block_size")
    'WIREPRESS_BLOCK_SIZE'
    """
    return [
        Option(key, kind, default, tuple(choices.split("|")) if choices else (), *rest)
        for key, kind, default, choices, *rest in _core.options()
    ]
