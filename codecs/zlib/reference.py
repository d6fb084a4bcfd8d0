# SPDX-License-Identifier: Apache-2.0
"""zlib: one zlib stream."""

import zlib

PARAMS = ((0, 12),)  # level
NEEDS_SIZE = False


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    try:
        expander = zlib.decompressobj(wbits=15)
        out = expander.decompress(data)
    except zlib.error as error:
        raise ValueError(f"zlib: {error}") from error
    if not expander.eof or expander.unused_data:
        raise ValueError(f"zlib: {len(data)} bytes are not one whole stream")
    return out
