# SPDX-License-Identifier: Apache-2.0
"""HDF5: the wirepress filter in h5py, and chunks written and read by several threads.

    import wirepress.hdf5
    file.create_dataset("p", data=field, chunks=(64, 64, 64), **wirepress.hdf5.options("bx:m=6"))

The import registers the filter, for reading, too. Other programs find it by HDF5_PLUGIN_PATH, which
`plugin_path()` tells. `write` and `read` do what `dataset[...]` does, by threads.
"""

from __future__ import annotations

import struct

from wirepress.api import Compressor
from wirepress.hdf5.direct import read, write
from wirepress.hdf5.filter import FILTER, last_error, plugin_path

__all__ = ["FILTER", "last_error", "options", "plugin_path", "read", "write"]


def cd_values(recipe: str = "") -> tuple[int, ...]:
    """The filter's settings as HDF5 keeps them: the length of the recipe, and its bytes."""
    text = recipe.encode()
    return (len(text), *struct.unpack(f"<{-(-len(text) // 4)}I", text + bytes(-len(text) % 4)))


def options(recipe: str = "") -> dict[str, object]:
    """Arguments of `create_dataset` that choose the filter.

    Args:
        recipe: codecs with their parameters, lossless or with an error bound: `"bx:m=6"`,
            `"sz3:abs=1e-3"`, `"auto:rel=1e-3"`. "": that of WIREPRESS_RECIPE when chunks are
            written, or `"shuffle+zstd:1"`.

    Raises:
        ParameterError: there is no such recipe.
    """
    if not isinstance(recipe, str):
        raise TypeError(f"recipe: a str, not {type(recipe).__name__}")
    if recipe:
        Compressor(recipe)
    return {"compression": FILTER, "compression_opts": cd_values(recipe)}
