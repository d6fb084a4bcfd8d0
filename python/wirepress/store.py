# SPDX-License-Identifier: Apache-2.0
"""The frame store: time steps of a simulation go to memory or disk and come back in reverse."""

from __future__ import annotations

import dataclasses
import numbers
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from wirepress import _core, arrays, environment
from wirepress.errors import ParameterError
from wirepress.uncopied import Uncopied

POLICIES = ("memory", "disk", "compressed", "in-worker")
ON_ERROR = ("stop", "drop", "spill")


@dataclasses.dataclass(frozen=True, slots=True)
class StoreStats:
    """What a FrameStore did. Sizes are bytes, times seconds of wall clock."""

    puts: int
    gets: int
    raw_bytes: int
    stored_bytes: int
    read_ahead: int
    """Gets served from a buffer that was read ahead."""
    dropped: int
    spilled: int
    buffer_bytes: int
    put_wait_seconds: float
    """The producer waited for a buffer ..."""
    put_copy_seconds: float
    """... and copied to it."""
    get_wait_seconds: float
    """The consumer waited for its frame, reading included ..."""
    get_copy_seconds: float
    """... and copied it from a buffer."""
    longest_put_wait_seconds: float
    longest_get_wait_seconds: float
    compress_seconds: float
    write_seconds: float
    read_seconds: float
    expand_seconds: float

    @property
    def ratio(self) -> float:
        """Raw bytes per byte stored; 1.0 before anything was."""
        return self.raw_bytes / self.stored_bytes if self.stored_bytes else 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class StoreFrame:
    """A frame of a store: its record's place, and how long its put and its gets waited."""

    step: int
    stored_size: int
    offset: int
    put_wait_seconds: float
    get_wait_seconds: float


def _choice(name: str, value: str, known: Sequence[str]) -> int:
    if value not in known:
        raise ParameterError(f'{name} "{value}" is not one of {", ".join(known)}')
    return known.index(value)


def _step(step: Any) -> int:
    try:
        number = operator.index(step)
    except TypeError:
        whole = isinstance(step, numbers.Real) and float(step).is_integer()
        number = int(step) if whole else -1
    if not 0 <= number < 1 << 64:
        raise ParameterError(f"step {step!r} is not an integer from 0 to 2^64 - 1")
    return number


def path_text(path: str | bytes | os.PathLike[str]) -> str:
    """A path as the library takes it; ParameterError where it is no text (UTF-8), or empty."""
    name = os.fsdecode(path)
    if not name:
        raise ParameterError("the name of a store is empty")
    return arrays.text("the name of a store", name)


def _option(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _extents(name: str, extents: Sequence[int]) -> list[int]:
    if isinstance(extents, str) or not hasattr(extents, "__iter__"):
        raise ParameterError(f"{name} {extents!r} is not a sequence of whole numbers")
    return [arrays.whole(f"an extent of {name}", extent) for extent in extents]


def _numbers(name: str, values: Sequence[int]) -> list[int]:
    """Cores or nodes; the library says which there are."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise ParameterError(f"{name} {values!r} is not a sequence of whole numbers")
    return [arrays.whole(name, value, -(1 << 31), 1 << 31) for value in values]


class FrameStore(Uncopied):
    """Time steps of one shape and dtype, in memory or in one file (spec/store.md).

    `put` returns as soon as the frame lies in a buffer; servant threads compress and write it.
    `get` of neighbouring steps, and `reversed(store)`, are read ahead. Threads may share a store;
    a forked child may not, and is refused.

    Args:
        path: the file; None for policy "memory".
        shape: of a frame; None: open a store that exists.
        dtype: of a frame; None: float32. A store that exists has its own: another one is refused.
        recipe: for policies "compressed" and "in-worker"; None: the library's option.
        policy: "memory", "disk" (raw), "compressed" (by the servants) or "in-worker" (by the
            threads that call `put_tile` and `get_tile`, tile by tile, while it is in their cache).
        memory: bytes that buffers (policy "memory": frames) may take; None: for four frames (no
            limit).
        servants: threads.
        pin: cores, one for each servant in turn.
        direct: past the page cache (O_DIRECT), where the file system can.
        reserve: bytes of disk to allocate ahead of what is written.
        nodes: NUMA nodes, one for each servant in turn; buffers come from the first.
        engine: where compressing runs, such as "cpu" or, for deflate, "cpu:isal"; None: the
            library's option.
        options: more options for compressing, such as {"block_size": "1MiB"} (`wirepress options`).
        tile: extents of the boxes of `put_tile` and `get_tile`; None: about 256 KiB.
        mode: "x" makes a file, "a" appends to one, "r" reads; None: "x" with a shape, else "r".
        on_error: what happens to a frame that the file does not take. "stop": it is lost, and put
            and sync fail from then on; "drop": it is lost and counted; "spill": it stays in memory,
            and sync and close try again.

    >>> import numpy
    >>> with FrameStore(None, (2, 3), "float32", policy="memory") as store:
    ...     for step in range(3):
    ...         store.put(step, numpy.full((2, 3), step, "f4"))
    ...     [(step, float(frame[0, 0])) for step, frame in reversed(store)]
    [(2, 2.0), (1, 1.0), (0, 0.0)]
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        shape: Sequence[int] | None = None,
        dtype: Any = None,
        *,
        recipe: str | None = None,
        policy: str = "compressed",
        memory: int | None = None,
        servants: int = 1,
        pin: Sequence[int] = (),
        direct: bool = False,
        reserve: int = 0,
        nodes: Sequence[int] = (),
        engine: str | None = None,
        options: Mapping[str, object] | None = None,
        tile: Sequence[int] | None = None,
        mode: str | None = None,
        on_error: str = "stop",
    ) -> None:
        mode = mode or ("x" if shape is not None else "r")
        if mode not in ("x", "a", "r"):
            raise ParameterError(f'mode "{mode}" is not one of x, a, r')
        if (mode == "x") != (shape is not None):
            raise ParameterError("a shape is given for a new store (mode x), and for no other")
        if (path is None) != (policy == "memory"):
            raise ParameterError(f'path is {path!r}: policy "memory" has none, others need one')
        if policy == "memory" and mode != "x":
            raise ParameterError(
                'a store of policy "memory" has no file to be opened: give a shape'
            )
        whole, extents = arrays.whole, _extents("shape", () if shape is None else shape)
        if len(extents) > _core.MAX_DIMS:
            raise ParameterError(f"{len(extents)} dimensions: a frame has 0 to {_core.MAX_DIMS}")
        if whole("servants", servants) < 1:
            raise ParameterError(f"{servants} servants: at least one is needed")
        if direct not in (True, False):
            raise ParameterError(f"direct {direct!r} is neither True nor False")
        more = _core.StoreMore()
        more.engine = arrays.text("engine", engine or "")
        words = ((key, _option(value)) for key, value in dict(options or {}).items())
        more.options = [arrays.text("option", word) for pair in words for word in pair]
        more.nodes = _numbers("node", nodes)
        more.tile = _extents("tile", () if tile is None else tile)
        if more.tile and shape is not None and len(more.tile) != len(extents):
            raise ParameterError(
                f"tile {tuple(more.tile)} and shape {tuple(extents)} differ in length"
            )
        code = arrays.dtype_code("float32" if dtype is None else dtype)
        environment.check(3)
        self._store = _core.Store(
            "" if path is None else path_text(path),
            mode,
            code,
            extents,
            _choice("policy", policy, POLICIES),
            _choice("on_error", on_error, ON_ERROR),
            arrays.text("recipe", recipe or ""),
            whole("memory", memory or 0),
            min(whole("servants", servants), 1 << 30),
            _numbers("core", pin),
            bool(direct),
            whole("reserve", reserve),
            more,
        )
        self._dtype, self._shape = self._store.info()[:2]
        if dtype is not None and code != self._dtype:
            self.close()
            raise ParameterError(f"{path} holds {self.dtype}, not {arrays.DTYPES[code]}")

    _instead = "open its file again"

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a frame."""
        return tuple(self._shape)

    @property
    def dtype(self) -> str:
        """Of a frame."""
        return arrays.DTYPES[self._dtype]

    @property
    def torn_bytes(self) -> int:
        """Bytes at the end of the file that held no whole frame when it was opened."""
        return int(self._store.info()[5])

    @property
    def direct(self) -> bool:
        """Whether writes (of a store open only to read: reads) go past the page cache."""
        return bool(self._store.info()[7])

    def _view_of(self, array: Any) -> arrays.View:
        """An array; in a store of bytes one of uint8 is what `get` gives."""
        view = arrays.describe(array)
        if self._dtype == 0 and arrays.DTYPES[view.dtype] == "uint8":
            return view._replace(dtype=0)
        return view

    def _room(self, out: Any, shape: tuple[int, ...]) -> Any:
        """Memory of an output. One with dimensions has those of what it gets, for in others the
        rows would lie elsewhere; a flat one takes the values in a row."""
        theirs = tuple(getattr(out, "shape", ()))
        if len(theirs) > 1 and theirs != shape:
            raise ParameterError(
                f"out has shape {theirs}, what it is to hold {shape}: give that, or a flat buffer"
            )
        return arrays.room_of(out, self._dtype)

    def put(self, step: int, array: Any) -> None:
        """Takes a copy of a frame; waits only while all buffers are full."""
        view = self._view_of(array)
        if view.dtype != self._dtype or tuple(view.shape) != self.shape:
            raise ParameterError(
                f"step {step} is {arrays.DTYPES[view.dtype]} of shape {tuple(view.shape)}; the "
                f"store holds {self.dtype} of shape {self.shape}"
            )
        self._store.put(_step(step), view.buffer)

    def get(self, step: int, out: Any = None) -> Any:
        """The frame of a step, as a new NumPy array; or in `out`, of its shape or a flat buffer."""
        step = _step(step)
        if step not in self:
            raise KeyError(f"step {step} is not in the store, which has {len(self)} frames")
        if out is not None:
            self._store.get(step, self._room(out, self.shape))
            return out
        array, memory = arrays.empty(self._dtype, self.shape)
        self._store.get(step, memory)
        return array

    def tiles(self) -> list[tuple[slice, ...]]:
        """Where each tile lies in a frame: `frame[store.tiles()[n]]` is tile n."""
        places = (self._store.tile_at(tile) for tile in range(int(self._store.info()[8])))
        return [
            tuple(slice(at, at + n) for at, n in zip(first, shape, strict=True))
            for first, shape in places
        ]

    def put_tile(self, step: int, tile: int, array: Any) -> None:
        """Puts a part of a frame, from any thread; the frame is there when all were put.

        Until then it takes a buffer; close gives up on it. To begin one more frame than there are
        buffers (four, if `memory` says nothing) waits until one is complete, for ever if nobody
        completes it.
        """
        view = self._view_of(array)
        tile = arrays.whole("tile", tile)
        _, shape = self._store.tile_at(tile)
        if view.dtype != self._dtype or tuple(view.shape) != shape:
            raise ParameterError(
                f"tile {tile} of step {step} is {arrays.DTYPES[view.dtype]} of shape "
                f"{tuple(view.shape)}, not {self.dtype} of shape {shape}"
            )
        self._store.put_tile(_step(step), tile, view.buffer)

    def get_tile(self, step: int, tile: int, out: Any = None) -> Any:
        """A part of a frame, as a new NumPy array; or in `out`, of its shape or a flat buffer."""
        tile = arrays.whole("tile", tile)
        shape = tuple(self._store.tile_at(tile)[1])
        if out is not None:
            self._store.get_tile(_step(step), tile, self._room(out, shape))
            return out
        array, memory = arrays.empty(self._dtype, shape)
        self._store.get_tile(_step(step), tile, memory)
        return array

    def steps(self) -> list[int]:
        """The steps that the store has, in order."""
        return [frame.step for frame in self.frames()]

    def frames(self) -> list[StoreFrame]:
        """Every frame, by step."""
        return [StoreFrame(*row) for row in self._store.frames()]

    def stats(self) -> StoreStats:
        """What was done so far, and who waited how long."""
        return StoreStats(*self._store.stats())

    def sync(self) -> None:
        """Returns when every frame that was put is on stable storage."""
        self._store.sync()

    def close(self) -> None:
        """Writes what is queued and the index. Statistics stay readable."""
        self._store.close()

    def __len__(self) -> int:
        return int(self._store.info()[3])

    def __contains__(self, step: object) -> bool:
        try:
            number = _step(step)
        except ParameterError:
            return False
        row = self._store.frame_from(number)
        return row is not None and row[0] == number

    def _walk(self, steps: list[int], direction: int) -> Iterator[tuple[int, Any]]:
        if steps:
            self._store.prefetch(steps[0], direction)
        for step in steps:
            yield step, self.get(step)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """(step, frame), ascending."""
        return self._walk(self.steps(), 1)

    def __reversed__(self) -> Iterator[tuple[int, Any]]:
        """(step, frame), descending, read ahead."""
        return self._walk(self.steps()[::-1], -1)

    def __enter__(self) -> FrameStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except Exception:
            if error is None:  # else it would hide what went wrong first
                raise
