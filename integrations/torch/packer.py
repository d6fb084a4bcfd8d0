# SPDX-License-Identifier: Apache-2.0
"""Tensors of any dtype in CPU memory to messages and back: a frame, or the bytes where it is no
smaller."""

from __future__ import annotations

import atexit
import weakref
from typing import Any

import torch
import wirepress
from wirepress.errors import CorruptError, ParameterError, UnsupportedError
from wirepress.torch.memory import as_array

AUTO = "auto"
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
_HALVES = (torch.bfloat16, torch.float16)
# The same bytes in a type that NumPy has, and their name in wirepress.
_NAMES = {
    torch.float32: (torch.float32, "float32"),
    torch.float64: (torch.float64, "float64"),
    torch.bfloat16: (torch.int16, "bfloat16"),
    torch.float16: (torch.float16, "float16"),
    torch.complex64: (torch.float32, "float32"),
    torch.complex128: (torch.float64, "float64"),
    torch.int16: (torch.int16, "int16"),
    torch.int32: (torch.int32, "int32"),
    torch.int64: (torch.int64, "int64"),
}
_RAW, _FRAME = 0, 1  # the last byte of a message


def lossless_recipe(dtype: torch.dtype) -> str:
    """What "auto" stands for: floats lose nothing in `planes`, integers are often small ones."""
    if dtype.is_complex or dtype in FLOATS:
        return "planes"
    return "shuffle+lz4" if dtype in _NAMES else "lz4"


_ALIVE: weakref.WeakSet[Packer] = weakref.WeakSet()


@atexit.register
def _let_go() -> None:
    """Groups that nobody destroys outlive Python; the library's objects must not."""
    for packer in list(_ALIVE):
        packer.close()


class Packer:
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
        self.recipe = recipe
        self.seed, self._seed_step = seed, seed_step
        self._threads = threads
        _ALIVE.add(self)
        self._encoders: dict[tuple[torch.dtype, bool], tuple[Any, torch.dtype]] = {}
        self._decoder: Any = wirepress.Compressor(threads=threads)
        if recipe != AUTO:
            self._takes(torch.float32, complain=True)

    def close(self) -> None:
        """Frees memory; the packer cannot be used any more."""
        self._encoders.clear()
        self._decoder = None

    def lossless(self, dtype: torch.dtype) -> bool:
        """Whether messages of such tensors hold every bit, though loss is allowed."""
        encoder, carrier = self._encoder(dtype, True)
        name = _NAMES.get(carrier, (None, "bytes"))[1]
        return carrier == dtype and encoder.lossless(name)

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

        With a `residual` (float32), of `values + residual`; what the message does not carry is left
        there.
        """
        if not values.numel():
            return 0
        size = self._frame(values.detach().view(-1), out, lossy, residual)
        if residual is None and size >= values.nbytes:
            return self.pack_plain(values, out)
        out[size] = _FRAME
        return size + 1

    def pack_plain(self, values: torch.Tensor, out: torch.Tensor) -> int:
        """The same without trying to make it smaller."""
        size = values.nbytes
        if not size:
            return 0
        out[:size].copy_(as_bytes(values))
        out[size] = _RAW
        return size + 1

    def _frame(
        self, values: torch.Tensor, out: torch.Tensor, lossy: bool, residual: torch.Tensor | None
    ) -> int:
        wide = torch.float32 if residual is not None else values.dtype
        encoder, carrier = self._encoder(wide, lossy)
        if lossy:
            self.seed += self._seed_step
            encoder.set("seed", self.seed)
        if residual is not None:
            return encoder.compress_feedback_into(
                as_array(values.to(torch.float32)), as_array(residual), as_array(out)
            )
        array, name = _array(values.to(carrier))
        return encoder.compress_into(array, as_array(out), dtype=name)

    def unpack(self, message: torch.Tensor, out: torch.Tensor) -> None:
        """Expands a message to `out` (contiguous), which has the dtype that it was made of."""
        if not out.numel():
            return
        body = message[:-1]
        if message[-1] == _RAW:
            as_bytes(out).copy_(_whole(body, out.nbytes))
        else:
            self._expand(body, out.view(-1))

    def add(self, message: torch.Tensor, out: torch.Tensor, dtype: torch.dtype) -> None:
        """Adds a message that was made of floats of `dtype` to `out`."""
        if not out.numel():
            return
        if out.dtype == torch.float32 and message[-1] == _FRAME:
            body = as_array(message[:-1])
            info = self._decoder.inspect(body)
            if info.dtype == "float32":
                _check("bytes", info.raw_size, out.nbytes)
                self._decoder.decompress_add(body, as_array(out))
                return
        values = torch.empty_like(out, dtype=dtype)
        self.unpack(message, values)
        out.add_(values)

    def _expand(self, frame: torch.Tensor, out: torch.Tensor) -> None:
        info = self._decoder.inspect(as_array(frame))
        if info.raw_size == out.nbytes:
            self._decoder.decompress(as_array(frame), as_array(as_bytes(out)))
            return
        _check("bytes", info.raw_size, 4 * out.numel())  # halves that went as float32
        values = torch.empty_like(out, dtype=torch.float32)
        self._decoder.decompress(as_array(frame), as_array(values))
        out.copy_(values)

    def _encoder(self, dtype: torch.dtype, lossy: bool) -> tuple[Any, torch.dtype]:
        """A compressor for `dtype`, and the dtype that it takes it as."""
        key = dtype, lossy and self.recipe != AUTO and dtype in FLOATS
        if key not in self._encoders:
            made = self._lossy_encoder(dtype) if key[1] else None
            self._encoders[key] = made or (self._new(self._exact_recipe(dtype)), dtype)
        return self._encoders[key]

    def _lossy_encoder(self, dtype: torch.dtype) -> tuple[Any, torch.dtype] | None:
        if self._takes(dtype):
            return self._new(self.recipe), dtype
        return (self._new(self.recipe), torch.float32) if dtype in _HALVES else None

    def _exact_recipe(self, dtype: torch.dtype) -> str:
        """The recipe, where it loses nothing of such data."""
        if self.recipe != AUTO and self._takes(dtype):
            name = _NAMES.get(dtype, (None, "bytes"))[1]
            if self._new(self.recipe).lossless(name):
                return self.recipe
        return lossless_recipe(dtype)

    def _takes(self, dtype: torch.dtype, complain: bool = False) -> bool:
        array, name = _array(torch.zeros(1, dtype=dtype))
        try:
            self._new(self.recipe).compress(array, dtype=name)
        except (ParameterError, UnsupportedError):
            if complain:
                raise
            return False
        return True

    def _new(self, recipe: str) -> wirepress.Compressor:
        return wirepress.Compressor(recipe, threads=self._threads, checksum=False)


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of a contiguous tensor."""
    return tensor.detach().view(-1).view(torch.uint8)


def _array(values: torch.Tensor) -> tuple[Any, str]:
    """A NumPy array of the same memory, and the name of its type in wirepress."""
    if values.dtype not in _NAMES:
        return as_array(as_bytes(values)), "bytes"
    carrier, name = _NAMES[values.dtype]
    return as_array(values.detach().view(carrier)), name


def _whole(body: torch.Tensor, size: int) -> torch.Tensor:
    _check("bytes", body.numel(), size)
    return body


def _check(what: str, got: int | None, expected: int) -> None:
    if got != expected:
        raise CorruptError(f"the message holds {got} {what}, not {expected}")
