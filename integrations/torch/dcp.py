# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of torch.distributed.checkpoint, compressed and checked (spec/dcp.md)."""

from __future__ import annotations

import fnmatch
import importlib
import io
import itertools
import math
import os
import queue
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy

import torch
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.staging import BlockingAsyncStager
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future
from wirepress import api, arrays, seals, wps
from wirepress.errors import CorruptError, FrameError, ParameterError, TruncatedError
from wirepress.torch import dcp_metadata
from wirepress.torch.dcp_metadata import DATA_MAGIC, DATA_NAME, NAME, Place

PIECE = 16 << 20  # bytes of content in a frame: what is coded while other bytes are written
_BUFFER, _BUFFERS = 4 << 20, 3
_SYNC = 32 << 20  # bytes after which the disk is made to begin

_Path = str | os.PathLike[str]


# ---- writing --------------------------------------------------------------------------------


def _memory(size: int) -> memoryview:
    """New memory, which is not written to as that of a bytearray is."""
    return memoryview(numpy.empty(size, numpy.uint8))


class _Sink:
    """A new file that a thread of its own writes while the next bytes are made."""

    def __init__(self, path: str) -> None:
        self.path, self.size = path, 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self._free: queue.SimpleQueue[memoryview] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[memoryview | None] = queue.SimpleQueue()
        for _ in range(_BUFFERS):
            self._free.put(_memory(_BUFFER))
        self._buffer, self._used = self._free.get(), 0
        self._error: Exception | None = None
        self._unsynced = 0
        self._thread = threading.Thread(target=self._write_all, name="wirepress-checkpoint")
        self._thread.start()

    def room(self, size: int) -> memoryview:
        """Memory of at least `size` bytes for what comes next; then `took` says how many it has."""
        if self._used + size > len(self._buffer):
            self._pass_on()
            if size > len(self._buffer):
                self._buffer = _memory(size)
        return self._buffer[self._used :]

    def took(self, size: int) -> None:
        self._used += size
        self.size += size

    def put(self, data: bytes) -> None:
        self.room(len(data))[: len(data)] = data
        self.took(len(data))

    def _pass_on(self) -> None:
        self._full.put(self._buffer[: self._used])
        self._buffer, self._used = self._free.get(), 0
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Waits until all is on stable storage.

        Raises:
            OSError: from the file system.
        """
        self._full.put(self._buffer[: self._used])
        self._end()
        if self._error is not None:
            raise self._error
        wps.sync_folder(os.path.dirname(self.path))

    def discard(self) -> None:
        """Ends the thread and removes the file."""
        if self._thread.is_alive():
            self._end()
        with suppress(OSError):
            os.unlink(self.path)

    def _end(self) -> None:
        self._full.put(None)
        self._thread.join()

    def _write_all(self) -> None:
        for view in iter(self._full.get, None):
            if self._error is None:
                self._try(self._write, view)
            self._free.put(memoryview(view.obj))  # after an error, too: who writes may wait
        if self._error is None:
            self._try(os.fsync, self._file)
        os.close(self._file)

    def _try(self, call: Callable[[Any], object], argument: Any) -> None:
        try:
            call(argument)
        except OSError as error:
            self._error = OSError(error.errno, error.strerror, self.path)
        except Exception as error:
            self._error = error

    def _write(self, view: memoryview) -> None:
        while view:
            done = os.write(self._file, view[:_SYNC])
            view, self._unsynced = view[done:], self._unsynced + done
            if self._unsynced >= _SYNC:  # else all of it would wait for the end
                os.fdatasync(self._file)
                self._unsynced = 0


def _item_memory(name: str, tensor: torch.Tensor) -> memoryview:
    """The bytes of a tensor, row by row."""
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        raise ParameterError(f"{name} is a {type(tensor).__name__}, not a plain tensor")
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
        kind = "quantized" if tensor.is_quantized else "meta" if tensor.is_meta else tensor.layout
        raise ParameterError(f"tensor {name} is {kind}, which a checkpoint here cannot hold")
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return memoryview(plain.reshape(-1).view(torch.uint8).numpy())


def _frame_dtype(dtype: torch.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    name = {"float8_e4m3fn": "float8_e4m3"}.get(name, name)
    return name if name in arrays.DTYPES else "bytes"


def _block_size(raw_size: int) -> int:
    """A 64th of an item, so that half of it is read at little more than its share; but blocks of
    less than 64 KiB would cost bytes and time, and of more than 512 KiB gain nothing."""
    return min(max(1 << 16, 1 << (raw_size // 64 | 1).bit_length() - 1), 1 << 19)


class _Coder:
    """Makes the frames of items; keeps a compressor for each recipe and size of blocks."""

    def __init__(
        self, recipe: str, rules: Mapping[str, str], options: Mapping[str, Any], sink: _Sink
    ) -> None:
        self._recipe, self._rules, self._sink = recipe, rules, sink
        self._options = {**options, "checksum": True}
        self._made: dict[tuple[str, str, int], api.Compressor] = {}
        self.raw_size = 0

    def _compressor(self, name: str, dtype: str, raw_size: int) -> api.Compressor:
        recipe = next(
            (self._rules[rule] for rule in self._rules if fnmatch.fnmatchcase(name, rule)),
            self._recipe,
        )
        key = wps.recipe_for(dtype, recipe), dtype, _block_size(raw_size)
        if key not in self._made:
            made = api.Compressor(key[0], **{"block_size": key[2], **self._options})
            made.lossless(dtype)  # raises where the recipe does not take it
            self._made[key] = made
        return self._made[key]

    def code(self, name: str, memory: memoryview, dtype: str) -> Place:
        """Writes an item to the sink: its frames, then their heads."""
        compressor, sink = self._compressor(name, dtype, memory.nbytes), self._sink
        code, at = arrays.dtype_code(dtype), sink.size
        heads = []
        for begin in range(0, memory.nbytes or 1, PIECE):
            piece = memory[begin : begin + PIECE]
            view = arrays.View(piece, code, 1, (piece.nbytes // arrays.dtype_size(code),))
            room = sink.room(compressor.bound(piece.nbytes))
            size = compressor.compress_view_into(view, room)
            heads.append(seals.heads_of(room[:size], compressor))
            sink.took(size)
        size, joined = sink.size - at, b"".join(heads)
        sink.put(joined)
        self.raw_size += memory.nbytes
        file = os.path.basename(sink.path)
        return Place(file, at, size, len(joined), seals.seal(joined), memory.nbytes)


def _make_folder(path: str) -> None:
    """A folder and those above it, whose names are on stable storage."""
    if not os.path.isdir(path):
        _make_folder(os.path.dirname(path))
        with suppress(FileExistsError):  # another rank made it
            os.mkdir(path)
        wps.sync_folder(os.path.dirname(path))


class CheckpointWriter(StorageWriter, BlockingAsyncStager):
    """Saves by `dcp.save` and `dcp.async_save` what CheckpointReader loads.

    A file of data for each rank, a frame for each item, lossless by default. The checkpoint that
    was in the folder can be loaded until the new one is complete; then its files are removed, and
    those that killed saves left. Give each checkpoint that is to stay a folder of its own.

    Args:
        path: a folder of a file system that all ranks see; it is made.
        recipe: of floating-point tensors. A lossy one must be named here or in `rules`: no option
            of the environment selects it. Other items are always lossless.
        rules: recipes by pattern of names (fnmatch), such as `{"optim.*exp_avg_sq": "bx:m=7"}`; the
            first that fits counts, before `recipe`.
        overwrite: whether there may be a checkpoint in the folder.
        options: of `wirepress.Compressor`, such as `threads`, which async_save shares with the
            training: `threads=1` takes one core from it.
    """

    def __init__(
        self,
        path: _Path,
        recipe: str = "planes",
        *,
        rules: Mapping[str, str] | None = None,
        overwrite: bool = True,
        **options: Any,
    ) -> None:
        StorageWriter.__init__(self)
        BlockingAsyncStager.__init__(self)  # async_save copies as for FileSystemWriter
        for each in (recipe, *(rules or {}).values()):
            api.Compressor(each, **options)  # raises now rather than after the state was staged
        self.path = os.fspath(path)
        self._recipe, self._rules, self._options = recipe, dict(rules or {}), options
        self._overwrite, self._rank, self._save_id = overwrite, 0, secrets.token_hex(8)
        self.raw_bytes = self.stored_bytes = 0
        """Of the last save, of this rank."""

    def reset(self, checkpoint_id: _Path | None = None) -> None:
        if checkpoint_id:
            self.path = os.fspath(checkpoint_id)
        self._save_id = secrets.token_hex(8)

    @property
    def checkpoint_id(self) -> str:
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: _Path) -> bool:
        return FileSystemWriter.validate_checkpoint_id(checkpoint_id)

    def storage_meta(self) -> StorageMeta:
        return StorageMeta(checkpoint_id=self.path, save_id=self._save_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if not kwargs.get("use_collectives", True):
            raise ParameterError("a checkpoint here has one metadata file: use_collectives=True")
        self._rank = kwargs.get("rank") or 0

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        _make_folder(os.path.abspath(self.path))
        if not self._overwrite and os.path.exists(os.path.join(self.path, NAME)):
            raise ParameterError(f"{self.path} holds a checkpoint, and overwrite is False")
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        self._check_rules(plans)
        # No rank writes before this returns, so what the checkpoint does not name is left over.
        with suppress(FrameError, FileNotFoundError):
            self._clean(_read_metadata(self.path)[1])
        return plans

    def _check_rules(self, plans: Sequence[SavePlan]) -> None:
        if not all(getattr(plan, "usable", True) for plan in plans):
            return  # the planner remembers them, and they were checked
        names = {item.index.fqn for plan in plans for item in plan.items}
        for rule in self._rules:
            if not any(fnmatch.fnmatchcase(name, rule) for name in names):
                first = min(names, default="")
                raise ParameterError(f'the rule "{rule}" fits no item, such as "{first}"')

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        name = f"{self._rank}-{secrets.token_hex(8)}.wpd"
        sink = _Sink(os.path.join(self.path, name))
        try:
            sink.put(DATA_MAGIC)
            coder = _Coder(self._recipe, self._rules, self._options, sink)
            results = [self._write(coder, item, planner) for item in plan.items]
            sink.close()
        except BaseException:
            sink.discard()
            raise
        self.raw_bytes, self.stored_bytes = coder.raw_size, sink.size
        if not results:
            os.unlink(sink.path)
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def _write(self, coder: _Coder, item: WriteItem, planner: SavePlanner) -> WriteResult:
        data, name = planner.resolve_data(item), item.index.fqn
        if item.type == WriteItemType.BYTE_IO:
            place = coder.code(name, data.getbuffer(), "bytes")
        else:
            place = self._write_tensor(coder, item, data)
        return WriteResult(item.index, place.size + place.heads, place)

    def _write_tensor(self, coder: _Coder, item: WriteItem, data: torch.Tensor) -> Place:
        name, described = item.index.fqn, item.tensor_data
        planned = described.properties.dtype, described.chunk.sizes
        if (data.dtype, data.shape) != planned:
            raise ParameterError(
                f"tensor {name} is {data.dtype} {tuple(data.shape)}, the planner said "
                f"{planned[0]} {tuple(planned[1])}"
            )
        try:
            return coder.code(name, _item_memory(name, data), _frame_dtype(data.dtype))
        except ParameterError as error:
            raise ParameterError(f"tensor {name}: {error}") from None

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        places: dict[MetadataIndex, Place] = {}
        sizes: dict[str, int] = {}
        for result in itertools.chain.from_iterable(results):
            place = places[result.index] = result.storage_data
            sizes[place.file] = max(place.end, sizes.get(place.file, 0))
        for name, size in sizes.items():
            self._check_file(name, size)
        content = dcp_metadata.to_bytes(metadata, places, sizes)
        with wps.whole_file(os.path.join(self.path, NAME)) as file:
            file.write(content)
        metadata.storage_data, metadata.storage_meta = places, self.storage_meta()
        self._clean(sizes)

    def _check_file(self, name: str, size: int) -> None:
        path = os.path.join(self.path, name)
        try:
            there = os.stat(path).st_size
        except FileNotFoundError:
            there = -1
        if there != size:
            raise ParameterError(
                f"{path} is not there with {size} bytes: another save uses the folder, or not all "
                f"ranks see it"
            )

    def _clean(self, named: Iterable[str]) -> None:
        """Removes what a checkpoint of these files does not need."""
        for name in os.listdir(self.path):
            temporary = name.startswith(f".{NAME}.") and name.endswith(".part")
            if temporary or (DATA_NAME.fullmatch(name) and name not in named):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.path, name))


# ---- reading --------------------------------------------------------------------------------


def _read_metadata(folder: str) -> tuple[Metadata, dict[str, int]]:
    path = os.path.join(folder, NAME)
    with open(path, "rb") as file:
        data = file.read()
    try:
        return dcp_metadata.from_bytes(data)
    except FrameError as error:
        raise type(error)(f"{path}: {error}") from None


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

    def read(self, at: int, size: int) -> bytearray:
        data = bytearray(size)
        self.read_into(at, memoryview(data))
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
        self._scratch = _memory(0)

    def content(self, place: Place, dtype: str) -> bytearray:
        """All of an item."""
        self._frames(place, dtype)  # before there is memory of that size
        data = bytearray(place.raw)
        self.expand(place, dtype, 0, memoryview(data))
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
            self._scratch = _memory(size)
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
    return memoryview(tensor.reshape(-1).view(torch.uint8).numpy())


class CheckpointReader(StorageReader):
    """Loads by `dcp.load` what CheckpointWriter saved, on any number of ranks.

    Only the blocks are read and expanded that hold what a rank wants. An error names file and item;
    what was loaded before it stays in the state dict.

    Args:
        path: the folder.
        options: of `wirepress.Compressor`, such as `threads`.
    """

    def __init__(self, path: _Path, **options: Any) -> None:
        super().__init__()
        self.path, self._options = os.fspath(path), options
        api.Compressor(**options)
        self._metadata: Metadata | None = None
        self._sizes: dict[str, int] = {}
        self.bytes_read = 0
        """Of files of data, by this rank, in the last load."""

    def reset(self, checkpoint_id: _Path | None = None) -> None:
        if checkpoint_id:
            self.path = os.fspath(checkpoint_id)

    @property
    def checkpoint_id(self) -> str:
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: _Path) -> bool:
        return FileSystemReader.validate_checkpoint_id(checkpoint_id)

    def read_metadata(self) -> Metadata:
        """
        Raises:
            FrameError: the metadata are damaged.
            FileNotFoundError: there is no complete checkpoint.
        """
        metadata, self._sizes = _read_metadata(self.path)
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
                        decoder.content(place, _frame_dtype(dtype.dtype) if dtype else "bytes")

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
        out = memory if memory is not None else _memory((end - begin) * dtype.itemsize)
        decoder.expand(place, _frame_dtype(dtype), begin * dtype.itemsize, out)
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


# ---- by checkpoint_id -----------------------------------------------------------------------


class Registration:
    """What `register_dcp` changed; `remove` takes it back."""

    def __init__(self, writer: Callable[[_Path], Any], reader: Callable[[_Path], Any]) -> None:
        self._module = _choosing_module()
        self._before = {name: getattr(self._module, name) for name in _CLASSES}
        for name, make in zip(_CLASSES, (writer, reader), strict=True):
            setattr(self._module, name, _chosen(make))

    def remove(self) -> None:
        for name, before in self._before.items():
            setattr(self._module, name, before)


_CLASSES = ("FileSystemWriter", "FileSystemReader")


def _choosing_module() -> Any:
    """Where PyTorch chooses by `checkpoint_id`, which is not public."""
    try:
        module = importlib.import_module("torch.distributed.checkpoint._storage_utils")
    except ImportError:
        module = None
    if not all(hasattr(module, name) for name in _CLASSES):
        raise ParameterError(
            f"PyTorch {torch.__version__} does not choose writers and readers where others do: "
            f"give dcp.save a CheckpointWriter and dcp.load a CheckpointReader"
        )
    return module


def _chosen(make: Callable[[_Path], Any]) -> Any:
    """What PyTorch takes for a class of storage."""
    make.validate_checkpoint_id = FileSystemWriter.validate_checkpoint_id  # type: ignore
    return make


def _is_pickled(path: _Path) -> bool:
    try:
        with open(os.path.join(path, NAME), "rb") as file:
            return file.read(1) == b"\x80"
    except FileNotFoundError:
        return False


def register_dcp(
    recipe: str = "planes", *, rules: Mapping[str, str] | None = None, **options: Any
) -> Registration:
    """From now on `dcp.save(state, checkpoint_id=folder)`, `async_save` and `load`, which are given
    no writer and no reader, use CheckpointWriter and CheckpointReader, of this process.

    Folders that PyTorch's FileSystemWriter saved are loaded as before, and so is what has an
    address such as `s3://`, which is saved as before, too.

    Args:
        recipe, rules, options: as for CheckpointWriter; options of the reader as well.

    Returns:
        A handle whose `remove()` takes it back.
    """
    CheckpointWriter("", recipe, rules=rules, **options)  # raises where they are wrong

    def writer(path: _Path) -> CheckpointWriter:
        return CheckpointWriter(path, recipe, rules=rules, **options)

    def reader(path: _Path) -> StorageReader:
        return FileSystemReader(path) if _is_pickled(path) else CheckpointReader(path, **options)

    return Registration(writer, reader)
