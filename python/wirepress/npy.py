# SPDX-License-Identifier: Apache-2.0
"""Headers of .npy files (NumPy's NEP 1), without NumPy."""

from __future__ import annotations

import ast
import struct
import sys
from collections.abc import Callable
from typing import NamedTuple

from wirepress import _core, arrays

_MAGIC = b"\x93NUMPY"
_ORDER = "<>"[sys.byteorder == "big"]
_KINDS = {"int": "i", "uint": "u", "float": "f", "complex": "c"}
# An array's header is a line of text; one that is longer is no array that a frame could hold.
_MAX_HEADER = 1 << 16


class NpyError(ValueError):
    """Not a .npy file, or not one whose array a frame can hold; the text says why."""


class Header(NamedTuple):
    dtype: str
    shape: tuple[int, ...]


def _descr_of(dtype: str) -> str:
    """NumPy's word for a dtype: "float32" -> "<f4"."""
    size = arrays.dtype_size(arrays.dtype_code(dtype))
    if dtype == "bool":
        return "|b1"
    kind = _KINDS.get(dtype.rstrip("0123456789"))
    if kind is None:  # bytes and what NumPy does not know: as numpy.save writes them
        return f"{'|' if size == 1 else _ORDER}V{size}"
    return f"{'|' if size == 1 else _ORDER}{kind}{size}"


_DTYPES = {_descr_of(name): name for name in arrays.DTYPES if "V" not in _descr_of(name)}


def read_header(read: Callable[[int], bytes]) -> Header:
    """Takes a .npy file's header from `read(size)`; the elements come next."""
    start = read(8)
    if len(start) < 8 or start[:6] != _MAGIC or start[6] not in (1, 2, 3):
        raise NpyError("this is not a .npy file")
    form = "<H" if start[6] == 1 else "<I"
    (size,) = struct.unpack(form, read(struct.calcsize(form)).ljust(struct.calcsize(form), b"\0"))
    text = read(min(size, _MAX_HEADER))
    try:
        fields = ast.literal_eval(text.decode("utf-8" if start[6] == 3 else "latin-1"))
        descr, fortran, shape = fields["descr"], fields["fortran_order"], fields["shape"]
        if not all(isinstance(extent, int) and extent >= 0 for extent in shape):
            raise ValueError
    except (ValueError, SyntaxError, TypeError, KeyError):
        raise NpyError("the header of this .npy file is damaged") from None
    if not isinstance(descr, str) or descr not in _DTYPES:
        raise NpyError(f"its dtype {descr!r} is not one that frames know")
    if len(shape) > _core.MAX_DIMS:
        raise NpyError(f"it has {len(shape)} dimensions; frames hold at most {_core.MAX_DIMS}")
    if fortran and len(shape) > 1:
        raise NpyError("it is in Fortran order")
    return Header(_DTYPES[descr], shape)


def make_header(header: Header) -> bytes:
    """The header of a .npy file, as numpy.save writes it: a multiple of 64 bytes."""
    fields = {"descr": _descr_of(header.dtype), "fortran_order": False, "shape": header.shape}
    text = "{" + "".join(f"'{key}': {value!r}, " for key, value in fields.items()) + "}"
    # NumPy leaves room for the first extent to grow to 21 digits.
    text += " " * (21 - len(repr(header.shape[0])) if header.shape else 0)
    size = 10 + len(text) + 1
    text += " " * (-size % 64) + "\n"
    return _MAGIC + b"\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin-1")
