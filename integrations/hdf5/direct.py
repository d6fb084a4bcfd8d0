# SPDX-License-Identifier: Apache-2.0
"""Chunks of datasets coded by threads, past HDF5's filter pipeline, which runs one at a time.

HDF5 itself only moves frames (`write_direct_chunk`, `read_direct_chunk`). What is written so is
what the filter would have written.
"""

from __future__ import annotations

import ctypes
import itertools
import operator
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


def _leaves_borders_raw(plist: h5py.h5p.PropDCID) -> bool:
    """H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS, which h5py cannot be asked for: its HDF5 can."""
    get = getattr(ctypes.CDLL(h5py.h5p.__file__), "H5Pget_chunk_opts", None)
    options = ctypes.c_uint(0)
    with h5py._objects.phil:  # ctypes lets go of the interpreter's lock, and HDF5 has none
        known = get is not None and get(ctypes.c_int64(plist.id), ctypes.byref(options)) >= 0
    return known and bool(options.value & 2)


class _Chunks:
    """The chunks of a dataset that has our filter and no other."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        if not isinstance(dataset, h5py.Dataset):
            raise TypeError(f"an h5py.Dataset is needed, not {type(dataset).__name__}")
        plist = dataset.id.get_create_plist()
        filters = [plist.get_filter(i) for i in range(plist.get_nfilters())]
        if [row[0] for row in filters] != [FILTER]:
            names = ", ".join(row[3].decode() or str(row[0]) for row in filters) or "none"
            raise ParameterError(
                f"dataset {dataset.name}: its filters are {names}, and this needs wirepress alone; "
                f"use dataset[...]"
            )
        if _leaves_borders_raw(plist):
            raise ParameterError(
                f"dataset {dataset.name}: its chunks that reach beyond its end are not filtered "
                f"(H5Pset_chunk_opts); use dataset[...]"
            )
        if dataset.dtype.hasobject:
            raise ParameterError(
                f"dataset {dataset.name}: strings of any length, sequences and references lie "
                f"outside of its chunks; use dataset[...]"
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
        if part.shape[: len(self.shape)] != self.shape:
            whole = np.empty(self.shape, self.dataset.dtype)
            whole[...] = self.dataset.fillvalue
            whole[tuple(slice(n) for n in part.shape[: len(self.shape)])] = part
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
    dots = [at for at, item in enumerate(items) if item is Ellipsis]
    if len(dots) == 1:
        items[dots[0] : dots[0] + 1] = [slice(None)] * (n_dims - len(items) + 1)
    return items + [slice(None)] * (n_dims - len(items))


def _box(region: Any, shape: tuple[int, ...], name: str) -> tuple[Box, tuple[int, ...]]:
    """A region as slices, and the shape of what it selects."""
    items = _items(region, len(shape))
    if len(items) != len(shape):
        raise ParameterError(f"dataset {name}: {len(items)} indices for shape {shape}")
    for item in items:
        if not isinstance(item, slice) and not hasattr(item, "__index__"):
            raise ParameterError(
                f"dataset {name}: an index is an integer or a slice here, not a "
                f"{type(item).__name__}; use dataset[...]"
            )
    box, selected = [], []
    for item, n in zip(items, shape, strict=True):
        if isinstance(item, slice):
            low, high, step = item.indices(n)
            if step != 1:
                raise ParameterError(f"dataset {name}: a step of {step}; only 1 is known")
            box.append(slice(low, max(low, high)))
            selected.append(max(0, high - low))
        else:
            try:
                index = operator.index(item)
            except TypeError:  # an array has __index__, and is one only where it has one element
                raise ParameterError(
                    f"dataset {name}: an array of indices is not known here; use dataset[...]"
                ) from None
            low = index + n * (index < 0)
            if not 0 <= low < n:
                raise ParameterError(f"dataset {name}: index {index} of {n}")
            box.append(slice(low, low + 1))
    return tuple(box), tuple(selected)


def _elements(dataset: h5py.Dataset, data: Any) -> np.ndarray:
    """The data as the dataset's type, converted as `dataset[...] = data` would: by HDF5, which
    clips what an integer cannot hold, where NumPy would wrap it around."""
    if isinstance(data, np.ma.MaskedArray):
        raise ParameterError("a masked array would lose its mask: write array.filled(value)")
    kind = dataset.dtype
    if isinstance(data, np.ndarray):
        data = np.asarray(data)  # a matrix keeps two dimensions
    if not isinstance(data, np.ndarray) or data.dtype == kind:
        # a type of arrays is the last dimensions of its elements
        return np.asarray(data, kind.base)
    try:
        theirs, ours = h5py.h5t.py_create(data.dtype), h5py.h5t.py_create(kind.base)
        if data.dtype == kind.base or theirs.equal(ours):
            return np.ascontiguousarray(data).reshape(data.shape).view(kind.base)
        compound = h5py.h5t.COMPOUND in (theirs.get_class(), ours.get_class())
        if compound and (data.dtype.kind, kind.base.kind) != ("c", "c"):
            raise TypeError("write records by dataset[...], which converts them")
        size, n = kind.base.itemsize, data.size
        room = np.empty(n * max(size, data.dtype.itemsize), np.uint8)
        room[: data.nbytes] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        if n:
            h5py.h5t.convert(theirs, ours, n, room)
        return room[: n * size].view(kind.base).reshape(data.shape)
    except (OSError, TypeError, ValueError) as error:
        raise ParameterError(
            f"dataset {dataset.name} holds {kind}, the data are {data.dtype}, which are not "
            f"converted here: {error}"
        ) from None


def _pool_size(threads: int | None) -> int:
    return arrays.whole("threads", threads or 0) or len(os.sched_getaffinity(0))


def _in_turn(jobs: Iterator[Callable[[], Any]], threads: int | None) -> Iterator[Any]:
    """What jobs return, in their order, done by threads; few are ahead of the one awaited."""
    n = _pool_size(threads)
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
        data: an array of the region's shape; other types are converted as `dataset[region] =` does.
        region: whole chunks, that is: it begins and ends between chunks, or where the dataset ends.
            Integers and slices of step 1.
        threads: None: as many as this process may use.

    Raises:
        ParameterError: the dataset has other filters or elements that lie outside of its chunks,
            the shape is not the region's, HDF5 does not convert the type, or the region would cut a
            chunk. Nothing is written.
    """
    chunks = _Chunks(dataset)
    box, selected = _box(region, dataset.shape, dataset.name)
    array, inner = _elements(dataset, data), dataset.dtype.shape
    if array.shape != selected + inner:
        raise ParameterError(
            f"dataset {dataset.name}: the data have shape {array.shape}, the region "
            f"{selected + inner}"
        )
    for axis, (side, n, end) in enumerate(zip(box, chunks.shape, dataset.shape, strict=True)):
        if side.start % n or (side.stop % n and side.stop != end):
            raise ParameterError(
                f"dataset {dataset.name}: {side.start} to {side.stop} cuts a chunk in dimension "
                f"{axis}, where chunks have {n}; use dataset[...]"
            )
    array = array.reshape([*(side.stop - side.start for side in box), *inner])
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
    elif not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        raise ParameterError(
            f"dataset {dataset.name}: out is a {type(out).__name__}, not a plain NumPy array"
        )
    elif (out.shape, out.dtype) != (selected + dataset.dtype.shape, dataset.dtype.base):
        raise ParameterError(
            f"dataset {dataset.name}: out is {out.shape} {out.dtype}, the region {selected} "
            f"{dataset.dtype}"
        )
    elif not out.flags.writeable:
        raise ParameterError(f"dataset {dataset.name}: out cannot be written to")
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
