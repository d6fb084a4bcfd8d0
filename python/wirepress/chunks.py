# SPDX-License-Identifier: Apache-2.0
"""Chunks of NumPy arrays as frames, for the array formats (Zarr, HDF5) that store them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from wirepress import arrays
from wirepress.api import Compressor
from wirepress.arrays import DEFAULT_RECIPE, fold
from wirepress.errors import CorruptError, ParameterError

__all__ = ["DEFAULT_RECIPE", "ChunkCoder", "kinds"]


def kinds(dtype: np.dtype[Any]) -> list[tuple[str, int]]:
    """As what the elements can be described to codecs, best first, and how many such each is.

    Complex numbers are pairs of floats to a codec that knows no complex ones. What is no number of
    this machine (text, records, dates, the other byte order) is described as unsigned integers,
    which no lossy codec takes.
    """
    if dtype.hasobject:
        raise ParameterError(
            f"dtype {dtype} holds references to objects, which are not in its bytes"
        )
    if dtype.itemsize == 0:
        raise ParameterError(f"dtype {dtype} has no bytes")
    name = arrays.numpy_name(dtype)
    if name in arrays.DTYPES:
        if dtype.kind == "c":
            return [(name, 1), (f"float{4 * dtype.itemsize}", 2)]
        return [(name, 1)]
    if dtype.itemsize in (2, 4, 8) and dtype.kind in "iufMm":
        return [(f"uint{8 * dtype.itemsize}", 1)]
    return [("uint8", dtype.itemsize)]


class ChunkCoder:
    """Makes frames of chunks with one recipe, and chunks of any frame. Threads may share it.

    Args:
        recipe: as for `Compressor`; it is checked here.
        block_size, checksum: those options; None: their defaults.
        threads: that work on one chunk. 1 by default, as the formats call for chunks in parallel.
    """

    def __init__(
        self,
        recipe: str,
        block_size: int | str | None = None,
        checksum: bool | None = None,
        threads: int = 1,
    ) -> None:
        self._arguments = recipe, block_size, checksum, threads
        self._mine = threading.local()
        self._kinds: dict[np.dtype[Any], tuple[str, int]] = {}
        self._compressor()

    def __reduce__(self) -> tuple[Any, ...]:
        return ChunkCoder, self._arguments

    def _compressor(self) -> Compressor:
        """That of this thread: one serves a call at a time."""
        if not hasattr(self._mine, "compressor"):
            recipe, block_size, checksum, threads = self._arguments
            self._mine.compressor = Compressor(
                recipe, block_size=block_size, checksum=checksum, threads=threads
            )
        return self._mine.compressor

    def kind(self, dtype: np.dtype[Any]) -> tuple[str, int]:
        """As what the recipe's codecs take elements of this type; ParameterError: they do not."""
        if dtype not in self._kinds:
            self._kinds[dtype] = self._find_kind(dtype)
        return self._kinds[dtype]

    def _find_kind(self, dtype: np.dtype[Any]) -> tuple[str, int]:
        refusal: Exception | None = None
        for name, count in kinds(dtype):
            try:
                self._compressor().lossless(name)
            except ParameterError as error:
                refusal = refusal or error
            else:
                return name, count
        raise ParameterError(f"recipe {self._arguments[0]} cannot code {dtype}: {refusal}")

    def encode(self, chunk: np.ndarray) -> bytes:
        """The frame of a chunk, in C order."""
        name, count = self.kind(chunk.dtype)
        shape = fold(chunk.shape if count == 1 else (*chunk.shape, count))
        memory = np.ascontiguousarray(chunk).reshape(-1).view(np.uint8)
        view = arrays.View(memory, arrays.dtype_code(name), len(shape), shape)
        return self._compressor().compress_view(view)

    def decode(self, frame: Any, out: np.ndarray) -> None:
        """Expands a frame to `out`, which is C-contiguous and must be what the frame holds."""
        dtype = self._compressor().inspect(frame).dtype
        if dtype not in [name for name, _ in kinds(out.dtype)]:
            raise CorruptError(f"the frame of a chunk holds {dtype}, the array is {out.dtype}")
        self.expand(frame, out.reshape(-1).view(np.uint8))

    def expand(self, frame: Any, memory: np.ndarray) -> None:
        """Expands a frame of exactly as many bytes as `memory` has."""
        raw_size = self._compressor().inspect(frame).raw_size
        if raw_size != memory.nbytes:
            raise CorruptError(
                f"the frame of a chunk holds {raw_size or 'an unknown number of'} bytes, the chunk "
                f"has {memory.nbytes}"
            )
        self._compressor().decompress(frame, memory)

    def flat(self, frame: Any) -> np.ndarray:
        """The elements of a frame, in one dimension."""
        info = self._compressor().inspect(frame)
        code = arrays.dtype_code(info.dtype)
        array, memory = arrays.empty(code, ((info.raw_size or 0) // arrays.dtype_size(code),))
        self.expand(frame, memory.view(np.uint8))
        return array
