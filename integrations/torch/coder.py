# SPDX-License-Identifier: Apache-2.0
"""Recipes on tensors: gradients to frames of float32 in CPU memory, and back. Values of a CUDA
device are coded there, and only their frames are copied."""

from __future__ import annotations

import atexit
import contextlib
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import torch
import wirepress
from wirepress.errors import CorruptError
from wirepress.torch.batches import Batches
from wirepress.torch.memory import (
    as_array,
    as_bytes,
    as_floats,
    as_gradient,
    as_memory,
    on_device,
    room_on_cpu,
    stream_of,
)
from wirepress.torch.recipes import SPARSE_BYTES, is_sparse, needs_feedback, sparse_share

_ALIVE: weakref.WeakSet[LibraryCoder] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """A thread that waits for a dead rank, or a group that nobody destroys, outlives Python; the
    library's objects must not."""
    for coder in list(_ALIVE):
        coder.close()


class LibraryCoder:
    """A recipe with the library's objects for it, which are gone before Python ends."""

    def __init__(self, recipe: str, threads: int) -> None:
        self.recipe, self._threads = recipe, threads
        _ALIVE.add(self)
        self._decoder: Any = wirepress.Compressor(threads=threads)

    def close(self) -> None:
        """Frees memory; the coder cannot be used any more."""
        self._decoder = None

    def _new_encoder(self, recipe: str, checksum: bool = False) -> Any:
        return wirepress.Compressor(recipe, threads=self._threads, checksum=checksum)


class Begun(Protocol):
    """Work that goes on while the program does other things, as `wirepress.Job`."""

    def result(self) -> Any:
        """Waits for it, and raises what it failed with."""


def size_of(begun: int | Begun) -> int:
    """The size of a frame, once it is there."""
    return begun if isinstance(begun, int) else int(begun.result())


def wait_for(all_begun: Iterable[Begun | None]) -> None:
    """Waits for what has begun, but for what was done at once (None)."""
    for begun in all_begun:
        if begun is not None:
            begun.result()


class Row:
    """Bytes one behind the other in `room` (uint8, of the CPU), whose sizes may come later."""

    def __init__(self, room: torch.Tensor) -> None:
        self._room, self._next = room, 0
        self._begun: list[tuple[int, int | Begun]] = []  # where each begins, and its size

    def add(self, begin: Callable[[torch.Tensor], int | Begun], most: int) -> None:
        """The next ones: `begin` writes them, at most `most`, or has somebody write them."""
        begun = begin(self._room[self._next :])
        self._begun.append((self._next, begun))
        self._next += begun if isinstance(begun, int) else most

    def close(self) -> list[int]:
        """Waits for all, and closes the gaps between them; returns their sizes."""
        memory, sizes, end = as_array(self._room), [], 0
        for start, begun in self._begun:
            sizes.append(size := size_of(begun))
            if start != end:
                memory[end : end + size] = memory[start : start + size]
            end += size
        return sizes


def check_size(what: str, got: int | None, expected: int) -> None:
    """Raises CorruptError where a frame or message holds more or less than there is room for."""
    if got != expected:
        raise CorruptError(f"the {what} holds {got} bytes, not {expected}")


class _Waiting:
    """What coders begin, with the wait for it."""

    begin_encode: Callable[..., int | Begun]
    begin_decode: Callable[[torch.Tensor, torch.Tensor], Begun | None]
    begin_decode_add: Callable[[torch.Tensor, torch.Tensor], Begun | None]

    def encode(
        self,
        values: torch.Tensor,
        out: torch.Tensor,
        residual: torch.Tensor | None = None,
        seed: int = 0,
    ) -> int:
        """Writes a frame of `values` (1-D, of `GRADIENTS`) to `out` (uint8); returns its size.

        With a `residual` (float32), of `values + residual`; what the frame does not carry is left
        there. `seed`: what codecs that round at random draw from.
        """
        return size_of(self.begin_encode(values, out, residual, seed))

    def decode(self, frame: torch.Tensor, out: torch.Tensor) -> None:
        """Expands a frame of as many float32 values as `out` has, which has float32."""
        wait_for([self.begin_decode(frame, out)])

    def decode_add(self, frame: torch.Tensor, out: torch.Tensor) -> None:
        """Adds what a frame holds to `out`."""
        wait_for([self.begin_decode_add(frame, out)])


class Coder(_Waiting, LibraryCoder):
    """A recipe, with its settings and its memory; calls from several threads wait for each other.

    Args:
        recipe: codecs in order, "int8" or "terngrad+trits"; see `wirepress.codecs`.
        threads: that encode and decode.
        checksum: of every block; the transports below have their own.

    Raises:
        ParameterError: no such recipe, or it does not take float32.
    """

    def __init__(self, recipe: str, *, threads: int = 1, checksum: bool = False) -> None:
        super().__init__(recipe, threads)
        self._encoder = self._new_encoder(recipe, checksum)
        # what parsing cannot see is said now
        self._encoder.compress(as_array(torch.zeros(1, dtype=torch.float32, device="cpu")))
        self._batches = Batches()
        self.lossless: bool = self._encoder.lossless("float32")
        self.sparse = is_sparse(recipe)

    def close(self) -> None:
        super().close()
        self._encoder = None
        self._batches.close()

    @property
    def wants_feedback(self) -> bool:
        """Whether error feedback is used unless the user says otherwise."""
        return not self.lossless and needs_feedback(self.recipe)

    def bound(self, n: int) -> int:
        """The largest frame of `n` values, in bytes."""
        return self._encoder.bound(4 * n)

    def begin_encode(
        self,
        values: torch.Tensor,
        out: torch.Tensor,
        residual: torch.Tensor | None = None,
        seed: int = 0,
    ) -> int | Begun:
        """`encode`; on a device what says the size, behind the work of the current stream. Until
        then all tensors are its own. What a thread begins before it waits is done together."""
        target = as_array(out)
        source, name = as_gradient(as_floats(values) if residual is None else values)
        if not on_device(values):
            self._encoder.set("seed", seed)
            if residual is None:
                return self._encoder.compress_into(source, target)
            return self._encoder.compress_feedback_into(
                source, as_memory(residual), target, dtype=name
            )
        encoder = self._encoder
        return self._batches.add(
            ("encode", name),
            stream_of(values),
            lambda pieces, stream: encoder.compress_pieces_async(pieces, dtype=name, stream=stream),
            (source, None if residual is None else as_memory(residual), target, seed),
        )

    def begin_decode(self, frame: torch.Tensor, out: torch.Tensor) -> Begun | None:
        """`decode`; None where it is done. Else both tensors are the work's own until then."""
        source, room = self._sized(frame, out), as_memory(out)
        if on_device(out):
            return self._expand(False, source, room, stream_of(out))
        self._decoder.decompress(source, room)
        return None

    def begin_decode_add(self, frame: torch.Tensor, out: torch.Tensor) -> Begun | None:
        """`decode_add`, as `begin_decode`."""
        source, room = self._sized(frame, out), as_memory(out)
        if on_device(out):
            return self._expand(True, source, room, stream_of(out))
        self._decoder.decompress_add(source, room)
        return None

    def _expand(self, add: bool, frame: Any, room: Any, stream: int | None) -> Begun:
        decoder = self._decoder
        return self._batches.add(
            ("add" if add else "expand", ""),
            stream,
            lambda pieces, stream: decoder.decompress_pieces_async(pieces, add=add, stream=stream),
            (frame, room),
        )

    def _sized(self, frame: torch.Tensor, out: torch.Tensor) -> Any:
        """The frame's memory, if it holds as much as there is room for."""
        memory = as_array(frame)
        check_size("frame", self._decoder.inspect(memory).raw_size, out.nbytes)
        return memory


class PlainCoder(_Waiting):
    """Values as float32, as they are, for tensors that are too small to be worth a frame. Those of
    a device go by one copy."""

    recipe, lossless, sparse, wants_feedback = "none", True, False, False

    def __init__(self) -> None:
        self._batches = Batches()

    def bound(self, n: int) -> int:
        return 4 * n

    def begin_encode(
        self,
        values: torch.Tensor,
        out: torch.Tensor,
        residual: torch.Tensor | None = None,
        seed: int = 0,
    ) -> int | Begun:
        size = 4 * values.numel()
        if on_device(values):
            return self._batches.add("fetch", stream_of(values), _Fetched, (values, out[:size]))
        out[:size].copy_(as_bytes(as_floats(values)))
        return size

    def begin_decode(self, frame: torch.Tensor, out: torch.Tensor) -> Begun | None:
        check_size("frame", frame.numel(), out.nbytes)
        if on_device(out):
            return self._batches.add("put", stream_of(out), _Put, (frame, out))
        as_bytes(out).copy_(frame)
        return None

    def begin_decode_add(self, frame: torch.Tensor, out: torch.Tensor) -> Begun | None:
        check_size("frame", frame.numel(), out.nbytes)
        if on_device(out):
            return self._batches.add("add", stream_of(out), _Added, (frame, out))
        values = torch.empty_like(out)
        as_bytes(values).copy_(frame)
        out.add_(values)
        return None


PLAIN = PlainCoder()


def _on(stream: int | None, values: torch.Tensor) -> contextlib.AbstractContextManager[Any]:
    """The stream of a batch, whichever its thread is on when it begins."""
    if stream is None or stream == stream_of(values):
        return contextlib.nullcontext()
    return torch.cuda.stream(torch.cuda.ExternalStream(stream, values.device))


class _Fetched:
    """Values of a device that a copy brings to their places in memory of the CPU."""

    def __init__(self, pieces: list[Any], stream: int | None) -> None:
        self._places = [place for _, place in pieces]
        self._sizes = [place.numel() for place in self._places]
        self._row, self._passed = room_on_cpu(sum(self._sizes), pieces[0][0]), None
        with _on(stream, pieces[0][0]):
            values = torch.cat([as_floats(each).view(-1) for each, _ in pieces])
            self._row.copy_(as_bytes(values), non_blocking=True)
            if values.is_cuda:
                self._passed = torch.cuda.current_stream(values.device).record_event()

    def result(self) -> list[int]:
        if self._passed:
            self._passed.synchronize()
        if self._places:
            for place, part in zip(self._places, self._row.split(self._sizes), strict=True):
                place.copy_(part)
            self._places = []
        return self._sizes


class _Put:
    """Frames that a copy brings to a device, in the order of its stream."""

    def __init__(self, pieces: list[Any], stream: int | None) -> None:
        outs = [out.view(-1) for _, out in pieces]
        self._sizes = [out.nbytes for out in outs]
        row = room_on_cpu(sum(self._sizes), outs[0])
        torch.cat([frame for frame, _ in pieces], out=row)
        with _on(stream, outs[0]):
            there = row.view(torch.float32).to(outs[0].device, non_blocking=True)
            self._place(outs, there.split([out.numel() for out in outs]))

    def _place(self, outs: list[torch.Tensor], values: Sequence[torch.Tensor]) -> None:
        torch._foreach_copy_(outs, values)

    def result(self) -> list[int]:
        return self._sizes


class _Added(_Put):
    """The same, added to what is there."""

    def _place(self, outs: list[torch.Tensor], values: Sequence[torch.Tensor]) -> None:
        torch._foreach_add_(outs, values)


AnyCoder = Coder | PlainCoder


def sum_coder(coder: AnyCoder, n_ranks: int, threads: int) -> AnyCoder:
    """What the sum of `n_ranks` frames is sent with.

    The sum of sparse ones holds at most so many times their values: top-k with that share sends all
    of them as they are. Where that would take more than 2 bytes a value, the sum is dense: bf16.
    """
    if isinstance(coder, PlainCoder):
        return coder
    if not coder.sparse:
        return Coder(coder.recipe, threads=threads)
    share = n_ranks * sparse_share(coder.recipe)
    if share * SPARSE_BYTES > 2:
        return Coder("bf16", threads=threads)
    return Coder(f"topk:ratio={1.001 * share:.4g}", threads=threads)  # recipes have 4 digits


def gather_is_smaller(coder: AnyCoder, n_ranks: int) -> bool:
    """Which algorithm of `exchange` sends fewer bytes; gather where they are equal: fewer errors.

    With frames of c bytes, a rank sends (n - 1) c in gather, and (n - 1) / n (c + c') in scatter,
    c' being the frames of sums: as large as c for dense formats, n times c for sparse ones up to
    where these become dense.
    """
    if not coder.sparse:
        return n_ranks <= 2
    frame = sparse_share(coder.recipe) * SPARSE_BYTES
    return n_ranks * frame <= frame + min(n_ranks * frame, 2)
