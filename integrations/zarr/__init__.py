# SPDX-License-Identifier: Apache-2.0
"""Zarr format 3: the codec `wirepress`, which turns chunks to frames.

    zarr.create_array(store, data=field, serializer=WirepressCodec("bx:m=6"), compressors=None)

Reading needs no import: Zarr finds the codec by its name once wirepress is installed. It takes the
place of the serializer, where dtype and shape are known, also inside shards. `wirepress.numcodecs`
has the codec for format 2.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from wirepress.chunks import DEFAULT_RECIPE, ChunkCoder
from wirepress.errors import ParameterError
from zarr.abc.codec import ArrayBytesCodec
from zarr.core.common import parse_named_configuration

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer

__all__ = ["WirepressCodec"]


@dataclass(frozen=True)
class WirepressCodec(ArrayBytesCodec):
    """A chunk as a wirepress frame, in the place of Zarr's `bytes` codec and compressors.

    Args:
        recipe: codecs with their parameters, lossless or with an error bound: `"shuffle+zstd:1"`,
            `"bx:m=6"`, `"sz3:abs=1e-3"`, `"auto:rel=1e-3"`. An array that it cannot code is
            refused when it is made.
        block_size, checksum: those options of wirepress; None: their defaults.
        threads: that work on one chunk; not stored. Zarr codes several chunks at once.
    """

    is_fixed_size = False

    recipe: str = DEFAULT_RECIPE
    block_size: int | str | None = None
    checksum: bool | None = None
    threads: int = field(default=1, compare=False)
    _coder: ChunkCoder = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        coder = ChunkCoder(self.recipe, self.block_size, self.checksum, self.threads)
        object.__setattr__(self, "_coder", coder)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> WirepressCodec:
        """The codec that the metadata of an array name."""
        _, configuration = parse_named_configuration(data, "wirepress", require_configuration=False)
        configuration = dict(configuration or {})
        if unknown := configuration.keys() - {"recipe", "block_size", "checksum"}:
            raise ParameterError(f"codec wirepress: unknown configuration {sorted(unknown)}")
        return cls(**configuration)

    def to_dict(self) -> dict[str, Any]:
        """What is stored with the array."""
        configuration: dict[str, Any] = {"recipe": self.recipe}
        configuration |= {"block_size": self.block_size, "checksum": self.checksum}
        known = {key: value for key, value in configuration.items() if value is not None}
        return {"name": "wirepress", "configuration": known}

    def validate(self, *, shape: Any, dtype: Any, chunk_grid: Any) -> None:
        """Raises ParameterError where the recipe does not take the array's type."""
        self._coder.kind(_native(dtype))

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> WirepressCodec:
        """As `validate`, which codecs in shards are not asked for."""
        self._coder.kind(_native(array_spec.dtype))
        return self

    async def _encode_single(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> Buffer:
        chunk = chunk_array.as_numpy_array().astype(_native(chunk_spec.dtype), copy=False)
        frame = await asyncio.to_thread(self._coder.encode, chunk)
        return chunk_spec.prototype.buffer.from_bytes(frame)

    async def _decode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        chunk = np.empty(chunk_spec.shape, _native(chunk_spec.dtype))
        await asyncio.to_thread(self._coder.decode, chunk_bytes.as_numpy_array(), chunk)
        return chunk_spec.prototype.nd_buffer.from_ndarray_like(chunk)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Not known before: it depends on the data."""
        raise NotImplementedError


def _native(dtype: Any) -> np.dtype[Any]:
    """Zarr's data type as NumPy's, in this machine's byte order: frames are little endian."""
    return dtype.to_native_dtype().newbyteorder("=")
