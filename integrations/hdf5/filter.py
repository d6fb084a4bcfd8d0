# SPDX-License-Identifier: Apache-2.0
"""Finds the filter and hands it to the HDF5 of h5py; the import does so."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import h5py

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
