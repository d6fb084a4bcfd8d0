# SPDX-License-Identifier: Apache-2.0
"""Recipes on tensors: gradients to frames of float32 in CPU memory, and back. Values of a CUDA
device are coded there, and only their frames are copied."""

from __future__ import annotations

import atexit
import weakref
from typing import Any

import torch
import wirepress
from wirepress.errors import CorruptError
from wirepress.torch.memory import as_array, as_floats, as_gradient, as_memory, stream_of
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


def check_size(what: str, got: int | None, expected: int) -> None:
    """Raises CorruptError where a frame or message holds more or less than there is room for."""
    if got != expected:
        raise CorruptError(f"the {what} holds {got} bytes, not {expected}")


class Coder(LibraryCoder):
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
        self._encoder.compress(as_array(torch.zeros(1)))  # what parsing cannot see is said now
        self.lossless: bool = self._encoder.lossless("float32")
        self.sparse = is_sparse(recipe)

    def close(self) -> None:
        super().close()
        self._encoder = None

    @property
    def wants_feedback(self) -> bool:
        """Whether error feedback is used unless the user says otherwise."""
        return not self.lossless and needs_feedback(self.recipe)

    def bound(self, n: int) -> int:
        """The largest frame of `n` values, in bytes."""
        return self._encoder.bound(4 * n)

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
        self._encoder.set("seed", seed)
        self._encoder.set_stream(stream_of(values))
        target = as_array(out)
        if residual is None:
            return self._encoder.compress_into(as_memory(as_floats(values)), target)
        source, name = as_gradient(values)
        return self._encoder.compress_feedback_into(source, as_memory(residual), target, dtype=name)

    def decode(self, frame: torch.Tensor, out: torch.Tensor) -> None:
        """Expands a frame of as many float32 values as `out` has, which has float32."""
        info = self._decoder.inspect(as_array(frame))
        check_size("frame", info.raw_size, out.nbytes)
        self._decoder.set_stream(stream_of(out))
        self._decoder.decompress(as_array(frame), as_memory(out))

    def decode_add(self, frame: torch.Tensor, out: torch.Tensor) -> None:
        """Adds what a frame holds to `out`."""
        self._decoder.set_stream(stream_of(out))
        n = self._decoder.decompress_add(as_array(frame), as_memory(out))
        check_size("frame", 4 * n, out.nbytes)


class PlainCoder:
    """Values as float32, as they are, for tensors that are too small to be worth a frame."""

    recipe, lossless, sparse, wants_feedback = "none", True, False, False

    def bound(self, n: int) -> int:
        return 4 * n

    def encode(
        self,
        values: torch.Tensor,
        out: torch.Tensor,
        residual: torch.Tensor | None = None,
        seed: int = 0,
    ) -> int:
        size = 4 * values.numel()
        out[:size].copy_(as_floats(values).view(torch.uint8))
        return size

    def decode(self, frame: torch.Tensor, out: torch.Tensor) -> None:
        check_size("frame", frame.numel(), out.nbytes)
        out.view(torch.uint8).copy_(frame)

    def decode_add(self, frame: torch.Tensor, out: torch.Tensor) -> None:
        values = torch.empty_like(out)
        self.decode(frame, values)
        out.add_(values)


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
