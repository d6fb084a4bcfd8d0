# SPDX-License-Identifier: Apache-2.0
"""CheckpointReader: loads what CheckpointWriter saved, on any number of ranks (spec/dcp.md)."""

from __future__ import annotations

import io
import itertools
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy

import torch
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem
from torch.distributed.checkpoint.storage import StorageReader
from torch.futures import Future
from wirepress import api, seals
from wirepress.arrays import unwritten
from wirepress.errors import CorruptError, FrameError, ParameterError, TruncatedError
from wirepress.torch import dcp_metadata
from wirepress.torch.dcp_metadata import DATA_MAGIC, Folder, Place, frame_dtype
from wirepress.torch.memory import as_array, as_bytes


class _Source:
    """A file of data, of which parts are read; `bytes_read` counts them."""

    def __init__(self, path: str, size: int) -> None:
        self._file, self.bytes_read = os.open(path, os.O_RDONLY | os.O_CLOEXEC), 0
        self._size = size

    def close(self) -> None:
        os.close(self._file)

    def check(self) -> None:
        size = os.fstat(self._file).st_size
        if size != self._size:
            raise TruncatedError(f"the file has {size} bytes, not {self._size}")
        if self.read(0, len(DATA_MAGIC)) != DATA_MAGIC:
            raise CorruptError("this is not a file of data of a checkpoint of version 1")

    def read(self, at: int, size: int) -> memoryview:
        data = unwritten(size)
        self.read_into(at, data)
        return data

    def read_into(self, at: int, memory: memoryview) -> None:
        while memory:
            done = os.preadv(self._file, [memory], at)
            if not done:
                raise TruncatedError(f"the file ends at {at}, {len(memory)} bytes too early")
            self.bytes_read += done
            memory, at = memory[done:], at + done


class _Decoder:
    """Reads items of a source, whole or in part."""

    def __init__(self, source: _Source, compressor: api.Compressor) -> None:
        self._source, self._compressor = source, compressor
        self._scratch = unwritten(0)

    def content(self, place: Place, dtype: str) -> memoryview:
        """All of an item."""
        self._frames(place, dtype)  # before there is memory of that size
        data = unwritten(place.raw)
        self.expand(place, dtype, 0, data)
        return data

    def expand(self, place: Place, dtype: str, begin: int, out: memoryview) -> None:
        """Fills `out` with the content of an item from byte `begin` on."""
        end = begin + out.nbytes
        for frame in self._frames(place, dtype):
            first, last = max(begin, frame.begin), min(end, frame.begin + frame.raw_size)
            if first < last or place.raw == 0:
                part = out[first - begin : last - begin]
                self._expand_frame(place.at + frame.at, frame, first - frame.begin, part)

    def _frames(self, place: Place, dtype: str) -> list[seals.Frame]:
        heads = bytes(self._source.read(place.at + place.size, place.heads))
        if seals.seal(heads) != place.seal:
            raise CorruptError("the heads of its frames do not match the seal in the metadata")
        frames = seals.frames_of(heads, self._compressor)
        size = sum(frame.size for frame in frames)
        raw = sum(frame.raw_size for frame in frames)
        types = {frame.dtype for frame in frames}
        if (size, raw, types) != (place.size, place.raw, {dtype}):
            raise CorruptError(
                f"its frames hold {raw} bytes of {' and '.join(sorted(types))} in {size}, the "
                f"metadata say {place.raw} of {dtype} in {place.size}"
            )
        return frames

    def _expand_frame(self, at: int, frame: seals.Frame, begin: int, out: memoryview) -> None:
        blocks = frame.covers(begin, begin + out.nbytes)
        if out.nbytes == frame.raw_size:
            memory = self._buffer(frame.size)
            self._source.read_into(at, memory)
            if memory[: frame.header_size] != frame.heads[: frame.header_size]:
                raise CorruptError("the header of a frame does not match its seal")
            self._check(frame, memory, blocks)
            self._compressor.decompress(memory, out)
            return
        # Blocks that are not wanted stay zeros, which the kernel gives no memory.
        memory = memoryview(numpy.zeros(frame.size, numpy.uint8))
        first, last = frame.places[blocks.start], frame.places[blocks.stop]
        self._source.read_into(at + first, memory[first:last])
        self._check(frame, memory, blocks)
        frame.fill(memory)
        out[:] = self._compressor.decompress_range(memory, begin, out.nbytes)

    def _check(self, frame: seals.Frame, memory: memoryview, blocks: range) -> None:
        if not frame.matches(memory, blocks):
            raise CorruptError("the head of a block does not match its seal")

    def _buffer(self, size: int) -> memoryview:
        if len(self._scratch) < size:
            self._scratch = unwritten(size)
        return self._scratch[:size]


def _strides(sizes: Sequence[int]) -> list[int]:
    """Of a tensor whose rows lie behind each other, in elements."""
    return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]


def _span(sizes: Sequence[int], offsets: Sequence[int], lengths: Sequence[int]) -> tuple[int, int]:
    """The first element of a box in a tensor of these sizes, and the one behind its last."""
    if 0 in lengths:
        return 0, 0
    strides = _strides(sizes)
    begin = sum(a * stride for a, stride in zip(offsets, strides, strict=True))
    last = sum((n - 1) * stride for n, stride in zip(lengths, strides, strict=True))
    return begin, begin + last + 1


def _bytes_of(tensor: torch.Tensor) -> memoryview | None:
    """The memory of a tensor, to be written to; None: it is not a plain row of bytes."""
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type == "cpu"
    if not plain or tensor.layout != torch.strided or not tensor.is_contiguous():
        return None
    if tensor.is_conj() or tensor.is_neg() or tensor.is_quantized:
        return None
    return memoryview(as_array(as_bytes(tensor)))


class CheckpointReader(StorageReader):
    """Loads by `dcp.load` what CheckpointWriter saved, on any number of ranks.

    Only the blocks are read and expanded that hold what a rank wants. An error names file and item;
    what was loaded before it stays in the state dict.

    Args:
        path: the folder.
        options: of `wirepress.Compressor`, such as `threads`.
    """

    def __init__(self, path: Folder, **options: Any) -> None:
        super().__init__()
        self.path, self._options = os.fspath(path), options
        api.Compressor(**options)
        self._metadata: Metadata | None = None
        self._sizes: dict[str, int] = {}
        self.bytes_read = 0
        """Of files of data, by this rank, in the last load."""

    def reset(self, checkpoint_id: Folder | None = None) -> None:
        if checkpoint_id:
            self.path = os.fspath(checkpoint_id)

    @property
    def checkpoint_id(self) -> str:
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Folder) -> bool:
        return FileSystemReader.validate_checkpoint_id(checkpoint_id)

    def read_metadata(self) -> Metadata:
        """
        Raises:
            FrameError: the metadata are damaged.
            FileNotFoundError: there is no complete checkpoint.
        """
        metadata, self._sizes = dcp_metadata.read(self.path)
        metadata.storage_meta = StorageMeta(checkpoint_id=self.path)
        return metadata

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        self._metadata, self.bytes_read = metadata, 0

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        wanted: dict[str, list[tuple[Place, ReadItem]]] = {}
        for item in plan.items:
            place = self._metadata.storage_data[item.storage_index]
            wanted.setdefault(place.file, []).append((place, item))
        compressor = api.Compressor(**self._options)
        for file, items in wanted.items():
            items.sort(key=lambda pair: pair[0].at)
            self._read_file(file, items, planner, compressor)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _read_file(
        self,
        file: str,
        items: Sequence[tuple[Place, ReadItem]],
        planner: LoadPlanner,
        compressor: api.Compressor,
    ) -> None:
        path = os.path.join(self.path, file)
        first = items[0][1].storage_index
        with self._opened(path, first, compressor) as decoder:
            for place, item in items:
                with _named(path, item.storage_index):
                    self._read_item(decoder, place, item, planner)

    @contextmanager
    def _opened(
        self, path: str, first: MetadataIndex, compressor: api.Compressor
    ) -> Iterator[_Decoder]:
        """A file of data; `first` is the item that an error of the file itself is told of."""
        with _named(path, first):
            source = _Source(path, self._sizes[os.path.basename(path)])
        try:
            with _named(path, first):
                source.check()
            yield _Decoder(source, compressor)
        finally:
            self.bytes_read += source.bytes_read
            source.close()

    def check(self) -> None:
        """Reads and expands every item of all ranks, and keeps none: no state dict is needed.

        Raises:
            FrameError: the checkpoint is damaged; the text names file and item.
            FileNotFoundError: there is no complete checkpoint.
        """
        metadata, compressor = self.read_metadata(), api.Compressor(**self._options)
        files: dict[str, list[tuple[MetadataIndex, Place]]] = {}
        for index, place in metadata.storage_data.items():
            files.setdefault(place.file, []).append((index, place))
        for file, items in files.items():
            path = os.path.join(self.path, file)
            with self._opened(path, items[0][0], compressor) as decoder:
                for index, place in items:
                    described = metadata.state_dict_metadata[index.fqn]
                    dtype = getattr(described, "properties", None)
                    with _named(path, index):
                        decoder.content(place, frame_dtype(dtype.dtype) if dtype else "bytes")

    def _read_item(
        self, decoder: _Decoder, place: Place, item: ReadItem, planner: LoadPlanner
    ) -> None:
        if item.type == LoadItemType.BYTE_IO:
            planner.load_bytes(item, io.BytesIO(decoder.content(place, "bytes")))
        else:
            self._read_tensor(decoder, place, item, planner)

    def _read_tensor(
        self, decoder: _Decoder, place: Place, item: ReadItem, planner: LoadPlanner
    ) -> None:
        index = item.storage_index
        described = self._metadata.state_dict_metadata[index.fqn]
        dtype, sizes = described.properties.dtype, _chunk_sizes(described, index)
        target = planner.resolve_tensor(item).detach()
        if target.shape != item.lengths:
            raise ParameterError(f"it is {tuple(target.shape)}, not {tuple(item.lengths)}")
        begin, end = _span(sizes, item.storage_offsets, item.lengths)
        memory = None
        if target.dtype == dtype and target.numel() == end - begin:
            memory = _bytes_of(target)
        out = memory if memory is not None else unwritten((end - begin) * dtype.itemsize)
        decoder.expand(place, frame_dtype(dtype), begin * dtype.itemsize, out)
        if memory is not None:
            torch.autograd.graph.increment_version(target)  # as copy_ does
        elif out:
            flat = torch.frombuffer(out, dtype=torch.uint8).view(dtype)
            target.copy_(flat.as_strided(tuple(item.lengths), _strides(sizes)))
        planner.commit_tensor(item, target)


def _chunk_sizes(described: Any, index: MetadataIndex) -> torch.Size:
    hint = described.chunks[index.index or 0 : (index.index or 0) + 1]
    for chunk in itertools.chain(hint, described.chunks):
        if chunk.offsets == index.offset:
            return chunk.sizes
    raise CorruptError(f"there is no chunk at {tuple(index.offset)}")


@contextmanager
def _named(path: str, index: MetadataIndex) -> Iterator[None]:
    """Puts file and item before the text of an error."""
    item = f"{'object' if index.offset is None else 'tensor'} {index.fqn}"
    try:
        yield
    except (FrameError, ParameterError) as error:
        raise type(error)(f"{path}: {item}: {error}") from None
    except FileNotFoundError:
        raise CorruptError(f"{path}: {item}: the file is not there") from None
