# SPDX-License-Identifier: Apache-2.0
"""wirepress: compression in flight.

Compresses buffers and arrays to self-describing frames and back:

>>> import wirepress
>>> frame = wirepress.compress(b"hello " * 1000, "zstd:3")
>>> wirepress.decompress(frame) == b"hello " * 1000
True

`Compressor` keeps settings and memory for many calls, `StreamCompressor` and `StreamDecompressor`
work piece by piece, and `FrameStore` keeps the time steps of a simulation. `codecs()`, `engines()`
and `options()` list what there is. Whatever fails raises a `WirepressError`.
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
    engine_clocks,
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
    StoreError,
    TooSmallError,
    TruncatedError,
    UnsupportedError,
    WirepressError,
)
from wirepress.store import FrameStore, StoreFrame, StoreStats

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
    "FrameStore",
    "Info",
    "Kernel",
    "NoMemoryError",
    "Option",
    "Param",
    "ParameterError",
    "Stats",
    "StoreError",
    "StoreFrame",
    "StoreStats",
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
    "engine_clocks",
    "engines",
    "inspect",
    "options",
]
