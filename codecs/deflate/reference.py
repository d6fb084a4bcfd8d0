# SPDX-License-Identifier: Apache-2.0
"""deflate: one raw DEFLATE stream."""

import zlib

PARAMS = ((0, 12),)  # level
NEEDS_SIZE = False


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    try:
        expander = zlib.decompressobj(wbits=-15)
        out = expander.decompress(data)
    except zlib.error as error:
        raise ValueError(f"deflate: {error}") from error
    if not expander.eof or expander.unused_data:
        raise ValueError(f"deflate: {len(data)} bytes are not one whole stream")
    return out
