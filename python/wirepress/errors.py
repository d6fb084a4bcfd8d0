# SPDX-License-Identifier: Apache-2.0
"""What wirepress raises: one class per status of the library, grouped by who must act.

Every error is a `WirepressError`; its text is the library's sentence, with the numbers.
"""


class WirepressError(Exception):
    """Something in wirepress failed; `status` names what, `code` is its number in the C door."""

    status = "error"
    code = -1


class FrameError(WirepressError, ValueError):
    """The bytes are to blame: not a frame, or a damaged or unknown one."""


class CorruptError(FrameError):
    """Not a frame, or a frame that contradicts itself."""

    status, code = "corrupt", 10


class ChecksumError(FrameError):
    """A checksum does not match: the frame was damaged on its way."""

    status, code = "checksum", 11


class UnsupportedError(FrameError):
    """A version, codec or flag that this library does not know."""

    status, code = "unsupported", 12


class TruncatedError(FrameError):
    """The frame ends before its content does."""

    status, code = "truncated", 13


class ParameterError(WirepressError, ValueError):
    """An unknown option, codec or value (the text lists the known ones), or unusable data."""

    status, code = "parameter", 20


class TooSmallError(WirepressError, ValueError):
    """The result does not fit the buffer given as `out`."""

    status, code = "dst_too_small", 21


class NoMemoryError(WirepressError, MemoryError):
    """Memory ran out."""

    status, code = "no_memory", 30


class DeviceError(WirepressError, RuntimeError):
    """An engine failed."""

    status, code = "device", 31


class StoreError(WirepressError, OSError):
    """The file system refused something; the text says what, where and why."""

    status, code = "io", 32


_ALL = (
    CorruptError,
    ChecksumError,
    UnsupportedError,
    TruncatedError,
    ParameterError,
    TooSmallError,
    NoMemoryError,
    DeviceError,
    StoreError,
)


def of_status(code: int) -> type[WirepressError]:
    """The class for a `wpr_status` of the C door."""
    return next((error for error in _ALL if error.code == code), WirepressError)
