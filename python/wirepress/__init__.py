# SPDX-License-Identifier: Apache-2.0
"""wirepress: compression in flight.

Compresses buffers and arrays to self-describing frames and back:

>>> import wirepress
>>> frame = wirepress.compress(b"hello " * 1000, "zstd:3")
>>> wirepress.decompress(frame) == b"hello " * 1000
True

`Compressor` keeps settings and memory for many calls, and its jobs code arrays of a GPU while a
program does other things. `StreamCompressor` and `StreamDecompressor` work piece by piece, and
`FrameStore` keeps the time steps of a simulation. `codecs()`, `engines()` and `options()` list what
there is. Whatever fails raises a `WirepressError`.
"""

import importlib


def _refuse_another_interpreter() -> None:
    """The extension would take its types away from the main interpreter, where calls failed then:
    nanobind's module remembers the interpreter that loaded it last."""
    try:
        import _interpreters as interpreters  # Python 3.13 and later
    except ImportError:
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            return
    here, main = interpreters.get_current(), interpreters.get_main()
    # Later versions of Python give a tuple that begins with the number.
    if here != main and (not isinstance(here, tuple) or here[0] != main[0]):
        raise ImportError("wirepress works in a process's main interpreter, not in another one")


_refuse_another_interpreter()

from wirepress import _core  # noqa: E402

TYPE_CHECKING = False  # typing itself would take a tenth of the start-up of `wirepress run`
if TYPE_CHECKING:
    from wirepress.api import (
        Codec,
        Compressor,
        DeviceWork,
        Engine,
        Info,
        Job,
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
        device_work,
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
    from wirepress.patches import Patch, diff, digest, fold, patch
    from wirepress.store import FrameStore, StoreFrame, StoreStats

__version__: str = _core.version()

__all__ = [
    "DTYPES",
    "ChecksumError",
    "Codec",
    "Compressor",
    "CorruptError",
    "DeviceError",
    "DeviceWork",
    "Engine",
    "FrameError",
    "FrameStore",
    "Info",
    "Job",
    "Kernel",
    "NoMemoryError",
    "Option",
    "Param",
    "ParameterError",
    "Patch",
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
    "device_work",
    "diff",
    "digest",
    "engine_clocks",
    "engines",
    "fold",
    "inspect",
    "options",
    "patch",
]

# These are loaded when something of theirs is first used: `wirepress run`, which every job waits
# for, needs none of them.
_MODULES = ("api", "errors", "store", "patches", "arrays")


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"wirepress.{name}")
    if name in __all__:
        for module in map(__getattr__, _MODULES):
            if name in vars(module):
                return globals().setdefault(name, vars(module)[name])
    raise AttributeError(f"module 'wirepress' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
