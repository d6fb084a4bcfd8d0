# SPDX-License-Identifier: Apache-2.0
"""zstd: one stock Zstandard frame. Needs the PyPI package `zstandard`."""

import zstandard

PARAMS = ((-50, 22),)  # level
NEEDS_SIZE = False


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    try:
        if data[:4] != b"\x28\xb5\x2f\xfd":
            raise ValueError("zstd: not a Zstandard frame")
        size = zstandard.frame_content_size(data)
        expander = zstandard.ZstdDecompressor().decompressobj()
        out = expander.decompress(data)
    except zstandard.ZstdError as error:
        raise ValueError(f"zstd: {error}") from error
    if not expander.eof or expander.unused_data or len(out) != size:
        raise ValueError(f"zstd: {len(data)} bytes are not one frame of {size} raw bytes")
    return out
