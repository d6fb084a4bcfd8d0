# SPDX-License-Identifier: Apache-2.0
"""Chunks of datasets coded by threads, past HDF5's filter pipeline, which runs one at a time.

HDF5 itself only moves frames (`write_direct_chunk`, `read_direct_chunk`). What is written so is
what the filter would have written.
"""

from __future__ import annotations

import itertools
import os
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import h5py
import numpy as np

from wirepress import _core, arrays
from wirepress.api import Compressor
from wirepress.chunks import DEFAULT_RECIPE
from wirepress.errors import CorruptError, ParameterError
from wirepress.hdf5.filter import FILTER

Box = tuple[slice, ...]


class _Chunks:
    """The chunks of a dataset that has our filter and no other."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        plist = dataset.id.get_create_plist()
        filters = [plist.get_filter(i) for i in range(plist.get_nfilters())]
        if [row[0] for row in filters] != [FILTER]:
            names = ", ".join(row[3].decode() or str(row[0]) for row in filters) or "none"
            raise ParameterError(
                f"dataset {dataset.name}: its filters are {names}, and this needs wirepress alone; "
                f"use dataset[...]"
            )
        if not dataset.id.get_type().equal(h5py.h5t.py_create(dataset.dtype, logical=True)):
            raise ParameterError(
                f"dataset {dataset.name}: {dataset.dtype} in memory is not what the file holds; "
                f"use dataset[...]"
            )
        self.dataset = dataset
        self.shape: tuple[int, ...] = dataset.chunks
        self.size = int(np.prod(self.shape)) * dataset.dtype.itemsize
        self._parse(filters[0][2])
        self._mine = threading.local()

    def _parse(self, values: tuple[int, ...]) -> None:
        """cd_values: the recipe, and how the filter describes a chunk to it."""
        text = struct.pack(f"<{len(values)}I", *values)[4:]
        self._recipe = text[: values[0]].decode() if values else ""
        rest = values[1 + -(-values[0] // 4) :] if values else ()
        if not rest:
            self._view = (arrays.dtype_code("uint8"), _core.NO_SHAPE, (self.size,))
            return
        shape = tuple(rest[1 : 1 + (rest[0] >> 8)])
        self._view = (rest[0] & 0xFF, len(shape), shape)

    def _compressor(self) -> Compressor:
        """That of this thread."""
        if not hasattr(self._mine, "compressor"):
            compressor = Compressor(self._recipe or None, threads=1)
            if compressor.option("recipe")[1] == "default":
                compressor.set("recipe", DEFAULT_RECIPE)
            self._mine.compressor = compressor
        return self._mine.compressor

    def within(self, box: Box) -> Iterator[tuple[tuple[int, ...], Box, Box]]:
        """Of every chunk that meets a box: where it begins, that part of it, and of the box."""
        starts = [
            range(side.start // n * n, side.stop, n)
            for side, n in zip(box, self.shape, strict=True)
        ]
        for start in itertools.product(*starts):
            mine, theirs = [], []
            for at, n, side in zip(start, self.shape, box, strict=True):
                low, high = max(at, side.start), min(at + n, side.stop)
                mine.append(slice(low - at, high - at))
                theirs.append(slice(low - side.start, high - side.start))
            yield start, tuple(mine), tuple(theirs)

    def encode(self, part: np.ndarray) -> bytes:
        """The frame of a chunk of which only a part lies within the dataset."""
        if part.shape != self.shape:
            whole = np.full(self.shape, self.dataset.fillvalue, self.dataset.dtype)
            whole[tuple(slice(n) for n in part.shape)] = part
            part = whole
        memory = np.ascontiguousarray(part).reshape(-1).view(np.uint8)
        return self._compressor().compress_view(arrays.View(memory, *self._view))

    def decode(self, stored: bytes, raw: bool, start: tuple[int, ...], chunk: np.ndarray) -> None:
        """Fills a chunk with what is stored; `raw`: the filter was left out."""
        size = len(stored) if raw else self._compressor().inspect(stored).raw_size
        if size != self.size:
            raise CorruptError(
                f"dataset {self.dataset.name}: the chunk at {start} holds {size} bytes, a chunk "
                f"has {self.size}"
            )
        memory = chunk.reshape(-1).view(np.uint8)
        if raw:
            memory[:] = np.frombuffer(stored, np.uint8)
        else:
            self._compressor().decompress(stored, memory)


def _items(region: Any, n_dims: int) -> list[Any]:
    """A region as an index for each dimension."""
    items = list(region) if isinstance(region, tuple) else [region]
    if Ellipsis in items:
        at = items.index(Ellipsis)
        items[at : at + 1] = [slice(None)] * (n_dims - len(items) + 1)
    return items + [slice(None)] * (n_dims - len(items))


def _box(region: Any, shape: tuple[int, ...], name: str) -> tuple[Box, tuple[int, ...]]:
    """A region as slices, and the shape of what it selects."""
    items = _items(region, len(shape))
    if len(items) != len(shape):
        raise ParameterError(f"dataset {name}: {len(items)} indices for shape {shape}")
    box, selected = [], []
    for item, n in zip(items, shape, strict=True):
        if isinstance(item, slice):
            low, high, step = item.indices(n)
            if step != 1:
                raise ParameterError(f"dataset {name}: a step of {step}; only 1 is known")
            box.append(slice(low, max(low, high)))
            selected.append(max(0, high - low))
        else:
            low = int(item) + n * (int(item) < 0)
            if not 0 <= low < n:
                raise ParameterError(f"dataset {name}: index {item} of {n}")
            box.append(slice(low, low + 1))
    return tuple(box), tuple(selected)


def _in_turn(jobs: Iterator[Callable[[], Any]], threads: int | None) -> Iterator[Any]:
    """What jobs return, in their order, done by threads; few are ahead of the one awaited."""
    n = threads or len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(n, "wirepress-hdf5") as pool:
        ahead: deque[Future[Any]] = deque()
        try:
            for job in jobs:
                ahead.append(pool.submit(job))
                if len(ahead) > 2 * n:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()


def write(
    dataset: h5py.Dataset, data: Any, region: Any = ..., *, threads: int | None = None
) -> None:
    """`dataset[region] = data`, coded by threads.

    Args:
        dataset: chunked, with the filter of `options` and no other.
        data: an array of the region's shape; other types are converted.
        region: whole chunks, that is: it begins and ends between chunks, or where the dataset ends.
            Integers and slices of step 1.
        threads: None: as many as this process may use.

    Raises:
        ParameterError: the dataset has other filters, the shape is not the region's, or the region
            would cut a chunk. Nothing is written.
    """
    chunks = _Chunks(dataset)
    box, selected = _box(region, dataset.shape, dataset.name)
    array = np.asarray(data, dataset.dtype)
    if array.shape != selected:
        raise ParameterError(
            f"dataset {dataset.name}: the data have shape {array.shape}, the region {selected}"
        )
    for axis, (side, n, end) in enumerate(zip(box, chunks.shape, dataset.shape, strict=True)):
        if side.start % n or (side.stop % n and side.stop != end):
            raise ParameterError(
                f"dataset {dataset.name}: {side.start} to {side.stop} cuts a chunk in dimension "
                f"{axis}, where chunks have {n}; use dataset[...]"
            )
    array = array.reshape([side.stop - side.start for side in box])
    places = list(chunks.within(box))
    jobs = (lambda there=there: chunks.encode(array[there]) for _, _, there in places)
    frames = _in_turn(jobs, threads)
    for (start, _, _), frame in zip(places, frames, strict=True):
        dataset.id.write_direct_chunk(start, frame)


def read(
    dataset: h5py.Dataset, region: Any = ..., out: Any = None, *, threads: int | None = None
) -> np.ndarray:
    """`dataset[region]`, expanded by threads.

    Args:
        dataset: chunked, with the filter of `options` and no other.
        region: integers and slices of step 1; it may cut chunks.
        out: an array of the region's shape and the dataset's type, which is filled and returned.
        threads: None: as many as this process may use.

    Raises:
        ParameterError: the dataset has other filters, or `out` does not fit.
        FrameError: a chunk is damaged.
    """
    chunks = _Chunks(dataset)
    box, selected = _box(region, dataset.shape, dataset.name)
    if out is None:
        out = np.empty(selected, dataset.dtype)
    elif out.shape != selected or out.dtype != dataset.dtype:
        raise ParameterError(
            f"dataset {dataset.name}: out is {out.shape} {out.dtype}, the region {selected} "
            f"{dataset.dtype}"
        )
    # gives back the dimensions that integers took
    axes = [slice(None) if isinstance(item, slice) else None for item in _items(region, len(box))]
    for _ in _in_turn(_reads(chunks, box, out[tuple(axes)]), threads):
        pass
    return out


def _reads(chunks: _Chunks, box: Box, out: np.ndarray) -> Iterator[Callable[[], None]]:
    """Fetches chunk after chunk (HDF5 serves one thread at a time), and says what is left to do."""
    dataset = chunks.dataset
    for start, here, there in chunks.within(box):
        if dataset.id.get_chunk_info_by_coord(start).byte_offset is None:
            out[there] = dataset.fillvalue
            continue
        left_out, stored = dataset.id.read_direct_chunk(start)

        def expand(
            start: Any = start, here: Box = here, there: Box = there, stored: Any = stored,
            raw: bool = bool(left_out & 1),
        ) -> None:  # fmt: skip
            part = out[there]
            if part.shape == chunks.shape and part.flags.c_contiguous:
                chunks.decode(stored, raw, start, part)
            else:
                chunk = np.empty(chunks.shape, dataset.dtype)
                chunks.decode(stored, raw, start, chunk)
                part[...] = chunk[here]

        yield expand
