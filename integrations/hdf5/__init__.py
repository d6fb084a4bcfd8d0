# SPDX-License-Identifier: Apache-2.0
"""HDF5: the wirepress filter in h5py, and chunks written and read by several threads.

    import wirepress.hdf5
    file.create_dataset("p", data=field, chunks=(64, 64, 64), **wirepress.hdf5.options("bx:m=6"))

The import registers the filter, for reading, too. Other programs find it by HDF5_PLUGIN_PATH, which
`plugin_path()` tells. `write` and `read` do what `dataset[...]` does, by threads.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

import h5py

from wirepress.api import Compressor

__all__ = ["FILTER", "last_error", "options", "plugin_path", "read", "write"]

_NAME = "libwirepress_hdf5.so"


class _FilterClass(ctypes.Structure):
    """The head of H5Z_class2_t."""

    _fields_ = (("version", ctypes.c_int), ("id", ctypes.c_int))


def plugin_path() -> str:
    """The folder of the filter, for HDF5_PLUGIN_PATH."""
    here = Path(__file__).resolve().parent
    folders = [here / "plugin"]
    build = here.parent.parent / "build"  # run from a source tree
    folders += [build / preset / "integrations" / "hdf5" for preset in ("dev", "release")]
    if chosen := os.environ.get("WIREPRESS_HDF5_DIR"):
        folders.insert(0, Path(chosen).resolve())
    for folder in folders:
        if (folder / _NAME).is_file():
            return str(folder)
    raise ImportError(f"{_NAME} is not in {', '.join(map(str, folders))}")


def _register() -> tuple[ctypes.CDLL, int]:
    """Hands the filter to the HDF5 of h5py; returns the module, which must stay, and its number."""
    module = ctypes.CDLL(str(Path(plugin_path()) / _NAME))
    module.H5PLget_plugin_info.restype = ctypes.c_void_p
    module.wirepress_hdf5_error.restype = ctypes.c_char_p
    address = module.H5PLget_plugin_info()
    h5py.h5z.register_filter(address)
    return module, _FilterClass.from_address(address).id


_module, FILTER = _register()
"""The filter's number in HDF5."""


def last_error() -> str:
    """Why the filter failed last in this thread; HDF5 2 says only that it did. "": it did not."""
    return _module.wirepress_hdf5_error().decode(errors="replace")


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
    if recipe:
        Compressor(recipe)
    return {"compression": FILTER, "compression_opts": cd_values(recipe)}


from wirepress.hdf5.direct import read, write  # noqa: E402  (needs what stands above)
