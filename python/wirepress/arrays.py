# SPDX-License-Identifier: Apache-2.0
"""Python objects as memory with a dtype and a shape, and back. NumPy is optional here."""

from __future__ import annotations

import contextlib
import math
import mmap
import operator
import re
import sys
from typing import Any, NamedTuple

from wirepress import _core
from wirepress.errors import ParameterError

# In the order of `wpr_dtype`; the values are frozen.
DTYPES: tuple[str, ...]
_SIZES: tuple[int, ...]
DTYPES, _SIZES = zip(*_core.dtypes(), strict=True)
DEFAULT_RECIPE = "shuffle+zstd:1"
"""Of elements of a known type, where files and chunks are made and nothing else is asked for."""

# Names that the ml_dtypes package gives to types that NumPy does not have.
_ML_DTYPES = {
    "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8_e4m3",
    "float8_e5m2": "float8_e5m2",
}
_KINDS = dict.fromkeys("bhilqn", "int") | dict.fromkeys("BHILQN", "uint")
_KINDS |= dict.fromkeys("efd", "float") | {"Zf": "complex", "Zd": "complex", "?": "bool"}

_DLPACK_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
_DLPACK_NAMES = {(6, 8): "bool", (10, 8): "float8_e4m3", (12, 8): "float8_e5m2"}
_DLPACK_CPU = (1, 3)  # kDLCPU, kDLCUDAHost
_DLPACK_CUDA = 2  # kDLCUDA
_DLPACK_DEVICES = {4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "managed CUDA"}
_DEFAULT_STREAM = 1  # CUDA's, as DLPack numbers it
_CUDA_KINDS = {"f": "float", "i": "int", "u": "uint", "c": "complex", "b": "bool"}
_PLAIN = (bytes, bytearray, memoryview)
_PLAIN_FORMATS = {f"{order}{kind}" for order in ("", "@", "=", "<", ">", "!") for kind in "Bbc"}
_FIELD_NAMES = re.compile(":[^:]*:")
# Python objects, C's pointers, to characters and to functions. Z before a float: NumPy's complex.
_POINTERS = re.compile("[OPzX&]|Z(?![fdgFDG])")
_LARGE = 4 << 20


class View(NamedTuple):
    """An object's memory, as `_core.Context.compress` takes it."""

    buffer: Any  # anything with the buffer protocol, a _core.Array or a _core.Memory
    dtype: int
    n_dims: int
    shape: tuple[int, ...]


def dtype_code(dtype: Any) -> int:
    """The number of a dtype: of its name, "float32" -> 11, or NumPy's type, `numpy.float32`.

    Raises ParameterError for what is none of them, such as the other byte order.
    """
    name = dtype
    if not isinstance(dtype, str):
        name = _name(getattr(dtype, "__name__", None) or str(dtype))
        if not getattr(dtype, "isnative", True):
            name = f"{name} in the other byte order"
    try:
        return DTYPES.index(name)
    except ValueError:
        raise ParameterError(f'unknown dtype "{name}"; known: {", ".join(DTYPES)}') from None


def _name(theirs: str) -> str:
    """Our name of a type that NumPy or ml_dtypes calls so."""
    if theirs in _ML_DTYPES:
        return _ML_DTYPES[theirs]
    # The float8_e4m3 of ml_dtypes has infinities: its bits mean other numbers than ours.
    return f"ml_dtypes.{theirs}" if theirs in _ML_DTYPES.values() else theirs


def numpy_name(dtype: Any) -> str:
    """The name in DTYPES of what a NumPy type's elements are; another word: they are none of these.

    `dtype.name` alone does not say the byte order.
    """
    name = _name(dtype.name)
    return name if dtype.isnative and name != "bytes" else dtype.str


def whole(name: str, value: Any, least: int = 0, below: int = 1 << 64) -> int:
    """A whole number that a caller gives, as the library takes it; ParameterError: it is none."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ParameterError(f"{name} {value!r} is not a whole number") from None
    if not least <= number < below:
        raise ParameterError(f"{name} {number} is not in {least}..{below - 1}")
    return number


def text(name: str, value: str) -> str:
    """Text that the library takes whole; ParameterError: it has a NUL, or is no UTF-8."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: a str, not {type(value).__name__}")
    if "\0" in value:
        raise ParameterError(f"{name} {value!a} has a NUL in it")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ParameterError(f"{name} {value!a} is not text (UTF-8)") from None
    return value


def dtype_size(code: int) -> int:
    """Bytes per element."""
    return _SIZES[code]


def describe(data: Any, dtype: Any = None, stream: int | None = None) -> View:
    """The memory, dtype and shape of `data`.

    Unsigned bytes in one dimension are opaque bytes, unless they are a NumPy or DLPack array.
    `dtype` says what the elements are where the object cannot: for bytes, and for arrays whose
    elements have the same size. `stream`: the CUDA stream that will work on an array of a device,
    which is made to wait for what is on its way there; None: the default stream.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(data, (numpy.ndarray, numpy.generic)):
        view = _of_numpy(numpy, data)
    elif hasattr(data, "__dlpack_device__"):
        view = _of_dlpack(data, stream)
    elif hasattr(data, "__cuda_array_interface__"):
        view = _of_cuda(data, stream)
    else:
        view = _of_buffer(data)
    if dtype is not None:
        view = _retyped(view, dtype)
    if len(view.shape) > _core.MAX_DIMS:
        raise ParameterError(
            f"the array has {len(view.shape)} dimensions; a frame remembers at most "
            f"{_core.MAX_DIMS}: reshape it first"
        )
    return view


def _retyped(view: View, dtype: Any) -> View:
    code = dtype_code(dtype)
    dtype, size = DTYPES[code], dtype_size(code)
    if view.n_dims != _core.NO_SHAPE:
        if size != dtype_size(view.dtype):
            raise ParameterError(
                f"dtype {dtype} has {size} bytes, the array's {DTYPES[view.dtype]} has "
                f"{dtype_size(view.dtype)}"
            )
        return view._replace(dtype=code)
    n_bytes = view.shape[0]
    if n_bytes % size:
        raise ParameterError(f"{n_bytes} bytes are not a whole number of {dtype} ({size} bytes)")
    return view._replace(dtype=code, shape=(n_bytes // size,))


def fits_stream(view: View, code: int) -> bool:
    """Whether a piece is of the stream's dtype, or plain memory.

    Plain memory are bytes, and for types that NumPy lacks unsigned integers of their size.
    """
    name = DTYPES[view.dtype]
    if code == 0 or view.dtype == code or name in ("bytes", "uint8"):
        return True
    return DTYPES[code] in _ML_DTYPES.values() and name == f"uint{8 * dtype_size(code)}"


def on_device(data: Any) -> bool:
    """Whether it is an array of a CUDA device, by DLPack or `__cuda_array_interface__`."""
    if isinstance(data, _PLAIN):
        return False
    if hasattr(data, "__dlpack_device__"):
        try:
            return data.__dlpack_device__()[0] == _DLPACK_CUDA
        except (BufferError, RuntimeError, TypeError, ValueError):
            return False
    return hasattr(data, "__cuda_array_interface__")


def stream_of(data: Any) -> int | None:
    """The CUDA stream that work on an array of a device is on, where that can be told: PyTorch's
    current one, or the one that `__cuda_array_interface__` names (CuPy, Numba). None: it cannot, or
    the array is the CPU's."""
    if not on_device(data):
        return None
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(data, torch.Tensor):
        return int(torch.cuda.current_stream(data.device).cuda_stream)
    try:
        stream = data.__cuda_array_interface__.get("stream")
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return None
    return None if stream is None else int(stream)


def memory_of(data: Any, stream: int | None = None) -> Any:
    """A frame as the library takes it: an array of a device as its memory, others as they are."""
    if data is None:
        raise TypeError("a frame is a buffer (bytes, memoryview ...), not None")
    return describe(data, None, stream).buffer if on_device(data) else data


def room_of(out: Any, code: int | None = None, stream: int | None = None) -> Any:
    """What is written to, as the library takes it.

    Args:
        code: the dtype of the elements that are written; None: frames, or what was looked at.
        stream: as of `describe`.

    Raises:
        ParameterError: an array of a device that cannot be written, or is of another type.
    """
    if not on_device(out):
        if isinstance(out, bytearray):
            return out
        check_output(out, code)
        return plain(out)
    view = describe(out, None, stream)
    as_is = code in (None, 0) or view.dtype == code
    if not as_is and not (DTYPES[view.dtype] in ("int8", "uint8") or _is_memory(view.dtype, code)):
        raise ParameterError(f"out is {DTYPES[view.dtype]}, the content is {DTYPES[code or 0]}")
    if not isinstance(view.buffer, _core.Array):
        return view.buffer
    if any(hasattr(out, lazy) and getattr(out, lazy)() for lazy in ("is_conj", "is_neg")):
        raise ParameterError("out is a lazy conjugate or negative: it cannot be written")
    try:
        with _its_device(out):
            array = _core.Array(_resolved(out), True)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ParameterError(f"cannot write the DLPack array: {error}") from error
    return _core.Memory(array, array.address, array.size, True)


def plain(out: Any) -> Any:
    """A NumPy array of a type without a buffer, as unsigned integers in the same memory."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(out, numpy.ndarray):
        return out
    return out.view(f"u{out.itemsize}") if _has_no_buffer(out.dtype) else out


def _spoken(dtype: Any) -> str:
    """A NumPy type in a sentence that also has names of DTYPES."""
    return numpy_name(dtype) if dtype.isbuiltin == 2 else str(dtype)


def _has_no_buffer(dtype: Any) -> bool:
    """NumPy's dates, and types of other packages such as ml_dtypes."""
    return dtype.kind in "mM" or dtype.isbuiltin == 2


def _is_memory(theirs: int, code: int | None) -> bool:
    """Whether unsigned integers take elements of this dtype as they are."""
    return code is not None and DTYPES[theirs] == f"uint{8 * dtype_size(code)}"


def words_of(words: Any) -> tuple[memoryview, int | None]:
    """The memory of an array or tensor that is written to, and the size of its elements.

    None: it is memory of any elements, such as a bytearray or an array of uint8.

    Raises:
        ParameterError: its bytes cannot be written where they are.
    """
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if torch is not None and isinstance(words, torch.Tensor):
        plain = words.device.type == "cpu" and words.layout == torch.strided
        if not plain or words.is_conj() or words.is_neg() or not words.is_contiguous():
            raise ParameterError(
                "the tensor is a view, on a device or sparse: it cannot be written"
            )
        size = None if words.dtype == torch.uint8 else words.element_size()
        return memoryview(words.detach().reshape(-1).view(torch.uint8).numpy()), size
    if numpy is None or not isinstance(words, numpy.ndarray):
        return _words_of_buffer(words)
    plain = words.flags.c_contiguous and words.flags.writeable
    if not plain or isinstance(words, numpy.ma.MaskedArray):
        raise ParameterError("the array is masked, not contiguous or cannot be written")
    if words.dtype.hasobject or not words.dtype.isnative:
        raise ParameterError(f"the array is {words.dtype}, no words of this machine's byte order")
    memory = numpy.asarray(words).reshape(-1).view(numpy.uint8)  # a matrix stays one otherwise
    return memoryview(memory), None if words.dtype == numpy.uint8 else words.itemsize


def _words_of_buffer(words: Any) -> tuple[memoryview, int | None]:
    memory = memoryview(words)
    if memory.format in _PLAIN_FORMATS:
        return memory.cast("B"), 1 if memory.format[-1] == "b" else None
    if _name_of_format(memory) not in DTYPES:
        raise ParameterError(
            f'buffer format "{memory.format}" is none of words in this machine\'s byte order'
        )
    return memory.cast("B"), memory.itemsize


def check_output(out: Any, code: int | None) -> None:
    """Refuses an array or typed buffer that elements of this dtype cannot be written to as they
    are: a `memoryview` with a format, an `array.array` or a ctypes array is as much an array of its
    type as NumPy's.

    Arrays of bytes, and of unsigned integers of the dtype's size, take elements of any kind. A code
    of 0 (opaque bytes) or None (a frame) goes to any memory but that of pointers.
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(out, numpy.ndarray):
        _check_room(out, code)
        return
    if out.dtype.hasobject:
        raise ParameterError(f"out is {out.dtype}, of Python objects: bytes would destroy them")
    _check_layout(out.flags)
    if code is None:
        return
    if isinstance(out, numpy.ma.MaskedArray):
        raise ParameterError("a masked array cannot be written to: its mask would stay; use .data")
    if code != 0 and numpy_name(out.dtype) != DTYPES[code] and not _is_room(out.dtype, code):
        raise ParameterError(f"out is {_spoken(out.dtype)}, the content is {DTYPES[code]}")


def check_rows(out: Any, code: int, shape: tuple[int, ...] | None) -> None:
    """Refuses an array whose rows are of another length than those of a frame's array: the values
    would lie in other rows. The outermost extent may differ, as may how many extents there are."""
    theirs, ours = (_inner(s or ()) for s in (getattr(out, "shape", None), shape))
    if getattr(out, "itemsize", 0) == 1 and ours:  # of bytes
        ours = (*ours[:-1], ours[-1] * dtype_size(code))
    n = min(len(theirs), len(ours)) - 1
    if n > 0 and theirs[-n:] != ours[-n:]:
        raise ParameterError(
            f"out has shape {tuple(out.shape)}, the frame's array {shape}: its rows are of another "
            f"length; give the same shape, or a flat buffer"
        )


def _inner(shape: Any) -> tuple[int, ...]:
    return tuple(n for n in shape if n != 1)


def _is_room(dtype: Any, code: int) -> bool:
    """Whether a NumPy type is of bytes, or of unsigned integers or plain memory of this size."""
    if dtype.kind == "V":  # that of records, and of numbers that NumPy does not know, too
        unnamed = dtype.names is None and dtype.isbuiltin != 2
        return unnamed and dtype.itemsize in (1, dtype_size(code))
    return dtype.str == "|i1" or (dtype.kind == "u" and dtype.itemsize in (1, dtype_size(code)))


def _check_layout(flags: Any) -> None:
    if not flags.c_contiguous:
        raise ParameterError("out has strides, or its columns in a row: give a C-contiguous array")


def _check_room(out: Any, code: int | None) -> None:
    """`check_output` of a buffer that is no NumPy array."""
    try:
        memory = memoryview(out)
    except (TypeError, BufferError):
        raise TypeError(f"out is a {type(out).__name__}, not a buffer") from None
    _check_layout(memory)
    form = memory.format or "B"
    if form in _PLAIN_FORMATS:
        return
    if _POINTERS.search(_FIELD_NAMES.sub("", form)):
        raise ParameterError(f'out holds pointers (buffer format "{form}"): bytes would break them')
    theirs = _name_of_format(memory)
    if not code or theirs == DTYPES[code] or theirs == f"uint{8 * dtype_size(code)}":
        return
    kind = theirs if theirs in DTYPES else f'of buffer format "{form}"'
    raise ParameterError(f"out is {kind}, the content is {DTYPES[code]}")


def _of_numpy(numpy: Any, data: Any) -> View:
    if isinstance(data, numpy.ma.MaskedArray):
        raise ParameterError(
            "a masked array would lose its mask: compress array.filled(value), or array.data and "
            "array.mask"
        )
    array = numpy.asarray(data)
    if not array.flags.c_contiguous:
        array = array.copy(order="C")
    shape, name = array.shape, numpy_name(array.dtype)
    if array.dtype.hasobject:
        raise ParameterError(
            f"NumPy dtype {array.dtype} holds references to Python objects, which are not in its "
            f"bytes: convert it to a type of fixed size (array.astype), or compress a pickle of it"
        )
    if name in DTYPES:
        return View(plain(array), dtype_code(name), len(shape), shape)
    if numpy_name(array.dtype.newbyteorder("=")) in DTYPES:
        raise ParameterError(
            f"NumPy dtype {array.dtype} is not in this machine's byte order: convert it with "
            f"array.astype(array.dtype.newbyteorder('='))"
        )
    raise ParameterError(
        f"NumPy dtype {_spoken(array.dtype)} is not one of {', '.join(DTYPES)}; compress a view of "
        f"it (array.view) or its bytes (array.tobytes())"
    )


def _resolved(data: Any) -> Any:
    """A PyTorch tensor whose memory holds its values.

    Its conjugates and negatives are views whose memory holds what they are of; DLPack cannot say.
    """
    if getattr(data, "requires_grad", False):
        data = data.detach()
    for lazy, resolve in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        if hasattr(data, lazy) and getattr(data, lazy)():
            data = getattr(data, resolve)()
    return data


def _its_device(data: Any) -> contextlib.AbstractContextManager[Any]:
    """PyTorch gives the memory of the thread's current device only."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(data, torch.Tensor) and data.is_cuda:
        return torch.cuda.device(data.device)
    return contextlib.nullcontext()


def _of_dlpack(data: Any, stream: int | None = None) -> View:
    try:
        device = data.__dlpack_device__()[0]
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ParameterError(f"cannot read the DLPack array: {error}") from error
    if device not in (*_DLPACK_CPU, _DLPACK_CUDA):
        where = _DLPACK_DEVICES.get(int(device), f"DLPack device {int(device)}")
        raise ParameterError(
            f"the array is in {where} memory; copy it to the CPU first, for example array.cpu()"
        )
    try:
        resolved = _resolved(data)
        with _its_device(resolved):
            if device == _DLPACK_CUDA:
                # Whoever gives the array makes the stream that is named wait for its work.
                resolved.__dlpack__(stream=stream or _DEFAULT_STREAM)
            array = _core.Array(resolved)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ParameterError(f"cannot read the DLPack array: {error}") from error
    if device == _DLPACK_CUDA:
        _check_reach(array.address, array.size)
    code, bits, lanes = array.type
    name = _DLPACK_NAMES.get((code, bits), f"{_DLPACK_KINDS.get(code, '?')}{bits}")
    if name not in DTYPES or lanes != 1:
        raise ParameterError(
            f"DLPack type (code {code}, {bits} bits, {lanes} lanes) is not one of "
            f"{', '.join(DTYPES)}"
        )
    return View(array, dtype_code(name), len(array.shape), array.shape)


def _check_reach(address: int, size: int) -> None:
    if size and _core.place_of(address)[1] < 0:
        raise ParameterError(
            "this build reaches no memory of that device, or the memory is managed; copy the array "
            "to the CPU first, for example array.cpu()"
        )


def _of_cuda(data: Any, stream: int | None = None) -> View:
    """CUDA Array Interface, version 2 or 3, of CuPy, Numba and others."""
    try:
        interface = data.__cuda_array_interface__
        (address, read_only), shape = interface["data"], tuple(interface["shape"])
        order, kind, width = (
            interface["typestr"][0],
            interface["typestr"][1],
            interface["typestr"][2:],
        )
        name = _CUDA_KINDS.get(kind, "?") + ("" if kind == "b" else str(8 * int(width)))
    except (AttributeError, KeyError, IndexError, RuntimeError, TypeError, ValueError) as error:
        raise ParameterError(f"cannot read __cuda_array_interface__: {error!r}") from error
    if name not in DTYPES or order not in "=|" + "><"[sys.byteorder == "little"]:
        raise ParameterError(
            f'typestr "{interface["typestr"]}" is not one of {", ".join(DTYPES)} in this '
            f"machine's byte order"
        )
    code = dtype_code(name)
    strides, step = interface.get("strides"), dtype_size(code)
    if strides and len(strides) != len(shape):
        raise ParameterError(f"{len(strides)} strides for {len(shape)} dimensions")
    for extent, stride in zip(reversed(shape), reversed(strides or ()), strict=bool(strides)):
        if extent > 1 and stride != step:
            raise ParameterError("the array of a device has strides: copy it first")
        step *= extent
    if interface.get("mask") is not None:
        raise ParameterError("a masked array would lose its mask")
    size, theirs = n_bytes(code, shape), interface.get("stream")
    _check_reach(address or 0, size)
    same = stream is not None and theirs == (stream or _DEFAULT_STREAM)
    if theirs is not None and size and not same:
        _core.wait_for(address, theirs)
    memory = _core.Memory(data, address or 0, size, not read_only)
    return View(memory, code, len(shape), shape)


def _of_buffer(data: Any) -> View:
    try:
        memory = memoryview(data)
    except TypeError:
        raise TypeError(
            f"wirepress compresses buffers (bytes, memoryview, NumPy arrays ...) and DLPack "
            f"arrays, not {type(data).__name__}"
        ) from None
    form = memory.format or "B"
    if form == "B" and memory.ndim == 1:
        return View(memory, 0, _core.NO_SHAPE, (memory.nbytes,))
    name = _name_of_format(memory)
    if name not in DTYPES:
        raise ParameterError(
            f'buffer format "{form}" is not one of {", ".join(DTYPES)} in this machine\'s byte '
            f"order; compress memoryview(data).cast('B') instead"
        )
    shape = tuple(memory.shape or ())
    return View(memory, dtype_code(name), len(shape), shape)


def _name_of_format(memory: memoryview) -> str:
    """The dtype of a buffer's elements; what is no name of one where there is none."""
    form = memory.format or "B"
    kind = _KINDS.get(form.lstrip("@=" + "<>"[sys.byteorder == "big"]), "?")
    return kind if kind == "bool" else f"{kind}{8 * memory.itemsize}"


def unwritten(size: int) -> memoryview:
    """New bytes; where they are many, in huge pages.

    The kernel's small pages take up to seven times as long to come, longer than most codecs take
    to fill them.
    """
    if size < _LARGE:
        return memoryview(bytearray(size))
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError):
        raise MemoryError(f"no memory for {size} bytes") from None
    with contextlib.suppress(OSError):  # only a wish
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)


def empty(code: int, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """A new NumPy array, and the same memory as a writable buffer."""
    name = DTYPES[code]
    try:
        import numpy
    except ImportError:
        raise ImportError(
            f"the frame holds a {name} array of shape {shape}: install numpy, or ask for its "
            f"bytes with raw=True"
        ) from None
    if name in _ML_DTYPES.values():
        theirs = next(key for key, value in _ML_DTYPES.items() if value == name)
        try:
            import ml_dtypes
        except ImportError:
            raise ImportError(
                f"the frame holds a {name} array, which NumPy does not know: install ml_dtypes, "
                f"or ask for its bytes with raw=True"
            ) from None
        memory = numpy.empty(shape, dtype=f"u{dtype_size(code)}")
        return memory.view(getattr(ml_dtypes, theirs)), memory
    array = numpy.empty(shape, dtype="u1" if name == "bytes" else name)
    return array, array


def fold(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape of as many dimensions as a frame remembers: the outermost ones become one."""
    extra = len(shape) - _core.MAX_DIMS
    return shape if extra <= 0 else (math.prod(shape[: extra + 1]), *shape[extra + 1 :])


def n_bytes(code: int, shape: tuple[int, ...]) -> int:
    """The size of an array."""
    return math.prod(shape) * dtype_size(code)
