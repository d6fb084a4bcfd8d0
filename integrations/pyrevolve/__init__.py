# SPDX-License-Identifier: Apache-2.0
"""pyrevolve: checkpoints of adjoint computations (Devito's, for example) as frames.

Revolver(checkpoint, forward, reverse, n_checkpoints, n_timesteps,
         compression_params=wirepress.pyrevolve.compression("bx:m=6"))
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

import pyrevolve.storage
from pyrevolve.compression import CompressedObject
from wirepress.chunks import DEFAULT_RECIPE, ChunkCoder
from wirepress.errors import ChecksumError, ParameterError

__all__ = ["Storage", "compression", "use_storage"]


class _Scheme:
    """pyrevolve's two functions."""

    def __init__(self, coder: ChunkCoder) -> None:
        self._coder = coder

    def compress(self, _params: Any, array: Any) -> CompressedObject:
        array = np.asarray(array, order="C")
        metadata = {"shape": array.shape, "dtype": array.dtype}
        frame = self._coder.encode(array)
        if len(frame) < array.nbytes:
            return CompressedObject(frame, metadata=metadata)
        # pyrevolve does not notice when data are larger than their place: they would write over
        # the next checkpoint.
        memory = array.reshape(-1).view(np.uint8)
        return CompressedObject(memory, metadata={**metadata, "crc32": zlib.crc32(memory)})

    def decompress(self, _params: Any, stored: CompressedObject) -> np.ndarray:
        array = np.empty(stored.shape, stored.dtype)
        if "crc32" not in stored.metadata:
            self._coder.decode(stored.data, array)
            return array
        if zlib.crc32(stored.data) != stored.metadata["crc32"]:
            raise ChecksumError(
                f"a checkpoint of {array.shape} {array.dtype} is not what was stored: another one "
                f"was written over it (pyrevolve leaves gaps between three and more arrays of a "
                f"checkpoint)"
            )
        array.reshape(-1).view(np.uint8)[:] = np.frombuffer(stored.data, np.uint8)
        return array


def compression(
    recipe: str = DEFAULT_RECIPE, *, block_size: int | str | None = None, threads: int = 0
) -> dict[str, Any]:
    """The `compression_params` of a Revolver.

    Args:
        recipe: codecs with their parameters, lossless or with an error bound: `"bx:m=6"`,
            `"sz3:rel=1e-4"`. It sees type and shape of every array of a checkpoint.
        block_size: that option of wirepress.
        threads: that work on an array; 0: as many as this process may use.

    Raises:
        ParameterError: there is no such recipe.
    """
    if not isinstance(recipe, str):
        raise ParameterError(f"a recipe is text, not {type(recipe).__name__}")
    scheme = _Scheme(ChunkCoder(recipe, block_size, None, threads))
    return {
        "scheme": "custom",
        "compressor": scheme.compress,
        "decompressor": scheme.decompress,
    }


class Storage(pyrevolve.storage.Storage):
    """Checkpoints as frames that take only the memory they need.

    Args:
        checkpoint: the Revolver's.
        n_checkpoints: the Revolver's.
        recipe, block_size, threads: as for `compression`.
    """

    def __init__(
        self,
        checkpoint: Any,
        n_checkpoints: int,
        recipe: str = DEFAULT_RECIPE,
        *,
        block_size: int | str | None = None,
        threads: int = 0,
    ) -> None:
        super().__init__(checkpoint.size, n_checkpoints, checkpoint.dtype, None, name="wirepress")
        self._coder = ChunkCoder(recipe, block_size, None, threads)
        self._frames: dict[int, list[bytes]] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of all frames held now."""
        return sum(len(frame) for frames in self._frames.values() for frame in frames)

    def save(self, key: int, data_pointers: Any) -> None:
        """Stores the arrays of a checkpoint, in place of the one before under this key."""
        self._frames.pop(key, None)
        self._frames[key] = [self._coder.encode(np.asarray(data)) for data in data_pointers]

    def load(self, key: int, locations: Any) -> None:
        """Writes the arrays of a checkpoint to where they belong."""
        if len(locations) != len(self._frames[key]):
            raise ParameterError(
                f"checkpoint {key} has {len(self._frames[key])} arrays, not {len(locations)}"
            )
        for frame, location in zip(self._frames[key], locations, strict=True):
            whole = location.flags.c_contiguous
            array = location if whole else np.empty(location.shape, location.dtype)
            self._coder.decode(frame, array)
            if not whole:
                location[...] = array


def use_storage(revolver: Any, recipe: str = DEFAULT_RECIPE, **options: Any) -> Storage:
    """Gives a Revolver a `Storage` in place of its own, before its first step; returns it."""
    storage = Storage(revolver.checkpoint, revolver.n_checkpoints, recipe, **options)
    revolver.resetStorageList()
    revolver.addStorage(storage)
    return storage
