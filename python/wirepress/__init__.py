# SPDX-License-Identifier: Apache-2.0
"""wirepress: compression in flight.

Compresses buffers and arrays to self-describing frames and back:

>>> import wirepress
>>> frame = wirepress.compress(b"hello " * 1000, "zstd:3")
>>> wirepress.decompress(frame) == b"hello " * 1000
True

`Compressor` keeps settings and memory for many calls, `StreamCompressor` and `StreamDecompressor`
work piece by piece. `codecs()`, `engines()` and `options()` list what there is. Whatever fails
raises a `WirepressError`.
"""

from wirepress import _core
from wirepress.api import (
    Codec,
    Compressor,
    Engine,
    Info,
    Kernel,
    Option,
    Param,
    Stats,
    StreamCompressor,
    StreamDecompressor,
    codecs,
    compress,
    decompress,
    decompress_range,
    engines,
    inspect,
    options,
)
from wirepress.arrays import DTYPES
from wirepress.errors import (
    ChecksumError,
    CorruptError,
    DeviceError,
    FrameError,
    NoMemoryError,
    ParameterError,
    TooSmallError,
    TruncatedError,
    UnsupportedError,
    WirepressError,
)

__version__: str = _core.version()

__all__ = [
    "DTYPES",
    "ChecksumError",
    "Codec",
    "Compressor",
    "CorruptError",
    "DeviceError",
    "Engine",
    "FrameError",
    "Info",
    "Kernel",
    "NoMemoryError",
    "Option",
    "Param",
    "ParameterError",
    "Stats",
    "StreamCompressor",
    "StreamDecompressor",
    "TooSmallError",
    "TruncatedError",
    "UnsupportedError",
    "WirepressError",
    "codecs",
    "compress",
    "decompress",
    "decompress_range",
    "engines",
    "inspect",
    "options",
]
