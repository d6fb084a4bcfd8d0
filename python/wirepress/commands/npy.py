# SPDX-License-Identifier: Apache-2.0
"""Headers of .npy files (NumPy's NEP 1, versions 1.0 to 3.0), without NumPy."""

from __future__ import annotations

import ast
import math
import re
import struct
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from wirepress import _core, arrays

MAGIC = b"\x93NUMPY"
_ORDER, _OTHER_ORDER = "<>" if sys.byteorder == "little" else "><"
_KINDS = {"int": "i", "uint": "u", "float": "f", "complex": "c"}
# An array's header is a line of text; one that is longer is no array that a frame could hold.
_MAX_HEADER = 1 << 16


class NpyError(ValueError):
    """Not a .npy file, or not one whose array a frame can hold; the text says why."""


class Header(NamedTuple):
    """An array in C order that a frame can remember."""

    dtype: str
    shape: tuple[int, ...]


class Layout(NamedTuple):
    """A .npy file: its header as it stands there, and how the elements lie behind it."""

    head: bytes
    descr: Any
    fortran: bool
    shape: tuple[int, ...]

    @property
    def dtype(self) -> str | None:
        """A frame's word for elements of this machine's byte order; None: there is none."""
        return _DTYPES.get(self.descr) if isinstance(self.descr, str) else None

    @property
    def kind(self) -> tuple[str, int] | None:
        """As what elements can be described to codecs, and how many such each is. None: as bytes.

        Numbers of the other byte order and times are unsigned integers, which no lossy codec takes.
        """
        if self.dtype:
            return self.dtype, 1
        found = re.fullmatch(r"([<>])([iufcMm])(\d+)(\[.*\])?", str(self.descr))
        if found:
            count = 2 if found[2] == "c" else 1
            name = f"uint{8 * int(found[3]) // count}"
            if name in arrays.DTYPES:
                return name, count
        return None

    @property
    def memory_shape(self) -> tuple[int, ...]:
        """The extents in the order of memory, outermost first."""
        return self.shape[::-1] if self.fortran else self.shape

    @property
    def other_order(self) -> bool:
        """Whether elements lie in the byte order that this machine has not."""
        return isinstance(self.descr, str) and self.descr.startswith(_OTHER_ORDER)

    @property
    def header(self) -> Header | None:
        """What `make_header` would make this very head of; None: a frame cannot remember it."""
        plain = self.dtype and len(self.shape) <= _core.MAX_DIMS and not self.fortran
        header = Header(self.dtype or "", self.shape)
        return header if plain and make_header(header) == self.head else None


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


def parse(read: Callable[[int], bytes]) -> Layout:
    """Takes a .npy file's header from `read(size)`; the elements come next."""
    head = read(8)
    if len(head) < 8 or head[:6] != MAGIC or head[6] not in (1, 2, 3):
        raise NpyError("this is not a .npy file")
    form = "<H" if head[6] == 1 else "<I"
    number = read(struct.calcsize(form))
    (size,) = struct.unpack(form, number.ljust(struct.calcsize(form), b"\0"))
    text = read(min(size, _MAX_HEADER))
    try:
        fields = ast.literal_eval(text.decode("utf-8" if head[6] == 3 else "latin-1"))
        descr, fortran, shape = fields["descr"], fields["fortran_order"], fields["shape"]
        good = all(isinstance(extent, int) and extent >= 0 for extent in shape)
        if not good or math.prod(shape) >= 1 << 63 or len(text) != size:
            raise ValueError
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        raise NpyError("the header of this .npy file is damaged") from None
    return Layout(head + number + text, descr, bool(fortran) and len(shape) > 1, tuple(shape))


def make_header(header: Header) -> bytes:
    """The header of a .npy file, as numpy.save writes it: a multiple of 64 bytes."""
    fields = {"descr": _descr_of(header.dtype), "fortran_order": False, "shape": header.shape}
    text = "{" + "".join(f"'{key}': {value!r}, " for key, value in fields.items()) + "}"
    # NumPy leaves room for the first extent to grow to 21 digits.
    text += " " * (21 - len(repr(header.shape[0])) if header.shape else 0)
    size = 10 + len(text) + 1
    text += " " * (-size % 64) + "\n"
    return MAGIC + b"\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin-1")
