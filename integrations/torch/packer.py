# SPDX-License-Identifier: Apache-2.0
"""Tensors of any dtype to messages in CPU memory and back: a frame, or the bytes where it is no
smaller. Tensors of a CUDA device are coded there, and their messages alone are copied."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import wirepress
from wirepress import arrays
from wirepress.errors import ParameterError, UnsupportedError
from wirepress.torch import memory
from wirepress.torch.batches import Batches
from wirepress.torch.coder import Begun, LibraryCoder, Row, check_size, size_of, wait_for
from wirepress.torch.memory import (
    FLOATS,
    HALVES,
    as_array,
    as_bytes,
    as_gradient,
    as_memory,
    as_type,
    on_device,
    stream_of,
)

AUTO = "auto"
_RAW, _FRAME = 0, 1  # the last byte of a message


@functools.cache
def _named(dtype: torch.dtype) -> tuple[torch.dtype, str] | None:
    """A type of the same bytes that NumPy has, and the name that codecs know; None: as bytes."""
    real = dtype.to_real() if dtype in (torch.complex64, torch.complex128) else dtype
    name = str(real).removeprefix("torch.")
    if name not in arrays.DTYPES or real.itemsize == 1 or not real.is_signed:
        return None
    return torch.int16 if real == torch.bfloat16 else real, name


def _name(dtype: torch.dtype) -> str:
    named = _named(dtype)
    return named[1] if named else "bytes"


def lossless_recipe(dtype: torch.dtype) -> str:
    """What "auto" stands for: floats lose nothing in `planes`, integers are often small ones."""
    if dtype.is_complex or dtype in FLOATS:
        return "planes"
    return "shuffle+lz4" if _named(dtype) else "lz4"


class Packer(LibraryCoder):
    """Makes messages of tensors and expands them; for one thread at a time.

    Args:
        recipe: for floats where loss is allowed; "auto": without loss.
        threads: that encode and decode.
        seed, seed_step: what codecs that round at random draw from, and what it grows by; different
            on all ranks.

    Raises:
        ParameterError: no such recipe, or one that takes no floats.
    """

    def __init__(
        self, recipe: str = AUTO, *, threads: int = 1, seed: int = 0, seed_step: int = 1
    ) -> None:
        super().__init__(recipe, threads)
        self.seed, self._seed_step = seed, seed_step
        self._encoders: dict[tuple[torch.dtype, bool], tuple[Any, torch.dtype]] = {}
        self._batches = Batches()
        if recipe != AUTO:
            self._takes(torch.float32, complain=True)

    def close(self) -> None:
        super().close()
        self._encoders.clear()
        self._batches.close()

    def lossless(self, dtype: torch.dtype) -> bool:
        """Whether messages of such tensors hold every bit, though loss is allowed."""
        encoder, carrier = self._encoder(dtype, True)
        return carrier == dtype and encoder.lossless(_name(carrier))

    def bound(self, values: torch.Tensor) -> int:
        """The largest message of `values`, in bytes."""
        # With a residual, halves go as float32; every encoder has the same overhead a block.
        size = values.numel() * max(4, values.dtype.itemsize)
        encoders = [self._encoder(values.dtype, lossy)[0] for lossy in (False, True)]
        return max(encoder.bound(size) for encoder in encoders) + 1

    def pack(
        self,
        values: torch.Tensor,
        out: torch.Tensor,
        *,
        lossy: bool = False,
        residual: torch.Tensor | None = None,
    ) -> int:
        """Writes a message of `values` (contiguous) to `out` (uint8); returns its size.

        With a `residual` (float32), of `values + residual`, where `values` are of `GRADIENTS`; what
        the message does not carry is left there.
        """
        return size_of(self._begin(values, out, lossy, residual))

    def pack_all(
        self,
        parts: Sequence[torch.Tensor | None],
        out: torch.Tensor,
        *,
        lossy: bool = False,
        residuals: Sequence[torch.Tensor] | None = None,
        plain: bool = False,
    ) -> list[int]:
        """`pack` of several, one behind the other in `out`, which has their bounds; returns their
        sizes. None: no message, of 0 bytes. A device makes them as one job.

        `plain`: without trying to make them smaller.
        """
        row = Row(out)
        for number, part in enumerate(parts):
            if part is None:
                row.add(lambda _: 0, 0)
            elif plain:
                row.add(functools.partial(self._plain, part), self.bound(part))
            else:
                left = residuals[number] if residuals else None
                begin = functools.partial(self._begin, part, lossy=lossy, residual=left)
                row.add(begin, self.bound(part))
        return row.close()

    def _begin(
        self,
        values: torch.Tensor,
        out: torch.Tensor,
        lossy: bool,
        residual: torch.Tensor | None,
    ) -> int | Begun:
        if not values.numel():
            return 0

        def finished(size: int) -> int:
            if residual is None and size >= values.nbytes:
                return self._plain(values, out)
            out[size] = _FRAME
            return size + 1

        begun = self._frame(values.detach().view(-1), out, lossy, residual)
        return finished(begun) if isinstance(begun, int) else _Then(begun, finished)

    def _plain(self, values: torch.Tensor, out: torch.Tensor) -> int:
        size = values.nbytes
        if not size:
            return 0
        out[:size].copy_(as_bytes(values))
        out[size] = _RAW
        return size + 1

    def _frame(
        self, values: torch.Tensor, out: torch.Tensor, lossy: bool, residual: torch.Tensor | None
    ) -> int | Begun:
        wide = torch.float32 if residual is not None else values.dtype
        encoder, carrier = self._encoder(wide, lossy)
        if lossy:
            self.seed += self._seed_step
        target, left = as_array(out), None
        if residual is None:
            source, name = _array(as_type(values, carrier))
        else:
            (source, name), left = as_gradient(values), as_memory(residual)
        if on_device(values):
            return self._batches.add(
                (encoder, name),
                stream_of(values),
                lambda pieces, stream: encoder.compress_pieces_async(
                    pieces, dtype=name, stream=stream
                ),
                (source, left, target, self.seed),
            )
        if lossy:
            encoder.set("seed", self.seed)
        if residual is None:
            return encoder.compress_into(source, target, dtype=name)
        return encoder.compress_feedback_into(source, left, target, dtype=name)

    def unpack(self, message: torch.Tensor, out: torch.Tensor) -> None:
        """Expands a message to `out` (contiguous), which has the dtype that it was made of."""
        if not out.numel():
            return
        body = message[:-1]
        if message[-1] == _RAW:
            check_size("message", body.numel(), out.nbytes)
            as_bytes(out).copy_(body)
        else:
            self._expand(body, out.view(-1))

    def unpack_all(
        self, messages: Sequence[torch.Tensor], outs: Sequence[torch.Tensor | None]
    ) -> None:
        """`unpack` of several, but for those whose place is None; a device does it as one job."""
        begun, decoder = [], self._decoder

        def begin(pieces: list[Any], stream: int | None) -> wirepress.Job:
            return decoder.decompress_pieces_async(pieces, stream=stream)

        for message, out in zip(messages, outs, strict=True):
            if out is not None and self._suits_job(message, out):
                piece = as_array(message[:-1]), as_memory(as_bytes(out))
                begun.append(self._batches.add("expand", stream_of(out), begin, piece))
            elif out is not None:
                self.unpack(message, out)
        wait_for(begun)

    def _suits_job(self, message: torch.Tensor, out: torch.Tensor) -> bool:
        """Whether a device expands a message to where it belongs."""
        if not out.numel() or not on_device(out) or message[-1] != _FRAME:
            return False
        return self._decoder.inspect(as_array(message[:-1])).raw_size == out.nbytes

    def add_all(
        self, messages: Sequence[torch.Tensor], out: torch.Tensor, dtype: torch.dtype
    ) -> None:
        """Adds messages that were made of floats of `dtype` to `out`. One follows the other only
        when that is there, whoever expanded it."""
        if not out.numel():
            return
        self._decoder.set_stream(stream_of(out))
        for message in messages:
            if self._adds_up(message, out):
                self._decoder.decompress_add(as_array(message[:-1]), as_memory(out))
            else:
                values = memory.room_beside(out, dtype)
                self.unpack(message, values)
                out.add_(values)

    def _adds_up(self, message: torch.Tensor, out: torch.Tensor) -> bool:
        """Whether a message is a frame that the library adds to `out`."""
        if out.dtype != torch.float32 or message[-1] != _FRAME:
            return False
        info = self._decoder.inspect(as_array(message[:-1]))
        if info.dtype != "float32":
            return False
        check_size("message", info.raw_size, out.nbytes)
        return True

    def _expand(self, frame: torch.Tensor, out: torch.Tensor) -> None:
        info = self._decoder.inspect(as_array(frame))
        self._decoder.set_stream(stream_of(out))
        if info.raw_size == out.nbytes:
            self._decoder.decompress(as_array(frame), as_memory(as_bytes(out)))
            return
        check_size("message", info.raw_size, 4 * out.numel())  # halves that went as float32
        values = memory.room_beside(out, torch.float32)
        self._decoder.decompress(as_array(frame), as_memory(values))
        out.copy_(values)

    def _encoder(self, dtype: torch.dtype, lossy: bool) -> tuple[Any, torch.dtype]:
        """A compressor for `dtype`, and the dtype that it takes it as."""
        key = dtype, lossy and self.recipe != AUTO and dtype in FLOATS
        if key not in self._encoders:
            made = self._lossy_encoder(dtype) if key[1] else None
            self._encoders[key] = made or (self._new_encoder(self._exact_recipe(dtype)), dtype)
        return self._encoders[key]

    def _lossy_encoder(self, dtype: torch.dtype) -> tuple[Any, torch.dtype] | None:
        if self._takes(dtype):
            return self._new_encoder(self.recipe), dtype
        return (self._new_encoder(self.recipe), torch.float32) if dtype in HALVES else None

    def _exact_recipe(self, dtype: torch.dtype) -> str:
        """The recipe, where it loses nothing of such data."""
        if self.recipe == AUTO or not self._takes(dtype):
            return lossless_recipe(dtype)
        exact = self._new_encoder(self.recipe).lossless(_name(dtype))
        return self.recipe if exact else lossless_recipe(dtype)

    def _takes(self, dtype: torch.dtype, complain: bool = False) -> bool:
        array, name = _array(torch.zeros(1, dtype=dtype, device="cpu"))
        try:
            self._new_encoder(self.recipe).compress(array, dtype=name)
        except (ParameterError, UnsupportedError):
            if complain:
                raise
            return False
        return True


class _Then:
    """What is done with a size, once it is known."""

    def __init__(self, begun: Begun, finished: Callable[[int], int]) -> None:
        self._begun, self._finished = begun, finished

    def result(self) -> int:
        return self._finished(size_of(self._begun))


def _array(values: torch.Tensor) -> tuple[Any, str]:
    """The same memory, as the library takes it, and the name of its type there."""
    named = _named(values.dtype)
    if named is None:
        return as_memory(as_bytes(values)), "bytes"
    return as_memory(values.detach().view(named[0])), named[1]
