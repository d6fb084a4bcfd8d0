# SPDX-License-Identifier: Apache-2.0
"""CheckpointWriter: saves for torch.distributed.checkpoint, compressed, checked (spec/dcp.md)."""

from __future__ import annotations

import fnmatch
import itertools
import os
import queue
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem, WriteItemType
from torch.distributed.checkpoint.staging import BlockingAsyncStager
from torch.distributed.checkpoint.storage import StorageWriter, WriteResult
from torch.futures import Future
from wirepress import api, arrays, seals, wps
from wirepress.arrays import unwritten
from wirepress.errors import FrameError, ParameterError
from wirepress.torch import dcp_metadata
from wirepress.torch.dcp_metadata import DATA_MAGIC, DATA_NAME, NAME, Folder, Place, frame_dtype
from wirepress.torch.memory import as_array, as_bytes, foreign_kind

PIECE = 16 << 20  # bytes of content in a frame: what is coded while other bytes are written
_BUFFER, _BUFFERS = 4 << 20, 3
_SYNC = 32 << 20  # bytes after which the disk is made to begin


class _Sink:
    """A new file that a thread of its own writes while the next bytes are made."""

    def __init__(self, path: str) -> None:
        self.path, self.size = path, 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self._free: queue.SimpleQueue[memoryview] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[memoryview | None] = queue.SimpleQueue()
        for _ in range(_BUFFERS):
            self._free.put(unwritten(_BUFFER))
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
                self._buffer = unwritten(size)
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
    if kind := foreign_kind(tensor):
        raise ParameterError(f"tensor {name} is {kind}, which a checkpoint here cannot hold")
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return memoryview(as_array(as_bytes(plain)))


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
        path: Folder,
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

    def reset(self, checkpoint_id: Folder | None = None) -> None:
        if checkpoint_id:
            self.path = os.fspath(checkpoint_id)
        self._save_id = secrets.token_hex(8)

    @property
    def checkpoint_id(self) -> str:
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Folder) -> bool:
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
            self._clean(dcp_metadata.read(self.path)[1])
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
            return coder.code(name, _item_memory(name, data), frame_dtype(data.dtype))
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
