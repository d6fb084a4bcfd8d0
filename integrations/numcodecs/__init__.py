# SPDX-License-Identifier: Apache-2.0
"""numcodecs: the codec `wirepress`, for Zarr format 2, kerchunk and whatever else asks numcodecs.

    zarr.create_array(store, data=field, zarr_format=2, compressors=Wirepress("bx:m=6"))

It is found by its name, as `numcodecs.get_codec({"id": "wirepress", "recipe": "bx:m=6"})`, once
wirepress is installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numcodecs.abc import Codec
from numcodecs.compat import ensure_contiguous_ndarray, ensure_ndarray
from wirepress.chunks import DEFAULT_RECIPE, ChunkCoder
from wirepress.errors import ParameterError

__all__ = ["Wirepress"]


class Wirepress(Codec):
    """A chunk as a wirepress frame.

    Args:
        recipe: codecs with their parameters, lossless or with an error bound: `"shuffle+zstd:1"`,
            `"bx:m=6"`, `"sz3:abs=1e-3"`, `"auto:rel=1e-3"`. It sees dtype and shape of the array.
        block_size, checksum: those options of wirepress; None: their defaults.
        threads: that work on one chunk; not stored.

    >>> codec = Wirepress("bx:m=6")
    >>> values = np.linspace(1, 2, 1000, dtype=np.float32)
    >>> frame = codec.encode(values)
    >>> len(frame) < 1300, bool(np.all(abs(codec.decode(frame) / values - 1) <= 2**-7))
    (True, True)
    """

    codec_id = "wirepress"

    def __init__(
        self,
        recipe: str = DEFAULT_RECIPE,
        block_size: int | str | None = None,
        checksum: bool | None = None,
        threads: int = 1,
    ) -> None:
        self.recipe = recipe
        self.block_size = block_size
        self.checksum = checksum
        self._coder = ChunkCoder(recipe, block_size, checksum, threads)

    def encode(self, buf: Any) -> bytes:
        """The frame of an array, whose dimensions are taken in the order of its memory."""
        if isinstance(buf, np.ma.MaskedArray):  # which `ensure_ndarray` takes without its mask
            raise ParameterError("a masked array would lose its mask: encode array.filled(value)")
        array = ensure_ndarray(buf)
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            array = array.T
        return self._coder.encode(array)

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The elements in the order of their memory, or `out` filled with them."""
        frame = ensure_contiguous_ndarray(buf)
        if out is None:
            return self._coder.flat(frame)
        self._coder.expand(frame, ensure_contiguous_ndarray(out).view(np.uint8))
        return out

    def get_config(self) -> dict[str, Any]:
        """What is stored with the array."""
        config = {"id": self.codec_id, "recipe": self.recipe}
        config |= {"block_size": self.block_size, "checksum": self.checksum}
        return {key: value for key, value in config.items() if value is not None}
